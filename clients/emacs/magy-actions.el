;;; magy-actions.el --- The server's actions at point  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Magy authors
;; SPDX-License-Identifier: GPL-3.0-or-later
;; This is free software with no warranty at all; see the file COPYING.

;;; Commentary:

;; Explain, fix, refactor, write tests and so on are code actions of the
;; server, with those that agents and skills add.  `magy-actions' asks
;; what there is at point or in the region and does what is chosen.

;;; Code:

(require 'magy-choose)
(require 'magy-context)
(require 'magy-editor)

(declare-function magy-rewrite "magy-rewrite")

(defun magy-actions--document ()
  "Return the current buffer's document, or say why there is none."
  (cond ((or (null buffer-file-name) (file-remote-p buffer-file-name))
         (user-error "Actions work only in local files"))
        ((null magy-mode) (magy-mode) magy--document)
        (t magy--document)))

(defun magy-actions--with-document (then)
  "Call THEN in this buffer when PROJECT has a session and knows the buffer.
It is called with the project, and parameters that say what is meant: the
region, or else the symbol or place at point."
  (let ((project (magy-current-project))
        (buffer (current-buffer))
        (point (point-marker))
        (region (and (use-region-p)
                     (cons (copy-marker (region-beginning)) (copy-marker (region-end)))))
        (symbol (bounds-of-thing-at-point 'symbol)))
    (magy-actions--document)
    (magy-session-ensure
     project
     (lambda ()
       (when (buffer-live-p buffer)
         (with-current-buffer buffer
           (if (null magy--document)
               (magy--message "Magy: %s is not in the project %s"
                              (buffer-name) (magy-project-name project))
             (funcall then project
                      (magy-actions--meant project point (or region symbol)
                                           region)))))))))

(defun magy-actions--meant (project point bounds region)
  "Return what BOUNDS, or POINT, of this buffer of PROJECT is as parameters.
REGION is as in `magy-editor-diagnostics-at'."
  (let ((encoding (magy-project-encoding project))
        (bounds (or bounds (cons point point))))
    (list :uri (magy-document-uri magy--document)
          :range (magy--range (car bounds) (cdr bounds) encoding)
          :diagnostics (magy-editor-diagnostics-at point region encoding))))

;;;; Doing one

(defun magy-actions--own (arguments session)
  "Return ARGUMENTS, those of a command of Magy's, with SESSION said."
  (let ((first (and (> (length arguments) 0) (elt arguments 0))))
    (if (and (consp first) (null (plist-get first :sessionId)))
        (vconcat (list (append first (list :sessionId session))) (seq-drop arguments 1))
      arguments)))

(defun magy-actions-execute (project command)
  "Have PROJECT's server execute COMMAND, a plist as in LSP."
  (let ((name (plist-get command :command)))
    (magy-request
     project 'workspace/executeCommand
     (list :command name
           :arguments (if (string-prefix-p "magy." name)
                          (magy-actions--own (plist-get command :arguments)
                                             (magy-project-session project))
                        (or (plist-get command :arguments) [])))
     #'ignore)
    (magy-prompt-show project)))

(defun magy-actions--apply (project action)
  "Do what ACTION, resolved, says, for PROJECT: its edit, then its command."
  (when-let ((edit (plist-get action :edit)))
    (let ((result (magy-handle-request project 'workspace/applyEdit (list :edit edit))))
      (unless (eq t (plist-get result :applied))
        (user-error "Magy: %s" (plist-get result :failureReason)))))
  (let ((command (plist-get action :command)))
    (cond ((stringp command) (magy-actions-execute project action)) ; ACTION is a bare command
          (command (magy-actions-execute project command)))))

(defun magy-actions--do (project action)
  "Do ACTION of PROJECT's server, which may have to be asked for the rest of it."
  (if (or (plist-get action :edit) (plist-get action :command))
      (magy-actions--apply project action)
    (magy-request project 'codeAction/resolve action
                  (lambda (whole) (magy-actions--apply project whole)))))

;;;; Choosing one

(defun magy-actions--offer (asked project actions)
  "Let the person choose one of ACTIONS of PROJECT's server.
ASKED is as in `magy-choose'."
  (let ((able (seq-remove (lambda (action) (plist-get action :disabled)) actions)))
    (if (null able)
        (message "Magy has no actions here")
      (magy-choose asked "Magy: "
                   (mapcar (lambda (action) (cons (plist-get action :title) action)) able)
                   (lambda (action) (magy-actions--do project action))))))

;;;###autoload
(defun magy-actions ()
  "Choose an action for point or the region, and run it."
  (interactive)
  (let ((asked (magy-choose-begin)))
    (magy-actions--with-document
     (lambda (project meant)
       (magy-request
        project 'textDocument/codeAction
        (list :textDocument (list :uri (plist-get meant :uri))
              :range (plist-get meant :range)
              :context (list :diagnostics (plist-get meant :diagnostics) :triggerKind 1))
        (lambda (actions)
          (magy-actions--offer asked project (append actions nil))))))))

(defun magy-actions-run (action &optional text)
  "Have the server's ACTION done at point or in the region, with TEXT if given."
  (magy-actions--with-document
   (lambda (project meant)
     (magy-actions-execute
      project
      (list :command "magy.action.run"
            :arguments (vector (append (list :action action
                                             :messageId (magy--new-id "action"))
                                       meant
                                       (and text (list :text (magy--json-text text)))))))))
  (deactivate-mark))

;;;###autoload
(defun magy-ask-at-point (question)
  "Ask QUESTION about the symbol at point."
  (interactive
   (let ((symbol (or (thing-at-point 'symbol t) (user-error "No symbol here"))))
     (list (magy-context-read-only (format "Ask Magy about %s: " symbol)
                                   (format "What is %s, and what is it for?" symbol)))))
  (magy-actions-run "ask" question))

;;;; In the context menu

(defconst magy-actions--menu
  '(("Explain" . "explain") ("Fix" . "fix") ("Refactor" . "refactor")
    ("Write tests" . "tests") ("Document" . "document") ("Continue here" . "continue"))
  "What the context menu offers: (LABEL . ACTION).")

;;;###autoload
(defun magy-actions-context-menu (menu click)
  "Add Magy's actions where CLICK was to MENU; for `context-menu-functions'."
  (when (bound-and-true-p magy-mode)
    (let ((own (make-sparse-keymap "Magy")))
      (dolist (entry `(("Ask…" . magy-dwim) ("Rewrite…" . magy-rewrite)
                       ("More…" . magy-actions)))
        (define-key own (vector (cdr entry))
          `(menu-item ,(car entry) ,(magy-actions--at-click click (cdr entry)))))
      (pcase-dolist (`(,label . ,action) (reverse magy-actions--menu))
        (define-key own (vector (intern action))
          `(menu-item ,label
                      ,(magy-actions--at-click click (lambda ()
                                                       (interactive)
                                                       (magy-actions-run action))))))
      (define-key-after menu [magy-separator] menu-bar-separator)
      (define-key-after menu [magy] `(menu-item "Magy" ,own))))
  menu)

(defun magy-actions--at-click (click command)
  "Return a command that does COMMAND where CLICK was, or with the region."
  (lambda ()
    (interactive)
    (select-window (posn-window (event-start click)))
    (unless (use-region-p)
      (posn-set-point (event-start click)))
    (call-interactively command)))

(provide 'magy-actions)
;;; magy-actions.el ends here
