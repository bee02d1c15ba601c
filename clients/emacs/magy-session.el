;;; magy-session.el --- Sessions: attaching, prompting  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Magy authors
;; SPDX-License-Identifier: GPL-3.0-or-later
;; This is free software with no warranty at all; see the file COPYING.


;;; Commentary:

;; A project shows one session.  After the server died, the next command
;; starts it and resumes the session from the last entry received.

;;; Code:

(require 'magy-older)
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
     (magy-session-server project) (magy-session-attach-method project)
     (list :sessionId session
           :from (if again
                     (list :seq (1- (magy-project-seq project)))
                   (list :tail magy-session--turns)))
     (lambda (result)
       (when (equal session (magy-project-session project))
         (magy-session--attached project result again)))
     (lambda (problem)
       (setf (magy-project-attached project) nil)
       (magy-session--give-back project (plist-get problem :message))
       (magy--message "Magy cannot show %s: %s" session (plist-get problem :message))))))

(cl-defgeneric magy-session-attach-method (_project)
  "Return the request by which PROJECT, or a view, begins to show its session."
  'magy/session/resume)

(defun magy-session--leave (project)
  "Have no more updates sent for the session that PROJECT shows.
Unless something else shows it."
  (let ((session (magy-project-session project))
        (server (magy-session-server project)))
    (when (and session (magy-project-attached project) (magy-live-p server)
               (not (cl-some (lambda (other)
                               (and (not (eq other project))
                                    (eq server (magy-session-server other))
                                    (equal session (magy-project-session other))))
                             (cons server magy-session-views))))
      (magy-request server 'magy/session/unsubscribe (list :sessionId session) #'ignore))))

(defun magy-session--forget (project session)
  "Have PROJECT show SESSION, of which nothing is known yet, or nil."
  (unless (equal session (magy-project-session project))
    (magy-session--leave project))
  (setf (magy-project-session project) session
        (magy-project-attached project) nil
        (magy-project-seq project) 0
        (magy-project-floor project) 1
        (magy-project-title project) nil
        (magy-project-state project) "idle"
        (magy-project-waiting project) nil
        (magy-project-queue project) (cl-delete 'update (magy-project-queue project)
                                                :key #'car))
  (magy-header--count project nil 0)
  (magy-session--edit project (magy-transcript-reset))
  (run-hook-with-args 'magy-session-shown-functions project))

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
          (magy-project-waiting project) (magy-session--waiting (plist-get summary :waiting))
          (magy-project-title project) (magy--get summary :session :title)
          (magy-project-state project) (magy--get summary :session :state))
    (magy-header--count project summary (plist-get result :headSeq))
    (magy-session--options project (plist-get summary :configOptions))
    (unless again
      (setf (magy-project-floor project) (plist-get result :floorSeq)))
    (magy-session--edit project
      (magy-session--summary-questions project (plist-get summary :interactions))
      (magy-older-offer project)))
  (magy-session--flush project)
  (run-hook-with-args 'magy-session-shown-functions project)
  (let ((waiting (reverse (magy-project-attached project))))
    (setf (magy-project-attached project) t)
    (mapc #'funcall waiting))
  (magy-session--learn-children project))

(defun magy-session--learn-children (project)
  "Ask for the children of the tree of the session that PROJECT, or a view, shows."
  (let ((server (magy-session-server project))
        (root (car (magy-child-path (magy-project-session project)))))
    ;; A view of one of the tree that is shown anyway needs not ask again.
    (when (or (eq project server) (not (equal root (magy-project-session server))))
      (magy-children-learn server root))))

(defun magy-session-show-afresh (project)
  "Show the last turns of PROJECT's session again, from its log."
  (magy-when-ready
   (magy-session-server project)
   (lambda ()
     (setf (magy-project-seq project) 0)
     (magy-session-attach project (magy-project-session project) #'ignore))))

(defun magy-session--revert (&rest _)
  "Show the last turns of the transcript's session again; what is written stays."
  (unless (magy-project-session magy-transcript--view)
    (user-error "No session is shown yet"))
  (magy-session-show-afresh magy-transcript--view))

(defun magy-session--revertible ()
  "Have the current transcript reverted from the log."
  (setq-local revert-buffer-function #'magy-session--revert))

(add-hook 'magy-transcript-mode-hook #'magy-session--revertible)

(defun magy-session--waiting (prompts)
  "Return PROMPTS, those of a summary that wait, as the project has them."
  (mapcar (lambda (prompt)
            (list (plist-get prompt :messageId)
                  :delivery (plist-get prompt :delivery) :text (plist-get prompt :text)))
          prompts))

(defun magy-session--died (project reason)
  "PROJECT's server is gone because of REASON, nil if that was wanted."
  (magy-session--flush project)
  (when (and reason (magy-project-unsent project) (not (magy-session--started-p project)))
    (magy-transcript-buffer project))   ; where that is said, and the prompts go back to
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
         :description (concat reason (magy-session--what-next project)))))
    (when (and reason (not (magy-session--started-p project)))
      (magy-session--give-back project reason))))

(defun magy-session--started-p (project)
  "Return non-nil if PROJECT's last server was ever ready."
  (when-let ((connection (magy-project-connection (magy-session-server project))))
    (magy-connection-started connection)))

(defun magy-session--what-next (project)
  "Return what happens next, now that PROJECT's server has ended."
  (cond ((not (magy-session--started-p project)) "  M-x magy-doctor says more.")
        ((magy-project-unsent project)
         (concat "  The next command starts it again and goes on; "
                 "prompts that it had not accepted are sent again."))
        (t "  The next command starts it again and goes on.")))

(defun magy-session--give-back (project why)
  "Give the prompts back that PROJECT's server, which never started, did not get.
WHY says what was wrong."
  (let ((unsent (magy-project-unsent project)))
    (setf (magy-project-unsent project) nil)
    (dolist (prompt unsent)
      (run-hook-with-args 'magy-session-refused-functions project
                          (plist-get (car prompt) :prompt) why))))

(add-hook 'magy-death-functions #'magy-session--died)

;;;; Doing

(defun magy-session-ensure (project then)
  "Call THEN when PROJECT, or a view, has a session that is attached."
  (magy-when-ready
   (magy-session-server project)
   (lambda ()
     (pcase (magy-project-attached project)
       ('t (funcall then))
       ((pred consp) (push then (magy-project-attached project)))
       (_ (if-let ((session (magy-project-session project)))
              (magy-session-attach project session then)
            (magy-session-new project then)))))))

(defvar magy-session-made-functions nil
  "Functions called with a project that has a new session, before it is shown.")

(defun magy-session-new (project then &rest config)
  "Make a new session for PROJECT, whose server is ready; then call THEN.
CONFIG is a plist of more parameters, such as :agent and :model."
  (let ((session (magy--new-id "emacs")))
    (magy-session--forget project session)
    (setf (magy-project-attached project) (list #'ignore))
    (magy-request project 'magy/session/new
                  (append (list :sessionId session
                                :cwd (directory-file-name (magy-project-root project)))
                          config)
                  (lambda (_)
                    (run-hook-with-args 'magy-session-made-functions project)
                    (let ((waiting (magy-project-attached project)))
                      (magy-session-attach
                       project session
                       (lambda () (funcall then) (mapc #'funcall (reverse waiting))))))
                  (lambda (problem)
                    (magy-session--forget project nil)
                    (magy-session--not-begun project (plist-get problem :message))))))

(defun magy-session--not-begun (project why)
  "Say WHY there is no session for PROJECT, also where it stays to be read.
What was to be said in it is given back."
  (magy-session--edit project
    (magy-transcript-merge
     (magy-transcript-ensure 'notice (magy--new-id "refusal"))
     :severity "error" :title "No session began" :description why))
  (magy-session--give-back project why)
  (magy--message "Magy: %s" why))

(defvar magy-session-refused-functions nil
  "Functions called when a prompt was refused.
They are given the project, the content blocks, and why.")

(defun magy-session-prompt (project blocks delivery)
  "Send the content BLOCKS as a prompt to the session of PROJECT, or of a view.
DELIVERY is auto, queue or interrupt.  It is kept until the server has
accepted it: if the server dies before, it goes to the next one."
  (magy-media-note blocks)
  (magy-transcript-follow (magy-project-buffer project))
  (let ((prompt (list (list :messageId (magy--new-id "prompt")
                            :prompt (vconcat blocks) :delivery delivery))))
    (setf (magy-project-unsent project) (append (magy-project-unsent project) (list prompt)))
    (magy-session-ensure project (lambda () (magy-session--send project prompt)))))

(cl-defgeneric magy-session-prompt-request (_project prompt)
  "Return (METHOD PARAMS) that sends PROMPT to what PROJECT, or a view, shows."
  (list 'magy/session/prompt prompt))

(defun magy-session--send (project prompt)
  "Send PROMPT, (PARAMS . CONNECTION), unless this server of PROJECT got it before."
  (let* ((server (magy-session-server project))
         (connection (magy-project-connection server)))
    (unless (or (eq connection (cdr prompt))
                (not (memq prompt (magy-project-unsent project))))
      (setcdr prompt connection)
      ;; Sent again, it goes where it was meant to go.
      (unless (plist-get (car prompt) :sessionId)
        (setcar prompt (append (list :sessionId (magy-project-session project))
                               (car prompt))))
      (pcase-let ((`(,method ,params) (magy-session-prompt-request project (car prompt))))
        (magy-request server method params
                      (lambda (_) (magy-session--sent project prompt))
                      (lambda (problem)
                        (when (magy-live-p server) ; it was refused, and would be again
                          (magy-session--refused project prompt problem))))))))

(defun magy-session--refused (project prompt problem)
  "PROJECT's server does not take PROMPT because of PROBLEM: give it back."
  (magy-session--sent project prompt)
  (run-hook-with-args 'magy-session-refused-functions project
                      (plist-get (car prompt) :prompt) (plist-get problem :message))
  (magy--message "Magy: %s" (plist-get problem :message)))

(defun magy-session--sent (project prompt)
  "PROMPT needs not be sent to PROJECT's server any more."
  (setf (magy-project-unsent project) (delq prompt (magy-project-unsent project))))

(defun magy-session-send-unsent (project)
  "Send the prompts that PROJECT's last server did not accept."
  (when (cl-some #'cdr (magy-project-unsent project))
    (magy-session-ensure
     project
     (lambda ()
       (dolist (prompt (magy-project-unsent project))
         (magy-session--send project prompt))))))

(defun magy-session--go-on (project)
  "Attach to PROJECT's session again, after a restart."
  (when (magy-project-session project)
    (magy-session-ensure project #'ignore)
    (magy-session-send-unsent project)))

(setq magy-restart-function #'magy-session--go-on)
(add-hook 'magy-ready-functions #'magy-session-send-unsent 90)

(provide 'magy-session)
;;; magy-session.el ends here
