;;; magy-second-emacs.el --- Another Emacs on the same session  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Run by a test in a process of its own, with the environment of the
;; first Emacs.  It shows the session that MAGY_TEST_SESSION names, allows
;; what is asked, and prints its transcript when the turn is over.

;;; Code:

(require 'magy-test-helper)

(let* ((magy-test-root (getenv "MAGY_TEST_ROOT"))
       (magy-server-command (magy-test-server))
       (magy-settings (read (getenv "MAGY_TEST_SETTINGS")))
       (inhibit-message t)
       (project (magy-test-project)))
  (magy-when-ready project
                   (lambda ()
                     (magy-session-attach project (getenv "MAGY_TEST_SESSION") #'ignore)))
  (let ((question (magy-test-wait "the question"
                                  (lambda () (cdar (magy-permission--all))) 40)))
    (magy-permission--give project question "allow" "once"))
  (magy-test-wait "the end" (lambda () (string-search "All done" (magy-test-text))))
  (magy-test-wait "idle" (lambda () (equal "idle" (magy-project-state project))))
  (princ (magy-test-text))
  (magy-stop project)
  (magy-test-wait "the server's end" (lambda () (not (magy-live-p project)))))

;;; magy-second-emacs.el ends here
