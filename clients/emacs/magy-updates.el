;;; magy-updates.el --- What Magy's server says of a session  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Magy authors
;; SPDX-License-Identifier: GPL-3.0-or-later
;; This is free software with no warranty at all; see the file COPYING.

;;; Commentary:

;; What is shown of a session is a fold of the server's updates.  They
;; are queued and applied in batches, so that a fast stream costs a few
;; redraws a second.

;;; Code:

(require 'magy-render)

(defconst magy-session--delay 0.05
  "Seconds for which updates are collected.")

(defvar magy-question-functions nil
  "Functions called with a project and a list of newly opened questions.")

;;;; Receiving

(defun magy-session--receive (project kind value)
  "Queue VALUE, a KIND of news for PROJECT."
  (push (cons kind value) (magy-project-queue project))
  (unless (magy-project-timer project)
    (setf (magy-project-timer project)
          (run-with-timer magy-session--delay nil #'magy-session--flush project))))

(cl-defmethod magy-handle-notification (project (_method (eql 'magy/session/update)) params)
  "Queue the update in PARAMS if PROJECT shows its session."
  (when (equal (plist-get params :sessionId) (magy-project-session project))
    (magy-session--receive project 'update (plist-get params :update))))

(cl-defmethod magy-handle-notification
  (project (_method (eql 'magy/interaction/changed)) params)
  "Queue the questions in PARAMS, which may be those of any session of PROJECT."
  (magy-session--receive project 'questions params))

(defun magy-session--flush (project)
  "Apply what waits in PROJECT's queue."
  (when (magy-project-timer project)
    (cancel-timer (magy-project-timer project))
    (setf (magy-project-timer project) nil))
  (when-let ((news (nreverse (magy-project-queue project))))
    (setf (magy-project-queue project) nil)
    (magy-session--edit project
      (dolist (item news)
        (magy--guarded "an update"
          (pcase item
            (`(update . ,update) (magy-session--apply project update))
            (`(questions . ,params) (magy-session--questions project params))))))))

(defmacro magy-session--edit (project &rest body)
  "Evaluate BODY, which changes items, in PROJECT's transcript."
  (declare (indent 1) (debug t))
  `(with-current-buffer (magy-transcript-buffer ,project)
     (magy-transcript-edit (lambda () ,@body))))

(defun magy-session--apply (project update)
  "Apply a live UPDATE of PROJECT: an event of the log, or a delta."
  (let ((seq (magy--get update :_meta :magy :seq)))
    (magy-session--show project update seq)
    (when seq
      (setf (magy-project-seq project) (max seq (magy-project-seq project))))))

(defvar magy-session--paging nil
  "Non-nil while a page of the log is read: what it tells is not news.")

(defun magy-session--page (project events)
  "Apply EVENTS, a page of the log of PROJECT's session."
  (let ((magy-session--paging t))
    (seq-doseq (event events)
      (magy--guarded "an update"
        (magy-session--show project (plist-get event :update) (plist-get event :seq))))))

(defun magy-session--text (content)
  "Return the text of CONTENT, one content block or a vector of them."
  (if (vectorp content)
      (mapconcat #'magy-session--text content "")
    (or (plist-get content :text) (magy--get content :content :text) "")))

(defun magy-session--ensure (kind id seq)
  "Return the item of KIND with ID; SEQ is nil while it is not in the log."
  (let* ((known (magy-transcript-item id))
         (item (or known (magy-transcript-ensure kind id))))
    (cond (seq (setf (magy-item-streamed item) nil))
          ((not known) (setf (magy-item-streamed item) t)))
    item))

(defun magy-session--show (project update seq)
  "Show UPDATE of PROJECT's session, which is entry SEQ of the log or a delta.
Kinds that are not known are ignored."
  (let ((id (plist-get update :messageId))
        (content (plist-get update :content)))
    (pcase (plist-get update :sessionUpdate)
      ("user_message"
       (magy-transcript-merge (magy-session--ensure 'user id seq) :content content))
      ("agent_message_chunk" (magy-session--stream 'agent id content))
      ("agent_thought_chunk" (magy-session--stream 'thought id content))
      ("agent_message" (magy-session--message 'agent id content seq))
      ("agent_thought" (magy-session--message 'thought id content seq))
      ("tool_call_update" (magy-session--tool update seq))
      ("tool_call_content_chunk" (magy-session--output (plist-get update :toolCallId) content))
      ("plan_update"
       (magy-transcript-merge (magy-session--ensure 'plan "plan" seq)
                              :entries (magy--get update :plan :entries)))
      ("notice"
       (magy-transcript-merge
        (magy-session--ensure 'notice (magy-session--notice-id update seq) seq)
        :severity (plist-get update :severity) :title (plist-get update :title)
        :description (plist-get update :description)))
      ("_magy_queue" (magy-session--queue update))
      ("_magy_interaction" (magy-session--interaction project update))
      ((guard magy-transcript--at) nil) ; what follows is about now, not about then
      ("state_update" (magy-session--state project update seq))
      ("usage_update"
       (when (and seq (> seq (magy-project-counted project)))
         (setf (magy-project-counted project) seq)
         (cl-incf (magy-project-tokens project) (plist-get update :used))))
      ("session_info_update"
       (when-let ((title (plist-get update :title)))
         (setf (magy-project-title project) title)))
      ("config_option_update"
       (magy-session--options project (plist-get update :configOptions))))))

(defun magy-session--notice-id (update seq)
  "Return an id for the notice UPDATE at SEQ: the same if it comes again."
  (format "notice %s %s" (or seq (float-time)) (plist-get update :title)))

(defun magy-session--stream (kind id content)
  "Add streamed CONTENT to the message ID of KIND."
  (let ((item (magy-session--ensure kind id nil)))
    (push (magy-session--text content) (magy-item-pending item))
    (magy-transcript--touch item)))

(defun magy-session--message (kind id content seq)
  "Put CONTENT in the place of what the message ID of KIND was.
Without any, a reply begins anew and its streamed text is void."
  (let ((text (magy-session--text content)))
    (if (string-empty-p text)
        (magy-transcript-remove id)
      (let ((item (magy-session--ensure kind id seq)))
        (setf (magy-item-pending item) nil)
        (magy-transcript-merge item :text (string-trim-right text))))))

(defun magy-session--tool (update seq)
  "Apply the tool call UPDATE; SEQ as always."
  (let* ((item (magy-session--ensure 'tool (plist-get update :toolCallId) seq))
         (meta (magy--get update :_meta :magy))
         (status (plist-get update :status)))
    (magy-transcript-merge item
                           :title (plist-get update :title) :status status
                           :content (plist-get update :content)
                           :locations (plist-get update :locations)
                           :decision (plist-get meta :decision)
                           :ended (plist-get meta :status)
                           :duration (plist-get meta :duration))
    (when (member status '("completed" "failed" "cancelled"))
      (setf (plist-get (magy-item-data item) :tail) nil))))

(defun magy-session--output (id content)
  "Add CONTENT to the end of the output of the running tool call ID."
  (let* ((item (magy-session--ensure 'tool id nil))
         (tail (plist-get (magy-item-data item) :tail)))
    (magy-transcript-merge item :tail (magy-transcript--tail-of
                                       (concat tail (magy-session--text content))))))

(defun magy-session--queue (update)
  "Mark prompts as waiting, admitted or dropped, as UPDATE says."
  (cl-flet ((mark (ids how)
              (seq-doseq (id ids)
                (when-let ((item (magy-transcript-item id)))
                  (magy-transcript-merge item :queue how)))))
    (when-let ((id (plist-get update :added)))
      (mark (list id) 'waiting))
    (mark (plist-get update :admitted) 'admitted)
    (mark (plist-get update :dropped) 'dropped)))

(defun magy-session--state (project update seq)
  "Note PROJECT's state in UPDATE at SEQ; say why a turn ended if not as it should."
  (let ((state (plist-get update :state))
        (stop (magy--get update :_meta :magy :stop))
        (message (magy--get update :_meta :magy :message)))
    (setf (magy-project-state project) state)
    (when (equal state "idle")
      (dolist (item (hash-table-values magy-transcript--items))
        (when (and (magy-item-streamed item) (eq (magy-item-kind item) 'tool))
          (magy-transcript-merge item :status "cancelled")))
      (unless (member stop '(nil "end_turn"))
        (magy-transcript-merge
         (magy-session--ensure 'notice (format "end %s" seq) seq)
         :severity (if (equal stop "error") "error" "info")
         :title (capitalize (string-replace "_" " " stop)) :description message)))))

(defun magy-session--options (project options)
  "Note the vector of OPTIONS of PROJECT's session."
  (seq-doseq (option options)
    (setf (alist-get (plist-get option :configId) (magy-project-options project)
                     nil nil #'equal)
          (plist-get option :currentValue))))

;;;; Questions

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

(defun magy-session--questions (project params)
  "Apply PARAMS, the questions that were opened and resolved in PROJECT."
  (seq-doseq (question (plist-get params :opened))
    (magy-session--opened project question))
  (seq-doseq (id (plist-get params :resolved))
    (magy-session--resolved project id nil)))

(defun magy-session--opened (project question)
  "PROJECT has a QUESTION to its person."
  (let* ((id (plist-get question :interactionId))
         (item (magy-transcript-item id)))
    (unless (or (assoc id (magy-project-questions project))
                (and item (plist-get (magy-item-data item) :outcome)))
      (setf (magy-project-questions project)
            (append (magy-project-questions project) (list (cons id question))))
      (magy-transcript-merge (magy-transcript-ensure 'question id) :question question)
      (run-hook-with-args 'magy-question-functions project question))))

(defun magy-session--resolved (project id resolved)
  "The question ID of PROJECT is answered; RESOLVED, if not nil, says how."
  (setf (magy-project-questions project)
        (assoc-delete-all id (magy-project-questions project)))
  (when-let ((item (magy-transcript-item id)))
    (magy-transcript-merge item :outcome (or (plist-get resolved :outcome) "answered")
                           :scope (plist-get resolved :scope)
                           :reason (plist-get resolved :reason))
    (when resolved
      (setf (plist-get (magy-item-data item) :outcome) (plist-get resolved :outcome)))))

(provide 'magy-updates)
;;; magy-updates.el ends here
