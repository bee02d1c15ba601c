;;; magy-child-draw.el --- Child agents in their parent's transcript  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Magy authors
;; SPDX-License-Identifier: GPL-3.0-or-later
;; This is free software with no warranty at all; see the file COPYING.

;;; Commentary:

;; The call that spawns a child is a short block that shows how the child
;; is now; what comes of it is another one, folded.  Waiting for
;; children, listing and closing them are a line each.

;;; Code:

(require 'magy-questions)
(require 'magy-render)

(declare-function magy-transcript-view "magy-view")
(autoload 'magy-magi-draw "magy-magi")

(defconst magy-child-draw--longest 60
  "Columns that a task takes in a transcript.")

;;;; What an item is about

(defun magy-child-draw-spawn-p (data)
  "Return non-nil if the tool call DATA began a child agent."
  (equal "spawn_agent" (plist-get data :name)))

(defun magy-child-draw-id (item &optional session)
  "Return the id of the child that the call ITEM of SESSION began.
Without SESSION it is that of the current transcript."
  (format "%s/%s" (or session (magy-project-session magy-transcript--view)) (magy-item-id item)))

(defun magy-child-draw--about (item)
  "Return the id of the session that ITEM is about, or nil."
  (let ((data (magy-item-data item)))
    (pcase (magy-item-kind item)
      ('tool (cond ((magy-child-draw-spawn-p data)
                    (and (magy-child-draw--begun-p item) (magy-child-draw-id item)))
                   ((assoc (plist-get data :name) magy-child-draw--calls)
                    (magy-child-draw--target (plist-get data :input)))))
      ('mail (magy--get data :mail :sender)))))

(defun magy-child-draw--begun-p (item)
  "Return non-nil if the child exists that ITEM, a call, is to spawn."
  (or (equal "completed" (plist-get (magy-item-data item) :status))
      (magy-child magy-transcript--project (magy-child-draw-id item))))

(defun magy-child-draw--target (input)
  "Return the id of the one session that INPUT, of a call, names, or nil."
  (let ((ids (plist-get input :job_ids)))
    (magy-child-draw--full-id
     (or (plist-get input :job_id) (and (vectorp ids) (= 1 (length ids)) (elt ids 0))))))

(defun magy-child-draw--full-id (id)
  "Return ID, as a model writes it, as the id of a session, or nil."
  (let ((session (magy-project-session magy-transcript--view)))
    (cond ((not (stringp id)) nil)
          ((equal id "parent") (magy-child-parent-id session))
          ((string-search "/" id) id)
          (t (format "%s/%s" session id)))))

;;;; Words

(defun magy-child-draw--short (text)
  "Return TEXT in one line, not too long."
  (truncate-string-to-width (string-trim (string-replace "\n" " " (or text "")))
                            magy-child-draw--longest nil nil "…"))

(defun magy-child-draw--task (input)
  "Return in short what INPUT, of a call, wants of a child, or nothing."
  (let* ((name (plist-get input :task_name))
         (task (if (member name '(nil "")) (plist-get input :prompt) name)))
    (if task (concat "  " (magy-child-draw--short task)) "")))

(defun magy-child-draw--shadow (words)
  "Return the list of WORDS, some of which may be nil, as a remark."
  (let ((text (string-join (delq nil words) " · ")))
    (if (string-empty-p text) "" (concat "  " (propertize text 'face 'shadow)))))

(defun magy-child-draw--count (number word)
  "Return NUMBER and WORD, which is said of one, or nil if there is none."
  (and number (> number 0) (format "%d %s%s" number word (if (= number 1) "" "s"))))

(defun magy-child-draw--life (child)
  "Return in what state CHILD is, and what it took until now."
  (let ((questions (magy-child-draw--count (plist-get child :questions) "question")))
    (concat
     (and questions (concat "  " (propertize questions 'face 'magy-question)))
     (magy-child-draw--shadow
      (append (list (plist-get child :state)
                    (let ((waiting (plist-get child :waiting)))
                      (and waiting (> waiting 0) (format "%d wait" waiting))))
              (magy-child-spent (plist-get child :usage) (plist-get child :cost)))))))

(defun magy-child-draw--button (id)
  "Return a button that shows the session ID."
  (let ((project magy-transcript--project))
    (magy-transcript-button "[transcript]" (lambda () (magy-transcript-view id project)))))

;;;; Spawning

(defun magy-child-draw--refused-p (data)
  "Return non-nil if the call DATA was to spawn a child, but did not."
  (member (plist-get data :status) '("failed" "cancelled")))

(defun magy-child-draw--spawn (item)
  "Draw ITEM, a call that spawns a child: its life, and a way to its transcript."
  (let* ((data (magy-item-data item))
         (input (plist-get data :input))
         (id (magy-child-draw-id item))
         (child (magy-child magy-transcript--project id))
         (refused (and (not child) (magy-child-draw--refused-p data)))
         (begun (magy-child-draw--begun-p item)))
    (magy-transcript--section
     item
     (concat (propertize "agent " 'face 'shadow)
             (if child
                 (magy-child-mark (plist-get child :state))
               (magy-transcript--tool-mark (plist-get data :status)))
             " "
             (propertize (or (plist-get child :agent) (plist-get input :agent) "agent")
                         'face 'bold)
             (magy-child-draw--task input)
             (cond (child (magy-child-draw--life child))
                   ((and refused (plist-get data :ended))
                    (concat "  " (propertize (plist-get data :ended) 'face 'error)))
                   (t ""))
             (if begun (concat "  " (magy-child-draw--button id)) ""))
     (if (or begun (seq-empty-p (plist-get data :content)))
         (magy-child-draw--wanted input)
       (magy-transcript--tool-body data))
     ;; One answer may let several begin: what a person agrees to, they see.
     begun)))

(defconst magy-child-draw--terms
  '((:model . "model") (:context . "context") (:permissions . "permissions")
    (:limits . "limits") (:directory . "directory"))
  "What a call may say about a child besides its task.")

(defun magy-child-draw--wanted (input)
  "Return the terms in INPUT, of a call, and the task unless the head has it whole."
  (let ((prompt (plist-get input :prompt))
        (terms (cl-loop for (key . name) in magy-child-draw--terms
                        for value = (plist-get input key)
                        unless (member value '(nil "" "none"))
                        concat (format "%s: %s\n" name (magy-child-draw--term value)))))
    (magy-transcript--indent
     (concat terms
             (and prompt (or (not (member (plist-get input :task_name) '(nil "")))
                             (not (equal prompt (magy-child-draw--short prompt))))
                  prompt))
     'shadow)))

(defun magy-child-draw--term (value)
  "Return VALUE, of an argument, as text."
  (if (stringp value)
      value
    (json-serialize value :null-object nil :false-object :json-false)))

;;;; Waiting, sending, listing, closing

(defconst magy-child-draw--calls
  '(("wait_agent" . magy-child-draw--wait) ("send_agent_message" . magy-child-draw--send)
    ("list_agents" . magy-child-draw--list) ("close_agent" . magy-child-draw--close)
    ("rate_agent" . magy-child-draw--rate))
  "Tools about children, and the functions that say in short what a call wants.")

(defun magy-child-draw--who (id)
  "Return the name of the session ID, as a model writes it."
  (let ((full (magy-child-draw--full-id id)))
    (if full
        (let ((name (magy-child-name magy-transcript--project full)))
          (if (equal name full) (format "%s" id) name))
      "an agent")))

(defun magy-child-draw--wait (input)
  "Say for which children a call with INPUT waits."
  (let ((ids (plist-get input :job_ids)))
    (concat "wait for "
            (cond ((seq-empty-p ids) "all")
                  ((> (length ids) 3) (format "%d agents" (length ids)))
                  (t (mapconcat #'magy-child-draw--who ids
                                (if (equal "any" (plist-get input :until)) " or " ", ")))))))

(defun magy-child-draw--send (input)
  "Say what a call with INPUT tells whom."
  (format "tell %s: %s" (magy-child-draw--who (plist-get input :job_id))
          (magy-child-draw--short (plist-get input :message))))

(defun magy-child-draw--list (_input)
  "Say that a call lists children."
  "list")

(defun magy-child-draw--close (input)
  "Say which child a call with INPUT closes, and how."
  (format "%s %s" (if (equal "cancel" (plist-get input :mode)) "cancel" "close")
          (magy-child-draw--who (plist-get input :job_id))))

(defun magy-child-draw--rate (input)
  "Say which child a call with INPUT rates, and how good it is at what."
  (format "rate %s for %s: %s" (magy-child-draw--who (plist-get input :job_id))
          (magy-child-draw--short (plist-get input :capability)) (plist-get input :score)))

(defun magy-child-draw--call (item what)
  "Draw ITEM, a call about children, in a line; WHAT says what it wants."
  (let* ((data (magy-item-data item))
         (ended (plist-get data :ended))
         (duration (plist-get data :duration)))
    (magy-transcript--section
     item
     (concat (propertize "agent " 'face 'shadow)
             (magy-transcript--tool-mark (plist-get data :status)) " "
             (funcall what (plist-get data :input))
             (and ended (not (equal ended "completed"))
                  (concat "  " (propertize ended 'face 'error)))
             (magy-child-draw--shadow
              (list (and duration (>= duration 1) (format "%.1f s" duration)))))
     (magy-transcript--tool-body data)
     (not (member (plist-get data :status) '("pending" "failed"))))))

;;;; Graphs of tasks

(defun magy-child-draw--graph (item)
  "Draw ITEM, a call that runs a graph: its tasks, and what they come to."
  (let* ((data (magy-item-data item)) (graph (plist-get data :graph)))
    (magy-transcript--section
     item (magy-transcript--tool-head data)
     (concat (mapconcat #'magy-child-draw--graph-task (plist-get graph :tasks) "")
             (magy-child-draw--graph-more graph)
             (mapconcat #'magy-transcript--tool-part (magy-child-draw--graph-rest data) ""))
     nil)))

(defun magy-child-draw--graph-task (task)
  "Return a line for TASK of a graph, which leads to the transcript of its agent."
  (let ((id (plist-get task :sessionId)))
    (magy-transcript--indent
     (concat (make-string (* 2 (min 8 (plist-get task :depth))) ?\s)
             (plist-get task :line)
             (if id (concat "  " (magy-child-draw--button id)) "")
             "\n"))))

(defun magy-child-draw--graph-more (graph)
  "Say how many tasks of GRAPH are not shown, if there are any."
  (let ((more (- (cl-loop for (_ count) on (plist-get graph :counts) by #'cddr sum count)
                 (length (plist-get graph :tasks)))))
    (if (> more 0) (magy-transcript--indent (format "(%d more)\n" more) 'shadow) "")))

(defun magy-child-draw--graph-rest (data)
  "Return what the call DATA says besides how its graph is.
At its end the first part of its content says that, for other clients."
  (and (plist-get data :ended) (cdr (append (plist-get data :content) nil))))

(cl-defmethod magy-transcript-render :around ((_kind (eql 'tool)) item)
  "Draw ITEM; calls about child agents are short."
  (let* ((data (magy-item-data item))
         (what (cdr (assoc (plist-get data :name) magy-child-draw--calls))))
    (cond ((magy-child-draw-spawn-p data) (magy-child-draw--spawn item))
          ((plist-get data :graph) (magy-child-draw--graph item))
          ((plist-get data :deliberation) (magy-magi-draw item))
          ;; Of one that is judged it is known that it has no arguments.
          ((and what (or (plist-get data :input) (plist-get data :decision)))
           (magy-child-draw--call item what))
          (t (cl-call-next-method)))))

;;;; Mail

(cl-defmethod magy-transcript-render ((_kind (eql 'mail)) item)
  "Draw ITEM, a message: a result is folded; what an agent says is like a prompt."
  (let ((data (magy-item-data item)))
    (cond ((magy-child-draw--in-graph-p data) "")
          ((plist-get data :report) (magy-child-draw--result item))
          ((plist-get data :content) (magy-child-draw--message item))
          (t (propertize (format "data from %s, for no model to read\n"
                                 (magy-child-draw--sender data))
                         'face 'shadow)))))

(defun magy-child-draw--in-graph-p (data)
  "Return non-nil if the message DATA is a result which a graph took, and shows.
The line of its task leads to the transcript with that result.  What no
graph took, say after a cancel, is for the reader."
  (when-let* (((plist-get data :report))
              ((eq 'dropped (plist-get data :queue)))
              (sender (magy--get data :mail :sender))
              ((string-match "\\`\\(.*\\)/\\([^/]+\\)\\.[[:alnum:]_-]+\\.[0-9]+\\'" sender))
              (call (match-string 2 sender))
              ((equal (match-string 1 sender) (magy-project-session magy-transcript--view)))
              (item (magy-transcript-item call)))
    (plist-get (magy-item-data item) :graph)))

(defun magy-child-draw--sender (data)
  "Return the name of who sent the message DATA."
  (let* ((mail (plist-get data :mail))
         (name (plist-get mail :name)))
    (concat (plist-get mail :agent)
            (if (member name '(nil "")) "" (format " “%s”" name)))))

(defun magy-child-draw--result (item)
  "Draw ITEM, the result of a child."
  (let* ((data (magy-item-data item))
         (mail (plist-get data :mail))
         (report (plist-get data :report))
         (seconds (or (plist-get report :seconds) 0)))
    (magy-transcript--section
     item
     (concat (propertize "result " 'face 'shadow)
             (magy-child-mark (plist-get report :status)) " "
             (propertize (plist-get mail :agent) 'face 'bold)
             (if (member (plist-get mail :name) '(nil ""))
                 ""
               (concat "  " (magy-child-draw--short (plist-get mail :name))))
             (magy-child-draw--shadow
              (append (list (plist-get report :status))
                      (magy-child-spent (plist-get report :usage) (plist-get report :cost))
                      (list (and (>= seconds 1) (format "%.0f s" seconds))
                            (and (eq 'waiting (plist-get data :queue)) "not read yet"))))
             "  " (magy-child-draw--button (plist-get mail :sender)))
     (magy-transcript--indent (magy-child-draw--text data) 'shadow)
     t)))

(defun magy-child-draw--text (data)
  "Return what the message DATA says."
  (mapconcat #'magy-transcript--block (plist-get data :content) "\n"))

(defun magy-child-draw--message (item)
  "Draw ITEM, what another agent says to this one."
  (let* ((data (magy-item-data item))
         (text (concat (propertize (magy-child-draw--sender data) 'face 'magy-heading-label)
                       (propertize " ❯ " 'face 'shadow)
                       (magy-transcript--cut item (magy-child-draw--text data))
                       (pcase (plist-get data :queue)
                         ('waiting "  (waiting)")
                         ('dropped "  (dropped)"))
                       "\n")))
    (add-face-text-property 0 (length text) 'magy-user t text)
    text))

;;;; Staying in step

(defun magy-child-draw--changed (project ids)
  "Draw the blocks of the children IDS of PROJECT anew, wherever they are shown."
  (dolist (shown (cons project magy-session-views))
    (when (and (eq project (magy-session-server shown))
               (buffer-live-p (magy-project-buffer shown)))
      (with-current-buffer (magy-project-buffer shown)
        (when-let ((items (magy-child-draw--items shown ids)))
          (magy-transcript-edit (lambda () (mapc #'magy-transcript-touch items))))))))

(defun magy-child-draw--items (shown ids)
  "Return the items in SHOWN, a project or a view, that show the children IDS.
They are the calls that spawned them, and those about them in the last turn."
  (append
   (cl-loop for id in ids
            for item = (and (equal (magy-child-parent-id id) (magy-project-session shown))
                            (magy-transcript-item (file-name-nondirectory id)))
            when (and item (eq 'tool (magy-item-kind item)))
            collect item)
   (let (calls)
     (magy-transcript-map-back
      (lambda (item)
        (when (magy-child-draw--names-p item ids)
          (push item calls))
        (eq 'user (magy-item-kind item))))
     calls)))

(defun magy-child-draw--names-p (item ids)
  "Return non-nil if ITEM is a call about one of the children IDS."
  (let* ((data (magy-item-data item)) (input (plist-get data :input)))
    (and (eq 'tool (magy-item-kind item))
         (assoc (plist-get data :name) magy-child-draw--calls)
         (seq-some (lambda (id) (member (magy-child-draw--full-id id) ids))
                   (cons (plist-get input :job_id)
                         (append (plist-get input :job_ids) nil))))))

(add-hook 'magy-children-changed-functions #'magy-child-draw--changed)

(cl-defmethod magy-transcript-visit-item :around ((_kind (eql 'tool)) item)
  "Visit the session of the agent that ITEM is about, or else its file."
  (if-let ((id (magy-child-draw--about item)))
      (magy-transcript-view id)
    (cl-call-next-method)))

(cl-defmethod magy-transcript-visit-item ((_kind (eql 'mail)) item)
  "Visit the session of the agent that sent ITEM."
  (magy-transcript-view (magy-child-draw--about item)))

(provide 'magy-child-draw)
;;; magy-child-draw.el ends here
