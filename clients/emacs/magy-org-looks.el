;;; magy-org-looks.el --- How Org looks in Magy's transcripts  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Magy authors
;; SPDX-License-Identifier: GPL-3.0-or-later
;; This is free software with no warranty at all; see the file COPYING.

;;; Commentary:

;; A transcript in Org has the faces of Org, given line by line and once,
;; as text properties: the work is proportional to what is new.  Only the
;; targets of links are hidden.  A model writes what is shown, so that
;; links open as in a transcript in Markdown and nothing else is live.

;;; Code:

(require 'magy-blocks)
(require 'magy-media)
(require 'org-faces)

(defconst magy-org-looks--spans
  '(("~[^~\n]+~" . org-code)
    ("=[^ =\n][^=\n]*=" . org-verbatim)
    ("\\(?:^\\|[^*[:word:]]\\)\\(\\*[^ *\n][^*\n]*?\\*\\)" . bold)
    ("\\(?:^\\|[- (\"'{]\\)\\(/[^ /\n][^/\n]*?/\\)\\(?:$\\|[- )\"'.,;:!?}]\\)" . italic)
    ("\\(?:^\\|[- (\"'{]\\)\\(\\+[^ +\n][^+\n]*?\\+\\)\\(?:$\\|[- )\"'.,;:!?}]\\)" . magy-struck))
  "Regexps of marked text, each with its face; code is first.")

(defun magy-org-looks--links (beg end)
  "Give the links between BEG and END, both in one line, their looks."
  (goto-char beg)
  (while (re-search-forward "\\[\\[\\([^]\n]+\\)\\]\\(?:\\[\\([^]\n]+\\)\\]\\)?\\]" end t)
    (let* ((target (match-string-no-properties 1))
           (text (if (match-beginning 2) 2 1))
           (picture (and (eq text 1) (magy-media-of-file target))))
      (put-text-property (match-beginning 0) (match-beginning text) 'invisible 'magy-markup)
      (put-text-property (match-end text) (match-end 0) 'invisible 'magy-markup)
      (when picture
        (put-text-property (match-beginning text) (match-end text) 'display picture))
      (add-text-properties (match-beginning text) (match-end text)
                           (magy-link-properties target))))
  (magy-link-addresses beg end))

(defun magy-org-looks--spans-in (beg end)
  "Give what is marked between BEG and END, both in one line, its looks."
  (goto-char beg)
  (when (re-search-forward "[][~=*/+]" end t)
    (pcase-dolist (`(,regexp . ,face) magy-org-looks--spans)
      (when (eq face 'bold)             ; code is first, and what is in it is no link
        (magy-org-looks--links beg end))
      (goto-char beg)
      (while (re-search-forward regexp end t)
        (let ((from (or (match-beginning 1) (match-beginning 0)))
              (to (or (match-end 1) (match-end 0))))
          (unless (or (memq (get-text-property from 'face) '(org-code org-verbatim link))
                      (get-text-property from 'invisible))
            (add-face-text-property from to face))
          (goto-char to))))))

(defun magy-org-looks-line (beg end)
  "Give the Org from BEG to END, a line that is in no code, its looks."
  (save-excursion
    (goto-char beg)
    (cond
     ((looking-at "\\*+ ")
      (let ((level (1- (- (match-end 0) beg))))
        (magy-org-looks--spans-in (match-end 0) end)
        (add-face-text-property beg end (nth (% (1- level) 8) org-level-faces) t)))
     ((looking-at "#\\+begin_") (put-text-property beg end 'face 'org-block-begin-line))
     ((looking-at "#\\+end_") (put-text-property beg end 'face 'org-block-end-line))
     ((looking-at ": ") (put-text-property beg end 'face 'shadow))
     (t
      (when (looking-at "[ \t]*\\(?:[-+]\\|[0-9]+[.)]\\) +")
        (put-text-property beg end 'wrap-prefix (make-string (- (match-end 0) beg) ?\s)))
      (magy-org-looks--spans-in beg end)))))

(defun magy-org-looks-text (text face)
  "Return TEXT, whole items in Org, with its looks.
FACE is called with each line in a block and returns its face."
  (with-temp-buffer
    (insert text)
    (goto-char (point-min))
    (let (within)
      (while (not (eobp))
        (let ((beg (point)) (end (line-end-position)))
          (cond ((looking-at "#\\+begin_")
                 (setq within face)
                 (magy-org-looks-line beg end))
                ((looking-at "#\\+end_")
                 (setq within nil)
                 (magy-org-looks-line beg end))
                (within
                 (add-face-text-property beg end (funcall within (buffer-substring beg end)) t))
                (t (magy-org-looks-line beg end))))
        (forward-line 1)))
    (buffer-string)))

(provide 'magy-org-looks)
;;; magy-org-looks.el ends here
