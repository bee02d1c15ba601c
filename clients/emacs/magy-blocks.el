;;; magy-blocks.el --- Tables and code in Magy's transcripts  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Magy authors
;; SPDX-License-Identifier: GPL-3.0-or-later
;; This is free software with no warranty at all; see the file COPYING.

;;; Commentary:

;; Looks of blocks that are complete: the columns of a table stand below
;; each other, and code has the colours of its language.  Both are text
;; properties only.

;;; Code:

(require 'cl-lib)
(require 'magy-options)
(require 'subr-x)

(defgroup magy-faces nil
  "Faces of Magy's transcripts."
  :group 'magy
  :group 'faces)

(defface magy-code-block
  '((((min-colors 256) (background dark)) :inherit fixed-pitch :background "#262a33" :extend t)
    (((min-colors 256)) :inherit fixed-pitch :background "#f3f3f0" :extend t)
    (t :inherit fixed-pitch))
  "Face of a block of code."
  :group 'magy-faces)

;;;; Code

(defconst magy-blocks--longest 50000
  "Characters of the longest block that is given its colours.")

(defconst magy-blocks--languages
  '(("bash" . sh-mode) ("sh" . sh-mode) ("shell" . sh-mode) ("zsh" . sh-mode)
    ("console" . sh-mode) ("elisp" . emacs-lisp-mode) ("lisp" . lisp-mode) ("c++" . c++-mode)
    ("cpp" . c++-mode) ("c" . c-mode) ("py" . python-mode) ("python" . python-mode)
    ("javascript" . js-mode) ("json" . js-mode) ("diff" . diff-mode) ("html" . html-mode)
    ("make" . makefile-mode) ("makefile" . makefile-mode) ("ini" . conf-mode)
    ("toml" . conf-toml-mode) ("perl" . perl-mode) ("ruby" . ruby-mode) ("sql" . sql-mode))
  "Languages whose mode their file names do not tell.")

(defvar magy-blocks--waiting nil
  "Blocks that get their colours when Emacs is idle: (BEG END MODE), markers.")

(defvar magy-blocks--timer nil
  "Timer for them, or nil.")

(defun magy-blocks--mode (language)
  "Return the major mode for LANGUAGE, or nil.
A model names the language, so that only modes for files will do."
  (let* ((language (downcase language))
         (name (intern-soft (concat language "-mode")))
         (mode (or (cdr (assoc language magy-blocks--languages))
                   (and name (cl-find name auto-mode-alist :key #'magy-blocks--mode-of)
                        name)
                   (let ((case-fold-search nil))
                     (magy-blocks--mode-of
                      (cl-find-if (lambda (entry)
                                    (string-match-p (car entry) (concat "a." language)))
                                  auto-mode-alist))))))
    (and (symbolp mode) (fboundp mode) mode)))

(defun magy-blocks--mode-of (entry)
  "Return the mode in ENTRY of `auto-mode-alist'."
  (if (consp (cdr entry)) (cadr entry) (cdr entry)))

(defun magy-blocks--colours (code mode)
  "Return the faces of CODE in MODE as a list of (BEG END FACE), offsets."
  (with-current-buffer (get-buffer-create (format " *magy %s*" mode))
    (let ((inhibit-read-only t) (inhibit-message t) (pos (point-min)) faces)
      (unless (eq major-mode mode)
        (delay-mode-hooks (funcall mode)))
      (setq buffer-undo-list t)
      (erase-buffer)
      (insert code)
      (font-lock-ensure)
      (while (< pos (point-max))
        (let ((end (next-single-property-change pos 'face nil (point-max)))
              (face (get-text-property pos 'face)))
          (when face
            (push (list (1- pos) (1- end) face) faces))
          (setq pos end)))
      (erase-buffer)
      faces)))

(defun magy-blocks--colour (beg end mode)
  "Give the code from BEG to END the colours of MODE."
  (with-demoted-errors "Magy: colours of code: %S"
    (pcase-dolist (`(,from ,to ,face)
                   (magy-blocks--colours (buffer-substring-no-properties beg end) mode))
      (add-face-text-property (+ beg from) (+ beg to) face))))

(defun magy-blocks-code (beg end language)
  "Give the code from BEG to END the colours of LANGUAGE.
At once if it is short, when Emacs is idle if it is long."
  (let ((mode (and (< beg end) (not (string-empty-p language))
                   (< (- end beg) magy-blocks--longest)
                   (magy-blocks--mode language))))
    (cond ((null mode))
          ((< (- end beg) magy-ui-fontify-threshold) (magy-blocks--colour beg end mode))
          (t (setq magy-blocks--waiting
                   (append magy-blocks--waiting
                           (list (list (copy-marker beg) (copy-marker end) mode))))
             (unless magy-blocks--timer
               (setq magy-blocks--timer
                     (run-with-idle-timer 0.2 t #'magy-blocks--idle)))))))

(defun magy-blocks--idle ()
  "Give the blocks that wait their colours, until a person types."
  (while (and magy-blocks--waiting (not (input-pending-p)))
    (pcase-let ((`(,beg ,end ,mode) (pop magy-blocks--waiting)))
      (when (and (buffer-live-p (marker-buffer beg)) (< beg end))
        (with-current-buffer (marker-buffer beg)
          (let ((inhibit-read-only t) (buffer-undo-list t))
            (magy-blocks--colour (marker-position beg) (marker-position end) mode))))
      (set-marker beg nil)
      (set-marker end nil)))
  (unless (or magy-blocks--waiting (null magy-blocks--timer))
    (cancel-timer magy-blocks--timer)
    (setq magy-blocks--timer nil)))

;;;; Tables

(defconst magy-blocks--most-rows 300
  "Rows of the longest table that is aligned.")

(defun magy-blocks--width (beg end)
  "Return how many columns the text from BEG to END takes as it is shown."
  (let ((width 0))
    (while (< beg end)
      (let ((next (next-single-property-change beg 'invisible nil end)))
        (unless (invisible-p beg)
          (setq width (+ width (string-width (buffer-substring beg next)))))
        (setq beg next)))
    width))

(defun magy-blocks--bars (end rule)
  "Return the positions of the bars between point and END, in one line.
In Org a line between rows, which RULE says this is, has crosses, too."
  (let (bars)
    (while (re-search-forward (if rule "[|+]" "\\\\.\\||") end t)
      (when (and (memq (char-before) '(?| ?+)) (= 1 (- (match-end 0) (match-beginning 0)))
                 (not (eq (get-text-property (match-beginning 0) 'face) 'magy-code)))
        (push (match-beginning 0) bars)))
    (nreverse bars)))

(defun magy-blocks--rows (beg end)
  "Return the rows of the table from BEG to END: (RULE-P . BARS)."
  (let (rows)
    (goto-char beg)
    (while (< (point) end)
      (let ((rule (looking-at "[ \t]*|\\(?:[-:| \t]+\\|-[-+]+|[ \t]*\\)$")))
        (push (cons rule (magy-blocks--bars (min end (line-end-position)) rule)) rows))
      (forward-line 1))
    (nreverse rows)))

(defun magy-blocks--bar (pos shown)
  "Have the bar at POS look like SHOWN."
  (put-text-property pos (1+ pos) 'display (propertize shown 'face 'shadow)))

(defun magy-blocks--pad (from to width rule)
  "Show the cell between the bars FROM and TO as WIDTH columns; as a line if RULE."
  (if rule
      (put-text-property (1+ from) to 'display (propertize (make-string width ?─) 'face 'shadow))
    (let ((missing (- width (magy-blocks--width (1+ from) to))))
      (put-text-property to (1+ to) 'display
                         (concat (make-string (max 0 missing) ?\s)
                                 (propertize "│" 'face 'shadow))))))

(defun magy-blocks--room ()
  "Return how many columns a line of the current buffer has where it is shown."
  (1- (window-width (or (get-buffer-window nil t) (selected-window)))))

(defun magy-blocks--widths (rows)
  "Return the width of each column of ROWS, as (NUMBER . WIDTH)."
  (let (widths)
    (pcase-dolist (`(,rule . ,bars) rows)
      (unless rule
        (cl-loop for (from to) on bars for n from 0
                 when to
                 do (let ((width (magy-blocks--width (1+ from) to)))
                      (setf (alist-get n widths) (max width (alist-get n widths 0)))))))
    widths))

(defun magy-blocks--row (rule bars widths)
  "Show the row with BARS, a line between rows if RULE, in columns of WIDTHS."
  (magy-blocks--bar (car bars) (if rule "├" "│"))
  (cl-loop for (from . more) on bars for n from 0
           when more
           do (magy-blocks--pad from (car more) (alist-get n widths 1) rule)
           and when rule
           do (magy-blocks--bar (car more) (if (cdr more) "┼" "┤"))))

(defun magy-blocks--wrapped-row (rule bars room)
  "Show the row with BARS, a line between rows if RULE, in ROOM columns.
It is of a table that is too wide for columns."
  (if rule
      (put-text-property (car bars) (1+ (car (last bars))) 'display
                         (propertize (make-string room ?─) 'face 'shadow))
    (dolist (bar bars) (magy-blocks--bar bar "│"))
    (put-text-property (car bars) (1+ (car (last bars))) 'wrap-prefix "    ")))

(defun magy-blocks-table (beg end)
  "Have the columns of the table from BEG to END stand below each other.
Where that has no room, its rows are wrapped instead."
  (save-excursion
    (let* ((rows (magy-blocks--rows beg end))
           (widths (and (<= (length rows) magy-blocks--most-rows) (magy-blocks--widths rows)))
           (room (magy-blocks--room))
           (wrapped (> (cl-loop for (_ . width) in widths sum (1+ width)) (1- room))))
      (pcase-dolist (`(,rule . ,bars) rows)
        (if wrapped
            (magy-blocks--wrapped-row rule bars room)
          (magy-blocks--row rule bars widths))))))

(provide 'magy-blocks)
;;; magy-blocks.el ends here
