;;; magy-log.el --- What Magy notes down  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Magy authors
;; SPDX-License-Identifier: GPL-3.0-or-later
;; This is free software with no warranty at all; see the file COPYING.

;;; Commentary:

;; The buffer *magy log* has a line for whatever is worth one, with its
;; level.  Lines about permissions are marked PERM and count as info.

;;; Code:

(require 'magy-options)
(require 'subr-x)

(defconst magy-log-buffer "*magy log*"
  "Name of the log's buffer.")

(defconst magy-log--levels '(debug info warn error)
  "The levels, the least important one first.")

(defconst magy-log--largest 1000000
  "Characters at which the older half of the log is dropped.")

(defvar magy-log-mode-map
  (let ((map (make-sparse-keymap)))
    (define-key map "L" #'magy-clear-log)
    map)
  "Keymap of `magy-log-mode'.")

(define-derived-mode magy-log-mode special-mode "Magy-Log"
  "What Magy's client and server noted down.
\\{magy-log-mode-map}"
  (setq-local buffer-undo-list t
              font-lock-defaults
              '((("^[-0-9]+ [:0-9]+ \\(ERROR\\)" 1 'error)
                 ("^[-0-9]+ [:0-9]+ \\(WARN\\)" 1 'warning)
                 ("^[-0-9]+ [:0-9]+ \\(PERM\\)" 1 'success)
                 ("^[-0-9]+ [:0-9]+ \\(DEBUG\\)" 1 'shadow)
                 ("^[-0-9]+ [:0-9]+" . 'shadow))
                t)))

(defun magy-log--buffer ()
  "Return the log's buffer, made when needed."
  (or (get-buffer magy-log-buffer)
      (with-current-buffer (get-buffer-create magy-log-buffer)
        (magy-log-mode)
        (current-buffer))))

(defun magy-log--wanted-p (level)
  "Return non-nil if lines of LEVEL are logged."
  (and magy-enable-logging
       (memq (if (memq level magy-log--levels) level 'info)
             (memq magy-log-level magy-log--levels))))

(defun magy--log-at (level format &rest args)
  "Log a line made from FORMAT and ARGS at LEVEL: debug, info, warn, error or perm."
  (when (magy-log--wanted-p level)
    (with-current-buffer (magy-log--buffer)
      (let ((inhibit-read-only t)
            (follow (= (point) (point-max))))
        (save-excursion
          (goto-char (point-max))
          (insert (format-time-string "%F %T ") (upcase (symbol-name level)) " "
                  (apply #'format format args) "\n")
          (when (> (buffer-size) magy-log--largest)
            (delete-region (point-min) (- (point-max) (/ magy-log--largest 2)))))
        (when follow (goto-char (point-max)))))))

(defun magy--log (format &rest args)
  "Log a line made from FORMAT and ARGS."
  (apply #'magy--log-at 'info format args))

(defun magy--message-at (level format &rest args)
  "Show FORMAT with ARGS, and log it at LEVEL.
Only log it while the minibuffer is in use."
  (let ((text (apply #'format format args)))
    (magy--log-at level "%s" text)
    (unless (active-minibuffer-window)
      (message "%s" text))))

(defun magy--message (format &rest args)
  "Show and log FORMAT with ARGS; only log it while the minibuffer is in use."
  (apply #'magy--message-at 'info format args))

;;;###autoload
(defun magy-show-log ()
  "Show Magy's log."
  (interactive)
  (let ((window (display-buffer (magy-log--buffer))))
    (with-current-buffer magy-log-buffer
      (set-window-point window (point-max)))))

;;;###autoload
(defun magy-clear-log ()
  "Empty Magy's log."
  (interactive)
  (with-current-buffer (magy-log--buffer)
    (let ((inhibit-read-only t))
      (erase-buffer))))

(provide 'magy-log)
;;; magy-log.el ends here
