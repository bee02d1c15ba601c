;;; magy-real-test.el --- Commands with the real server  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'magy-test-helper)
(require 'magy-server-test)
(require 'magy-complete)
(require 'magy-doctor)

(ert-deftest magy-real-server-says-what-is-at-point ()
  :tags '(E011 G032)
  (magy-test-real "prompt: why?
text: Because. All done.
"
    (with-current-buffer (find-file-noselect
                          (magy-test-file "a.py" "x = 1\n\n\ndef one():\n    y = 2\n    return y\n"))
      (goto-char (point-max))
      (insert "\n\ndef two():\n    return one()\n")
      (search-backward "one()")
      (let (shown)
        (cl-letf (((symbol-function 'read-from-minibuffer)
                   (lambda (&rest _)
                     (with-temp-buffer
                       (run-hooks 'minibuffer-setup-hook)
                       (magy-test-wait "the context"
                                       (lambda ()
                                         (listp (magy-context-items magy-context--current)))
                                       30)
                       (setq shown (overlay-get magy-context--overlay 'before-string)))
                     "why?")))
          (magy-dwim))
        ;; What is not saved is known.
        (should (string-match-p "\\+1 a.py:9-10" shown)))
      (magy-test-see "All done")
      (should (string-match-p "❯? ?why\\?" (magy-test-text))))))

(ert-deftest magy-real-server-completes-files-and-skills ()
  :tags '(E074 E076)
  (magy-test-real "text: All done.
"
    (magy-test-file "src/parser.py" "x = 1\n")
    (cl-flet ((offered (text)
                (with-temp-buffer
                  (magy-complete-setup (magy-test-project) #'point-min)
                  (insert text)
                  (pcase-let ((`(,beg ,end ,table . ,_)
                               (magy-test-wait text #'magy-complete-at-point)))
                    (all-completions (buffer-substring beg end) table)))))
      (should (equal '("@src/parser.py") (offered "look at @pars")))
      (should (equal '("@init") (offered "@ini")))
      (should (equal '("@clear") (offered "@clea")))
      (should (equal '("/explain") (offered "/expl")))
      (should (equal '("@spawn explore ") (offered "@explo")))
      (should (equal '("explore ") (offered "@spawn expl"))))))

(ert-deftest magy-real-doctor-examines ()
  :tags '(E050 E130)
  (let ((magy-test-fresh t))
    (magy-test-real "text: All done.
"
      (save-window-excursion
        (magy-doctor)
        (with-current-buffer (format "*magy doctor: %s*" (magy-project-name (magy-test-project)))
          (magy-test-wait "the doctor" (lambda () magy-doctor--report))
          (should (string-match-p "✓ server +Magy" (buffer-string)))
          (should (string-match-p "^  . sqlite" (buffer-string)))
          (should (string-match-p (regexp-quote emacs-version) magy-doctor--report)))))))

(provide 'magy-real-test)
;;; magy-real-test.el ends here
