;;; magy-permissions.el --- What the person allowed for good  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Magy authors
;; SPDX-License-Identifier: GPL-3.0-or-later
;; This is free software with no warranty at all; see the file COPYING.

;;; Commentary:

;; A table of the answers that a project and its session remember, each of
;; which can be withdrawn: then Magy asks again.

;;; Code:

(require 'magy-session)
(require 'tabulated-list)

(defvar magy-permissions-mode-map
  (let ((map (make-sparse-keymap)))
    (pcase-dolist (`(,key . ,command)
                   '(("w" . magy-permissions-withdraw) ("g" . magy-permissions)))
      (define-key map (kbd key) command))
    map)
  "Keymap of `magy-permissions-mode'.")

(define-derived-mode magy-permissions-mode tabulated-list-mode "Magy Permissions"
  "What the person allowed for longer than one call.
\\{magy-permissions-mode-map}"
  (setq tabulated-list-format [("For" 24 t) ("Tool" 10 t) ("What is allowed" 40 t)]
        tabulated-list-padding 1)
  (tabulated-list-init-header))

(defun magy-permissions--of (project)
  "Return the parameters that say of what PROJECT shows the permissions.
That is its session, with the project, or the project if there is none."
  (if-let ((session (magy-project-session project)))
      (list :sessionId session)
    (list :root (directory-file-name (magy-project-root project)))))

(defun magy-permissions--ask (project then)
  "Call THEN with the permissions that PROJECT and its session remember."
  (funcall (if (magy-project-session project) #'magy-session-ensure #'magy-when-ready)
           project
           (lambda ()
             (magy-request project 'magy/permission/list (magy-permissions--of project)
                           (lambda (result)
                             ;; Not in the process filter: a window is shown.
                             (run-with-timer 0 nil then
                                             (append (plist-get result :grants) nil)))))))

(defun magy-permissions--row (grant)
  "Return the row of GRANT."
  (list grant
        (vector (pcase (plist-get grant :scope)
                  ("project" "this project")
                  ("session" "this session")
                  ("run" "until your next prompt")
                  (other other))
                (plist-get grant :key)
                (string-replace "\n" "⏎" (plist-get grant :pattern)))))

;;;###autoload
(defun magy-permissions ()
  "List what this project and its session remember that you allowed."
  (interactive)
  (let ((project (magy-current-project)) (window (selected-window)))
    (magy-permissions--ask
     project (lambda (grants) (magy-permissions--show project grants window)))))

(defun magy-permissions--show (project grants window)
  "Show GRANTS of PROJECT, and go there from WINDOW."
  (let ((buffer (get-buffer-create (format "*magy permissions: %s*"
                                           (magy-project-name project)))))
    (with-current-buffer buffer
      (magy-permissions-mode)
      (setq magy--own-project project
            default-directory (magy-project-root project))
      (magy-permissions--fill grants))
    (cond ((eq buffer (window-buffer)))
          ((eq window (selected-window)) (pop-to-buffer buffer))
          (t (display-buffer buffer)))
    (message "%s" (if grants
                      (substitute-command-keys
                       (concat "\\<magy-permissions-mode-map>\\[magy-permissions-withdraw]"
                               " withdraws one: then Magy asks again"))
                    (format "Magy remembers no permission in %s"
                            (magy-project-name project))))))

(defun magy-permissions--fill (grants)
  "Show GRANTS in the current buffer."
  (setq tabulated-list-entries (mapcar #'magy-permissions--row grants))
  (tabulated-list-print t))

(defun magy-permissions-withdraw ()
  "Withdraw the permission at point: Magy asks again."
  (interactive nil magy-permissions-mode)
  (magy--in-mode 'magy-permissions-mode)
  (let ((grant (or (tabulated-list-get-id) (user-error "No permission on this line")))
        (project magy--own-project) (buffer (current-buffer)))
    (magy-when-ready
     project
     (lambda ()
       (magy-request project 'magy/permission/withdraw
                     (append (magy-permissions--of project)
                             (list :grantId (plist-get grant :grantId)))
                     (lambda (_)
                       (magy--message "Withdrawn: %s %s; Magy asks again"
                                      (plist-get grant :key) (plist-get grant :pattern))
                       (magy-permissions--again project buffer)))))))

(defun magy-permissions--again (project buffer)
  "Show in BUFFER what PROJECT remembers now."
  (magy-permissions--ask project
                         (lambda (grants)
                           (when (buffer-live-p buffer)
                             (with-current-buffer buffer
                               (magy-permissions--fill grants))))))

(provide 'magy-permissions)
;;; magy-permissions.el ends here
