;;; magy-input-test.el --- The input, the queue, views, older turns  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'magy-test-helper)
(require 'magy-picture)

(defmacro magy-test-in-transcript (&rest body)
  "Evaluate BODY in the transcript of the test's project."
  (declare (debug t))
  `(with-current-buffer (magy-transcript-buffer (magy-test-project)) ,@body))

(defun magy-test-type (text)
  "Type TEXT at point, as a person does, with a boundary for undo."
  (dolist (char (append text nil))
    (if (eq char ?\n)
        (newline)
      (let ((last-command-event char))
        (call-interactively (key-binding (string char)))))
    (undo-boundary)))

(defun magy-test-press (keys)
  "Do what KEYS do at point."
  (call-interactively (key-binding (kbd keys))))

(defun magy-test-tell (seq &rest update)
  "Have UPDATE arrive as entry SEQ, or as a delta if SEQ is nil, and show it."
  (let ((project (magy-test-project)))
    (magy-session--receive
     project 'update
     (if seq (append update (list :_meta (list :magy (list :seq seq)))) update))
    (magy-session--flush project)))

(defun magy-test-say (seq id text)
  "Have the agent say TEXT in the message ID, as entry SEQ or as a delta."
  (magy-test-tell seq :sessionUpdate (if seq "agent_message" "agent_message_chunk")
                  :messageId id
                  :content (if seq
                               (vector (list :type "text" :text text))
                             (list :type "text" :text text))))

(defun magy-test-turn (n)
  "Have a turn N arrive: a prompt and an answer."
  (let ((id (format "m%d" n)))
    (magy-test-tell (- (* 4 n) 3) :sessionUpdate "user_message" :messageId id
                    :content (vector (list :type "text" :text (format "prompt %d" n))))
    (magy-test-tell (- (* 4 n) 2) :sessionUpdate "_magy_queue" :admitted (vector id))
    (magy-test-say (- (* 4 n) 1) (format "a%d" n) (format "answer %d" n))
    (magy-test-tell (* 4 n) :sessionUpdate "state_update" :state "idle")))

;;;; The input

(ert-deftest magy-input-is-where-a-person-writes ()
  :tags '(E065)
  (magy-test-with (magy-test-scenario)
    (magy-test-in-transcript
     (should (eobp))
     (should (eq 'self-insert-command (key-binding "y")))
     (magy-test-type "one\n? two")
     (should (equal "one\n? two" (magy-input-text)))
     (goto-char (point-min))
     (should-error (insert "no") :type 'text-read-only)
     (goto-char (1- magy-input--start))
     (should-error (insert "no") :type 'text-read-only)
     (goto-char (point-max))
     (magy-test-press "C-c C-c")
     (should (equal "" (magy-input-text))))
    (let ((params (magy-test-params "magy/session/prompt")))
      (should (equal [(:type "text" :text "one\n? two")] (plist-get params :prompt)))
      (should (equal "auto" (plist-get params :delivery))))))

(ert-deftest magy-input-queues-and-interrupts-with-a-prefix ()
  (magy-test-with (magy-test-scenario)
    (magy-test-in-transcript
     (magy-test-type "later")
     (magy-input-submit '(4))
     (magy-test-type "now")
     (magy-input-submit '(16)))
    (magy-test-until (= 2 (length (magy-test-received "magy/session/prompt"))))
    (should (equal '("queue" "interrupt")
                   (mapcar (lambda (message) (magy--get message :params :delivery))
                           (magy-test-received "magy/session/prompt"))))))

(ert-deftest magy-input-stays-whatever-arrives ()
  (magy-test-with
      (magy-test-scenario 'magy/session/cancel [[(:exit 7)]])
    (magy-test-in-transcript
     (magy-test-type "half a pro")
     (magy-session-ensure (magy-test-project) #'ignore)
     (magy-test-until (eq t (magy-project-attached (magy-test-project))))
     (magy-test-say nil "1" "streamed\ntext ")
     (magy-test-type "mpt")
     (magy-test-say 2 "1" "another text")
     (should (equal "half a prompt" (magy-input-text)))
     (should (eobp))
     (magy-session-cancel (magy-test-project))
     (magy-test-see "The server ended")
     (should (equal "half a prompt" (magy-input-text)))
     (magy-session-ensure (magy-test-project) #'ignore)
     (magy-test-until (eq t (magy-project-attached (magy-test-project))))
     (should (equal "half a prompt" (magy-input-text)))
     (magy-new-session)
     (magy-test-until (= 3 (length (magy-test-received "magy/session/resume"))))
     (should (equal "" (magy-test-text)))
     (should (equal "half a prompt" (magy-input-text))))))

(ert-deftest magy-input-has-its-own-undo ()
  (magy-test-with (magy-test-scenario)
    (magy-test-in-transcript
     (magy-session-ensure (magy-test-project) #'ignore)
     (magy-test-until (eq t (magy-project-attached (magy-test-project))))
     (magy-test-type "abc")
     (dotimes (n 50)
       (magy-test-say nil "1" (format "line %d\n" n)))
     (goto-char magy-input--start)
     (delete-char 1)
     (undo-boundary)
     (magy-test-say nil "1" "more\n")
     (let ((shown (magy-test-text)))
       (setq last-command nil)
       (undo)
       (should (equal "abc" (magy-input-text)))
       (undo-boundary)
       (magy-test-say nil "1" "while undoing\n")
       (setq last-command 'undo)
       (undo-more 2)
       (should (equal "a" (magy-input-text)))
       (should (equal (concat (string-trim-right shown) "\nwhile undoing\n\n\n")
                      (magy-test-text))))
     ;; What streamed left no trace.
     (should (< (length buffer-undo-list) 30)))))

(ert-deftest magy-input-remembers-a-hundred-prompts ()
  :tags '(E022)
  (magy-test-with (magy-test-scenario)
    (let ((magy-prompt-history nil))
      (magy-test-in-transcript
       (dotimes (n 103)
         (insert (format "prompt %d" n))
         (magy-test-press "C-c C-c"))
       (should (= 100 (length magy-prompt-history)))
       (should (equal "prompt 102" (car magy-prompt-history)))
       (should (equal "prompt 3" (car (last magy-prompt-history))))
       (let ((magy-max-history 2))
         (insert "one more")
         (magy-test-press "C-c C-c")
         (should (equal '("one more" "prompt 102") magy-prompt-history)))))))

(ert-deftest magy-input-goes-through-the-history ()
  (magy-test-with (magy-test-scenario)
    (let ((magy-prompt-history (list "newer" "older")))
      (magy-test-in-transcript
       (magy-test-type "draft")
       (magy-test-press "M-p")
       (should (equal "newer" (magy-input-text)))
       (magy-test-press "M-p")
       (should (equal "older" (magy-input-text)))
       (should-error (magy-test-press "M-p") :type 'user-error)
       (magy-test-press "M-n")
       (magy-test-press "M-n")
       (should (equal "draft" (magy-input-text)))
       (magy-test-press "C-c C-c")
       (should (equal "draft" (car magy-prompt-history)))
       (magy-test-type "not sent")
       (kill-buffer))
      ;; The buffer is gone, what was written is not.
      (should (equal "not sent" (car magy-prompt-history))))))

(ert-deftest magy-clear-as-a-prompt-calls-no-model ()
  :tags '(E067)
  (magy-test-with (magy-test-scenario 'magy/session/close [[(:result nil)]])
    (magy-test-in-transcript
     (magy-session-ensure (magy-test-project) #'ignore)
     (magy-test-until (eq t (magy-project-attached (magy-test-project))))
     (magy-test-turn 1)
     (let ((old (magy-project-session (magy-test-project))))
       (magy-test-type " @clear ")
       (magy-test-press "C-c C-c")
       (magy-test-until (= 2 (length (magy-test-received "magy/session/new"))))
       (magy-test-until (eq t (magy-project-attached (magy-test-project))))
       (should-not (equal old (magy-project-session (magy-test-project))))
       (should (equal "" (magy-test-text)))
       (should-not (magy-test-received "magy/session/prompt"))))))

(ert-deftest magy-refused-prompt-is-written-back ()
  (magy-test-with
      (magy-test-scenario 'magy/session/prompt
                          [[(:error (:code -32602 :message "The prompt is too long."))]])
    (magy-test-in-transcript
     (magy-test-type "long")
     (magy-test-press "C-c C-c")
     (magy-test-until (equal "long" (magy-input-text))))))

(ert-deftest magy-prompt-without-a-session-is-written-back ()
  (magy-test-with
      (magy-test-scenario 'magy/session/new
                          [[(:error (:code -32803 :message "magy.toml: unknown key 'modle'."))]
                           [(:result (:sessionId "$sessionId" :configOptions []))]])
    (magy-test-in-transcript
     (magy-test-type "long")
     (magy-test-press "C-c C-c")
     (magy-test-until (equal "long" (magy-input-text)))
     (should (string-search "unknown key 'modle'" (buffer-string)))
     (magy-test-press "C-c C-c")
     (magy-test-until (= 1 (length (magy-test-received "magy/session/prompt"))))
     (should-not (magy-project-unsent (magy-test-project)))
     (should-not (string-search "unknown key" (buffer-string))))))

;;;; C-g

(ert-deftest magy-quit-interrupts-only-what-runs ()
  :tags '(E066)
  (magy-test-with (magy-test-scenario 'magy/session/cancel [[(:result (:cancelled t))]])
    (magy-test-in-transcript
     (magy-session-ensure (magy-test-project) #'ignore)
     (magy-test-until (eq t (magy-project-attached (magy-test-project))))
     (should (eq 'quit (condition-case nil (magy-test-press "C-g") (quit 'quit))))
     (magy-test-turn 1)
     (magy-test-tell 5 :sessionUpdate "state_update" :state "running")
     (transient-mark-mode)
     (push-mark (point-min) t t)
     (should (eq 'quit (condition-case nil (magy-test-press "C-g") (quit 'quit))))
     (deactivate-mark)
     (should-not (magy-test-received "magy/session/cancel"))
     (magy-test-press "C-g")
     (magy-test-until (= 1 (length (magy-test-received "magy/session/cancel"))))
     (goto-char (point-min))
     (magy-test-press "C-g"))
    (magy-test-until (= 2 (length (magy-test-received "magy/session/cancel"))))))

;;;; The queue

(ert-deftest magy-queue-can-be-dropped-reordered-and-edited ()
  (magy-test-with
      (magy-test-scenario
       'magy/queue/reorder
       [[(:result (:waiting [(:messageId "p2" :delivery "queue" :text "second")
                             (:messageId "p1" :delivery "queue" :text "first")]))]]
       'magy/queue/drop
       [[(:result (:waiting [(:messageId "p1" :delivery "queue" :text "first")]))]])
    (magy-test-in-transcript
     (magy-session-ensure (magy-test-project) #'ignore)
     (magy-test-until (eq t (magy-project-attached (magy-test-project))))
     (magy-test-tell 1 :sessionUpdate "state_update" :state "running")
     (magy-test-type "draft")
     (cl-loop for (id text) in '(("p1" "first") ("p2" "second")) for seq from 2
              do (magy-test-tell seq :sessionUpdate "user_message" :messageId id
                                 :content (vector (list :type "text" :text text)))
              (magy-test-tell seq :sessionUpdate "_magy_queue" :added id :delivery "queue"))
     (cl-flet ((waiting () (let ((shown (magy-picture-visible (magy-transcript-end)
                                                              (point-max))))
                             (and (string-match "Waiting[^\n]*\n\\(\\(?:.*\n\\)*\\)C-c C-c" shown)
                                  (match-string 1 shown)))))
       (should (equal "· 1  first\n· 2  second\n" (waiting)))
       (goto-char (point-min))
       (search-forward "2  second")
       (magy-test-press "<")
       (should (equal ["p2" "p1"]
                      (plist-get (magy-test-params "magy/queue/reorder") :order)))
       (magy-test-until (equal "· 1  second\n· 2  first\n" (waiting)))
       (goto-char (magy-transcript-end))
       (search-forward "second")
       (should-error (magy-test-press "e") :type 'user-error)
       (magy-input-set "")
       (goto-char (magy-transcript-end))
       (search-forward "second")
       (magy-test-press "e")
       (should (equal ["p2"] (plist-get (magy-test-params "magy/queue/drop") :messageIds)))
       (magy-test-until (equal "· 1  first\n" (waiting)))
       (should (equal "second" (magy-input-text)))
       (magy-test-tell 9 :sessionUpdate "_magy_queue" :admitted ["p1"])
       (should-not (waiting))
       (should (string-match-p "USER ❯ first" (magy-test-text)))
       (should (equal "second" (magy-input-text)))))))

(ert-deftest magy-queue-gives-nothing-back-that-could-be-sent-twice ()
  (magy-test-with
      (magy-test-scenario
       'magy/queue/drop
       (vector (vector (magy-test-event 8 :sessionUpdate "_magy_queue" :admitted ["p1"])
                       '(:result (:waiting [])))))
    (magy-test-in-transcript
     (magy-session-ensure (magy-test-project) #'ignore)
     (magy-test-until (eq t (magy-project-attached (magy-test-project))))
     (magy-test-tell 1 :sessionUpdate "user_message" :messageId "p1"
                     :content [(:type "text" :text "first")])
     (magy-test-tell 2 :sessionUpdate "_magy_queue" :added "p1" :delivery "queue")
     (goto-char (magy-transcript-end))
     (search-forward "1  first")
     (magy-test-press "e")
     ;; Not before the server has answered; and this one the agent had taken up.
     (should (equal "" (magy-input-text)))
     (magy-test-until (not (magy-project-waiting (magy-test-project))))
     (should (string-match-p "USER ❯ first" (magy-test-text)))
     (should (equal "" (magy-input-text))))))

(ert-deftest magy-steer-is-shown-where-it-was-taken-up ()
  (magy-test-with (magy-test-scenario)
    (magy-test-in-transcript
     (magy-session-ensure (magy-test-project) #'ignore)
     (magy-test-until (eq t (magy-project-attached (magy-test-project))))
     (magy-test-turn 1)
     (magy-test-tell 5 :sessionUpdate "user_message" :messageId "s"
                     :content [(:type "text" :text "steer")])
     (magy-test-tell 5 :sessionUpdate "_magy_queue" :added "s" :delivery "steer")
     (magy-test-say 6 "6" "before it")
     (magy-test-tell 7 :sessionUpdate "_magy_queue" :admitted ["s"])
     (should (string-suffix-p "before it\n\nUSER ❯ steer\n\n" (magy-test-text))))))

;;;; What is kept

(ert-deftest magy-transcript-stays-small ()
  :tags '(G004)
  (magy-test-with
      (magy-test-scenario
       'magy/session/events
       [[(:result (:headSeq 400 :more :json-false
                   :events [(:seq 1 :at 0 :update (:sessionUpdate "user_message" :messageId "m1"
                                                   :content [(:type "text" :text "prompt 1")]))
                            (:seq 2 :at 0 :update (:sessionUpdate "_magy_queue"
                                                   :admitted ["m1"]))]))]])
    (let ((magy-transcript-turns 20))
      (magy-test-in-transcript
       (magy-session-ensure (magy-test-project) #'ignore)
       (magy-test-until (eq t (magy-project-attached (magy-test-project))))
       (dotimes (n 100)
         (magy-test-turn (1+ n)))
       (should (<= 20 magy-transcript--turns 30))
       (should (= magy-transcript--turns
                  (cl-count 'user (hash-table-values magy-transcript--items)
                            :key #'magy-item-kind)))
       (should (string-prefix-p "Show older\n\nUSER ❯ prompt" (magy-test-text)))
       (should (string-match-p "answer 100" (magy-test-text)))
       (let ((floor (magy-project-floor (magy-test-project))))
         (goto-char (point-min))
         (push-button)
         (magy-test-until (string-prefix-p "USER ❯ prompt 1\n" (magy-test-text)))
         (should (= floor (plist-get (magy-test-params "magy/session/events") :before))))))))

(ert-deftest magy-transcript-keeps-what-is-read ()
  (magy-test-with (magy-test-scenario)
    (let ((magy-transcript-turns 20))
      (magy-test-in-transcript
       (magy-session-ensure (magy-test-project) #'ignore)
       (magy-test-until (eq t (magy-project-attached (magy-test-project))))
       (dotimes (n 25)
         (magy-test-turn (1+ n)))
       (save-window-excursion
         (switch-to-buffer (current-buffer))
         (goto-char (point-min))
         (search-forward "prompt 3")
         (dotimes (n 25)
           (magy-test-turn (+ 26 n)))
         (should (looking-back "prompt 3" (point-min)))
         (should (= 50 magy-transcript--turns))
         (goto-char (point-max))
         (magy-test-turn 51)
         (should (= 20 magy-transcript--turns)))))))

(ert-deftest magy-reasoning-can-be-folded-or-dropped ()
  :tags '(E043)
  (pcase-dolist (`(,how . ,seen) '((t . "✻ Thinking\n    I see\n    it.\n\n")
                                   (ignore . "✻ Thinking  …2 lines\n\n")
                                   (nil . "")))
    (magy-test-with (magy-test-scenario)
      (let ((magy-include-reasoning how))
        (magy-test-in-transcript
         (magy-session-ensure (magy-test-project) #'ignore)
         (magy-test-until (eq t (magy-project-attached (magy-test-project))))
         (dolist (part '("I s" "ee\nit" "."))
           (magy-test-tell nil :sessionUpdate "agent_thought_chunk" :messageId "1.thought"
                           :content (list :type "text" :text part)))
         (should (equal seen (magy-picture-visible (point-min) (magy-transcript-end)))))))))

;;;; Views

(ert-deftest magy-any-session-can-be-looked-at ()
  (magy-test-with
      (magy-test-scenario
       'magy/session/subscribe
       (vector
        (vector (list :result
                      (magy-test-page
                       "$sessionId"
                       '(:sessionUpdate "user_message" :messageId "c1"
                         :content [(:type "text" :text "look around")])))
                (magy-test-event 2 :sessionUpdate "agent_message" :messageId "1"
                                 :content [(:type "text" :text "A child's answer.")]))))
    (magy-test-in-transcript
     (magy-session-ensure (magy-test-project) #'ignore)
     (magy-test-until (eq t (magy-project-attached (magy-test-project))))
     (magy-test-tell 1 :sessionUpdate "tool_call_update" :toolCallId "1.0" :name "spawn_agent"
                     :title "spawn_agent" :status "in_progress"
                     :rawInput '(:agent "explore" :prompt "Look around\nwell"))
     (goto-char (point-min))
     (should-error (magy-transcript-visit) :type 'user-error) ; it is not there yet
     (magy-test-tell 2 :sessionUpdate "tool_call_update" :toolCallId "1.0" :status "completed")
     (should (string-match-p "agent ✓ explore  Look around well  \\[transcript\\]"
                             (magy-test-text)))
     (goto-char (point-min))
     (search-forward "explore")
     (let ((child (concat (magy-project-session (magy-test-project)) "/1.0"))
           (configuration (current-window-configuration))
           view)
       (unwind-protect
           (progn
             (setq view (magy-transcript-visit))
             (should (equal child (plist-get (magy-test-params "magy/session/subscribe")
                                             :sessionId)))
             (with-current-buffer view
               (magy-test-until (string-match-p "A child's answer" (buffer-string)))
               (should (eq (magy-test-project) magy-transcript--project)))
             (should-not (string-match-p "A child's answer" (magy-test-text)))
             (kill-buffer view)
             (should (equal child (plist-get (magy-test-params "magy/session/unsubscribe")
                                             :sessionId)))
             (should-not magy-session-views))
         (set-window-configuration configuration)))
     ;; One that is no child is only to read.
     (let ((view (magy-transcript-of (magy-test-project) "older-1")))
       (with-current-buffer view
         (magy-test-until (string-match-p "A child's answer" (buffer-string)))
         (should buffer-read-only)
         (should-error (magy-input-submit) :type 'user-error))
       (kill-buffer view)))))

(provide 'magy-input-test)
;;; magy-input-test.el ends here
