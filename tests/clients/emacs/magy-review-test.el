;;; magy-review-test.el --- Deciding about changes, with the real server  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'magy-server-test)
(require 'magy-review)

(defconst magy-test-twenty
  (mapconcat (lambda (n) (format "line %d\n" n)) (number-sequence 1 20) "")
  "A file of twenty lines.")

(defun magy-test-replacing (&rest pairs)
  "Return a script whose model makes PAIRS of replacements in a.txt, one call each."
  (concat
   (cl-loop for (old new) on pairs by #'cddr
            concat (format "call: edit_file %s\n"
                           (json-serialize (list :path "a.txt" :old_text old :new_text new))))
   "---\ntext: All done.\n"))

(defun magy-test-hunks ()
  "Return the hunks that are drawn in the current buffer, from the top."
  (mapcar #'cdr (magy-review-hunks-in (point-min) (point-max))))

(defun magy-test-drawn (count)
  "Wait until COUNT hunks are drawn in the current buffer; return them."
  (let ((buffer (current-buffer)))
    (magy-test-wait (list 'hunks count)
                    (lambda () (with-current-buffer buffer
                                 (= count (length (magy-test-hunks)))))))
  (magy-test-hunks))

(defun magy-test-drawn-text ()
  "Return the current buffer as a person sees it: removed lines with a dash.
Added lines have a plus."
  (let ((lines nil))
    (save-excursion
      (goto-char (point-min))
      (while (not (eobp))
        (let ((added nil))
          (dolist (overlay (overlays-at (point)))
            (when (memq (overlay-get overlay 'face) '(magy-review-added magy-review-removed))
              (setq added t)))
          (dolist (overlay (overlays-in (point) (1+ (point))))
            (when-let ((text (and (overlay-get overlay 'magy-hunk)
                                  (= (overlay-start overlay) (point))
                                  (overlay-get overlay 'before-string))))
              (push (replace-regexp-in-string "^\\(.\\)" "-\\1" (substring-no-properties text))
                    lines)))
          (push (concat (if added "+" "") (buffer-substring-no-properties
                                           (point) (line-beginning-position 2)))
                lines))
        (forward-line)))
    (apply #'concat (nreverse lines))))

(defmacro magy-test-reviewing (script text &rest body)
  "Evaluate BODY in a window on a.txt with TEXT, which SCRIPT's model has edited."
  (declare (indent 2) (debug t))
  `(magy-test-real ,script
     (let ((magy-review--decisions nil))
       (clrhash magy-review--states)
       (save-window-excursion
         (switch-to-buffer (find-file-noselect (magy-test-file "a.txt" ,text)))
         (buffer-enable-undo)
         (magy-test-work "go")
         ,@body))))

(defun magy-test-work (text &optional turns)
  "Prompt TEXT and wait until TURNS (1) turns of the session are over, allowing everything."
  (let ((buffer (current-buffer)))
    (magy-prompt text)
    (magy-test-settle turns)
    (set-buffer buffer)))

(ert-deftest magy-review-is-drawn-where-the-lines-are ()
  (magy-test-reviewing (magy-test-replacing "line 3\n" "LINE 3\n" "line 10\n" ""
                                            "line 19\nline 20\n" "line 19\nline 20\nend\n")
      magy-test-twenty
    (pcase-let ((`(,change ,delete ,add) (magy-test-drawn 3)))
      (should (equal '("change" "delete" "add")
                     (mapcar (lambda (hunk) (plist-get hunk :kind)) (list change delete add)))))
    (should (string-prefix-p "line 1\nline 2\n-line 3\n+LINE 3\nline 4\n" (magy-test-drawn-text)))
    (should (string-search "line 9\n-line 10\nline 11\n" (magy-test-drawn-text)))
    (should (string-suffix-p "line 20\n+end\n" (magy-test-drawn-text)))
    (should (string-match-p "3" magy--lighter))
    (should (equal '("LINE")
                   (cl-loop for overlay in (overlays-in (point-min) (point-max))
                            when (eq 'magy-review-added-word (overlay-get overlay 'face))
                            collect (buffer-substring-no-properties (overlay-start overlay)
                                                                    (overlay-end overlay)))))
    ;; It moves with what is typed, and the text itself is as it is.
    (goto-char (point-min))
    (insert "mine\n")
    (should (string-search "-line 3\n+LINE 3\n" (magy-test-drawn-text)))
    (magy-test-until (cl-some (lambda (file) (eql (plist-get file :docVersion)
                                                  (magy-document-version magy--document)))
                              magy-review--files))
    (should (string-search "-line 3\n+LINE 3\n" (magy-test-drawn-text)))
    (should (= 3 (length (magy-test-hunks))))))

(ert-deftest magy-review-accepts-rejects-and-takes-back ()
  :tags '(F010)
  (magy-test-reviewing (concat (magy-test-replacing "line 3\n" "LINE 3\n" "line 10\n" "LINE 10\n"
                                                    "line 15\n" "LINE 15\n")
                               "prompt: again\ntext: You said: {{last}}\n---\ntext: All done.\n")
      magy-test-twenty
    (magy-test-drawn 3)
    (goto-char (point-min))
    (should-error (magy-review-accept) :type 'user-error)
    (magy-review-next)
    (magy-test-until (looking-at-p "LINE 3"))
    (magy-review-accept)
    (magy-test-drawn 2)
    ;; Point has gone on; what is typed meanwhile is kept.
    (magy-test-until (looking-at-p "LINE 10"))
    (save-excursion (goto-char (point-max)) (insert "mine\n"))
    (cl-letf (((symbol-function 'read-string) (lambda (&rest _) "leave it")))
      (magy-review-reject '(4)))
    (magy-test-drawn 1)
    (should (equal (buffer-string)
                   (concat (string-replace "line 3\n" "LINE 3\n"
                                           (string-replace "line 15\n" "LINE 15\n"
                                                           magy-test-twenty))
                           "mine\n")))
    ;; The last decision is taken back, though its answer may not be there yet; then the one before.
    (magy-review-undo-decision)
    (magy-test-drawn 2)
    (should (string-search "LINE 10" (buffer-string)))
    (magy-review-undo-decision)
    (magy-test-drawn 3)
    (magy-test-until (null magy-review--going))
    (should-error (magy-review-undo-decision) :type 'user-error)
    (magy-review-reject-all)
    (magy-test-drawn 0)
    (should (equal (buffer-string) (concat magy-test-twenty "mine\n")))
    (magy-test-until (null (magy-project-reviews (magy-test-project))))
    (should-not magy--lighter)
    ;; Where the mode is off, nothing is shown.
    (magy-review-undo-decision)
    (magy-test-drawn 3)
    (magy-mode -1)
    (should-not (magy-test-hunks))))

(ert-deftest magy-review-tells-the-agent-why ()
  :tags '(G010)
  (magy-test-reviewing (concat (magy-test-replacing "line 3\n" "LINE 3\n")
                               "prompt: again\ntext: I was told: {{last}}\n")
      magy-test-twenty
    (magy-test-drawn 1)
    (goto-char (point-min))
    (forward-line 2)
    (cl-letf (((symbol-function 'read-string) (lambda (&rest _) "a bit shorter, please")))
      (magy-review-comment))
    (magy-test-until (< 0 (length (plist-get (car (magy-test-hunks)) :comments))))
    (let ((hunk (car (magy-test-hunks))))
      (should (equal "a bit shorter, please"
                     (plist-get (aref (plist-get hunk :comments) 0) :text))))
    (let ((magy-review-ask-reason t))
      (cl-letf (((symbol-function 'read-string) (lambda (&rest _) "keep it lower case")))
        (magy-review-reject)))
    (magy-test-drawn 0)
    (magy-prompt "again")
    (magy-test-see "keep it lower case")))

(ert-deftest magy-review-amends-in-a-small-buffer ()
  (magy-test-reviewing (magy-test-replacing "line 3\n" "LINE 3\n" "line 9\n" "LINE 9\n")
      magy-test-twenty
    (magy-test-drawn 2)
    (goto-char (point-min))
    (forward-line 2)
    (let ((file (current-buffer)))
      (magy-review-amend)
      (should (equal (buffer-string) "LINE 3\n"))
      (erase-buffer)
      (insert "Line three")
      (should (eq (key-binding (kbd "C-c C-c")) #'magy-review-amend-done))
      (let ((small (current-buffer)))
        (magy-review-amend-done)
        (magy-test-until (not (buffer-live-p small))))
      (set-buffer file)
      (magy-test-drawn 1)
      (should (string-prefix-p "line 1\nline 2\nLine three\nline 4\n" (buffer-string))))))

(ert-deftest magy-review-keys-wait-until-the-change-is-reached ()
  (magy-test-reviewing (magy-test-replacing "line 3\n" "LINE 3\n" "line 10\n" "LINE 10\n")
      magy-test-twenty
    (magy-test-drawn 2)
    (goto-char (point-max))
    ;; Typed ahead: the answers are not there yet.
    (magy-review-next)
    (magy-review-reject)
    (magy-test-drawn 1)
    (should (string-search "line 3\n" (buffer-string)))
    (should (string-search "LINE 10\n" (buffer-string)))
    (should (eq 'magy-review-reject (lookup-key magy-review-repeat-map "r")))))

(ert-deftest magy-review-takes-back-what-was-just-decided ()
  (magy-test-reviewing (magy-test-replacing "line 3\n" "LINE 3\n" "line 10\n" "LINE 10\n"
                                            "line 15\n" "LINE 15\n")
      magy-test-twenty
    (magy-test-drawn 3)
    (goto-char (point-min))
    ;; Typed ahead, all of it: each key is about what the one before has left.
    (magy-review-next)
    (magy-review-reject)
    (magy-review-accept)
    (magy-review-undo-decision)
    (magy-review-undo-decision)
    (magy-review-accept)
    (magy-test-until (equal (mapcar (lambda (one) (plist-get one :label)) magy-review--decisions)
                            '("Accepted 1 change in a.txt")))
    (magy-test-drawn 2)
    (should (string-search "LINE 3\n" (buffer-string)))
    (should (string-search "LINE 10\n" (buffer-string)))))

(ert-deftest magy-review-survives-a-dead-server ()
  (let ((magy-test-fresh t))
    (magy-test-reviewing (magy-test-replacing "line 3\n" "LINE 3\n")
        magy-test-twenty
      (magy-test-drawn 1)
      (signal-process (jsonrpc--process (magy-project-connection (magy-test-project))) 'KILL)
      ;; What may be wrong by now is not shown.
      (magy-test-drawn 0)
      (should-not magy--lighter)
      (magy-when-ready (magy-test-project) #'ignore)
      (magy-test-drawn 1)
      (should (string-search "-line 3\n+LINE 3\n" (magy-test-drawn-text))))))

(provide 'magy-review-test)
;;; magy-review-test.el ends here
