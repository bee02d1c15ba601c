;;; magy-resume.el --- Going on with another session  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Magy authors
;; SPDX-License-Identifier: GPL-3.0-or-later
;; This is free software with no warranty at all; see the file COPYING.

;;; Commentary:

;; The server lists sessions by project, the current one first; those of
;; no project have a group of their own.

;;; Code:

(require 'magy-choose)
(require 'magy-session)

(defun magy-resume--line (info)
  "Return INFO, about a session, as a line to choose."
  (let ((id (plist-get info :sessionId)))
    (format "%s  %s  (%d turns, %s, %s)"
            (if-let ((at (plist-get info :updatedAt)))
                (format-time-string "%F %R" (date-to-time at))
              (make-string 16 ?\s))
            (or (plist-get info :title) id)
            (plist-get info :turns) (plist-get info :state)
            (substring id (- (min 6 (length id)))))))

(defun magy-resume--show (project info)
  "Show the session that INFO is about, in PROJECT if it is one of its own."
  (let ((project (if-let ((root (plist-get info :root)))
                     (magy-project-for root)
                   project)))
    (magy-when-ready
     project
     (lambda ()
       (magy-session-attach project (plist-get info :sessionId) #'ignore)))
    (display-buffer (magy-transcript-buffer project))))

;;;###autoload
(defun magy-resume-session ()
  "Choose a session, this project's first, show its last turns and go on with it."
  (interactive)
  (let* ((project (magy-current-project))
         (own (directory-file-name (magy-project-root project))))
    (magy-when-ready
     project
     (lambda ()
       (magy-request
        project 'magy/session/list (list :cwd own :limit 200)
        (lambda (result)
          (magy-choose
           "Resume: "
           (mapcar (lambda (info) (cons (magy-resume--line info) info))
                   (plist-get result :sessions))
           (lambda (info) (magy-resume--show project info))
           :group (lambda (info)
                    (let ((root (plist-get info :root)))
                      (cond ((equal root own) "This project")
                            (root (abbreviate-file-name root))
                            (t "No project")))))))))))

(provide 'magy-resume)
;;; magy-resume.el ends here
