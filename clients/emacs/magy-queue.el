;;; magy-queue.el --- Prompts that wait, in Magy's transcripts  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Magy authors
;; SPDX-License-Identifier: GPL-3.0-or-later
;; This is free software with no warranty at all; see the file COPYING.

;;; Commentary:

;; Prompts that the agent has not taken up yet are lines above the input,
;; where they can be dropped, reordered, or taken back to change them.

;;; Code:

(require 'magy-session)

(declare-function magy-input-text "magy-input")
(declare-function magy-input-note "magy-input")
(declare-function magy-input-set "magy-input")

(defface magy-queue '((t :inherit shadow))
  "Face of prompts that wait."
  :group 'magy-faces)

(defvar magy-queue-map
  (let ((map (make-sparse-keymap)))
    (define-key map "d" #'magy-queue-drop)
    (define-key map "e" #'magy-queue-edit)
    (define-key map (kbd "M-<up>") #'magy-queue-earlier)
    (define-key map (kbd "M-<down>") #'magy-queue-later)
    (define-key map "<" #'magy-queue-earlier)
    (define-key map ">" #'magy-queue-later)
    map)
  "Keymap of the lines of prompts that wait.")

(defvar-local magy-queue--shown nil
  "The prompts that are shown as waiting.")

;;;; Showing

(defun magy-queue--line (prompt n)
  "Return the line of PROMPT, the Nth one that waits."
  (propertize
   (format "%s %d  %s\n"
           (if (equal "steer" (plist-get (cdr prompt) :delivery)) "↪" "·")
           n (truncate-string-to-width
              (string-replace "\n" " " (or (plist-get (cdr prompt) :text) "")) 70 nil nil "…"))
   'face 'magy-queue 'magy-queued (car prompt) 'keymap magy-queue-map
   'help-echo "d: drop, e: edit, < and >: earlier and later"))

(defun magy-queue--text (waiting)
  "Return the lines of the prompts WAITING."
  (if (null waiting)
      ""
    (propertize
     (concat (propertize "Waiting" 'face 'magy-heading-label)
             (propertize "  d drop, e edit, < > move" 'face 'shadow) "\n"
             (string-join (cl-loop for prompt in waiting for n from 1
                                   collect (magy-queue--line prompt n))))
     'magy-queue t 'read-only t 'front-sticky '(read-only))))

(defun magy-queue-show (project)
  "Show in PROJECT's transcript what waits now."
  (with-current-buffer (magy-transcript-buffer project)
    (unless (or (equal magy-queue--shown (magy-project-waiting project))
                (= magy-transcript--foot (1+ (buffer-size)))) ; a transcript only to read
      (setq magy-queue--shown (magy-project-waiting project))
      (magy-transcript-edit
       (lambda ()
         (let ((start (magy-transcript-end)))
           (goto-char start)
           (when (get-text-property start 'magy-queue)
             (delete-region start (next-single-property-change start 'magy-queue)))
           (insert (magy-queue--text magy-queue--shown))
           (set-marker magy-transcript--foot start)))))))

(add-hook 'magy-session-shown-functions #'magy-queue-show)

;;;; Changing

(defun magy-queue--here ()
  "Return the id of the waiting prompt at point."
  (or (get-text-property (line-beginning-position) 'magy-queued)
      (user-error "No prompt waits here")))

(defun magy-queue--request (method params &optional then)
  "Ask for METHOD with PARAMS about what waits here; call THEN when it was done."
  (let ((project magy-transcript--view))
    (magy-session-ensure
     project
     (lambda ()
       (magy-request (magy-session-server project) method
                     (append (list :sessionId (magy-project-session project)) params)
                     (lambda (result)
                       (setf (magy-project-waiting project)
                             (magy-session--waiting (plist-get result :waiting)))
                       (magy-queue-show project)
                       (when then (funcall then))))))))

(defun magy-queue-drop ()
  "Drop the waiting prompt at point."
  (interactive)
  (magy-queue--request 'magy/queue/drop (list :messageIds (vector (magy-queue--here)))))

(defun magy-queue-edit ()
  "Move the waiting prompt at point back into the input.
The input must be empty."
  (interactive)
  (let* ((id (magy-queue--here))
         (item (magy-transcript-item id))
         (text (if item
                   (magy-session--text (plist-get (magy-item-data item) :content))
                 (plist-get (cdr (assoc id magy-queue--shown)) :text)))
         (project magy-transcript--view))
    (when (and item (eq 'mail (magy-item-kind item)))
      (user-error "Another agent sent this: you can only drop or move it"))
    (unless (string-blank-p (magy-input-text))
      (user-error "The input is not empty: send its text first"))
    ;; Until it waits no more, it could go to the agent twice.
    (magy-queue--request 'magy/queue/drop (list :messageIds (vector id))
                         (lambda () (magy-queue--take-back project id text)))))

(defun magy-queue--take-back (project id text)
  "Put TEXT, the dropped prompt ID, into PROJECT's input, or else the history.
If the agent has taken it up after all, do nothing."
  (magy-session--flush project)
  (with-current-buffer (magy-transcript-buffer project)
    (let ((item (magy-transcript-item id)))
      (cond ((and item (eq 'admitted (plist-get (magy-item-data item) :queue)))
             (magy--message "Magy: the agent has already started on this prompt"))
            ((string-blank-p (magy-input-text)) (magy-input-set text))
            (t (magy-input-note text)
               (magy--message "Magy: the dropped prompt is in the history of the input"))))))

(defun magy-queue-earlier (&optional by)
  "Move the waiting prompt at point BY places (1) to the front."
  (interactive "p")
  (let* ((id (magy-queue--here))
         (ids (mapcar #'car magy-queue--shown))
         (place (cl-position id ids :test #'equal))
         (rest (remove id ids))
         (new (max 0 (min (length rest) (- place (or by 1))))))
    (magy-queue--request 'magy/queue/reorder
                         (list :order (vconcat (seq-take rest new) (list id)
                                               (seq-drop rest new))))))

(defun magy-queue-later (&optional by)
  "Move the waiting prompt at point BY places (1) to the end."
  (interactive "p")
  (magy-queue-earlier (- (or by 1))))

(provide 'magy-queue)
;;; magy-queue.el ends here
