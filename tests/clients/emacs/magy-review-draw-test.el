;;; magy-review-draw-test.el --- What is drawn of a review  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Against the scripted server: what a real one hardly ever says.

;;; Code:

(require 'magy-test-helper)
(require 'magy-review-draw)

(defun magy-test-hunk (id line old new &rest words)
  "Return a hunk called ID at LINE, one line, OLD before and NEW now, with WORDS."
  (let ((range (list :start (list :line line :character 0)
                     :end (list :line (1+ line) :character 0))))
    (list :hunkId id :kind "change" :range range :baseRange range :anchor line :above t
          :oldText old :newText new :words (vconcat words) :state "pending"
          :amended :json-false :origins [] :comments [])))

(defun magy-test-review-of (version &rest hunks)
  "Return the step that answers with HUNKS of a file at VERSION."
  (list :result
        (list :file (list :uri "$uri" :baseUri "magy://base/a.txt" :status "modified"
                          :revision "1" :docVersion version :mode "applied" :eol "\n"
                          :finalNewline '(:base t :current t) :added 1 :removed 1
                          :hunks (vconcat hunks)))))

(defun magy-test-under-review (&rest answers)
  "Return a scenario in which a.txt is under review; ANSWERS are those to get."
  (magy-test-scenario
   'magy/review/list
   (vector (vector (list :result
                         (list :files
                               (vector (list :uri (magy-test-uri "a.txt")
                                             :path (expand-file-name "a.txt" magy-test-root)
                                             :root magy-test-root :status "modified"
                                             :mode "applied" :revision "1" :pending 1
                                             :added 1 :removed 1 :sessions []))))))
   'magy/review/get (vconcat (mapcar #'vector answers))))

(defmacro magy-test-drawing (scenario text &rest body)
  "Evaluate BODY in a.txt with TEXT, whose review is as SCENARIO says."
  (declare (indent 2) (debug t))
  `(magy-test-with ,scenario
     (with-current-buffer (find-file-noselect (magy-test-file "a.txt" ,text))
       (magy-when-ready (magy-test-project) #'ignore)
       ,@body)))

(defun magy-test-drawn-ids ()
  "Return the ids of the hunks that are drawn in the current buffer."
  (cl-loop for overlay in (sort (overlays-in (point-min) (point-max))
                                (lambda (a b) (< (overlay-start a) (overlay-start b))))
           for hunk = (overlay-get overlay 'magy-hunk)
           when hunk collect (plist-get (cdr hunk) :hunkId)))

(defun magy-test-ids-in (beg end)
  "Return the ids of the hunks between BEG and END, drawn or not."
  (mapcar (lambda (one) (plist-get (cdr one) :hunkId)) (magy-review-hunks-in beg end)))

(ert-deftest magy-review-words-are-found-in-wide-text ()
  (let ((magy-test-encoding "utf-16"))
    (magy-test-drawing
        (magy-test-under-review
         (magy-test-review-of 0 (magy-test-hunk "h" 1 "😀 old 😀\n" "😀 new 😀\n"
                                                '(:side "old" :line 0 :start 3 :end 6)
                                                '(:side "new" :line 0 :start 3 :end 6))))
        "one\n😀 new 😀\n"
      (magy-test-until (equal '("h") (magy-test-drawn-ids)))
      (goto-char (point-min))
      (search-forward "new")
      (should (eq 'magy-review-added-word (get-char-property (1- (point)) 'face)))
      (should-not (eq 'magy-review-added-word (get-char-property (point) 'face)))
      (let* ((old (overlay-get (cl-find-if (lambda (overlay) (overlay-get overlay 'magy-hunk))
                                           (overlays-at (point)))
                               'before-string))
             (at (string-search "old" old)))
        (should (equal "😀 old 😀\n" (substring-no-properties old)))
        (should (memq 'magy-review-removed-word
                      (ensure-list (get-text-property at 'face old))))
        (should-not (memq 'magy-review-removed-word
                          (ensure-list (get-text-property (1- at) 'face old))))))))

(ert-deftest magy-review-of-another-version-is-not-drawn ()
  (magy-test-drawing
      (magy-test-under-review (magy-test-review-of 7 (magy-test-hunk "wrong" 0 "x\n" "one\n"))
                              (magy-test-review-of 0 (magy-test-hunk "right" 0 "x\n" "one\n")))
      "one\ntwo\n"
    (magy-test-until (progn (should-not (member "wrong" (magy-test-drawn-ids)))
                            (equal '("right") (magy-test-drawn-ids))))
    (should (= 2 (length (magy-test-received "magy/review/get"))))))

(ert-deftest magy-review-draws-a-bounded-number-of-changes ()
  (let ((magy-review-draw-limit 2)
        (hunks (cl-loop for n below 6
                        collect (magy-test-hunk (format "h%d" n) n "x\n" (format "%d\n" n)))))
    (magy-test-drawing
        (magy-test-under-review (apply #'magy-test-review-of 0 hunks))
        "0\n1\n2\n3\n4\n5\n"
      (magy-test-until (magy-test-drawn-ids))
      (should (equal '("h0" "h1") (magy-test-drawn-ids)))
      (should (equal " 6" (substring-no-properties magy--lighter)))
      ;; What is not drawn can be decided about like the rest, and moves with the text.
      (goto-char (point-max))
      (forward-line -1)
      (should (equal "h5" (plist-get (cdr (magy-review-hunk-here)) :hunkId)))
      (goto-char (point-min))
      (insert "mine\n")
      (should (equal '("h0" "h1" "h2" "h3" "h4" "h5") (magy-test-ids-in (point-min) (point-max))))
      (goto-char (point-min))
      (forward-line 4)
      (should (equal "h3" (plist-get (cdr (magy-review-hunk-here)) :hunkId))))))

(ert-deftest magy-review-needs-no-drawing ()
  (let ((magy-review-draw nil))
    (magy-test-drawing
        (magy-test-under-review
         (magy-test-review-of 0 (magy-test-hunk "h0" 0 "x\n" "0\n")
                              (magy-test-hunk "h1" 1 "x\n" "1\n")))
        "0\n1\n2\n"
      (magy-test-until magy-review--files)
      (should-not (magy-test-drawn-ids))
      (goto-char (point-min))
      (forward-line 1)
      (should (equal "h1" (plist-get (cdr (magy-review-hunk-here)) :hunkId)))
      (should (equal '("h0" "h1") (magy-test-ids-in (point-min) (1+ (point)))))
      (magy-review--drop (magy-test-uri "a.txt") '((:hunkId "h1")))
      (should-not (magy-review-hunk-here))
      (forward-line 1)
      (should-not (magy-review-hunk-here)))))

(ert-deftest magy-review-says-what-is-no-lines-in-a-sentence ()
  (pcase-dolist (`(,kind ,old ,new ,said)
                 '(("create" "" "a file, empty" "The file is new: a file, empty.")
                   ("remove" "a file" "" "The file is removed; it was a file.")
                   ("rename" "/srv/old.py" "/srv/new.py" "The file was /srv/old.py before.")
                   ("binary" "a file, 3 bytes" "a file, 4 bytes"
                    "The file is a file, 4 bytes; it was a file, 3 bytes.")
                   ("mode" "a file" "an executable file"
                    "It is an executable file; it was a file.")))
    (should (equal said (magy-review-sentence
                         (list :kind kind :oldText old :newText new))))))

(provide 'magy-review-draw-test)
;;; magy-review-draw-test.el ends here
