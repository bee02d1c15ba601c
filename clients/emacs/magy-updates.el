;;; magy-updates.el --- What Magy's server says of a session  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Magy authors
;; SPDX-License-Identifier: GPL-3.0-or-later
;; This is free software with no warranty at all; see the file COPYING.

;;; Commentary:

;; What is shown of a session is a fold of the server's updates.  They
;; are queued and applied in batches, so that a fast stream costs a few
;; redraws a second.

;;; Code:

(require 'magy-header)
(require 'magy-questions)
(require 'magy-render)
(require 'magy-restored)
(require 'magy-stream)

(defconst magy-session--slice 0.04
  "Seconds after which a batch of updates is interrupted for what a person does.")

;;;; Receiving

(defmacro magy-session--edit (project &rest body)
  "Evaluate BODY, which changes items, in PROJECT's transcript."
  (declare (indent 1) (debug t))
  `(with-current-buffer (magy-transcript-buffer ,project)
     (magy-transcript-edit (lambda () ,@body))))

(defun magy-session--receive (project kind value)
  "Queue VALUE, a KIND of news for PROJECT."
  (push (cons kind value) (magy-project-queue project))
  (unless (magy-project-timer project)
    (setf (magy-project-timer project)
          (run-with-timer magy-ui-batch-insert-delay nil #'magy-session--some project))))

(defvar magy-session-views nil
  "What shows sessions beside those of the projects; see `magy-transcript-view'.")

(cl-defmethod magy-handle-notification (project (_method (eql 'magy/session/update)) params)
  "Queue the update in PARAMS for what shows its session of PROJECT's server."
  (let ((session (plist-get params :sessionId)))
    (dolist (view (cons project magy-session-views))
      (when (and (equal session (magy-project-session view))
                 (eq project (magy-session-server view)))
        (if (magy-project-attached view)
            (magy-session--receive view 'update (plist-get params :update))
          (magy-session--unseen view (plist-get params :update)))))))

(defun magy-session--unseen (project update)
  "Note the state in UPDATE of a session that PROJECT does not show now.
Its transcript was killed; the next one begins with the last turns."
  (when-let ((state (and (equal "state_update" (plist-get update :sessionUpdate))
                         (plist-get update :state))))
    (setf (magy-project-state project) state)
    (force-mode-line-update t)))

(cl-defmethod magy-handle-notification
  (project (_method (eql 'magy/interaction/changed)) params)
  "Queue the questions in PARAMS, which may be those of any session of PROJECT."
  (dolist (shown (cons project magy-session-views))
    (when (eq project (magy-session-server shown))
      (magy-session--receive shown 'questions params))))

(defun magy-session--flush (project)
  "Apply all that waits in PROJECT's queue."
  (magy-session--apply-queue project nil))

(defun magy-session--some (project)
  "Apply what waits in PROJECT's queue, as much as is not felt; soon the rest."
  (magy-session--apply-queue project (time-add nil magy-session--slice)))

(defun magy-session--apply-queue (project until)
  "Apply what waits in PROJECT's queue, or what can be applied UNTIL then."
  (when (magy-project-timer project)
    (cancel-timer (magy-project-timer project))
    (setf (magy-project-timer project) nil))
  (when-let ((news (nreverse (magy-project-queue project))))
    (setf (magy-project-queue project) nil)
    (unwind-protect
        (let ((room magy-transcript--share))
          (magy-session--edit project
            (while (and news (or (null until) (and (time-less-p nil until) (> room 0))))
              (let ((one (pop news)))
                (magy--guarded "an update"
                  (cl-decf room (length (magy-session--text (plist-get (cdr one) :content))))
                  (pcase one
                    (`(update . ,update) (magy-session--apply project update))
                    (`(questions . ,params) (magy-session--questions project params))))))))
      ;; Also when the transcript could not be changed at all.
      (when news
        (setf (magy-project-queue project)
              (nconc (magy-project-queue project) (nreverse news)))))
    (when (magy-project-queue project)
      (setf (magy-project-timer project)
            (run-with-timer 0.01 nil #'magy-session--some project)))
    (run-hook-with-args 'magy-session-shown-functions project)))

(defvar magy-session-shown-functions nil
  "Functions called with a project of which a batch of updates was shown.")

(defun magy-session--apply (project update)
  "Apply a live UPDATE of PROJECT: an event of the log, or a delta."
  (let ((seq (magy--get update :_meta :magy :seq)))
    (magy-session--show project update seq)
    (when seq
      (setf (magy-project-seq project) (max seq (magy-project-seq project))))))

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
    (cond (seq (setf (magy-item-streamed item) nil
                     (magy-item-seq item) (min seq (or (magy-item-seq item) seq))
                     (magy-item-last item) (max seq (or (magy-item-last item) seq))))
          ((not known) (setf (magy-item-streamed item) t)))
    item))

(defun magy-session--show (project update seq)
  "Show UPDATE of PROJECT's session, which is entry SEQ of the log or a delta.
Kinds that are not known are ignored."
  (let ((id (plist-get update :messageId))
        (content (plist-get update :content)))
    (unless magy-transcript--at
      (setf (magy-project-progress project)
            (and (equal "_magy_progress" (plist-get update :sessionUpdate))
                 (plist-get update :text))))
    (pcase (plist-get update :sessionUpdate)
      ("user_message"
       (magy-transcript-merge (magy-session--ensure 'user id seq) :content content))
      ("agent_message_chunk" (magy-session--stream 'agent id content))
      ("agent_message" (magy-session--message 'agent id content seq))
      ((and (or "agent_thought_chunk" "agent_thought") (guard (not magy-include-reasoning))) nil)
      ("agent_thought_chunk" (magy-session--stream 'thought id content))
      ("agent_thought" (magy-session--message 'thought id content seq))
      ("tool_call_update" (magy-session--tool update seq))
      ("tool_call_content_chunk" (magy-session--output (plist-get update :toolCallId) content))
      ("plan_update"
       (magy-transcript-merge (magy-session--ensure 'plan (magy-session--plan-id) seq)
                              :entries (magy--get update :plan :entries)))
      ("_magy_restored"
       (magy-restored-show
        (magy-session--ensure 'notice (magy-restored-id (plist-get update :restoreId)) seq)
        update seq))
      ((and "notice" (guard (equal "Restored" (plist-get update :title)))) nil) ; said just now
      ("notice" (magy-session--notice update seq))
      ("_magy_mail" (magy-session--mail update seq))
      ("_magy_queue" (magy-session--queue project update seq))
      ("_magy_interaction" (magy-session--interaction project update))
      ((guard magy-transcript--at) nil) ; what follows is about now, not about then
      ("state_update" (magy-session--state project update seq))
      ("usage_update" (magy-header--add project update seq))
      ("session_info_update"
       (when-let ((title (plist-get update :title)))
         (setf (magy-project-title project) title)))
      ("config_option_update"
       (when-let ((window (magy--get update :_meta :magy :window)))
         (setf (magy-project-window project) window))
       (magy-session--options project (plist-get update :configOptions))))))

(defun magy-session--mail (update seq)
  "Show the message of another agent in UPDATE, entry SEQ, if it says something."
  (let ((mail (plist-get update :mail)))
    (unless (equal "signal" (plist-get mail :payload))
      (magy-transcript-merge (magy-session--ensure 'mail (plist-get mail :id) seq)
                             :mail mail :content (plist-get update :content)
                             :report (plist-get update :report)))))

(defun magy-session--plan-id ()
  "Return the id of the plan of the last turn: each turn shows its own."
  (let ((at (and magy-transcript--at (marker-position magy-transcript--at))))
    (format "plan %s"
            (magy-transcript-map-back
             (lambda (item)
               (and (memq (magy-item-kind item) '(user mail))
                    (or (null at) (< (magy-item-start item) at))
                    (not (memq (plist-get (magy-item-data item) :queue) '(waiting dropped)))
                    (magy-item-id item)))))))

(defun magy-session--notice (update seq)
  "Show the notice UPDATE, entry SEQ."
  (magy-transcript-merge
   (magy-session--ensure 'notice (magy-session--notice-id update seq) seq)
   :severity (plist-get update :severity) :title (plist-get update :title)
   :description (plist-get update :description)))

(defun magy-session--notice-id (update seq)
  "Return an id for the notice UPDATE at SEQ: the same if it comes again."
  (format "notice %s %s" (or seq (float-time)) (plist-get update :title)))

(defun magy-session--stream (kind id content)
  "Add streamed CONTENT to the message ID of KIND."
  (let ((item (magy-session--ensure kind id nil)))
    (push (magy-session--text content) (magy-item-pending item))
    (magy-transcript-touch item)))

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
         (had (plist-get (magy-item-data item) :graph))
         (meta (magy--get update :_meta :magy))
         (status (plist-get update :status)))
    (magy-transcript-merge item
                           :title (plist-get update :title) :status status
                           :name (plist-get update :name) :input (plist-get update :rawInput)
                           :content (plist-get update :content)
                           :code (and (plist-get meta :decision)
                                      (magy-session--code (plist-get update :content)))
                           :locations (plist-get update :locations)
                           :decision (plist-get meta :decision)
                           :graph (plist-get meta :graph)
                           :deliberation (plist-get meta :deliberation)
                           :ended (plist-get meta :status)
                           :duration (plist-get meta :duration))
    (when (member status '("completed" "failed" "cancelled"))
      (setf (plist-get (magy-item-data item) :tail) nil)
      (dolist (key '(:graph :deliberation)) ; what streamed of it is not how it ended
        (unless (plist-get meta key)
          (setf (plist-get (magy-item-data item) key) nil))))
    (unless (eq (null had) (null (plist-get (magy-item-data item) :graph)))
      (magy-session--touch-results item))))

(defun magy-session--touch-results (call)
  "Have the results drawn of which the graph of CALL, new or void, shows the tasks."
  (magy-transcript-map-back
   (lambda (item)
     (when (eq 'mail (magy-item-kind item))
       (magy-transcript-touch item))
     (eq item call))))

(defun magy-session--code (content)
  "Return of CONTENT, that of a call which is judged, all that would run.
What comes of the call takes its place; a diff then says what did happen."
  (seq-filter (lambda (part) (equal "content" (plist-get part :type))) content))

(defun magy-session--output (id content)
  "Add CONTENT to the end of the output of the running tool call ID."
  (let* ((item (magy-session--ensure 'tool id nil))
         (tail (plist-get (magy-item-data item) :tail)))
    (magy-transcript-merge item :tail (magy-transcript--tail-of
                                       (concat tail (magy-session--text content))))))

(defvar-local magy-session--admitted nil
  "The prompts that were admitted, but whose words are not known yet.")

(defun magy-session--queue (project update seq)
  "Note which prompts of PROJECT wait, were admitted or dropped.
UPDATE, entry SEQ, says so."
  (unless magy-session--paging          ; the summary says what waits now
    (magy-session--queue-now project update))
  (cl-flet ((mark (ids how)
              (seq-doseq (id ids)
                (when-let ((item (magy-transcript-item id)))
                  (when (and seq (magy-item-last item))
                    (setf (magy-item-last item) (max seq (magy-item-last item))))
                  (magy-transcript-merge item :queue how)))))
    (when-let ((id (plist-get update :added)))
      (let ((item (magy-transcript-item id)))
        (cond ((and item (plist-get (magy-item-data item) :queue)))
              ((member id magy-session--admitted)
               (setq magy-session--admitted (delete id magy-session--admitted))
               (mark (list id) 'admitted))
              (t (mark (list id) 'waiting)))))
    (mark (plist-get update :admitted) 'admitted)
    (seq-doseq (id (plist-get update :admitted))
      (if (magy-transcript-item id)
          (magy-session--move-to-end id)
        (push id magy-session--admitted)))
    (mark (plist-get update :dropped) 'dropped)))

(defun magy-session--move-to-end (id)
  "Show the prompt ID, which enters the conversation now, at its end."
  (when-let ((item (magy-transcript-item id)))
    (let ((end (or magy-transcript--at (magy-transcript--streams) magy-transcript--foot)))
      (unless (or (not (eq magy-transcript--at (magy-item-page item)))
                  (= (magy-transcript--end item) end))
        (let ((data (magy-item-data item)) (seq (magy-item-seq item)) (last (magy-item-last item))
              (folded (magy-item-folded item)))
          (magy-transcript-remove id)
          (setq item (magy-transcript-ensure (magy-item-kind item) id))
          (setf (magy-item-data item) data
                (magy-item-folded item) folded
                (magy-item-seq item) seq
                (magy-item-last item) last))))))

(defun magy-session--queued (item)
  "Return what ITEM, a prompt or a message that waits, says."
  (let* ((data (and item (magy-item-data item)))
         (agent (magy--get data :mail :agent)))
    (concat (and agent (concat agent ": ")) (magy-session--text (plist-get data :content)))))

(defun magy-session--queue-now (project update)
  "Change what waits in PROJECT's session as UPDATE says."
  (let ((waiting (magy-project-waiting project))
        (gone (append (plist-get update :admitted) (plist-get update :dropped) nil))
        (order (append (plist-get update :order) nil))
        (id (plist-get update :added)))
    (when (and id (not (assoc id waiting)))
      (let ((item (magy-transcript-item id)))
        (unless (and item (eq 'admitted (plist-get (magy-item-data item) :queue)))
          (setq waiting
                (append waiting
                        (list (list id :delivery (plist-get update :delivery)
                                    :text (magy-session--queued item))))))))
    (setq waiting (cl-remove-if (lambda (prompt) (member (car prompt) gone)) waiting))
    (when order
      (setq waiting (append (delq nil (mapcar (lambda (id) (assoc id waiting)) order))
                            (cl-remove-if (lambda (prompt) (member (car prompt) order))
                                          waiting))))
    (setf (magy-project-waiting project) waiting)))

(defconst magy-session--ends
  '(("refusal" . "The model refused")
    ("max_tokens" . "The reply became too long")
    ("max_requests" . "Too many requests")
    ("max_turn_tokens" . "Too many tokens")
    ("max_cost" . "Too expensive")
    ("max_run" . "The whole run is at its cap")
    ("max_time" . "Out of time")
    ("loop" . "A loop")
    ("stray_call" . "A tool call came as text"))
  "What is said of why a turn ended; of others, their name.")

(defun magy-session--state (project update seq)
  "Note PROJECT's state in UPDATE at SEQ; say why a turn ended if not as it should."
  (let ((state (plist-get update :state))
        (stop (magy--get update :_meta :magy :stop))
        (message (magy--get update :_meta :magy :message)))
    (when (magy--true (magy--get update :_meta :magy :opens))
      (magy-header-turn-begins project))
    (unless (equal state (magy-project-state project))
      (setf (magy-project-state project) state)
      (force-mode-line-update t))
    (when (equal state "idle")
      (magy-session--stop-streamed)
      ;; What was stopped is said when it was asked for.
      (unless (or (member stop '(nil "end_turn"))
                  (and (equal stop "cancelled") (member message '(nil ""))))
        (magy-transcript-merge
         (magy-session--ensure 'notice (format "end %s" seq) seq)
         :severity (if (equal stop "error") "error" "info")
         :title (or (cdr (assoc stop magy-session--ends))
                    (capitalize (string-replace "_" " " stop)))
         :description message)))))

(defun magy-session--stop-streamed ()
  "Show as stopped the calls of this turn that never became part of the log."
  (magy-transcript-map-back
   (lambda (item)
     (when (and (magy-item-streamed item) (eq (magy-item-kind item) 'tool))
       (magy-transcript-merge item :status "cancelled"))
     (eq (magy-item-kind item) 'user))))

(defun magy-session--options (project options)
  "Note the vector of OPTIONS of PROJECT's session.
What may be chosen stays as it was where an option does not say it: an
update says only what was chosen."
  (seq-doseq (option options)
    (let ((id (plist-get option :configId)))
      (setf (alist-get id (magy-project-options project) nil nil #'equal)
            (plist-get option :currentValue))
      (when (plist-member option :options)
        (setf (alist-get id (magy-project-choices project) nil nil #'equal)
              (plist-get option :options))))))

(provide 'magy-updates)
;;; magy-updates.el ends here
