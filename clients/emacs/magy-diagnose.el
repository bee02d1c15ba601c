;;; magy-diagnose.el --- Asking an agent about this Emacs  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Magy authors
;; SPDX-License-Identifier: GPL-3.0-or-later
;; This is free software with no warranty at all; see the file COPYING.

;;; Commentary:

;; A report on this Emacs, bounded and without what is private, goes with
;; a question to the agent.  It is shown before it is sent.

;;; Code:

(require 'magy-context)
(require 'magy-facts)

(defvar package-alist)
(declare-function package-desc-version "package")
(declare-function package-version-join "package")

(defconst magy-diagnose--question "What is wrong with this Emacs, and how do I fix it?"
  "What is asked if the person says nothing else.")

(defun magy-diagnose--names (symbols most)
  "Return the names of SYMBOLS, MOST of them at most, as a vector."
  (vconcat (mapcar (lambda (symbol) (magy-facts-line "%s" symbol))
                   (seq-take symbols most))))

(defun magy-diagnose--minor-modes (global)
  "Return the minor modes that are on.
These are the GLOBAL ones, or else those of the buffer."
  (seq-filter (lambda (mode)
                (and (boundp mode) (symbol-value mode)
                     (eq global (not (local-variable-if-set-p mode)))))
              minor-mode-list))

(defun magy-diagnose--hooks ()
  "Return what the hooks hold that are most often to blame."
  (cl-loop for hook in '(after-init-hook find-file-hook before-save-hook after-save-hook
                         post-command-hook pre-command-hook after-change-functions
                         before-change-functions window-configuration-change-hook
                         kill-buffer-hook prog-mode-hook text-mode-hook)
           for value = (and (boundp hook) (symbol-value hook))
           when value
           append (list (intern (format ":%s" hook))
                        (magy-diagnose--names (if (listp value) value (list value)) 30))))

(defun magy-diagnose--buffer ()
  "Return what the current buffer is."
  (list :name (magy-facts-line "%s" (buffer-name))
        :file (magy-facts-line "%s" (or buffer-file-name ""))
        :mode (symbol-name major-mode)
        :size (buffer-size)
        :minorModes (magy-diagnose--names (magy-diagnose--minor-modes nil) 60)
        :readOnly (if buffer-read-only t :json-false)
        :longestLine (magy-diagnose--longest-line)))

(defun magy-diagnose--longest-line ()
  "Return the length of the longest of the first lines of the current buffer."
  (save-excursion
    (save-restriction
      (widen)
      (goto-char (point-min))
      (let ((longest 0) (end (min (point-max) 200000)))
        (while (< (point) end)
          (end-of-line)
          (setq longest (max longest (- (point) (line-beginning-position))))
          (forward-line)
          (when (eobp) (goto-char (point-max))))
        longest))))

(defun magy-diagnose--packages ()
  "Return the installed packages with their versions."
  (when (boundp 'package-alist)
    (mapcar (lambda (entry)
              (magy-facts-line "%s %s" (car entry)
                               (package-version-join (package-desc-version (cadr entry)))))
            (seq-take package-alist 200))))

(defun magy-diagnose--start ()
  "Return how this Emacs was started."
  (list :initFile (magy-facts-line "%s" (or user-init-file "none"))
        :initHadError (if init-file-had-error t :json-false)
        :initSeconds (magy-facts-line "%s" (emacs-init-time "%.2f"))
        :uptime (magy-facts-line "%s" (emacs-uptime))
        :garbageCollections gcs-done
        :debugOnError (if debug-on-error t :json-false)
        :buffers (length (buffer-list))
        :processes (magy-diagnose--names (mapcar #'process-name (process-list)) 30)
        :shadowedLibraries (magy-diagnose--shadows)))

(defun magy-diagnose--shadows ()
  "Return libraries of Magy that are on `load-path' more than once."
  (let ((found (seq-filter (lambda (dir)
                             (file-exists-p (expand-file-name "magy.el" dir)))
                           load-path)))
    (if (cdr found) (magy-diagnose--names found 10) [])))

(defun magy-diagnose-report (project)
  "Return the report on this Emacs, which is used in PROJECT, as JSON text."
  (let ((report (list :emacs (magy-facts-emacs)
                      :start (magy-diagnose--start)
                      :buffer (magy-diagnose--buffer)
                      :globalMinorModes (magy-diagnose--names
                                         (magy-diagnose--minor-modes t) 100)
                      :hooks (or (magy-diagnose--hooks) (make-hash-table))
                      :packages (vconcat (magy-diagnose--packages))
                      :messages (magy-facts-tail "*Messages*" 60)
                      :warnings (magy-facts-tail "*Warnings*" 40)
                      :backtrace (magy-facts-tail "*Backtrace*" 40)
                      :compileLog (magy-facts-tail "*Compile-Log*" 30)
                      :magy (magy-facts-magy project))))
    (with-temp-buffer
      (insert (json-serialize report :null-object nil :false-object :json-false))
      (json-pretty-print-buffer)
      (buffer-string))))

(defun magy-diagnose--show (report)
  "Show REPORT in a buffer of its own, without selecting it."
  (with-current-buffer (get-buffer-create "*magy report*")
    (let ((inhibit-read-only t))
      (erase-buffer)
      (insert report)
      (goto-char (point-min)))
    (special-mode)
    (display-buffer (current-buffer))))

;;;###autoload
(defun magy-diagnose-emacs (&optional text)
  "Ask the agent what is wrong with this Emacs; TEXT describes the problem.
You see the report that is sent along: versions, modes, hooks,
packages, the last messages and errors; no text of buffers, and no keys."
  (interactive)
  (let* ((report (magy-diagnose-report (magy-current-project)))
         (lines (1+ (cl-count ?\n report))))
    (magy-diagnose--show report)
    (magy-prompt-compose
     "Ask Magy about this Emacs (empty: what is wrong?): "
     :text text :default magy-diagnose--question
     :item (list :kind "emacs" :default t
                 :label (format "report on this Emacs, %d lines, shown in *magy report*" lines)
                 :block (list :type "resource"
                              :resource (list :uri "emacs:report"
                                              :text (magy--json-text report)))))))

(provide 'magy-diagnose)
;;; magy-diagnose.el ends here
