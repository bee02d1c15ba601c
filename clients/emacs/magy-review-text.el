;;; magy-review-text.el --- A change as text to look at  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Magy authors
;; SPDX-License-Identifier: GPL-3.0-or-later
;; This is free software with no warranty at all; see the file COPYING.

;;; Commentary:

;; What both the overlays in a file and its diff need: faces, the lines of
;; a hunk with the words that differ, and what there is to say about it.

;;; Code:

(require 'diff-mode)
(require 'magy-positions)

(defgroup magy-review nil
  "How changes under review are shown."
  :group 'magy
  :prefix "magy-review-")

(defcustom magy-review-removed-lines 30
  "How many of the lines that a change removed are shown above it."
  :type 'natnum
  :group 'magy-review
  :package-version '(magy . "0.1"))

(defface magy-review-added '((t :inherit diff-added :extend t))
  "Face of lines that an agent added."
  :group 'magy-review)

(defface magy-review-removed '((t :inherit diff-removed :extend t))
  "Face of lines that an agent removed."
  :group 'magy-review)

(defface magy-review-added-word '((t :inherit diff-refine-added))
  "Face of words that an agent added."
  :group 'magy-review)

(defface magy-review-removed-word '((t :inherit diff-refine-removed))
  "Face of words that an agent removed."
  :group 'magy-review)

(defface magy-review-note '((t :inherit shadow))
  "Face of what is said about a change.")

(defface magy-review-conflict '((t :inherit warning))
  "Face of the note that a change does not fit any more."
  :group 'magy-review)

(defface magy-review-fringe '((t :inherit success))
  "Face of the mark in the fringe."
  :group 'magy-review)

(defun magy-review--line-texts (text)
  "Return the lines of TEXT, without their ends."
  (split-string (string-remove-suffix "\n" (string-replace "\r\n" "\n" text)) "\n"))

(defun magy-review-hunk-words (hunk side)
  "Return the words of HUNK that differ on SIDE, old or new."
  (cl-remove-if-not (lambda (word) (equal side (plist-get word :side)))
                    (append (plist-get hunk :words) nil)))

(defun magy-review-columns (line from to encoding)
  "Return (FROM . TO), columns of the string LINE in ENCODING, as characters."
  (with-temp-buffer
    (insert line)
    (cons (1- (magy--point (list :line 0 :character from) encoding))
          (1- (magy--point (list :line 0 :character to) encoding)))))

(defun magy-review--shown-lines (text words face word-face encoding)
  "Return TEXT for display in FACE, its WORDS in WORD-FACE, shortened when long."
  (let* ((lines (vconcat (magy-review--line-texts text)))
         (shown (min (length lines) magy-review-removed-lines)))
    (dolist (word words)
      (let ((n (plist-get word :line)))
        (when (< n shown)
          (let* ((line (copy-sequence (aref lines n)))
                 (at (magy-review-columns line (plist-get word :start) (plist-get word :end)
                                          encoding)))
            (put-text-property (car at) (cdr at) 'face word-face line)
            (aset lines n line)))))
    (let ((string (mapconcat (lambda (line) (concat line "\n")) (seq-take lines shown) "")))
      (add-face-text-property 0 (length string) face t string)
      (concat string
              (when (< shown (length lines))
                (propertize (format "… %d more lines\n" (- (length lines) shown))
                            'face (list 'magy-review-note face)))))))

(defun magy-review-sentence (hunk)
  "Return what HUNK, which is of a file as a whole, has done, as a sentence."
  (let ((old (or (plist-get hunk :oldText) ""))
        (new (or (plist-get hunk :newText) "")))
    (pcase (plist-get hunk :kind)
      ("create" (format "The file is new: %s." new))
      ("remove" (format "The file is removed; it was %s." old))
      ("rename" (format "The file was %s before." (abbreviate-file-name old)))
      ("binary" (format "The file is %s; it was %s." new old))
      (_ (format "It is %s; it was %s." new old)))))

(defun magy-review-lines-p (hunk)
  "Return non-nil if HUNK is of lines, and not of a file as a whole."
  (member (plist-get hunk :kind) '("add" "change" "delete")))

(defun magy-review-about (hunk)
  "Return what there is to say of HUNK beside its text: who, comments, conflict."
  (let* ((origins (append (plist-get hunk :origins) nil))
         (commands (delq nil (mapcar (lambda (origin)
                                       (let ((command (plist-get origin :command)))
                                         (and command (not (string-empty-p command)) command)))
                                     origins))))
    (string-join
     (delq nil
           (list (and origins
                      (concat "by "
                              (string-join
                               (delete-dups (mapcar (lambda (o) (plist-get o :agent)) origins))
                               ", ")))
                 (and commands (concat "while running " (car commands)))
                 (and (magy--true (plist-get hunk :amended)) "changed by you")
                 (and (equal "conflict" (plist-get hunk :state))
                      (propertize "these lines have changed since" 'face 'magy-review-conflict))
                 (and (not (seq-empty-p (plist-get hunk :comments)))
                      (mapconcat (lambda (comment) (format "“%s”" (plist-get comment :text)))
                                 (plist-get hunk :comments) " "))))
     " · ")))

(provide 'magy-review-text)
;;; magy-review-text.el ends here
