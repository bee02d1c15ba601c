;;; magy-server-test.el --- With the real server and a scripted model  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'magy-test-helper)

(defmacro magy-test-real (script &rest body)
  "Evaluate BODY in a project whose real server has a model that follows SCRIPT."
  (declare (indent 1) (debug t))
  `(magy-test-with (list)
     (let* ((path (magy-test-file ".model.script" ,script))
            (state (file-name-as-directory (make-temp-file "magy-state-" t)))
            (process-environment (append (list (concat "MAGY_STATE_DIR=" state)
                                               (concat "MAGY_CONFIG_DIR=" state))
                                         process-environment))
            (magy-server-command (magy-test-server))
            (magy-settings (list :model '(:default "scripted/test")
                                 :provider (vector (list :name "scripted" :kind "scripted"
                                                         :script path)))))
       (unwind-protect (progn ,@body)
         (magy-stop (magy-test-project))
         (magy-test-until (not (magy-live-p (magy-test-project))))
         (delete-directory state t)))))

(defun magy-test-idle ()
  "Wait until the turn is over."
  (magy-test-wait "idle" (lambda () (equal "idle" (magy-project-state (magy-test-project))))))

(defun magy-test-question ()
  "Wait for a question; return it."
  (magy-test-wait "a question"
                  (lambda () (cdr (car (magy-permission--all))))))

(defun magy-test-give (outcome reason)
  "Answer the open question with OUTCOME and REASON."
  (cl-letf (((symbol-function 'read-string) (lambda (&rest _) reason)))
    (magy-permission--give (magy-test-project) (magy-test-question) outcome "once")))

(defun magy-test-settle (&optional turns)
  "Allow what is asked until TURNS (1) turns of the session are over."
  (magy-test-wait "the end of the turn"
                  (lambda ()
                    (if-let ((question (cdr (car (magy-permission--all)))))
                        (progn (magy-permission--give (magy-test-project) question "allow" "once")
                               (magy-test-until (not (rassq question (magy-permission--all))))
                               nil)
                      (and (equal "idle" (magy-project-state (magy-test-project)))
                           (<= (or turns 1) (1- (length (split-string (magy-test-text)
                                                                      "All done")))))))))

(ert-deftest magy-real-server-reads-and-edits-the-live-buffer ()
  :tags '(G006)
  (magy-test-real "prompt: mend it
think: I should look first.
text: I **look** first.
call: read_file {\"path\": \"a.py\"}
---
text: Now the change.
call: edit_file {\"path\": \"a.py\", \"old_text\": \"x = 1\\n\", \"new_text\": \"x = 2\\n\"}
---
text: All done.
"
    (with-current-buffer (find-file-noselect (magy-test-file "a.py" "x = 1\ny = 0\n"))
      (buffer-enable-undo)
      (goto-char (point-max))
      (insert "unsaved = '😀'\n")
      (magy-prompt "mend it")
      (magy-test-settle)
      (should (equal (buffer-string) "x = 2\ny = 0\nunsaved = '😀'\n"))
      (should (string-match-p "I look first" (magy-test-text t)))
      (should (string-match-p "-x = 1\n\\+x = 2" (magy-test-text)))
      ;; The agent saw what was not saved.
      (with-current-buffer (magy-transcript-buffer (magy-test-project))
        (goto-char (point-min))
        (search-forward "a.py")
        (magy-transcript-toggle)
        (should (string-match-p "unsaved = '😀'" (magy-test-text))))
      (setq last-command nil)
      (undo)
      (should (equal (buffer-string) "x = 1\ny = 0\nunsaved = '😀'\n")))))

(ert-deftest magy-real-server-killed-while-it-asks ()
  :tags '(G003 G022)
  (let ((magy-test-fresh t))
    (magy-test-real "prompt: clean up
text: I remove the build.
call: bash {\"command\": \"rm -rf build\"}
---
text: All done, the tool said {{last}}
"
      (make-directory (expand-file-name "build" magy-test-root))
      (magy-prompt "clean up")
      (let ((asked (magy-test-question)))
        (should (string-match-p "rm -rf build" (plist-get asked :title)))
        (signal-process (jsonrpc--process (magy-project-connection (magy-test-project))) 'KILL)
        (magy-test-see "The server ended")
        (should-not (magy-permission--all))
        (magy-session-ensure (magy-test-project) #'ignore)
        (should (equal (plist-get (magy-test-question) :interactionId)
                       (plist-get asked :interactionId)))
        (magy-test-give "refuse" "keep the build")
        (magy-test-see "All done")
        (magy-test-idle)
        (should (file-directory-p (expand-file-name "build" magy-test-root)))
        (should (string-match-p "keep the build" (magy-test-text)))
        (should (= 1 (cl-count-if (lambda (item) (eq (magy-item-kind item) 'question))
                                  (hash-table-values
                                   (buffer-local-value 'magy-transcript--items
                                                       (magy-transcript-buffer
                                                        (magy-test-project)))))))))))

(ert-deftest magy-real-server-streams-cancels-and-lists ()
  :tags '(E058 G004)
  (magy-test-real "prompt: first
text: All done.
prompt: slowly
speed: 20
text: one two three four five six seven eight nine ten eleven twelve thirteen fourteen
"
    (magy-prompt "first")
    (magy-test-settle)
    (magy-prompt "slowly")
    (magy-test-see "two")
    (should (equal "running" (magy-project-state (magy-test-project))))
    (magy-cancel)
    (magy-test-idle)
    (magy-test-see "\n— Stopped: On request.\n")
    (should-not (string-match-p "Cancel" (magy-test-text)))
    (let ((session (magy-project-session (magy-test-project))) listed)
      (magy-new-session)
      (magy-test-until (eq t (magy-project-attached (magy-test-project))))
      (cl-letf (((symbol-function 'completing-read)
                 (lambda (_prompt table &rest _)
                   (setq listed (all-completions "" table))
                   (let ((remark (completion-metadata-get (completion-metadata "" table nil)
                                                          'annotation-function)))
                     (cl-find "2 turns" listed
                              :test (lambda (part line)
                                      (string-search part (funcall remark line))))))))
        (magy-resume-session)
        (magy-test-until (equal session (magy-project-session (magy-test-project))))
        (magy-test-see "❯ slowly"))
      (should (= 2 (length listed)))
      (should (string-match-p "❯ first\n\n\\(?:ASSISTANT\n\\)?All done" (magy-test-text))))))

(provide 'magy-server-test)
;;; magy-server-test.el ends here
