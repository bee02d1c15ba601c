;;; magy-agents.el --- Agents, models and what they may do unasked  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Magy authors
;; SPDX-License-Identifier: GPL-3.0-or-later
;; This is free software with no warranty at all; see the file COPYING.

;;; Commentary:

;; Which agent and model a session has, and the choice of others.

;;; Code:

(require 'magy-choose)
(require 'magy-modeline)
(require 'magy-session)
(require 'tabulated-list)

(defun magy-agents--option (project id)
  "Return the value of the option ID of PROJECT's session, or nil."
  (alist-get id (magy-project-options project) nil nil #'equal))

(defun magy-agents--set (project id value)
  "Give the option ID of PROJECT's session VALUE, and say so."
  (magy-request project 'magy/session/set_config_option
                (list :sessionId (magy-project-session project) :configId id :value value)
                (lambda (result)
                  (magy-session--options project (plist-get result :configOptions))
                  (force-mode-line-update t)
                  (magy--message "Magy: %s of %s is now %s" id (magy-project-name project)
                                 (magy-agents--option project id)))))

(defun magy-agents--get (project then)
  "Call THEN with the list of agents that PROJECT's session may have."
  (magy-request project 'magy/agent/list
                (list :cwd (directory-file-name (magy-project-root project)))
                (lambda (result) (funcall then (append (plist-get result :agents) nil)))))

;;;###autoload
(defun magy-select-agent ()
  "Choose the agent of this project's session, from the next turn on."
  (interactive)
  (let ((project (magy-current-project)) (asked (magy-choose-begin)))
    (magy-session-ensure
     project
     (lambda ()
       (magy-agents--get
        project
        (lambda (agents)
          (magy-choose asked
                       (format "Agent (now %s): " (magy-agents--option project "agent"))
                       (mapcar (lambda (agent) (cons (plist-get agent :name) agent)) agents)
                       (lambda (agent)
                         (magy-agents--set project "agent" (plist-get agent :name)))
                       :annotate (lambda (agent) (plist-get agent :description)))))))))

;;;###autoload
(defun magy-select-model ()
  "Choose the model of this project's session.
The providers are asked which models they have.  One that does not say so
within some seconds is named in *Messages*, with the reason."
  (interactive)
  (let ((project (magy-current-project)) (asked (magy-choose-begin)))
    (magy-session-ensure
     project
     (lambda ()
       (magy-request
        project 'magy/model/list
        (list :cwd (directory-file-name (magy-project-root project)))
        (lambda (result)
          (let ((providers (append (plist-get result :providers) nil)))
            (mapc #'magy-agents--lacks providers)
            (magy-choose asked
                         (format "Model (now %s): " (magy-agents--option project "model"))
                         (mapcar (lambda (model) (cons model model))
                                 (magy-agents--models project providers))
                         (lambda (model) (magy-agents--set project "model" model))))))))))

(defun magy-agents--models (project providers)
  "Return the models that PROJECT's session may have: known ones, then PROVIDERS'."
  (delete-dups
   (append (alist-get "model" (magy-project-choices project) nil nil #'equal)
           (seq-mapcat (lambda (one) (append (plist-get one :models) nil)) providers)
           nil)))

(defun magy-agents--lacks (provider)
  "Say why PROVIDER has not told its models, if it has not."
  (let ((problem (plist-get provider :problem)))
    (unless (member problem '(nil ""))
      (message "Magy: %s" problem))))

;;;###autoload
(defun magy-toggle-bypass-permission ()
  "Answer this session's questions with yes, or ask the person again.
Deny rules still hold."
  (interactive)
  (let ((project (magy-current-project)))
    (magy-session-ensure
     project
     (lambda ()
       (magy-agents--set project "bypass"
                         (if (equal (magy-agents--option project "bypass") "on")
                             "off" "on"))))))

;;;###autoload
(defun magy-show-current-agent ()
  "Show the agent, model and state of this project's session."
  (interactive)
  (let ((project (magy-current-project)))
    (if (null (magy-project-session project))
        (message "%s has no session yet; it would start with the agent %s"
                 (magy-project-name project) magy-default-agent)
      (magy-session-ensure
       project
       (lambda ()
         (magy--message
          "%s: agent %s, model %s, edits %s, questions %s; %s, %s"
          (magy-project-name project)
          (magy-agents--option project "agent") (magy-agents--option project "model")
          (or (magy-agents--option project "review") "review")
          (if (equal (magy-agents--option project "bypass") "on") "bypassed" "asked")
          (magy-modeline--doing project) (magy-modeline-cost project)))))))

;;;; The list

(defvar magy-agents-mode-map
  (let ((map (make-sparse-keymap)))
    (define-key map (kbd "RET") #'magy-agents-choose)
    map)
  "Keymap of `magy-agents-mode'.")

(define-derived-mode magy-agents-mode tabulated-list-mode "Magy-Agents"
  "The agents that a session may have.
\\{magy-agents-mode-map}"
  (setq tabulated-list-format [("Agent" 16 t) ("Mode" 9 t) ("Model" 24 t)
                               ("What it is for" 0 t)])
  (tabulated-list-init-header))

(defun magy-agents--entry (agent current)
  "Return the line of AGENT; the one called CURRENT is marked."
  (let ((name (plist-get agent :name)))
    (list name (vector (if (equal name current) (propertize name 'face 'bold) name)
                       (plist-get agent :mode)
                       (or (plist-get agent :model) "the session's")
                       (plist-get agent :description)))))

(defun magy-agents--show (project agents)
  "Show AGENTS, those of PROJECT."
  (with-current-buffer (get-buffer-create (format "*magy agents: %s*"
                                                  (magy-project-name project)))
    (magy-agents-mode)
    (setq magy--own-project project
          tabulated-list-entries
          (mapcar (lambda (agent)
                    (magy-agents--entry agent (magy-agents--option project "agent")))
                  agents))
    (tabulated-list-print)
    (setq-local revert-buffer-function (lambda (&rest _) (magy-list-agents)))
    (display-buffer (current-buffer))))

;;;###autoload
(defun magy-list-agents ()
  "List the agents that this project's session can use."
  (interactive)
  (let ((project (magy-current-project)))
    (magy-when-ready project
                     (lambda ()
                       (magy-agents--get project
                                         (lambda (agents)
                                           (magy-agents--show project agents)))))))

(defun magy-agents-choose ()
  "Use the agent at point in this project's session."
  (interactive)
  (let ((project magy--own-project)
        (name (or (tabulated-list-get-id) (user-error "No agent here"))))
    (magy-session-ensure project (lambda () (magy-agents--set project "agent" name)))))

(provide 'magy-agents)
;;; magy-agents.el ends here
