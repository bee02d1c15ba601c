;;; magy-older.el --- Older turns in Magy's transcripts  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Magy authors
;; SPDX-License-Identifier: GPL-3.0-or-later
;; This is free software with no warranty at all; see the file COPYING.

;;; Commentary:

;; A transcript shows the last turns of a session.  Older ones are read
;; from the server's log when a person scrolls to the top or asks for
;; them; what has become old while a session went on is dropped again, so
;; that a buffer, and each change to it, stays small however long the
;; session is.

;;; Code:

(require 'magy-updates)

(defcustom magy-transcript-turns 60
  "How many turns a transcript shows at most, while nobody reads older ones."
  :type 'natnum
  :group 'magy
  :package-version '(magy . "0.1"))

(defconst magy-older--slack 10
  "How many turns more are drawn before old ones are dropped.")

(defconst magy-older--page 200
  "How many entries of the log are asked for at once.")

(defvar-local magy-older--asked nil
  "Non-nil while older entries were asked for.")

;;;; Reading older turns

(defun magy-older-offer (project)
  "Offer older turns of PROJECT's session if there are any."
  (magy-transcript-show-older-button
   (and (> (magy-project-floor project) 1)
        (lambda () (magy-session-show-older project)))))

(defun magy-session-show-older (project)
  "Show another page of older entries of PROJECT's session."
  (interactive (list (or magy-transcript--view (magy-current-project))))
  (when (<= (magy-project-floor project) 1)
    (user-error "This is the beginning of the session"))
  (magy-when-ready (magy-session-server project) (lambda () (magy-older--ask project))))

(defun magy-older--ask (project)
  "Ask for another page of older entries of PROJECT's session, once at a time."
  (with-current-buffer (magy-transcript-buffer project)
    (unless magy-older--asked
      (setq magy-older--asked t)
      (let ((session (magy-project-session project))
            (floor (magy-project-floor project)))
        (magy-request
         (magy-session-server project) 'magy/session/events
         (list :sessionId session :before floor :limit magy-older--page)
         (lambda (result)
           (magy-older--answered project)
           (when (and (equal session (magy-project-session project))
                      (= floor (magy-project-floor project)))
             (magy-older--insert project (plist-get result :events))))
         (lambda (problem)
           (magy-older--answered project)
           (magy--message "Magy: %s" (plist-get problem :message))))))))

(defun magy-older--answered (project)
  "PROJECT's server has answered: the next page may be asked for."
  (when (buffer-live-p (magy-project-buffer project))
    (with-current-buffer (magy-project-buffer project)
      (setq magy-older--asked nil))))

(defun magy-older--insert (project events)
  "Show EVENTS of PROJECT's session in front of what is shown."
  (setf (magy-project-floor project)
        (if (seq-empty-p events) 1 (plist-get (seq-elt events 0) :seq)))
  (magy-session--edit project
    (magy-transcript-show-older-button nil)
    (let* ((magy-transcript--at (copy-marker (point-min) t))
           (answered magy-transcript--answered))
      (setq magy-transcript--answered nil)
      (magy-session--page project events)
      (setq magy-transcript--answered answered))
    (magy-older-offer project)))

(defun magy-older--scrolled (window start)
  "Ask for older turns if a person scrolled WINDOW to the top.
It begins at START now."
  (let ((before (window-parameter window 'magy-start)))
    (set-window-parameter window 'magy-start start)
    (when (and before (< start before)
               (get-text-property start 'magy-top (window-buffer window)))
      (run-with-timer 0 nil #'magy-older--from-top (window-buffer window)))))

(defun magy-older--from-top (buffer)
  "Show older turns in the transcript BUFFER, whose top is seen, if there are any."
  (when (buffer-live-p buffer)
    (with-current-buffer buffer
      (when (and magy-transcript--view
                 (> (magy-project-floor magy-transcript--view) 1)
                 (magy-live-p magy-transcript--project))
        (magy-older--ask magy-transcript--view)))))

(defun magy-older--watch ()
  "Have older turns read when a person scrolls to the top here."
  (add-hook 'window-scroll-functions #'magy-older--scrolled nil t))

(add-hook 'magy-transcript-mode-hook #'magy-older--watch)
(define-key magy-transcript-mode-map "+" #'magy-session-show-older)

;;;; Dropping what has become old

(defun magy-older--read-p (buffer pos)
  "Return non-nil if a person reads what is before POS in BUFFER.
A window that follows the end reads nothing else."
  (cl-some (lambda (window)
             (and (< (window-point window) (with-current-buffer buffer (magy-transcript-end)))
                  (< (min (window-point window) (window-start window)) pos)))
           (get-buffer-window-list buffer nil t)))

(defun magy-older--boundary ()
  "Return the prompt to begin with so that not too many are drawn, or nil.
What is before it must be complete there: an entry that is read again
must not need a later one that is drawn already."
  (let ((excess (- magy-transcript--turns magy-transcript-turns))
        (latest 0) found
        (pos (point-min)))
    (when (> excess magy-older--slack)
      (while (and (not found) (< pos magy-transcript--foot))
        (let ((item (get-text-property pos 'magy-item)))
          (when item
            (when (eq 'user (magy-item-kind item))
              (when (and (<= excess 0) (magy-item-seq item) (< latest (magy-item-seq item)))
                (setq found item))
              (setq excess (1- excess)))
            (setq latest (max latest (or (magy-item-last item) 0))))
          (setq pos (next-single-property-change pos 'magy-item nil magy-transcript--foot)))))
    found))

(defun magy-older--drop (boundary)
  "Take everything before the prompt BOUNDARY away."
  (let ((end (marker-position (magy-item-start boundary)))
        (pos (point-min)) item)
    (while (< pos end)
      (when (setq item (get-text-property pos 'magy-item))
        (magy-transcript--forget item))
      (setq pos (next-single-property-change pos 'magy-item nil end)))
    (delete-region (point-min) end)))

(defun magy-older-trim (project)
  "Drop old turns of PROJECT's transcript if too many are drawn.
Those that somebody reads stay."
  (with-current-buffer (magy-transcript-buffer project)
    (when (> magy-transcript--turns (+ magy-transcript-turns magy-older--slack))
      (magy-transcript-whole
        (when-let ((boundary (magy-older--boundary)))
          (unless (magy-older--read-p (current-buffer) (magy-item-start boundary))
            (setf (magy-project-floor project) (magy-item-seq boundary))
            (magy-session--edit project
              (let ((answered magy-transcript--answered))
                (magy-older--drop boundary)
                (setq magy-transcript--answered answered))
              (magy-older-offer project))))))))

(add-hook 'magy-session-shown-functions #'magy-older-trim)

(provide 'magy-older)
;;; magy-older.el ends here
