;;; magy-transcript-test.el --- Sessions, transcript and questions  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'magy-test-helper)

(defun magy-test-start (text)
  "Send TEXT as a prompt and wait until the server has it."
  (magy-prompt text)
  (magy-test-params "magy/session/prompt"))

(defun magy-test-prompted (&rest steps)
  "Return the turn in which a prompt is accepted and STEPS follow."
  (vector (vconcat '((:result (:messageId "$messageId" :outcome "started"))) steps)))

(ert-deftest magy-handshake-announces-what-the-client-can ()
  (magy-test-with (magy-test-scenario)
    (let* ((prompt (magy-test-start "hello"))
           (init (magy-test-params "initialize")))
      (should (equal (plist-get init :rootUri)
                     (magy--path-to-uri (directory-file-name magy-test-root))))
      (should (equal (magy--get init :capabilities :general :positionEncodings)
                     ["utf-32" "utf-16"]))
      (should (eq t (magy--get init :capabilities :workspace :applyEdit)))
      (should (eq t (magy--get init :initializationOptions :magy :capabilities :editor :save)))
      (should (equal (seq-difference (mapcar (lambda (message) (plist-get message :method))
                                             (magy-test-received))
                                     ;; These may come at any time after the handshake.
                                     '("magy/review/list" "magy/child/list"
                                       "magy/interaction/list"))
                     '("initialize" "initialized" "magy/session/new" "magy/session/resume"
                       "magy/session/prompt")))
      (should (equal (plist-get prompt :prompt) [(:type "text" :text "hello")]))
      (should (equal (plist-get prompt :sessionId)
                     (plist-get (magy-test-params "magy/session/new") :sessionId))))))

(ert-deftest magy-two-quick-prompts-make-one-session ()
  (magy-test-with (magy-test-scenario)
    (magy-prompt "one")
    (magy-prompt "two")
    (magy-test-until (= 2 (length (magy-test-received "magy/session/prompt"))))
    (should (= 1 (length (magy-test-received "magy/session/new"))))
    (should (= 1 (length (magy-test-received "magy/session/resume"))))))

(ert-deftest magy-stream-is-replaced-by-the-message ()
  (magy-test-with
      (magy-test-scenario
       'magy/session/prompt
       (magy-test-prompted
        (magy-test-event 1 :sessionUpdate "user_message" :messageId "$messageId"
                         :content [(:type "text" :text "What is it?")])
        (magy-test-chunk "2" "It is a ")
        (magy-test-chunk "2" "**par")
        (magy-test-event nil :sessionUpdate "something_new" :data 1)
        (magy-test-event 3 :sessionUpdate "agent_message" :messageId "2"
                         :content [(:type "text" :text "It is a **parser**.\n\n# Why\nBecause `x`.")])
        (magy-test-event 4 :sessionUpdate "state_update" :state "idle"
                         :stopReason "end_turn")))
    (magy-test-start "What is it?")
    (magy-test-see "Because")
    (should (equal (magy-test-text)
                   "USER ❯ What is it?\n\nASSISTANT\nIt is a **parser**.\n\n# Why\nBecause `x`.\n\n"))
    (should (equal (magy-test-text t)
                   "USER ❯ What is it?\n\nASSISTANT\nIt is a parser.\n\nWhy\nBecause x.\n\n"))
    (magy-test-until (= 4 (magy-project-seq (magy-test-project))))
    (with-current-buffer (magy-transcript-buffer (magy-test-project))
      (should-not buffer-undo-list)
      (goto-char (point-min))
      (should-error (insert "x") :type 'text-read-only)
      (search-forward "parser")
      (should-error (insert "x") :type 'text-read-only)
      (should (eq 'bold (get-text-property (1- (point)) 'face))))))

(ert-deftest magy-stream-of-thousands-of-deltas ()
  (magy-test-with
      (magy-test-scenario
       'magy/session/prompt
       (magy-test-prompted
        (append (magy-test-chunk "1" "naïve λ → ") '(:times 5000))
        (magy-test-event 2 :sessionUpdate "state_update" :state "idle")))
    (magy-test-start "go")
    (magy-test-until (= 2 (magy-project-seq (magy-test-project))))
    (should (= (+ (length "ASSISTANT\n") 2 (* 5000 10)) (length (magy-test-text))))))

(ert-deftest magy-streamed-markdown-is-fontified-once-per-line ()
  (magy-test-with
      (magy-test-scenario
       'magy/session/prompt
       (magy-test-prompted
        (magy-test-chunk "1" "Code:\n```py\na = **b**\n")
        (magy-test-chunk "1" "```\nso **bold** and half")))
    (magy-test-start "go")
    (magy-test-see "half")
    (with-current-buffer (magy-transcript-buffer (magy-test-project))
      (goto-char (point-min))
      (search-forward "**b")
      (should (eq 'magy-code-block (get-text-property (1- (point)) 'face)))
      (should-not (invisible-p (- (point) 2))))))

(ert-deftest magy-retry-begins-the-message-anew ()
  (magy-test-with
      (magy-test-scenario
       'magy/session/prompt
       (magy-test-prompted
        (magy-test-chunk "1" "broken off")
        (magy-test-event nil :sessionUpdate "agent_message" :messageId "1" :content [])
        (magy-test-chunk "1" "second try")))
    (magy-test-start "go")
    (magy-test-see "second try")
    (should (equal (magy-test-text) "ASSISTANT\nsecond try\n\n"))))

(ert-deftest magy-thinking-is-folded-and-unfolds ()
  :tags '(E063)
  (magy-test-with
      (magy-test-scenario
       'magy/session/prompt
       (magy-test-prompted
        (magy-test-event 1 :sessionUpdate "agent_thought" :messageId "1.thought"
                         :content [(:type "text" :text "first\nsecond")])))
    (magy-test-start "go")
    (magy-test-see "Thinking\nfirst\nsecond")
    (with-current-buffer (magy-transcript-buffer (magy-test-project))
      (goto-char (point-min))
      (call-interactively (key-binding (kbd "TAB"))))
    (magy-test-see "Thinking  …2 lines")
    (should-not (string-match-p "second" (magy-test-text)))
    (with-current-buffer (magy-transcript-buffer (magy-test-project))
      (goto-char (point-min))
      (call-interactively (key-binding (kbd "TAB")))
      (should (string-match-p "Thinking\nfirst\nsecond" (magy-test-text)))
      (call-interactively (key-binding (kbd "<backtab>")))
      (should-not (string-match-p "second" (magy-test-text))))))

(defconst magy-test-diff
  "--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-old\n+new\n"
  "A diff.")

(ert-deftest magy-tool-call-shows-rule-output-and-diff ()
  (magy-test-with
      (magy-test-scenario
       'magy/session/prompt
       (magy-test-prompted
        (magy-test-event 1 :sessionUpdate "tool_call_update" :toolCallId "1.0" :name "edit"
                         :title "edit" :status "pending" :rawInput '(:path "a.py"))
        (list :notify "magy/session/update"
              :params '(:sessionId "$sessionId"
                        :update (:sessionUpdate "tool_call_update" :toolCallId "1.0"
                                 :title "Edit a.py" :locations [(:path "/tmp/a.py")]
                                 :_meta (:magy (:seq 2 :decision (:action "allow"
                                                                  :rule "build: edit *"))))))
        (magy-test-event 3 :sessionUpdate "tool_call_update" :toolCallId "1.0"
                         :status "in_progress")
        (magy-test-event nil :sessionUpdate "tool_call_content_chunk" :toolCallId "1.0"
                         :content '(:type "content" :content (:type "text" :text "line 1\n")))
        (magy-test-event nil :sessionUpdate "tool_call_content_chunk" :toolCallId "1.0"
                         :content '(:type "content" :content (:type "text" :text "line 2\n"))))
       'magy/session/cancel
       (vector (vector '(:result (:cancelled t))
                       (magy-test-event
                        4 :sessionUpdate "tool_call_update" :toolCallId "1.0"
                        :status "completed"
                        :content (vector (list :type "diff" :changes []
                                               :patch (list :format "git_patch"
                                                            :text magy-test-diff)))))))
    (magy-test-start "go")
    (magy-test-see "▸ Edit a.py  allow: build: edit *\nline 1\nline 2\n")
    (magy-cancel)
    (magy-test-see "✓ Edit a.py")
    (should-not (string-match-p "line 2" (magy-test-text)))
    (with-current-buffer (magy-transcript-buffer (magy-test-project))
      (goto-char (point-min))
      (search-forward "+new")
      (should (memq 'diff-added (ensure-list (get-text-property (1- (point)) 'face)))))))

(ert-deftest magy-point-stays-unless-at-the-end ()
  (magy-test-with
      (magy-test-scenario
       'magy/session/prompt
       (vector (aref (magy-test-prompted (magy-test-chunk "1" "first line\nsecond")) 0)
               (aref (magy-test-prompted (magy-test-chunk "1" " line\nthird")) 0)))
    (magy-test-start "go")
    (magy-test-see "second")
    (let ((buffer (magy-transcript-buffer (magy-test-project))))
      (with-current-buffer buffer
        (should (eobp)))
      (magy-prompt "more")              ; what is sent goes to the end; what comes does not
      (with-current-buffer buffer
        (goto-char (point-min))
        (search-forward "first"))
      (magy-test-see "third")
      (with-current-buffer buffer
        (should (looking-back "^first" (point-min)))))))

(defconst magy-test-question
  '(:interactionId "ask-1" :kind "permission" :toolCallId "1.0" :title "Run pytest"
    :rule "build: bash is ask" :remember [(:key "bash" :pattern "pytest *")]
    :covers ["bash `pytest *`"])
  "A question.")

(defun magy-test-asking (&rest turns)
  "Return a scenario in which a prompt leads to a question; TURNS as always."
  (apply #'magy-test-scenario
         (append turns
                 (list 'magy/session/prompt
                       (magy-test-prompted
                        (magy-test-event 1 :sessionUpdate "_magy_interaction"
                                         :open magy-test-question)
                        (list :notify "magy/interaction/changed"
                              :params (list :sessionId "$sessionId"
                                            :opened (vector
                                                     (append magy-test-question
                                                             '(:sessionId "$sessionId")))))
                        (magy-test-event 2 :sessionUpdate "state_update"
                                         :state "requires_action"))
                       'magy/interaction/respond
                       (vector
                        (vector '(:result (:accepted t))
                                (magy-test-event
                                 3 :sessionUpdate "_magy_interaction"
                                 :resolved '(:interactionId "ask-1" :outcome "$outcome"
                                             :reason "$reason" :scope "$scope")))))))) 

(defun magy-test-answer-with (key)
  "Type KEY at the question in the transcript; return what the server got."
  (magy-test-start "go")
  (magy-test-see "? Run pytest")
  (with-current-buffer (magy-transcript-buffer (magy-test-project))
    (goto-char (point-min))
    (let ((last-command-event key))
      (call-interactively (key-binding (string key)))))
  (magy-test-params "magy/interaction/respond"))

(ert-deftest magy-answer-by-key-in-the-transcript ()
  (magy-test-with (magy-test-asking)
    (let ((answer (magy-test-answer-with ?s)))
      (should (equal (plist-get answer :outcome) "allow"))
      (should (equal (plist-get answer :scope) "session"))
      (should (equal (plist-get answer :sessionId)
                     (magy-project-session (magy-test-project)))))
    (magy-test-see "? Run pytest  allow for the session")
    (should-not (magy-permission--all))
    (should (equal "" (magy-modeline)))))

(ert-deftest magy-refusal-carries-a-reason ()
  :tags '(G022)
  (magy-test-with (magy-test-asking)
    (cl-letf (((symbol-function 'read-string) (lambda (&rest _) "use make test")))
      (let ((answer (magy-test-answer-with ?n)))
        (should (equal (plist-get answer :outcome) "refuse"))
        (should (equal (plist-get answer :reason) "use make test"))))
    (magy-test-see "? Run pytest  refuse: use make test")))

(ert-deftest magy-answer-from-any-buffer ()
  (magy-test-with (magy-test-asking)
    (magy-test-start "go")
    (magy-test-see "? Run pytest")
    (with-temp-buffer
      (cl-letf (((symbol-function 'read-char-choice) (lambda (&rest _) ?p)))
        (magy-answer)))
    (should (equal (plist-get (magy-test-params "magy/interaction/respond") :scope)
                   "project"))))

(ert-deftest magy-question-of-another-session-can-be-answered ()
  (magy-test-with
      (magy-test-scenario
       'magy/session/prompt
       (magy-test-prompted
        (list :notify "magy/interaction/changed"
              :params (list :sessionId "parent/1.0"
                            :opened (vector (append magy-test-question
                                                    '(:sessionId "parent/1.0"
                                                      :agent "explore")))))))
    (magy-test-start "go")
    (magy-test-see "? Run pytest  (asked by explore, a child of parent in another session)")
    (cl-letf (((symbol-function 'read-char-choice) (lambda (&rest _) ?y)))
      (magy-answer))
    (should (equal (plist-get (magy-test-params "magy/interaction/respond") :sessionId)
                   "parent/1.0"))))

(ert-deftest magy-answered-elsewhere-closes-here ()
  :tags '(G003)
  (magy-test-with
      (magy-test-asking
       'magy/session/cancel
       (vector (vector '(:result (:cancelled t))
                       (magy-test-event 3 :sessionUpdate "_magy_interaction"
                                        :resolved '(:interactionId "ask-1" :outcome "allowed"
                                                    :scope "once" :reason "")))))
    (magy-test-start "go")
    (magy-test-see "? Run pytest")
    (magy-cancel)
    (magy-test-see "? Run pytest  allowed")
    (should-not (magy-permission--all))))

(ert-deftest magy-server-death-is-said-and-the-session-resumed ()
  (magy-test-with
      (magy-test-scenario
       'magy/session/prompt
       (magy-test-prompted
        (magy-test-event 1 :sessionUpdate "user_message" :messageId "m1"
                         :content [(:type "text" :text "go")])
        (magy-test-event 2 :sessionUpdate "agent_message" :messageId "1"
                         :content [(:type "text" :text "in the log")])
        (magy-test-chunk "3" "only streamed"))
       'magy/session/cancel [[(:exit 7)]])
    (magy-test-start "go")
    (magy-test-see "only streamed")
    (let ((session (magy-project-session (magy-test-project))))
      (magy-cancel)
      (magy-test-see "The server ended with status 7")
      (should-not (magy-live-p (magy-test-project)))
      (should-not (string-match-p "only streamed" (magy-test-text)))
      (magy-prompt "again")
      (magy-test-until (= 2 (length (magy-test-received "magy/session/prompt"))))
      (let ((resume (magy-test-params "magy/session/resume")))
        (should (equal (plist-get resume :sessionId) session))
        ;; Entry 2 once more: it may have been cut in two.
        (should (equal (plist-get resume :from) '(:seq 1))))
      (should (= 1 (length (magy-test-received "magy/session/new"))))
      (should (string-match-p "in the log" (magy-test-text))))))

(ert-deftest magy-older-turns-come-on-demand ()
  :tags '(G004)
  (magy-test-with
      (magy-test-scenario
       'magy/session/list
       [[(:result (:sessions [(:sessionId "s-1" :cwd "/" :root nil :title "Old work"
                               :updatedAt "2026-01-02T03:04:05.000+00:00" :state "idle"
                               :turns 2 :headSeq 4)]))]]
       'magy/session/resume
       (vector
        (vector
         (list :result
               (let ((page (magy-test-page "s-1")))
                 (setq page (plist-put page :headSeq 4))
                 (setq page (plist-put page :floorSeq 3))
                 (plist-put page :events
                            [(:seq 3 :at 0 :update (:sessionUpdate "user_message" :messageId "m2"
                                                    :content [(:type "text" :text "second")]))
                             (:seq 4 :at 0 :update (:sessionUpdate "agent_message" :messageId "3"
                                                    :content [(:type "text" :text "two")]))
                             (:seq 4 :at 0 :update (:sessionUpdate "tool_call_update"
                                                    :toolCallId "3.0" :title "Write"
                                                    :status "completed"))])))))
       'magy/session/events
       [[(:result (:headSeq 4 :more :json-false
                   :events [(:seq 1 :at 0 :update (:sessionUpdate "user_message" :messageId "m1"
                                                   :content [(:type "text" :text "first")]))
                            (:seq 1 :at 0 :update (:sessionUpdate "_magy_queue" :added "m1"))
                            (:seq 2 :at 0 :update (:sessionUpdate "_magy_queue"
                                                   :admitted ["m1"]))
                            (:seq 2 :at 0 :update (:sessionUpdate "tool_call_update"
                                                   :toolCallId "1.0" :title "Read"
                                                   :status "pending"))
                            (:seq 2 :at 0 :update (:sessionUpdate "tool_call_update"
                                                   :toolCallId "1.0" :status "completed"))
                            (:seq 2 :at 0 :update (:sessionUpdate "tool_call_update"
                                                   :toolCallId "3.0" :title "Old name"
                                                   :status "pending"))
                            (:seq 2 :at 0 :update (:sessionUpdate "agent_message" :messageId "1"
                                                   :content [(:type "text" :text "one")]))]))]])
    (cl-letf (((symbol-function 'completing-read)
               (lambda (_prompt table &rest _)
                 (let* ((metadata (cdr (funcall table "" nil 'metadata)))
                        (line (car (all-completions "" table))))
                   (should (equal "Old work" line))
                   (should (equal "No project"
                                  (funcall (alist-get 'group-function metadata) line nil)))
                   line))))
      (magy-resume-session)
      (magy-test-see "second"))
    (should (equal (magy-test-text) "Show older\n\nUSER ❯ second\n\nASSISTANT\ntwo\n\ntool ✓ Write\n\n"))
    (with-current-buffer (magy-transcript-buffer (magy-test-project))
      (goto-char (point-min))
      (push-button))
    (magy-test-see "first")
    (should (equal (magy-test-text)
                   (concat "USER ❯ first\n\ntool ✓ Read\n\nASSISTANT\none\n\n"
                           "USER ❯ second\n\nASSISTANT\ntwo\n\ntool ✓ Write\n\n")))
    (should (equal (plist-get (magy-test-params "magy/session/events") :before) 3))))

(ert-deftest magy-question-of-long-ago-is-not-asked-again ()
  (magy-test-with
      (magy-test-scenario
       'magy/session/resume
       (vector
        (vector
         (list :result
               (magy-test-page
                "$sessionId"
                (list :sessionUpdate "_magy_interaction" :open magy-test-question)
                '(:sessionUpdate "_magy_interaction"
                  :resolved (:interactionId "ask-1" :outcome "allowed" :scope "project"
                             :reason "" :by "vscode")))))))
    (let (asked)
      (let ((magy-question-functions (list (lambda (_ question) (push question asked)))))
        (magy-test-start "go"))
      (should (equal (magy-test-text) "? Run pytest  allowed for the project\n\n"))
      (should-not asked)
      (should-not (magy-permission--all)))))

(ert-deftest magy-plan-notice-queue-and-failure-are-shown ()
  (magy-test-with
      (magy-test-scenario
       'magy/session/prompt
       (magy-test-prompted
        (magy-test-event 1 :sessionUpdate "user_message" :messageId "m1"
                         :content [(:type "text" :text "later")
                                   (:type "resource_link" :uri "file:///a.py" :name "a.py:3")])
        (magy-test-event 1 :sessionUpdate "_magy_queue" :added "m1" :delivery "queue")
        (magy-test-event 2 :sessionUpdate "plan_update"
                         :plan '(:type "items" :planId "plan"
                                 :entries [(:content "look" :status "completed" :priority "low")
                                           (:content "act" :status "pending" :priority "low")]))
        (magy-test-event 3 :sessionUpdate "notice" :severity "info" :title "Resumed"
                         :description "It goes on.")
        (magy-test-event 3 :sessionUpdate "usage_update" :used 1500)
        (magy-test-event 4 :sessionUpdate "session_info_update" :title "Some 100% title")
        '(:notify "magy/session/update"
          :params (:sessionId "$sessionId"
                   :update (:sessionUpdate "state_update" :state "idle" :stopReason "error"
                            :_meta (:magy (:seq 5 :stop "error" :message "No key.")))))
        '(:notify "magy/session/update"
          :params (:sessionId "$sessionId"
                   :update (:sessionUpdate "state_update" :state "idle" :stopReason "stray_call"
                            :_meta (:magy (:seq 6 :stop "stray_call" :message "Not made.")))))))
    (magy-test-start "go")
    (magy-test-see "— A tool call came as text: Not made.")
    (should (equal (magy-test-text)
                   (concat "\nPlan 1/2\n✓ look\n· act\n\n"
                           "— Resumed: It goes on.\n\n— error: No key.\n\n"
                           "— A tool call came as text: Not made.\n\n")))
    (with-current-buffer (magy-transcript-buffer (magy-test-project))
      (should (string-match-p "\n· 1  later\n"
                              (buffer-substring (magy-transcript-end) (point-max)))))
    (with-current-buffer (magy-transcript-buffer (magy-test-project))
      (should (equal (magy-transcript-header)
                     " ● idle  Some 100%% title · build · 1.5k tokens"))
      (setf (alist-get "model" (magy-project-options (magy-test-project)) nil nil #'equal) "")
      (should (string-suffix-p " · build · 1.5k tokens" (magy-transcript-header))))))

(ert-deftest magy-an-error-in-an-update-does-not-stop-the-next ()
  (magy-test-with
      (magy-test-scenario
       'magy/session/prompt
       (magy-test-prompted
        (magy-test-event 1 :sessionUpdate "agent_message" :messageId 12
                         :content [(:type "text" :text 7)])
        '(:notify "window/showMessage" :params (:type 3 :message 5))
        '(:request "magy/editor/unknown")
        (magy-test-event 2 :sessionUpdate "agent_message" :messageId "1"
                         :content [(:type "text" :text "fine")])))
    (magy-test-start "go")
    (magy-test-see "fine")
    (magy-test-until
     (cl-some (lambda (message)
                (and (equal "fake-1" (plist-get message :id))
                     (= -32601 (magy--get message :error :code))))
              (magy-test-received)))))

(provide 'magy-transcript-test)
;;; magy-transcript-test.el ends here
