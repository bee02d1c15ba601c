;;; magy-review-going-test.el --- No failure silences the review  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'magy-review-draw-test)
(require 'magy-review)

(defun magy-test-decidable ()
  "Return the scenario of one change in a.txt; what is decided is answered."
  (append
   (list 'magy/review/resolve
         [[(:result (:decisionId nil :results [] :pending 1 :message "seen"))]])
   (magy-test-under-review
    (magy-test-review-of 0 (magy-test-hunk "h0" 0 "x\n" "0\n")))))

(defun magy-test-accept (count)
  "Accept the first change of the current buffer; the server hears of the COUNTth."
  (let ((buffer (current-buffer)))
    (goto-char (point-min))
    (magy-review-accept)
    (magy-test-until (= count (length (magy-test-received "magy/review/resolve"))))
    (set-buffer buffer)))

(ert-deftest magy-review-works-after-a-server-that-does-not-start ()
  (magy-test-drawing (magy-test-decidable) "0\n1\n"
    (magy-test-until (magy-review-hunk-here))
    (let ((elsewhere (file-name-as-directory (make-temp-file "magy-test-" t))))
      (unwind-protect
          (with-temp-buffer
            (setq default-directory elsewhere)
            (let ((magy-server-command '("magy-that-is-not-there")))
              (should-error (magy-review-next))))
        (delete-directory elsewhere t)))
    (magy-test-accept 1)))

(ert-deftest magy-review-works-after-an-error-on-the-way ()
  (magy-test-drawing (magy-test-decidable) "0\n1\n"
    (magy-test-until (magy-review-hunk-here))
    ;; Nothing could be sent.
    (let ((magy-before-send-functions (list (lambda (_) (user-error "Not now")))))
      (should-error (magy-review-next) :type 'user-error)
      (should-error (magy-review-accept) :type 'user-error))
    ;; The answer was more than something here could take.
    (cl-letf (((symbol-function 'magy-review--drop) (lambda (&rest _) (error "Broken"))))
      (magy-test-accept 1)
      (magy-test-until (not (alist-get (magy-test-project) magy-review--going))))
    (magy-test-accept 2)
    (cl-letf (((symbol-function 'magy-review--say) (lambda (&rest _) (error "Broken"))))
      (magy-test-accept 3)
      (magy-test-until (not (alist-get (magy-test-project) magy-review--going))))
    (magy-test-accept 4)))

(ert-deftest magy-review-that-waits-in-one-project-waits-in-no-other ()
  (magy-test-drawing (magy-test-decidable) "0\n1\n"
    (magy-test-until (magy-review-hunk-here))
    (let ((magy-review--going (list (list (magy-project--make :root "/elsewhere/") t))))
      (magy-test-accept 1))))

(ert-deftest magy-review-says-that-the-server-does-not-say-what-waits ()
  (magy-test-drawing (magy-test-scenario) "0\n1\n"
    (cl-flet ((said (command)
                (cadr (should-error (funcall command) :type 'user-error))))
      (let* ((project (magy-test-project))
             (server (lambda () (jsonrpc--process (magy-project-connection project)))))
        (magy-test-until magy--document)
        (should (string-prefix-p "Nothing in this file" (said #'magy-review-accept-all)))
        (should (string-prefix-p "No change waits here" (said #'magy-review-accept)))
        (signal-process (funcall server) 'STOP)
        (magy-test-until (eq 'stop (process-status (funcall server))))
        (dolist (command '(magy-review-accept-all magy-review-accept magy-review-base))
          (should (string-match-p "does not answer; M-x magy-restart" (said command))))
        (signal-process (funcall server) 'CONT)
        (magy-stop project)
        (magy-test-until (not (magy-live-p project)))
        (dolist (command '(magy-review-accept-all magy-review-accept))
          (should (string-match-p "does not run" (said command))))))))

(ert-deftest magy-review-keys-go-on-with-a-prefix-argument ()
  (magy-test-drawing (magy-test-decidable) "0\n1\n"
    (magy-test-until (magy-review-hunk-here))
    (save-window-excursion
      (switch-to-buffer (current-buffer))
      (unwind-protect
          (progn
            (magy-review--go-on-by-keys)
            (execute-kbd-macro (kbd "C-u r w h y RET"))
            (should (equal "why" (plist-get (magy-test-params "magy/review/resolve") :reason)))
            (magy-test-until (not (alist-get (magy-test-project) magy-review--going)))
            (execute-kbd-macro (kbd "C-u C-u 2 r n o RET"))
            (magy-test-until (= 2 (length (magy-test-received "magy/review/resolve"))))
            (magy-test-until (not (alist-get (magy-test-project) magy-review--going)))
            (should (equal (buffer-string) "0\n1\n"))
            ;; Any other key is what it always is, and ends them.
            (execute-kbd-macro (kbd "C-u x r"))
            (should (equal (buffer-string) "xxxxr0\n1\n")))
        (magy-review--no-keys)))))

(provide 'magy-review-going-test)
;;; magy-review-going-test.el ends here
