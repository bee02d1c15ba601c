;;; magy-form.el --- Forms of MCP servers  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Magy authors
;; SPDX-License-Identifier: GPL-3.0-or-later
;; This is free software with no warranty at all; see the file COPYING.

;;; Commentary:

;; A server may ask for something in the middle of a call.  The question
;; shows the whole form; here the minibuffer asks for one field after the
;; other.  C-g leaves the question open.  The server of Magy checks what was
;; filled in, and says what does not fit.

;;; Code:

(require 'crm)
(require 'magy-permission-words)

(defun magy-permission--fill (question)
  "Have the person fill in the form of QUESTION, if it has one.
Return what was filled in as a property list, nil if there is nothing."
  (let* ((fields (magy-permission--fields question))
         (count (length fields)))
    (cl-loop for field in fields
             for n from 1
             for value = (magy-form--read field (if (cdr fields) (format "%d/%d " n count) ""))
             unless (equal value "")
             append (list (intern (concat ":" (plist-get field :name))) value))))

(defun magy-form--read (field which)
  "Ask for the value of FIELD, which prompt begins with WHICH.
Return a string, or a vector of strings; an empty string is no value."
  (let* ((needed (magy--true (plist-get field :required)))
         (prompt (format "%s%s (%s%s): " which (plist-get field :label) (plist-get field :hint)
                         (if needed "" ", may be left out")))
         (choices (magy-form--choices field))
         (default (magy-form--default field choices))
         (value (magy-form--one field prompt choices default needed)))
    (while (and needed (member value '("" [])))
      (message "%s must be filled in" (plist-get field :label))
      (sit-for 1)
      (setq value (magy-form--one field prompt choices default needed)))
    value))

(defun magy-form--one (field prompt choices default needed)
  "Ask once for FIELD with PROMPT, offering CHOICES and DEFAULT.
NEEDED says that one of the choices must be chosen."
  (cond ((null choices) (read-string prompt default))
        ((magy--true (plist-get field :many))
         (magy-form--several prompt choices (plist-get field :default)))
        (t (let ((chosen (completing-read prompt choices nil (if needed t 'confirm)
                                          nil nil default)))
             (or (cdr (assoc chosen choices)) "")))))

(defun magy-form--several (prompt choices default)
  "Ask with PROMPT for several of CHOICES, offering those of the vector DEFAULT.
What stands between them is in none of them.  Return a vector of strings."
  (let* ((free (lambda (mark)
                 (not (seq-some (lambda (one) (string-search mark (car one))) choices))))
         (between (or (seq-find free '("," ";" "|" "/")) ","))
         (crm-separator (format "[ \t]*%s[ \t]*" (regexp-quote between)))
         (offered (mapcar (lambda (one) (cons (string-trim (car one)) (cdr one))) choices))
         (first (and (vectorp default)
                     (mapconcat (lambda (one) (string-trim one)) default between)))
         (prompt (if (equal between ",") prompt (format "[%s between them] %s" between prompt)))
         (chosen (completing-read-multiple prompt offered nil t nil nil first)))
    (vconcat (delq nil (mapcar (lambda (one) (cdr (assoc (string-trim one) offered))) chosen)))))

(defun magy-form--choices (field)
  "Return what can be chosen for FIELD: a list of (SHOWN . VALUE), or nil."
  (if (equal "boolean" (plist-get field :type))
      '(("yes" . "yes") ("no" . "no"))
    (mapcar (lambda (choice)
              (let ((value (plist-get choice :value)) (name (plist-get choice :name)))
                ;; Of several, it is the value that is typed.
                (cons (if (or (member name '(nil "")) (magy--true (plist-get field :many)))
                          value
                        (format "%s (%s)" value name))
                      value)))
            (plist-get field :choices))))

(defun magy-form--default (field choices)
  "Return the default of FIELD, which has CHOICES, as a string, or nil."
  (let ((default (plist-get field :default)))
    (cond ((stringp default) (or (car (rassoc default choices)) default))
          ((numberp default) (number-to-string default))
          ((equal "boolean" (plist-get field :type))
           (cond ((eq default t) "yes")
                 ((eq default :json-false) "no"))))))

(provide 'magy-form)
;;; magy-form.el ends here
