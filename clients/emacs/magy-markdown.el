;;; magy-markdown.el --- Light Markdown for Magy's transcripts  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Magy authors
;; SPDX-License-Identifier: GPL-3.0-or-later
;; This is free software with no warranty at all; see the file COPYING.


;;; Commentary:

;; Markdown is fontified line by line, once, with text properties: the
;; work is proportional to what is new, however long the transcript is.
;; The markup stays in the text, hidden, so that copying yields Markdown.

;;; Code:

(defgroup magy-faces nil
  "Faces of Magy's transcripts."
  :group 'magy
  :group 'faces)

(defface magy-heading '((t :inherit bold :height 1.1))
  "Face of a heading in an answer.")

(defface magy-code
  '((((background dark)) :inherit fixed-pitch :foreground "#d7b98a")
    (t :inherit fixed-pitch :foreground "#8a4b08"))
  "Face of code within a line.")

(defface magy-code-block
  '((((min-colors 256) (background dark)) :inherit fixed-pitch :background "#262a33" :extend t)
    (((min-colors 256)) :inherit fixed-pitch :background "#f3f3f0" :extend t)
    (t :inherit fixed-pitch))
  "Face of a block of code.")

(defconst magy-markdown--spans
  '(("\\(`+\\)\\([^`\n]+?\\)\\(\\1\\)" . magy-code)
    ("\\(\\*\\*\\)\\([^ *\n][^*\n]*?\\)\\(\\*\\*\\)" . bold)
    ("\\(?:^\\|[^*[:word:]]\\)\\(\\*\\)\\([^ *\n][^*\n]*?\\)\\(\\*\\)" . italic))
  "Regexps of markup, text, markup, each with the face of the text.")

(defun magy-markdown--hide (beg end)
  "Hide the markup from BEG to END."
  (put-text-property beg end 'invisible 'magy-markup))

(defun magy-markdown--spans-in (end)
  "Fontify spans from point to END, both in one line."
  (let ((beg (point)))
    (pcase-dolist (`(,regexp . ,face) magy-markdown--spans)
      (goto-char beg)
      (while (re-search-forward regexp end t)
        ;; What is code already is not markup.
        (unless (get-text-property (match-beginning 2) 'face)
          (magy-markdown--hide (match-beginning 1) (match-end 1))
          (magy-markdown--hide (match-beginning 3) (match-end 3))
          (put-text-property (match-beginning 2) (match-end 2) 'face face))))))

(defun magy-markdown--line (end fence)
  "Fontify the line from point to END; FENCE is the fence it is within, or nil.
Return the fence that the next line is within."
  (cond
   ((looking-at "[ \t]*\\(```+\\|~~~+\\)\\(.*\\)$")
    (let ((mark (match-string 1)))
      (put-text-property (match-beginning 1) (match-end 1) 'face 'shadow)
      (put-text-property (match-beginning 2) (match-end 2) 'face 'shadow)
      (cond ((null fence) mark)
            ((string-prefix-p fence mark) nil)
            (t fence))))
   (fence
    (put-text-property (point) (min (1+ end) (point-max)) 'face 'magy-code-block)
    fence)
   ((looking-at "\\(#+ +\\)\\(.+\\)$")
    (magy-markdown--hide (match-beginning 1) (match-end 1))
    (put-text-property (match-beginning 2) (match-end 2) 'face 'magy-heading)
    nil)
   (t
    (when (looking-at "\\([ \t]*\\)\\([-*+]\\) ")
      (put-text-property (match-beginning 2) (match-end 2) 'display "•")
      (put-text-property (point) end 'wrap-prefix
                         (make-string (- (match-end 0) (point)) ?\s))
      (goto-char (match-end 0)))
    (when (looking-at "> ")
      (put-text-property (point) end 'face 'shadow))
    (magy-markdown--spans-in end)
    nil)))

(defun magy-markdown-fontify (beg end fence)
  "Fontify the whole lines from BEG to END; FENCE as left by the text before.
Return the fence that is open at END, or nil."
  (save-excursion
    (goto-char beg)
    (while (< (point) end)
      (let ((eol (min end (line-end-position))))
        (setq fence (save-excursion (magy-markdown--line eol fence)))
        (goto-char (min end (1+ eol)))))
    fence))

(provide 'magy-markdown)
;;; magy-markdown.el ends here
