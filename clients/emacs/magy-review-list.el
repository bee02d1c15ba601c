;;; magy-review-list.el --- The files under review  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Magy authors
;; SPDX-License-Identifier: GPL-3.0-or-later
;; This is free software with no warranty at all; see the file COPYING.

;;; Commentary:

;; A table of the files of a project in which something waits for a
;; decision.  It stays in step by itself.

;;; Code:

(require 'magy-review)
(require 'tabulated-list)

(defvar-local magy-review-list--project nil
  "The project whose files are listed.")

(defvar magy-review-list-mode-map
  (let ((map (make-sparse-keymap)))
    (pcase-dolist (`(,key . ,command)
                   '(("RET" . magy-review-list-visit) ("a" . magy-review-list-accept)
                     ("r" . magy-review-list-reject) ("=" . magy-review-diff)
                     ("u" . magy-review-undo-decision) ("A" . magy-review-accept-all)
                     ("R" . magy-review-reject-all) ("b" . magy-review-base)
                     ("E" . magy-review-ediff)))
      (define-key map (kbd key) command))
    map)
  "Keymap of `magy-review-list-mode'.")

(define-derived-mode magy-review-list-mode tabulated-list-mode "Magy Review"
  "List the files in which something waits for a decision.
\\{magy-review-list-mode-map}"
  (setq tabulated-list-format [("File" 44 t)
                               ("Status" 9 t)
                               ("Changes" 8 magy-review-list--fewer-p :right-align t)
                               ("+" 6 nil :right-align t)
                               ("-" 6 nil :right-align t)
                               ("" 30 nil)]
        tabulated-list-padding 1
        magy-review-target-function #'magy-review-list--targets)
  (add-hook 'tabulated-list-revert-hook #'magy-review-list--fill nil t)
  (tabulated-list-init-header))

(defun magy-review-list--fewer-p (a b)
  "Return non-nil if row A has fewer changes than row B."
  (< (plist-get (car a) :pending) (plist-get (car b) :pending)))

(defun magy-review-list--row (project entry)
  "Return the row of ENTRY of PROJECT."
  (let ((number (lambda (key face)
                  (let ((count (plist-get entry key)))
                    (if (zerop count) "" (propertize (number-to-string count) 'face face))))))
    (list entry
          (vector (propertize (magy-review--name project (plist-get entry :path)) 'face 'link)
                  (plist-get entry :status)
                  (number-to-string (plist-get entry :pending))
                  (funcall number :added 'success)
                  (funcall number :removed 'error)
                  (if (magy-review--proposed-p entry)
                      (propertize "proposed, not applied yet" 'face 'magy-review-note)
                    "")))))

(defun magy-review-list--fill ()
  "Make the rows from what the project knows."
  (let ((project magy-review-list--project))
    (setq tabulated-list-entries
          (mapcar (lambda (entry) (magy-review-list--row project entry))
                  (magy-project-reviews project)))))

(defun magy-review-list--print ()
  "Draw the rows anew; point stays at its file, or else at its line."
  (let ((path (plist-get (tabulated-list-get-id) :path)) (line (line-number-at-pos)))
    (magy-review-list--fill)
    (tabulated-list-print)
    (goto-char (point-min))
    (while (not (or (eobp) (equal path (plist-get (tabulated-list-get-id) :path))))
      (forward-line))
    (when (eobp)
      (goto-char (point-min))
      (forward-line (1- line))
      (when (and (eobp) (not (bobp))) (forward-line -1)))
    (dolist (window (get-buffer-window-list nil nil t))
      (set-window-point window (point)))
    (setq mode-line-process (if tabulated-list-entries "" " nothing waits"))))

(defun magy-review-list (project)
  "Show the list of files of PROJECT that are under review, and go there."
  (let ((buffer (get-buffer-create (format "*magy review: %s*" (magy-project-name project)))))
    (with-current-buffer buffer
      (magy-review-list-mode)
      (setq magy-review-list--project project
            magy--own-project project
            default-directory (magy-project-root project))
      (magy-review-list--print))
    (pop-to-buffer buffer)
    (magy-when-ready project #'ignore)))

(defun magy-review-list--redraw (project _paths)
  "Show the list of PROJECT as it is now, if it is shown."
  (dolist (buffer (buffer-list))
    (when (eq project (buffer-local-value 'magy-review-list--project buffer))
      (with-current-buffer buffer (magy-review-list--print)))))

(add-hook 'magy-review-changed-functions #'magy-review-list--redraw)

(defun magy-review-list--targets ()
  "Return the file at point as a target, see `magy-review--targets'."
  (list (list magy-review-list--project
              (or (tabulated-list-get-id) (user-error "No file on this line")))))

(defun magy-review-list-accept ()
  "Accept all changes of the file at point."
  (interactive nil magy-review-list-mode)
  (magy-review--decide "accept" (magy-review-list--targets)))

(defun magy-review-list-reject (&optional prefix)
  "Reject all changes of the file at point; with PREFIX, say why."
  (interactive "P" magy-review-list-mode)
  (magy-review--decide "reject" (magy-review-list--targets) (magy-review--reason prefix)))

(defun magy-review-list-visit ()
  "Go to the first change of the file at point, in another window."
  (interactive nil magy-review-list-mode)
  (let ((project magy-review-list--project) (entry (cadar (magy-review-list--targets))))
    (magy-review--get
     project entry
     (lambda (file)
       (if-let ((hunk (and file (seq-first (plist-get file :hunks)))))
           (run-with-timer 0 nil #'magy-review--visit project
                           (list :uri (plist-get file :uri) :range (plist-get hunk :range)
                                 :hunkId (plist-get hunk :hunkId)))
         (magy--message "Magy: nothing in this file waits any more"))))))

(provide 'magy-review-list)
;;; magy-review-list.el ends here
