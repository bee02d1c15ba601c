;;; magy-guard-test.el --- Code that must end soon  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; A loop is ended by way of the debugger, after which ERT cannot tell in
;; which way a later test of the same Emacs failed.  So these are alone.

;;; Code:

(require 'magy-test-helper)
(require 'magy-guard)

(ert-deftest magy-guard-lets-quick-code-be ()
  (should (equal 3 (magy-guard-limit 5 (lambda () (+ 1 2)))))
  (should-not (magy-guard-limit 5 #'ignore))
  (should-error (magy-guard-limit 5 (lambda () (error "Not good"))) :type 'error)
  (should-not (cl-find "magy watchdog" (process-list) :key #'process-name
                       :test #'string-prefix-p)))

(ert-deftest magy-eval-ends-in-time-and-asks-nothing ()
  :tags '(E041)
  (should (equal (plist-get (magy-test-eval "(while t)" 300) :error)
                 "Stopped: it took longer than 0.3 s"))
  (should (equal (plist-get (magy-test-eval "(sleep-for 20)" 300) :error)
                 "Stopped: it took longer than 0.3 s"))
  (let ((magy-emacs-eval-timeout 0.2))
    (should (equal (plist-get (magy-test-eval "(while t)") :error)
                   "Stopped: it took longer than 0.2 s")))
  (should (string-match-p "[Ii]nteraction" (plist-get (magy-test-eval "(y-or-n-p \"Sure?\")")
                                                      :error))))

(provide 'magy-guard-test)
;;; magy-guard-test.el ends here
