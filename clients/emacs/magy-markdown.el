;;; magy-markdown.el --- Light Markdown for Magy's transcripts  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Magy authors
;; SPDX-License-Identifier: GPL-3.0-or-later
;; This is free software with no warranty at all; see the file COPYING.


;;; Commentary:

;; Markdown is fontified line by line, once, with text properties: the
;; work is proportional to what is new, however long the transcript is.
;; The markup stays in the text, hidden, so that copying yields Markdown.
;; Tables and blocks of code are looked at again when they are complete.

;;; Code:

(require 'magy-blocks)
(require 'magy-media)

(defface magy-heading '((t :inherit bold :height 1.1))
  "Face of a heading in an answer."
  :group 'magy-faces)

(defface magy-code
  '((((background dark)) :inherit fixed-pitch :foreground "#d7b98a")
    (t :inherit fixed-pitch :foreground "#8a4b08"))
  "Face of code within a line."
  :group 'magy-faces)

(defface magy-struck '((t :strike-through t))
  "Face of text that is struck out."
  :group 'magy-faces)

(defconst magy-markdown--spans
  '(("\\(`+\\)\\([^`\n]+?\\)\\(\\1\\)" . magy-code)
    ("\\(\\*\\*\\)\\([^ *\n][^*\n]*?\\)\\(\\*\\*\\)" . bold)
    ("\\(~~\\)\\([^ ~\n][^~\n]*?\\)\\(~~\\)" . magy-struck)
    ("\\(?:^\\|[^*[:word:]]\\)\\(\\*\\)\\([^ *\n][^*\n]*?\\)\\(\\*\\)" . italic)
    ("\\(?:^\\|[^_[:word:]]\\)\\(_\\)\\([^ _\n][^_\n]*?\\)\\(_\\)\\(?:[^_[:word:]]\\|$\\)"
     . italic))
  "Regexps of markup, text, markup, each with the face of the text.")

(defconst magy-markdown--link
  "\\(!?\\[\\)\\([^]\n]+\\)\\(\\](<?\\([^)> \n]+\\)>?\\(?: \"[^\"\n]*\"\\)?)\\)"
  "Regexp of markup, text, markup with the target as the fourth group.")

(defun magy-markdown--hide (beg end)
  "Hide the markup from BEG to END."
  (put-text-property beg end 'invisible 'magy-markup))

(defun magy-markdown--face-p (pos faces)
  "Return non-nil if the character at POS has one of FACES, maybe among others."
  (cl-intersection (ensure-list (get-text-property pos 'face)) faces))

(defun magy-markdown--code-p (beg end)
  "Return non-nil if something from BEG to END is code."
  (cl-loop for pos = beg then (next-single-property-change pos 'face nil end)
           while (< pos end)
           thereis (magy-markdown--face-p pos '(magy-code))))

(defun magy-markdown--links-in (beg end)
  "Fontify the links from BEG to END, both in one line."
  (goto-char beg)
  (while (re-search-forward magy-markdown--link end t)
    (unless (magy-markdown--code-p (match-beginning 0) (match-end 0))
      (let* ((target (match-string-no-properties 4))
             (text (list (match-beginning 2) (match-end 2)))
             (before (list (match-beginning 1) (match-end 1)))
             (after (list (match-beginning 3) (match-end 3)))
             (picture (and (eq (char-after (car before)) ?!) (magy-media-of-file target))))
        (if (eq (char-after (car before)) ?!)
            (put-text-property (car before) (cadr before) 'display "[image: ")
          (apply #'magy-markdown--hide before))
        (apply #'magy-markdown--hide after)
        (when (eq (char-after (car before)) ?!)
          (remove-text-properties (car after) (1+ (car after)) '(invisible nil)))
        (when picture
          (put-text-property (car text) (cadr text) 'display picture))
        (add-text-properties (car text) (cadr text) (magy-link-properties target))
        (goto-char (cadr after)))))
  (magy-link-addresses beg end))

(defun magy-markdown--spans-in (end)
  "Fontify spans from point to END, both in one line."
  (when (save-excursion (re-search-forward "[][`*_~]\\|https?:" end t))
    (magy-markdown--each-span (point) end)))

(defun magy-markdown--each-span (beg end)
  "Fontify the spans from BEG to END, of which there may be some."
  (pcase-dolist (`(,regexp . ,face) magy-markdown--spans)
    (when (eq face 'bold)               ; code is first, and what is in it is no link
      (magy-markdown--links-in beg end))
    (goto-char beg)
    (while (re-search-forward regexp end t)
      (let ((text (list (match-beginning 2) (match-end 2)))
            (before (list (match-beginning 1) (match-end 1)))
            (after (list (match-beginning 3) (match-end 3))))
        ;; What is code or a target already is not markup.
        (unless (or (magy-markdown--face-p (car before) '(magy-code link))
                    (get-text-property (car before) 'invisible)
                    (get-text-property (car after) 'invisible)
                    (get-text-property (car after) 'magy-link))
          (apply #'magy-markdown--hide before)
          (apply #'magy-markdown--hide after)
          (add-face-text-property (car text) (cadr text) face))
        (goto-char (cadr after))))))

(defun magy-markdown--text (end)
  "Fontify the line from point to END, which is in no block."
  (cond
   ((looking-at "\\(#+ +\\)\\(.+\\)$")
    (magy-markdown--hide (match-beginning 1) (match-end 1))
    (add-face-text-property (match-beginning 2) (match-end 2) 'magy-heading)
    (goto-char (match-beginning 2))
    (magy-markdown--spans-in end))
   ((looking-at "\\(?:-\\{3,\\}\\|\\*\\{3,\\}\\|_\\{3,\\}\\)[ \t]*$")
    (put-text-property (point) (match-end 0) 'display (make-string 24 ?─))
    (put-text-property (point) (match-end 0) 'face 'shadow))
   (t
    (when (looking-at "[ \t]*\\(?:\\([-*+]\\)\\|[0-9]+[.)]\\) +")
      (when (match-beginning 1)
        (put-text-property (match-beginning 1) (match-end 1) 'display "•"))
      (put-text-property (point) end 'wrap-prefix
                         (make-string (- (match-end 0) (point)) ?\s))
      (goto-char (match-end 0)))
    (when (looking-at "> ?")
      (put-text-property (match-beginning 0) (1+ (match-beginning 0)) 'display "▏")
      (put-text-property (point) end 'wrap-prefix "▏ ")
      (add-face-text-property (point) end 'shadow t)
      (goto-char (match-end 0)))
    (magy-markdown--spans-in end))))

(defun magy-markdown--line (base end state)
  "Fontify the line from point to END, in a text that begins at BASE.
STATE is what the line is within: nil, (code MARK LANGUAGE OFFSET) or
\(table OFFSET), where OFFSET is that of its first line.  Return the same
for the next line."
  (let ((offset (- (point) base)))
    (pcase state
      (`(code ,mark ,language ,from)
       (if (and (looking-at "[ \t]*\\(```+\\|~~~+\\)[ \t]*$")
                (string-prefix-p mark (match-string 1)))
           (progn
             (magy-blocks-code (+ base from) (point) language)
             (magy-markdown--hide (point) (min (1+ end) (point-max)))
             nil)
         (put-text-property (point) (min (1+ end) (point-max)) 'face 'magy-code-block)
         state))
      ((guard (looking-at "[ \t]*\\(```+\\|~~~+\\)[ \t]*\\([^` \t\n]*\\)[^`\n]*$"))
       (let ((mark (match-string-no-properties 1))
             (language (match-string-no-properties 2)))
         (magy-markdown--fence end language)
         (list 'code mark language (- (min (1+ end) (point-max)) base))))
      ((guard (looking-at "[ \t]*|.*|[ \t]*$"))
       (magy-markdown--spans-in end)
       (or state (list 'table offset)))
      (_
       (when state
         (magy-blocks-table (+ base (cadr state)) (point)))
       (magy-markdown--text end)
       nil))))

(defun magy-markdown--fence (end language)
  "Show of the fence from point to END only the LANGUAGE, if it names one."
  (if (string-empty-p language)
      (magy-markdown--hide (point) (min (1+ end) (point-max)))
    (magy-markdown--hide (point) (search-forward language))
    (remove-text-properties (match-beginning 0) (match-end 0) '(invisible nil))
    (put-text-property (match-beginning 0) end 'face 'shadow)))

(defconst magy-markdown--longest-line 5000
  "A line of so many characters is no prose; it stays as it was written.")

(defun magy-markdown-fontify (base from to state &optional whole)
  "Fontify the whole lines from FROM to TO of a text that begins at BASE.
STATE is what this returned for the text before FROM.  WHOLE means that
the text ends at TO, so that what is still open is complete.  Return the
state for the text behind TO."
  (save-excursion
    (goto-char from)
    (while (< (point) to)
      (let ((eol (min to (line-end-position))))
        (when (< (- eol (point)) magy-markdown--longest-line)
          (setq state (save-excursion (magy-markdown--line base eol state))))
        (goto-char (min to (1+ eol)))))
    (when whole
      (pcase state
        (`(table ,offset) (magy-blocks-table (+ base offset) to))
        (`(code ,_ ,language ,offset) (magy-blocks-code (+ base offset) to language)))
      (setq state nil))
    state))

(provide 'magy-markdown)
;;; magy-markdown.el ends here
