;;; magy-driven.el --- An Emacs that a test looks into  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Loaded after a person's init file, with the environment variable
;; MAGY_DRIVEN naming a socket.  Through it tests/clients/driven.py asks
;; what is there.  Keys come over the terminal, as events of a window
;; frame, or, in batch, as a keyboard macro.

;;; Code:

(require 'json)
(require 'server)

(setq server-socket-dir (file-name-directory (getenv "MAGY_DRIVEN"))
      server-name (file-name-nondirectory (getenv "MAGY_DRIVEN"))
      inhibit-startup-screen t
      initial-scratch-message nil
      make-backup-files nil
      create-lockfiles nil
      auto-save-default nil
      ring-bell-function #'ignore
      use-short-answers t)

(defvar magy-driven-keys nil
  "Keys to be typed in batch, first to last.")

(defun magy-driven-type (keys)
  "Type KEYS, in the syntax of `kbd', as soon as Emacs reads any."
  (if noninteractive
      (setq magy-driven-keys (append magy-driven-keys (list keys)))
    (setq unread-command-events
          (append unread-command-events (listify-key-sequence (kbd keys)))))
  t)

(defun magy-driven-typed-p ()
  "Return non-nil if all that was typed was read."
  (not (or magy-driven-keys unread-command-events)))

(defun magy-driven-answer (form)
  "Return the value of FORM in the buffer that is shown, as JSON.
A value that is no atom is only said to be there."
  (with-current-buffer (window-buffer (selected-window))
    (condition-case err
        (let ((value (eval form t)))
          (json-encode (list (cons 'value (if (or (stringp value) (numberp value))
                                              value
                                            (and value t))))))
      ((debug error) (json-encode (list (cons 'error (error-message-string err))))))))

(defun magy-driven-project ()
  "Return the only project."
  (car (hash-table-values magy--projects)))

(defun magy-driven-transcript ()
  "Return what was said and done, without the input."
  (with-current-buffer (magy-transcript-buffer (magy-driven-project))
    (buffer-substring-no-properties (point-min) (magy-transcript-end))))

(defun magy-driven-look (theme)
  "Give the only frame the look that pictures have, in THEME."
  (menu-bar-mode -1)
  (tool-bar-mode -1)
  (scroll-bar-mode -1)
  (blink-cursor-mode -1)
  (tooltip-mode -1)
  (when (member "DejaVu Sans Mono" (font-family-list))
    (set-frame-font "DejaVu Sans Mono-10" nil t))
  (load-theme theme t)
  (set-frame-size nil 110 58)
  t)

(defun magy-driven-picture (file)
  "Write what the frame shows into FILE, as PNG."
  (redisplay t)
  (let ((picture (x-export-frames nil 'png))
        (coding-system-for-write 'binary))
    (write-region picture nil file nil 'silent))
  t)

(defun magy-driven-loop ()
  "Be a command loop in batch."
  (while t
    (accept-process-output nil 0.02)
    (when magy-driven-keys
      (let ((keys (car magy-driven-keys)))
        (set-buffer (window-buffer (selected-window)))
        (condition-case err
            (execute-kbd-macro (kbd keys))
          ((error quit) (message "%s: %s" keys (error-message-string err))))
        (pop magy-driven-keys)))))

(server-start)
(when noninteractive
  (magy-driven-loop))

(provide 'magy-driven)
;;; magy-driven.el ends here
