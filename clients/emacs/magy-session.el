;;; magy-session.el --- Sessions: attaching, prompting  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Magy authors
;; SPDX-License-Identifier: GPL-3.0-or-later
;; This is free software with no warranty at all; see the file COPYING.


;;; Commentary:

;; A project shows one session.  After the server died, the next command
;; starts it and resumes the session from the last entry received.

;;; Code:

(require 'magy-updates)

(defconst magy-session--turns 10
  "How many turns are shown at first.")

;;;; Attaching

(defun magy-session-attach (project session then)
  "Show SESSION in PROJECT's transcript, then call THEN.
A session that was shown before goes on after the last entry received.
That entry is read again, since it may have been cut in two."
  (let ((again (and (equal session (magy-project-session project))
                    (> (magy-project-seq project) 0))))
    (unless again
      (magy-session--forget project session))
    (setf (magy-project-attached project) (list then))
    (magy-request
     project 'magy/session/resume
     (list :sessionId session
           :from (if again
                     (list :seq (1- (magy-project-seq project)))
                   (list :tail magy-session--turns)))
     (lambda (result)
       (when (equal session (magy-project-session project))
         (magy-session--attached project result again)))
     (lambda (problem)
       (setf (magy-project-attached project) nil)
       (magy--message "Magy cannot show %s: %s" session (plist-get problem :message))))))

(defun magy-session--forget (project session)
  "Have PROJECT show SESSION, of which nothing is known yet, or nil."
  (let ((old (magy-project-session project)))
    (when (and old (magy-project-attached project) (not (equal old session))
               (magy-live-p project))
      (magy-request project 'magy/session/unsubscribe (list :sessionId old) #'ignore)))
  (setf (magy-project-session project) session
        (magy-project-attached project) nil
        (magy-project-seq project) 0
        (magy-project-floor project) 1
        (magy-project-title project) nil
        (magy-project-state project) "idle"
        (magy-project-tokens project) 0
        (magy-project-counted project) 0
        (magy-project-queue project) (cl-delete 'update (magy-project-queue project)
                                                :key #'car))
  (magy-session--edit project (magy-transcript-reset)))

(defun magy-session--attached (project result again)
  "Show RESULT, what PROJECT's server answered; AGAIN if it adds to what is shown."
  (magy-session--edit project
    (when again
      (magy-transcript-drop-streamed))
    (magy-session--page project (plist-get result :events)))
  ;; What waits in the queue came after the page.
  (let* ((events (plist-get result :events))
         (summary (plist-get result :summary))
         (last (if (magy--true (plist-get result :more))
                   (if (seq-empty-p events)
                       0
                     (plist-get (seq-elt events (1- (length events))) :seq))
                 (plist-get result :headSeq))))
    (setf (magy-project-seq project) (max last (magy-project-seq project))
          (magy-project-counted project) (plist-get result :headSeq)
          (magy-project-tokens project) (or (magy--get summary :usage :totalTokens)
                                            (magy-project-tokens project))
          (magy-project-title project) (magy--get summary :session :title)
          (magy-project-state project) (magy--get summary :session :state))
    (magy-session--options project (plist-get summary :configOptions))
    (unless again
      (setf (magy-project-floor project) (plist-get result :floorSeq)))
    (magy-session--edit project
      (magy-session--summary-questions project (plist-get summary :interactions))
      (magy-session--offer-older project)))
  (magy-session--flush project)
  (let ((waiting (reverse (magy-project-attached project))))
    (setf (magy-project-attached project) t)
    (mapc #'funcall waiting)))

(defun magy-session--summary-questions (project open)
  "Make OPEN, a vector, the open questions of the session PROJECT shows."
  (let ((ids (seq-map (lambda (question) (plist-get question :interactionId)) open)))
    (pcase-dolist (`(,id . ,question) (copy-sequence (magy-project-questions project)))
      (when (and (equal (plist-get question :sessionId) (magy-project-session project))
                 (not (member id ids)))
        (magy-session--resolved project id nil))))
  (magy-session--questions project (list :opened open)))

(defun magy-session--offer-older (project)
  "Offer older turns of PROJECT's session if there are any."
  (magy-transcript-show-older-button
   (and (> (magy-project-floor project) 1)
        (lambda () (magy-session-show-older project)))))

(defun magy-session-show-older (project)
  "Show another page of older entries of PROJECT's session."
  (interactive (list (magy-current-project)))
  (let ((session (magy-project-session project))
        (floor (magy-project-floor project)))
    (when (<= floor 1)
      (user-error "This is the beginning of the session"))
    (magy-when-ready
     project
     (lambda ()
       (magy-request
        project 'magy/session/events (list :sessionId session :before floor :limit 200)
        (lambda (result)
          (when (and (equal session (magy-project-session project))
                     (= floor (magy-project-floor project)))
            (magy-session--insert-older project (plist-get result :events)))))))))

(defun magy-session--insert-older (project events)
  "Show EVENTS of PROJECT's session in front of what is shown."
  (setf (magy-project-floor project)
        (if (seq-empty-p events) 1 (plist-get (seq-elt events 0) :seq)))
  (magy-session--edit project
    (magy-transcript-show-older-button nil)
    (let ((magy-transcript--at (copy-marker (point-min) t)))
      (magy-session--page project events))
    (magy-session--offer-older project)))

(defun magy-session--died (project reason)
  "PROJECT's server is gone because of REASON, nil if that was wanted."
  (magy-session--flush project)
  (setf (magy-project-attached project) nil
        (magy-project-questions project) nil
        (magy-project-state project) "idle")
  (when (buffer-live-p (magy-project-buffer project))
    (magy-session--edit project
      (magy-transcript-drop-streamed)
      (when reason
        (magy-transcript-merge
         (magy-transcript-ensure 'notice (magy--new-id "death"))
         :severity "warning" :title "Interrupted"
         :description (concat reason "  The next command starts it again and goes on."))))))

(add-hook 'magy-death-functions #'magy-session--died)

;;;; Doing

(defun magy-session-ensure (project then)
  "Call THEN when PROJECT has a session that is attached."
  (magy-when-ready
   project
   (lambda ()
     (pcase (magy-project-attached project)
       ('t (funcall then))
       ((pred consp) (push then (magy-project-attached project)))
       (_ (if-let ((session (magy-project-session project)))
              (magy-session-attach project session then)
            (magy-session-new project then)))))))

(defun magy-session-new (project then)
  "Make a new session for PROJECT, whose server is ready; then call THEN."
  (let ((session (magy--new-id "emacs")))
    (magy-session--forget project session)
    (setf (magy-project-attached project) (list #'ignore))
    (magy-request project 'magy/session/new
                  (list :sessionId session
                        :cwd (directory-file-name (magy-project-root project)))
                  (lambda (_)
                    (let ((waiting (magy-project-attached project)))
                      (magy-session-attach
                       project session
                       (lambda () (funcall then) (mapc #'funcall (reverse waiting))))))
                  (lambda (problem)
                    (magy-session--forget project nil)
                    (magy--message "Magy: %s" (plist-get problem :message))))))

(defun magy-session-prompt (project blocks delivery)
  "Send the content BLOCKS as a prompt to PROJECT's session.
DELIVERY is auto, queue or interrupt."
  (let ((id (magy--new-id "prompt")))
    (magy-session-ensure
     project
     (lambda ()
       (magy-request project 'magy/session/prompt
                     (list :sessionId (magy-project-session project) :messageId id
                           :prompt (vconcat blocks) :delivery delivery)
                     #'ignore)))))

(provide 'magy-session)
;;; magy-session.el ends here
