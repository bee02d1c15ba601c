;;; magy-stream.el --- Drawing what streams into Magy's transcripts  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Magy authors
;; SPDX-License-Identifier: GPL-3.0-or-later
;; This is free software with no warranty at all; see the file COPYING.

;;; Commentary:

;; Answers and thinking grow at their end.  Only what is new is inserted
;; and fontified, so that a batch costs the same however long the text is.

;;; Code:

(require 'magy-render)

(defun magy-stream--take (item)
  "Return what has streamed into ITEM since the last time."
  (prog1 (apply #'concat (reverse (magy-item-pending item)))
    (setf (magy-item-pending item) nil)))

;;;; Answers

(cl-defmethod magy-transcript-draw ((_kind (eql 'agent)) item)
  "Insert what is new in the answer ITEM, and fontify whole lines.
It is followed by two newlines that are not part of it."
  (let* ((whole (plist-get (magy-item-data item) :text))
         (begin (marker-position (magy-item-start item)))
         (start (+ begin (magy-item-head item)))
         (end (- (magy-transcript--end item) 2))
         (new (magy-stream--take item)))
    (when (and whole (not (equal whole (buffer-substring-no-properties start end))))
      (delete-region start end)
      (magy-stream--anew item)
      (setq end start new whole))
    (goto-char end)
    (insert (magy-transcript--mark new item))
    (setq end (point))
    (set-marker (magy-item-start item) begin)
    (when (magy-item-shown item)        ; it was folded until now
      (magy-stream--show item start end))
    (cond ((magy-transcript--folded-p item nil)
           (magy-stream--hide start end))
          ((plist-get (magy-item-data item) :undone)
           (magy-stream--show item start end)
           (magy-stream--fontify item start end whole)
           (add-face-text-property start end 'shadow))
          ((magy-stream--fontify item start end whole)
           (cl-pushnew item magy-transcript--later :test #'eq)))))

(defun magy-stream--anew (item)
  "Have ITEM fontified from its beginning."
  (setf (magy-item-done item) 0
        (magy-item-state item) nil))

(defconst magy-stream--longest 400000
  "How many characters of an answer get looks; the rest stays as it was written.")

(defun magy-stream--fontify (item start end whole)
  "Fontify lines of ITEM between START and END that are new, as many as may be.
The last one is complete if the text is WHOLE.  Return non-nil if more
remain than `magy-transcript--left' allows."
  (let* ((from (+ start (magy-item-done item)))
         (cut (min end (+ start magy-stream--longest)))
         (last (if (and whole (= cut end)) end (max from (magy-stream--line-start cut))))
         (to (if (<= (- last from) magy-transcript--left)
                 last
               (min last (magy-stream--next-line (+ from magy-transcript--left)))))
         (complete (and whole (>= to last))))
    (when (or (< from to) (and complete (magy-item-state item)))
      (setf (magy-item-state item)
            (magy-markdown-fontify start from (max from to) (magy-item-state item) complete)
            (magy-item-done item) (- (max from to) start))
      (setq magy-transcript--left (max 0 (- magy-transcript--left (- to from))))
      (when (and (= to last) (< last end) (> (- end start) magy-stream--longest))
        (magy--message "Magy: an answer is so long that only its beginning is shown as Markdown")))
    (< to last)))

(defun magy-stream--line-start (pos)
  "Return where the line of POS begins."
  (save-excursion
    (goto-char pos)
    (line-beginning-position)))

(defun magy-stream--next-line (pos)
  "Return where the line behind that of POS begins."
  (save-excursion
    (goto-char pos)
    (line-beginning-position 2)))

(defun magy-stream--show (item start end)
  "Take all looks from ITEM's text between START and END."
  (remove-list-of-text-properties
   start end '(face invisible display line-prefix wrap-prefix mouse-face help-echo keymap
                    magy-link))
  (magy-stream--anew item))

(defun magy-stream--hide (start end)
  "Fold the text from START to END to its first line."
  (goto-char start)
  (let ((eol (line-end-position)))
    (when (< eol end)
      (remove-list-of-text-properties eol end '(invisible))
      (put-text-property eol end 'display
                         (magy-transcript--more (1- (count-lines start end)))))))

;;;; Thinking

(defun magy-stream--think (item)
  "Take what has streamed into the thinking ITEM into its data; return it."
  (let* ((new (magy-stream--take item))
         (data (magy-item-data item)))
    (setf (magy-item-data item)
          (plist-put (plist-put data :parts (cons new (plist-get data :parts)))
                     :lines (+ (cl-count ?\n new) (or (plist-get data :lines) 0))))
    new))

(defun magy-stream-thought (item)
  "Return the text of the thinking ITEM."
  (let ((data (magy-item-data item)))
    (or (plist-get data :text)
        (apply #'concat (reverse (plist-get data :parts))))))

(cl-defmethod magy-transcript-draw ((_kind (eql 'thought)) item)
  "Draw the thinking ITEM; if it is open and only grew, insert what is new."
  (let* ((new (magy-stream--think item))
         (data (magy-item-data item))
         (folded (magy-transcript--folded-p item (not (eq magy-include-reasoning t)))))
    (if (or folded (plist-get data :text) (not (plist-get data :open)))
        (progn
          (setf (magy-item-data item) (plist-put data :open (not folded)))
          (cl-call-next-method))
      (let ((start (marker-position (magy-item-start item))))
        (goto-char (- (magy-transcript--end item) 2))
        (insert (magy-transcript--mark (magy-transcript--indent new 'magy-thought) item))
        (set-marker (magy-item-start item) start)))))

(cl-defmethod magy-transcript-render ((_kind (eql 'thought)) item)
  "Draw ITEM, some thinking."
  (let ((head (propertize "✻ Thinking" 'face 'magy-thought))
        (text (plist-get (magy-item-data item) :text)))
    (if (magy-item-shown item)
        (concat head (magy-transcript--more
                      (1+ (if text
                              (cl-count ?\n text)
                            (plist-get (magy-item-data item) :lines))))
                "\n")
      (concat head "\n"
              (magy-transcript--indent (magy-stream-thought item) 'magy-thought) "\n"))))

(provide 'magy-stream)
;;; magy-stream.el ends here
