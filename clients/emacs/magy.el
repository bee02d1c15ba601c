;;; magy.el --- Coding agents in live buffers  -*- lexical-binding: t; -*-

;; Author: The Magy authors
;; Version: 0.1.0
;; Package-Requires: ((emacs "28.1"))
;; Keywords: tools, convenience
;; URL: https://github.com/magy/magy

;; Copyright (C) 2026 The Magy authors
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
;;   (global-set-key (kbd "C-c m") magy-command-map)
;;
;; Then C-c m p prompts with the region or the function at point as
;; context, C-c m t shows the transcript, C-c m y answers a question.

;;; Code:

(require 'magy-buffers)
(require 'magy-permission)
(require 'magy-session)
(require 'magy-transcript)

(defcustom magy-show-transcript t
  "Whether a prompt shows the transcript in another window, without selecting it."
  :type 'boolean
  :group 'magy
  :package-version '(magy . "0.1"))

(defvar magy-prompt-history nil
  "What was asked.")

;;;; Context

(defun magy--link (pos)
  "Return a block that says where POS is in the current file."
  (let ((line (line-number-at-pos pos t)))
    (list :type "resource_link"
          :uri (format "%s#L%d" (magy--path-to-uri (file-truename buffer-file-name)) line)
          :name (format "%s:%d" (file-name-nondirectory buffer-file-name) line))))

(defun magy--excerpt (beg end)
  "Return a block with the text from BEG to END and where it is."
  (list :type "resource"
        :resource (list :uri (format "%s#L%d-L%d"
                                     (if buffer-file-name
                                         (magy--path-to-uri (file-truename buffer-file-name))
                                       (concat "emacs-buffer:" (url-hexify-string (buffer-name))))
                                     (line-number-at-pos beg t)
                                     (line-number-at-pos (max beg (1- end)) t))
                        :text (magy--text beg end))))

(defun magy--region ()
  "Return the active region as a list of one block, or nil."
  (when (use-region-p)
    (list (magy--excerpt (region-beginning) (region-end)))))

(defun magy--context ()
  "Return blocks for what point is at: the region, or the function and the place."
  (or (magy--region)
      (when (and buffer-file-name (not (file-remote-p buffer-file-name)))
        (let ((bounds (and (derived-mode-p 'prog-mode)
                           (bounds-of-thing-at-point 'defun))))
          (append (and bounds (list (magy--excerpt (car bounds) (cdr bounds))))
                  (list (magy--link (point))))))))

(defun magy--delivery (prefix)
  "Return the delivery that the PREFIX argument means."
  (pcase (prefix-numeric-value prefix)
    (4 "queue") (16 "interrupt") (_ "auto")))

(defun magy--read-prompt (context)
  "Read a prompt that will go with the blocks in CONTEXT."
  (let ((text (read-string
               (format "Ask Magy%s: "
                       (if context
                           (format " (with %s)" (mapconcat #'magy-transcript--block
                                                           context " "))
                         ""))
               nil 'magy-prompt-history)))
    (if (string-blank-p text) (user-error "Nothing to ask") text)))

(defun magy--send (text context prefix)
  "Send TEXT with CONTEXT to the current project; PREFIX says how."
  (let ((project (magy-current-project)))
    (deactivate-mark)
    (magy-session-prompt project (cons (list :type "text" :text (magy--json-text text)) context)
                         (magy--delivery prefix))
    (when magy-show-transcript
      (save-selected-window (display-buffer (magy-transcript-buffer project))))))

;;;; Commands

;;;###autoload
(defun magy-prompt (text &optional prefix)
  "Send TEXT to the project's agent, with the active region as context.
While the agent works, this steers it; with \\[universal-argument] as PREFIX the prompt
waits for the turn to end, with \\[universal-argument] \\[universal-argument] it ends the turn."
  (interactive (list (magy--read-prompt (magy--region)) current-prefix-arg))
  (magy--send text (magy--region) prefix))

;;;###autoload
(defun magy-dwim (text &optional prefix)
  "Send TEXT with what point is at: the region, or the function and the place.
PREFIX is as in `magy-prompt'."
  (interactive (list (magy--read-prompt (magy--context)) current-prefix-arg))
  (magy--send text (magy--context) prefix))

;;;###autoload
(defun magy-cancel ()
  "Stop what the agent of this project does now."
  (interactive)
  (let ((project (magy-current-project)))
    (unless (and (magy-live-p project) (magy-project-session project))
      (user-error "Nothing runs here"))
    (magy-session-ensure
     project
     (lambda ()
       (magy-request project 'magy/session/cancel
                     (list :sessionId (magy-project-session project))
                     (lambda (result)
                       (unless (magy--true (plist-get result :cancelled))
                         (magy--message "Magy: nothing runs here"))))))))

;;;###autoload
(defun magy-transcript ()
  "Show the transcript of this project's session and go there."
  (interactive)
  (pop-to-buffer (magy-transcript-buffer (magy-current-project))))

;;;###autoload
(defun magy-new-session ()
  "Begin a new session in this project; the old one goes on and can be resumed."
  (interactive)
  (let ((project (magy-current-project)))
    (magy-when-ready project (lambda ()
                               (magy-session-new project #'ignore)))
    (display-buffer (magy-transcript-buffer project))))

;;;; Resuming

(defun magy--session-line (info)
  "Return INFO, about a session, as a line to choose."
  (format "%s  %s  %s"
          (if-let ((at (plist-get info :updatedAt)))
              (format-time-string "%F %R" (date-to-time at))
            (make-string 16 ?\s))
          (or (plist-get info :title) (plist-get info :sessionId))
          (propertize (format "(%d turns, %s, %s)" (plist-get info :turns)
                              (plist-get info :state)
                              (substring (plist-get info :sessionId)
                                         (- (min 6 (length (plist-get info :sessionId))))))
                      'face 'shadow)))

(defun magy--choose-session (project sessions)
  "Have the person choose one of SESSIONS; PROJECT's own are the first group."
  (let* ((own (directory-file-name (magy-project-root project)))
         (lines (seq-map (lambda (info) (cons (magy--session-line info) info)) sessions))
         (group (lambda (line transform)
                  (let ((root (plist-get (cdr (assoc line lines)) :root)))
                    (cond (transform line)
                          ((equal root own) "This project")
                          (t (or root "No project"))))))
         (table (lambda (string predicate action)
                  (if (eq action 'metadata)
                      ;; The server's order is the right one: newest first in each group.
                      `(metadata (group-function . ,group)
                                 (display-sort-function . identity)
                                 (cycle-sort-function . identity))
                    (complete-with-action action lines string predicate)))))
    (cdr (assoc (completing-read "Resume: " table nil t nil nil (caar lines)) lines))))

(defun magy--resume (project info)
  "Show the session that INFO is about, in PROJECT if it is one of its own."
  (let ((project (if-let ((root (plist-get info :root)))
                     (magy-project-for root)
                   project)))
    (magy-when-ready
     project
     (lambda ()
       (magy-session-attach project (plist-get info :sessionId) #'ignore)))
    (display-buffer (magy-transcript-buffer project))))

;;;###autoload
(defun magy-resume ()
  "Choose a session, this project's first, show its last turns and go on with it."
  (interactive)
  (let ((project (magy-current-project)))
    (magy-when-ready
     project
     (lambda ()
       (magy-request
        project 'magy/session/list
        (list :cwd (directory-file-name (magy-project-root project)) :limit 200)
        (lambda (result)
          ;; Not in the process filter: it must not wait for a person.
          (run-with-timer 0 nil #'magy--resume-one-of project
                          (plist-get result :sessions))))))))

(defun magy--resume-one-of (project sessions)
  "Let the person choose one of SESSIONS and show it; PROJECT asked."
  (cond ((seq-empty-p sessions) (message "Magy has no sessions yet"))
        ((active-minibuffer-window)
         (message "The sessions are there: say M-x magy-resume once more"))
        (t (magy--resume project (magy--choose-session project sessions)))))

;;;; Keys

;;;###autoload (autoload 'magy-command-map "magy" nil t 'keymap)
(defvar magy-command-map
  (let ((map (make-sparse-keymap)))
    (define-key map "p" #'magy-dwim)
    (define-key map "m" #'magy-prompt)
    (define-key map "r" #'magy-prompt)
    (define-key map "k" #'magy-cancel)
    (define-key map "y" #'magy-answer)
    (define-key map "t" #'magy-transcript)
    (define-key map "n" #'magy-new-session)
    (define-key map "R" #'magy-resume)
    (define-key map "Q" #'magy-stop)
    map)
  "Keymap of Magy's commands; bind it to a prefix of your own.")
(fset 'magy-command-map magy-command-map)

(define-key magy-transcript-mode-map "m" #'magy-prompt)
(define-key magy-transcript-mode-map "k" #'magy-cancel)
(define-key magy-transcript-mode-map "R" #'magy-resume)
(define-key magy-transcript-mode-map "+" #'magy-session-show-older)
(define-key magy-transcript-mode-map (kbd "C-c C-k") #'magy-cancel)

(provide 'magy)
;;; magy.el ends here
