;;; magy-export.el --- Copying and exporting Magy's transcripts  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Magy authors
;; SPDX-License-Identifier: GPL-3.0-or-later
;; This is free software with no warranty at all; see the file COPYING.

;;; Commentary:

;; What is copied is what the region holds.  What is exported is the
;; whole session, however little of it is drawn: it is read from the
;; server's log page by page, without waiting, and shown nowhere.

;;; Code:

(require 'magy-org)

(defconst magy-export--page 500
  "How many entries of the log are asked for at once.")

;;;; Copying

(defun magy-export--items (beg end)
  "Return the items between BEG and END."
  (let (items)
    (magy-transcript-map-back
     (lambda (item)
       (when (and (< (magy-item-start item) end) (> (magy-transcript--end item) beg))
         (push item items))
       (<= (magy-item-start item) beg)))
    items))

;;;###autoload
(defun magy-copy-as-org (beg end)
  "Put the region, from BEG to END, or the item at point into the kill ring as Org.
Part of an answer is copied exactly; of anything else the whole item is."
  (interactive (if (use-region-p)
                   (list (region-beginning) (region-end))
                 (list (point) (1+ (point)))))
  (unless (derived-mode-p 'magy-transcript-mode)
    (user-error "This is not a transcript"))
  (let ((items (or (magy-export--items beg end) (user-error "Nothing here to copy"))))
    (kill-new
     (if (and (use-region-p) (null (cdr items)) (eq 'agent (magy-item-kind (car items))))
         (let ((text (buffer-substring-no-properties beg end)))
           (if (eq 'org magy-transcript--style) text (magy-org-from-markdown text)))
       (substring-no-properties
        (mapconcat #'identity (delq nil (mapcar #'magy-org-item items)) "\n\n"))))
    (message "Copied as Org")))

;;;; Exporting

(defun magy-export--collect (project session then)
  "Read the whole log of SESSION from PROJECT's server, then call THEN.
It is called in a transcript in which nothing is drawn, and which
goes away."
  (let ((buffer (generate-new-buffer " *magy export*"))
        (view (magy-view--make :root (magy-project-root project) :parent project
                               :session session)))
    (with-current-buffer buffer
      (magy-transcript-mode)
      (setq magy-transcript--project project
            magy-transcript--view view))
    (magy-when-ready project (lambda () (magy-export--next buffer view 0 then)))))

(defun magy-export--next (buffer view after then)
  "Read the entries AFTER that of VIEW's session into BUFFER.
At the end call THEN there."
  (magy-request
   (magy-view-parent view) 'magy/session/events
   (list :sessionId (magy-project-session view) :after after :limit magy-export--page)
   (lambda (result)
     (let ((events (plist-get result :events)))
       (with-current-buffer buffer
         (let ((inhibit-read-only t))
           (magy-session--page view events)
           (setq magy-transcript--dirty nil)))
       (if (and (magy--true (plist-get result :more)) (not (seq-empty-p events)))
           (magy-export--next buffer view
                              (plist-get (elt events (1- (length events))) :seq) then)
         (unwind-protect (with-current-buffer buffer (funcall then))
           (kill-buffer buffer)))))
   (lambda (problem)
     (kill-buffer buffer)
     (magy--message "Magy cannot export: %s" (plist-get problem :message)))))

(defun magy-export--write (file head convert)
  "Write to FILE the line HEAD and all items here as CONVERT returns them."
  (let ((texts (delq nil (mapcar convert (magy-export--items (point-min) (point-max)))))
        (coding-system-for-write 'utf-8-unix))
    (with-temp-file file
      (insert head)
      (dolist (text texts)
        (insert "\n" text "\n")))
    (magy--message "Magy: wrote %s" (abbreviate-file-name file))))

(defun magy-export--view ()
  "Return the view or the project that shows the session to export."
  (let ((view (if (derived-mode-p 'magy-transcript-mode)
                  magy-transcript--view
                (magy-current-project))))
    (unless (magy-project-session view)
      (user-error "There is no session to export"))
    view))

(defun magy-export--title (view)
  "Return the title of the session that VIEW shows, or else the project's name."
  (or (magy-project-title view) (magy-project-name (magy-session-server view))))

(defun magy-export--in (file view extension)
  "Return FILE; if it is a directory, a name in it, of VIEW's title and EXTENSION."
  (if (not (or (directory-name-p file) (file-directory-p file)))
      (expand-file-name file)
    (let ((words (string-trim (replace-regexp-in-string
                               "[^[:alnum:]]+" "-" (downcase (magy-export--title view)))
                              "-+" "-+")))
      (expand-file-name
       (concat (if (string-empty-p words) "session" (truncate-string-to-width words 60))
               extension)
       file))))

(defun magy-export--read (style extension)
  "Read the file to which the session shown here is to be exported as STYLE.
Its name ends in EXTENSION unless the person says otherwise."
  (let* ((view (magy-export--view))
         (root (magy-project-root (magy-session-server view)))
         (file (magy-export--in root view extension))
         (file (magy-export--in
                (read-file-name (format-prompt "Export as %s to" (file-name-nondirectory file)
                                               style)
                                root file)
                view extension)))
    (unless (or (not (file-exists-p file))
                (y-or-n-p (format "%s exists; overwrite it? " (abbreviate-file-name file))))
      (user-error "Nothing was exported"))
    file))

(defun magy-export--to (file extension head convert)
  "Export the session shown here to FILE; HEAD makes its first line of the title.
If FILE is a directory, a file with EXTENSION is made there.  CONVERT
returns an item as text."
  (let* ((view (magy-export--view))
         (title (magy-export--title view))
         (file (magy-export--in file view extension)))
    (magy-export--collect (magy-session-server view) (magy-project-session view)
                          (lambda ()
                            (magy-export--write file (funcall head title) convert)))))

;;;###autoload
(defun magy-export-org (file)
  "Write the whole session of this transcript or project to FILE as Org.
If FILE is a directory, the name is made of the session's title."
  (interactive (list (magy-export--read "Org" ".org")))
  (magy-export--to file ".org" (lambda (title) (format "#+title: %s\n" title))
                   #'magy-org-item))

;;;###autoload
(defun magy-export-markdown (file)
  "Write the whole session of this transcript or project to FILE as Markdown.
If FILE is a directory, the name is made of the session's title."
  (interactive (list (magy-export--read "Markdown" ".md")))
  (magy-export--to file ".md" (lambda (title) (format "<!-- %s -->\n" title))
                   #'magy-org-markdown-item))

(provide 'magy-export)
;;; magy-export.el ends here
