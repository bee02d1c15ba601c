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

(defmacro magy-test-prompted-for (var answer &rest body)
  "Evaluate BODY with VAR bound to what `magy-answer' asks; ANSWER is typed."
  (declare (indent 2) (debug t))
  `(let (,var)
     (cl-letf (((symbol-function 'read-char-choice)
                (lambda (prompt chars &rest _)
                  (setq ,var (cons (substring-no-properties prompt) chars))
                  ,answer))
               ((symbol-function 'read-string) (lambda (&rest _) "")))
       (magy-answer))
     ,@body))

(ert-deftest magy-question-shows-all-that-runs ()
  "In the transcript, the announcement, the notification, the mode line and the minibuffer."
  :tags '(G022)
  (magy-test-with (magy-test-asking-for (magy-test-asked "Run ls -la ⏎ rm -rf precious"
                                                         magy-test-two))
    (let* (told (magy-desktop-notifications (lambda (_ body) (push body told))))
      (cl-letf (((symbol-function 'frame-focus-state) #'ignore))
        (magy-prompt "go")
        (magy-test-see "? Run ls -la ⏎ rm -rf precious  (asked by build)\nls -la\nrm -rf precious\n    because of "))
      (should (equal '("Run ls -la ⏎ rm -rf precious") told)))
    (should (string-match-p ": asks: Run ls -la ⏎ rm -rf precious," (magy-modeline--help)))
    (with-current-buffer magy-log-buffer
      (should (string-match-p "Magy asks: Run ls -la ⏎ rm -rf precious  (" (buffer-string))))
    (magy-test-prompted-for asked ?n
      (should (string-prefix-p "Run ls -la ⏎ rm -rf precious" (car asked)))
      (should (string-search "\na lasting answer would allow: bash `git commit *`, write `/proj/a`\n"
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
    (magy-test-prompted-for asked ?v
      (should (string-search "(v)iew all" (car asked))))
    (with-current-buffer (magy-transcript-buffer (magy-test-project))
      (let ((window (get-buffer-window (current-buffer))))
        (should window)
        (goto-char (window-point window))
        (should (looking-at-p "\\? Run echo begin")))
      (goto-char (point-min))
      (call-interactively (key-binding "v")))
    (should-not (magy-test-received "magy/interaction/respond"))))

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
    (magy-test-see "lasting answer would allow: bash `echo 4`\n    … and 5 more, which v shows\n    [n] ")
    (with-current-buffer (magy-transcript-buffer (magy-test-project))
      (goto-char (point-min))
      (call-interactively (key-binding "v")))
    (magy-test-see "lasting answer would allow: bash `echo 9`\n    [n] ")))

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
          (magy-test-prompted-for _asked ?v
            (should discarded)))))
    (should-not (magy-test-received "magy/interaction/respond"))
    (with-current-buffer (magy-transcript-buffer (magy-test-project))
      (run-hooks 'post-command-hook)
      (should-not (memq 'magy-permission--read post-command-hook))
      (let ((last-command-event ?y))
        (call-interactively (key-binding "y"))))
    (should (equal "allow" (plist-get (magy-test-params "magy/interaction/respond") :outcome)))))

(provide 'magy-questions-test)

;;; magy-questions-test.el ends here
