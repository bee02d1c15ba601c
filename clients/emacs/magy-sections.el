;;; magy-sections.el --- Moving and folding in Magy's transcripts  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Magy authors
;; SPDX-License-Identifier: GPL-3.0-or-later
;; This is free software with no warranty at all; see the file COPYING.

;;; Commentary:

;; Commands of a transcript, outside of the input: fold, move, visit, interrupt.

;;; Code:

(require 'magy-transcript-edit)

(declare-function magy-session-cancel "magy-modeline")
(declare-function magy-view-cancel "magy-view")

;;;; Folding

(defun magy-transcript--folded-p (item default)
  "Return non-nil if ITEM is to be drawn folded, and note it.
DEFAULT says so until a person chose."
  (setf (magy-item-shown item)
        (pcase (magy-item-folded item)
          ('default default)
          (folded folded))))

(defun magy-transcript--foldable-p (item)
  "Return non-nil if there is something to fold in ITEM, or to unfold."
  (or (magy-item-shown item)
      (save-excursion
        (goto-char (magy-item-start item))
        (< (line-end-position) (- (magy-transcript--end item) 2)))))

(defun magy-transcript--set-folded (items folded)
  "Draw ITEMS as FOLDED says."
  (magy-transcript-edit (lambda ()
                          (dolist (item items)
                            (setf (magy-item-folded item) folded)
                            (magy-transcript-touch item)))))

(defun magy-transcript-toggle ()
  "Fold or unfold the item at point."
  (interactive)
  (let ((item (magy-transcript--at-point)))
    (unless (and item (magy-transcript--foldable-p item))
      (user-error "Nothing here to fold"))
    (magy-transcript--set-folded (list item) (not (magy-item-shown item)))))

(defun magy-transcript-toggle-all ()
  "Fold all thinking and tool calls, or unfold them if they are folded."
  (interactive)
  (magy--in-mode 'magy-transcript-mode)
  (let (items)
    (magy-transcript-map-back (lambda (item)
                                (when (memq (magy-item-kind item) '(thought tool mail))
                                  (push item items))
                                nil))
    (magy-transcript--set-folded items (not (cl-every #'magy-item-shown items)))))

;;;###autoload
(defun magy-toggle-section ()
  "Fold or unfold the section at point, or the last one of the transcript.
The latter from any other buffer of the project."
  (interactive)
  (if (and (derived-mode-p 'magy-transcript-mode) (magy-transcript--at-point))
      (magy-transcript-toggle)
    (with-current-buffer (magy-transcript-buffer (magy-current-project))
      (let ((item (or (magy-transcript-map-back
                       (lambda (item)
                         (and (memq (magy-item-kind item) '(thought tool mail plan))
                              (magy-transcript--foldable-p item)
                              item)))
                      (user-error "Nothing to fold in %s" (buffer-name)))))
        (magy-transcript--set-folded (list item) (not (magy-item-shown item)))))))

;;;; Moving

(defun magy-transcript-next-turn (&optional count)
  "Go to the COUNTth next prompt; backwards if negative."
  (interactive "p")
  (magy--in-mode 'magy-transcript-mode)
  (let* ((here (point)) (count (or count 1)) ahead behind)
    (magy-transcript-map-back
     (lambda (item)
       (when (eq (magy-item-kind item) 'user)
         (let ((start (marker-position (magy-item-start item))))
           (cond ((> start here) (push start ahead))
                 ((< start here) (push start behind)))))
       (>= (length behind) (abs count))))
    (goto-char (or (nth (1- (abs count)) (if (> count 0) ahead (nreverse behind)))
                   (if (> count 0) (point-max) (point-min))))))

(defun magy-transcript-previous-turn (&optional count)
  "Go to the COUNTth previous prompt."
  (interactive "p")
  (magy-transcript-next-turn (- (or count 1))))

;;;; Visiting

(defun magy-transcript--line-here (item)
  "Return the line of the file that point shows in a diff in ITEM, or nil."
  (save-excursion
    (beginning-of-line)
    (let ((here (point)) (count 0))
      (when (re-search-backward "^@@ -[0-9,]+ \\+\\([0-9]+\\)"
                                (magy-item-start item) t)
        (let ((first (string-to-number (match-string 1))))
          (forward-line 1)
          (while (< (point) here)
            (unless (eq (char-after) ?-)
              (cl-incf count))
            (forward-line 1))
          (+ first count))))))

(defun magy-transcript--path-here (data)
  "Return the path that point is at of those of the tool call DATA.
A file tool is about the first one, wherever in it point is; a command is
about none, and may delete what it names."
  (let* ((paths (seq-map (lambda (location) (plist-get location :path))
                         (plist-get data :locations)))
         (named (thing-at-point 'filename t))
         (path (and named (directory-file-name (expand-file-name named)))))
    (cond ((car (member path paths)))
          ((null paths) (user-error "No file here"))
          ((plist-get data :code) (user-error "No file here: go to the name of one"))
          (t (car paths)))))

(cl-defgeneric magy-transcript-visit-item (_kind item)
  "Visit what ITEM, which is of KIND, is about: by default a file."
  (let ((path (magy-transcript--path-here (magy-item-data item)))
        (line (magy-transcript--line-here item)))
    (unless (file-exists-p path)
      (user-error "There is no %s now" (abbreviate-file-name path)))
    (find-file-other-window path)
    (when line
      (goto-char (point-min))
      (forward-line (1- line)))))

(defun magy-transcript-visit ()
  "Visit what is at point: the file of a tool call, the session of an agent."
  (interactive)
  (let ((item (or (magy-transcript--at-point) (user-error "No file here"))))
    (magy-transcript-visit-item (magy-item-kind item) item)))

;;;; Interrupting

(defun magy-transcript-interrupt ()
  "Stop the turn that runs here.
With an active region, a prefix argument or the minibuffer in use, and
when nothing runs, this only quits, as ever."
  (interactive)
  (let ((view magy-transcript--view))
    (cond ((or (region-active-p) current-prefix-arg (active-minibuffer-window)
               (null view) (equal (magy-project-state view) "idle"))
           (keyboard-quit))
          ((eq view magy-transcript--project) (magy-session-cancel view))
          (t (magy-view-cancel view)))))

(provide 'magy-sections)
;;; magy-sections.el ends here
