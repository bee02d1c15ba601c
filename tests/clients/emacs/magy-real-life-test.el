;;; magy-real-life-test.el --- Trouble and company, with the real server  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'magy-test-helper)
(require 'magy-server-test)

(defconst magy-test-two-turns "prompt: first
text: One. All done.
prompt: second
text: Two. All done.
"
  "A script for the prompts \"first\" and \"second\".")

(ert-deftest magy-real-server-may-ask-emacs ()
  :tags '(E116 G007)
  (magy-test-real "prompt: compute
call: emacs_eval {\"code\": \"(+ 40 2)\"}
---
text: All done, it is {{last}}
"
    (magy-prompt "compute")
    (let ((asked (magy-test-question)))
      (should (string-match-p "(\\+ 40 2)" (format "%s" asked)))
      (magy-test-give "allow" "")
      (magy-test-see "All done")
      (should (string-match-p "it is[^z]*42" (magy-test-text))))))

(ert-deftest magy-real-server-killed-goes-on-with-nothing-lost ()
  (let ((magy-test-fresh t))
    (magy-test-real magy-test-two-turns
      (magy-prompt "first")
      (magy-test-settle)
      (signal-process (jsonrpc--process (magy-project-connection (magy-test-project))) 'STOP)
      (let ((magy-patience 0.5))
        (magy-prompt "second")
        (magy-test-until (magy-hung-p (magy-test-project)))
        (magy-restart (magy-test-project))
        (magy-test-wait "the second answer"
                        (lambda () (string-match-p "Two. All done" (magy-test-text))) 30)
        (should (= 1 (cl-count-if (lambda (item)
                                    (and (eq 'user (magy-item-kind item))
                                         (string-search "second"
                                                        (format "%s" (magy-item-data item)))))
                                  (hash-table-values
                                   (buffer-local-value 'magy-transcript--items
                                                       (magy-transcript-buffer
                                                        (magy-test-project)))))))))))

(defun magy-test-signal-at-prompt (signal states)
  "Send SIGNAL to the server when the next prompt is about to be written.
Wait until the system has its process in one of STATES: Emacs, which
has checked that it runs, sees otherwise no sooner than when it writes."
  (let ((process (jsonrpc--process (magy-project-connection (magy-test-project)))))
    (advice-add 'jsonrpc-async-request :before
                (lambda (_connection method &rest _)
                  (when (eq 'magy/session/prompt method)
                    (advice-remove 'jsonrpc-async-request 'magy-test-signal)
                    (signal-process process signal)
                    ;; Nothing may yield here, and so no timer would run.
                    (let ((until (time-add nil 10)))
                      (while (not (member (alist-get 'state (process-attributes
                                                             (process-id process)))
                                          states))
                        (when (time-less-p until nil)
                          (ert-fail "the process did not take the signal"))))))
                '((name . magy-test-signal)))))

(ert-deftest magy-real-server-stopped-or-killed-while-it-is-asked ()
  (let ((magy-test-fresh t))
    (dolist (how '((STOP "T") (KILL "Z" nil)))
      (magy-test-real magy-test-two-turns
        (magy-prompt "first")
        (magy-test-settle)
        (magy-test-signal-at-prompt (car how) (cdr how))
        (let ((magy-patience 0.5))
          (magy-prompt "second")
          (unless (eq 'KILL (car how))
            (magy-test-until (magy-hung-p (magy-test-project))))
          (magy-restart (magy-test-project))
          (magy-test-see "Two. All done"))))))

(ert-deftest magy-real-bypass-answers-what-would-be-asked ()
  :tags '(E036 E062)
  (magy-test-real "prompt: clean up
call: bash {\"command\": \"rm -rf build\"}
---
text: All done.
"
    (make-directory (expand-file-name "build" magy-test-root))
    (let ((magy-bypass-permission t)
          (magy-audit-directory (expand-file-name ".audit" magy-test-root)))
      (magy-prompt "clean up")
      (magy-test-wait "the end" (lambda () (string-match-p "All done" (magy-test-text))))
      (should-not (file-directory-p (expand-file-name "build" magy-test-root)))
      (should (directory-files magy-audit-directory nil "\\`audit-[0-9]+\\.jsonl\\'")))))

(ert-deftest magy-real-white-space-leads-nothing-out-of-sight ()
  "What a question says of a command is what runs, with its end."
  (magy-test-real (format "prompt: clean up
call: bash {\"command\": \"echo ok%s%s; rm -rf build\"}
---
text: All done.
" (make-string 300 ?\s) (mapconcat #'identity (make-list 40 "\\n") ""))
    (magy-prompt "clean up")
    (should (equal "Run echo ok ⟨300 spaces⟩  ⏎ ⟨39 empty lines⟩ ⏎ ; rm -rf build"
                   (plist-get (magy-test-question) :title)))
    (magy-test-see "echo ok ⟨300 spaces⟩ \n⟨39 empty lines⟩\n; rm -rf build")))

(defun magy-test-second-emacs ()
  "Start another Emacs on the session of this one; return its process."
  (let ((process-environment
         (append (list (concat "MAGY_TEST_ROOT=" magy-test-root)
                       (concat "MAGY_TEST_SESSION=" (magy-project-session (magy-test-project)))
                       (format "MAGY_TEST_SETTINGS=%S" magy-settings))
                 process-environment)))
    (make-process
     :name "second emacs" :buffer (generate-new-buffer " *second emacs*")
     :noquery t :connection-type 'pipe :sentinel #'ignore
     :command (list (expand-file-name invocation-name invocation-directory)
                    "-Q" "--batch" "-L" (file-name-directory (locate-library "magy"))
                    "-L" magy-test-directory "-l" "magy-second-emacs.el"))))

(ert-deftest magy-real-two-emacsen-on-one-session ()
  :tags '(G003)
  (magy-test-real "prompt: clean up
text: I remove the build.
call: bash {\"command\": \"rm -rf build\"}
---
text: All done.
"
    (make-directory (expand-file-name "build" magy-test-root))
    (magy-prompt "clean up")
    (let* ((asked (magy-test-question))
           (second (magy-test-second-emacs)))
      ;; Nobody answers here; the other Emacs does.
      (magy-test-wait "the other Emacs" (lambda () (not (process-live-p second))) 90)
      (should (equal 0 (process-exit-status second)))
      (magy-test-wait "the end" (lambda () (string-search "All done" (magy-test-text))))
      (magy-test-idle)
      (should-not (magy-permission--all))
      (should-not (file-directory-p (expand-file-name "build" magy-test-root)))
      (should (string-search (plist-get asked :title) (magy-test-text)))
      (let ((there (with-current-buffer (process-buffer second) (buffer-string)))
            (here (magy-test-text)))
        (kill-buffer (process-buffer second))
        (should (string-search "clean up" there))
        (should (equal (split-string here "\n+" t) (split-string there "\n+" t)))))))

(provide 'magy-real-life-test)
;;; magy-real-life-test.el ends here
