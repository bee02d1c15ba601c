;;; magy-agents-tree.el --- The tree of agents  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Magy authors
;; SPDX-License-Identifier: GPL-3.0-or-later
;; This is free software with no warranty at all; see the file COPYING.

;;; Commentary:

;; A table of the session of a project and all agents below it: what they
;; do, ask and cost.  It stays in step by itself.

;;; Code:

(require 'magy-child)
(require 'tabulated-list)

(defvar-local magy-agents-tree--folded nil
  "Ids of the sessions whose children are not shown.")

(defvar-local magy-agents-tree--hides nil
  "Non-nil if agents that are closed are not shown.")

(defvar magy-agents-tree-mode-map
  (let ((map (make-sparse-keymap)))
    (pcase-dolist (`(,key . ,command)
                   '(("RET" . magy-agents-tree-visit) ("o" . magy-agents-tree-show)
                     ("m" . magy-message-agent) ("a" . magy-answer-agent)
                     ("k" . magy-close-agent) ("s" . magy-cancel-agent)
                     ("+" . magy-spawn-agent) ("TAB" . magy-agents-tree-fold)
                     ("." . magy-agents-tree-hide) ("^" . magy-agents-tree-up)))
      (define-key map (kbd key) command))
    map)
  "Keymap of `magy-agents-tree-mode'.")

(define-derived-mode magy-agents-tree-mode tabulated-list-mode "Magy Tree"
  "The session of a project, and the agents below it.
The marks: ▸ runs, ? asks, · waits to begin, ✓ completed, ✗ failed,
⊘ cancelled, ▪ closed; ○ the root, which has nothing to do.
\\{magy-agents-tree-mode-map}"
  (setq tabulated-list-format [("Agent" 40 nil)
                               ("State" 9 nil)
                               ("Asks" 4 nil :right-align t)
                               ("Turns" 5 nil :right-align t)
                               ("Tokens" 6 nil :right-align t)
                               ("Cost" 7 nil :right-align t :pad-right 2)
                               ("Says" 0 nil)]
        tabulated-list-padding 1
        magy-child-at-point-function #'tabulated-list-get-id)
  (setq-local revert-buffer-function #'magy-agents-tree--revert)
  (tabulated-list-init-header))

;;;; Rows

(defun magy-agents-tree--rows (project)
  "Return the rows of PROJECT: (ID . COLUMNS)."
  (when-let ((session (magy-project-session project)))
    (cons (list session (magy-agents-tree--root project))
          (magy-agents-tree--below project session ""))))

(defun magy-agents-tree--below (project session indent)
  "Return the rows of what is below SESSION of PROJECT, each behind INDENT."
  (unless (member session magy-agents-tree--folded)
    (let ((children (cl-remove-if (lambda (child)
                                    (and magy-agents-tree--hides
                                         (equal "closed" (plist-get child :state))))
                                  (magy-children-of project session))))
      (cl-loop for (child . more) on children
               append (magy-agents-tree--row project child indent (null more))))))

(defun magy-agents-tree--row (project child indent last)
  "Return the row of CHILD of PROJECT, behind INDENT, and those of its children.
LAST means that it is the last one of its parent."
  (let ((id (plist-get child :sessionId)))
    (cons (list id (magy-agents-tree--columns
                    project child (concat indent (if last "└ " "├ "))))
          (magy-agents-tree--below project id (concat indent (if last "  " "│ "))))))

(defun magy-agents-tree--columns (project child before)
  "Return the columns of CHILD of PROJECT; BEFORE stands before its name."
  (let* ((state (plist-get child :state))
         (questions (or (plist-get child :questions) 0))
         (over (not (magy-child-live-p child)))
         (name (plist-get child :name)))
    (vector
     (concat (propertize before 'face 'shadow) (magy-child-mark state) " "
             (propertize (plist-get child :agent) 'face (if over 'shadow 'bold))
             (if (member name '(nil ""))
                 ""
               (concat "  " (if over (propertize name 'face 'shadow) name)))
             (magy-agents-tree--folded-words project (plist-get child :sessionId)))
     (if (or over (magy-live-p project))
         (propertize state 'face (magy-agents-tree--face state))
       (propertize "off" 'face 'shadow))
     (if (= questions 0) "" (propertize (number-to-string questions) 'face 'magy-question))
     (number-to-string (or (plist-get child :turns) 0))
     (magy-agents-tree--tokens (plist-get child :usage))
     (or (magy-child-dollars (plist-get child :cost)) "")
     (propertize (string-replace "\n" " " (or (plist-get child :said) "")) 'face 'shadow))))

(defun magy-agents-tree--root (project)
  "Return the columns of the session of PROJECT, the root of its tree."
  (let ((agent (alist-get "agent" (magy-project-options project) nil nil #'equal))
        (session (magy-project-session project))
        (questions (length (magy-project-questions project)))
        (state (magy-project-state project)))
    (vector
     (concat (magy-child-mark (if (equal state "requires_action") "waiting" state)) " "
             (propertize (or agent "agent") 'face 'bold) "  "
             (or (magy-project-title project) (magy-project-name project))
             (magy-agents-tree--folded-words project session))
     (cond ((not (magy-live-p project)) (propertize "off" 'face 'shadow))
           ((equal state "requires_action") (propertize "waiting" 'face 'magy-question))
           (t (propertize state 'face (magy-agents-tree--face state))))
     (if (= questions 0) "" (propertize (number-to-string questions) 'face 'magy-question))
     ""
     (magy-agents-tree--tokens (magy-project-usage project))
     (or (magy-child-dollars (list :amount (magy-project-cost project)
                                   :unpriced (magy-project-unpriced project)))
         "")
     "")))

(defun magy-agents-tree--tokens (usage)
  "Return the tokens of USAGE, with what is known of them as a tooltip."
  (propertize (or (magy-child-tokens usage) "")
              'help-echo (string-join (magy-child-spent usage nil) ", ")))

(defun magy-agents-tree--face (state)
  "Return the face of STATE."
  (pcase state
    ("running" 'success) ("waiting" 'magy-question) ("failed" 'error)
    ("queued" 'default) (_ 'shadow)))

(defun magy-agents-tree--folded-words (project id)
  "Say how many are folded below ID of PROJECT, or nothing."
  (if (member id magy-agents-tree--folded)
      (propertize (format "  …%d more" (length (magy-children-below project id))) 'face 'shadow)
    ""))

;;;; Drawing

(defun magy-agents-tree--print ()
  "Draw the rows anew; point stays at its agent and in its column."
  (let* ((project magy--own-project)
         (windows (mapcar (lambda (window)
                            (cons window (magy-agents-tree--place (window-point window))))
                          (get-buffer-window-list nil nil t)))
         (here (magy-agents-tree--place (point))))
    (setq tabulated-list-entries (magy-agents-tree--rows project))
    (tabulated-list-print)
    (goto-char (magy-agents-tree--position here))
    (pcase-dolist (`(,window . ,place) windows)
      (set-window-point window (magy-agents-tree--position place)))
    (setq mode-line-process
          (let ((words (magy-header-children project (magy-project-session project))))
            (if words (concat " " words) "")))))

(defun magy-agents-tree--place (pos)
  "Return what POS is: an agent, a line and a column."
  (save-excursion
    (goto-char pos)
    (list (tabulated-list-get-id) (line-number-at-pos) (current-column))))

(defun magy-agents-tree--position (place)
  "Return where PLACE, as of `magy-agents-tree--place', is now."
  (pcase-let ((`(,id ,line ,column) place))
    (save-excursion
      (goto-char (point-min))
      (while (not (or (eobp) (and id (equal id (tabulated-list-get-id)))))
        (forward-line))
      (when (eobp)
        (goto-char (point-min))
        (forward-line (1- line))
        (when (and (eobp) (not (bobp))) (forward-line -1)))
      (move-to-column column)
      (point))))

(defun magy-agents-tree--buffer (project)
  "Return the buffer with the tree of PROJECT, or nil."
  (cl-find-if (lambda (buffer)
                (and (eq 'magy-agents-tree-mode (buffer-local-value 'major-mode buffer))
                     (eq project (buffer-local-value 'magy--own-project buffer))))
              (buffer-list)))

(defun magy-agents-tree--redraw (project &rest _)
  "Show the tree of PROJECT as it is now, if it is shown."
  (when-let ((buffer (magy-agents-tree--buffer project)))
    (with-current-buffer buffer (magy-agents-tree--print))))

(defun magy-agents-tree--shown (project)
  "Draw the tree of PROJECT if its root is not as it is drawn."
  (when-let ((buffer (and (not (magy-view-p project)) (magy-agents-tree--buffer project))))
    (with-current-buffer buffer
      (unless (equal (cdar (magy-agents-tree--rows project)) (cdar tabulated-list-entries))
        (magy-agents-tree--print)))))

(add-hook 'magy-children-changed-functions #'magy-agents-tree--redraw)
(add-hook 'magy-session-shown-functions #'magy-agents-tree--shown)
(add-hook 'magy-death-functions #'magy-agents-tree--redraw 90)

;;;; Commands

;;;###autoload
(defun magy-agents-tree ()
  "Show the agents of this project: its session, and all below it."
  (interactive)
  (let* ((project (magy-current-project))
         (buffer (get-buffer-create (format "*magy tree: %s*" (magy-project-name project)))))
    (with-current-buffer buffer
      (unless (derived-mode-p 'magy-agents-tree-mode)
        (magy-agents-tree-mode))
      (setq magy--own-project project
            default-directory (magy-project-root project))
      (magy-agents-tree--print))
    (pop-to-buffer buffer)
    (magy-agents-tree--refresh project)))

(defun magy-agents-tree--refresh (project)
  "Ask for the agents of PROJECT and show them."
  (if (null (magy-project-session project))
      (magy--message "Magy: %s has no session yet" (magy-project-name project))
    (magy-session-ensure
     project
     (lambda ()
       (magy-children-learn project (magy-project-session project)
                            (lambda () (magy-agents-tree--redraw project)))))))

(defun magy-agents-tree--revert (&rest _)
  "Ask for the agents anew."
  (magy-agents-tree--refresh magy--own-project))

(defun magy-agents-tree--here ()
  "Return the id of the session at point."
  (magy--in-mode 'magy-agents-tree-mode)
  (or (tabulated-list-get-id) (user-error "No agent here")))

(defun magy-agents-tree-visit ()
  "Go to the live transcript of the agent at point."
  (interactive nil magy-agents-tree-mode)
  (pop-to-buffer (magy-transcript-of magy--own-project (magy-agents-tree--here))))

(defun magy-agents-tree-show ()
  "Show the live transcript of the agent at point; stay here."
  (interactive nil magy-agents-tree-mode)
  (display-buffer (magy-transcript-of magy--own-project (magy-agents-tree--here))))

(defun magy-agents-tree-up ()
  "Go to the line of the parent of the agent at point."
  (interactive nil magy-agents-tree-mode)
  (let ((parent (or (magy-child-parent-id (magy-agents-tree--here))
                    (user-error "This agent has no parent"))))
    (goto-char (magy-agents-tree--position (list parent 1 (current-column))))))

(defun magy-agents-tree-fold ()
  "Hide the agents below the one at point, or show them again."
  (interactive nil magy-agents-tree-mode)
  (let ((id (magy-agents-tree--here)))
    (unless (magy-children-of magy--own-project id)
      (user-error "This agent has no children"))
    (setq magy-agents-tree--folded
          (if (member id magy-agents-tree--folded)
              (delete id magy-agents-tree--folded)
            (cons id magy-agents-tree--folded)))
    (magy-agents-tree--print)))

(defun magy-agents-tree-hide ()
  "Hide the agents that are closed, or show them again."
  (interactive nil magy-agents-tree-mode)
  (magy--in-mode 'magy-agents-tree-mode)
  (setq magy-agents-tree--hides (not magy-agents-tree--hides))
  (magy-agents-tree--print)
  (message "Agents that are closed are %s" (if magy-agents-tree--hides "hidden" "shown")))

(provide 'magy-agents-tree)
;;; magy-agents-tree.el ends here
