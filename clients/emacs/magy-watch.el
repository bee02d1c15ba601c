;;; magy-watch.el --- A connection, and whether it answers  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Magy authors
;; SPDX-License-Identifier: GPL-3.0-or-later
;; This is free software with no warranty at all; see the file COPYING.

;;; Commentary:

;; No request to the server waits for a person or a model, so that all
;; are answered soon.  If one is not, the server hangs, and that is said.
;; What cannot be sent, as the process is stopped, is sent when it goes on.

;;; Code:

(require 'magy-project)

(defclass magy-connection (jsonrpc-process-connection)
  ((project :initarg :project :reader magy-connection-project)
   (expected-end :initform nil :accessor magy-connection-expected-end)
   (problem :initform nil :accessor magy-connection-problem
            :documentation "Why it could not be started, or ended.")
   (about :initform nil :accessor magy-connection-about
          :documentation "What the server says of itself: :version, :protocol.")
   (asked :initform nil :accessor magy-connection-asked
          :documentation "Requests not answered yet, newest first: (TIME . METHOD).")
   (watch :initform nil :accessor magy-connection-watch
          :documentation "Timer that looks whether they are.")
   (heard :initform 0 :accessor magy-connection-heard
          :documentation "When anything came last.")
   (started :initform nil :accessor magy-connection-started
            :documentation "Non-nil if the handshake was done.")
   (stopped :initform nil :accessor magy-connection-stopped
            :documentation "Non-nil while its process is known not to run.")
   (awaited :initform nil :accessor magy-connection-awaited
            :documentation "Timer that looks whether it reads again.")
   (unsaid :initform nil :accessor magy-connection-unsaid
           :documentation "Functions that tell what it must know then, newest first.")
   (unasked :initform nil :accessor magy-connection-unasked
            :documentation "Requests for then, newest first: (FUNCTION . FAILURE).")
   (then :initform #'ignore :accessor magy-connection-then
         :documentation "Called when it has ended.")
   (hung :initform nil :accessor magy-connection-hung
         :documentation "The method that was not answered for long, or nil."))
  :documentation "A connection to one project's Magy server.")

(defconst magy--slow-methods
  '(magy/doctor/run magy/session/compact magy/session/summarize workspace/executeCommand)
  "Requests that are answered when something is done.")

(defun magy--watch (connection method)
  "Note that METHOD was asked over CONNECTION; return the note."
  (let ((asked (cons (float-time) method)))
    (unless (memq method magy--slow-methods)
      (push asked (magy-connection-asked connection))
      (unless (magy-connection-watch connection)
        (setf (magy-connection-watch connection)
              (run-with-timer magy-patience nil #'magy--look connection))))
    asked))

(defun magy--answered (connection asked)
  "The request that ASKED notes was answered over CONNECTION."
  (setf (magy-connection-asked connection)
        (delq asked (magy-connection-asked connection)))
  (magy--heard connection))

(defun magy--heard (connection)
  "Something came over CONNECTION: its server does not hang."
  (setf (magy-connection-heard connection) (float-time))
  (when (magy-connection-hung connection)
    (setf (magy-connection-hung connection) nil)
    (force-mode-line-update t)
    (when (jsonrpc-running-p connection)
      (magy--message "Magy's server for %s answers again"
                     (magy-project-name (magy-connection-project connection))))))

(defun magy--watch-no-more (connection)
  "Stop looking whether CONNECTION's server answers: it has ended."
  (dolist (timer (list (magy-connection-watch connection)
                       (magy-connection-awaited connection)))
    (when timer (cancel-timer timer)))
  (setf (magy-connection-watch connection) nil
        (magy-connection-awaited connection) nil
        (magy-connection-asked connection) nil
        (magy-connection-hung connection) nil))

(defun magy--look (connection)
  "Say so if a request over CONNECTION has waited too long; look again later."
  (setf (magy-connection-watch connection) nil)
  (when-let ((oldest (car (last (magy-connection-asked connection)))))
    ;; A server that says something else meanwhile is slow, and does not hang.
    (let ((left (- (+ (max (car oldest) (magy-connection-heard connection)) magy-patience)
                   (float-time))))
      (when (<= left 0)
        (magy--hangs connection (cdr oldest)))
      (setf (magy-connection-watch connection)
            (run-with-timer (if (> left 0) left magy-patience) nil #'magy--look connection)))))

(defun magy--hangs (connection method)
  "Say, once, that CONNECTION's server does not answer METHOD."
  (unless (magy-connection-hung connection)
    (setf (magy-connection-hung connection) method)
    (force-mode-line-update t)
    (magy--message-at
     'warn "Magy's server for %s does not answer %s.  M-x magy-restart; nothing is lost"
     (magy-project-name (magy-connection-project connection)) method)))

(defun magy-hung-p (project)
  "Return the method that PROJECT's server has not answered for long, or nil."
  (and (magy-live-p project)
       (magy-connection-hung (magy-project-connection project))))

;;;; A server that has ended

(defun magy--why-ended (connection)
  "Return why CONNECTION's server has ended, or nil if that was wanted.
The end of what it said on standard error goes to the log."
  (let ((said (magy--keep-errors connection))
        (status (process-exit-status (jsonrpc--process connection))))
    (cond ((magy-connection-expected-end connection) nil)
          ((magy-connection-problem connection))
          ((magy-connection-started connection)
           (format "The server ended with status %s." status))
          (t (format "The server ended at once, with status %s%s" status
                     (if said (concat ": " said) "."))))))

(defun magy--keep-errors (connection)
  "Copy the end of what CONNECTION's server said on standard error to the log.
Return its last line, or nil."
  (let ((buffer (jsonrpc-stderr-buffer connection)))
    (when (buffer-live-p buffer)
      (when-let ((pipe (get-buffer-process buffer)))
        (accept-process-output pipe 0 nil t))
      (let ((text (string-trim
                   (with-current-buffer buffer
                     (buffer-substring-no-properties
                      (max (point-min) (- (point-max) 4000)) (point-max))))))
        (unless (string-empty-p text)
          (magy--log-at 'warn "server: %s" text)
          (truncate-string-to-width (car (last (split-string text "\n"))) 300))))))

;;;; A server that does not read

(defvar magy-awake-functions nil
  "Functions called with a project whose server reads again.")

(defconst magy--await-delay 0.25
  "Seconds after which it is looked again whether a server reads.")

(defun magy--running-p (connection)
  "Return non-nil if CONNECTION's process runs: it is neither stopped nor dead."
  (and connection (eq 'run (process-status (jsonrpc--process connection)))))

(defun magy-writable-p (project)
  "Return non-nil if PROJECT's server reads, as far as can be known.
To write much to one that does not would make Emacs wait."
  (and (magy--running-p (magy-project-connection project))
       (not (magy-hung-p project))))

(defun magy-await (project)
  "Have what could not be sent to PROJECT's server sent when it reads again."
  (when-let ((connection (and (magy-live-p project) (magy-project-connection project))))
    (unless (magy--running-p connection)
      (setf (magy-connection-stopped connection) t))
    (unless (magy-connection-awaited connection)
      (setf (magy-connection-awaited connection)
            (run-with-timer 0 magy--await-delay #'magy--await-look connection)))))

(defun magy--await-look (connection)
  "Send what waits for CONNECTION's server if it reads."
  (cond ((not (jsonrpc-running-p connection)))   ; its end is dealt with elsewhere
        ((not (magy--running-p connection))
         (setf (magy-connection-stopped connection) t))
        (t
         (when (magy-connection-stopped connection)
           (setf (magy-connection-stopped connection) nil)
           (magy--heard connection))
         (unless (magy-connection-hung connection)
           (magy--awake connection)))))

(defun magy--awake (connection)
  "Send what waits for CONNECTION's server: first what it must know, then requests."
  (cancel-timer (magy-connection-awaited connection))
  (let ((unsaid (nreverse (magy-connection-unsaid connection)))
        (unasked (nreverse (magy-connection-unasked connection))))
    (setf (magy-connection-awaited connection) nil
          (magy-connection-unsaid connection) nil
          (magy-connection-unasked connection) nil)
    (mapc #'funcall unsaid)
    (run-hook-with-args 'magy-awake-functions (magy-connection-project connection))
    (pcase-dolist (`(,ask . ,_) unasked)
      (funcall ask))))

(defun magy--unasked-failed (connection)
  "Tell those whose requests wait for CONNECTION's server that it has ended."
  (let ((unasked (nreverse (magy-connection-unasked connection))))
    (setf (magy-connection-unasked connection) nil)
    (pcase-dolist (`(,_ . ,fail) unasked)
      (funcall fail "the server has ended"))))

;;;; Requests that are watched

(defun magy--called (what function)
  "Call FUNCTION because of WHAT, which arrived from a server.
The process filter binds `inhibit-read-only', which is not for buffers."
  (let ((inhibit-read-only nil))
    (magy--guarded what (funcall function))))

(defun magy--failed (method problem failure)
  "Call FAILURE with PROBLEM, the answer to METHOD; show it if there is none."
  (magy--called method
                (lambda ()
                  (if failure
                      (funcall failure problem)
                    (magy--message-at 'error "Magy: %s" (plist-get problem :message))))))

(defun magy--request (connection method params success failure)
  "Ask METHOD with PARAMS over CONNECTION; return nil if nothing was sent.
That is so if the process was stopped or has ended, which Emacs may see
no sooner than when it writes.  SUCCESS and FAILURE are as in
`magy-request'."
  (let ((asked (magy--watch connection method)))
    (condition-case err
        (progn
          (jsonrpc-async-request
           connection method params
           ;; No time-out: whoever waits can go on, and a dead server fails them all.
           :timeout nil
           :success-fn (lambda (result)
                         (magy--answered connection asked)
                         (magy--called method (lambda () (funcall success result))))
           :error-fn (lambda (problem)
                       (magy--answered connection asked)
                       (magy--failed method problem failure)))
          t)
      (error
       (setf (magy-connection-asked connection)
             (delq asked (magy-connection-asked connection)))
       (when (magy--running-p connection)
         (signal (car err) (cdr err)))
       nil))))

(provide 'magy-watch)
;;; magy-watch.el ends here
