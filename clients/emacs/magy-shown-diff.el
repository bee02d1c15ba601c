;;; magy-shown-diff.el --- Diffs to look at  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Magy authors
;; SPDX-License-Identifier: GPL-3.0-or-later
;; This is free software with no warranty at all; see the file COPYING.

;;; Commentary:

;; What the review and undo have in common: a diff that is read, never
;; applied or edited as text.

;;; Code:

(require 'diff-mode)

(defun magy-shown-diff--quietly (fontify &rest arguments)
  "Call FONTIFY with ARGUMENTS; the modes of the languages say nothing meanwhile."
  (let ((inhibit-message t) (message-log-max nil))
    (apply fontify arguments)))

(define-derived-mode magy-shown-diff-mode diff-mode "Magy Diff"
  "A diff that is looked at."
  :interactive nil
  ;; The words that differ are said by the server; nothing is compared here.
  (setq-local diff-refine nil
              diff-font-lock-syntax 'hunk-only)
  (remove-hook 'after-change-functions #'diff-after-change-function t)
  (remove-hook 'post-command-hook #'diff-post-command-hook t)
  (add-function :around (local 'font-lock-fontify-region-function) #'magy-shown-diff--quietly)
  (setq buffer-undo-list t
        buffer-read-only t
        ;; In a read-only buffer, `diff-mode' puts keys of its own before those of this mode.
        minor-mode-overriding-map-alist
        (assq-delete-all 'buffer-read-only (copy-sequence minor-mode-overriding-map-alist))))

(provide 'magy-shown-diff)
;;; magy-shown-diff.el ends here
