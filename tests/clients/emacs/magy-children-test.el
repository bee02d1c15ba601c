;;; magy-children-test.el --- Child agents: tree, blocks, transcripts  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'magy-commands-test)
(require 'magy-sections-test)
(require 'magy-agents-tree)

(defun magy-test-child (key &rest more)
  "Return the child KEY of the session emacs-1 as the server has it, with MORE."
  (append more
          (list :sessionId (concat "emacs-1/" key)
                :parentSessionId (concat "emacs-1" (and (string-search "/" key)
                                                        (concat "/" (car (split-string key "/")))))
                :name (concat "task " key) :agent "explore" :model "m" :state "running"
                :depth (1+ (cl-count ?/ key)) :turns 1 :waiting 0 :questions 0
                :usage '(:totalTokens 1500 :inputTokens 400 :cachedReadTokens 600)
                :cost '(:amount 0.0123 :currency "USD" :unpriced 0)
                :treeUsage '(:totalTokens 1500)
                :treeCost '(:amount 0.0123 :currency "USD" :unpriced 0)
                :said "" :createdAt (concat "2026-01-02T03:04:0" key) :updatedAt "2026")))

(defconst magy-test-family
  (vector (magy-test-child "5.0") (magy-test-child "5.0/2.0" :agent "general" :state "queued")
          (magy-test-child "5.1" :state "closed" :said "All is well.\nReally."))
  "Two children of emacs-1, and one of the first of them.")

(defmacro magy-test-with-children (scenario &rest body)
  "Evaluate BODY in the transcript of emacs-1, which has children.
Its server follows SCENARIO."
  (declare (indent 1) (debug t))
  `(cl-letf (((symbol-function 'magy--new-id) (lambda (prefix) (concat prefix "-1"))))
     (magy-test-attached
         (append ,scenario
                 (list 'magy/child/list
                       (vector (vector (list :result (list :children magy-test-family)))))
                 (magy-test-scenario
                  'magy/session/subscribe
                  (vector (vector (list :result (magy-test-page "$sessionId"))))
                  'magy/child/send [[(:result (:messageId "$requestKey" :outcome "steered"))]]
                  'magy/agent/list
                  [[(:result (:agents [(:name "plan" :mode "primary" :description "Plans.")
                                       (:name "explore" :mode "subagent"
                                        :description "Looks.")]))]]))
       (magy-test-until (= 3 (hash-table-count (magy-project-children (magy-test-project)))))
       (unwind-protect (save-window-excursion ,@body)
         (dolist (view magy-session-views)
           (kill-buffer (magy-project-buffer view)))
         (when-let ((tree (magy-agents-tree--buffer (magy-test-project))))
           (kill-buffer tree))))))

(defun magy-test-changed (&rest child)
  "Have the server say that CHILD is so now, and have it shown."
  (magy-handle-notification (magy-test-project) 'magy/child/changed
                            (list :parentSessionId (plist-get child :parentSessionId)
                                  :child child))
  (magy-children-show (magy-test-project)))

(defun magy-test-tree ()
  "Return the lines of the tree that is shown, without their spaces at the end."
  (with-current-buffer (magy-agents-tree--buffer (magy-test-project))
    (mapcar #'string-trim-right
            (split-string (buffer-substring-no-properties (point-min) (point-max)) "\n" t))))

(defun magy-test-row (text)
  "Go to the row with TEXT in the tree."
  (goto-char (point-min))
  (search-forward text)
  (beginning-of-line))

;;;; The tree

(ert-deftest magy-tree-has-all-agents-and-stays-in-step ()
  :tags '(E120 E132)
  (magy-test-with-children nil
    (magy-agents-tree)
    (should (derived-mode-p 'magy-agents-tree-mode))
    (magy-test-until (= 2 (length (magy-test-received "magy/child/list"))))
    (should (equal (plist-get (magy-test-params "magy/child/list") :includeClosed) t))
    (pcase-let ((`(,root ,first ,below ,second) (magy-test-tree)))
      (should (string-match-p "\\` ○ build  magy-test-[^ ]+ +idle" root))
      (should (string-match-p
               "\\` ├ ▸ explore  task 5\\.0 +running +1 +1\\.5k +\\$0\\.012\\'" first))
      (should (string-match-p "\\` │ └ · general  task 5\\.0/2\\.0 +queued" below))
      (should (string-match-p "\\` └ ▪ explore  task 5\\.1 +closed .*All is well. Really.\\'"
                              second)))
    ;; What the server says is shown at once, and point stays at its agent.
    (magy-test-row "5.1")
    (dolist (state '("waiting" "completed" "failed" "cancelled"))
      (apply #'magy-test-changed (magy-test-child "5.0" :state state :questions 1 :turns 12))
      (should (string-match-p (concat "explore  task 5\\.0 +" state " +1 +12 ")
                              (nth 1 (magy-test-tree))))
      (should (equal "emacs-1/5.1" (tabulated-list-get-id))))
    (apply #'magy-test-changed (magy-test-child "6.0" :state "queued"))
    (should (string-match-p "└ · explore  task 6\\.0" (car (last (magy-test-tree)))))
    (should (= 2 (length (magy-test-received "magy/child/list"))))
    ;; Folding, and hiding what is closed.
    (magy-test-row "5.0")
    (magy-test-press "TAB")
    (should (= 4 (length (magy-test-tree))))
    (should (string-match-p "5\\.0  …1 more" (nth 1 (magy-test-tree))))
    (magy-test-press "TAB")
    (magy-test-press ".")
    (should-not (cl-find "closed" (magy-test-tree) :test #'string-search))
    (magy-test-press ".")
    (should (= 5 (length (magy-test-tree))))
    (search-forward "5.0/2.0")
    (magy-test-press "^")
    (should (equal "emacs-1/5.0" (tabulated-list-get-id)))
    (magy-test-press "g")
    (magy-test-until (= 3 (length (magy-test-received "magy/child/list"))))))

(ert-deftest magy-tree-speaks-to-agents-and-closes-them ()
  :tags '(E118 E121)
  (magy-test-with-children
      (list 'magy/child/close
            [[(:result (:previousState "running" :closed ["emacs-1/5.0" "emacs-1/5.0/2.0"]))]]
            'magy/session/cancel [[(:result (:cancelled t))]])
    (magy-agents-tree)
    (magy-test-row "5.0")
    (cl-letf (((symbol-function 'read-from-minibuffer) (lambda (&rest _) "Hurry.")))
      (magy-test-press "m")
      (should (equal '(:sessionId "emacs-1/5.0" :requestKey "prompt-1"
                       :prompt [(:type "text" :text "Hurry.")] :delivery "steer")
                     (magy-test-params "magy/child/send")))
      (pcase-dolist (`(,prefix . ,delivery) '(((4) . "queue") ((16) . "interrupt")))
        (let ((current-prefix-arg prefix))
          (magy-test-press "m")
          (magy-test-until
           (equal delivery (plist-get (magy-test-params "magy/child/send") :delivery))))))
    (magy-test-press "s")
    (should (equal "emacs-1/5.0" (plist-get (magy-test-params "magy/session/cancel") :sessionId)))
    (magy-test-press "k")
    (should (equal '(:sessionId "emacs-1/5.0" :mode "finish")
                   (magy-test-params "magy/child/close")))
    (let ((current-prefix-arg '(4)) asked)
      (cl-letf (((symbol-function 'y-or-n-p) (lambda (question) (setq asked question) nil)))
        (magy-test-press "k"))
      (should (equal "Stop explore “task 5.0” and 1 below it? " asked))
      (should (= 1 (length (magy-test-received "magy/child/close"))))
      (cl-letf (((symbol-function 'y-or-n-p) #'always))
        (magy-test-press "k"))
      (magy-test-until (equal "cancel" (plist-get (magy-test-params "magy/child/close") :mode))))
    (magy-test-row "build")
    (should-error (magy-test-press "k") :type 'user-error)
    (magy-test-row "5.1")
    (magy-test-press "RET")
    (should (equal "emacs-1/5.1" (plist-get (magy-test-params "magy/session/subscribe")
                                            :sessionId)))
    (should (equal "emacs-1/5.1" (magy-project-session magy-transcript--view)))))

(ert-deftest magy-agent-is-spawned-from-the-tree-and-from-the-input ()
  :tags '(E117)
  (magy-test-with-children
      (list 'magy/child/spawn
            (vector (vector (list :result (list :child (magy-test-child "6.0") :known nil)))))
    (magy-agents-tree)
    (magy-test-row "5.0")
    (let (offered)
      (cl-letf (((symbol-function 'read-from-minibuffer)
                 (lambda (prompt &rest _)
                   (should (equal "Task for explore: " prompt))
                   "Find the\ntests")))
        (magy-test-choosing "explore" offered
          (magy-test-press "+")
          (should (equal '(:parentSessionId "emacs-1/5.0" :requestKey "emacs-1" :agent "explore"
                           :name "Find the" :prompt [(:type "text" :text "Find the\ntests")])
                         (magy-test-params "magy/child/spawn")))))
      (should (equal '("explore" "plan") (mapcar #'cdr offered))))
    (magy-test-until (magy-child (magy-test-project) "emacs-1/6.0"))
    (magy-test-in-transcript
     (magy-input-set "@spawn general\nCount the files.")
     (magy-input-submit)
     (should (equal "" (magy-input-text)))
     (magy-test-until (= 2 (length (magy-test-received "magy/child/spawn"))))
     (should (equal '(:parentSessionId "emacs-1" :agent "general"
                      :prompt [(:type "text" :text "Count the files.")])
                    (let ((params (magy-test-params "magy/child/spawn")))
                      (list :parentSessionId (plist-get params :parentSessionId)
                            :agent (plist-get params :agent)
                            :prompt (plist-get params :prompt)))))
     (should-not (plist-member (magy-test-params "magy/child/spawn") :worktree))
     (magy-input-set "@spawn general --worktree Count the files.")
     (magy-input-submit)
     (magy-test-until (= 3 (length (magy-test-received "magy/child/spawn"))))
     (should (equal '("Count the files." t)
                    (let ((params (magy-test-params "magy/child/spawn")))
                      (list (plist-get (elt (plist-get params :prompt) 0) :text)
                            (plist-get params :worktree)))))
     (dolist (half '("@spawn general" "@spawn general --worktree"))
       (magy-input-set half)
       (should-error (magy-input-submit) :type 'user-error)
       (should (equal half (magy-input-text))))
     (should-not (magy-test-received "magy/session/prompt"))
     (magy-input-set ""))))

(ert-deftest magy-agent-that-cannot-be-is-refused-before-anything-is-asked ()
  (magy-test-with-children
      (list 'magy/child/limits
            [[(:result (:maxDepth 2 :maxChildren 2 :maxTotal 9 :maxQueue 9 :working 2 :queued 1))]
             [(:result (:maxDepth 2 :maxChildren 1 :maxTotal 9 :maxQueue 9 :working 2 :queued 1))]
             [(:result (:maxDepth 9 :maxChildren 9 :maxTotal 2 :maxQueue 9 :working 2 :queued 1))]
             [(:result (:maxDepth 9 :maxChildren 9 :maxTotal 9 :maxQueue 1 :working 2 :queued 1))]
             [(:result (:maxDepth 9 :maxChildren 9 :maxTotal 9 :maxQueue 9 :working 2 :queued 1))]])
    (magy-agents-tree)
    (let (prompts said)
      (cl-letf (((symbol-function 'completing-read) (lambda (prompt &rest _) (push prompt prompts)))
                ((symbol-function 'magy--message)
                 (lambda (format &rest args) (setq said (apply #'format format args)))))
        (pcase-dolist (`(,row . ,why)
                       '(("5.0/2.0" . "task 5.0/2.0”: agents may be at most 2 levels deep (spawn.max_depth)")
                         ("build" . "build: it has 1, the most that it may have (spawn.max_children)")
                         ("5.0" . "2 are working, the most that may (spawn.max_total)")
                         ("5.0" . "1 wait to start, the most that may (spawn.max_queue)")
                         ("5.1" . "task 5.1”: it is closed, and accepts nothing more")))
          (setq said "")
          (magy-test-row row)
          (magy-test-press "+")
          (magy-test-until (string-search why said)))
        (should-not prompts)
        (should-not (magy-test-received "magy/agent/list"))
        (magy-test-row "5.0")
        (magy-test-press "+")
        (magy-test-until prompts)
        (should (equal '("Child of explore (task 5.0): agent: ") prompts))))))

(ert-deftest magy-task-that-is-refused-is-given-back ()
  (magy-test-with-children
      (list 'magy/child/spawn [[(:error (:code -32803 :message "No more than 4 children."))]])
    (magy-input-set "@spawn general Count the files.")
    (magy-input-submit)
    (magy-test-until (equal "@spawn general Count the files." (magy-input-text)))
    (magy-input-set "")))

(ert-deftest magy-region-goes-with-the-task-of-an-agent ()
  (magy-test-with-children
      (list 'magy/child/spawn
            (vector (vector (list :result (list :child (magy-test-child "6.0") :known nil)))))
    (let (offered (default-directory magy-test-root))
      (cl-letf (((symbol-function 'read-from-minibuffer) (lambda (&rest _) "Explain it")))
        (with-temp-buffer
          (insert "one\ntwo\n")
          (push-mark (point-min) t t)
          (magy-test-choosing "explore" offered
            (let ((transient-mark-mode t) (mark-even-if-inactive t))
              (setq mark-active t)
              (magy-spawn-agent)
              (setq mark-active nil))
            (should-not (plist-member (magy-test-params "magy/child/spawn") :worktree))
            (let ((prompt (plist-get (magy-test-params "magy/child/spawn") :prompt)))
              (should (equal "Explain it" (plist-get (elt prompt 0) :text)))
              (should (equal "one\ntwo\n" (magy--get (elt prompt 1) :resource :text))))))))))

(ert-deftest magy-agent-may-work-on-a-branch-of-its-own ()
  (magy-test-with-children
      (list 'magy/child/spawn
            (vector (vector (list :result (list :child (magy-test-child "6.0") :known nil)))))
    (magy-agents-tree)
    (magy-test-row "5.0")
    (let (offered)
      (cl-letf (((symbol-function 'read-from-minibuffer)
                 (lambda (prompt &rest _)
                   (should (equal "Task for explore (on a branch of its own): " prompt))
                   "Mend it")))
        (magy-test-choosing "explore" offered
          (let ((current-prefix-arg '(4)))
            (magy-test-press "+"))
          (should (eq t (plist-get (magy-test-params "magy/child/spawn") :worktree))))))))

(ert-deftest magy-childs-transcript-is-chosen ()
  :tags '(E059 E093)
  (magy-test-with-children nil
    (let (offered)
      (magy-test-choosing "5.1" offered
        (magy-show-agent-transcript)
        (should (equal "emacs-1/5.1" (plist-get (magy-test-params "magy/session/subscribe")
                                                :sessionId))))
      (should (equal (mapcar #'cdr offered)
                     '("explore  task 5.0  (running, 5.0)" "general  task 5.0/2.0  (queued, 2.0)"
                       "explore  task 5.1  (closed, 5.1)"))))))

;;;; In the transcript of the parent

(defun magy-test-spawned ()
  "Have the call arrive that began the child 5.0."
  (magy-test-tell 5 :sessionUpdate "tool_call_update" :toolCallId "5.0" :name "spawn_agent"
                  :title "Spawn explore: Look around" :status "completed"
                  :rawInput '(:agent "explore" :task_name "Look around"
                              :prompt "Look around\nwell")
                  :content [(:type "content" :content (:type "text" :text "{\"job_id\": …}"))]))

(ert-deftest magy-agent-is-a-block-that-shows-how-it-is ()
  :tags '(E092)
  (magy-test-with-children nil
    (magy-test-spawned)
    (should (equal (concat "agent ▸ explore  Look around  running · 1.5k tokens · 60% cached"
                           " · $0.012  [transcript]  …2 lines\n\n")
                   (magy-test-visible)))
    (apply #'magy-test-changed (magy-test-child "5.0" :state "waiting" :questions 2 :usage nil
                                                :cost nil))
    (should (equal (concat "agent ? explore  Look around  2 questions  waiting"
                           "  [transcript]  …2 lines\n\n")
                   (magy-test-visible)))
    (apply #'magy-test-changed (magy-test-child "5.0" :state "completed"))
    (should (string-match-p "\\`agent ✓ explore  Look around  completed" (magy-test-visible)))
    (goto-char (point-min))
    (magy-test-press "TAB")
    (should (string-match-p "\n    Look around\n    well\n\n\\'" (magy-test-visible)))
    (magy-copy-as-org (point) (1+ (point)))
    (should (equal (concat "#+begin_agent explore: Look around :status completed"
                           " :session emacs-1/5.0 :tokens 1500 :cost $0.012\n"
                           "Look around\nwell\n#+end_agent")
                   (current-kill 0)))))

(ert-deftest magy-agent-that-is-asked-about-shows-what-it-would-do ()
  (magy-test-with-children nil
    (magy-test-tell 9 :sessionUpdate "tool_call_update" :toolCallId "9.0" :name "spawn_agent"
                    :title "Spawn explore: look" :status "pending"
                    :rawInput '(:agent "explore" :prompt "look")
                    :content [(:type "content" :content (:type "text" :text "model: big\nlook"))])
    (should (equal "agent · explore  look\n    model: big\n    look\n\n"
                   (magy-test-visible)))
    (magy-test-tell 10 :sessionUpdate "tool_call_update" :toolCallId "9.0" :status "failed"
                    :content [(:type "content" :content (:type "text" :text "Not allowed."))]
                    :_meta '(:magy (:seq 10 :status "denied")))
    (should (equal "agent ✗ explore  look  denied\n    Not allowed.\n\n" (magy-test-visible)))))

(ert-deftest magy-agents-that-one-answer-lets-begin-show-their-whole-tasks ()
  (magy-test-with-children nil
    (magy-test-tell 9 :sessionUpdate "tool_call_update" :toolCallId "5.1" :name "spawn_agent"
                    :title "spawn_agent" :status "pending"
                    :rawInput '(:agent "explore" :task_name "Look" :prompt "Look\nwell"))
    ;; It has begun; the other one is not judged yet.
    (magy-test-tell 9 :sessionUpdate "tool_call_update" :toolCallId "9.1" :name "spawn_agent"
                    :title "spawn_agent" :status "pending"
                    :rawInput '(:agent "general" :task_name "Tidy" :prompt "Remove\nall"
                                :context "none" :model "m/big" :limits (:cost 2)))
    (should (equal (concat "agent ▪ explore  Look  closed · 1.5k tokens · 60% cached · $0.012"
                           "  [transcript]  …2 lines\n\n"
                           "agent · general  Tidy\n    model: m/big\n    limits: {\"cost\":2}\n"
                           "    Remove\n    all\n\n")
                   (magy-test-visible)))))

(ert-deftest magy-calls-name-children-as-soon-as-they-are-known ()
  (magy-test-with-children nil
    (magy-test-tell 9 :sessionUpdate "tool_call_update" :toolCallId "9.0" :name "wait_agent"
                    :title "wait_agent" :status "in_progress"
                    :rawInput '(:job_ids ["emacs-1/7.0" "5.0"]))
    (should (equal "agent ▸ wait for emacs-1/7.0, explore “task 5.0”\n\n" (magy-test-visible)))
    (apply #'magy-test-changed (magy-test-child "7.0"))
    (should (equal "agent ▸ wait for explore “task 7.0”, explore “task 5.0”\n\n"
                   (magy-test-visible)))
    ;; Without arguments it says so, and not which ids the server waits for.
    (magy-test-tell 10 :sessionUpdate "tool_call_update" :toolCallId "10.0" :name "wait_agent"
                    :title "Wait for emacs-1/5.0" :status "in_progress"
                    :_meta '(:magy (:seq 10 :decision (:action "allow"))))
    (should (string-suffix-p "\n\nagent ▸ wait for all\n\n" (magy-test-visible)))))

(ert-deftest magy-message-that-is-asked-about-is-shown ()
  (magy-test-with-children nil
    (magy-test-tell 9 :sessionUpdate "tool_call_update" :toolCallId "9.0" :status "pending"
                    :name "send_agent_message" :title "Send"
                    :rawInput '(:job_id "5.0" :message "Now\nremove it all")
                    :content [(:type "content"
                               :content (:type "text" :text "Now\nremove it all"))])
    (should (string-suffix-p "\n    Now\n    remove it all\n\n" (magy-test-visible)))))

(defun magy-test-call (seq name input &rest more)
  "Have a completed call of NAME with INPUT arrive as entry SEQ, with MORE."
  (magy-test-tell nil :sessionUpdate "tool_call_update" :toolCallId (format "%d.0" seq) :name name
                  :title name :rawInput input :status "completed"
                  :content [(:type "content" :content (:type "text" :text "a\nb"))]
                  :_meta (list :magy (append (list :seq seq) more))))

(ert-deftest magy-calls-about-agents-are-short ()
  :tags '(E119)
  (magy-test-with-children nil
    (magy-test-call 6 "wait_agent" '(:job_ids ["emacs-1/5.0" "5.1"]) :duration 12.34)
    (magy-test-call 7 "wait_agent" '(:job_ids []))
    (magy-test-call 8 "send_agent_message" '(:job_id "5.0" :message "Be\nquick"))
    (magy-test-call 9 "list_agents" '(:include_closed t))
    (magy-test-call 10 "close_agent" '(:job_id "emacs-1/5.0" :mode "cancel"))
    (magy-test-call 11 "rate_agent" '(:job_id "5.0" :capability "testing" :score 0.5))
    (should (equal (concat "agent ✓ wait for explore “task 5.0”, explore “task 5.1”  12.3 s"
                           "  …2 lines\n\n"
                           "agent ✓ wait for all  …2 lines\n\n"
                           "agent ✓ tell explore “task 5.0”: Be quick  …2 lines\n\n"
                           "agent ✓ list  …2 lines\n\n"
                           "agent ✓ cancel explore “task 5.0”  …2 lines\n\n"
                           "agent ✓ rate explore “task 5.0” for testing: 0.5  …2 lines\n\n")
                   (magy-test-visible)))
    (goto-char (point-min))
    (search-forward "tell")
    (magy-test-press "RET")
    (should (equal "emacs-1/5.0" (plist-get (magy-test-params "magy/session/subscribe")
                                            :sessionId)))))

;;;; Graphs of tasks

(defun magy-test-graph (north draft)
  "Return a graph whose tasks, of which one needs the other, are NORTH and DRAFT."
  (cl-flet ((task (id mark state depth session)
              (list :id id :state state :depth depth :sessionId session
                    :line (format "%s %s (explore): %s" mark id state))))
    (list :graphId "5.0" :counts '(:running 1 :waiting 1 :completed 3)
          :tasks (vector (apply #'task "north" north) (apply #'task "draft" draft)))))

(ert-deftest magy-graph-shows-its-tasks-as-it-runs-and-leads-to-their-agents ()
  :tags '(E092)
  (magy-test-with-children nil
    (magy-test-tell 5 :sessionUpdate "tool_call_update" :toolCallId "5.0" :name "run_graph"
                    :title "Run 5 tasks" :status "in_progress" :rawInput '(:tasks []))
    (magy-test-tell nil :sessionUpdate "tool_call_content_chunk" :toolCallId "5.0"
                    :content '(:type "content" :content (:type "text" :text "▸ north\n")))
    (magy-test-tell nil :sessionUpdate "tool_call_update" :toolCallId "5.0"
                    :_meta (list :magy (list :graph (magy-test-graph
                                                     '("▸" "running" 0 "emacs-1/5.0.north.1")
                                                     '("·" "waiting" 1 nil)))))
    (should (equal (concat "tool ▸ Run 5 tasks\n"
                           "    ▸ north (explore): running  [transcript]\n"
                           "      · draft (explore): waiting\n    (3 more)\n\n")
                   (magy-test-visible)))
    (goto-char (point-min))
    (search-forward "[transcript")
    (push-button)
    (should (equal "emacs-1/5.0.north.1" (plist-get (magy-test-params "magy/session/subscribe")
                                                    :sessionId)))))

(ert-deftest magy-graph-at-its-end-shows-what-it-comes-to ()
  (magy-test-with-children nil
    (cl-flet ((ends (graph)
                (magy-test-tell
                 6 :sessionUpdate "tool_call_update" :toolCallId "5.0" :status "completed"
                 :title "Run 5 tasks"
                 :content [(:type "content" :content (:type "text" :text "the tasks again"))
                           (:type "content" :content (:type "text" :text "Both looked."))]
                 :_meta (list :magy (append '(:seq 6 :status "completed")
                                            (and graph (list :graph graph)))))))
      (ends (magy-test-graph '("✓" "completed" 0 "emacs-1/5.0.north.1")
                             '("–" "skipped" 1 nil)))
      (should (string-search "draft (explore): skipped\n    (3 more)\n    Both looked.\n"
                             (magy-test-visible)))
      (should-not (string-search "again" (magy-test-visible)))
      ;; Without a graph at the end, the one that streamed is void.
      (ends nil)
      (should-not (string-search "north" (magy-test-visible))))))

(ert-deftest magy-graph-shows-the-results-that-it-took-and-no-others ()
  :tags '(E092)
  (magy-test-with-children nil
    (cl-flet ((graph (graph &optional status)
                (magy-test-tell 5 :sessionUpdate "tool_call_update" :toolCallId "5.0"
                                :name "run_graph" :title "Run 5 tasks" :status status
                                :_meta (and graph (list :magy (list :graph graph)))))
              (result-p ()
                (magy-session--flush (magy-test-project))
                (and (string-search "result ✓" (magy-test-visible)) t)))
      (graph (magy-test-graph '("▸" "running" 0 "emacs-1/5.0.north.1") '("·" "waiting" 1 nil)))
      (magy-test-result 6 "emacs-1/5.0.north.1")
      (should (result-p)) ; after a cancel it stays so
      (magy-test-tell 7 :sessionUpdate "_magy_queue" :order [] :dropped ["01R"])
      (should-not (result-p))
      ;; Where there is no graph any more, nothing else shows it.
      (graph nil "cancelled")
      (should (result-p)))))

(defun magy-test-result (seq &optional sender)
  "Have the result of the child 5.0, or SENDER, arrive as entry SEQ."
  (magy-test-tell seq :sessionUpdate "_magy_mail" :messageId "01R"
                  :mail (list :id "01R" :sender (or sender "emacs-1/5.0") :agent "explore"
                              :name "Look around"
                              :to "emacs-1" :payload "text" :delivery "queue")
                  :content [(:type "text" :text "There are **two**.\n* No more.")]
                  :report '(:turnId "t" :status "completed" :stopReason "end_turn" :requests 2
                            :usage (:totalTokens 12000) :cost (:amount 0.25 :unpriced 0)
                            :seconds 7.6))
  (magy-test-tell seq :sessionUpdate "_magy_queue" :added "01R" :delivery "queue"))

(ert-deftest magy-result-of-an-agent-is-a-quiet-line ()
  :tags '(E092 G026)
  (magy-test-with-children nil
    (magy-test-turn 1)
    (magy-test-result 6)
    (magy-session--flush (magy-test-project))
    (should (string-suffix-p
             (concat "\n\nresult ✓ explore  Look around  completed · 12k tokens · $0.25 · 8 s"
                     " · not read yet  [transcript]  …2 lines\n\n")
             (magy-test-visible)))
    (should (string-search "·" (buffer-substring (magy-transcript-end) (point-max))))
    (should (string-search "explore: There are" (buffer-substring (magy-transcript-end)
                                                                  (point-max))))
    ;; It enters the conversation after what was said meanwhile.
    (magy-test-say 7 "a7" "Meanwhile.")
    (magy-test-tell 8 :sessionUpdate "_magy_queue" :admitted ["01R"])
    (magy-test-say 9 "a9" "Two, then.")
    (should (string-suffix-p
             (concat "Meanwhile.\n\n"
                     "result ✓ explore  Look around  completed · 12k tokens · $0.25 · 8 s"
                     "  [transcript]  …2 lines\n\nASSISTANT\nTwo, then.\n\n")
             (magy-test-visible)))
    (should (equal (magy-transcript-end) (save-excursion (search-forward "C-c C-c" nil t)
                                                         (magy-transcript-end))))
    (goto-char (point-min))
    (search-forward "result")
    (magy-test-press "TAB")
    (should (string-search "\n    There are **two**.\n    * No more.\n" (magy-test-visible)))
    (magy-copy-as-org (point) (1+ (point)))
    (should (equal (concat "#+begin_agent result of explore “Look around” :status completed"
                           " :session emacs-1/5.0 :tokens 12000 :cost $0.25\n"
                           "There are *two*.\n- No more.\n#+end_agent")
                   (current-kill 0)))
    (magy-test-press "RET")
    (should (equal "emacs-1/5.0" (plist-get (magy-test-params "magy/session/subscribe")
                                            :sessionId)))))

(ert-deftest magy-result-that-was-waited-for-is-read ()
  (magy-test-with-children nil
    (magy-test-result 6)
    (magy-test-tell 7 :sessionUpdate "_magy_queue" :dropped ["01R"])
    (should (string-suffix-p " · 8 s  [transcript]  …2 lines\n\n" (magy-test-visible)))
    (should-not (magy-project-waiting (magy-test-project)))))

(ert-deftest magy-header-and-mode-line-count-the-agents ()
  :tags '(E120 G026)
  (magy-test-with-children nil
    (let ((header (lambda () (substring-no-properties (magy-transcript-header)))))
      (should (string-suffix-p " · agents: 1 works, 1 queues · agents 3k tokens, $0.025" (funcall header)))
      (should (equal (format " [Magy works in %s]" (magy-project-name (magy-test-project)))
                     (substring-no-properties (magy-modeline))))
      (should (string-search "agents: 1 works, 1 queues" (magy-modeline--help)))
      (apply #'magy-test-changed (magy-test-child "5.0" :state "waiting" :questions 1))
      (should (string-search "agents: 1 asks, 1 queues" (funcall header)))
      (dolist (key '("5.0" "5.0/2.0"))
        (apply #'magy-test-changed (magy-test-child key :state "completed")))
      (should (string-suffix-p " · build · agents 3k tokens, $0.025" (funcall header)))
      (should (equal "" (magy-modeline))))))

;;;; In the transcript of the child

(defmacro magy-test-in-child (key &rest body)
  "Evaluate BODY in the live transcript of the child KEY."
  (declare (indent 1) (debug t))
  `(with-current-buffer (magy-transcript-of (magy-test-project) (concat "emacs-1/" ,key))
     (magy-test-until (eq t (magy-project-attached magy-transcript--view)))
     ,@body))

(ert-deftest magy-child-is-spoken-to-in-its-transcript ()
  :tags '(E093 E118)
  (magy-test-with-children nil
    (magy-test-in-child "5.0"
      (should (string-match-p "\\` ▸ running  ↑ build · task 5\\.0 · build · agent"
                              (let ((header (substring-no-properties (magy-transcript-header))))
                                (string-replace "1 agent" "agent" header))))
      (goto-char (point-max))
      (should (string-search "C-c C-c tells this agent, C-c ^ goes to its parent"
                             (buffer-string)))
      (magy-test-type "Be quick")
      (magy-test-press "C-c C-c")
      (should (equal '(:sessionId "emacs-1/5.0" :requestKey "prompt-1"
                       :prompt [(:type "text" :text "Be quick")] :delivery "steer")
                     (magy-test-params "magy/child/send")))
      (should (equal "" (magy-input-text)))
      (pcase-dolist (`(,prefix . ,delivery) '(((4) . "queue") ((16) . "interrupt")))
        (magy-input-set "Then rest")
        (let ((current-prefix-arg prefix))
          (magy-test-press "C-c C-c"))
        (magy-test-until
         (equal delivery (plist-get (magy-test-params "magy/child/send") :delivery))))
      (should-not (magy-test-received "magy/session/prompt"))
      ;; Its own commands are about it, and not about its parent.
      (magy-test-press "C-c C-k")
      (should (equal "emacs-1/5.0" (plist-get (magy-test-params "magy/session/cancel")
                                              :sessionId)))
      (magy-input-set "@clear")
      (should-error (magy-input-submit) :type 'user-error)
      (magy-input-set "")
      (cl-letf (((symbol-function 'pop-to-buffer) #'identity))
        (should (eq (magy-project-buffer (magy-test-project)) (magy-transcript-up)))))))

(ert-deftest magy-what-a-closed-child-refuses-is-given-back ()
  :tags '(E121)
  (magy-test-with-children
      (list 'magy/child/send [[(:error (:code -32803 :message "It is closed: fork it."))]])
    (magy-test-in-child "5.1"
      (magy-input-set "One more thing")
      (magy-input-submit)
      (magy-test-until (equal "One more thing" (magy-input-text)))
      (should-not (magy-project-unsent magy-transcript--view))
      (magy-input-set ""))))

(ert-deftest magy-child-says-who-speaks-to-it ()
  (magy-test-with-children nil
    (magy-test-in-child "5.0"
      (let ((view magy-transcript--view))
        (dolist (update '((:sessionUpdate "user_message" :messageId "emacs-1/5.0:task"
                           :content [(:type "text" :text "Look around")])
                          (:sessionUpdate "_magy_mail" :messageId "01M"
                           :mail (:id "01M" :sender "emacs-1" :agent "build" :name ""
                                  :payload "text")
                           :content [(:type "text" :text "Only the tests")])
                          (:sessionUpdate "_magy_mail" :body (:signal "ping")
                           :mail (:id "01P" :sender "emacs-1" :agent "build" :payload "signal"))
                          (:sessionUpdate "_magy_mail" :body (:signal "heartbeat")
                           :mail (:id "01H" :sender "emacs-1" :agent "build" :payload "signal"))
                          (:sessionUpdate "_magy_mail" :body (:data (:n 1))
                           :mail (:id "01D" :sender "emacs-1" :agent "build" :name ""
                                  :payload "data"))
                          (:sessionUpdate "_magy_closed" :mode "finish" :reason "")
                          (:sessionUpdate "notice" :severity "info" :title "Closed"
                           :description "It accepts nothing more.")))
          (magy-session--receive view 'update update))
        (magy-session--flush view))
      (should (equal (concat "TASK ❯ Look around\n\nbuild ❯ Only the tests\n\n"
                             "data from build, for no model to read\n\n"
                             "— Closed: It accepts nothing more.\n\n")
                     (magy-test-visible))))))

(ert-deftest magy-childs-transcript-goes-on-after-the-server-was-restarted ()
  (magy-test-with-children nil
    (magy-test-in-child "5.0"
      (let ((subscribed (length (magy-test-received "magy/session/subscribe"))))
        (magy-input-set "half a sent")
        (magy-restart (magy-test-project))
        (magy-test-until (< subscribed (length (magy-test-received "magy/session/subscribe"))))
        (magy-test-until (eq t (magy-project-attached magy-transcript--view)))
        (should (equal "half a sent" (magy-input-text)))
        (magy-input-set "")))))

;;;; Questions

(defun magy-test-ask (session)
  "Have SESSION, a grandchild, ask."
  (magy-handle-notification
   (magy-test-project) 'magy/interaction/changed
   (list :sessionId session
         :opened (vector (append
                          (list :sessionId session :agent "general"
                                :path [(:sessionId "emacs-1" :agent "build" :name "My session")
                                       (:sessionId "emacs-1/5.0" :agent "explore" :name "look")
                                       (:sessionId "emacs-1/5.0/2.0" :agent "general" :name "")])
                          magy-test-question)))))

(defun magy-test-windows ()
  "Return the selected window and what all windows show."
  (cons (selected-window) (mapcar #'window-buffer (window-list))))

(ert-deftest magy-question-of-a-child-is-seen-above-it-and-answered-from-anywhere ()
  :tags '(G022)
  (magy-test-with-children
      (list 'magy/interaction/respond [[(:result (:accepted t))]])
    (switch-to-buffer "*scratch*")
    (let ((before (magy-test-windows)) (said 0)
          (asks (concat "? Run pytest  (asked by general, a child of explore “look”,"
                        " a child of build)")))
      (add-hook 'magy-question-functions (lambda (&rest _) (cl-incf said)))
      (unwind-protect
          (magy-test-in-child "5.0"
            (magy-test-ask "emacs-1/5.0/2.0")
            (magy-test-until (string-search asks (magy-test-text)))
            (magy-test-until (string-search asks (buffer-string)))
            (should (= 1 said))
            (should (equal before (magy-test-windows)))
            (should (equal " [Magy asks 1]" (substring-no-properties (magy-modeline))))
            (should-not (magy-project-questions
                         (with-current-buffer
                             (magy-transcript-of (magy-test-project) "emacs-1/5.1")
                           (magy-test-until
                            (eq t (magy-project-attached magy-transcript--view)))
                           magy-transcript--view)))
            (goto-char (point-min))
            (let ((last-command-event ?y))
              (magy-permission-answer-key))
            (let ((answer (magy-test-params "magy/interaction/respond")))
              (should (equal "emacs-1/5.0/2.0" (plist-get answer :sessionId)))
              (should (equal "allow" (plist-get answer :outcome))))
            (magy-handle-notification
             (magy-test-project) 'magy/interaction/changed
             (list :sessionId "emacs-1/5.0/2.0"
                   :resolved (vector (plist-get magy-test-question :interactionId))))
            (magy-test-until (string-search "? Run pytest  allowed" (magy-test-text)))
            (magy-test-until (string-search "? Run pytest  allowed" (buffer-string)))
            (should (equal " [Magy works in "
                           (substring-no-properties (magy-modeline) 0 16))))
        (setq magy-question-functions
              (cl-remove-if-not #'symbolp magy-question-functions))))))

(ert-deftest magy-question-that-nobody-here-answered-is-not-said-to-be-answered ()
  (magy-test-with-children nil
    (magy-test-ask "emacs-1/5.0/2.0")
    (magy-test-until (string-search "? Run pytest" (magy-test-text)))
    (magy-handle-notification
     (magy-test-project) 'magy/interaction/changed
     (list :sessionId "emacs-1/5.0/2.0"
           :resolved (vector (plist-get magy-test-question :interactionId))))
    (magy-test-until (string-search "? Run pytest  withdrawn or answered elsewhere\n"
                                    (magy-test-text)))
    (should-not (magy-project-questions (magy-test-project)))))

(ert-deftest magy-question-of-a-child-is-answered-from-the-tree ()
  :tags '(E118 G022)
  (magy-test-with-children
      (list 'magy/interaction/respond [[(:result (:accepted t))]])
    (magy-test-ask "emacs-1/5.0/2.0")
    (magy-test-until (magy-project-questions (magy-test-project)))
    (magy-agents-tree)
    (magy-test-row "5.1")
    (should-error (magy-test-press "a") :type 'user-error)
    (magy-test-row "5.0")
    (let (asked)
      (cl-letf (((symbol-function 'read-char-choice)
                 (lambda (prompt &rest _) (setq asked prompt) ?s)))
        (magy-test-press "a"))
      (should (string-match-p "\\`Run pytest  (asked by general, a child of explore" asked)))
    (should (equal "session" (plist-get (magy-test-params "magy/interaction/respond") :scope)))))

(provide 'magy-children-test)
;;; magy-children-test.el ends here
