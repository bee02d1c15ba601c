;;; magy-org-transcript.el --- Magy's transcripts as Org  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Magy authors
;; SPDX-License-Identifier: GPL-3.0-or-later
;; This is free software with no warranty at all; see the file COPYING.

;;; Commentary:

;; Where `magy-transcript-style' is `org', an item's text is what it is
;; when it is copied as Org.  Only the text differs: items, folding,
;; older turns and the foot are those of every transcript.
;;
;; Answers and thinking stream.  Whole lines become Org once; the last
;; one, which is not whole yet, is drawn anew with each batch.

;;; Code:

(require 'magy-org)
(require 'magy-org-looks)
(require 'outline)

(defun magy-org-transcript-begin ()
  "Have the current transcript, in which nothing is drawn yet, be Org."
  (setq mode-name "Magy Org")
  (setq-local outline-regexp "\\*+ "))

;;;; Folding

(defun magy-org-transcript--hide (text item)
  "Return TEXT, which ends with a newline, with what is folded of ITEM hidden.
Of a section its beginning stays, of a block its first line."
  (let* ((lines (cl-count ?\n text))
         (most (1+ magy-transcript--prompt-beginning))
         (shown (if (and (memq (magy-item-kind item) '(user mail))
                         (string-prefix-p "*" text) (> lines most))
                    most
                  1))
         (start -1))
    (when (< shown lines)
      (dotimes (_ shown)
        (setq start (string-search "\n" text (1+ start))))
      (put-text-property start (1- (length text)) 'display
                         (magy-transcript--more (- lines shown)) text))
    text))

;;;; Whole items

(defun magy-org-transcript--face (item)
  "Return the function that returns the face of a line in a block of ITEM."
  (if (seq-some (lambda (part) (equal "diff" (plist-get part :type)))
                (append (plist-get (magy-item-data item) :content) nil))
      #'magy-transcript--diff-face
    (lambda (_) 'shadow)))

(cl-defmethod magy-transcript-styled
  (item plain &context (magy-transcript--style (eql 'org)))
  "Return ITEM, which looks like PLAIN in Markdown, as Org with its looks.
MAGY-TRANSCRIPT--STYLE asks for that."
  (let ((data (magy-item-data item)) (kind (magy-item-kind item)))
    (if (and (eq kind 'question) (null (plist-get data :outcome)))
        ;; It has buttons.
        (magy-org-looks-text
         (concat "#+begin_question\n" (magy-org--escape plain) "#+end_question\n") #'ignore)
      (let ((text (magy-org-looks-text (concat (or (magy-org-item item)
                                                   (magy-org--remark (string-trim-right plain)))
                                               "\n")
                                       (magy-org-transcript--face item))))
        (when (and (memq kind '(user mail)) (string-prefix-p "*" text))
          (add-face-text-property 0 (length text) 'magy-user t text))
        (if (magy-item-shown item) (magy-org-transcript--hide text item) text)))))

;;;; What streams

(defconst magy-org-transcript--thought-ends "\n#+end_think\n\n"
  "What is behind the text of some thinking.")

(cl-defmethod magy-transcript-frame (kind &context (magy-transcript--style (eql 'org)))
  "Return what a new item of KIND begins and ends with in Org.
MAGY-TRANSCRIPT--STYLE asks for that."
  (pcase kind
    ((and 'agent (guard (not magy-transcript--answered)))
     (cons (magy-org-looks-text (format "* [%s]\n" magy-assistant-prompt) nil) "\n\n"))
    ('thought (cons (magy-org-looks-text "#+begin_think\n" nil)
                    (magy-org-looks-text magy-org-transcript--thought-ends nil)))
    (_ (cons "" "\n\n"))))

(defun magy-org-transcript--thought-p (item)
  "Return non-nil if ITEM is thinking, else it is an answer."
  (eq 'thought (magy-item-kind item)))

(defun magy-org-transcript--beg (item)
  "Return where the text of ITEM begins."
  (+ (magy-item-start item) (magy-item-head item)))

(defun magy-org-transcript--end (item)
  "Return where the text of ITEM ends."
  (- (magy-transcript--end item)
     (if (magy-org-transcript--thought-p item) (length magy-org-transcript--thought-ends) 2)))

(defun magy-org-transcript--insert (item text)
  "Insert TEXT as part of ITEM."
  (let ((start (marker-position (magy-item-start item))))
    (insert (magy-transcript--mark text item))
    (set-marker (magy-item-start item) start)))

(defun magy-org-transcript--take (item anew)
  "Return what ITEM says and is not drawn; all of it if ANEW is non-nil.
So it is, too, if the log says something else than what streamed."
  (let* ((new (magy-stream--take item))
         (data (magy-item-data item))
         (whole (plist-get data :text))
         (said (if (string-empty-p new)
                   (plist-get data :parts)
                 (cons new (plist-get data :parts))))
         (left (concat (plist-get data :left) new)))
    (when (and whole (not (equal said (list whole))))
      (let ((before (apply #'concat (reverse said))))
        (if (string-prefix-p before whole)
            (setq left (concat left (substring whole (length before))))
          (setq anew t))
        (setq said (list whole))))
    (when anew
      (setq left (apply #'concat (reverse said)))
      (magy-stream--anew item))
    (setf (magy-item-data item) (plist-put (plist-put data :parts said) :left left))
    left))

(defun magy-org-transcript--cut (left whole)
  "Return how many characters of LEFT are lines that may be drawn for good now.
The last line is complete if the text is WHOLE."
  (let ((cut (if whole (length left) (1+ (or (cl-position ?\n left :from-end t) -1)))))
    (when (> cut magy-transcript--left)
      (let ((end (string-search "\n" left magy-transcript--left)))
        (when (and end (< end cut))
          (setq cut (1+ end)))))
    (setq magy-transcript--left (max 0 (- magy-transcript--left cut)))
    cut))

(defun magy-org-transcript--block-ends (base block end)
  "Give BLOCK, in a text that begins at BASE, its looks; it ends at END."
  (pcase block
    (`(table ,offset) (magy-blocks-table (+ base offset) end))
    (`(code ,offset ,language) (magy-blocks-code (+ base offset) end language))))

(defun magy-org-transcript--line (item line state)
  "Insert the Markdown LINE of the answer ITEM as Org; STATE is that before it.
Return the one after it, (WITHIN BLOCK): WITHIN is as in `magy-org-line',
BLOCK is what gets its looks when it is complete."
  (pcase-let* ((`(,within ,block) state)
               (`(,next . ,lines) (magy-org-line line within 1))
               (code (and (eq 'code (car within)) (eq 'code (car next))))
               (base (magy-org-transcript--beg item))
               (beg (point)))
    (magy-org-transcript--insert item (string-join lines "\n"))
    (if code
        (put-text-property beg (point) 'face 'magy-code-block)
      (dolist (one lines)
        (magy-org-looks-line beg (+ beg (length one)))
        (setq beg (+ beg (length one) 1))))
    (setq beg (- (point) (length (car (last lines)))))
    (cond (code (list next block))
          ((and (null next) (eq ?| (char-after beg)))
           (list next (or block (list 'table (- beg base)))))
          (t (magy-org-transcript--block-ends base block beg)
             (list next (and (eq 'code (car next))
                             (list 'code (- (1+ (point)) base) (nth 2 next))))))))

(defun magy-org-transcript--lines (item text state)
  "Insert TEXT of ITEM, from the beginning of a line on, as Org.
STATE is that before it; return the one after it."
  (let ((lines (split-string text "\n")))
    (while lines
      (let ((line (pop lines)))
        (cond ((and (null lines) (equal line "")))
              ((magy-org-transcript--thought-p item)
               (magy-org-transcript--insert
                item (propertize (magy-org--escape line) 'face 'magy-thought)))
              (t (setq state (magy-org-transcript--line item line state))))
        (when lines
          (magy-org-transcript--insert item "\n"))))
    state))

(defun magy-org-transcript--close (item)
  "End at point what is open at the end of the answer ITEM."
  (pcase-let ((`(,within ,block) (magy-item-state item)) (end (point)))
    (dolist (line (magy-org-close within))
      (unless (bolp)
        (magy-org-transcript--insert item "\n"))
      (setq end (point))
      (magy-org-transcript--insert item line)
      (magy-org-looks-line end (point)))
    (magy-org-transcript--block-ends (magy-org-transcript--beg item) block end)))

(defun magy-org-transcript--stream (item anew)
  "Draw of the text of ITEM what is not drawn for good; all of it if ANEW."
  (let* ((left (magy-org-transcript--take item anew))
         (whole (plist-get (magy-item-data item) :text))
         (cut (magy-org-transcript--cut left whole))
         (rest (substring left cut)))
    (goto-char (+ (magy-org-transcript--beg item) (magy-item-done item)))
    (unless (and whole (string-empty-p left))
      (delete-region (point) (magy-org-transcript--end item)))
    (setf (magy-item-state item)
          (magy-org-transcript--lines item (substring left 0 cut) (magy-item-state item)))
    (when (and whole (string-empty-p rest))
      (magy-org-transcript--close item)
      (setf (magy-item-state item) nil))
    (setf (magy-item-done item) (- (point) (magy-org-transcript--beg item))
          (magy-item-data item) (plist-put (magy-item-data item) :left rest))
    (cond ((string-empty-p rest))
          ((or whole (string-search "\n" rest))
           (cl-pushnew item magy-transcript--later :test #'eq))
          ;; A line that is not whole yet becomes Org again, with what follows.
          (t (magy-org-transcript--lines item rest (magy-item-state item))))))

(defun magy-org-transcript--draw (item default)
  "Draw ITEM, whose text streams; DEFAULT says whether it is folded."
  (let* ((was (magy-item-shown item))
         (folded (magy-transcript--folded-p item default))
         (data (magy-item-data item))
         (undone (plist-get data :undone)))
    (magy-org-transcript--stream item (or (and was (not folded))
                                          (not (eq undone (plist-get data :grey)))))
    (setf (magy-item-data item) (plist-put (magy-item-data item) :grey undone))
    (let ((beg (magy-org-transcript--beg item)) (end (magy-org-transcript--end item)))
      (when (and was (not folded))
        (remove-text-properties (marker-position (magy-item-start item)) beg '(display nil))
        (remove-text-properties end (magy-transcript--end item) '(display nil)))
      (when undone
        (add-face-text-property beg end 'shadow))
      (when folded
        (if (magy-org-transcript--thought-p item)
            (magy-stream--hide (marker-position (magy-item-start item))
                               (- (magy-transcript--end item) 2))
          (magy-stream--hide beg end))))))

(cl-defmethod magy-transcript-draw
  ((_kind (eql 'agent)) item &context (magy-transcript--style (eql 'org)))
  "Draw the answer ITEM as Org, which MAGY-TRANSCRIPT--STYLE asks for."
  (magy-org-transcript--draw item nil))

(cl-defmethod magy-transcript-draw
  ((_kind (eql 'thought)) item &context (magy-transcript--style (eql 'org)))
  "Draw the thinking ITEM as a block of Org.
MAGY-TRANSCRIPT--STYLE asks for that."
  (magy-org-transcript--draw item (not (eq magy-include-reasoning t))))

(provide 'magy-org-transcript)
;;; magy-org-transcript.el ends here
