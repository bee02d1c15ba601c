;;; magy-org-transcript-test.el --- Transcripts that are Org  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'magy-children-test)
(require 'magy-org-test)
(require 'magy-org-transcript)

(defmacro magy-test-in-org (&rest body)
  "Evaluate BODY in a transcript in Org that is attached."
  (declare (indent 0) (debug t))
  `(let ((magy-transcript-style 'org))
     (magy-test-with (magy-test-scenario)
       (magy-test-in-transcript
        (magy-session-ensure (magy-test-project) #'ignore)
        (magy-test-until (eq t (magy-project-attached (magy-test-project))))
        ,@body))))

(defun magy-test-elements (kind property)
  "Return PROPERTY of each element of KIND that Org finds in the transcript."
  (let ((text (magy-test-text)))
    (with-temp-buffer
      (insert text)
      (delay-mode-hooks (org-mode))
      (org-element-map (org-element-parse-buffer) kind
        (lambda (element) (org-element-property property element))))))

(defun magy-test-stream (kind id text)
  "Have TEXT arrive as a piece of the message ID, which is KIND."
  (magy-test-tell nil :sessionUpdate kind :messageId id
                  :content (list :type "text" :text text)))

(ert-deftest magy-transcript-is-org-if-a-person-wants-that ()
  :tags '(E129)
  (magy-test-in-org
   (cl-loop for update in magy-test-told for seq from 1
            do (apply #'magy-test-tell seq update))
   ;; What is seen is what is exported.
   (should (equal (string-remove-prefix "#+title: A title\n\n" magy-test-exported-org)
                  (string-remove-suffix "\n" (magy-test-text))))
   (should (equal '("[USER]" "[ASSISTANT]") (magy-test-elements 'headline :raw-value)))
   (should (equal '("think" "tool" "agent") (magy-test-elements 'special-block :type)))
   (should (equal "Magy Org" mode-name))
   ;; What the tool said is folded, but there.
   (goto-char (point-min))
   (search-forward "Run ls")
   (should (string-match-p "\n#\\+begin_tool Run ls :status completed  …8 lines\n\n#\\+begin_agent"
                           (magy-test-visible)))
   (magy-test-press "TAB")
   (should (string-search "\na.py\n,#+end_tool\n#+end_example\n#+end_tool\n"
                          (magy-test-visible)))
   ;; Killed as usual, it is Org; and so is the rest of it in another mode.
   (goto-char (point-min))
   (search-forward "I *look*")
   (kill-new (filter-buffer-substring (- (point) 6) (point)))
   (should (equal "*look*" (current-kill 0)))
   (should (eq 'bold (get-text-property (- (point) 2) 'face)))))

(defun magy-test-open (text)
  "Return TEXT without the end of the last block, which may not have come yet."
  (string-trim-right
   (replace-regexp-in-string "\n#\\+end_\\(?:src\\|quote\\)\\'" ""
                             (string-trim-right text))))

(ert-deftest magy-answers-become-org-while-they-stream ()
  :tags '(E010)
  (magy-test-in-org
   (dolist (size '(1 7 1000))
     (let ((id (format "a%d" size)) (pos 0))
       (magy-test-tell size :sessionUpdate "user_message" :messageId (format "m%d" size)
                       :content [(:type "text" :text "go")])
       (while (< pos (length magy-test-markdown))
         (magy-test-stream "agent_message_chunk" id
                           (substring magy-test-markdown pos
                                      (min (length magy-test-markdown) (+ pos size))))
         (magy-session--flush (magy-test-project))
         (setq pos (+ pos size))
         ;; Org at each moment: no line of it waits to be turned.
         (should (equal (concat "* [ASSISTANT]\n"
                                (magy-test-open
                                 (magy-org-from-markdown
                                  (string-remove-suffix
                                   "\n" (substring magy-test-markdown 0
                                                   (min (length magy-test-markdown) pos))))))
                        (magy-test-open
                         (substring (magy-test-text)
                                    (string-search "* [ASSISTANT]" (magy-test-text)))))))
       (magy-test-say (1+ size) id magy-test-markdown)
       (magy-session--flush (magy-test-project))
       (should (string-suffix-p (concat "* [ASSISTANT]\n" magy-test-org "\n\n") (magy-test-text)))
       (magy-transcript-edit (lambda () (magy-transcript-reset)))))))

(ert-deftest magy-answers-in-org-have-looks-and-fold ()
  :tags '(E010)
  (magy-test-in-org
   (magy-test-tell 1 :sessionUpdate "user_message" :messageId "m1"
                   :content (magy-test-prompt-of 40))
   (should (string-prefix-p "* [USER]\nline 1\n" (magy-test-visible)))
   (should (string-search "\nline 8  …32 lines\n" (magy-test-visible)))
   (magy-test-say 3 "a1" magy-test-markdown)
   (goto-char (point-min))
   (search-forward "[ASSISTANT]")
   (should (memq 'org-level-1 (ensure-list (get-text-property (1- (point)) 'face))))
   (search-forward "app.py#L2")
   (should (invisible-p (1- (point))))
   (should (equal "app.py#L2" (get-text-property (+ 2 (point)) 'magy-link)))
   (search-forward "| a")
   (should (string-search "│ Name │ N   │\n├──────┼─────┤\n"
                          (magy-picture-visible (point-min) (point))))
   (search-forward "message")
   (should (memq 'magy-code-block (ensure-list (get-text-property (1- (point)) 'face))))
   (let ((before (buffer-string)))
     (magy-test-press "TAB")
     (should (string-search "* [ASSISTANT]\n** Why  …21 lines\n" (magy-test-visible)))
     (magy-test-press "TAB")
     (should (equal before (buffer-string))))
   ;; What the log says counts, whatever streamed.
   (magy-test-say nil "a2" "One **thi")
   (should (string-suffix-p "One **thi\n\n" (magy-test-text)))
   (magy-test-say 5 "a2" "* Another.\n\n```\n* code")
   (should (string-suffix-p "\n\n- Another.\n\n#+begin_src\n,* code\n#+end_src\n\n" (magy-test-text)))
   (should-error (progn (goto-char (1- (magy-transcript-end))) (insert "x"))
                 :type 'text-read-only)))

(ert-deftest magy-long-answers-become-org-bit-by-bit ()
  (magy-test-in-org
   (let* ((text (string-trim-right
                 (apply #'concat (cl-loop for n below 6000 collect (format "* item %d\n" n)))))
          (org (concat "* [ASSISTANT]\n" (magy-org-from-markdown text) "\n\n")))
     (magy-test-say 1 "a1" text)
     (should (< (length (magy-test-text)) (length org)))
     (magy-test-until (equal (length org) (length (magy-test-text))))
     (should (equal org (magy-test-text))))))

(ert-deftest magy-thinking-streams-into-a-block ()
  :tags '(E129)
  (magy-test-in-org
   (magy-test-stream "agent_thought_chunk" "t1" "First\n* se")
   (magy-session--flush (magy-test-project))
   (should (equal "#+begin_think\nFirst\n,* se\n#+end_think\n\n" (magy-test-text)))
   (magy-test-stream "agent_thought_chunk" "t1" "cond\n#+")
   (magy-session--flush (magy-test-project))
   (should (equal "#+begin_think\nFirst\n,* second\n,#+\n#+end_think\n\n" (magy-test-text)))
   (goto-char (point-min))
   (magy-test-press "TAB")
   (should (equal "#+begin_think  …4 lines\n\n" (magy-test-visible)))
   (magy-test-stream "agent_thought_chunk" "t1" "third")
   (magy-session--flush (magy-test-project))
   (should (equal "#+begin_think  …4 lines\n\n" (magy-test-visible)))
   (magy-test-tell 1 :sessionUpdate "agent_thought" :messageId "t1"
                   :content [(:type "text" :text "First\n* second\n#+third")])
   (magy-test-press "TAB")
   (should (equal "#+begin_think\nFirst\n,* second\n,#+third\n#+end_think\n\n"
                  (magy-test-visible)))))

(ert-deftest magy-style-of-a-transcript-that-is-shown-can-be-changed ()
  (let ((page (magy-test-page "$sessionId" '(:sessionUpdate "agent_message" :messageId "a"
                                             :content [(:type "text" :text "**Done**.")]))))
    (magy-test-attached
        (magy-test-scenario 'magy/session/resume (vector (vector (list :result page))))
      (magy-test-see "Done")
      (goto-char (point-max))
      (magy-test-type "a draft")
      (dolist (step '((org "Magy Org" "* [ASSISTANT]\n*Done*.\n\n")
                      (markdown "Magy" "ASSISTANT\n**Done**.\n\n")))
        (let ((magy-transcript-style (car step)))
          (goto-char (point-min))
          (magy-test-press "g")
          (magy-test-until (equal (nth 2 step) (magy-test-text)))
          (should (equal (nth 1 step) mode-name))
          (should (equal "a draft" (magy-input-text))))))))

(ert-deftest magy-older-turns-and-restored-ones-are-org ()
  (magy-test-in-org
   (magy-test-turn 2)
   (let ((project (magy-test-project)) (now (magy-test-text)))
     (should (equal "* [USER]\nprompt 2\n\n* [ASSISTANT]\nanswer 2\n\n" now))
     (setf (magy-project-floor project) 5)
     (magy-older--insert
      project
      [(:seq 1 :update (:sessionUpdate "user_message" :messageId "m1"
                        :content [(:type "text" :text "prompt 1")]))
       (:seq 3 :update (:sessionUpdate "agent_message" :messageId "a1"
                        :content [(:type "text" :text "* answer 1")]))])
     (should (equal (concat "* [USER]\nprompt 1\n\n* [ASSISTANT]\n- answer 1\n\n" now)
                    (magy-test-text)))
     (magy-test-tell 9 :sessionUpdate "_magy_restored" :restoreId "r" :turnId "m2"
                     :conversation t)
     (should (string-suffix-p (concat "* [USER] :undone:\nprompt 2\n\n* [ASSISTANT]\nanswer 2\n\n"
                                      ": Undone: the conversation, back to before “prompt 2”\n\n")
                              (magy-test-text)))
     (search-backward "answer 2")
     (should (memq 'shadow (ensure-list (get-text-property (point) 'face))))
     (magy-test-tell 10 :sessionUpdate "_magy_restored" :restoreId "s" :undoes "r" :turnId "m2"
                     :conversation t)
     (should (string-search (concat now ": Undone") (magy-test-text)))
     (should (string-suffix-p "\n\n: Redone: the conversation\n\n" (magy-test-text)))
     (should-not (get-text-property (point) 'face)))))

(ert-deftest magy-agents-are-org-blocks-of-their-lives ()
  :tags '(E092)
  (let ((magy-transcript-style 'org))
    (magy-test-with-children nil
      (magy-test-spawned)
      (should (equal (concat "#+begin_agent explore: Look around :status running"
                             " :session emacs-1/5.0 :tokens 1500 :cost $0.012  …3 lines\n\n")
                     (magy-test-visible)))
      (apply #'magy-test-changed (magy-test-child "5.0" :state "waiting" :questions 2 :usage nil
                                                  :cost nil))
      (should (equal (concat "#+begin_agent explore: Look around :status waiting"
                             " :session emacs-1/5.0 :questions 2  …3 lines\n\n")
                     (magy-test-visible)))
      (apply #'magy-test-changed (magy-test-child "5.0" :state "completed"))
      (magy-test-result 6)
      (magy-test-say 7 "a7" "Two.")
      (should (equal (concat "#+begin_agent explore: Look around :status completed"
                             " :session emacs-1/5.0 :tokens 1500 :cost $0.012\n"
                             "Look around\nwell\n#+end_agent\n\n"
                             "#+begin_agent result of explore “Look around” :status completed"
                             " :session emacs-1/5.0 :tokens 12000 :cost $0.25\n"
                             "There are *two*.\n- No more.\n#+end_agent\n\n"
                             "* [ASSISTANT]\nTwo.\n\n")
                     (magy-test-text)))
      (should (equal '("agent" "agent") (magy-test-elements 'special-block :type)))
      ;; A block is a way to the agent's own transcript, which is Org, too.
      (goto-char (point-min))
      (magy-test-press "RET")
      (should (equal "emacs-1/5.0" (plist-get (magy-test-params "magy/session/subscribe")
                                              :sessionId)))
      (with-current-buffer (magy-project-buffer (car magy-session-views))
        (should (eq 'org magy-transcript--style))))))

(ert-deftest magy-questions-in-org-have-their-buttons ()
  (magy-test-in-org
   (magy-transcript-edit
    (lambda ()
      (magy-session--questions
       (magy-test-project)
       (list :opened [(:interactionId "q1" :title "Run ls" :rule "bash *" :sessionId "s"
                       :scopes ["once"])]))))
   (should (equal '("question") (magy-test-elements 'special-block :type)))
   (goto-char (point-min))
   (search-forward "[y] allow")
   (should (button-at (1- (point))))
   (magy-transcript-edit
    (lambda () (magy-session--resolved (magy-test-project) "q1" '(:outcome "allow"))))
   (should (equal ": Run ls: allow\n\n" (magy-test-text)))))

(provide 'magy-org-transcript-test)
;;; magy-org-transcript-test.el ends here
