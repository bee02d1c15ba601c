;;; magy-checkpoints.el --- Turns as points to go back to  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Magy authors
;; SPDX-License-Identifier: GPL-3.0-or-later
;; This is free software with no warranty at all; see the file COPYING.

;;; Commentary:

;; A table of the turns of a session, with what each did to files.

;;; Code:

(require 'magy-undo)
(require 'tabulated-list)

(defvar magy-checkpoints-mode-map
  (let ((map (make-sparse-keymap)))
    (pcase-dolist (`(,key . ,command)
                   '(("RET" . magy-checkpoints-undo) ("u" . magy-checkpoints-undo)
                     ("r" . magy-checkpoints-redo) ("g" . magy-checkpoints)
                     ("+" . magy-checkpoints-older)))
      (define-key map (kbd key) command))
    map)
  "Keymap of `magy-checkpoints-mode'.")

(define-derived-mode magy-checkpoints-mode tabulated-list-mode "Magy Turns"
  "The turns of a session; go back to before one, and forth again.
\\{magy-checkpoints-mode-map}"
  (setq tabulated-list-format [("When" 12 t) ("Prompt" 40 nil) ("State" 7 t) ("Files" 30 nil)]
        tabulated-list-padding 1)
  (tabulated-list-init-header))

(defun magy-checkpoints--row (project turn)
  "Return the row of TURN in PROJECT."
  (list turn
        (vector (format-time-string "%b %d %R" (date-to-time (plist-get turn :at)))
                (replace-regexp-in-string "[\n\t]+" " " (plist-get turn :prompt))
                (pcase (plist-get turn :state)
                  ("applied" "")
                  (state (propertize state 'face 'shadow)))
                (string-join (seq-map (lambda (file) (magy-checkpoints--file project file))
                                      (plist-get turn :files))
                             ", "))))

(defun magy-checkpoints--file (project file)
  "Return what is said of FILE, which a turn of PROJECT changed."
  (format "%s +%d -%d%s"
          (file-relative-name (plist-get file :path) (magy-project-root project))
          (plist-get file :added) (plist-get file :removed)
          (if (equal "applied" (plist-get file :state))
              ""
            (concat " " (plist-get file :state)))))

(defun magy-checkpoints-show (project turns window)
  "Show TURNS of PROJECT, oldest first, newest on top; go there from WINDOW."
  (let ((buffer (get-buffer-create (format "*magy turns: %s*" (magy-project-name project)))))
    (with-current-buffer buffer
      (magy-checkpoints-mode)
      (setq magy--own-project project
            default-directory (magy-project-root project))
      (magy-checkpoints--fill turns))
    (cond ((eq buffer (window-buffer)))
          ((eq window (selected-window)) (pop-to-buffer buffer))
          (t (display-buffer buffer)))
    (message "%s" (substitute-command-keys
                   (concat "\\<magy-checkpoints-mode-map>\\[magy-checkpoints-undo] shows what going"
                           " back to before a turn would change,"
                           " \\[magy-checkpoints-redo] redoes one")))))

(defun magy-checkpoints--fill (turns)
  "Show TURNS, oldest first, in the current buffer."
  (setq tabulated-list-entries
        (mapcar (lambda (turn) (magy-checkpoints--row magy--own-project turn)) (reverse turns)))
  (tabulated-list-print t))

(defun magy-checkpoints--restored (project _result)
  "List the turns of PROJECT as they are after going back, if they are shown."
  (dolist (buffer (buffer-list))
    (with-current-buffer buffer
      (when (and (derived-mode-p 'magy-checkpoints-mode) (eq project magy--own-project))
        (magy-undo--ask project (lambda (turns)
                                  (when (buffer-live-p buffer)
                                    (with-current-buffer buffer
                                      (magy-checkpoints--fill turns)))))))))

(add-hook 'magy-restored-functions #'magy-checkpoints--restored)

(defun magy-checkpoints--here ()
  "Return the turn at point."
  (or (tabulated-list-get-id) (user-error "No turn on this line")))

(defun magy-checkpoints-undo ()
  "Preview undoing the turn at point and all later ones."
  (interactive nil magy-checkpoints-mode)
  (let ((turn (magy-checkpoints--here)))
    (when (magy--true (plist-get turn :inherited))
      (user-error "Its files belong to the session that this one was forked from"))
    (magy-undo--preview magy--own-project (magy-undo--of magy--own-project turn)
                        (selected-window))))

(defun magy-checkpoints-redo ()
  "Preview redoing the turn at point."
  (interactive nil magy-checkpoints-mode)
  (let ((turn (magy-checkpoints--here)))
    (unless (magy-undo--back-p turn)
      (user-error "This turn was not undone"))
    (magy-undo--preview magy--own-project (magy-undo--back-of magy--own-project turn)
                        (selected-window))))

(defun magy-checkpoints-older ()
  "Show older turns, too."
  (interactive nil magy-checkpoints-mode)
  (magy--in-mode 'magy-checkpoints-mode)
  (let ((buffer (current-buffer))
        (shown (reverse (mapcar #'car tabulated-list-entries))))
    (magy-undo--ask magy--own-project
                    (lambda (turns)
                      (if (null turns)
                          (message "There are no older turns")
                        (when (buffer-live-p buffer)
                          (with-current-buffer buffer
                            (magy-checkpoints--fill (append turns shown))))))
                    (plist-get (car shown) :turnId))))

(provide 'magy-checkpoints)
;;; magy-checkpoints.el ends here
