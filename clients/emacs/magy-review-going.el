;;; magy-review-going.el --- From one change to the next  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Magy authors
;; SPDX-License-Identifier: GPL-3.0-or-later
;; This is free software with no warranty at all; see the file COPYING.

;;; Commentary:

;; The server says where the next change is, and what a decision leaves.
;; Until it has, a command that is typed ahead waits, so that it is about
;; the change that is gone to.  Single keys go on with the review then.

;;; Code:

(require 'magy-buffers)

(defcustom magy-review-repeat t
  "Whether single keys decide right after a command of the review.
They are those of `magy-review-repeat-map'; any other key ends it."
  :type 'boolean
  :group 'magy-review
  :package-version '(magy . "0.1"))

(defvar-local magy-review-target-function nil
  "Function that returns the targets at point in a buffer that is no file.
It is as `magy-review--targets' says.")

(defun magy-review--project ()
  "Return the project of the current buffer."
  (if magy--document (magy-document-project magy--document) (magy-current-project)))

(defun magy-review--nothing (words)
  "Fail with WORDS, that nothing waits; or say that the server does not tell."
  (let* ((project (magy-review--project)) (name (magy-project-name project)))
    (user-error
     "%s"
     (substitute-command-keys
      (cond ((not (magy-live-p project))
             (format "Magy's server for %s does not run; \\[magy-review-next] starts it" name))
            ((not (magy-writable-p project))
             (format "Magy's server for %s does not answer; \\[magy-restart] starts it anew" name))
            (t words))))))

;;;; Waiting for the server

(defvar magy-review--going nil
  "Projects in which something is asked that moves point.
Each is a list (PROJECT t . FUNCTIONS); the functions are called then.")

(defun magy-review--when-there (function &optional anywhere)
  "Call FUNCTION; but if point is about to be moved, only when it was.
If ANYWHERE, it waits for every project, not only for that of this buffer."
  (if-let ((going (if anywhere
                      (cdar magy-review--going)
                    (alist-get (magy-review--project) magy-review--going))))
      (setcdr going (cons function (cdr going)))
    (funcall function)))

(defun magy-review--set-out (project function)
  "Call FUNCTION, which asks PROJECT's server for something that moves point.
It is given a journey, which every outcome ends by `magy-review--end'; if
it fails itself, that is an end, too.  Who sets out anew forgets the last."
  (let ((journey (list t)) (left nil))
    (setf (alist-get project magy-review--going) journey)
    (unwind-protect
        (prog1 (funcall function journey)
          (setq left t))
      (unless left
        (magy-review--end project journey nil)))))

(defun magy-review--end (project journey there)
  "JOURNEY in PROJECT is over: call what waited for it, if point is THERE."
  (when (eq journey (alist-get project magy-review--going))
    (setf (alist-get project magy-review--going nil t) nil)
    (cond ((not there) (magy-review--no-keys))
          ;; Not in the process filter: a command may ask something.
          ((cdr journey)
           (run-with-timer 0 nil #'magy-review--go-on project (reverse (cdr journey)))))))

(defun magy-review--go-on (project functions)
  "Call FUNCTIONS, which have waited, as the commands that they are of would be.
If one of them sets out in PROJECT, the others wait again."
  (condition-case problem
      (while functions
        (funcall (pop functions))
        (when-let ((going (alist-get project magy-review--going)))
          (setcdr going (append (cdr going) (reverse functions)))
          (setq functions nil)))
    (user-error (message "%s" (error-message-string problem)))))

(defun magy-review--stop-going (project &rest _)
  "Nothing is waited for in PROJECT any more: its server has gone."
  (setf (alist-get project magy-review--going nil t) nil)
  (magy-review--no-keys))

(add-hook 'magy-death-functions #'magy-review--stop-going)

;;;; Keys that go on

(defvar magy-review--keys-off nil
  "Function that ends the keys that go on, or nil.")

(defvar magy-review-repeat-map
  (let ((map (make-sparse-keymap)))
    (pcase-dolist (`(,key . ,command)
                   '(("a" . magy-review-accept) ("r" . magy-review-reject)
                     ("e" . magy-review-amend) ("c" . magy-review-comment)
                     ("u" . magy-review-undo-decision) ("=" . magy-review-diff)
                     ("n" . magy-review-next) ("]" . magy-review-next)
                     ("p" . magy-review-previous) ("[" . magy-review-previous)
                     ("A" . magy-review-accept-all) ("R" . magy-review-reject-all)))
      (define-key map key command))
    map)
  "Keys that continue the review after one of its commands.")

(defun magy-review--go-on-by-keys ()
  "Let single keys continue the review, if the person wants that."
  (when (and magy-review-repeat (not magy-review-target-function))
    (when magy-review--keys-off (funcall magy-review--keys-off))
    (setq magy-review--keys-off
          (set-transient-map magy-review-repeat-map #'magy-review--key-goes-on-p))))

(defun magy-review--key-goes-on-p ()
  "Return non-nil if the command about to run is one of the keys that go on.
A prefix argument is, too, for some of them take one."
  (or (memq this-command '(universal-argument universal-argument-more
                           digit-argument negative-argument))
      (let ((command (lookup-key magy-review-repeat-map (this-single-command-keys))))
        (and (commandp command) (eq this-command command)))))

(defun magy-review--no-keys ()
  "End the keys that go on."
  (when magy-review--keys-off (funcall magy-review--keys-off)))

(provide 'magy-review-going)
;;; magy-review-going.el ends here
