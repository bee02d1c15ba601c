;;; magy-eval.el --- Emacs Lisp for agents  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Magy authors
;; SPDX-License-Identifier: GPL-3.0-or-later
;; This is free software with no warranty at all; see the file COPYING.

;;; Commentary:

;; An agent may evaluate Emacs Lisp in the Emacs that the person uses, if
;; `magy-allow-eval' says so and a rule of the server allows it, which by
;; default means that the person is asked each time.

;;; Code:

(require 'magy-connection)
(require 'magy-guard)

(defconst magy-eval--longest 20000
  "Most characters of a value, and of what was printed.")

(defun magy-eval--cut (text)
  "Return TEXT for JSON, cut if it is long."
  (let ((text (magy--json-text (substring-no-properties text))))
    (if (<= (length text) magy-eval--longest)
        text
      (concat (substring text 0 magy-eval--longest)
              (format "\n… %d more characters" (- (length text) magy-eval--longest))))))

(defun magy-eval--forms (code)
  "Return the forms in the text CODE as one."
  (with-temp-buffer
    (insert code)
    (goto-char (point-min))
    (set-syntax-table emacs-lisp-mode-syntax-table)
    (let (forms)
      (while (progn (forward-comment (buffer-size)) (not (eobp)))
        (push (read (current-buffer)) forms))
      (macroexp-progn (nreverse forms)))))

(defun magy-eval--value (code)
  "Return the printed value of the text CODE."
  (let ((value (eval (magy-eval--forms code) t))
        (print-length 200)
        (print-level 12)
        (print-circle t))
    (prin1-to-string value)))

(defun magy-eval--messages (start)
  "Return what *Messages* holds behind START."
  (with-current-buffer (messages-buffer)
    (buffer-substring-no-properties (min start (point-max)) (point-max))))

(defun magy-eval (code seconds)
  "Return the answer about the text CODE, evaluated for at most SECONDS.
The current buffer is the one that the person looks at; what is printed
and what is shown as a message is captured."
  (let ((start (with-current-buffer (messages-buffer) (point-max)))
        (buffer (window-buffer (selected-window)))
        (printed (generate-new-buffer " *magy eval*"))
        value problem)
    (unwind-protect
        (progn
          (condition-case err
              (magy-guard-quietly
                (with-current-buffer buffer
                  (let ((standard-output printed))
                    (setq value (magy-guard-limit seconds
                                                  (lambda () (magy-eval--value code)))))))
            (magy-guard-stopped (setq problem (concat "Stopped: " (cadr err))))
            (error (setq problem (error-message-string err))))
          (list :value (if problem "" (magy-eval--cut value))
                :output (magy-eval--cut (concat (with-current-buffer printed (buffer-string))
                                                (magy-eval--messages start)))
                :error (and problem (magy-eval--cut problem))))
      (kill-buffer printed))))

(cl-defmethod magy-handle-request (project (_method (eql 'magy/editor/eval)) params)
  "Evaluate the code in PARAMS for an agent of PROJECT."
  (unless magy-allow-eval
    (jsonrpc-error :code -32803
                   :message "The person has disabled evaluation (`magy-allow-eval')."))
  (let* ((asked (/ (or (plist-get params :timeoutMs) 10000) 1000.0))
         (answer (magy-eval (plist-get params :code) (min asked magy-emacs-eval-timeout))))
    (magy--log-at 'perm "evaluated for an agent of %s: %s" (magy-project-name project)
                  (truncate-string-to-width (plist-get params :code) 200 nil nil "…"))
    answer))

(provide 'magy-eval)
;;; magy-eval.el ends here
