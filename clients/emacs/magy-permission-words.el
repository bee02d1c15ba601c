;;; magy-permission-words.el --- What Magy's questions say  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Magy authors
;; SPDX-License-Identifier: GPL-3.0-or-later
;; This is free software with no warranty at all; see the file COPYING.

;;; Commentary:

;; What a question says in the transcript, in the minibuffer and, where
;; no transcript shows it, in a buffer of its own.

;;; Code:

(require 'magy-questions)
(require 'magy-render)

;;;; Answers

(defun magy-permission--fields (question)
  "Return the fields that QUESTION, of an MCP server, has the person fill in."
  (append (plist-get (plist-get question :form) :fields) nil))

(defun magy-permission--yes (question)
  "Say what a yes to QUESTION means."
  (cond ((magy-permission--fields question) "fill it in")
        ((plist-get question :form) "agree")
        ((magy-permission--spawns-p question) "allow until your next prompt")
        (t "allow once")))

(defun magy-permission--spawns-p (question)
  "Return non-nil if an answer to QUESTION holds for other agents, too."
  (seq-some (lambda (grant) (equal "agent" (plist-get grant :key)))
            (plist-get question :remember)))

(defun magy-permission--choices (question)
  "Return the answers to QUESTION: a list of (CHAR LABEL OUTCOME SCOPE)."
  (append `((?n "refuse" "refuse" "once")
            (?y ,(magy-permission--yes question) "allow" "once"))
          ;; What cannot be said narrowly is not remembered.
          (unless (seq-empty-p (plist-get question :remember))
            '((?s "for this session" "allow" "session")
              (?p "for this project" "allow" "project")))))

;;;; What is long

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

;;;; What an answer allows

(defun magy-permission--extent (question)
  "Say which answers to QUESTION allow what comes next."
  (if (magy-permission--spawns-p question)
      "any yes would allow"
    "a lasting yes would allow"))

(defconst magy-permission--once "no lasting yes: Magy cannot tell what it would allow"
  "What is said where a yes is not offered for longer.")

(defun magy-permission--call-here (question)
  "Return the tool call of QUESTION in the current transcript, or nil."
  (and (equal (plist-get question :sessionId)
              (magy-project-session magy-transcript--view))
       (magy-transcript-item (plist-get question :toolCallId))))

(defun magy-permission--call (question)
  "Return the tool call here that shows what QUESTION is about, or nil."
  (when-let (((not (plist-get question :form)))
             (item (magy-permission--call-here question)))
    (and (plist-get (magy-item-data item) :content) item)))

(defun magy-permission--others (question)
  "Return the agents here that an answer to QUESTION would start, too, in words."
  (when-let (((magy-permission--spawns-p question))
             (asked (magy-permission--call-here question))
             (reply (car (split-string (magy-item-id asked) "\\."))))
    (let (others)
      (magy-transcript-map-back
       (lambda (item)
         (let ((data (magy-item-data item)))
           (when (and (eq 'tool (magy-item-kind item))
                      (not (eq item asked))
                      (string-prefix-p (concat reply ".") (magy-item-id item))
                      (equal (plist-get data :name)
                             (plist-get (magy-item-data asked) :name))
                      (equal "pending" (plist-get data :status)))
             (push (magy-permission--agent (plist-get data :input)) others)))
         (eq item asked)))
      others)))

(defun magy-permission--agent (input)
  "Return in a line which agent INPUT, of a call, names, and for what."
  (let ((name (plist-get input :task_name)))
    (format "%s: %s" (or (plist-get input :agent) "an agent")
            (truncate-string-to-width
             (car (split-string (if (member name '(nil ""))
                                    (or (plist-get input :prompt) "")
                                  name)
                                "\n"))
             60 nil nil "…"))))

(defun magy-permission--covers (question)
  "Return a line for each thing that an answer to QUESTION may allow besides.
Those that begin with it are named in the transcript that shows it."
  (append (plist-get question :covers)
          (and magy-transcript--view (magy-permission--others question))
          nil))

(defun magy-permission--covered (question)
  "Say on one line what an answer to QUESTION may allow besides, or nothing."
  (magy-permission--short (string-join (magy-permission--covers question) ", ") 300))

(defconst magy-permission--most-lasting 4
  "Lines of what an answer may allow that are not folded.")

(defun magy-permission--lasting (question covers folded)
  "Return the lines of COVERS, what an answer to QUESTION may allow besides.
FOLDED is called with whether they are many, and says whether they are cut."
  (let* ((left (- (length covers) magy-permission--most-lasting))
         (cut (funcall folded (> left 1)))
         (shown (if (and cut (> left 1)) (seq-take covers magy-permission--most-lasting)
                  covers)))
    (propertize
     (cond ((plist-get question :form) "")
           ((seq-empty-p (plist-get question :remember))
            (format "    %s\n" magy-permission--once))
           ((null covers) "")
           ((null (cdr covers))
            (format "    %s: %s\n" (magy-permission--extent question) (car covers)))
           (t (concat (format "    %s:\n" (magy-permission--extent question))
                      (mapconcat (lambda (line) (format "      %s\n" line)) shown "")
                      (unless (eq shown covers)
                        (format "      … and %d more, which v shows\n" left)))))
     'face 'shadow)))

;;;; Who asks, and why

(defun magy-permission--asker (project question)
  "Say in parentheses which agent of PROJECT asks QUESTION, and whose child it is."
  (let ((asker (magy-questions-asker project question)))
    (if (string-empty-p asker) "" (format "  (asked by %s)" asker))))

(defun magy-permission--because (question)
  "Return the line that says which rule makes an agent ask QUESTION."
  (concat "    "
          (propertize (concat "asked because: " (plist-get question :rule)) 'face 'shadow)
          "\n"))

(defun magy-permission--whole (question)
  "Return all that QUESTION is about, as far as its title does not say it."
  (mapconcat #'magy-transcript--tool-part (plist-get question :content) ""))

(defun magy-permission--prompt (project question viewed)
  "Return the text by which the person is asked QUESTION of PROJECT.
VIEWED, if not nil, is the window that shows all of it: it needs the room."
  (concat (propertize (magy-permission--short
                       (plist-get question :title)
                       (if viewed
                           (/ (frame-width) 2)
                         ;; Half of the frame, so that all the rest fits, too.
                         (max 200 (/ (* (frame-width) (frame-height)) 2))))
                      'face 'magy-question)
          (magy-permission--asker project question)
          (if viewed "" (magy-permission--reasons project question))
          "\n"
          (mapconcat (lambda (choice) (format "(%c) %s" (car choice) (cadr choice)))
                     (magy-permission--choices question) ", ")
          (cond ((null viewed) ", (v)iew all: ")
                ((eq viewed (selected-window)) ", C-v scrolls: ")
                (t ", C-M-v scrolls: "))))

(defun magy-permission--reasons (project question)
  "Say on lines of their own why QUESTION of PROJECT is asked, and what may follow."
  (let ((covered (with-current-buffer (magy-transcript-buffer project)
                   (magy-permission--covered question))))
    (concat (format "\n[%s]" (magy-permission--short (plist-get question :rule) 200))
            (cond ((plist-get question :form) "")
                  ((seq-empty-p (plist-get question :remember))
                   (concat "\n" magy-permission--once))
                  ((not (string-empty-p covered))
                   (format "\n%s: %s" (magy-permission--extent question) covered))))))

;;;; All of it

(defun magy-permission--view (project question)
  "Show all of QUESTION of PROJECT, from the first line on; return the window.
If the transcript does not show it, a buffer of its own does."
  (if-let ((item (with-current-buffer (magy-transcript-buffer project)
                   (magy-transcript-item (plist-get question :interactionId)))))
      (magy-permission--view-item item (display-buffer (magy-transcript-buffer project)))
    (magy-permission--view-text project question)))

(defun magy-permission--view-item (item window)
  "Show all of ITEM, a question, in WINDOW, which shows its transcript."
  (with-current-buffer (window-buffer window)
    (let ((call (magy-permission--call (plist-get (magy-item-data item) :question))))
      (magy-transcript--set-folded (delq nil (list item call)) nil)
      (let ((start (magy-item-start (or call item))) (asked (magy-item-start item)))
        (set-window-start window start)
        (set-window-point window
                          (if (< (count-screen-lines start asked nil window)
                                 (window-body-height window))
                              asked
                            start)))))
  window)

(defun magy-permission--view-done (question window)
  "All of QUESTION was read in WINDOW, if any: leave it.
A transcript folds it as usual and goes on at its end; what shows
nothing else goes away."
  (when (window-live-p window)
    (if (equal "*magy question*" (buffer-name (window-buffer window)))
        (quit-window nil window)
      (with-current-buffer (window-buffer window)
        (let ((items (delq nil (list (magy-transcript-item (plist-get question :interactionId))
                                     (magy-permission--call question)))))
          (magy-transcript--set-folded items 'default)
          (magy-transcript-follow (current-buffer) items))))))

(defun magy-permission--view-text (project question)
  "Show all of QUESTION of PROJECT in a buffer of its own; return the window."
  (with-current-buffer (get-buffer-create "*magy question*")
    (let ((inhibit-read-only t))
      (special-mode)
      (setq magy--own-project project)
      (erase-buffer)
      (insert (propertize (concat "? " (plist-get question :title)) 'face 'magy-question)
              (magy-permission--asker project question) "\n"
              (magy-permission--whole question)
              (magy-permission--because question)
              (magy-permission--lasting question (magy-permission--covers question) #'ignore))
      (goto-char (point-min)))
    (let ((window (display-buffer (current-buffer))))
      (set-window-start window (point-min))
      window)))

(provide 'magy-permission-words)
;;; magy-permission-words.el ends here
