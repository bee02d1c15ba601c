;;; magy-positions.el --- Places in a buffer, as the wire says them  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Magy authors
;; SPDX-License-Identifier: GPL-3.0-or-later
;; This is free software with no warranty at all; see the file COPYING.

;;; Commentary:

;; LSP counts lines from 0 and columns in units of an encoding that was
;; agreed upon.  Here are the ways there and back.

;;; Code:

(require 'magy-project)

(defun magy--wide (encoding beg end)
  "Return how many more units than characters ENCODING needs from BEG to END."
  (if (eq encoding 'utf-32)
      0
    (save-excursion
      (goto-char beg)
      (let ((count 0))
        (while (re-search-forward "[\U00010000-\U0010ffff]" end t)
          (cl-incf count))
        count))))

(defun magy--position (pos encoding &optional line)
  "Return the LSP position of buffer position POS in ENCODING.
LINE is the number of its line, from 0, if that is known already."
  (save-excursion
    (save-restriction
      (widen)
      (goto-char pos)
      (let ((bol (let ((inhibit-field-text-motion t)) (line-beginning-position))))
        (list :line (or line (1- (line-number-at-pos pos t)))
              :character (+ (- pos bol) (magy--wide encoding bol pos)))))))

(defun magy--point (position encoding &optional from)
  "Return the buffer position of LSP POSITION in ENCODING.
A character beyond the end of its line means that end.
FROM, if any, is a list (LINE BEGINNING) of a line that is known, which
is changed to the one found, so that many in order are found quickly."
  (save-excursion
    (save-restriction
      (widen)
      (let ((inhibit-field-text-motion t)
            (line (plist-get position :line))
            (left (plist-get position :character))
            (near '(0 1)))
        (when (and from (>= line (car from)))
          (setq near from))
        (goto-char (cadr near))
        (when (and (zerop (forward-line (- line (car near)))) (bolp))
          (when from
            (setf (car from) line
                  (cadr from) (point)))
          (if (eq encoding 'utf-32)
              (goto-char (min (line-end-position) (+ (point) left)))
            (while (and (> left 0) (not (eolp)))
              (cl-decf left (if (> (char-after) #xffff) 2 1))
              (forward-char))))
        (point)))))

(defun magy--range (beg end encoding)
  "Return the LSP range from BEG to END in ENCODING."
  (let* ((start (magy--position beg encoding))
         (lines (save-restriction
                  (widen)
                  (narrow-to-region beg end)
                  (1- (line-number-at-pos end)))))
    (list :start start
          :end (magy--position end encoding (+ (plist-get start :line) lines)))))

(defun magy--text (&optional beg end)
  "Return the current buffer's text from BEG to END, or all of it, for JSON."
  (save-restriction
    (widen)
    (magy--json-text (buffer-substring-no-properties (or beg (point-min))
                                                     (or end (point-max))))))

(provide 'magy-positions)
;;; magy-positions.el ends here
