;;; magy-child.el --- Commands about child agents  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Magy authors
;; SPDX-License-Identifier: GPL-3.0-or-later
;; This is free software with no warranty at all; see the file COPYING.

;;; Commentary:

;; Commands about child agents, from any buffer.  In the tree of agents
;; they are about the one at point, in a transcript about its own or the
;; one at point; elsewhere the person chooses.

;;; Code:

(require 'magy-agents)
(require 'magy-choose)
(require 'magy-context)
(require 'magy-permission)
(require 'magy-view)

(defvar-local magy-child-at-point-function #'magy-child--in-transcript
  "Function that returns the id of the session that point is at, or nil.")

(defun magy-child--in-transcript ()
  "Return the id of the child that point is at in a transcript, or that it shows."
  (when (derived-mode-p 'magy-transcript-mode)
    (let* ((item (magy-transcript--at-point))
           (about (and item (magy-child-draw--about item))))
      (if (and about (magy-child magy-transcript--project about))
          about
        (and (magy-view-of-child-p magy-transcript--view)
             (magy-project-session magy-transcript--view))))))

(defun magy-child-here ()
  "Return the id of the session that point is at, or nil."
  (funcall magy-child-at-point-function))

(defun magy-child-choose (project prompt then &optional predicate)
  "Have the person choose a child of PROJECT's session after PROMPT.
THEN is called with it.  Only those are offered for which PREDICATE, if
any, holds."
  (unless (magy-project-session project)
    (user-error "%s has no session yet" (magy-project-name project)))
  (let ((asked (magy-choose-begin)))
    (magy-session-ensure
     project
     (lambda ()
       (let ((session (magy-project-session project)))
         (magy-children-learn
          project session
          (lambda ()
            (magy-choose asked prompt
                         (cl-loop for child in (magy-children-below project session)
                                  when (or (null predicate) (funcall predicate child))
                                  collect (cons (magy-child--line child) child))
                         then))))))))

(defun magy-child--line (child)
  "Return CHILD as text to choose it by."
  (format "%s%s  (%s, %s)" (plist-get child :agent)
          (let ((task (magy-child-task child)))
            (if (string-empty-p task)
                ""
              (concat "  " (truncate-string-to-width task 60 nil nil "…"))))
          (plist-get child :state)
          (file-name-nondirectory (plist-get child :sessionId))))

(defun magy-child--with (prompt then &optional predicate)
  "Call THEN with the project and the child at point, or one that is chosen.
PROMPT and PREDICATE are as in `magy-child-choose'."
  (let* ((project (magy-current-project))
         (id (magy-child-here))
         (child (and id (or (magy-child project id) (magy-child--root project id)))))
    (if child
        (funcall then project child)
      (magy-child-choose project prompt (lambda (child) (funcall then project child))
                         predicate))))

(defun magy-child--root (project id)
  "Return the session ID as if it were a child, or nil if it is not PROJECT's own."
  (when (equal id (magy-project-session project))
    (list :sessionId id :agent (magy-child-agent project id)
          :state (magy-project-state project))))

(defun magy-child--not-closed-p (child)
  "Return non-nil if CHILD can be spoken to and closed."
  (not (equal "closed" (plist-get child :state))))

;;;; Spawning

(defconst magy-child--longest-name 40
  "Columns of the name of a task that is made of its beginning.")

(defun magy-child-name-of-task (text)
  "Return a name for the task TEXT: how it begins."
  (truncate-string-to-width (car (split-string (string-trim text) "\n"))
                            magy-child--longest-name nil nil "…"))

(defun magy-child-spawn (project parent agent text blocks worktree &optional then failure)
  "Start a child with AGENT below the session PARENT of PROJECT, for the task TEXT.
BLOCKS go with it.  With WORKTREE it works on a git branch of its own.
THEN is called with the child, or FAILURE with what is wrong."
  (magy-media-note blocks)
  (magy-request project 'magy/child/spawn
                `( :parentSessionId ,parent :requestKey ,(magy--new-id "emacs") :agent ,agent
                   :name ,(magy-child-name-of-task text)
                   :prompt ,(vconcat (list (list :type "text" :text (magy--json-text text)))
                                     blocks)
                   ,@(and worktree '(:worktree t)))
                (lambda (result)
                  (let ((child (plist-get result :child)))
                    ;; The server may have said more of it since.
                    (unless (magy-child project (plist-get child :sessionId))
                      (magy-children--put project child))
                    (if then
                        (funcall then child)
                      (magy--message "Magy: %s has started" (plist-get child :agent)))))
                failure))

(defun magy-child--agents (project then)
  "Call THEN with the agents that a child of PROJECT may have.
Those that are meant for it are first."
  (magy-agents--get
   project
   (lambda (agents)
     (funcall then
              (cl-stable-sort agents
                              (lambda (a b)
                                (and (equal "subagent" (plist-get a :mode))
                                     (not (equal "subagent" (plist-get b :mode))))))))))

(defun magy-child--new-parent ()
  "Return the id of the session that an agent is spawned below here, or nil."
  (if (derived-mode-p 'magy-transcript-mode)
      (and (magy-view-of-child-p magy-transcript--view)
           (magy-project-session magy-transcript--view))
    (magy-child-here)))

(defun magy-child--refusal (project parent limits)
  "Say why PROJECT's session PARENT may have no more children, by LIMITS, or nil."
  (cl-flet ((full (count key)
              (let ((most (plist-get limits key))) (and most (>= count most)))))
    (let ((open (cl-count-if #'magy-child--not-closed-p (magy-children-of project parent))))
      (cond ((not (magy-child--not-closed-p (magy-child project parent)))
             "it is closed, and accepts nothing more")
            ((full (cl-count ?/ parent) :maxDepth)
             (format "agents may be at most %d levels deep (spawn.max_depth)"
                     (plist-get limits :maxDepth)))
            ((full open :maxChildren)
             (format "it has %d, the most that it may have (spawn.max_children); close one" open))
            ((full (or (plist-get limits :working) 0) :maxTotal)
             (format "%d are working, the most that may (spawn.max_total)"
                     (plist-get limits :working)))
            ((full (or (plist-get limits :queued) 0) :maxQueue)
             (format "%d wait to start, the most that may (spawn.max_queue)"
                     (plist-get limits :queued)))))))

(defun magy-child--when-room (project parent then)
  "Call THEN if PROJECT's session PARENT may have one more child; else say why not."
  (magy-request project 'magy/child/limits nil
                (lambda (limits)
                  (if-let ((why (magy-child--refusal project parent limits)))
                      (magy--message "Magy: no agent can be spawned below %s: %s"
                                     (magy-child-name project parent) why)
                    (funcall then)))))

(defun magy-child--called (project id)
  "Return what PROJECT's session ID is called where a person speaks of it."
  (let ((about (if (equal id (magy-project-session project))
                   (magy-project-title project)
                 (plist-get (magy-child project id) :name))))
    (concat (or (magy-child-agent project id) id)
            (if (member about '(nil ""))
                ""
              (format " (%s)" (magy-child-name-of-task about))))))

;;;###autoload
(defun magy-spawn-agent (&optional worktree)
  "Read a task and start a child agent of this project's session on it.
An active region is sent along.  The child works beside the session;
its result comes into the transcript.  In the transcript of a child, or
in the tree of agents, the new one is a child of that one.
With WORKTREE (interactively, a prefix argument) it works in a git
worktree, on a branch of its own, which is merged when it is done."
  (interactive "P")
  (let* ((project (magy-current-project))
         (below (magy-child--new-parent))
         (context (magy-context-here project '("selection")))
         (show (and magy-show-transcript (eq 'magy-child--in-transcript
                                             magy-child-at-point-function)))
         (asked (magy-choose-begin)))
    (magy-session-ensure
     project
     (lambda ()
       (let ((parent (or below (magy-project-session project))))
         (magy-child--when-room
          project parent
          (lambda () (magy-child--choose-agent asked project parent context show worktree))))))))

(defun magy-child--choose-agent (asked project parent context show worktree)
  "Have the person choose an agent to be a child of the session PARENT of PROJECT.
ASKED is as in `magy-choose'; CONTEXT, SHOW and WORKTREE are as in
`magy-child--read', which is next."
  (magy-child--agents
   project
   (lambda (agents)
     (magy-choose asked (format "Child of %s: agent: " (magy-child--called project parent))
                  (mapcar (lambda (agent) (cons (plist-get agent :name) agent)) agents)
                  (lambda (agent)
                    (magy-child--read project parent (plist-get agent :name) context show
                                      worktree))
                  :annotate (lambda (agent) (plist-get agent :description))))))

(defun magy-child--read (project parent agent context show worktree)
  "Read a task for a child AGENT of the session PARENT of PROJECT, and start it.
CONTEXT may go with it.  SHOW its transcript if non-nil.  With WORKTREE it
works on a git branch of its own."
  (magy-context-compose
   (format "Task for %s%s: " agent (if worktree " (on a branch of its own)" "")) context
   (lambda (text blocks)
     (magy-child-spawn project parent agent text blocks worktree
                       (when show
                         (lambda (child)
                           (magy-transcript-view (plist-get child :sessionId) project)))))))

(defun magy-child--special (shown text blocks)
  "Start a child of the session that SHOWN shows if TEXT is \"@spawn AGENT TASK\".
\"--worktree\" may follow AGENT; BLOCKS go along.  Return non-nil if it was that."
  (when (string-match (concat "\\`[ \t\n]*@spawn\\_>[ \t]*\\([^ \t\n]*\\)"
                              "\\(?:[ \t]+\\(--worktree\\)\\(?:[ \t\n]\\|\\'\\)\\)?[ \t\n]*")
                      text)
    (let ((agent (match-string 1 text)) (worktree (match-string 2 text))
          (task (substring text (match-end 0))))
      (when (string-blank-p task)
        (user-error "Write @spawn, the agent and the task"))
      (magy-session-ensure
       shown
       (lambda ()
         (magy-child-spawn (magy-session-server shown) (magy-project-session shown)
                           agent task blocks worktree nil
                           (lambda (problem)
                             (run-hook-with-args 'magy-session-refused-functions shown
                                                 (list (list :type "text" :text text))
                                                 (plist-get problem :message))
                             (magy--message "Magy: %s" (plist-get problem :message)))))))
    t))

;;;; Speaking

(defun magy-child-send (project id text blocks delivery)
  "Send TEXT with BLOCKS to the session ID of PROJECT; DELIVERY as always."
  (let ((content (cons (list :type "text" :text (magy--json-text text)) blocks))
        (shown (cl-find-if (lambda (shown)
                             (and (eq project (magy-session-server shown))
                                  (equal id (magy-project-session shown))))
                           (cons project magy-session-views))))
    (if shown
        (magy-session-prompt shown content delivery)
      (magy-media-note blocks)
      (magy-when-ready project (lambda () (magy-child--send project id content delivery))))))

(defun magy-child--send (project id content delivery)
  "Send CONTENT to the child ID of PROJECT, which is not shown; DELIVERY as always."
  (pcase-let ((`(,method ,params)
               (magy-session-prompt-request
                (magy-view--make) (list :sessionId id :messageId (magy--new-id "prompt")
                                        :prompt (vconcat content) :delivery delivery))))
    (magy-request project method params
                  (lambda (result)
                    (magy--message "Magy: %s %s" (magy-child-name project id)
                                   (pcase (plist-get result :outcome)
                                     ("started" "begins with it")
                                     ("steered" "reads it with its next step")
                                     ("queued" "does it when it is done")
                                     (_ "has it")))))))

;;;###autoload
(defun magy-message-agent (&optional prefix)
  "Send a message to a child agent, with the region if it is active.
While it works, this steers it; with \\[universal-argument] as PREFIX it waits for the
end of its turn, with \\[universal-argument] \\[universal-argument] it ends the turn."
  (interactive "P")
  (let ((context (magy-context-here (magy-current-project) '("selection"))))
    (magy-child--with
     "Say something to: "
     (lambda (project child)
       (magy-context-compose
        (format "To %s: " (magy-child-name project (plist-get child :sessionId))) context
        (lambda (text blocks)
          (magy-child-send project (plist-get child :sessionId) text blocks
                           (magy-prompt-delivery prefix)))))
     #'magy-child--not-closed-p)))

;;;; Stopping, closing

;;;###autoload
(defun magy-cancel-agent ()
  "Stop the running turn of a child agent; you can still send it messages."
  (interactive)
  (magy-child--with
   "Stop: "
   (lambda (project child)
     (magy-request project 'magy/session/cancel
                   (list :sessionId (plist-get child :sessionId))
                   (lambda (result)
                     (unless (magy--true (plist-get result :cancelled))
                       (magy--message "Magy: nothing runs there")))))
   #'magy-child-live-p))

;;;###autoload
(defun magy-close-agent (&optional cancel)
  "Close a child agent and all below it.
It finishes its work and accepts no more.  With CANCEL, the prefix
argument, its work is stopped; if it is working, Emacs asks you
first."
  (interactive "P")
  (magy-child--with
   (if cancel "Cancel and close: " "Close: ")
   (lambda (project child)
     (let* ((id (plist-get child :sessionId))
            (name (magy-child-name project id))
            (below (length (magy-children-below project id))))
       (unless (magy-child-parent-id id)
         (user-error "This closes only child agents; see `magy-clear-session'"))
       (when (or (not cancel)
                 (not (magy-child--works-p project child))
                 (y-or-n-p (format "Stop %s%s? " name
                                   (if (= below 0) "" (format " and %d below it" below)))))
         (magy-child--close project id name (if cancel "cancel" "finish")))))
   #'magy-child--not-closed-p))

(defun magy-child--works-p (project child)
  "Return non-nil if CHILD of PROJECT, or one below it, has something to do."
  (or (magy-child-live-p child)
      (cl-some #'magy-child-live-p
               (magy-children-below project (plist-get child :sessionId)))))

(defun magy-child--close (project id name mode)
  "Close the child ID of PROJECT, called NAME, by MODE."
  (magy-request project 'magy/child/close (list :sessionId id :mode mode)
                (lambda (result)
                  (magy--message
                   (cond ((seq-empty-p (plist-get result :closed)) "Magy: %s was closed before")
                         ((and (equal mode "finish")
                               (member (plist-get result :previousState)
                                       '("queued" "running" "waiting")))
                          "Magy: %s finishes what it does, and is closed then")
                         (t "Magy: %s is closed"))
                   name))))

;;;; Answering

;;;###autoload
(defun magy-answer-agent ()
  "Answer a question that a child agent, or one below it, asks."
  (interactive)
  (magy-permission-once
   (lambda ()
     (magy-child--with "Answer: " #'magy-child--ask
                       (lambda (child) (> (or (plist-get child :questions) 0) 0))))))

(defun magy-child--ask (project child)
  "Have the person answer what CHILD of PROJECT, or one below it, asks.
Right after the server was started again it may ask what is not known yet."
  (let ((id (plist-get child :sessionId)))
    (if (and (> (or (plist-get child :questions) 0) 0)
             (null (magy-child-questions project id)))
        (magy-questions-find project (lambda () (magy-child--answer project id)))
      (magy-child--answer project id))))

(defun magy-child--answer (project id)
  "Have the person answer what the session ID of PROJECT, or one below it, asks."
  (let ((questions (magy-child-questions project id)))
    (unless questions
      (user-error "%s asks nothing" (magy-child-name project id)))
    (magy-permission-once
     (lambda ()
       (magy-permission-ask
        project
        (cdr (magy-permission--choose
              (mapcar (lambda (question) (cons project question)) questions))))))))

(defun magy-child-questions (project id)
  "Return the open questions of the session ID of PROJECT and of those below it."
  (seq-filter (lambda (question) (magy-child-below-p (plist-get question :sessionId) id))
              (mapcar #'cdr (magy-project-questions project))))

;;;; Watching

;;;###autoload
(defun magy-show-agent-transcript ()
  "Choose a child agent of this project's session and show what it does."
  (interactive)
  (let ((project (magy-current-project)))
    (magy-child-choose project "Child agent: "
                       (lambda (child)
                         (magy-transcript-view (plist-get child :sessionId) project)))))

(provide 'magy-child)
;;; magy-child.el ends here
