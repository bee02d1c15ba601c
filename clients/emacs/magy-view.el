;;; magy-view.el --- Looking at other sessions  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Magy authors
;; SPDX-License-Identifier: GPL-3.0-or-later
;; This is free software with no warranty at all; see the file COPYING.

;;; Commentary:

;; A view is a transcript, only to read, of a session that is not the one
;; its project shows: that of a child agent, or an older one.  It is live
;; while the session runs.  In the parent's transcript a child agent is a
;; short block that opens its view.

;;; Code:

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
         (generate-new-buffer (format "*magy: %s, %s*" (magy-project-name project) session))
         project view)
        (with-current-buffer (magy-project-buffer view)
          (add-hook 'kill-buffer-hook #'magy-view--killed -10 t))
        view)))

(defun magy-view--killed ()
  "Forget the view that the current buffer shows."
  (when (magy-transcript--own-p)
    (magy-session--leave magy-transcript--view)
    (setq magy-session-views (delq magy-transcript--view magy-session-views))))

(defun magy-view--attach (view session)
  "Have VIEW show SESSION from now on."
  (magy-when-ready (magy-view-parent view)
                   (lambda ()
                     (when (buffer-live-p (magy-project-buffer view))
                       (magy-session-attach view session #'ignore)))))

;;;###autoload
(defun magy-transcript-view (session &optional project)
  "Show the transcript of SESSION, an id, only to read; return its buffer.
PROJECT's server serves it; the default is the current project's."
  (interactive (list (read-string "Session: ")))
  (let* ((project (or project
                      (and (derived-mode-p 'magy-transcript-mode) magy-transcript--project)
                      (magy-current-project)))
         (view (magy-view--of project session)))
    (unless (magy-project-attached view)
      (magy-view--attach view session))
    (display-buffer (magy-project-buffer view))
    (magy-project-buffer view)))

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
  "Go on with the views of PROJECT, whose server is there again."
  (magy-view--each project
                   (lambda (view) (magy-view--attach view (magy-project-session view)))))

(add-hook 'magy-death-functions #'magy-view--died)
(add-hook 'magy-ready-functions #'magy-view--again)

;;;; Child agents in their parent's transcript

(defun magy-view--child-p (data)
  "Return non-nil if the tool call DATA began a child agent."
  (equal "spawn_agent" (plist-get data :name)))

(defun magy-view--child (item)
  "Return the id of the session of the child agent that ITEM began."
  (format "%s/%s" (magy-project-session magy-transcript--view) (magy-item-id item)))

(cl-defmethod magy-transcript-render :around ((_kind (eql 'tool)) item)
  "Draw ITEM; a child agent has its life and a way to its transcript."
  (let ((data (magy-item-data item)))
    (if (not (magy-view--child-p data))
        (cl-call-next-method)
      (let* ((input (plist-get data :input))
             (project magy-transcript--project)
             (child (magy-view--child item)))
        (magy-transcript--section
         item
         (concat (propertize "agent " 'face 'shadow)
                 (magy-transcript--tool-mark (plist-get data :status)) " "
                 (propertize (or (plist-get input :agent) "agent") 'face 'bold)
                 (magy-view--task input)
                 (if (plist-get data :ended) (concat "  " (plist-get data :ended)) "")
                 "  "
                 (magy-transcript-button "[transcript]"
                                         (lambda () (magy-transcript-view child project))))
         (magy-transcript--tool-body data)
         t)))))

(defun magy-view--task (input)
  "Return in short what INPUT, the arguments of a call, wants of a child."
  (if-let ((task (or (plist-get input :task_name) (plist-get input :prompt))))
      (concat "  " (truncate-string-to-width (string-replace "\n" " " task) 60 nil nil "…"))
    ""))

(cl-defmethod magy-transcript-visit-item :around ((_kind (eql 'tool)) item)
  "Visit the session of the child agent that ITEM began, or else its file."
  (if (magy-view--child-p (magy-item-data item))
      (magy-transcript-view (magy-view--child item))
    (cl-call-next-method)))

(provide 'magy-view)
;;; magy-view.el ends here
