;;; eglot.el --- Stock Eglot with what the guide says  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: Apache-2.0

;;; Commentary:

;; Run by test_plain_clients.py; writes what was seen as JSON.  Nothing of Magy's own client is
;; loaded.  A person picks by title.

;;; Code:

(require 'eglot)
(require 'json)
(require 'cl-lib)
(load (getenv "GUIDE") nil t)
(declare-function my-magy-prompt "guide")
(declare-function my-magy-completions "guide")
(declare-function my-magy-stop "guide")

(defvar plain-seen nil "What was seen, an alist.")
(defvar plain-answers nil "The titles that are picked next.")
(defvar plain-questions nil "What there was to pick from.")

(defun plain-read (_prompt collection &rest _)
  "Pick from COLLECTION as `completing-read' does."
  (let ((titles (mapcar (lambda (one) (if (consp one) (car one) one)) collection)))
    (push (vconcat titles) plain-questions)
    (or (car (member (pop plain-answers) titles))
        (error "Nothing to pick among %S" titles))))

(defun plain-wait (what predicate)
  "Wait until PREDICATE holds; WHAT it is.
In batch no idle timer runs, by which Eglot sends changes and asks about what is at point.  Of
what comes in one piece with an answer that Emacs waits for, Emacs 28 reads what follows the
answer only when the server says something again: it is asked, as a person at work asks it."
  (let ((end (time-add nil 60)))
    (while (not (funcall predicate))
      (when (time-less-p end nil) (error "Waited in vain for %s" what))
      (accept-process-output nil 0.05)
      (eglot--signal-textDocument/didChange)
      (eglot-code-actions (point) (point)))))

(defun plain-note (key value)
  "Note that KEY was VALUE."
  (push (cons key value) plain-seen))

(defun plain-messages ()
  "Return all that was said to the person."
  (with-current-buffer (messages-buffer)
    (buffer-substring-no-properties (point-min) (point-max))))

(defun plain-diagnose ()
  "Let Flymake have a diagnostic of the server, as Eglot makes it."
  (eglot-handle-notification
   (eglot-current-server) 'textDocument/publishDiagnostics
   :uri (plist-get (eglot--TextDocumentIdentifier) :uri)
   :diagnostics (vector (list :range '(:start (:line 1 :character 11)
                                       :end (:line 1 :character 18))
                              :severity 1 :message "greets nobody"))))

(defun plain-code-action (title)
  "Choose the code action TITLE at point, as a person does."
  (setq plain-answers (append (list title) plain-answers))
  (let ((last-nonmenu-event t))
    (call-interactively #'eglot-code-actions)))

(defun plain-completed (typed)
  "Return what TYPED becomes where a prompt is read."
  (with-temp-buffer
    (setq-local completion-styles '(flex))
    (insert typed)
    (let ((completion-at-point-functions '(my-magy-completions)))
      (completion-at-point))
    (buffer-string)))

(defun plain-main ()
  "Do what is shown."
  (let ((eglot-sync-connect 40) (eglot-autoshutdown nil) (inhibit-message t))
    (find-file (getenv "FILE"))
    (setq python-indent-guess-indent-offset nil)
    (apply #'eglot (eglot--guess-contact))
    (goto-char (point-min))
    (forward-line 1)
    (forward-char 11)
    (plain-code-action "Magy: Explain this code")
    (plain-wait "the explanation"
                (lambda () (string-match-p "It greets" (plain-messages))))
    (plain-note 'explained (plain-messages))
    (plain-diagnose)
    (setq plain-answers '("Allow once"))
    (plain-code-action "Magy: Fix this problem")
    (plain-wait "the fix" (lambda () (string-match-p "It was a slip" (plain-messages))))
    (plain-note 'fixed (buffer-string))
    (goto-char (point-min))
    (forward-line 1)
    (plain-code-action "Reject this change of build")
    (plain-wait "the rejection" (lambda () (string-match-p "'hello'" (buffer-string))))
    (plain-note 'rejected (buffer-string))
    (plain-note 'completed (vconcat (mapcar #'plain-completed '("/exp" "see @ap" "@explo"))))
    (my-magy-prompt "Take your time")
    (plain-wait "the turn"
                (lambda ()
                  (cl-find "Magy: Stop" (eglot-code-actions (point) (point))
                           :key (lambda (one) (plist-get one :title)) :test #'equal)))
    (my-magy-stop)
    (plain-wait "the stop" (lambda () (string-match-p "cancelled" (plain-messages))))
    (plain-note 'stopped t)
    (eglot-shutdown (eglot-current-server))))

(advice-add 'completing-read :override #'plain-read)
(condition-case problem
    (plain-main)
  ((error quit) (plain-note 'problem (format "%S\n%s" problem (plain-messages)))))
(plain-note 'questions (vconcat (reverse plain-questions)))
(with-temp-file (getenv "SEEN") (insert (json-encode plain-seen)))
(kill-emacs 0)

;;; eglot.el ends here
