;;; magy-demo.el --- A scripted session to look at  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; An interactive Emacs with a project whose server follows a script that
;; has one of everything: emacs -Q -L clients/emacs -l tests/clients/emacs/magy-demo.el

;;; Code:

(add-to-list 'load-path (file-name-directory load-file-name))
(require 'magy-transcript-test)

(defconst magy-demo-answer
  "The failure is in `parse_header`: it **drops** the last field.

## What happens
1. The loop ends one field too soon.
2. The test never sees `charset`.

- a fix in the loop
- a test for the *empty* header

```python
def parse_header(line: str) -> list[str]:
    return [field.strip() for field in line.split(\";\")]
```
"
  "An answer with most kinds of Markdown.")

(defun magy-demo--tool (seq &rest update)
  "Return the event SEQ with UPDATE of a tool call."
  (apply #'magy-test-event seq :sessionUpdate "tool_call_update" update))

(defun magy-demo--update (seq update meta)
  "Return the event SEQ with UPDATE, and META beside the place in the log."
  (list :notify "magy/session/update"
        :params (list :sessionId "$sessionId"
                      :update (append update (list :_meta (list :magy
                                                                (append (list :seq seq) meta)))))))

(defun magy-demo-steps ()
  "Return what follows a prompt."
  (list
   (magy-test-event 1 :sessionUpdate "user_message" :messageId "$messageId"
                    :content [(:type "text" :text "Make the tests pass, please.")
                              (:type "resource_link" :uri "file:///src/header.py"
                               :name "header.py:12")])
   (magy-test-event 2 :sessionUpdate "session_info_update" :title "Make the tests pass")
   (magy-test-event 3 :sessionUpdate "agent_thought" :messageId "3.thought"
                    :content [(:type "text" :text "Let me see.\nThe tests first.")])
   (magy-test-event 4 :sessionUpdate "agent_message" :messageId "3"
                    :content (vector (list :type "text" :text magy-demo-answer)))
   (magy-test-event 4 :sessionUpdate "usage_update" :used 18400)
   (magy-test-event 5 :sessionUpdate "plan_update"
                    :plan '(:entries [(:content "Read the failing test" :status "completed")
                                      (:content "Mend the parser" :status "in_progress")
                                      (:content "Run everything" :status "pending")]))
   (magy-demo--update 6 '(:sessionUpdate "tool_call_update" :toolCallId "3.0"
                          :title "Read src/header.py" :status "completed"
                          :content [(:type "content"
                                     :content (:type "text" :text "1: a\n2: b\n3: c"))])
                      '(:decision (:action "allow" :rule "agent build: read * is allow")))
   (magy-demo--update 7 (list :sessionUpdate "tool_call_update" :toolCallId "3.1"
                              :title "Edit src/header.py" :status "completed"
                              :content (vector (list :type "diff" :patch
                                                     (list :text "--- a/src/header.py
+++ b/src/header.py
@@ -10,3 +10,3 @@
 def parse_header(line):
-    return line.split(\";\")[:-1]
+    return [field.strip() for field in line.split(\";\")]
 
"))))
                      '(:decision (:action "allow" :rule "remembered: edit src/**")
                        :duration 1.25))
   (magy-demo--update 8 '(:sessionUpdate "tool_call_update" :toolCallId "3.2"
                          :title "Run rm -rf build" :status "failed"
                          :content [(:type "content"
                                     :content (:type "text" :text "Refused: build is kept."))])
                      '(:decision (:action "deny" :rule "project: bash rm * is deny")
                        :status "denied"))
   (magy-demo--tool 9 :toolCallId "3.3" :title "Run pytest -q" :status "in_progress")
   (magy-test-event nil :sessionUpdate "tool_call_content_chunk" :toolCallId "3.3"
                    :content '(:type "content"
                               :content (:type "text" :text "....F..\ntests/test_header.py")))
   (magy-test-event nil :sessionUpdate "agent_message_chunk" :messageId "9"
                    :content '(:type "text" :text "One more **thing**:\nI should run the te"))
   (magy-test-event 10 :sessionUpdate "_magy_interaction"
                    :open '(:interactionId "ask-1" :kind "permission" :toolCallId "3.4"
                            :title "Run pytest -q" :rule "agent build: bash * is ask"
                            :remember [(:key "bash" :pattern "pytest *")]
                            :covers ["bash `pytest *`"]))
   (magy-test-event 11 :sessionUpdate "state_update" :state "requires_action")))

(let* ((root (file-name-as-directory (file-truename (make-temp-file "header-parser-" t))))
       (script (expand-file-name ".scenario" root)))
  (setq magy-server-command (list magy-test-python
                                  (expand-file-name "../fake_server.py" magy-test-directory)
                                  script (expand-file-name ".received" root))
        default-directory root
        inhibit-startup-screen t)
  (let ((coding-system-for-write 'utf-8-unix))
    (with-temp-file script
      (insert (magy-test--json
               (magy-test-asking 'magy/session/prompt
                                 (apply #'magy-test-prompted (magy-demo-steps)))))))
  (add-hook 'kill-emacs-hook (lambda () (delete-directory root t)))
  (global-set-key (kbd "C-c m") 'magy-command-map)
  (find-file (expand-file-name "header.py" root))
  (insert "# working on it\n")
  (set-buffer-modified-p nil))

(provide 'magy-demo)
;;; magy-demo.el ends here
