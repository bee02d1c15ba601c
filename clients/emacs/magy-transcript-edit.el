;;; magy-transcript-edit.el --- Changing a transcript unnoticed  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Magy authors
;; SPDX-License-Identifier: GPL-3.0-or-later
;; This is free software with no warranty at all; see the file COPYING.

;;; Commentary:

;; Whatever changes in a transcript, who reads or writes in it is not
;; disturbed: point and windows stay at what they show, a narrowing stays,
;; and long answers get their looks bit by bit.

;;; Code:

(require 'magy-transcript)

;;;; What is seen

(defun magy-transcript--place (pos)
  "Return what position POS means: an item and an offset in it, or (foot . OFFSET).
The offset in the foot counts from its end."
  (cond ((>= pos magy-transcript--foot) (cons 'foot (- (point-max) pos)))
        ((get-text-property pos 'magy-item)
         (let ((item (get-text-property pos 'magy-item)))
           (cons item (- pos (magy-item-start item)))))
        ;; Above the first item is an offer that comes and goes.
        (t (let* ((pos (next-single-property-change pos 'magy-item nil magy-transcript--foot))
                  (item (get-text-property pos 'magy-item)))
             (if item (cons item 0) '(foot . 0))))))

(defun magy-transcript--position (place)
  "Return the position that PLACE means now."
  (pcase place
    (`(foot . ,offset) (max (magy-transcript-end) (- (point-max) offset)))
    (`(,item . ,offset)
     (if-let ((start (marker-position (magy-item-start item))))
         (min (+ start offset) (max start (1- (magy-transcript--end item))))
       (point-min)))))

(defun magy-transcript--pinned (window)
  "Return WINDOW, what point there means, and what its beginning means.
The latter is nil if the window follows the end."
  (let ((place (magy-transcript--place (window-point window))))
    (when (and (eq (car place) 'foot) (not magy-auto-scroll)
               (not (eq window (selected-window)))
               (> magy-transcript--foot (point-min)))
      (setq place (magy-transcript--place (1- magy-transcript--foot))))
    (list window place
          (unless (eq (car place) 'foot)
            (magy-transcript--place (window-start window))))))

;;;; Changing

(defun magy-transcript-edit (function)
  "Call FUNCTION, which may change items; draw them; keep point in all windows.
A window in whose foot point is goes on showing the end.  What the
person writes, and can undo there, stays; so does what a person has
narrowed the buffer to.  The buffer counts as modified only by a person."
  (magy-transcript-whole
    (let* ((inhibit-read-only t)
           (modified (buffer-modified-p))
           (before (point-max))
           (own (magy-transcript--place (point)))
           (windows (mapcar #'magy-transcript--pinned (get-buffer-window-list nil nil t))))
      (unwind-protect
          (let ((buffer-undo-list t))
            (funcall function)
            (magy-transcript--draw-dirty))
        (setq magy-transcript--dirty nil)
        (unless (= before (point-max))
          (run-hook-with-args 'magy-transcript-moved-functions (- (point-max) before)))
        (goto-char (magy-transcript--position own))
        (pcase-dolist (`(,window ,point ,start) windows)
          (set-window-point window (magy-transcript--position point))
          (when start
            (set-window-start window (magy-transcript--position start) t)))
        (unless modified
          (restore-buffer-modified-p nil))
        (force-mode-line-update)))))

(defun magy-transcript-follow (buffer &optional items)
  "Have the windows of BUFFER, a transcript, show its end from now on.
With ITEMS, only those whose point is in one of them."
  (when (and magy-auto-scroll (buffer-live-p buffer))
    (with-current-buffer buffer
      (unless items
        (goto-char (point-max)))
      (dolist (window (get-buffer-window-list nil nil t))
        (when (or (null items)
                  (memq (get-text-property (window-point window) 'magy-item) items))
          (set-window-point window (point-max)))))))

(defconst magy-transcript--share 16000
  "How many characters of answers get their looks at once; more are felt.")

(defvar magy-transcript--left magy-transcript--share
  "How many characters of answers may get their looks until all is drawn.")

(defvar-local magy-transcript--later nil
  "Items of whose text some has no looks yet.")

(defvar-local magy-transcript--timer nil
  "Timer that gives them theirs.")

(defun magy-transcript--draw-dirty ()
  "Draw the items that have changed; what remains to be done is done soon.
An item that cannot be drawn is said in the log, and keeps what it is."
  (let ((magy-transcript--left magy-transcript--share))
    (dolist (item (nreverse magy-transcript--dirty))
      (magy--guarded "drawing the transcript"
        (magy-transcript-draw (magy-item-kind item) item))))
  (when (and magy-transcript--later (null magy-transcript--timer))
    (setq magy-transcript--timer
          (run-with-timer 0.01 nil #'magy-transcript--go-on (current-buffer)))))

(defun magy-transcript--go-on (buffer)
  "Draw what remains to be drawn in BUFFER."
  (when (buffer-live-p buffer)
    (with-current-buffer buffer
      (let ((items magy-transcript--later))
        (setq magy-transcript--later nil
              magy-transcript--timer nil)
        (magy-transcript-edit
         (lambda ()
           (dolist (item items)
             (when (eq item (magy-transcript-item (magy-item-id item)))
               (magy-transcript-touch item)))))))))

(provide 'magy-transcript-edit)
;;; magy-transcript-edit.el ends here
