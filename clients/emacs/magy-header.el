;;; magy-header.el --- What a Magy session is, does and costs  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Magy authors
;; SPDX-License-Identifier: GPL-3.0-or-later
;; This is free software with no warranty at all; see the file COPYING.

;;; Commentary:

;; The header line of a transcript, and the sums it shows.

;;; Code:

(require 'magy-transcript)

(defun magy-header--count (project summary head)
  "Take what PROJECT's session has used from its SUMMARY.
That stands for entry HEAD."
  (let ((cost (plist-get summary :cost))
        (context (plist-get summary :context)))
    (setf (magy-project-counted project) head
          (magy-project-tokens project) (or (magy--get summary :usage :totalTokens)
                                            (magy-project-tokens project))
          (magy-project-cost project) (or (plist-get cost :amount) 0)
          (magy-project-unpriced project) (or (plist-get cost :unpriced) 0)
          (magy-project-context project) (or (plist-get context :tokens) 0)
          (magy-project-window project) (or (plist-get context :window) 0))))

(defun magy-header--add (project update seq)
  "Add what the usage UPDATE, entry SEQ, says to the sums of PROJECT's session."
  (when (and seq (> seq (magy-project-counted project)))
    (let* ((about (magy--get update :_meta :magy))
           (usage (plist-get about :usage))
           (cost (plist-get about :cost)))
      (setf (magy-project-counted project) seq)
      (cl-incf (magy-project-tokens project) (plist-get update :used))
      (if cost
          (cl-incf (magy-project-cost project) cost)
        (cl-incf (magy-project-unpriced project)))
      ;; The request of a reply is a number; titles and summaries are asked for aside.
      (when (and usage (string-match-p "\\`[0-9]+\\'" (or (plist-get about :request) "")))
        (setf (magy-project-context project) (plist-get usage :totalTokens))))))

(defun magy-header--number (number)
  "Return NUMBER, of tokens, for people."
  (file-size-human-readable number 'si))

(defun magy-header--sums (project)
  "Return what PROJECT's session has used, as a list of words."
  (let ((window (magy-project-window project))
        (context (magy-project-context project))
        (cost (magy-project-cost project)))
    (list (and (> (magy-project-tokens project) 0)
               (format "%s tokens" (magy-header--number (magy-project-tokens project))))
          (and (> window 0) (> context 0)
               (propertize (format "%d%% of %s" (/ (* 100 context) window)
                                   (magy-header--number window))
                           'face (if (> (* 10 context) (* 8 window)) 'warning 'default)
                           'help-echo "How full the model's context is"))
          (and (> cost 0)
               (format "$%.2f%s" cost
                       (if (> (magy-project-unpriced project) 0) "+" ""))))))

(defun magy-header--state (project)
  "Return in a word what PROJECT's session does."
  (let ((state (magy-project-state project)))
    (cond ((magy-project-questions project)
           (propertize "? question" 'face 'magy-question))
          ((not (magy-live-p magy-transcript--project)) (propertize "○ off" 'face 'shadow))
          ((equal state "running") (propertize "● running" 'face 'success))
          (t (concat "● " (if (equal state "requires_action") "waiting" state))))))

(defun magy-transcript-header ()
  "Return the header line: what the session is, does and costs."
  (let* ((project magy-transcript--view)
         (options (and project (magy-project-options project))))
    (when project
      (concat " " (magy-header--state project) "  "
              (string-replace
               "%" "%%"
               (string-join
                (delq nil (append
                           (list (or (magy-project-title project) (magy-project-name project))
                                 (alist-get "agent" options nil nil #'equal)
                                 (alist-get "model" options nil nil #'equal)
                                 (and (equal "on" (alist-get "bypass" options nil nil #'equal))
                                      (propertize "asks nothing" 'face 'warning)))
                           (magy-header--sums project)))
                " · "))))))

(provide 'magy-header)
;;; magy-header.el ends here
