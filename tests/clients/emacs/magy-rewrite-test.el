;;; magy-rewrite-test.el --- Rewriting in place  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'magy-review-test)
(require 'magy-rewrite)

(defun magy-test-draft (state text &optional session message)
  "Return the step that sends a draft in STATE with TEXT, of SESSION, with MESSAGE."
  (list :notify "magy/rewrite/draft"
        :params (list :sessionId (or session "s1") :uri "$uri" :range "$range"
                      :text text :state state :message (or message ""))))

(defun magy-test-rewriting (&rest steps)
  "Return a scenario in which a rewrite is answered by STEPS."
  (magy-test-scenario 'magy/rewrite/start (vector (vconcat steps))))

(defun magy-test-draft-shown ()
  "Return what is shown below the text that is rewritten, or nil."
  (when-let ((overlay (cl-find-if (lambda (overlay) (overlay-get overlay 'magy-rewrite))
                                  (overlays-in (point-min) (point-max)))))
    (substring-no-properties (overlay-get overlay 'after-string))))

(defmacro magy-test-rewrite (scenario &rest body)
  "Evaluate BODY in a buffer of which two lines are rewritten, as SCENARIO answers."
  (declare (indent 1) (debug t))
  `(magy-test-with ,scenario
     (with-current-buffer (find-file-noselect (magy-test-file "a.txt" "one\ntwo\nthree\n"))
       (magy-rewrite 1 9 "say it better")
       ,@body)))

(ert-deftest magy-rewrite-streams-the-draft-in-its-place ()
  (magy-test-rewrite (magy-test-rewriting
                      ;; The first draft comes before the answer.
                      (magy-test-draft "streaming" "")
                      (list :result '(:sessionId "s1" :messageId "m1"))
                      (magy-test-draft "streaming" "uno\n")
                      (magy-test-draft "streaming" "uno\ndos\n"))
    (let ((sent (magy-test-params "magy/rewrite/start")))
      (should (equal "say it better" (plist-get sent :instruction)))
      (should (equal '(:start (:line 0 :character 0) :end (:line 2 :character 0))
                     (plist-get sent :range)))
      (should (equal (magy-test-uri "a.txt") (plist-get sent :uri)))
      (should (plist-get sent :requestKey)))
    (magy-test-until (equal (magy-test-draft-shown) "⟳ say it better\nuno\ndos\n"))
    ;; The text itself is as it was, and what is typed goes on being told.
    (should (equal (buffer-string) "one\ntwo\nthree\n"))
    (should (eq 'magy-rewrite-old (get-char-property 1 'face)))
    (goto-char 4)
    (should (eq #'magy-rewrite-cancel (key-binding (kbd "C-g"))))
    (magy-rewrite-cancel)
    (should (equal "s1" (plist-get (magy-test-params "magy/session/cancel") :sessionId)))))

(ert-deftest magy-rewrite-ends-in-every-way ()
  (pcase-dolist (`(,state ,message ,said) '(("applied" "" "rewritten")
                                            ("cancelled" "" "was stopped")
                                            ("failed" "No model." "nothing was rewritten.  No model.")))
    (magy-test-rewrite (magy-test-rewriting (list :result '(:sessionId "s1" :messageId "m1"))
                                            (magy-test-draft "streaming" "uno\n")
                                            (magy-test-draft state "uno\n" nil message))
      (magy-test-until (and (magy-test-received "magy/rewrite/start") (null magy-rewrite--all)))
      (should-not (magy-test-draft-shown))
      (should (string-search said (with-current-buffer "*magy log*" (buffer-string))))
      ;; A new text that could not be put there is not lost.
      (when (equal state "failed")
        (should (equal "uno\n" (current-kill 0)))))))

(defun magy-test-rewrite-asked (point)
  "Return how `magy-rewrite' at POINT asks, and what text it sets off."
  (let* ((file (current-buffer)) seen
         (minibuffer-setup-hook
          (list (lambda ()
                  (push (minibuffer-prompt) seen)
                  (when (eq this-command 'magy-rewrite)
                    (with-current-buffer file
                      (dolist (overlay (overlays-in (point-min) (1+ (point-max))))
                        (when (eq 'region (overlay-get overlay 'face))
                          (push (buffer-substring (overlay-start overlay) (overlay-end overlay))
                                seen)))))))))
    (goto-char point)
    (should-error (execute-kbd-macro (vconcat [?\M-x] "magy-rewrite" [?\r ?\r]))
                  :type 'user-error)
    (should-not (overlays-in (point-min) (1+ (point-max))))
    (list (cadr seen) (car seen))))

(ert-deftest magy-rewrite-says-which-lines-it-is-about ()
  (magy-test-with (magy-test-scenario)
    (save-window-excursion
      (find-file (magy-test-file "a.txt" "one\ntwo\n\nthree\n\n\nfour\n"))
      (narrow-to-region 5 (point-max))
      (should (equal '("Rewrite lines 3-4: " "\nthree\n") (magy-test-rewrite-asked 11)))
      (should (equal '("Write at line 6: " "") (magy-test-rewrite-asked 17)))
      (widen)
      (should (equal '("Rewrite lines 1-2: " "one\ntwo\n") (magy-test-rewrite-asked 2))))))

(ert-deftest magy-rewrite-that-is-refused-leaves-nothing ()
  (magy-test-rewrite (magy-test-rewriting (list :error '(:code -32803 :message "Not now.")))
    (magy-test-until (and (magy-test-received "magy/rewrite/start") (null magy-rewrite--all)))
    (should-not (magy-test-draft-shown))
    (should (string-search "Not now." (with-current-buffer "*magy log*" (buffer-string))))))

(ert-deftest magy-rewrite-ends-with-its-server ()
  (magy-test-rewrite (magy-test-rewriting (list :result '(:sessionId "s1" :messageId "m1"))
                                          (magy-test-draft "streaming" "uno\n"))
    (magy-test-until (string-search "uno" (or (magy-test-draft-shown) "")))
    (magy-stop (magy-test-project))
    (magy-test-until (null (magy-test-draft-shown)))))

(ert-deftest magy-rewrite-begun-elsewhere-is-shown ()
  (magy-test-rewrite (magy-test-rewriting (list :result '(:sessionId "s1" :messageId "m1"))
                                          (magy-test-draft "streaming" "mine\n")
                                          (magy-test-draft "applied" "mine\n")
                                          (magy-test-draft "streaming" "theirs\n" "s2"))
    (magy-test-until (equal "⟳ Rewriting\ntheirs\n" (magy-test-draft-shown)))))

(ert-deftest magy-rewrite-takes-the-region-or-the-function-at-point ()
  (with-temp-buffer
    (emacs-lisp-mode)
    (insert "(defun a ()\n  1)\n\n(defun b ()\n  2)\n\n\n")
    (goto-char (point-min))
    (search-forward "2")
    (pcase-let ((`(,beg . ,end) (magy-rewrite--bounds)))
      (should (string-match-p "\\`(defun b ()\n  2)\n?\\'" (buffer-substring beg end))))
    (transient-mark-mode 1)
    (push-mark (point-min) t t)
    (should (equal (cons (point-min) (point)) (magy-rewrite--bounds)))))

(ert-deftest magy-rewrite-becomes-a-pending-change-right-there ()
  :tags '(G008)
  (magy-test-real "speed: 60
call: replace_selection {\"text\": \"line TWO, of many words that take their time\\nline THREE\\n\"}
"
    (save-window-excursion
      (switch-to-buffer (find-file-noselect (magy-test-file "a.txt" magy-test-twenty)))
      (buffer-enable-undo)
      (let ((windows (count-windows)) (window (selected-window)))
        (magy-rewrite 8 22 "say it better")
        (magy-test-wait "the draft"
                        (lambda () (string-search "line TWO" (or (magy-test-draft-shown) ""))) 30)
        (should (equal magy-test-twenty (buffer-string)))
        ;; The person types on, before the selection.
        (goto-char (point-min))
        (insert "mine\n")
        (magy-test-drawn 1)
        (should-not (magy-test-draft-shown))
        (should (string-prefix-p
                 (concat "mine\nline 1\n-line 2\n-line 3\n"
                         "+line TWO, of many words that take their time\n+line THREE\nline 4\n")
                 (magy-test-drawn-text)))
        ;; No window, no transcript.
        (should (= windows (count-windows)))
        (should (eq window (selected-window)))
        (should-not (magy-project-session (magy-test-project))))
      (goto-char (point-min))
      (search-forward "TWO")
      (magy-review-reject)
      (magy-test-drawn 0)
      (should (equal (concat "mine\n" magy-test-twenty) (buffer-string))))))

(ert-deftest magy-rewrite-stops-when-told-to ()
  :tags '(G008)
  (magy-test-real "speed: 10
call: replace_selection {\"text\": \"a\\nb c d e f g h i j k l m n o p q r s t u v w x y z\\n\"}
"
    (save-window-excursion
      (switch-to-buffer (find-file-noselect (magy-test-file "a.txt" magy-test-twenty)))
      (magy-rewrite 8 22 "say it better")
      (magy-test-wait "the draft"
                      (lambda () (string-search "a\n" (or (magy-test-draft-shown) ""))) 30)
      (goto-char 9)
      (magy-cancel)
      (magy-test-until (null magy-rewrite--all))
      (should-not (magy-test-draft-shown))
      (should (equal magy-test-twenty (buffer-string)))
      (should-not (magy-test-hunks)))))

(provide 'magy-rewrite-test)
;;; magy-rewrite-test.el ends here
