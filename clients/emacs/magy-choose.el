;;; magy-choose.el --- Choosing among what the server has  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Magy authors
;; SPDX-License-Identifier: GPL-3.0-or-later
;; This is free software with no warranty at all; see the file COPYING.

;;; Commentary:

;; The server is asked without waiting.  When its answer is there, the
;; person chooses, unless they have begun something else by then: keys
;; that are meant for a file must not end up in the minibuffer.

;;; Code:

(require 'cl-lib)
(require 'seq)

(defvar magy-choose--asking nil
  "What `magy-choose-begin' returned since the last command began.")

(defun magy-choose-begin ()
  "Say that the server is asked for something to choose from.
Return what `magy-choose' needs to know of the command that asks."
  (message "Magy: asking…")
  (let ((asked (list this-command)))
    (push asked magy-choose--asking)
    (add-hook 'pre-command-hook #'magy-choose--goes-on)
    asked))

(defun magy-choose--goes-on ()
  "The person goes on: what was asked before this command comes late."
  (remove-hook 'pre-command-hook #'magy-choose--goes-on)
  (dolist (asked magy-choose--asking)
    (setcdr asked 'late))
  (setq magy-choose--asking nil))

(defun magy-choose--late-p (asked)
  "Return non-nil if the person has begun something since ASKED."
  (or (cdr asked)
      (active-minibuffer-window)
      (input-pending-p)
      ;; A key sequence is half typed.
      (> (length (this-command-keys-vector)) 0)))

(cl-defun magy-choose (asked prompt entries then &key group annotate)
  "Have the person choose one of ENTRIES after PROMPT; call THEN with its value.
ASKED is what `magy-choose-begin' returned when the command began.
ENTRIES are (TEXT . VALUE), in the order to be shown.  GROUP and ANNOTATE
are functions of a value that return a group's name and a remark.  Call
this from the process filter, too: it returns at once."
  (run-with-timer 0 nil #'magy-choose--now asked prompt entries then group annotate))

(defun magy-choose--now (asked prompt entries then group annotate)
  "Have the person choose, as in `magy-choose'.
ASKED, PROMPT, ENTRIES, THEN, GROUP and ANNOTATE are as there."
  (cond ((null entries) (message "%s(there is nothing to choose from)" prompt))
        ((magy-choose--late-p asked)
         (message "Magy: the answer has arrived: type M-x %s again" (or (car asked) "that")))
        (t (when-let ((chosen (assoc (completing-read
                                      prompt (magy-choose--table entries group annotate)
                                      nil t nil nil (caar entries))
                                     entries)))
             (funcall then (cdr chosen))))))

(defun magy-choose--table (entries group annotate)
  "Return a completion table of ENTRIES.
GROUP and ANNOTATE are as in `magy-choose'."
  (let ((value (lambda (text) (cdr (assoc text entries)))))
    (lambda (string predicate action)
      (if (not (eq action 'metadata))
          (complete-with-action action entries string predicate)
        `(metadata
          (category . magy-choice)
          (display-sort-function . identity)
          (cycle-sort-function . identity)
          ,@(and group
                 `((group-function . ,(lambda (text transform)
                                        (if transform
                                            text
                                          (funcall group (funcall value text)))))))
          ,@(and annotate
                 `((annotation-function . ,(lambda (text)
                                             (let ((remark (funcall annotate
                                                                    (funcall value text))))
                                               (if (member remark '(nil ""))
                                                   ""
                                                 (concat "  " (propertize remark
                                                                          'face 'shadow)))))))))))))

;; What one remembers of a title is seldom its beginning.
(add-to-list 'completion-category-defaults '(magy-choice (styles substring)))

(provide 'magy-choose)
;;; magy-choose.el ends here
