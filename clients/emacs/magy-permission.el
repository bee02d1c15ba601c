;;; magy-permission.el --- Answering Magy's questions  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Magy authors
;; SPDX-License-Identifier: GPL-3.0-or-later
;; This is free software with no warranty at all; see the file COPYING.


;;; Commentary:

;; A question never takes a window or the minibuffer.  It is a line with
;; buttons and keys in the transcript, a message, and an indicator in the
;; mode line, until it is answered: here, in another editor, or after a
;; restart.  The first answer wins.
;;
;; It shows all that would run.  The server makes each line of it so that
;; nothing in it hides; of what does not fit both ends are shown here, and
;; one key shows the rest.  What comes first among the answers refuses.

;;; Code:

(require 'magy-choose)
(require 'magy-form)
(require 'magy-modeline)
(require 'magy-permission-words)
(require 'magy-session)

(defun magy-permission--answered (data title)
  "Return the line of a question with DATA and TITLE that is not open any more.
Where the call stands above it, with all that it runs, the title is cut."
  (let ((reason (plist-get data :reason))
        (title (if (magy-permission--call-here (plist-get data :question))
                   (truncate-string-to-width (string-replace "\n" " " title) 50 nil nil "…")
                 title)))
    (propertize (concat "? " title "  " (plist-get data :outcome)
                        (when (member (plist-get data :scope) '("session" "project"))
                          (format " for the %s" (plist-get data :scope)))
                        (unless (member reason '(nil ""))
                          (concat ": " reason))
                        "\n")
                'face 'shadow)))

(cl-defmethod magy-transcript-render ((_kind (eql 'question)) item)
  "Draw ITEM, a question: open with its answers, else how it was answered."
  (let* ((data (magy-item-data item))
         (question (plist-get data :question))
         (title (or (plist-get question :title) "A question")))
    (if (plist-get data :outcome)
        (magy-permission--answered data title)
      (concat (propertize (concat "? " title) 'face 'magy-question)
              (magy-permission--asker magy-transcript--project question)
              "\n"
              (if (magy-permission--call question) "" (magy-permission--whole question))
              (magy-permission--because question)
              (magy-permission--lasting question (magy-permission--covers question)
                                        (lambda (many) (magy-transcript--folded-p item many)))
              (propertize
               (concat "    "
                       (mapconcat (lambda (choice) (magy-permission--button question choice))
                                  (magy-permission--choices question) "  "))
               'wrap-prefix "    ")
              ;; These keys answer here, and are letters in the input.
              (propertize (substitute-command-keys "\n    from anywhere: \\[magy-answer]")
                          'face 'shadow)
              "\n"))))

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
  (let ((content (when (equal outcome "allow") (magy-permission--fill question)))
        (reason (if (and (equal outcome "refuse") (null (plist-get question :form)))
                    (read-string (format "Why not?  (%s; may be empty) "
                                         (magy-permission--short (plist-get question :title)
                                                                 120)))
                  "")))
    (magy-when-ready
     project
     (lambda ()
       (magy-permission--join project question)
       (magy-request project 'magy/interaction/respond
                     (append (list :interactionId (plist-get question :interactionId)
                                   :sessionId (plist-get question :sessionId)
                                   :outcome outcome :scope scope :reason reason)
                             (when content (list :content content)))
                     (lambda (result)
                       (if (magy--true (plist-get result :accepted))
                           (magy-permission--given project question outcome scope reason)
                         (magy--message "Magy: this was %s before"
                                        (or (plist-get result :winner) "answered")))))))))

(defun magy-permission--join (project question)
  "Have PROJECT show the session that QUESTION is of if it shows none yet."
  (unless (magy-project-session project)
    (magy-session-attach project (car (magy-child-path (plist-get question :sessionId)))
                         #'ignore)))

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
  "Return the open question at point, or the only open one that is shown here."
  (let* ((item (magy-transcript--at-point))
         (at-point (and item (plist-get (magy-item-data item) :question)))
         (all (magy-project-questions magy-transcript--view))
         (open (seq-filter (lambda (one) (magy-transcript-item (car one))) all)))
    (cond ((and at-point (cdr (assoc (plist-get at-point :interactionId) open))))
          ((and all (null open))
           (user-error (substitute-command-keys
                        "Another session asks: \\[magy-answer] answers it")))
          ((null open) (user-error "No question is open"))
          ((null (cdr open)) (cdar open))
          (t (user-error "%d questions are open: go to one" (length open))))))

(defun magy-permission-answer-key ()
  "Answer the question at point, or the only one, as the key just typed says."
  (interactive nil magy-transcript-mode)
  (magy--in-mode 'magy-transcript-mode)
  (let ((question (magy-permission--here)))
    (when (magy-permission--unseen-p question)
      (user-error "This question appeared while you typed: read it, then answer"))
    (pcase-let ((`(,_ ,_ ,outcome ,scope)
                 (or (assq last-command-event (magy-permission--choices question))
                     (user-error "A yes to this does not last: answer y or n"))))
      (magy-permission--give magy-transcript--project question outcome scope))))

(dolist (key '("n" "y" "s" "p"))
  (define-key magy-transcript-mode-map key #'magy-permission-answer-key))

(defun magy-permission-view-key ()
  "Show all of the question at point, or of the only one."
  (interactive nil magy-transcript-mode)
  (magy--in-mode 'magy-transcript-mode)
  (magy-permission--view magy-transcript--project (magy-permission--here)))

(define-key magy-transcript-mode-map "v" #'magy-permission-view-key)

;;;; What was typed ahead

(defvar magy-permission--unseen nil
  "Identifiers of questions that came while keys were waiting to be read.
Those keys were typed for something else.")

(defun magy-permission--unseen-p (question)
  "Return non-nil if the keys that wait may be older than QUESTION."
  (member (plist-get question :interactionId) magy-permission--unseen))

(defun magy-permission--typed-ahead (_project question)
  "Note that what is typed already is no answer to QUESTION."
  (when (input-pending-p)
    (push (plist-get question :interactionId) magy-permission--unseen)
    (add-hook 'post-command-hook #'magy-permission--read)))

(defun magy-permission--read ()
  "Forget what was typed ahead when all of it was read."
  (unless (input-pending-p)
    (setq magy-permission--unseen nil)
    (remove-hook 'post-command-hook #'magy-permission--read)))

(add-hook 'magy-question-functions #'magy-permission--typed-ahead)

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
      (or (cdr (assoc (completing-read "Question: " table nil t) table))
          (user-error "No question was chosen")))))

(defun magy-permission--look ()
  "Look which questions of this project are open, and have the person answer.
The server is started if it does not run, and goes on with the session."
  (let ((project (magy-current-project)) (asked (magy-choose-begin)))
    (funcall (if (magy-project-session project) #'magy-session-ensure #'magy-when-ready)
             project
             (lambda ()
               (magy-questions-find
                project
                ;; Not in the process filter: something is asked.
                (lambda () (run-with-timer 0 nil #'magy-permission--found project asked)))))))

(defun magy-permission--found (project asked)
  "Have the person answer what PROJECT asks, unless they have gone on since ASKED."
  (cond ((null (magy-permission--all))
         (message "No question is open in %s" (magy-project-name project)))
        ((not (magy-choose--late-p asked)) (magy-answer))))

;;;###autoload
(defun magy-answer ()
  "Answer an open question of any project, from any buffer."
  (interactive)
  (magy-permission-once
   (lambda ()
     (if-let ((open (magy-permission--all)))
         (pcase-let ((`(,project . ,question) (magy-permission--choose open)))
           (magy-permission-ask project question))
       (magy-permission--look)))))


(defun magy-permission-ask (project question)
  "Ask the person QUESTION of PROJECT, in the echo area."
  (when (magy-permission--unseen-p question)
    (discard-input))
  (let ((choices (magy-permission--choices question))
        (max-mini-window-height 0.8)
        (resize-mini-windows t)         ; it shrinks when it has less to say
        (char ?v) viewed)
    ;; Whoever has seen all of it is asked again.
    (while (eq char ?v)
      (setq char (read-char-choice (magy-permission--prompt project question viewed)
                                   (append (mapcar #'car choices) (unless viewed '(?v)))))
      (when (eq char ?v)
        (setq viewed (magy-permission--view project question))))
    (message nil)                       ; what was asked is not open any more
    (magy-permission--view-done question viewed)
    (pcase-let ((`(,_ ,_ ,outcome ,scope) (assq char choices)))
      (magy-permission--give project question outcome scope))))

;;;; Saying that there is one

(defun magy-permission--announce (project question)
  "Say that PROJECT has a QUESTION, without taking anything away."
  (magy--message-at 'perm "Magy asks: %s%s  (%s)"
                    (magy-permission--short (plist-get question :title)
                                            (max 500 (* 3 (frame-width))))
                    (if (magy-questions-others-p project question)
                        (magy-permission--asker project question)
                      "")
                    (substitute-command-keys "\\[magy-answer]")))

(add-hook 'magy-question-functions #'magy-permission--announce)

(provide 'magy-permission)
;;; magy-permission.el ends here
