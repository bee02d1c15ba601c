;;; magy-permission.el --- Answering Magy's questions  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Magy authors
;; SPDX-License-Identifier: GPL-3.0-or-later
;; This is free software with no warranty at all; see the file COPYING.


;;; Commentary:

;; A question never takes a window or the minibuffer.  It is a line with
;; buttons and keys in the transcript, a message, and an indicator in the
;; mode line, until it is answered: here, in another editor, or after a
;; restart.  The first answer wins.

;;; Code:

(require 'magy-modeline)
(require 'magy-session)

(defun magy-permission--choices (question)
  "Return the answers to QUESTION: a list of (CHAR LABEL OUTCOME SCOPE)."
  (append '((?y "allow once" "allow" "once"))
          ;; What cannot be said narrowly is not remembered.
          (unless (seq-empty-p (plist-get question :remember))
            '((?s "for this session" "allow" "session")
              (?p "for this project" "allow" "project")))
          '((?n "refuse" "refuse" "once"))))

(defun magy-permission--remember (question)
  "Say what a lasting answer to QUESTION would allow, or nothing."
  (mapconcat (lambda (grant)
               (format "%s %s" (plist-get grant :key) (plist-get grant :pattern)))
             (plist-get question :remember) ", "))

(cl-defmethod magy-transcript-render ((_kind (eql 'question)) item)
  "Draw ITEM, a question: open with its answers, else how it was answered."
  (let* ((data (magy-item-data item))
         (question (plist-get data :question))
         (title (or (plist-get question :title) "A question"))
         (reason (plist-get data :reason)))
    (if-let ((outcome (plist-get data :outcome)))
        (propertize (concat "? " title "  " outcome
                            (when (member (plist-get data :scope) '("session" "project"))
                              (format " for the %s" (plist-get data :scope)))
                            (unless (member reason '(nil ""))
                              (concat ": " reason))
                            "\n")
                    'face 'shadow)
      (concat (propertize (concat "? " title) 'face 'magy-question)
              (magy-permission--asker magy-transcript--project question)
              "\n    "
              (propertize (concat "because of " (plist-get question :rule)) 'face 'shadow)
              "\n    "
              (mapconcat (lambda (choice) (magy-permission--button question choice))
                         (magy-permission--choices question) "  ")
              (let ((remember (magy-permission--remember question)))
                (if (string-empty-p remember)
                    ""
                  (concat "\n    " (propertize (concat "session and project allow: " remember)
                                               'face 'shadow))))
              "\n"))))

(defun magy-permission--asker (project question)
  "Say in parentheses which agent of PROJECT asks QUESTION, and whose child it is."
  (let ((asker (magy-questions-asker project question)))
    (if (string-empty-p asker) "" (format "  (asked by %s)" asker))))

(defun magy-permission--button (question choice)
  "Return a button that gives CHOICE as the answer to QUESTION."
  (pcase-let ((`(,char ,label ,outcome ,scope) choice))
    (magy-transcript-button
     (format "[%c] %s" char label)
     (lambda () (magy-permission--give magy-transcript--project question outcome scope)))))

(defun magy-permission--give (project question outcome scope)
  "Answer QUESTION of PROJECT with OUTCOME for SCOPE; a refusal asks for a reason."
  (magy-permission-once
   (lambda () (magy-permission--respond project question outcome scope))))

(defun magy-permission--respond (project question outcome scope)
  "Do what `magy-permission--give' does with PROJECT, QUESTION, OUTCOME and SCOPE."
  (magy--log-at 'perm "%s for %s: %s" outcome scope (plist-get question :title))
  (let ((reason (if (equal outcome "refuse")
                    (read-string (format "Why not?  (%s; may be empty) "
                                         (plist-get question :title)))
                  "")))
    (magy-when-ready
     project
     (lambda ()
       (magy-request project 'magy/interaction/respond
                     (list :interactionId (plist-get question :interactionId)
                           :sessionId (plist-get question :sessionId)
                           :outcome outcome :scope scope :reason reason)
                     (lambda (result)
                       (if (magy--true (plist-get result :accepted))
                           (magy-permission--given project question outcome scope reason)
                         (magy--message "Magy: this was %s before"
                                        (or (plist-get result :winner) "answered")))))))))

(defun magy-permission--given (project question outcome scope reason)
  "Show wherever QUESTION of PROJECT is shown that it was answered, and how.
OUTCOME, SCOPE and REASON say so; sessions above the one that asked are
only told that it was."
  (dolist (shown (cons project magy-session-views))
    (when (and (eq project (magy-session-server shown))
               (buffer-live-p (magy-project-buffer shown)))
      (magy-session--edit shown
        (magy-session--resolved shown (plist-get question :interactionId)
                                (list :outcome (if (equal outcome "allow") "allowed" "refused")
                                      :scope scope :reason reason))))))

;;;; One prompt at a time

(defvar magy-permission--prompting nil
  "Non-nil while a command asks the person about a question.")

(defun magy-permission-once (ask)
  "Call ASK, which asks the person about a question in the minibuffer.
If the minibuffer does that already, go there instead.  Windows that are
made meanwhile stay."
  (let ((window (and magy-permission--prompting (active-minibuffer-window))))
    (if (null window)
        (let ((magy-permission--prompting t) (read-minibuffer-restore-windows nil))
          (funcall ask))
      (unless (eq (window-frame window) (selected-frame))
        (select-frame-set-input-focus (window-frame window)))
      (select-window window))))

;;;; In the transcript

(defun magy-permission--here ()
  "Return the open question at point, or the only open one."
  (let* ((item (magy-transcript--at-point))
         (at-point (and item (plist-get (magy-item-data item) :question)))
         (open (magy-project-questions magy-transcript--view)))
    (cond ((and at-point (cdr (assoc (plist-get at-point :interactionId) open))))
          ((null open) (user-error "No question is open"))
          ((null (cdr open)) (cdar open))
          (t (user-error "%d questions are open: go to one" (length open))))))

(defun magy-permission-answer-key ()
  "Answer the question at point, or the only one, as the key just typed says."
  (interactive nil magy-transcript-mode)
  (magy--in-mode 'magy-transcript-mode)
  (let ((question (magy-permission--here)))
    (pcase-let ((`(,_ ,_ ,outcome ,scope)
                 (or (assq last-command-event (magy-permission--choices question))
                     (user-error "This cannot be remembered: answer y or n"))))
      (magy-permission--give magy-transcript--project question outcome scope))))

(dolist (key '("y" "s" "p" "n"))
  (define-key magy-transcript-mode-map key #'magy-permission-answer-key))

;;;; Anywhere

(defun magy-permission--all ()
  "Return all open questions as a list of (PROJECT . QUESTION)."
  (cl-loop for project being the hash-values of magy--projects
           append (mapcar (lambda (question) (cons project (cdr question)))
                          (magy-project-questions project))))

(defun magy-permission--choose (questions)
  "Return one of QUESTIONS, as of `magy-permission--all', chosen by the person."
  (if (null (cdr questions))
      (car questions)
    (let ((table (cl-loop for (project . question) in questions
                          for n from 1
                          collect (cons (format "%d  %s: %s%s" n (magy-project-name project)
                                                (plist-get question :title)
                                                (magy-permission--asker project question))
                                        (cons project question)))))
      (cdr (assoc (completing-read "Question: " table nil t) table)))))

(defun magy-permission--none ()
  "Say that no question is open.
If the server has gone, its questions are with the session, which goes on."
  (let ((project (magy-current-project)))
    (when (or (magy-live-p project) (null (magy-project-session project)))
      (user-error "No question is open"))
    (magy-session-ensure project #'ignore)
    (user-error "The server is started again; what it asked will be asked again")))

;;;###autoload
(defun magy-answer ()
  "Answer an open question of any project, from any buffer."
  (interactive)
  (magy-permission-once
   (lambda ()
     (pcase-let ((`(,project . ,question)
                  (magy-permission--choose (or (magy-permission--all)
                                               (magy-permission--none)))))
       (magy-permission-ask project question)))))

(defun magy-permission-ask (project question)
  "Ask the person QUESTION of PROJECT, in the echo area."
  (pcase-let* ((choices (magy-permission--choices question))
               (remember (magy-permission--remember question))
               (char (read-char-choice
                      (format "%s%s  [%s]%s\n%s, (v)iew: "
                              (plist-get question :title)
                              (magy-permission--asker project question)
                              (plist-get question :rule)
                              (if (string-empty-p remember) "" (concat " always: " remember))
                              (mapconcat (lambda (choice)
                                           (format "(%c) %s" (car choice) (cadr choice)))
                                         choices ", "))
                      (cons ?v (mapcar #'car choices)))))
    (message nil)                       ; what was asked is not open any more
    (if (eq char ?v)
        (magy-permission--view project question)
      (pcase-let ((`(,_ ,_ ,outcome ,scope) (assq char choices)))
        (magy-permission--give project question outcome scope)))))

(defun magy-permission--view (project question)
  "Show QUESTION of PROJECT in its transcript."
  (let ((window (display-buffer (magy-transcript-buffer project))))
    (with-current-buffer (window-buffer window)
      (when-let ((item (magy-transcript-item (plist-get question :interactionId))))
        (set-window-point window (magy-item-start item))))))

;;;; Saying that there is one

(defun magy-permission--announce (project question)
  "Say that PROJECT has a QUESTION, without taking anything away."
  (magy--message-at 'perm "Magy asks: %s%s  (%s)" (plist-get question :title)
                    (if (magy-child-parent-id (plist-get question :sessionId))
                        (magy-permission--asker project question)
                      "")
                    (substitute-command-keys "\\[magy-answer]")))

(add-hook 'magy-question-functions #'magy-permission--announce)

(provide 'magy-permission)
;;; magy-permission.el ends here
