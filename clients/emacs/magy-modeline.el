;;; magy-modeline.el --- What runs, and that a question waits  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Magy authors
;; SPDX-License-Identifier: GPL-3.0-or-later
;; This is free software with no warranty at all; see the file COPYING.

;;; Commentary:

;; Every mode line says whether an agent works or asks in this Emacs; its
;; tooltip says where and at what cost, and a click has how to stop it.
;; If Emacs has no focus, the desktop is told of a question, too.

;;; Code:

(require 'magy-session)

(autoload 'magy-answer "magy-permission" nil t)
(autoload 'magy-cancel "magy" nil t)
(autoload 'magy-transcript "magy" nil t)
(declare-function dbus-call-method-asynchronously "dbus")

(defun magy-modeline--questions ()
  "Return how many questions are open in this Emacs."
  (cl-loop for project being the hash-values of magy--projects
           sum (length (magy-project-questions project))))

(defun magy-modeline--busy ()
  "Return the projects in which an agent works, or a child of it."
  (seq-filter (lambda (project)
                (or (equal (magy-project-state project) "running")
                    (and (magy-live-p project)
                         (> (car (magy-children-count project (magy-project-session project)))
                            0))))
              (hash-table-values magy--projects)))

(defun magy-modeline--asking ()
  "Return the projects that ask something."
  (seq-filter #'magy-project-questions (hash-table-values magy--projects)))

(defun magy-modeline--leave-p ()
  "Return non-nil if Emacs may be left: nothing is open, or the person wants it."
  (let ((asking (magy-modeline--asking)) (busy (magy-modeline--busy)))
    (or (not (or asking busy)) (not confirm-kill-processes)
        (yes-or-no-p
         (concat
          (and asking
               (format "Magy asks in %s: that stays open, and Magy asks it again.  "
                       (mapconcat #'magy-project-name asking ", ")))
          (if busy
              (format "Magy works in %s; stop what runs there, and leave Emacs? "
                      (mapconcat #'magy-project-name busy ", "))
            "Leave Emacs? "))))))

(add-hook 'kill-emacs-query-functions #'magy-modeline--leave-p)

(defun magy-modeline--hung ()
  "Return a project whose server hangs, or nil."
  (cl-find-if #'magy-hung-p (hash-table-values magy--projects)))

(defun magy-modeline-cost (project)
  "Return what PROJECT's session has cost so far, as text for people."
  (string-join
   (or (magy-child-spent (magy-project-usage project)
                         (list :amount (magy-project-cost project)
                               :unpriced (magy-project-unpriced project)))
       '("nothing used yet"))
   ", "))

(defun magy-modeline--doing (project)
  "Return what PROJECT's server does, for people."
  (cond ((magy-hung-p project) (format "does not answer %s" (magy-hung-p project)))
        ((not (magy-live-p project)) "off")
        ((magy-questions-own project)
         (format "asks: %s" (plist-get (car (magy-questions-own project)) :title)))
        (t (concat (cond ((equal (magy-project-state project) "requires_action") "waits")
                         (t (or (magy-project-progress project)
                                (magy-project-state project))))
                   (when-let ((question (cdar (magy-project-questions project))))
                     (format "; another session asks: %s" (plist-get question :title)))))))

(defun magy-modeline--help (&rest _)
  "Return the tooltip: what runs where, at what cost, and how to stop it."
  (concat
   (mapconcat (lambda (project)
                (string-join
                 (delq nil
                       (list (format "%s: %s" (magy-project-name project)
                                     (magy-modeline--doing project))
                             (magy-header-children project (magy-project-session project))
                             (magy-modeline-cost project)))
                 ", "))
              (seq-filter #'magy-live-p (hash-table-values magy--projects)) "\n")
   (substitute-command-keys
    "\nmouse-1: what to do; \\[magy-cancel] stops an agent")))

(defun magy-modeline--text ()
  "Return what the mode line says of Magy, or nothing."
  (let ((questions (magy-modeline--questions))
        (busy (magy-modeline--busy)))
    (cond ((magy-modeline--hung) (propertize "[Magy hangs]" 'face 'error))
          ((> questions 0)
           (propertize (format "[Magy asks %d]" questions) 'face 'magy-question))
          ((cdr busy) (format "[Magy works in %d]" (length busy)))
          (busy (format "[Magy works in %s]" (magy-project-name (car busy))))
          (t ""))))

(defun magy-modeline ()
  "Return the mode line's part about Magy."
  (let ((text (magy-modeline--text)))
    (if (string-empty-p text)
        ""
      (concat " " (propertize (string-replace "%" "%%" text)
                              'help-echo #'magy-modeline--help
                              'mouse-face 'mode-line-highlight
                              'local-map (make-mode-line-mouse-map
                                          'mouse-1 #'magy-modeline-menu))))))

;;;; The menu

(defun magy-modeline--entries (project)
  "Return the entries of the menu that are about PROJECT: (LABEL . FUNCTION)."
  (let ((name (magy-project-name project)))
    (delq nil
          (list (cons (format "Show the transcript of %s" name)
                      (lambda () (display-buffer (magy-transcript-buffer project))))
                (when (member (magy-project-state project) '("running" "requires_action"))
                  (cons (format "Stop the agent in %s" name)
                        (lambda () (magy-session-cancel project))))
                (cons (format "Restart the server of %s" name)
                      (lambda () (magy-restart project)))))))

(defun magy-modeline-menu (event)
  "Offer a menu, where EVENT was, of commands for what runs."
  (interactive
   (list (if (consp last-nonmenu-event)
             last-nonmenu-event
           (user-error "This works only with the mouse: click on Magy's words in the mode line"))))
  (let* ((projects (seq-filter #'magy-live-p (hash-table-values magy--projects)))
         (entries (append (and (> (magy-modeline--questions) 0)
                               (list (cons "Answer a question"
                                           (lambda () (call-interactively #'magy-answer)))))
                          (mapcan #'magy-modeline--entries projects)))
         (chosen (x-popup-menu event (list "Magy" (cons "Magy" entries)))))
    (when chosen (funcall chosen))))

(defun magy-session-cancel (project)
  "Stop what the agent of PROJECT does now."
  (magy-session-ensure
   project
   (lambda ()
     (magy-request project 'magy/session/cancel
                   (list :sessionId (magy-project-session project))
                   (lambda (result)
                     (unless (magy--true (plist-get result :cancelled))
                       (magy--message "Magy: nothing runs here")))))))

;;;; In the mode line

(defconst magy-modeline--construct '(:eval (magy-modeline))
  "Mode line construct of the indicator.")
(put 'magy-modeline--construct 'risky-local-variable t)

(defun magy-modeline--show (_project)
  "Put the indicator into the mode line; a server runs."
  (unless global-mode-string
    (setq global-mode-string '("")))
  (add-to-list 'global-mode-string 'magy-modeline--construct t))

(add-hook 'magy-ready-functions #'magy-modeline--show)

;;;; The desktop

(defun magy-modeline--focus-p ()
  "Return non-nil if a frame of this Emacs has the focus, or may have it."
  (cl-some (lambda (frame) (frame-focus-state frame)) (frame-list)))

(defun magy-modeline--notify (project question)
  "Tell the desktop of PROJECT's QUESTION if `magy-desktop-notifications' says so."
  (when (and magy-desktop-notifications (not (magy-modeline--focus-p)))
    (let ((title (format "Magy asks in %s" (magy-project-name project)))
          (body (concat (plist-get question :title)
                        (when (magy-questions-others-p project question)
                          (format ", for %s" (magy-questions-asker project question))))))
      (if (functionp magy-desktop-notifications)
          (funcall magy-desktop-notifications title body)
        (magy-modeline--desktop title body)))))

(defun magy-modeline--desktop (title body)
  "Have the desktop show TITLE and BODY, without waiting for it."
  (when (and (featurep 'dbusbind) (getenv "DBUS_SESSION_BUS_ADDRESS")
             (require 'dbus nil t))
    ;; Not `notifications-notify', which waits for the answer.
    (magy--guarded "a notification"
      (dbus-call-method-asynchronously
       :session "org.freedesktop.Notifications" "/org/freedesktop/Notifications"
       "org.freedesktop.Notifications" "Notify" nil
       :string "Emacs" :uint32 0 :string "emacs" :string title
       :string (replace-regexp-in-string
                "[<>&]" (lambda (char)
                          (pcase char ("<" "&lt;") (">" "&gt;") (_ "&amp;")))
                body)
       '(:array) '(:array :signature "{sv}") :int32 -1))))

(add-hook 'magy-question-functions #'magy-modeline--notify)

(defun magy-modeline-unload-function ()
  "Take the indicator out of the mode line, and the question out of leaving Emacs."
  (remove-hook 'kill-emacs-query-functions #'magy-modeline--leave-p)
  (when (listp global-mode-string)
    (setq global-mode-string (delq 'magy-modeline--construct global-mode-string)))
  nil)

(provide 'magy-modeline)
;;; magy-modeline.el ends here
