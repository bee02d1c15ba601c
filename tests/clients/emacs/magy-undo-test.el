;;; magy-undo-test.el --- Taking turns back, with the real server  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'magy-review-test)
(require 'magy-undo)
(require 'magy-checkpoints)

(defun magy-test-undo-buffer (&optional text)
  "Return the preview of an undo, when it is there and has TEXT.
One that was shown before stays until the next one is known."
  (magy-test-wait "the preview"
                  (lambda ()
                    (let ((buffer (get-buffer (format "*magy undo: %s*"
                                                      (magy-project-name (magy-test-project))))))
                      (and buffer (> (buffer-size buffer) 0)
                           (with-current-buffer buffer
                             (string-search (or text "") (buffer-string)))
                           buffer)))))

(ert-deftest magy-undo-of-a-turn-is-shown-first-and-keeps-what-was-typed ()
  :tags '(G014)
  (magy-test-reviewing (magy-test-replacing "line 3\n" "LINE 3\n" "line 10\n" "LINE 10\n")
      magy-test-twenty
    (magy-test-drawn 2)
    (let ((file (current-buffer)) (after nil))
      (goto-char (point-max))
      (insert "mine\n")
      (goto-char (point-min))
      (forward-line 4)
      (let ((mark (copy-marker (point))))
        (setq after (buffer-string))
        (magy-undo-turn)
        (with-current-buffer (magy-test-undo-buffer)
          (should (derived-mode-p 'diff-mode))
          (should (string-search "Undo 1 turn: go\n" (buffer-string)))
          (should (string-search "a.txt  +2 -2\n" (buffer-string)))
          (should (string-search "-LINE 10\n+line 10\n" (buffer-string)))
          (should (string-search "goes back to before this prompt" (buffer-string)))
          (should (eq (lookup-key magy-undo-mode-map "y") #'magy-undo-do))
          ;; Nothing has been done yet.
          (should (equal after (with-current-buffer file (buffer-string))))
          ;; Without the conversation:
          (magy-undo-toggle-conversation)
          (magy-test-until (string-search "The conversation stays" (buffer-string)))
          (magy-undo-do))
        (set-buffer file)
        (magy-test-until (equal (buffer-string) (concat magy-test-twenty "mine\n")))
        (should (= mark (save-excursion (goto-char (point-min)) (search-forward "line 5")
                                        (line-beginning-position))))
        (magy-test-drawn 0)
        (magy-redo-turn)
        (with-current-buffer (magy-test-undo-buffer "Redo 1 turn")
          (magy-undo-do))
        (set-buffer file)
        (magy-test-until (equal (buffer-string) after))))))

(ert-deftest magy-undo-says-a-rename-once ()
  (let ((about (list :project (magy-project--make :root "/p/")
                     :files t
                     :preview '(:turns ["t"] :conversation t
                                :files [(:path "/p/old.py" :movedFrom "/p/new.py" :action "rename"
                                         :diff "rename from new.py\nrename to old.py\n"
                                         :added 0 :removed 0 :conflict "")]))))
    (with-temp-buffer
      (magy-undo--insert about)
      (should (string-search "  is renamed  new.py → old.py  +0 -0\n" (buffer-string)))
      (should (string-search "rename from new.py\n" (buffer-string))))))

(ert-deftest magy-undo-leaves-a-conflict-alone-and-says-so ()
  :tags '(G014)
  (magy-test-reviewing (magy-test-replacing "line 3\n" "LINE 3\n")
      magy-test-twenty
    (magy-test-drawn 1)
    (goto-char (point-min))
    (search-forward "LINE 3")
    (insert " of mine")
    (let ((after (buffer-string)))
      (magy-undo-turn)
      (with-current-buffer (magy-test-undo-buffer)
        (should (string-search "a.txt is left alone: " (buffer-string))))
      (should (equal after (buffer-string))))))

(ert-deftest magy-checkpoints-list-the-turns ()
  :tags '(G014)
  (magy-test-real (concat "prompt: one\n" (magy-test-replacing "line 3\n" "LINE 3\n")
                          "prompt: two\n" (magy-test-replacing "line 5\n" "LINE 5\n"))
    (save-window-excursion
      (switch-to-buffer (find-file-noselect (magy-test-file "a.txt" magy-test-twenty)))
      (magy-test-work "one")
      (magy-test-work "two" 2)
      (magy-checkpoints)
      (with-current-buffer
          (magy-test-until (get-buffer (format "*magy turns: %s*"
                                               (magy-project-name (magy-test-project)))))
        (magy-test-until (= 2 (length tabulated-list-entries)))
        (should (string-match-p "two.*a.txt \\+1 -1" (buffer-string)))
        (goto-char (point-min))
        (search-forward " one")
        (magy-checkpoints-undo))
      (with-current-buffer (magy-test-undo-buffer)
        (should (string-search "Undo 2 turns" (buffer-string)))
        (magy-undo-do))
      (magy-test-until (equal magy-test-twenty
                              (with-current-buffer "a.txt" (buffer-string))))
      ;; What was said can be said otherwise.
      (with-current-buffer (magy-transcript-buffer (magy-test-project))
        (magy-test-until (equal "one" (magy-input-text)))))))

(ert-deftest magy-edits-of-one-turn-are-one-step-of-undo ()
  (magy-test-reviewing (magy-test-replacing "line 3\n" "LINE 3\n" "line 10\n" "LINE 10\n"
                                            "line 15\n" "LINE 15\n")
      magy-test-twenty
    (let ((edited (buffer-string)))
      (should (string-search "LINE 15" edited))
      ;; What is typed later is another step.
      (goto-char (point-max))
      (insert "mine\n")
      (undo-boundary)
      (setq last-command nil)
      (undo)
      (should (equal edited (buffer-string)))
      (setq last-command 'undo)
      (undo-more 1)
      (should (equal magy-test-twenty (buffer-string))))))

(ert-deftest magy-typing-between-edits-parts-their-steps-of-undo ()
  (with-temp-buffer
    (buffer-enable-undo)
    (insert "one\ntwo\n")
    (let* ((project (magy-project--make :root "/" :encoding 'utf-32 :turn "turn-1"))
           (edit (lambda (line text)
                   (magy--apply-all
                    project
                    (list (cons (current-buffer)
                                (list (list :range (list :start (list :line line :character 0)
                                                         :end (list :line line :character 0))
                                            :newText text)))))))
           (back (lambda ()
                   (let ((last-command nil) (inhibit-message t))
                     (undo)
                     (buffer-string)))))
      (setq magy--document (magy-document--make :project project :uri "file:///a"))
      (funcall edit 0 "A\n")
      (funcall edit 1 "B\n")
      (should (equal "one\ntwo\n" (funcall back)))
      (undo-boundary)
      (funcall edit 0 "C\n")
      (goto-char (point-max))
      (insert "typed\n")
      (undo-boundary)
      (funcall edit 0 "D\n")
      (funcall edit 0 "E\n")
      (should (equal "E\nD\nC\none\ntwo\ntyped\n" (buffer-string)))
      (should (equal "C\none\ntwo\ntyped\n" (funcall back)))
      ;; An edit of the next turn begins another step, though nothing was typed.
      (undo-boundary)
      (funcall edit 0 "F\n")
      (setf (magy-project-turn project) "turn-2")
      (funcall edit 0 "G\n")
      (should (equal "F\nC\none\ntwo\ntyped\n" (funcall back))))))

(ert-deftest magy-decision-is-a-step-of-undo-of-its-own ()
  (magy-test-reviewing (magy-test-replacing "line 3\n" "LINE 3\n" "line 10\n" "LINE 10\n")
      magy-test-twenty
    (magy-test-drawn 2)
    (let ((edited (buffer-string)))
      (goto-char (point-min))
      (forward-line 2)
      (magy-review-reject)
      (magy-test-drawn 1)
      (setq last-command nil)
      (undo)
      (should (equal edited (buffer-string))))))

(provide 'magy-undo-test)
;;; magy-undo-test.el ends here
