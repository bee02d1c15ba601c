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

(require 'magy-modeline)
(require 'magy-session)

(defun magy-permission--choices (question)
  "Return the answers to QUESTION: a list of (CHAR LABEL OUTCOME SCOPE)."
  (append '((?n "refuse" "refuse" "once")
            (?y "allow once" "allow" "once"))
          ;; What cannot be said narrowly is not remembered.
          (unless (seq-empty-p (plist-get question :remember))
            '((?s "for this session" "allow" "session")
              (?p "for this project" "allow" "project")))))

(defconst magy-permission--cut " … (\\+\\([0-9,]+\\) characters[^)]*) … "
  "Regexp of what the server puts between both ends of what is long.")

(defun magy-permission--short (text most)
  "Return TEXT, or if it is longer than MOST both its ends.
Between them stands how much is left out, with what the server left out."
  (if (<= (length text) most)
      text
    (let* ((cut (string-match magy-permission--cut text))
           (before (if cut (substring text 0 cut) text))
           (after (if cut (substring text (match-end 0)) text))
           (known (if cut
                      (string-to-number (string-replace "," "" (match-string 1 text)))
                    0))
           (tail (min (/ (* 2 most) 5) (length after)))
           (head (min (- most tail) (length before)))
           (whole (if cut (+ (length before) (length after)) (length text))))
      (format "%s … (+%d characters) … %s" (substring before 0 head)
              (+ known (- whole head tail)) (substring after (- (length after) tail))))))

(defun magy-permission--covers (question)
  "Return a line for each thing that a lasting answer to QUESTION would allow."
  (append (plist-get question :covers) nil))

(defun magy-permission--covered (question)
  "Say on one line what a lasting answer to QUESTION would allow, or nothing."
  (magy-permission--short (string-join (magy-permission--covers question) ", ") 300))

(defun magy-permission--call (question)
  "Return the tool call here that shows what QUESTION is about, or nil."
  (when-let (((equal (plist-get question :sessionId)
                     (magy-project-session magy-transcript--view)))
             (item (magy-transcript-item (plist-get question :toolCallId))))
    (and (plist-get (magy-item-data item) :content) item)))

(defun magy-permission--whole (question)
  "Return all that QUESTION is about, as far as nothing above it says so."
  (if (magy-permission--call question)
      ""
    (mapconcat #'magy-transcript--tool-part (plist-get question :content) "")))

(defconst magy-permission--most-lasting 4
  "Lines of what a lasting answer would allow that are not folded.")

(defun magy-permission--lasting (item covers)
  "Return COVERS, what a lasting answer to the question of ITEM would allow."
  (let* ((left (- (length covers) magy-permission--most-lasting))
         (folded (magy-transcript--folded-p item (> left 1)))
         (shown (if (and folded (> left 1)) (seq-take covers magy-permission--most-lasting)
                  covers)))
    (propertize
     (concat (mapconcat (lambda (line) (format "    a lasting answer would allow: %s\n" line))
                        shown "")
             (unless (eq shown covers)
               (format "    … and %d more, which v shows\n" left)))
     'face 'shadow)))

(defun magy-permission--answered (data title)
  "Return the line of a question with DATA and TITLE that is not open any more."
  (let ((reason (plist-get data :reason)))
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
              (magy-permission--whole question)
              "    "
              (propertize (concat "because of " (plist-get question :rule)) 'face 'shadow)
              "\n"
              (magy-permission--lasting item (magy-permission--covers question))
              "    "
              (mapconcat (lambda (choice) (magy-permission--button question choice))
                         (magy-permission--choices question) "  ")
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
                                         (magy-permission--short (plist-get question :title)
                                                                 120)))
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
    (when (magy-permission--unseen-p question)
      (user-error "This question appeared while you typed: read it, then answer"))
    (pcase-let ((`(,_ ,_ ,outcome ,scope)
                 (or (assq last-command-event (magy-permission--choices question))
                     (user-error "This cannot be remembered: answer y or n"))))
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

(defun magy-permission--none ()
  "Say that no question is open.
If the server has gone, its questions are with the session, which goes on."
  (let ((project (magy-current-project)))
    (when (or (magy-live-p project) (null (magy-project-session project)))
      (user-error "No question is open"))
    (magy-session-ensure project #'ignore)
    (user-error "The server is restarting; it will ask its questions again")))

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

(defun magy-permission--prompt (project question)
  "Return the text by which the person is asked QUESTION of PROJECT."
  (let ((covered (magy-permission--covered question)))
    (concat (propertize (magy-permission--short
                         (plist-get question :title)
                         ;; Half of the frame, so that all the rest fits, too.
                         (max 200 (/ (* (frame-width) (frame-height)) 2)))
                        'face 'magy-question)
            (magy-permission--asker project question)
            (format "\n[%s]" (magy-permission--short (plist-get question :rule) 200))
            (unless (string-empty-p covered)
              (format "\na lasting answer would allow: %s" covered))
            "\n"
            (mapconcat (lambda (choice) (format "(%c) %s" (car choice) (cadr choice)))
                       (magy-permission--choices question) ", ")
            ", (v)iew all: ")))

(defun magy-permission-ask (project question)
  "Ask the person QUESTION of PROJECT, in the echo area."
  (when (magy-permission--unseen-p question)
    (discard-input))
  (let* ((choices (magy-permission--choices question))
         (max-mini-window-height 0.8)
         (char (read-char-choice (magy-permission--prompt project question)
                                 (append (mapcar #'car choices) '(?v)))))
    (message nil)                       ; what was asked is not open any more
    (if (eq char ?v)
        (magy-permission--view project question)
      (pcase-let ((`(,_ ,_ ,outcome ,scope) (assq char choices)))
        (magy-permission--give project question outcome scope)))))

(defun magy-permission--view (project question)
  "Show all of QUESTION of PROJECT in its transcript, from the first line on."
  (let ((window (display-buffer (magy-transcript-buffer project))))
    (with-current-buffer (window-buffer window)
      (when-let ((item (magy-transcript-item (plist-get question :interactionId))))
        (let ((call (magy-permission--call question)))
          (magy-transcript--set-folded (delq nil (list item call)) nil)
          (let ((start (magy-item-start (or call item))) (asked (magy-item-start item)))
            (set-window-start window start)
            (set-window-point window
                              (if (< (count-screen-lines start asked nil window)
                                     (window-body-height window))
                                  asked
                                start))))))))

;;;; Saying that there is one

(defun magy-permission--announce (project question)
  "Say that PROJECT has a QUESTION, without taking anything away."
  (magy--message-at 'perm "Magy asks: %s%s  (%s)"
                    (magy-permission--short (plist-get question :title)
                                            (max 500 (* 3 (frame-width))))
                    (if (magy-child-parent-id (plist-get question :sessionId))
                        (magy-permission--asker project question)
                      "")
                    (substitute-command-keys "\\[magy-answer]")))

(add-hook 'magy-question-functions #'magy-permission--announce)

(provide 'magy-permission)
;;; magy-permission.el ends here
