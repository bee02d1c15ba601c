;;; magy-questions-test.el --- Questions show what runs  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'magy-test-helper)

(defconst magy-test-two "ls -la\nrm -rf precious"
  "A command of two lines.")

(defconst magy-test-long
  (concat "echo begin\n" (mapconcat (lambda (n) (format "echo %d" n)) (number-sequence 1 99) "\n")
          "\nrm -rf precious")
  "A command that no title has room for.")

(defun magy-test-asked (title command &rest more)
  "Return a question with TITLE about COMMAND; MORE is a plist."
  (append more
          (list :interactionId "ask-1" :kind "permission" :toolCallId "1.0" :title title
                :rule "build: bash is ask" :remember [(:key "bash" :pattern "git commit *")]
                :covers ["bash `git commit *`" "write `/proj/a`"]
                :content (vector (list :type "content"
                                       :content (list :type "text" :text command))))))

(defun magy-test-asking-for (question &rest steps)
  "Return a scenario in which STEPS and then QUESTION follow a prompt."
  (magy-test-scenario
   'magy/session/prompt
   (vector (vconcat '((:result (:messageId "$messageId" :outcome "started")))
                    steps
                    (list (magy-test-event 2 :sessionUpdate "_magy_interaction"
                                           :open question))))
   'magy/interaction/respond [[(:result (:accepted t))]]))

(defun magy-test-call (command)
  "Return the step that tells of the call of COMMAND."
  (magy-test-event 1 :sessionUpdate "tool_call_update" :toolCallId "1.0" :name "bash"
                   :title "Run it" :status "pending"
                   :content (vector (list :type "content"
                                          :content (list :type "text" :text command)))))

(defmacro magy-test-prompted-for (var answers &rest body)
  "Evaluate BODY with VAR bound to what `magy-answer' asked last.
ANSWERS are typed, a character after the other; the last may be quit."
  (declare (indent 2) (debug t))
  `(let ((answers ,answers) ,var)
     (cl-letf (((symbol-function 'read-char-choice)
                (lambda (prompt chars &rest _)
                  (setq ,var (cons (substring-no-properties prompt) chars))
                  (or (pop answers) (signal 'quit nil))))
               ((symbol-function 'read-string) (lambda (&rest _) "")))
       (condition-case nil (magy-answer) (quit nil)))
     ,@body))

(ert-deftest magy-question-shows-all-that-runs ()
  "In the transcript, the announcement, the notification, the mode line and the minibuffer."
  :tags '(G022)
  (magy-test-with (magy-test-asking-for (magy-test-asked "Run ls -la ⏎ rm -rf precious"
                                                         magy-test-two))
    (let* (told (magy-desktop-notifications (lambda (_ body) (push body told))))
      (cl-letf (((symbol-function 'frame-focus-state) #'ignore))
        (magy-prompt "go")
        (magy-test-see "? Run ls -la ⏎ rm -rf precious  (asked by build)\nls -la\nrm -rf precious\n    asked because: "))
      (should (equal '("Run ls -la ⏎ rm -rf precious") told)))
    (should (string-match-p ": asks: Run ls -la ⏎ rm -rf precious," (magy-modeline--help)))
    (with-current-buffer magy-log-buffer
      (should (string-match-p "Magy asks: Run ls -la ⏎ rm -rf precious  (" (buffer-string))))
    (magy-test-prompted-for asked '(?n)
      (should (string-prefix-p "Run ls -la ⏎ rm -rf precious" (car asked)))
      (should (string-search "\na lasting yes would allow: bash `git commit *`, write `/proj/a`\n"
                             (car asked)))
      ;; The first choice refuses, wherever there are choices.
      (should (equal '(?n ?y ?s ?p ?v) (cdr asked)))
      (should (string-search "\n(n) refuse, (y) allow once, " (car asked))))
    (should (equal "refuse"
                   (plist-get (magy-test-params "magy/interaction/respond") :outcome)))))

(ert-deftest magy-question-shows-all-of-a-long-command-by-a-key ()
  (magy-test-with (magy-test-asking-for
                   (magy-test-asked "Run echo begin … (+500 characters, 98 lines) … rm -rf precious"
                                    magy-test-long))
    (magy-prompt "go")
    (magy-test-see "(+500 characters, 98 lines) … rm -rf precious  (asked by build)\necho begin\necho 1\n")
    (should (string-search magy-test-long (magy-test-text t)))
    (magy-test-prompted-for asked ()
      (should (string-search "(v)iew all" (car asked))))
    ;; Whoever has seen it is asked again.
    (magy-test-prompted-for asked '(?v)
      (should (string-suffix-p "(y) allow once, (s) for this session, (p) for this project, C-M-v scrolls: "
                               (car asked)))
      (should (equal '(?n ?y ?s ?p) (cdr asked))))
    (with-current-buffer (magy-transcript-buffer (magy-test-project))
      (let ((window (get-buffer-window (current-buffer))))
        (should window)
        (goto-char (window-point window))
        (should (looking-at-p "\\? Run echo begin")))
      (goto-char (point-min))
      (call-interactively (key-binding "v")))
    (should-not (magy-test-received "magy/interaction/respond"))))

(ert-deftest magy-question-that-was-viewed-leaves-the-transcript-at-its-end ()
  (magy-test-with (magy-test-asking-for (magy-test-asked "Run it" magy-test-two)
                                        (magy-test-call magy-test-two))
    (magy-prompt "go")
    (magy-test-see "? Run it")
    ;; In the input its keys are letters.
    (magy-test-see "\n    from anywhere: M-x magy-answer\n")
    (magy-test-prompted-for _asked '(?v ?y)
      (with-current-buffer (magy-transcript-buffer (magy-test-project))
        (should (= (point-max) (window-point (get-buffer-window))))
        (should (eq 'default (magy-item-folded (magy-transcript-item "1.0"))))))))

(ert-deftest magy-question-does-not-say-again-what-stands-above-it ()
  "To view it unfolds that."
  (magy-test-with (magy-test-asking-for (magy-test-asked "Run it" magy-test-two)
                                        (magy-test-call magy-test-two))
    (magy-prompt "go")
    (magy-test-see "? Run it")
    (cl-flet ((shown () (cl-count "rm -rf precious" (split-string (magy-test-text t) "\n")
                                  :test #'equal)))
      (should (= 1 (shown)))
      (with-current-buffer (magy-transcript-buffer (magy-test-project))
        (goto-char (magy-item-start (magy-transcript-item "1.0")))
        (magy-transcript-toggle)
        (should (= 0 (shown)))
        (call-interactively (key-binding "v")))
      (should (= 1 (shown))))))

(ert-deftest magy-question-folds-a-long-list-of-what-would-be-allowed ()
  (magy-test-with (magy-test-asking-for
                   (append (list :covers (vconcat (mapcar (lambda (n) (format "bash `echo %d`" n))
                                                          (number-sequence 1 9))))
                           (magy-test-asked "Run it" magy-test-two)))
    (magy-prompt "go")
    (magy-test-see "    a lasting yes would allow:\n      bash `echo 1`\n      bash `echo 2`\n      bash `echo 3`\n      bash `echo 4`\n      … and 5 more, which v shows\n    [n] ")
    (with-current-buffer (magy-transcript-buffer (magy-test-project))
      (goto-char (point-min))
      (call-interactively (key-binding "v")))
    (magy-test-see "      bash `echo 9`\n    [n] ")))

(ert-deftest magy-question-has-both-ends-where-there-is-no-room ()
  (should (equal "abc" (magy-permission--short "abc" 3)))
  (should (equal "aaaaaa … (+90 characters) … aaab"
                 (magy-permission--short (concat (make-string 99 ?a) "b") 10)))
  ;; What the server left out is left out still.
  (should (equal "abcdef … (+1240 characters) … wxyz"
                 (magy-permission--short "abcdefgh … (+1,234 characters, 5 lines) … stuvwxyz" 10))))

(ert-deftest magy-question-is-not-answered-by-what-was-typed-before-it-came ()
  (magy-test-with (magy-test-asking-for (magy-test-asked "Run it" magy-test-two))
    (cl-letf (((symbol-function 'input-pending-p) #'always))
      (magy-prompt "go")
      (magy-test-see "? Run it")
      (with-current-buffer (magy-transcript-buffer (magy-test-project))
        (goto-char (point-min))
        (let ((last-command-event ?y))
          (should-error (call-interactively (key-binding "y")) :type 'user-error)
          (run-hooks 'post-command-hook)
          (should-error (call-interactively (key-binding "y")) :type 'user-error)))
      (let (discarded)
        (cl-letf (((symbol-function 'discard-input) (lambda () (setq discarded t))))
          (magy-test-prompted-for _asked '(?v)
            (should discarded)))))
    (should-not (magy-test-received "magy/interaction/respond"))
    (with-current-buffer (magy-transcript-buffer (magy-test-project))
      (run-hooks 'post-command-hook)
      (should-not (memq 'magy-permission--read post-command-hook))
      (let ((last-command-event ?y))
        (call-interactively (key-binding "y"))))
    (should (equal "allow" (plist-get (magy-test-params "magy/interaction/respond") :outcome)))))

;;;; Of another session

(defun magy-test-asked-elsewhere (&rest more)
  "Return the step that tells of a question of another session; MORE is a plist."
  (list :notify "magy/interaction/changed"
        :params (list :sessionId "other"
                      :opened (vector (append (list :sessionId "other" :agent "build"
                                                    :path [(:sessionId "other" :agent "build"
                                                            :name "tidy up")])
                                              more
                                              (magy-test-asked "Run it" magy-test-two))))))

(defun magy-test-other-asks ()
  "Return a scenario in which another session asks before this one is shown."
  (magy-test-scenario
   'magy/session/new (vector (vector (magy-test-asked-elsewhere)
                                     '(:result (:sessionId "$sessionId" :configOptions []))))
   'magy/interaction/respond [[(:result (:accepted t))]]))

(ert-deftest magy-question-of-another-session-does-not-count-as-of-this-one ()
  :tags '(G022)
  (magy-test-with (magy-test-other-asks)
    (magy-prompt "go")
    (magy-test-until (magy-permission--all))
    (magy-test-until (eq t (magy-project-attached (magy-test-project))))
    (with-current-buffer (magy-transcript-buffer (magy-test-project))
      (should (string-match-p "\\` ● idle " (magy-transcript-header))))
    (should (string-match-p "; another session asks: Run it\\'"
                            (magy-modeline--doing (magy-test-project))))
    (should (equal " [Magy asks 1]" (substring-no-properties (magy-modeline))))))

(ert-deftest magy-question-of-another-session-names-it ()
  "And all of it is shown, though no transcript here has it."
  :tags '(G022)
  (magy-test-with (magy-test-other-asks)
    (magy-prompt "go")
    (magy-test-until (magy-permission--all))
    (with-current-buffer (magy-transcript-buffer (magy-test-project))
      (magy-test-until (magy-transcript-item "ask-1"))
      (magy-session--edit (magy-test-project) (magy-transcript-remove "ask-1"))
      (let ((last-command-event ?y))
        ;; A key in a transcript answers only what this shows.
        (goto-char (point-min))
        (should (string-match-p "Another session asks"
                                (cadr (should-error (call-interactively (key-binding "y"))
                                                    :type 'user-error))))))
    (magy-test-prompted-for asked '(?v)
      (should (string-prefix-p "Run it  (asked by build in the session “tidy up”)\n" (car asked)))
      (with-current-buffer "*magy question*"
        (should (get-buffer-window))
        (should (string-prefix-p
                 "? Run it  (asked by build in the session “tidy up”)\nls -la\nrm -rf precious\n"
                 (buffer-string)))))
    (magy-test-prompted-for _asked '(?v ?y)
      (should-not (get-buffer-window "*magy question*")))
    (should (equal "other"
                   (plist-get (magy-test-params "magy/interaction/respond") :sessionId)))))

(ert-deftest magy-question-says-who-asks-when-it-is-told-twice ()
  (magy-test-with (magy-test-asking-for (magy-test-asked "Run it" magy-test-two))
    (magy-prompt "go")
    (magy-test-see "? Run it")
    (let* ((project (magy-test-project))
           (told (magy-test-asked "Run it" magy-test-two :sessionId (magy-project-session project)
                                  :path [(:sessionId "s" :agent "plan" :name "go")])))
      (magy-session--edit project
        (magy-session--questions project (list :opened (vector told))))
      (should (equal (list told) (mapcar #'cdr (magy-project-questions project)))))))

;;;; About agents

(ert-deftest magy-question-about-an-agent-names-what-its-answer-starts-too ()
  :tags '(G022)
  (cl-flet ((call (n task status)
              (magy-test-event n :sessionUpdate "tool_call_update" :toolCallId (format "1.%d" n)
                               :name "spawn_agent" :title "spawn_agent" :status status
                               :rawInput (list :agent "explore" :task_name task :prompt "Look"))))
    (magy-test-with
        (magy-test-asking-for
         (append '(:toolCallId "1.1" :remember [(:key "agent" :pattern "spawn *")]
                   :covers ["agent `spawn *`"])
                 (magy-test-asked "Spawn explore: Taxes" "Look"))
         (call 1 "Taxes" "pending") (call 2 "Lines" "pending") (call 3 "" "pending")
         (call 4 "Done" "completed"))
      (magy-prompt "go")
      (magy-test-see (concat "    any yes would allow:\n      agent `spawn *`\n"
                             "      explore: Lines\n      explore: Look\n"
                             "    [n] refuse  [y] allow until your next prompt  [s]"))
      (magy-test-prompted-for asked ()
        (should (string-search (concat "\nany yes would allow: agent `spawn *`,"
                                       " explore: Lines, explore: Look\n")
                               (car asked)))))))

;;;; Forms of MCP servers

(defconst magy-test-form
  (list :interactionId "ask-1" :kind "form" :toolCallId "1.0" :remember [] :covers []
        :title "The MCP server shop asks: Which release?" :rule "shop asks for it"
        :form (list :server "shop" :message "Which release?" :url ""
                    :fields
                    (vector (list :name "branch" :label "Branch [branch]" :hint "text" :type "string"
                                  :required t :default "main" :many :json-false :choices [])
                            (list :name "push" :label "push" :hint "yes or no" :type "boolean"
                                  :required :json-false :default :json-false :many :json-false
                                  :choices [])
                            (list :name "size" :label "size" :hint "one of these" :type "string"
                                  :required t :default "s" :many :json-false
                                  :choices [(:value "s" :name "small") (:value "m" :name "")])
                            (list :name "note" :label "note" :hint "text" :type "string"
                                  :required :json-false :default nil :many :json-false
                                  :choices [])))
        :content (vector (list :type "content"
                               :content (list :type "text" :text "Which release?\n\nall fields"))))
  "A question of an MCP server.")

(ert-deftest magy-form-is-filled-in-field-by-field ()
  :tags '(G022)
  (magy-test-with (magy-test-asking-for magy-test-form)
    (magy-prompt "go")
    (magy-test-see "? The MCP server shop asks: Which release?  (asked by build)\nWhich release?\n\nall fields\n    asked because: ")
    (magy-test-see "[n] refuse  [y] fill it in\n")
    (let (asked prompts)
      (cl-letf (((symbol-function 'read-char-choice)
                 (lambda (prompt &rest _) (setq asked prompt) ?y))
                ((symbol-function 'read-string)
                 (lambda (prompt &optional initial)
                   (push (cons prompt initial) prompts)
                   (if (string-prefix-p "4/4" prompt) "" "release-7")))
                ((symbol-function 'completing-read)
                 (lambda (prompt table &optional _predicate _match _initial _hist default)
                   (push (cons prompt default) prompts)
                   (car (car table)))))
        (magy-answer))
      (should (string-search "(n) refuse, (y) fill it in" asked))
      (should-not (string-search "no lasting yes" asked))
      (should (equal '(("1/4 Branch [branch] (text): " . "main")
                       ("2/4 push (yes or no, may be left out): " . "no")
                       ("3/4 size (one of these): " . "s (small)")
                       ("4/4 note (text, may be left out): "))
                     (nreverse prompts))))
    (let ((params (magy-test-params "magy/interaction/respond")))
      (should (equal "allow" (plist-get params :outcome)))
      (should (equal '(:branch "release-7" :push "yes" :size "s") (plist-get params :content))))))

(ert-deftest magy-form-takes-choices-with-commas-and-blanks ()
  (let ((field (list :name "tags" :label "tags" :hint "any of 3" :type "string" :required :json-false
                     :default ["a, b"] :many t
                     :choices [(:value "a, b" :name "") (:value " d" :name "") (:value "c" :name "")]))
        asked)
    (cl-letf (((symbol-function 'completing-read-multiple)
               (lambda (prompt _table &optional _predicate _match _initial _hist default)
                 (setq asked (cons prompt default))
                 (split-string "a, b; d" crm-separator t))))
      (should (equal ["a, b" " d"] (magy-form--read field ""))))
    (should (equal '("[; between them] tags (any of 3, may be left out): " . "a, b") asked))))

(ert-deftest magy-form-is-refused-without-a-reason ()
  (magy-test-with (magy-test-asking-for magy-test-form)
    (magy-prompt "go")
    (magy-test-see "fill it in")
    (magy-test-prompted-for asked '(?n)
      (let ((params (magy-test-params "magy/interaction/respond")))
        (should (equal "refuse" (plist-get params :outcome)))
        (should-not (plist-get params :content))))))

(provide 'magy-questions-test)

;;; magy-questions-test.el ends here
