;;; magy-review-diff-text.el --- A hunk as part of a diff  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Magy authors
;; SPDX-License-Identifier: GPL-3.0-or-later
;; This is free software with no warranty at all; see the file COPYING.

;;; Commentary:

;; The server says which lines a hunk replaces by which.  Here they are
;; written as a unified diff has them, with lines of the file around them.

;;; Code:

(require 'magy-review-data)
(require 'magy-review-text)

(defcustom magy-review-context 3
  "How many unchanged lines a diff shows around a change."
  :type 'natnum
  :group 'magy-review
  :package-version '(magy . "0.1"))

(defun magy-review-diff--live-lines (file)
  "Return the lines of FILE as it is now, a vector, or nil if they cannot be had."
  (let ((buffer (magy--buffer-of (plist-get file :uri)))
        (path (magy--uri-to-path (plist-get file :uri)))
        (version (plist-get file :docVersion)))
    (cond ((and version buffer
                (with-current-buffer buffer
                  (and (eql version (magy-document-version magy--document))
                       (not (magy--changed-p)))))
           (vconcat (split-string (with-current-buffer buffer (magy--text)) "\n")))
          ((and (null version) (file-regular-p path)
                (< (file-attribute-size (file-attributes path)) 1000000))
           (with-temp-buffer
             (insert-file-contents path)
             (vconcat (split-string (buffer-string) "\n")))))))

(defun magy-review-diff--context (lines from to)
  "Return LINES from number FROM up to TO as context of a diff; clipped."
  (cl-loop for n from (max 0 from) below (min to (length lines))
           ;; Behind the last line end there is no line.
           unless (and (= n (1- (length lines))) (string-empty-p (aref lines n)))
           collect (concat " " (string-remove-suffix "\r" (aref lines n)) "\n")))

(defun magy-review-diff--sided (text sign)
  "Return the lines of TEXT with SIGN in front of each, as in a diff."
  (if (string-empty-p text)
      ""
    (concat (mapconcat (lambda (line) (concat sign line "\n"))
                       (magy-review--line-texts text) "")
            (unless (string-suffix-p "\n" text)
              "\\ No newline at end of file\n"))))

(defun magy-review-diff--count (text)
  "Return how many lines TEXT has."
  (if (string-empty-p text) 0 (length (magy-review--line-texts text))))

(defun magy-review-diff--label (hunk pending)
  "Return what is said in the header of HUNK: how it was decided, unless PENDING."
  (let* ((state (and (not pending) (gethash (plist-get hunk :hunkId) magy-review--states)))
         (reason (plist-get state :reason))
         (about (magy-review-about hunk)))
    (string-join (delq nil (list (and state
                                      (concat (plist-get state :state)
                                              (if reason (format ": %s" reason) "")))
                                 (and (not (string-empty-p about)) about)))
                 " · ")))

(defun magy-review-diff--hunk (file hunk pending lines before after)
  "Return HUNK of FILE as text.
If it is PENDING, LINES of the file from number BEFORE and up to number
AFTER are around it."
  (if (not (magy-review-lines-p hunk))
      (concat (magy-review-sentence hunk)
              (let ((label (magy-review-diff--label hunk pending)))
                (if (string-empty-p label) "" (format "  [%s]" label)))
              "\n")
    (let* ((old (plist-get hunk :oldText)) (new (plist-get hunk :newText))
           (start (magy--get hunk :range :start :line))
           (end (magy-review-diff--end hunk))
           (above (and pending (magy-review-diff--context
                                lines (max before (- start magy-review-context)) start)))
           (below (and pending (magy-review-diff--context
                                lines end (min after (+ end magy-review-context)))))
           (around (+ (length above) (length below)))
           (base (if (magy-review--proposed-p file)
                     start
                   (magy--get hunk :baseRange :start :line))))
      (concat (magy-review-diff--head (- base (length above))
                                      (+ around (magy-review-diff--count old))
                                      (- start (length above))
                                      (+ around (magy-review-diff--count new))
                                      (magy-review-diff--label hunk pending))
              (apply #'concat above)
              (magy-review-diff--sided old "-")
              (magy-review-diff--sided new "+")
              (apply #'concat below)))))

(defun magy-review-diff--head (old-line old-count new-line new-count label)
  "Return the header of a hunk with LABEL.
Its sides begin at OLD-LINE and NEW-LINE, from 0, with OLD-COUNT and
NEW-COUNT lines."
  (let ((side (lambda (line count) (format "%d,%d" (if (zerop count) line (1+ line)) count))))
    (format "@@ -%s +%s @@ %s\n" (funcall side old-line old-count)
            (funcall side new-line new-count) label)))

(defun magy-review-diff--end (hunk)
  "Return the number of the line behind the range of HUNK."
  (let ((end (magy--get hunk :range :end)))
    (+ (plist-get end :line) (if (zerop (plist-get end :character)) 0 1))))

(provide 'magy-review-diff-text)
;;; magy-review-diff-text.el ends here
