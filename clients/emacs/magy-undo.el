;;; magy-undo.el --- Undoing turns  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Magy authors
;; SPDX-License-Identifier: GPL-3.0-or-later
;; This is free software with no warranty at all; see the file COPYING.

;;; Commentary:

;; What a turn did to files, what was said, or both can be undone, and
;; redone.  What would change is shown first.  The server works it out
;; and keeps what others, the person included, have written since.

;;; Code:

(require 'magy-buffers)
(require 'magy-session)
(require 'magy-shown-diff)
(require 'tabulated-list)

(defvar magy-restored-functions nil
  "Functions called with a project and the result of going back.
Its :prompt is what was said in the turn that is gone.")

(declare-function magy-input-set "magy-input" (text))
(declare-function magy-input-text "magy-input" ())

(defvar-local magy-undo--about nil
  "What is shown in the buffer, a plist.
Its members are :project, :session, :turn or :undoes, :prompt, :files,
:conversation and :preview.")

(defvar magy-undo-mode-map
  (let ((map (make-sparse-keymap)))
    (pcase-dolist (`(,key . ,command)
                   '(("y" . magy-undo-do) ("f" . magy-undo-toggle-files)
                     ("c" . magy-undo-toggle-conversation) ("g" . magy-undo-refresh)
                     ("n" . diff-hunk-next) ("p" . diff-hunk-prev)
                     ("q" . quit-window) ("SPC" . scroll-up-command)
                     ("DEL" . scroll-down-command) ("?" . describe-mode)))
      (define-key map (kbd key) command))
    map)
  "Keymap of `magy-undo-mode'.")

(define-derived-mode magy-undo-mode magy-shown-diff-mode "Magy Undo"
  "What undoing a turn would change.
\\{magy-undo-mode-map}"
  (setq header-line-format
        " y do it  f with files or not  c with the conversation or not  q leave"))

;;;; Asking

(defun magy-undo--ask (project then &optional before)
  "Call THEN with a list of the turns of PROJECT's session, oldest first.
With BEFORE, the id of a turn, only those before it."
  (unless (magy-project-session project)
    (user-error "No session is shown for %s" (magy-project-name project)))
  (magy-session-ensure
   project
   (lambda ()
     (magy-request project 'magy/checkpoint/list
                   (append (list :sessionId (magy-project-session project) :limit 100)
                           (and before (list :before before)))
                   (lambda (result)
                     ;; Not in the process filter: a window is shown, something may be asked.
                     (run-with-timer 0 nil then (append (plist-get result :checkpoints) nil)))))))

(defun magy-undo--params (about)
  "Return the parameters that say what ABOUT is."
  (append (list :sessionId (plist-get about :session))
          (if (plist-get about :turn)
              (list :turnId (plist-get about :turn))
            (list :undoes (plist-get about :undoes)))
          (list :files (if (plist-get about :files) t :json-false)
                :conversation (if (plist-get about :conversation) t :json-false))))

(defun magy-undo--preview (project about window)
  "Ask what ABOUT would change in PROJECT and show it, from WINDOW.
Another window is only selected if the person is still in that one."
  (magy-request
   project 'magy/checkpoint/preview (magy-undo--params about)
   (lambda (preview)
     (run-with-timer 0 nil #'magy-undo--show
                     (append (list :project project :preview preview) about) window))))

(defun magy-undo--show (about window)
  "Show ABOUT in its buffer, and go there from WINDOW."
  (let ((buffer (get-buffer-create
                 (format "*magy undo: %s*" (magy-project-name (plist-get about :project))))))
    (with-current-buffer buffer
      (magy-undo-mode)
      (setq magy-undo--about about
            magy--own-project (plist-get about :project)
            default-directory (magy-project-root (plist-get about :project)))
      (let ((inhibit-read-only t))
        (erase-buffer)
        (magy-undo--insert about)
        (set-buffer-modified-p nil)
        (goto-char (point-min))))
    (if (eq window (selected-window))
        (pop-to-buffer buffer)
      (display-buffer buffer))))

;;;; What is shown

(defun magy-undo--insert (about)
  "Insert what is to be known before ABOUT is done."
  (let* ((preview (plist-get about :preview))
         (files (append (plist-get preview :files) nil))
         (changed (cl-remove-if-not #'magy-undo--changes-p files))
         (left (cl-remove-if #'string-empty-p files :key #'magy-undo--conflict))
         (why (or (plist-get preview :why) "")))
    (insert (propertize (magy-undo--title about) 'face 'bold) "\n\n")
    (cond ((not (plist-get about :files)) (insert "  Files stay as they are.\n"))
          ((null changed) (insert "  No file would change.\n")))
    (dolist (file changed) (insert "  " (magy-undo--file-line about file) "\n"))
    (dolist (file left)
      (insert (propertize (format "  %s is left alone: %s\n"
                                  (magy-undo--name about file) (magy-undo--conflict file))
                          'face 'warning)))
    (insert "  "
            (cond ((magy--true (plist-get preview :conversation))
                   (if (plist-get about :undoes)
                       "The conversation comes back."
                     "The conversation goes back to before this prompt."))
                  ((not (string-empty-p why)) (propertize why 'face 'warning))
                  (t "The conversation stays as it is."))
            "\n\n")
    (dolist (file changed)
      (let ((diff (or (plist-get file :diff) "")))
        (unless (string-empty-p diff)
          (insert diff (if (string-suffix-p "\n" diff) "" "\n")))))))

(defun magy-undo--title (about)
  "Return what ABOUT is, as a line."
  (let ((turns (length (magy--get about :preview :turns))))
    (format "%s %s: %s"
            (if (plist-get about :undoes) "Redo" "Undo")
            (if (= turns 1) "1 turn" (format "%d turns" turns))
            (or (plist-get about :prompt) ""))))

(defun magy-undo--conflict (file)
  "Return why FILE is left alone, or nothing."
  (or (plist-get file :conflict) ""))

(defun magy-undo--changes-p (file)
  "Return non-nil if something would be done to FILE."
  (and (string-empty-p (magy-undo--conflict file))
       (not (equal "nothing" (plist-get file :action)))))

(defun magy-undo--name (about file &optional key)
  "Return the name of FILE as people of ABOUT's project say it.
KEY says which of its names, :path unless given."
  (file-relative-name (plist-get file (or key :path))
                      (magy-project-root (plist-get about :project))))

(defun magy-undo--file-line (about file)
  "Return a line that says what is done to FILE of ABOUT."
  (format "%s %s  +%d -%d"
          (pcase (plist-get file :action)
            ("create" "comes back ") ("remove" "is removed ") ("rename" "is renamed ")
            (_ "changes    "))
          (if (equal "rename" (plist-get file :action))
              (format "%s → %s" (magy-undo--name about file :movedFrom)
                      (magy-undo--name about file))
            (magy-undo--name about file))
          (plist-get file :added) (plist-get file :removed)))

;;;; Doing

(defun magy-undo-refresh ()
  "Preview again what would change."
  (interactive nil magy-undo-mode)
  (magy--in-mode 'magy-undo-mode)
  (let ((about magy-undo--about))
    (magy-undo--preview (plist-get about :project)
                        (cl-loop for (key value) on about by #'cddr
                                 unless (memq key '(:project :preview))
                                 append (list key value))
                        (selected-window))))

(defun magy-undo--toggle (key other)
  "Have KEY, :files or :conversation, go back or not; not neither it nor OTHER."
  (magy--in-mode 'magy-undo-mode)
  (let* ((about magy-undo--about) (on (not (plist-get about key))))
    (unless (or on (plist-get about other))
      (user-error "Nothing would be undone then"))
    (setq magy-undo--about (plist-put (copy-sequence about) key on))
    (magy-undo-refresh)))

(defun magy-undo-toggle-files ()
  "Toggle whether the files go back."
  (interactive nil magy-undo-mode)
  (magy-undo--toggle :files :conversation))

(defun magy-undo-toggle-conversation ()
  "Toggle whether the conversation goes back."
  (interactive nil magy-undo-mode)
  (magy-undo--toggle :conversation :files))

(defun magy-undo-do ()
  "Do what this preview shows."
  (interactive nil magy-undo-mode)
  (magy--in-mode 'magy-undo-mode)
  (let* ((about magy-undo--about) (project (plist-get about :project))
         (buffer (current-buffer)))
    (magy-new-step project)
    (magy-request
     project 'magy/checkpoint/restore
     (append (magy-undo--params about) (list :requestKey (magy--new-id "restore")))
     (lambda (result)
       (magy-new-step project)
       (magy-undo--done about result)
       (when (buffer-live-p buffer)
         (if-let ((window (get-buffer-window buffer t)))
             (quit-window t window)
           (kill-buffer buffer)))
       (run-hook-with-args 'magy-restored-functions project result)))))

(defun magy-undo--done (about result)
  "Say what RESULT has made of ABOUT."
  (let* ((files (append (plist-get result :files) nil))
         (left (cl-remove-if #'string-empty-p files :key #'magy-undo--conflict))
         (count (cl-count-if #'magy-undo--changes-p files)))
    (magy--message
     "%s: %d file%s%s%s"
     (if (plist-get about :undoes) "Redone" "Undone")
     count (if (= count 1) "" "s")
     (if (magy--true (plist-get result :conversation)) " and the conversation" "")
     (if left
         (concat "; left alone: "
                 (mapconcat (lambda (file) (magy-undo--name about file)) left ", "))
       (if (plist-get about :undoes)
           ""
         (substitute-command-keys "  (\\[magy-redo-turn] redoes it)"))))))

(defun magy-undo--offer-prompt (project result)
  "Put what was said in the turn that is gone, by RESULT, into PROJECT's input.
What is written there already stays."
  (let ((prompt (or (plist-get result :prompt) "")) (buffer (magy-project-buffer project)))
    (when (and (buffer-live-p buffer) (not (string-blank-p prompt)) (fboundp 'magy-input-set)
               (magy--true (plist-get result :conversation)))
      (with-current-buffer buffer
        (when (string-blank-p (magy-input-text))
          (magy-input-set prompt))))))

(add-hook 'magy-restored-functions #'magy-undo--offer-prompt)

;;;; Commands

(defun magy-undo--of (project turn)
  "Return TURN of PROJECT's session as what is to be undone."
  (list :session (magy-project-session project) :turn (plist-get turn :turnId)
        :prompt (plist-get turn :prompt) :files t
        :conversation (magy--true (plist-get turn :conversation))))

(defun magy-undo--back-of (project turn)
  "Return the undo of TURN of PROJECT's session as what is to be undone."
  (list :session (magy-project-session project) :undoes (plist-get turn :restoreId)
        :prompt (plist-get turn :prompt) :files t :conversation t))

(defun magy-undo--undone-p (turn)
  "Return non-nil if TURN is undone."
  (equal "undone" (plist-get turn :state)))

;;;###autoload
(defun magy-undo-turn ()
  "Preview undoing the last turn; y then does it.
Later changes by others stay.  `magy-checkpoints' goes further
back, `magy-redo-turn' redoes a turn."
  (interactive)
  (let ((project (magy-current-project)) (window (selected-window)))
    (magy-undo--ask
     project
     (lambda (turns)
       (if-let ((turn (cl-find-if-not #'magy-undo--undone-p turns :from-end t)))
           (magy-undo--preview project (magy-undo--of project turn) window)
         (magy--message "Magy: there is nothing to undo"))))))

;;;###autoload
(defun magy-redo-turn ()
  "Preview redoing the turn that was undone last."
  (interactive)
  (let ((project (magy-current-project)) (window (selected-window)))
    (magy-undo--ask
     project
     (lambda (turns)
       ;; Turns are undone from the last on, so the first of them was the newest undo.
       (if-let ((turn (cl-find-if #'magy-undo--back-p turns)))
           (magy-undo--preview project (magy-undo--back-of project turn) window)
         (magy--message "Magy: nothing was undone"))))))

(defun magy-undo--back-p (turn)
  "Return non-nil if TURN was undone and can be redone."
  (not (member (plist-get turn :restoreId) '(nil ""))))

(autoload 'magy-checkpoints-show "magy-checkpoints")

;;;###autoload
(defun magy-checkpoints ()
  "List the turns of this project's session that you can go back to."
  (interactive)
  (let ((project (magy-current-project)) (window (selected-window)))
    (magy-undo--ask project (lambda (turns) (magy-checkpoints-show project turns window)))))

(provide 'magy-undo)
;;; magy-undo.el ends here
