;;; magy-view.el --- Looking at other sessions  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Magy authors
;; SPDX-License-Identifier: GPL-3.0-or-later
;; This is free software with no warranty at all; see the file COPYING.

;;; Commentary:

;; A view is a transcript of a session that is not the one its project
;; shows: that of a child agent, or an older one.  It is live while the
;; session runs.  An older session is only to read; to a child agent a
;; person speaks at the end of its view, as to its parent.

;;; Code:

(require 'magy-child-draw)
(require 'magy-session)

(cl-defstruct (magy-view (:include magy-project) (:constructor magy-view--make) (:copier nil))
  "A session shown beside the one that its PARENT shows."
  parent)

(cl-defmethod magy-session-server ((view magy-view))
  "Return the project whose server serves VIEW."
  (magy-view-parent view))

(cl-defmethod magy-session-attach-method ((_view magy-view))
  "A view only looks: it does not make the session go on."
  'magy/session/subscribe)

(cl-defmethod magy-session-prompt-request ((_view magy-view) prompt)
  "Return the request that sends PROMPT to the child agent that a view shows."
  (list 'magy/child/send
        (list :sessionId (plist-get prompt :sessionId)
              :requestKey (plist-get prompt :messageId)
              :prompt (plist-get prompt :prompt)
              :delivery (if (equal "auto" (plist-get prompt :delivery))
                            "steer"
                          (plist-get prompt :delivery)))))

;;;; Opening

(defun magy-view--of (project session)
  "Return the view of SESSION, which PROJECT's server serves, made when needed."
  (or (cl-find-if (lambda (view)
                    (and (eq project (magy-view-parent view))
                         (equal session (magy-project-session view))))
                  magy-session-views)
      (let ((view (magy-view--make :root (magy-project-root project) :parent project)))
        (push view magy-session-views)
        (magy-transcript-prepare
         (generate-new-buffer (magy-view--buffer-name project session))
         project view)
        (with-current-buffer (magy-project-buffer view)
          (add-hook 'kill-buffer-hook #'magy-view--killed -10 t)
          (setq magy--own-project project)
          (setf (magy-project-session view) session)
          (when (magy-view-of-child-p view)
            (run-hooks 'magy-transcript-made-hook)))
        view)))

(defun magy-view--buffer-name (project session)
  "Return a name for the buffer that shows SESSION of PROJECT."
  (let ((child (magy-child project session)))
    (format "*magy: %s, %s*" (magy-project-name project)
            (cond ((null child) session)
                  ((member (plist-get child :name) '(nil "")) (plist-get child :agent))
                  (t (plist-get child :name))))))

(defun magy-view--killed ()
  "Forget the view that the current buffer shows."
  (when (magy-transcript--own-p)
    (magy-session--leave magy-transcript--view)
    (setq magy-session-views (delq magy-transcript--view magy-session-views))
    ;; What was asked for is answered to nobody.
    (setf (magy-project-session magy-transcript--view) nil)))

(defun magy-view--attach (view session)
  "Have VIEW show SESSION from now on."
  (magy-when-ready (magy-view-parent view)
                   (lambda ()
                     (when (buffer-live-p (magy-project-buffer view))
                       (magy-session-attach view session #'ignore)))))

;;;###autoload
(defun magy-transcript-view (session &optional project)
  "Show the transcript of SESSION, an id, and return its buffer.
PROJECT's server serves it; the default is the current project's."
  (interactive (list (read-string "Session: ")))
  (let ((buffer (magy-transcript-of (or project (magy-view--project)) session)))
    (display-buffer buffer)
    buffer))

(defun magy-view--project ()
  "Return the project that the current buffer belongs to."
  (if (derived-mode-p 'magy-transcript-mode)
      magy-transcript--project
    (magy-current-project)))

(defun magy-transcript-of (project session)
  "Return the transcript of SESSION of PROJECT, which is shown live from now on."
  (if (equal session (magy-project-session project))
      (magy-transcript-buffer project)
    (let ((view (magy-view--of project session)))
      (unless (magy-project-attached view)
        (magy-view--attach view session))
      (magy-project-buffer view))))

(defun magy-view-cancel (view)
  "Stop what runs in the session that VIEW shows."
  (magy-request (magy-view-parent view) 'magy/session/cancel
                (list :sessionId (magy-project-session view)) #'ignore))

;;;; The server's end and beginning

(defun magy-view--each (project function)
  "Call FUNCTION with each view that PROJECT's server serves."
  (dolist (view (copy-sequence magy-session-views))
    (when (eq project (magy-view-parent view))
      (funcall function view))))

(defun magy-view--died (project reason)
  "PROJECT's server is gone because of REASON, nil if that was wanted."
  (magy-view--each project (lambda (view) (magy-session--died view reason))))

(defun magy-view--again (project)
  "Continue the views of PROJECT, whose server is back."
  (magy-view--each project
                   (lambda (view) (magy-view--attach view (magy-project-session view)))))

(defun magy-view--send-unsent (project)
  "Send what was said in the views of PROJECT, and the last server did not accept."
  (magy-view--each project #'magy-session-send-unsent))

(add-hook 'magy-death-functions #'magy-view--died)
(add-hook 'magy-ready-functions #'magy-view--again)
(add-hook 'magy-ready-functions #'magy-view--send-unsent 91)

;;;; Commands

(defun magy-view-here ()
  "Return the view that the current buffer shows, or nil."
  (and (derived-mode-p 'magy-transcript-mode) (magy-view-p magy-transcript--view)
       magy-transcript--view))

(defun magy-view-of-child-p (view)
  "Return non-nil if VIEW shows a child agent."
  (and (magy-view-p view) (magy-child-parent-id (magy-project-session view)) t))

(defun magy-view--cancel-here ()
  "Stop what the child agent does whose transcript this is; nil in other buffers."
  (when-let ((view (magy-view-here)))
    (magy-view-cancel view)
    t))

(add-hook 'magy-cancel-functions #'magy-view--cancel-here)

(defun magy-transcript-up ()
  "Go to the transcript of the parent of the child agent that this one shows."
  (interactive)
  (magy--in-mode 'magy-transcript-mode)
  (let ((parent (magy-child-parent-id (magy-project-session magy-transcript--view))))
    (pop-to-buffer (magy-transcript-of magy-transcript--project
                                     (or parent (user-error "This is not a child agent"))))))

(define-key magy-transcript-mode-map "^" #'magy-transcript-up)

(provide 'magy-view)
;;; magy-view.el ends here
