;;; magy-children.el --- What is known of child agents  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Magy authors
;; SPDX-License-Identifier: GPL-3.0-or-later
;; This is free software with no warranty at all; see the file COPYING.

;;; Commentary:

;; A child agent is a session below another one: its id is that of its
;; parent, a slash, and a key.  Each project keeps the children of the
;; sessions that it shows: they are listed once, when a session is shown,
;; and then the server says what changes.

;;; Code:

(require 'magy-connection)

(defvar magy-children-changed-functions nil
  "Functions called with a project and the ids of children that are not as before.")

;;;; Ids

(defun magy-child-parent-id (id)
  "Return the id of the parent of the session ID, or nil if that is a root."
  (and id (string-match "\\`\\(.+\\)/[^/]+\\'" id) (match-string 1 id)))

(defun magy-child-below-p (id session)
  "Return non-nil if ID is SESSION or one of those below it."
  (and id session (or (equal id session) (string-prefix-p (concat session "/") id))))

(defun magy-child-path (id)
  "Return the ids from the root of the tree of ID to ID itself."
  (let (path)
    (while id
      (push id path)
      (setq id (magy-child-parent-id id)))
    path))

;;;; What is known

(defun magy-child (project id)
  "Return what PROJECT knows of the child ID, or nil."
  (gethash id (magy-project-children project)))

(defun magy-children--older-p (a b)
  "Return non-nil if the child A comes before B."
  (let ((at (plist-get a :createdAt)) (bt (plist-get b :createdAt)))
    (if (equal at bt)
        (string< (plist-get a :sessionId) (plist-get b :sessionId))
      (string< at bt))))

(defun magy-children-of (project session)
  "Return PROJECT's children of SESSION, the oldest first."
  (sort (cl-loop for child being the hash-values of (magy-project-children project)
                 when (equal session (plist-get child :parentSessionId))
                 collect child)
        #'magy-children--older-p))

(defun magy-children-below (project session)
  "Return all that are below SESSION in PROJECT, each in front of its own children."
  (mapcan (lambda (child)
            (cons child (magy-children-below project (plist-get child :sessionId))))
          (magy-children-of project session)))

(defun magy-children-count (project session)
  "Return how many below SESSION in PROJECT work, wait for a person, and queue."
  (let ((working 0) (waiting 0) (queued 0))
    (maphash (lambda (id child)
               (when (and (magy-child-below-p id session) (not (equal id session)))
                 (pcase (plist-get child :state)
                   ("running" (cl-incf working))
                   ("waiting" (cl-incf waiting))
                   ("queued" (cl-incf queued)))))
             (magy-project-children project))
    (list working waiting queued)))

(defun magy-child-live-p (child)
  "Return non-nil if CHILD has something to do."
  (and (member (plist-get child :state) '("queued" "running" "waiting")) t))

;;;; For people

(defun magy-child-task (child)
  "Return in a few words what CHILD does, or nothing."
  (let ((name (plist-get child :name)))
    (if (member name '(nil ""))
        (string-replace "\n" " " (or (plist-get child :said) ""))
      name)))

(defun magy-child-agent (project id)
  "Return the name of the agent of the session ID of PROJECT, or nil."
  (if (equal id (magy-project-session project))
      (alist-get "agent" (magy-project-options project) nil nil #'equal)
    (plist-get (magy-child project id) :agent)))

(defun magy-child-name (project id)
  "Return what the session ID of PROJECT is called: agent and task."
  (let ((agent (magy-child-agent project id))
        (name (plist-get (magy-child project id) :name)))
    (cond ((null agent) id)
          ((member name '(nil "")) agent)
          (t (format "%s “%s”" agent name)))))

(defun magy-child-mark (state)
  "Return the mark of an agent in STATE, in its face."
  (pcase state
    ("running" (propertize "▸" 'face 'warning))
    ("waiting" (propertize "?" 'face 'magy-question))
    ("completed" (propertize "✓" 'face 'success))
    ("failed" (propertize "✗" 'face 'error))
    ("cancelled" (propertize "⊘" 'face 'shadow))
    ("closed" (propertize "▪" 'face 'shadow))
    ("idle" (propertize "○" 'face 'shadow))
    (_ (propertize "·" 'face 'shadow))))

(defun magy-child-dollars (cost)
  "Return COST, as the wire has it, in dollars, or nil if it is nothing."
  (let ((amount (or (plist-get cost :amount) 0)) (unpriced (or (plist-get cost :unpriced) 0)))
    (and (> amount 0)
         (format (if (< amount 0.1) "$%.3f%s" "$%.2f%s") amount (if (> unpriced 0) "+" "")))))

(defun magy-child-tokens (usage)
  "Return the tokens of USAGE for people, or nil if there are none.
A \"+\" says that requests are missing whose provider did not say what
they took, and \"?\" that none of them did."
  (let ((total (or (plist-get usage :totalTokens) 0))
        (unknown (> (or (plist-get usage :unreportedRequests) 0) 0)))
    (cond ((> total 0) (concat (file-size-human-readable total 'si) (and unknown "+")))
          (unknown "?"))))

(defun magy-child-cached (usage)
  "Return how much of what models read in USAGE came from a cache, or nil."
  (let ((cached (or (plist-get usage :cachedReadTokens) 0))
        (read (+ (or (plist-get usage :inputTokens) 0)
                 (or (plist-get usage :cachedReadTokens) 0)
                 (or (plist-get usage :cachedWriteTokens) 0))))
    (and (> cached 0) (> read 0) (format "%d%% cached" (/ (* 100 cached) read)))))

(defun magy-child-spent (usage cost)
  "Return what USAGE and COST come to as a list of words."
  (let ((tokens (magy-child-tokens usage)))
    (delq nil (list (cond ((equal tokens "?") "tokens unknown")
                          (tokens (concat tokens " tokens")))
                    (magy-child-cached usage)
                    (magy-child-dollars cost)))))

;;;; Learning

(defun magy-children--put (project child)
  "Note CHILD of PROJECT as it is now, and have that shown soon."
  (let ((id (plist-get child :sessionId)))
    (puthash id child (magy-project-children project))
    (magy-children--touch project id)))

(defun magy-children--touch (project id)
  "Have it shown soon that the child ID of PROJECT is not as before."
  (let ((changed (magy-project-changed project)))
    (if changed
        (cl-pushnew id (cdr changed) :test #'equal)
      (setf (magy-project-changed project)
            (list (run-with-timer magy-ui-batch-insert-delay nil #'magy-children-show project)
                  id)))))

(defun magy-children-show (project)
  "Show what changed about PROJECT's children, if anything did."
  (when-let ((changed (magy-project-changed project)))
    (setf (magy-project-changed project) nil)
    (cancel-timer (car changed))
    (magy--run-guarded 'magy-children-changed-functions project (cdr changed))
    (force-mode-line-update t)))

(cl-defmethod magy-handle-notification (project (_method (eql 'magy/child/changed)) params)
  "Note how the child in PARAMS of PROJECT is now."
  (magy-children--put project (plist-get params :child)))

(defconst magy-children--page 200
  "How many children are asked for at once.")

(defun magy-children-learn (project session &optional then)
  "Ask PROJECT's server for all that are below SESSION.
THEN is called when they are known."
  ;; What is said while the answer is under way is newer than the answer.
  (let ((before (cl-remove-if-not (lambda (id) (magy-child-below-p id session))
                                  (hash-table-keys (magy-project-children project)))))
    (magy-children--ask project session nil nil
                        (lambda (children)
                          (magy-children--all project children before)
                          (when then (funcall then))))))

(defun magy-children--ask (project session cursor known then)
  "Ask for the page CURSOR of what is below SESSION of PROJECT.
KNOWN are those of the pages before; THEN is called with all of them."
  (magy-request
   project 'magy/child/list
   (append (list :parentSessionId session :includeClosed t :limit magy-children--page)
           (and cursor (list :cursor cursor)))
   (lambda (result)
     (let ((known (append known (plist-get result :children) nil))
           (next (plist-get result :nextCursor)))
       (if next
           (magy-children--ask project session next known then)
         (funcall then known))))
   (lambda (problem)
     (magy--log-at 'warn "children of %s: %s" session (plist-get problem :message)))))

(defun magy-children--all (project children before)
  "CHILDREN are those of PROJECT that are left of BEFORE, ids, and new ones."
  (dolist (child children)
    (let* ((id (plist-get child :sessionId))
           (known (magy-child project id)))
      (setq before (delete id before))
      (unless (and known (string< (plist-get child :updatedAt) (plist-get known :updatedAt)))
        (magy-children--put project child))))
  (dolist (id before)
    (remhash id (magy-project-children project))
    (magy-children--touch project id)))

(provide 'magy-children)
;;; magy-children.el ends here
