;;; magy-questions.el --- Which questions of Magy's are open  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Magy authors
;; SPDX-License-Identifier: GPL-3.0-or-later
;; This is free software with no warranty at all; see the file COPYING.

;;; Commentary:

;; A question is shown in the session that asks it and in all that this
;; one is below, each of which may answer it.  A project has the open
;; ones of all its sessions, a view those of its own session and below.

;;; Code:

(require 'magy-children)
(require 'magy-transcript)

(defvar magy-question-functions nil
  "Functions called with a project and a newly opened question.")

(defvar magy-session--paging nil
  "Non-nil while a page of the log is read: what it tells is not news.")

(cl-defgeneric magy-session-server (project)
  "Return the project whose server serves what PROJECT, or a view, shows."
  project)

(defun magy-session--interaction (project update)
  "Apply UPDATE about a question in the session that PROJECT shows."
  (if-let ((question (plist-get update :open)))
      (let ((question (plist-put (copy-sequence question) :sessionId
                                 (magy-project-session project))))
        (if magy-session--paging
            ;; Whether it is open still, the summary says.
            (magy-transcript-merge
             (magy-transcript-ensure 'question (plist-get question :interactionId))
             :question question)
          (magy-session--opened project question)))
    (let ((resolved (plist-get update :resolved)))
      (magy-session--resolved project (plist-get resolved :interactionId) resolved))))

(defun magy-questions-shown-p (project question)
  "Return non-nil if the session that PROJECT, or a view, shows asks QUESTION.
This includes those below it."
  (magy-child-below-p (plist-get question :sessionId) (magy-project-session project)))

(defun magy-questions-own (project)
  "Return the open questions of the session that PROJECT, or a view, shows.
Those of sessions below it are among them."
  (seq-filter (lambda (question) (magy-questions-shown-p project question))
              (mapcar #'cdr (magy-project-questions project))))

(defun magy-questions-others-p (project question)
  "Return non-nil unless the very session that PROJECT shows asks QUESTION."
  (not (equal (plist-get question :sessionId) (magy-project-session project))))

(defun magy-session--own-question-p (project question)
  "Return non-nil if QUESTION is to be seen in what PROJECT, or a view, shows."
  (or (eq project (magy-session-server project))
      (magy-questions-shown-p project question)))

(defun magy-session--questions (project params)
  "Apply PARAMS, the questions that were opened and resolved in PROJECT."
  (seq-doseq (question (plist-get params :opened))
    (when (magy-session--own-question-p project question)
      (magy-session--opened project question)))
  (seq-doseq (id (plist-get params :resolved))
    (magy-session--resolved project id nil)))

(defun magy-session--opened (project question)
  "PROJECT, or a view, has a QUESTION to its person."
  (let* ((id (plist-get question :interactionId))
         (item (magy-transcript-item id)))
    (unless (and item (plist-get (magy-item-data item) :outcome))
      ;; A new transcript has no item of a question that was open before.
      (magy-transcript-merge (magy-transcript-ensure 'question id) :question question)
      (if-let ((known (assoc id (magy-project-questions project))))
          ;; The one that comes second may say who asks.
          (when (plist-get question :path)
            (setcdr known question))
        (setf (magy-project-questions project)
              (append (magy-project-questions project) (list (cons id question))))
        (force-mode-line-update t)
        ;; It is said once, however many show it.
        (when (eq project (magy-session-server project))
          (run-hook-with-args 'magy-question-functions project question))))))

(defun magy-session--resolved (project id resolved)
  "The question ID of PROJECT is answered; RESOLVED, if not nil, says how."
  (setf (magy-project-questions project)
        (assoc-delete-all id (magy-project-questions project)))
  (force-mode-line-update t)
  (when-let ((item (magy-transcript-item id)))
    (magy-transcript-merge item :outcome (or (plist-get resolved :outcome)
                                             (plist-get (magy-item-data item) :outcome)
                                             "withdrawn or answered elsewhere")
                           :scope (plist-get resolved :scope)
                           :reason (plist-get resolved :reason))
    (when resolved
      (setf (plist-get (magy-item-data item) :outcome) (plist-get resolved :outcome)))))

(defun magy-questions-find (project &optional then)
  "Ask which questions of PROJECT are open, in all its sessions; then call THEN.
Some may be older than this Emacs, or asked by another server."
  (magy-request
   project 'magy/interaction/list
   (list :root (directory-file-name (magy-project-root project)))
   (lambda (result)
     (let ((found (lambda ()
                    (magy-session--edit project
                      (magy-session--questions
                       project (list :opened (plist-get result :interactions))))
                    (when then (funcall then)))))
       ;; They stand below the turns of a session that is about to be shown.
       (if (consp (magy-project-attached project))
           (push found (magy-project-attached project))
         (funcall found))))))

(add-hook 'magy-ready-functions #'magy-questions-find)

(defun magy-session--summary-questions (project open)
  "Make OPEN, a vector, the open questions of the session PROJECT shows and below."
  (let ((ids (seq-map (lambda (question) (plist-get question :interactionId)) open)))
    (pcase-dolist (`(,id . ,question) (copy-sequence (magy-project-questions project)))
      (when (and (magy-questions-shown-p project question) (not (member id ids)))
        (magy-session--resolved project id nil)))
    (magy-session--questions project (list :opened open))))

;;;; Who asks

(defun magy-questions-asker (project question)
  "Say which agent of PROJECT asks QUESTION, whose child it is, and where.
The session is left out if it is the one that PROJECT shows."
  (concat (magy-questions--agent project question)
          (magy-questions--elsewhere project question)))

(defun magy-questions--elsewhere (project question)
  "Say which session asks QUESTION of PROJECT if it is not below the one shown."
  (let ((name (plist-get (seq-first (plist-get question :path)) :name)))
    (cond ((equal (car (magy-child-path (plist-get question :sessionId)))
                  (car (magy-child-path (magy-project-session project))))
           "")
          ((member name '(nil "")) " in another session")
          (t (format " in the session “%s”" name)))))

(defun magy-questions--agent (project question)
  "Say which agent of PROJECT asks QUESTION, and whose child it is, or nothing."
  (let* ((path (append (plist-get question :path) nil))
         (session (or (plist-get question :sessionId) ""))
         (agent (or (plist-get question :agent) (magy-child-agent project session))))
    (cond ((cdr path)
           (mapconcat #'magy-questions--step (reverse path) ", a child of "))
          ((member agent '(nil "")) "")
          ((magy-child-parent-id session)
           (mapconcat (lambda (id) (magy-questions--name project id agent session))
                      (reverse (magy-child-path session)) ", a child of "))
          (t agent))))

(defun magy-questions--step (step)
  "Return the name of STEP of the path of a question."
  (let ((name (plist-get step :name)))
    (if (or (member name '(nil "")) (null (magy-child-parent-id (plist-get step :sessionId))))
        (plist-get step :agent)
      (format "%s “%s”" (plist-get step :agent) name))))

(defun magy-questions--name (project id agent session)
  "Return the name of the session ID of PROJECT; that of AGENT is SESSION."
  (let ((name (magy-child-name project id)))
    (if (and (equal id session) (equal name id)) agent name)))

(provide 'magy-questions)
;;; magy-questions.el ends here
