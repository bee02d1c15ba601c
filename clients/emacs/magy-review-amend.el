;;; magy-review-amend.el --- Other texts of a change  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Magy authors
;; SPDX-License-Identifier: GPL-3.0-or-later
;; This is free software with no warranty at all; see the file COPYING.

;;; Commentary:

;; A change can be amended in a small buffer in the mode of its file; the
;; text that a file had before can be shown, or compared by Ediff.

;;; Code:

(require 'magy-review)

(declare-function ediff-setup-windows-plain "ediff-wind")
(defvar ediff-window-setup-function)

(defvar-local magy-review-amend--target nil
  "What is amended here: (PROJECT FILE HUNK).")
(put 'magy-review-amend--target 'permanent-local t)

(defun magy-review--set-mode (path)
  "Give the current buffer the major mode of files called PATH."
  (let ((buffer-file-name path) (enable-local-variables nil) (enable-dir-local-variables nil))
    (delay-mode-hooks (set-auto-mode))
    (font-lock-mode)))

;;;; Amending

(defvar magy-review-amend-mode-map
  (let ((map (make-sparse-keymap)))
    (define-key map (kbd "C-c C-c") #'magy-review-amend-done)
    (define-key map (kbd "C-c C-k") #'magy-review-amend-give-up)
    map)
  "Keymap of `magy-review-amend-mode'.")

(define-minor-mode magy-review-amend-mode
  "Edit what a change puts into its file.
\\{magy-review-amend-mode-map}"
  :lighter " Amend"
  :interactive nil)
(put 'magy-review-amend-mode 'permanent-local t)

(defun magy-review-amend-target (project file hunk)
  "Edit the new text of HUNK of FILE in PROJECT, in a buffer of its own."
  (unless (magy-review-lines-p hunk)
    (user-error "Only lines can be amended; accept or reject this"))
  (let* ((path (magy--uri-to-path (plist-get file :uri)))
         (buffer (generate-new-buffer (format "*magy amend: %s*" (file-name-nondirectory path)))))
    (with-current-buffer buffer
      (insert (string-replace "\r\n" "\n" (plist-get hunk :newText)))
      (magy-review--set-mode path)
      (setq default-directory (magy-project-root project)
            magy-review-amend--target (list project file hunk)
            buffer-undo-list nil
            header-line-format
            (substitute-command-keys
             (concat "\\<magy-review-amend-mode-map> Edit the new text of the change."
                     "  \\[magy-review-amend-done] put it there"
                     "  \\[magy-review-amend-give-up] leave it as it is")))
      (magy-review-amend-mode)
      (set-buffer-modified-p nil)
      (goto-char (point-min)))
    (pop-to-buffer buffer '((display-buffer-below-selected) (window-height . 12)))))

(defun magy-review-amend--text (hunk)
  "Return the current buffer's text to stand in the place of HUNK."
  (let ((text (magy--text)))
    (if (and (not (string-empty-p text)) (not (string-suffix-p "\n" text))
             (or (string-empty-p (plist-get hunk :newText))
                 (string-suffix-p "\n" (plist-get hunk :newText))))
        (concat text "\n")
      text)))

(defun magy-review-amend-done ()
  "Replace the change in the file with the text of this buffer."
  (interactive)
  (magy--in-mode 'magy-review-amend-mode)
  (pcase-let ((`(,project ,file ,hunk) magy-review-amend--target)
              (buffer (current-buffer)))
    (magy-review--resolve
     project file "amend"
     (list :hunkIds (vector (plist-get hunk :hunkId)) :revision (plist-get file :revision)
           :text (magy-review-amend--text hunk))
     (lambda (outcome)
       ;; What was written is kept when the change had become another one.
       (when (and (plist-get outcome :decisionId) (buffer-live-p buffer))
         (with-current-buffer buffer
           (set-buffer-modified-p nil)
           (magy-review-amend-give-up)))))))

(defun magy-review-amend-give-up ()
  "Leave the change as it is."
  (interactive)
  (magy--in-mode 'magy-review-amend-mode)
  (if-let ((window (get-buffer-window)))
      (quit-window t window)
    (kill-buffer)))

;;;; The text before

(defun magy-review-base--name (path)
  "Return the name of the buffer with the text that PATH had before."
  (format "*magy base: %s*" (file-name-nondirectory path)))

(defun magy-review-base--get (project entry then)
  "Get the text before of ENTRY's file in PROJECT; call THEN with its buffer."
  (magy-review--get
   project entry
   (lambda (file)
     (if (null file)
         (magy--message "Magy: nothing in this file waits for a decision")
       (magy-request
        project 'workspace/textDocumentContent (list :uri (plist-get file :baseUri))
        (lambda (result)
          (run-with-timer
           0 nil (lambda ()
                   (funcall then (magy-review-base--buffer (plist-get entry :path)
                                                           (plist-get result :text)))))))))))

(defun magy-review-base--buffer (path text)
  "Return a read-only buffer with TEXT, which the file PATH had before."
  (with-current-buffer (get-buffer-create (magy-review-base--name path))
    (let ((inhibit-read-only t))
      (erase-buffer)
      (insert text)
      (magy-review--set-mode path))
    (goto-char (point-min))
    (set-buffer-modified-p nil)
    (setq buffer-read-only t)
    (current-buffer)))

;;;###autoload
(defun magy-review-base ()
  "Show this file without its pending changes, beside it."
  (interactive)
  (pcase-let ((`(,project . ,entries) (magy-review--entry)))
    (magy-review-base--get project (magy-review-base--entry project (car entries))
                           #'display-buffer)))

(defun magy-review-base--entry (project about)
  "Return the ReviewEntry of PROJECT for ABOUT, an entry or a ReviewFile."
  (if (plist-get about :path)
      about
    (or (cl-find (magy-review--proposed-p about)
                 (magy-review--entries project (magy--uri-to-path (plist-get about :uri)))
                 :key #'magy-review--proposed-p)
        (magy-review--nothing "Nothing in this file waits for a decision"))))

;;;###autoload
(defun magy-review-ediff ()
  "Compare this file in Ediff with its text before the changes.
Lines that you copy into the file count as typed, also in the review."
  (interactive)
  (pcase-let* ((`(,project . ,entries) (magy-review--entry))
               (entry (magy-review-base--entry project (car entries)))
               (live (find-file-noselect (plist-get entry :path))))
    (magy-review-base--get
     project entry
     (lambda (base)
       (require 'ediff)
       (let ((ediff-window-setup-function #'ediff-setup-windows-plain))
         (ediff-buffers base live
                        (list (lambda ()
                                (setq-local ediff-window-setup-function
                                            #'ediff-setup-windows-plain)))))))))

(provide 'magy-review-amend)
;;; magy-review-amend.el ends here
