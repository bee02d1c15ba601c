;;; magy.el --- Coding agents in live buffers  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Magy authors

;; Author: The Magy authors
;; Version: 0.1.0
;; Package-Requires: ((emacs "28.1"))
;; Keywords: tools, convenience
;; URL: https://github.com/magy/magy
;; SPDX-License-Identifier: GPL-3.0-or-later

;; This is free software with no warranty at all; see the file COPYING.

;;; Commentary:

;; Magy runs coding agents that read and edit live buffers, unsaved text
;; included, and ask before they do what a rule does not allow.  This is
;; the client; `magy-server-command' starts the server, one process for
;; each project, beside any language server of the buffer.
;;
;; Bind the commands under a prefix of your own:
;;
;;   (global-set-key (kbd "C-c m") #'magy-command-map)
;;
;; Then C-c m p prompts with the region or the function at point as
;; context, C-c m o goes to the transcript, C-c m y answers a question,
;; and C-c m ? shows all there is.

;;; Code:

(require 'magy-buffers)
(require 'magy-context)
(require 'magy-input)
(require 'magy-permission)
(require 'magy-session)
(require 'magy-transcript)

;;;; Commands

;;;###autoload
(defun magy-prompt (&optional text prefix)
  "Read TEXT and send it to the agent, with the region if it is active.
While the agent works, this steers it.  With \\[universal-argument] as
PREFIX the prompt waits for the turn to end, with \\[universal-argument]
\\[universal-argument] it ends the turn."
  (interactive (list nil current-prefix-arg))
  (magy-prompt-compose "Ask Magy: " :kinds '("selection") :text text :prefix prefix))

;;;###autoload
(defun magy-dwim (&optional text prefix)
  "Read TEXT and send it with what is at point.
That is the region, or the function and the line, and the diagnostics
there; you can change this list before it is sent.  PREFIX is as
in `magy-prompt'."
  (interactive (list nil current-prefix-arg))
  (magy-prompt-compose "Ask Magy: " :text text :prefix prefix))

;;;###autoload
(defun magy-prompt-region (&optional text prefix)
  "Read TEXT and send it with the region.  PREFIX is as in `magy-prompt'."
  (interactive (list nil current-prefix-arg))
  (unless (use-region-p)
    (user-error "The region is not active"))
  (magy-prompt-compose "Ask Magy about the region: "
                       :kinds '("selection") :text text :prefix prefix))

(defvar magy-cancel-functions nil
  "Functions that may stop something at point, and then return non-nil.")

;;;###autoload
(defun magy-cancel ()
  "Stop the rewrite at point, or else the running turn of this project."
  (interactive)
  (unless (run-hook-with-args-until-success 'magy-cancel-functions)
    (let ((project (magy-current-project)))
      (unless (and (magy-live-p project) (magy-project-session project))
        (user-error "Nothing runs here"))
      (magy-session-cancel project))))

;;;###autoload
(defun magy-transcript ()
  "Show the transcript of this project's session and go there."
  (interactive)
  (let ((project (magy-current-project)))
    ;; It may have been killed while its session went on.
    (when (and (magy-project-session project) (not (magy-project-attached project))
               (magy-live-p project))
      (magy-session-ensure project #'ignore))
    (pop-to-buffer (magy-transcript-buffer project))))

;;;###autoload
(defun magy-new-session ()
  "Start a new session in this project; the old one continues and can be resumed."
  (interactive)
  (let ((project (magy-current-project)))
    (magy-when-ready project (lambda ()
                               (magy-session-new project #'ignore)))
    (display-buffer (magy-transcript-buffer project))))

;;;###autoload
(defun magy-clear-session (project)
  "Start PROJECT's conversation over, and empty the transcript.
The running turn is stopped.  Agent and model stay, no model is called,
and `magy-resume-session' brings the old conversation back."
  (interactive (list (magy-current-project)))
  (let ((old (magy-project-session project)))
    (if (null old)
        (magy--message "Magy: there is nothing to clear")
      (magy-session-ensure
       project
       (lambda ()
         (magy-request project 'magy/session/close (list :sessionId old) #'ignore #'ignore)
         (apply #'magy-session-new project #'ignore (magy--session-config project)))))))

;;;###autoload
(defun magy-compact-session (project)
  "Replace the older part of what PROJECT's agent sees with a summary.
The transcript stays unchanged."
  (interactive (list (magy-current-project)))
  (magy-session-ensure
   project
   (lambda ()
     (magy-request project 'magy/session/compact
                   (list :sessionId (magy-project-session project))
                   (lambda (_)
                     (magy--message "Magy: the conversation is being summarized"))))))

(defun magy--session-config (project)
  "Return agent and model of PROJECT's session as parameters for a new one."
  (let ((options (magy-project-options project)))
    (cl-loop for (key . id) in '((:agent . "agent") (:model . "model"))
             for value = (alist-get id options nil nil #'equal)
             unless (member value '(nil ""))
             append (list key value))))

(defun magy--bypass-from-the-start (project)
  "Turn questions off in PROJECT's new session if `magy-bypass-permission' says so."
  (when magy-bypass-permission
    (magy-request project 'magy/session/set_config_option
                  (list :sessionId (magy-project-session project)
                        :configId "bypass" :value "on")
                  #'ignore)))

(add-hook 'magy-session-made-functions #'magy--bypass-from-the-start)

;;;; Keys

(defconst magy-commands
  '(("Ask"
     ("p" magy-dwim "with what point is at")
     ("m" magy-prompt "without")
     ("r" magy-prompt-region "with the region")
     ("a" magy-ask-at-point "about the symbol")
     ("." magy-actions "actions here")
     ("w" magy-rewrite "rewrite in place")
     ("s" magy-spawn-agent "a child agent")
     ("V" magy-deliberate "three agents (MAGI)"))
    ("Agent"
     ("y" magy-answer "answer a question")
     ("Y" magy-permissions "what you allowed")
     ("k" magy-cancel "stop it")
     ("A" magy-select-agent "choose agent")
     ("M" magy-select-model "choose model")
     ("i" magy-show-current-agent "which agent")
     ("v" magy-list-agents "list agents")
     ("u" magy-rulings "rulings of MAGI"))
    ("Session"
     ("o" magy-transcript "transcript")
     ("t" magy-toggle-section "fold")
     ("n" magy-new-session "new")
     ("c" magy-clear-session "clear")
     ("R" magy-resume-session "resume another")
     ("J" magy-agents-tree "tree of agents")
     ("j" magy-show-agent-transcript "a child's transcript")
     ("K" magy-close-agent "close a child"))
    ("Edits"
     ("g" magy-review "under review")
     ("=" magy-review-diff "diff of this file")
     ("]" magy-review-next "next")
     ("[" magy-review-previous "previous")
     ("+" magy-review-accept "accept")
     ("-" magy-review-reject "reject")
     (";" magy-review-comment "comment")
     ("e" magy-review-amend "amend")
     ("U" magy-undo-turn "undo a turn")
     ("P" magy-checkpoints "checkpoints"))
    ("Magy"
     ("d" magy-diagnose-emacs "what is wrong with Emacs")
     ("D" magy-doctor "what is wrong with Magy")
     ("l" magy-show-log "log")
     ("L" magy-clear-log "clear the log")
     ("Q" magy-stop "stop the server")
     ("?" magy-menu "this menu")))
  "Magy's commands: (GROUP (KEY COMMAND WHAT)...).
Keymap and menu are made of it.")

(autoload 'magy-actions "magy-actions" nil t)
(autoload 'magy-actions-context-menu "magy-actions")
(autoload 'magy-agents-tree "magy-agents-tree" nil t)
(autoload 'magy-answer-agent "magy-child" nil t)
(autoload 'magy-ask-at-point "magy-actions" nil t)
(autoload 'magy-cancel-agent "magy-child" nil t)
(autoload 'magy-checkpoints "magy-undo" nil t)
(autoload 'magy-child--special "magy-child")
(autoload 'magy-close-agent "magy-child" nil t)
(autoload 'magy-deliberate "magy-magi" nil t)
(autoload 'magy-diagnose-emacs "magy-diagnose" nil t)
(autoload 'magy-doctor "magy-doctor" nil t)
(autoload 'magy-export-markdown "magy-export" nil t)
(autoload 'magy-export-org "magy-export" nil t)
(autoload 'magy-list-agents "magy-agents" nil t)
(autoload 'magy-menu "magy-menu" nil t)
(autoload 'magy-message-agent "magy-child" nil t)
(autoload 'magy-permissions "magy-permissions" nil t)
(autoload 'magy-redo-turn "magy-undo" nil t)
(autoload 'magy-resume-session "magy-resume" nil t)
(autoload 'magy-review "magy-review" nil t)
(autoload 'magy-review-accept "magy-review" nil t)
(autoload 'magy-review-accept-all "magy-review" nil t)
(autoload 'magy-review-amend "magy-review" nil t)
(autoload 'magy-review-base "magy-review-amend" nil t)
(autoload 'magy-review-comment "magy-review" nil t)
(autoload 'magy-review-diff "magy-review-diff" nil t)
(autoload 'magy-review-ediff "magy-review-amend" nil t)
(autoload 'magy-review-next "magy-review" nil t)
(autoload 'magy-review-previous "magy-review" nil t)
(autoload 'magy-review-reject "magy-review" nil t)
(autoload 'magy-review-reject-all "magy-review" nil t)
(autoload 'magy-review--learn "magy-review-draw")
(autoload 'magy-review-undo-decision "magy-review" nil t)
(autoload 'magy-rewrite "magy-rewrite" nil t)
(autoload 'magy-rulings "magy-magi" nil t)
(autoload 'magy-emotional-log "magy-magi" nil t)
(autoload 'magy-select-agent "magy-agents" nil t)
(autoload 'magy-select-model "magy-agents" nil t)
(autoload 'magy-show-agent-transcript "magy-child" nil t)
(autoload 'magy-show-current-agent "magy-agents" nil t)
(autoload 'magy-spawn-agent "magy-child" nil t)
(autoload 'magy-toggle-bypass-permission "magy-agents" nil t)
(autoload 'magy-undo-turn "magy-undo" nil t)

;;;###autoload (autoload 'magy-command-map "magy" nil t 'keymap)
(defvar magy-command-map
  (let ((map (make-sparse-keymap)))
    (dolist (group magy-commands map)
      (pcase-dolist (`(,key ,command ,_) (cdr group))
        (define-key map key command))))
  "Keymap of Magy's commands; bind it to a prefix of your own.")
(fset 'magy-command-map magy-command-map)

(defvar magy--applied-prefix nil
  "The prefix that `magy-mode-map' has now.")

(defun magy-apply-prefix ()
  "Bind `magy-command-prefix' in files and transcripts.
What it was before is bound no more."
  (dolist (map (list magy-mode-map magy-transcript-mode-map))
    (when magy--applied-prefix
      (define-key map (kbd magy--applied-prefix) nil))
    (when magy-command-prefix
      (define-key map (kbd magy-command-prefix) 'magy-command-map)))
  (setq magy--applied-prefix magy-command-prefix))

(magy-apply-prefix)

;; The review is loaded when there is a server that may know of one.
(add-hook 'magy-ready-functions #'magy-review--learn)

(add-hook 'magy-special-prompt-functions #'magy-child--special)

(add-hook 'context-menu-functions #'magy-actions-context-menu 90)

(define-key magy-transcript-mode-map (kbd "C-c C-k") #'magy-cancel)
(define-key magy-transcript-mode-map "?" #'magy-menu)
(define-key magy-transcript-mode-map "R" #'magy-resume-session)
(define-key magy-transcript-mode-map "J" #'magy-agents-tree)
(define-key magy-transcript-mode-map "K" #'magy-close-agent)

(declare-function feature-file "loadhist")

(defun magy-unload-function ()
  "Leave nothing behind: end the servers, and unload Magy's other files, too."
  (remove-hook 'context-menu-functions #'magy-actions-context-menu)
  (dolist (project (hash-table-values magy--projects))
    (when (buffer-live-p (magy-project-buffer project))
      (kill-buffer (magy-project-buffer project))))
  (require 'loadhist)
  (let ((here (file-name-directory (feature-file 'magy))))
    (dolist (feature (copy-sequence features)) ; those that need others come first
      (when (and (string-prefix-p "magy-" (symbol-name feature))
                 (equal here (file-name-directory (feature-file feature))))
        (unload-feature feature t))))
  nil)

(provide 'magy)
;;; magy.el ends here
