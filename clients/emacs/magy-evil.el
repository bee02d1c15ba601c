;;; magy-evil.el --- Magy for those who use Evil  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Magy authors
;; SPDX-License-Identifier: GPL-3.0-or-later
;; This is free software with no warranty at all; see the file COPYING.

;;; Commentary:

;; Evil's normal state hides the keys of Magy's buffers.  This file is
;; not loaded by anything; to have them:
;;
;;   (require 'magy-evil)
;;   (magy-evil-mode)

;;; Code:

(require 'magy-transcript)

(declare-function evil-change-state "ext:evil-core")
(declare-function evil-set-initial-state "ext:evil-core")

(defconst magy-evil--states
  '((magy-agents-mode . emacs)
    (magy-agents-tree-mode . emacs)
    (magy-checkpoints-mode . emacs)
    (magy-review-diff-mode . emacs)
    (magy-review-list-mode . emacs)
    (magy-transcript-mode . emacs)
    (magy-undo-mode . emacs)
    (magy-doctor-mode . motion)
    (magy-log-mode . motion))
  "The state in which Magy's buffers begin: (MODE . STATE).")

(defun magy-evil--apply (on)
  "Have Magy's buffers begin in their states if ON, else as Evil has it."
  (pcase-dolist (`(,mode . ,state) magy-evil--states)
    (evil-set-initial-state mode (if on state 'motion))
    (dolist (buffer (buffer-list))
      (with-current-buffer buffer
        (when (and (derived-mode-p mode) (bound-and-true-p evil-local-mode))
          (evil-change-state (if on state 'motion)))))))

;;;###autoload
(define-minor-mode magy-evil-mode
  "Have the keys of Magy's buffers work under Evil."
  :global t
  :group 'magy
  (unless (require 'evil nil t)
    (setq magy-evil-mode nil)
    (user-error "Evil is not installed"))
  (magy-evil--apply magy-evil-mode))

(provide 'magy-evil)
;;; magy-evil.el ends here
