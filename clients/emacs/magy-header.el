;;; magy-header.el --- What a Magy session is, does and costs  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Magy authors
;; SPDX-License-Identifier: GPL-3.0-or-later
;; This is free software with no warranty at all; see the file COPYING.

;;; Commentary:

;; The header line of a transcript, and the sums it shows.  That of a
;; child agent names its parent, and a click goes there; that of a parent
;; says how many of its children work and wait, and a click lists them.

;;; Code:

(require 'magy-children)
(require 'magy-questions)
(require 'magy-transcript)

(declare-function magy-agents-tree "magy-agents-tree")
(declare-function magy-transcript-up "magy-view")

(defun magy-header--count (project summary head)
  "Take what PROJECT's session has used from its SUMMARY.
That stands for entry HEAD."
  (let ((cost (plist-get summary :cost))
        (context (plist-get summary :context)))
    (setf (magy-project-counted project) head
          (magy-project-usage project) (plist-get summary :usage)
          (magy-project-cost project) (or (plist-get cost :amount) 0)
          (magy-project-unpriced project) (or (plist-get cost :unpriced) 0)
          (magy-project-context project) (or (plist-get context :tokens) 0)
          (magy-project-window project) (or (plist-get context :window) 0))))

(defun magy-header--add (project update seq)
  "Add what the usage UPDATE, entry SEQ, says to the sums of PROJECT's session."
  (when (and seq (> seq (magy-project-counted project)))
    (let* ((about (magy--get update :_meta :magy))
           (usage (plist-get about :usage))
           (cost (plist-get about :cost)))
      (setf (magy-project-counted project) seq)
      (setf (magy-project-usage project)
            (magy-header--plus (magy-project-usage project) usage)
            (magy-project-spent project)
            (magy-header--spend (magy-project-spent project) usage cost))
      (if cost
          (cl-incf (magy-project-cost project) cost)
        (cl-incf (magy-project-unpriced project)))
      ;; The request of a reply is a number; titles and summaries are asked for aside.
      (when (and usage (string-match-p "\\`[0-9]+\\'" (or (plist-get about :request) "")))
        (when (> (plist-get usage :totalTokens) 0)
          (setf (magy-project-context project) (plist-get usage :totalTokens)))))))

(defun magy-header--plus (usage more)
  "Return the sum of USAGE and MORE, plists of tokens by kind."
  (let ((sum (copy-sequence usage)))
    (cl-loop for (kind tokens) on more by #'cddr
             do (setq sum (plist-put sum kind (+ tokens (or (plist-get sum kind) 0)))))
    sum))

(defun magy-header--spend (spent usage cost)
  "Return SPENT, what a turn has used, with USAGE and COST, nil if it is not known."
  (let ((before (plist-get spent :cost)))
    (list :usage (magy-header--plus (plist-get spent :usage) usage)
          :cost (list :amount (+ (or cost 0) (or (plist-get before :amount) 0))
                      :unpriced (+ (if cost 0 1) (or (plist-get before :unpriced) 0))))))

(defun magy-header-turn-begins (project)
  "A turn begins in PROJECT's session, which has used nothing yet."
  (setf (magy-project-spent project) nil))

(defun magy-header--turn (project)
  "Return what the turn that goes on in PROJECT's session has used, or nil."
  (let ((spent (magy-project-spent project)))
    (when (and spent (not (equal "idle" (magy-project-state project))))
      (when-let ((words (magy-child-spent (plist-get spent :usage) (plist-get spent :cost))))
        (concat "turn " (string-join words ", "))))))

(defun magy-header--number (number)
  "Return NUMBER, of tokens, for people."
  (file-size-human-readable number 'si))

(defun magy-header--sums (project)
  "Return what PROJECT's session has used, as a list of words."
  (let ((window (magy-project-window project))
        (context (magy-project-context project))
        (cost (magy-project-cost project)))
    (list (when-let ((words (magy-child-spent (magy-project-usage project) nil)))
            (string-join words ", "))
          (and (> window 0) (> context 0)
               (propertize (format "%d%% of %s" (/ (* 100 context) window)
                                   (magy-header--number window))
                           'face (if (> (* 10 context) (* 8 window)) 'warning 'default)
                           'help-echo "How full the model's context is"))
          (and (> cost 0)
               (format "$%.2f%s" cost
                       (if (> (magy-project-unpriced project) 0) "+" ""))))))

(defun magy-header--state (project)
  "Return in a word what PROJECT's session does."
  (let ((state (magy-project-state project))
        (child (magy-child magy-transcript--project (magy-project-session project))))
    (cond ((magy-questions-own project)
           (propertize "? question" 'face 'magy-question))
          ((not (magy-live-p magy-transcript--project)) (propertize "○ off" 'face 'shadow))
          ((equal state "running")
           (propertize (concat "● " (or (magy-project-progress project) "running"))
                       'face 'success))
          ;; Of a child more is known than that nothing runs.
          ((and child (equal state "idle"))
           (concat (magy-child-mark (plist-get child :state)) " " (plist-get child :state)))
          (t (concat "● " (if (equal state "requires_action") "waiting" state))))))

;;;; Parents and children

(defun magy-header--button (text command help)
  "Return TEXT, a click on which calls COMMAND, as HELP says."
  (propertize text 'mouse-face 'header-line-highlight 'help-echo help
              'local-map (let ((map (make-sparse-keymap)))
                           (define-key map [header-line mouse-1] command)
                           map)))

(defun magy-header--parent (project)
  "Return the name of the parent of what PROJECT, or a view, shows, or nil."
  (when-let ((parent (magy-child-parent-id (magy-project-session project))))
    (magy-header--button (concat "↑ " (magy-child-name magy-transcript--project parent))
                         #'magy-header-up
                         "mouse-1: the transcript of its parent")))

(defun magy-header-children (project session)
  "Return how many below SESSION of PROJECT work and wait, for people, or nil."
  (pcase-let ((`(,working ,waiting ,queued) (magy-children-count project session)))
    (let ((words (delq nil (list (magy-header--verb working "works" "work")
                                 (magy-header--verb waiting "asks" "ask")
                                 (magy-header--verb queued "queues" "queue")))))
      (cond ((null words) nil)
            ((= 1 (+ working waiting queued)) (concat "1 agent" (substring (car words) 1)))
            (t (concat "agents: " (string-join words ", ")))))))

(defun magy-header--verb (count one more)
  "Return COUNT and what they do, in the words ONE or MORE, or nil for none."
  (and (> count 0) (format "%d %s" count (if (= count 1) one more))))

(defun magy-header--children (project)
  "Return how many children of what PROJECT, or a view, shows do what."
  (when-let ((text (magy-header-children magy-transcript--project
                                         (magy-project-session project))))
    (magy-header--button (if (string-match-p "\\_<asks?\\_>" text)
                             (propertize text 'face 'magy-question)
                           text)
                         #'magy-header-tree "mouse-1: the tree of agents")))

(defun magy-header--below (project)
  "Return what the children of what PROJECT, or a view, shows have cost."
  (let ((usage nil) (cost 0) (unpriced 0))
    (dolist (child (magy-children-of magy-transcript--project (magy-project-session project)))
      (setq usage (magy-header--plus usage (plist-get child :treeUsage)))
      (cl-incf cost (or (magy--get child :treeCost :amount) 0))
      (cl-incf unpriced (or (magy--get child :treeCost :unpriced) 0)))
    (when-let ((words (magy-child-spent usage (list :amount cost :unpriced unpriced))))
      (concat "agents " (string-join words ", ")))))

(defun magy-header--clicked ()
  "Select the window in whose header the person has clicked."
  (unless (consp last-nonmenu-event)
    (user-error "This works only with the mouse: click on the header of a transcript"))
  (select-window (posn-window (event-start last-nonmenu-event))))

(defun magy-header-up ()
  "Go to the parent of the child agent whose header was clicked."
  (interactive)
  (magy-header--clicked)
  (magy-transcript-up))

(defun magy-header-tree ()
  "Show the tree of agents of the transcript whose header was clicked."
  (interactive)
  (magy-header--clicked)
  (magy-agents-tree))

;;;; The line

(defun magy-header--title (project)
  "Return what the session that PROJECT, or a view, shows is called."
  (let ((child (magy-child magy-transcript--project (magy-project-session project))))
    (cond ((and child (not (string-empty-p (magy-child-task child))))
           (truncate-string-to-width (magy-child-task child) 40 nil nil "…"))
          ((magy-project-title project))
          (t (magy-project-name project)))))

(defconst magy-header--shortest 12
  "A title is cut to so many columns at least, however narrow the window is.")

(defun magy-header--parts (project)
  "Return what comes after the title of PROJECT, or a view: what it is, and costs."
  (let ((options (magy-project-options project)))
    (cl-remove-if
     (lambda (part) (member part '(nil "")))
     (append
      (list (alist-get "agent" options nil nil #'equal)
            (alist-get "model" options nil nil #'equal)
            (and (equal "on" (alist-get "bypass" options nil nil #'equal))
                 (propertize "asks nothing" 'face 'warning)))
      (magy-header--sums project)
      (list (magy-header--turn project)
            (magy-header--children project)
            (magy-header--below project))))))

(defun magy-transcript-header ()
  "Return the header line: what the session is, does and costs.
Where all of it has no room, the title is cut."
  (when-let ((project magy-transcript--view))
    (let* ((parent (magy-header--parent project))
           (before (concat " " (magy-header--state project) "  "
                           parent (and parent " · ")))
           (after (mapconcat (lambda (part) (concat " · " part))
                             (magy-header--parts project) ""))
           (room (- (window-width) (string-width before) (string-width after)))
           (title (truncate-string-to-width (magy-header--title project)
                                            (max room magy-header--shortest)
                                            nil nil "…")))
      (string-replace "%" "%%" (concat before title after)))))

(provide 'magy-header)
;;; magy-header.el ends here
