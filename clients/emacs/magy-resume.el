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

(defun magy-resume--lines (infos)
  "Return (TITLE . INFO) for each of INFOS, about sessions.
Titles come first, so that they can be completed; no two are the same."
  (let ((seen (make-hash-table :test #'equal)))
    (mapcar (lambda (info)
              (let* ((id (plist-get info :sessionId))
                     (title (or (plist-get info :title) id)))
                (when (gethash title seen)
                  (setq title (format "%s (%s)" title id)))
                (puthash title t seen)
                (cons title info)))
            infos)))

(defun magy-resume--remark (info)
  "Return what there is to say about the session of INFO besides its title."
  (let ((turns (plist-get info :turns)))
    (format "%s%d turn%s, %s"
            (if-let ((at (plist-get info :updatedAt)))
                (format-time-string "%F %R, " (date-to-time at))
              "")
            turns (if (eql turns 1) "" "s") (plist-get info :state))))

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
  "Choose a session, this project's first, show its last turns and continue it."
  (interactive)
  (let* ((project (magy-current-project))
         (own (directory-file-name (magy-project-root project)))
         (asked (magy-choose-begin)))
    (magy-when-ready
     project
     (lambda ()
       (magy-request
        project 'magy/session/list (list :cwd own :limit 200)
        (lambda (result)
          (magy-choose
           asked "Resume: "
           (magy-resume--lines (plist-get result :sessions))
           (lambda (info) (magy-resume--show project info))
           :annotate #'magy-resume--remark
           :group (lambda (info)
                    (let ((root (plist-get info :root)))
                      (cond ((equal root own) "This project")
                            (root (abbreviate-file-name root))
                            (t "No project")))))))))))

(provide 'magy-resume)
;;; magy-resume.el ends here
