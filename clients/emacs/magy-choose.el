;;; magy-choose.el --- Choosing among what the server has  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Magy authors
;; SPDX-License-Identifier: GPL-3.0-or-later
;; This is free software with no warranty at all; see the file COPYING.

;;; Commentary:

;; The server is asked without waiting.  When its answer is there, the
;; person chooses, unless they are in the minibuffer by then.

;;; Code:

(require 'cl-lib)
(require 'seq)

(cl-defun magy-choose (prompt entries then &key group annotate)
  "Have the person choose one of ENTRIES after PROMPT; call THEN with its value.
ENTRIES are (TEXT . VALUE), in the order to be shown.  GROUP and ANNOTATE
are functions of a value that return a group's name and a remark.  Call
this from the process filter, too: it returns at once."
  (run-with-timer 0 nil #'magy-choose--now this-command prompt entries then group annotate))

(defun magy-choose--now (command prompt entries then group annotate)
  "Have the person choose, as in `magy-choose'; COMMAND is what they said.
PROMPT, ENTRIES, THEN, GROUP and ANNOTATE are as there."
  (cond ((null entries) (message "%s(there is nothing to choose from)" prompt))
        ((active-minibuffer-window)
         (message "The answer has arrived: type M-x %s again" (or command "that")))
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

(provide 'magy-choose)
;;; magy-choose.el ends here
