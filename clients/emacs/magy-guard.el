;;; magy-guard.el --- Running code that must end soon  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Magy authors
;; SPDX-License-Identifier: GPL-3.0-or-later
;; This is free software with no warranty at all; see the file COPYING.

;;; Commentary:

;; What the server asks of Emacs is answered at once.  Code that others
;; wrote may wait, ask or loop; here it is run so that it cannot: waiting
;; is bounded, asking is an error, and what it opened is closed again.
;;
;; Emacs Lisp that loops runs no timer.  Against that, a process sends
;; Emacs the signal of `debug-on-event', which makes it quit wherever it
;; is, and is ended as soon as the code is.

;;; Code:

(require 'cl-lib)

(define-error 'magy-guard-stopped "Stopped")

(defun magy-guard--signal-name ()
  "Return the name of the signal that `debug-on-event' is, or nil."
  (pcase debug-on-event ('sigusr1 "USR1") ('sigusr2 "USR2")))

(defun magy-guard--watchdog (seconds)
  "Return a process that makes this Emacs quit in SECONDS, or nil."
  (when-let ((name (and (executable-find "sh") (magy-guard--signal-name))))
    (let ((default-directory "/"))
      (make-process :name "magy watchdog" :noquery t :buffer nil :connection-type 'pipe
                    :command (list "sh" "-c"
                                   (format "sleep %.2f && kill -%s %d"
                                           seconds name (emacs-pid)))))))

(defun magy-guard--late (seconds)
  "Signal that SECONDS were not enough."
  (signal 'magy-guard-stopped (list (format "it took longer than %g s" seconds))))

(defun magy-guard-limit (seconds function)
  "Return what FUNCTION returns, or fail if it takes longer than SECONDS.
The person may stop it as well, with \\[keyboard-quit]."
  (let* ((start (float-time))
         (debugger #'ignore)            ; the signal would enter it
         (debug-on-quit nil)
         (debug-on-next-call nil)
         (inhibit-quit nil)
         (watchdog (magy-guard--watchdog (+ seconds 0.2))))
    (unwind-protect
        (condition-case nil
            (let ((result (with-timeout (seconds 'magy-guard--late)
                            (list (funcall function)))))
              (if (eq result 'magy-guard--late) (magy-guard--late seconds) (car result)))
          (quit (if (>= (- (float-time) start) seconds)
                    (magy-guard--late seconds)
                  (signal 'magy-guard-stopped '("the person stopped it (C-g)")))))
      (let ((inhibit-quit t))
        (when watchdog (delete-process watchdog))
        (setq quit-flag nil
              debug-on-next-call nil)))))

(defmacro magy-guard-quietly (&rest body)
  "Evaluate BODY, in which asking the person anything is an error.
No window, frame or current buffer is another one afterwards, and files
that were opened on the way are closed."
  (declare (indent 0) (debug t))
  `(magy-guard--quietly (lambda () ,@body)))

(defun magy-guard--quietly (function)
  "Call FUNCTION as `magy-guard-quietly' says."
  (let ((before (buffer-list))
        (inhibit-interaction t)
        (inhibit-message t)
        (enable-local-variables :safe)
        (enable-dir-local-variables nil)
        (large-file-warning-threshold nil)
        (find-file-suppress-same-file-warnings t)
        (create-lockfiles nil)
        (non-essential t))              ; TRAMP connects to nothing
    (unwind-protect
        (save-window-excursion
          (save-current-buffer
            (save-match-data
              (funcall function))))
      (dolist (buffer (cl-set-difference (buffer-list) before))
        (when (and (buffer-file-name buffer) (not (buffer-modified-p buffer)))
          (kill-buffer buffer))))))

(provide 'magy-guard)
;;; magy-guard.el ends here
