;;; magy-menu.el --- All commands at a glance  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Magy authors
;; SPDX-License-Identifier: GPL-3.0-or-later
;; This is free software with no warranty at all; see the file COPYING.

;;; Commentary:

;; The menu is made of `magy-commands'.  It needs the library transient,
;; which Emacs brings since 28.1; without it, a list of the same keys is
;; shown and one of them is read.

;;; Code:

(require 'magy)

(declare-function magy-menu--transient "magy-menu")

(defconst magy-menu--longest 8
  "How many commands are one below the other in the menu.")

(defun magy-menu--columns ()
  "Return `magy-commands' as columns, none of them long: (TITLE ENTRY...)."
  (cl-loop for (title . entries) in magy-commands
           ;; The menu is there already.
           for shown = (cl-remove 'magy-menu entries :key #'cadr)
           for parts = (seq-partition shown (if (> (length shown) magy-menu--longest)
                                                (/ (1+ (length shown)) 2)
                                              magy-menu--longest))
           append (cl-loop for part in parts for name = title then ""
                           collect (cons name part))))

(defun magy-menu--rows ()
  "Return the columns of the menu in rows of three: all fits on a small terminal."
  (seq-partition (magy-menu--columns) 3))

(defun magy-menu--groups ()
  "Return the columns as groups of a transient menu, in rows."
  (mapcar (lambda (row)
            (vconcat (mapcar (lambda (column)
                               (vconcat (list (car column))
                                        (mapcar (pcase-lambda (`(,key ,command ,what))
                                                  (list key what command))
                                                (cdr column))))
                             row)))
          (magy-menu--rows)))

(defun magy-menu--define ()
  "Define the transient menu; return non-nil if that could be done."
  (or (fboundp 'magy-menu--transient)
      (when (require 'transient nil t)
        (eval `(transient-define-prefix magy-menu--transient ()
                 "Magy's commands."
                 ,@(magy-menu--groups))
              t)
        t)))

(defun magy-menu--text ()
  "Return `magy-commands' as text, in the rows of the menu."
  (mapconcat (lambda (row)
               (cl-loop for n from 0 to (apply #'max (mapcar (lambda (column)
                                                               (length (cdr column)))
                                                             row))
                        concat (concat (string-trim-right
                                        (mapconcat (lambda (column)
                                                     (magy-menu--cell (nth n column)))
                                                   row ""))
                                       "\n")))
             (magy-menu--rows) "\n"))

(defun magy-menu--cell (what)
  "Return WHAT, the title of a column, a command or nothing, as wide as all are."
  (string-pad (pcase what
                (`(,key ,_ ,words) (format "%s  %s" (propertize key 'face 'help-key-binding)
                                         words))
                ((pred stringp) (propertize what 'face 'bold))
                (_ ""))
              26))

(defun magy-menu--plain ()
  "Show the commands, read a key, and do what it says."
  (let ((buffer (get-buffer-create " *magy menu*")) key)
    (with-current-buffer buffer
      (erase-buffer)
      (insert (magy-menu--text))
      (goto-char (point-min)))
    (save-window-excursion
      (display-buffer buffer '((display-buffer-at-bottom)
                               (window-height . fit-window-to-buffer)))
      (setq key (read-key "Magy: ")))
    (let ((command (lookup-key magy-command-map (vector key))))
      (if (commandp command)
          (call-interactively command)
        (message "No command of Magy's has that key")))))

;;;###autoload
(defun magy-menu ()
  "Show all commands of Magy; their keys work here."
  (interactive)
  (if (magy-menu--define)
      (funcall 'magy-menu--transient)
    (magy-menu--plain)))

(provide 'magy-menu)
;;; magy-menu.el ends here
