;;; magy-restored.el --- What was undone, in the transcript  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Magy authors
;; SPDX-License-Identifier: GPL-3.0-or-later
;; This is free software with no warranty at all; see the file COPYING.

;;; Commentary:

;; Going back is told as an update, with ids.  Here it becomes a notice
;; that says what a person knows: which prompt, how many files.  What is
;; not part of the conversation any more is marked.

;;; Code:

(require 'magy-transcript)

(defun magy-restored-show (item update seq)
  "Say in ITEM, a notice, what UPDATE, entry SEQ, undoes or redoes.
Mark what is out of the conversation, or in it again."
  (let* ((undoes (plist-get update :undoes))
         (undone (and undoes (magy-transcript-item (magy-restored-id undoes))))
         (redone (and undoes (not (plist-get (and undone (magy-item-data undone)) :redone)))))
    (magy-transcript-merge item :severity "info" :redone redone
                           :title (if redone "Redone" "Undone")
                           :description (magy-restored--words update redone))
    (when (magy--true (plist-get update :conversation))
      (magy-restored--mark update seq))))

(defun magy-restored-id (id)
  "Return the id of the item that tells of the restore ID."
  (concat "restored " id))

(defun magy-restored--words (update redone)
  "Return what UPDATE is about, and the prompt that it goes back to if not REDONE."
  (let ((count (length (plist-get update :changes)))
        (left (length (plist-get update :conflicts)))
        (talk (magy--true (plist-get update :conversation)))
        (prompt (magy-transcript-item (plist-get update :turnId))))
    (concat
     (string-join (delq nil (list (and (or (> count 0) (not talk)) (magy-restored--files count))
                                  (and talk "the conversation")))
                  " and ")
     (and prompt (not redone)
          (format ", back to before “%s”" (magy-restored--prompt prompt)))
     (and (> left 0) (format "; %s left alone" (magy-restored--files left))))))

(defun magy-restored--files (count)
  "Return COUNT files, in words."
  (format "%d file%s" count (if (= count 1) "" "s")))

(defun magy-restored--prompt (item)
  "Return the beginning of the prompt ITEM."
  (let ((text (mapconcat (lambda (block) (or (plist-get block :text) ""))
                         (plist-get (magy-item-data item) :content) " ")))
    (truncate-string-to-width (car (split-string (string-trim text) "\n")) 60 nil nil "…")))

(defun magy-restored--mark (update seq)
  "Mark what UPDATE, entry SEQ, takes out of the conversation, or back into it."
  (let ((undoes (plist-get update :undoes)) (turn (plist-get update :turnId)))
    (magy-transcript-map-back
     (lambda (item)
       (let ((mark (plist-get (magy-item-data item) :undone)))
         (unless (or (null (magy-item-seq item)) (>= (magy-item-seq item) seq))
           (cond ((and undoes (equal mark undoes))
                  (setf (plist-get (magy-item-data item) :undone) nil)
                  (magy-transcript-touch item))
                 ((and (not undoes) (not mark))
                  (magy-transcript-merge item :undone (plist-get update :restoreId)))))
         (and (not undoes) (equal turn (magy-item-id item))))))))

(provide 'magy-restored)
;;; magy-restored.el ends here
