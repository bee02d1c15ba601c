;;; magy-input.el --- Writing prompts in Magy's transcripts  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Magy authors
;; SPDX-License-Identifier: GPL-3.0-or-later
;; This is free software with no warranty at all; see the file COPYING.

;;; Commentary:

;; Below a line at the end of a transcript a person writes, as many lines
;; as it takes.  What is written there is nobody else's: it stays while
;; text arrives, when the server dies and when another session is shown,
;; and has an undo of its own.

;;; Code:

(require 'magy-context)
(require 'magy-queue)
(require 'magy-session)
(require 'magy-view)

(declare-function magy-complete-setup "magy-complete")

(defface magy-separator '((t :inherit shadow :underline t))
  "Face of the line above the input."
  :group 'magy-faces)

(defvar-local magy-input--start nil
  "Marker where the input begins.")

(defvar-local magy-input--overlay nil
  "Overlay over the input, which gives it its keys.")

(defvar-local magy-input--place nil
  "Which prompt of the history the input shows: its index, or nil.")

(defvar-local magy-input--draft nil
  "What was in the input before a prompt of the history was.")

(defvar magy-input-map
  (let ((map (make-sparse-keymap)))
    (define-key map (kbd "C-c C-c") #'magy-input-submit)
    (define-key map (kbd "C-c C-k") #'magy-cancel)
    (define-key map (kbd "C-c ^") #'magy-transcript-up)
    (define-key map (kbd "TAB") #'completion-at-point)
    (define-key map (kbd "<backtab>") #'magy-transcript-toggle-all)
    (define-key map (kbd "M-p") #'magy-input-previous)
    (define-key map (kbd "M-n") #'magy-input-next)
    (define-key map (kbd "C-g") #'magy-transcript-interrupt)
    map)
  "Keymap of the input.")

(define-key magy-transcript-mode-map (kbd "C-c C-c") #'magy-input-submit)
(define-key magy-transcript-mode-map "i" #'magy-input-go)

(autoload 'magy-cancel "magy" nil t)

;;;; The place to write

(defun magy-input--separator ()
  "Return the line above the input."
  (concat (propertize (substitute-command-keys
                       (if (magy-view-of-child-p magy-transcript--view)
                           "\\<magy-input-map>\\[magy-input-submit] tells this agent, \
\\[magy-transcript-up] goes to its parent"
                         "\\<magy-input-map>\\[magy-input-submit] sends"))
                      'face 'magy-separator)
          ;; A terminal extends no underline.
          (propertize " " 'face 'magy-separator 'display '(space :align-to (- right 1)))
          "\n"))

(defun magy-input--make ()
  "Give the current transcript an input."
  (let ((inhibit-read-only t))
    (goto-char (point-max))
    (insert (propertize (magy-input--separator) 'magy-separator t 'read-only t
                        'front-sticky '(read-only) 'rear-nonsticky t)))
  ;; Items go before it.
  (set-marker magy-transcript--foot (point-min))
  (restore-buffer-modified-p nil)
  (setq magy-input--start (copy-marker (point-max) nil)
        magy-input--overlay (make-overlay (point-max) (point-max) nil nil t)
        buffer-read-only nil
        buffer-undo-list nil)
  (overlay-put magy-input--overlay 'local-map magy-input-map)
  (add-hook 'magy-transcript-moved-functions #'magy-input--moved nil t)
  (add-hook 'kill-buffer-hook #'magy-input--remember nil t)
  (add-hook 'change-major-mode-hook #'magy-input--remember nil t)
  (require 'magy-complete)
  (let ((buffer (current-buffer)))
    (magy-complete-setup magy-transcript--project
                         (lambda ()
                           (buffer-local-value 'magy-input--start buffer)))))

(add-hook 'magy-transcript-made-hook #'magy-input--make)

(defun magy-input-text ()
  "Return what is written in the current transcript."
  (magy-transcript-whole
    (buffer-substring-no-properties magy-input--start (point-max))))

(defun magy-input-set (text)
  "Have TEXT in the place of what is written, and point behind it."
  (magy-transcript-whole
    (goto-char magy-input--start)
    (delete-region magy-input--start (point-max))
    (insert text)))

(defun magy-input--remember ()
  "Keep what is written as a prompt of the history."
  (when magy-input--start
    (let ((text (magy-input-text)))
      (unless (string-blank-p text)
        (magy-input-note text)))))

(defun magy-input-note (text)
  "Add TEXT to the history of prompts."
  (let ((history-length magy-max-history))
    (add-to-history 'magy-prompt-history text)))

(defun magy-input-go ()
  "Go to the input."
  (interactive)
  (unless magy-input--start
    (user-error "This transcript is only to read"))
  (goto-char (point-max)))

;;;; Undo

;; What happens above the input is not recorded, but moves it; so what is
;; recorded about the input has to move, too.

(defun magy-input--moved (by)
  "Adapt what undo knows to the input having moved BY so many characters."
  (when (consp buffer-undo-list)
    (let ((entries buffer-undo-list))
      (while entries
        (let ((entry (car entries)))
          (pcase entry
            ((pred integerp) (setcar entries (+ entry by)))
            (`(,(pred stringp) . ,at) (setcdr entry (if (< at 0) (- at by) (+ at by))))
            (`(,(pred integerp) . ,(pred integerp))
             (setcar entry (+ (car entry) by))
             (setcdr entry (+ (cdr entry) by)))
            (`(nil ,_ ,_ . ,(and range `(,_ . ,_)))
             (setcar range (+ (car range) by))
             (setcdr range (+ (cdr range) by)))
            (`(apply ,(pred integerp) ,beg ,end . ,_)
             (setf (nth 2 entry) (+ beg by)
                   (nth 3 entry) (+ end by)))))
        (setq entries (cdr entries))))))

;;;; History

(defun magy-input--show (place)
  "Show the prompt at PLACE of the history.
If PLACE is nil, show what was written before."
  (unless magy-input--place
    (setq magy-input--draft (magy-input-text)))
  (setq magy-input--place place)
  (magy-input-set (if place (nth place magy-prompt-history) magy-input--draft)))

(defun magy-input-previous (count)
  "Show the COUNTth prompt before the one that the input shows."
  (interactive "p")
  (let* ((last (1- (length magy-prompt-history)))
         (place (+ (or magy-input--place -1) count)))
    (cond ((and (> place last) (equal magy-input--place last))
           (user-error "There is no older prompt"))
          ((< last 0) (user-error "Nothing was asked yet"))
          ((< place -1) (user-error "There is no later prompt"))
          (t (magy-input--show (and (>= place 0) (min place last)))))))

(defun magy-input-next (count)
  "Show the COUNTth prompt after the one that the input shows."
  (interactive "p")
  (unless magy-input--place
    (user-error "There is no later prompt"))
  (magy-input-previous (- (min count (1+ magy-input--place)))))

;;;; Sending

(defun magy-input-submit (&optional prefix)
  "Send what is written to the agent.
While it works, this steers it; with \\[universal-argument] as PREFIX the prompt waits
for the turn to end, with \\[universal-argument] \\[universal-argument] it ends the turn."
  (interactive "P")
  (unless magy-input--start
    (user-error "This transcript is only to read"))
  (let ((text (string-trim (magy-input-text) "[ \t\n]*\n" "[ \t\n]+"))
        (shown magy-transcript--view))
    (when (string-blank-p text)
      (user-error "Nothing to send"))
    (let ((blocks (funcall magy-prompt-context-function)))
      ;; If the server cannot be started at all, this fails, and the text stays.
      (unless (magy-special-prompt shown text blocks)
        (magy-session-prompt
         shown (cons (list :type "text" :text (magy--json-text text)) blocks)
         (magy-prompt-delivery prefix))))
    (magy-input-note text)
    (magy-input-set "")
    (restore-buffer-modified-p nil)
    (setq magy-input--place nil
          magy-input--draft nil
          buffer-undo-list nil)))

(defun magy-input--refused (project blocks _why)
  "Write the text of BLOCKS, which PROJECT's server refused, back.
What was written since is more important: then it goes into the history."
  (when-let ((buffer (magy-project-buffer project))
             (text (plist-get (seq-find (lambda (block) (equal "text" (plist-get block :type)))
                                        blocks)
                              :text)))
    (with-current-buffer buffer
      (cond ((not magy-input--start))
            ((string-empty-p (magy-input-text)) (save-excursion (magy-input-set text)))
            ((not (equal text (magy-input-text))) (magy-input-note text))))))

(add-hook 'magy-session-refused-functions #'magy-input--refused)

(provide 'magy-input)
;;; magy-input.el ends here
