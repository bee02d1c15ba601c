;;; magy-connection.el --- Magy's server process and its wire  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Magy authors
;; SPDX-License-Identifier: GPL-3.0-or-later
;; This is free software with no warranty at all; see the file COPYING.

;;; Commentary:

;; One server process per project root, spoken to over JSON-RPC on its
;; standard input and output, beside Eglot and never through it.
;; Everything is asynchronous: a request has callbacks, and the server's
;; requests are answered at once or refused.  What the server sends is
;; dispatched to the generic functions `magy-handle-request' and
;; `magy-handle-notification', which other files add methods to.

;;; Code:

(require 'magy-watch)

(defconst magy-version "0.1.0"
  "Version of this client.")

(defconst magy-protocol 1
  "Version of the wire that this client speaks.")

(defvar magy-ready-functions nil
  "Functions called with a project when its server is ready.")

(defvar magy-death-functions nil
  "Functions called with a project and a reason when its server has died.")

(defvar magy-before-send-functions nil
  "Functions called with a project before anything depends on live buffers.")

;;;; The server's life

(defun magy--initialize-params (project)
  "Return the parameters of the `initialize' request for PROJECT."
  (let ((root (directory-file-name (magy-project-root project))))
    (list :processId (emacs-pid)
          :clientInfo (list :name "emacs" :version emacs-version)
          :rootUri (magy--path-to-uri root)
          :workspaceFolders (vector (list :uri (magy--path-to-uri root)
                                          :name (magy-project-name project)))
          :capabilities
          ;; Emacs counts characters, so UTF-32 positions are exact as they are.
          '(:general (:positionEncodings ["utf-32" "utf-16"])
            :workspace (:applyEdit t :workspaceEdit (:documentChanges t)
                        :workspaceFolders t)
            :textDocument (:synchronization (:didSave t))
            :window (:workDoneProgress t))
          :initializationOptions
          (list :magy
                (append
                 (list :client (list :name "magy-emacs" :version magy-version)
                       :capabilities
                       (list :interactions t :review t
                             :editor (append '(:save t :diagnostics t :definition t
                                               :references t :symbols t)
                                             (and magy-allow-eval '(:eval "elisp")))))
                 (when-let ((settings (magy-options-settings)))
                   (list :settings settings)))))))

(defun magy--environment ()
  "Return the environment of a server."
  (if magy-session-directory
      (cons (concat "MAGY_STATE_DIR=" (expand-file-name magy-session-directory))
            process-environment)
    process-environment))

(defun magy--make-process (name)
  "Start the server as process NAME and return the process."
  (let ((program (car magy-server-command)))
    (unless (executable-find program)
      (user-error "Cannot find `%s': install Magy, or set `magy-server-command'" program))
    (let* ((errors (get-buffer-create (format "*%s stderr*" name)))
           (process-environment (magy--environment))
           (process (make-process
                     :name name :command magy-server-command :connection-type 'pipe
                     :coding 'utf-8-emacs-unix :noquery t :stderr errors)))
      (when-let ((pipe (get-buffer-process errors)))
        (set-process-sentinel pipe #'ignore) ; which would write that it has ended
        (set-process-query-on-exit-flag pipe nil))
      process)))

(defun magy--connect (project)
  "Start PROJECT's server and begin the handshake."
  (when (file-remote-p (magy-project-root project))
    (user-error "Magy does not run on remote projects yet: %s" (magy-project-root project)))
  (let* ((name (format "magy %s" (magy-project-name project)))
         (default-directory (magy-project-root project))
         (size (if magy-log-traffic 2000000 0))
         (connection
          (apply #'make-instance 'magy-connection
                 :name name
                 :project project
                 :process (lambda () (magy--make-process name))
                 :request-dispatcher #'magy--dispatch-request
                 :notification-dispatcher #'magy--dispatch-notification
                 :on-shutdown #'magy--on-shutdown
                 (if (fboundp 'jsonrpc--events-buffer-config) ; since Emacs 30
                     `(:events-buffer-config (:size ,size :format full))
                   `(:events-buffer-scrollback-size ,size)))))
    (setf (magy-project-connection project) connection
          (magy-project-ready project) nil)
    (condition-case err
        (jsonrpc-async-request
         connection 'initialize (magy--initialize-params project)
         :success-fn (lambda (result) (magy--initialized project connection result))
         :error-fn (lambda (problem)
                     (magy--give-up connection (plist-get problem :message)))
         :timeout 60
         :timeout-fn (lambda () (magy--give-up connection "no answer in 60 s")))
      (error (user-error "Magy could not start for %s: %s" (magy-project-name project)
                         (error-message-string err))))))

(defun magy--give-up (connection why)
  "End CONNECTION, which could not start its server because of WHY."
  (when (jsonrpc-running-p connection)  ; else its end is told
    (setf (magy-connection-problem connection) why)
    (delete-process (jsonrpc--process connection))))

(defun magy--run-guarded (hook &rest arguments)
  "Call each function of HOOK with ARGUMENTS; an error in one stops no other."
  (run-hook-wrapped hook (lambda (function)
                           (magy--guarded function (apply function arguments))
                           nil)))

(defun magy--check-version (project connection about)
  "Say so if what PROJECT's server says ABOUT itself over CONNECTION does not fit."
  (setf (magy-connection-about connection) about)
  (unless (equal magy-protocol (plist-get about :protocol))
    (magy--message-at
     'warn "Magy %s for %s speaks protocol %s, and this client, %s, speaks %d: update the older one"
     (or (plist-get about :version) "(of unknown version)") (magy-project-name project)
     (or (plist-get about :protocol) "?") magy-version magy-protocol)))

(defun magy--initialized (project connection result)
  "PROJECT's server answered the handshake on CONNECTION with RESULT."
  (let ((encoding (magy--get result :capabilities :positionEncoding)))
    (setf (magy-project-encoding project) (if (equal encoding "utf-32") 'utf-32 'utf-16)
          (magy-project-ready project) t
          (magy-connection-started connection) t))
  (magy--check-version project connection
                       (magy--get result :capabilities :experimental :magy))
  (jsonrpc-notify connection 'initialized (make-hash-table))
  (magy--run-guarded 'magy-ready-functions project)
  (let ((todo (nreverse (magy-project-todo project))))
    (setf (magy-project-todo project) nil)
    (pcase-dolist (`(,function . ,_) todo)
      (magy--guarded "a command" (funcall function)))))

(defun magy-when-ready (project function &optional failure)
  "Call FUNCTION when PROJECT's server is ready, starting it when needed.
If it ends before, FAILURE is called, if there is one."
  (unless (magy-live-p project)
    (magy--connect project))
  (if (magy-project-ready project)
      (funcall function)
    (push (cons function failure) (magy-project-todo project))))

(defun magy--on-shutdown (connection)
  "CONNECTION's server has ended; say so unless that was wanted."
  (magy--guarded "the end of the server" (magy--watch-no-more connection))
  (magy--guarded "the end of the server" (magy--unasked-failed connection))
  (let ((project (magy-connection-project connection)))
    (when (eq connection (magy-project-connection project))
      (let ((why (magy--why-ended connection))
            (todo (nreverse (magy-project-todo project))))
        (setf (magy-project-ready project) nil
              (magy-project-todo project) nil)
        (when why
          (setf (magy-connection-problem connection) why)
          (apply #'magy--message-at 'error
                 (if (magy-connection-started connection)
                     "Magy in %s: %s  (see %s; the next command starts it again)"
                   "Magy could not start for %s: %s  (M-x magy-doctor; see %s)")
                 (list (magy-project-name project) why magy-log-buffer)))
        (magy--run-guarded 'magy-death-functions project why)
        (pcase-dolist (`(,_ . ,failure) todo)
          (when failure (run-with-timer 0 nil failure)))
        (run-with-timer 0 nil (magy-connection-then connection))))))

;;;###autoload
(defun magy-stop (project)
  "Shut down PROJECT's server; its sessions stay in its log."
  (interactive (list (magy-current-project)))
  (if (not (magy-live-p project))
      (when (called-interactively-p 'any)
        (magy--message "Magy does not run in %s" (magy-project-name project)))
    (let* ((connection (magy-project-connection project))
           (process (jsonrpc--process connection))
           (exit (lambda (&rest _)
                   ;; It may be gone already.
                   (ignore-errors (jsonrpc-notify connection 'exit nil)))))
      (setf (magy-connection-expected-end connection) t)
      (when (called-interactively-p 'any)
        (setf (magy-connection-then connection)
              (apply-partially #'magy--message "Magy's server for %s was shut down"
                               (magy-project-name project))))
      (if (or (magy-hung-p project) (not (eq 'run (process-status process))))
          (delete-process process)
        (jsonrpc-async-request connection 'shutdown nil :timeout nil
                               :success-fn exit :error-fn exit)
        (run-with-timer 5 nil (lambda ()
                                (when (process-live-p process)
                                  (delete-process process))))))))

;;;###autoload
(defun magy-restart (project)
  "Restart PROJECT's server, even if it hangs, and continue the session.
Nothing is lost: its log has what it did, and Emacs sends prompts that
it has not accepted again."
  (interactive (list (magy-current-project)))
  (let ((connection (magy-project-connection project)))
    (if (not (magy-live-p project))
        (magy--begin-again project)
      (setf (magy-connection-expected-end connection) t
            (magy-connection-then connection) (lambda () (magy--begin-again project)))
      ;; One that hangs reads no message, and need not: its log is whole at any time.
      (delete-process (jsonrpc--process connection)))))

(defvar magy-restart-function #'ignore
  "Function called with a project whose server is ready after a restart.")

(defun magy--begin-again (project)
  "Start PROJECT's server, and go on."
  (magy-when-ready project
                   (lambda ()
                     (funcall magy-restart-function project)
                     (magy--message "Magy's server for %s was restarted"
                                    (magy-project-name project)))))

(defun magy--stop-all ()
  "Tell every server to end, without waiting for it: Emacs is being left."
  (dolist (project (hash-table-values magy--projects))
    (magy--guarded "leaving Emacs"
      (when (and (magy--running-p (magy-project-connection project))
                 (not (magy-connection-expected-end (magy-project-connection project))))
        (let ((connection (magy-project-connection project)))
          (setf (magy-connection-expected-end connection) t)
          (jsonrpc-async-request connection 'shutdown nil :timeout nil
                                 :success-fn #'ignore :error-fn #'ignore)
          (jsonrpc-notify connection 'exit nil))))))

(add-hook 'kill-emacs-hook #'magy--stop-all)

;;;; Talking

(defun magy-request (project method params success &optional failure)
  "Ask PROJECT's server METHOD with PARAMS, without waiting.
SUCCESS is called with the result.  FAILURE, if any, is called with the
error object; else the error is shown.  The server must be ready."
  (run-hook-with-args 'magy-before-send-functions project)
  (magy--log-at 'debug "%s %s" (magy-project-name project) method)
  (let ((connection (magy-project-connection project))
        (fail (lambda (why)
                (magy--failed method (list :code -32603 :message why) failure))))
    (cond ((and (magy--running-p connection)
                (magy--request connection method params success failure)))
          ((magy-live-p project)        ; somebody has stopped the process
           (magy--hangs connection method)
           (push (cons (lambda () (magy-request project method params success failure)) fail)
                 (magy-connection-unasked connection))
           (magy-await project))
          (t (run-with-timer 0 nil fail "the server does not run")))))

(defun magy-notify (project method params)
  "Tell PROJECT's server METHOD with PARAMS; return non-nil if that was sent.
Never fail: this runs in hooks of buffers, and a server that has just
died is dealt with when its end is noticed."
  (when-let ((connection (and (magy--running-p (magy-project-connection project))
                              (magy-project-connection project)))
             (sent (list nil)))
    (magy--guarded method
      (jsonrpc-notify connection method params)
      (setcar sent t))
    (car sent)))

(defun magy-notify-surely (project method params)
  "Tell PROJECT's server METHOD with PARAMS, as soon as it reads."
  (unless (magy-notify project method params)
    (when (magy-live-p project)
      (push (lambda () (magy-notify project method params))
            (magy-connection-unsaid (magy-project-connection project)))
      (magy-await project))))

;;;; Dispatch

(cl-defgeneric magy-handle-notification (_project _method _params)
  "Handle the notification METHOD with PARAMS from PROJECT's server."
  nil)

(defconst magy--lazy-requests
  '((magy/editor/diagnostics . magy-editor)
    (magy/editor/definition . magy-editor)
    (magy/editor/references . magy-editor)
    (magy/editor/symbols . magy-editor)
    (magy/editor/eval . magy-eval))
  "Requests whose methods are in files that are loaded when they first come.")

(cl-defgeneric magy-handle-request (project method params)
  "Return the answer to the request METHOD with PARAMS of PROJECT's server."
  (let ((feature (alist-get method magy--lazy-requests)))
    (if (or (null feature) (featurep feature))
        (jsonrpc-error :code -32601 :message (format "Emacs does not offer %s" method))
      (require feature)
      (magy-handle-request project method params))))

(defun magy--dispatch-notification (connection method params)
  "Handle METHOD with PARAMS, which came over CONNECTION; never fail."
  (magy--heard connection)
  (magy--called method
                (lambda ()
                  (magy-handle-notification (magy-connection-project connection)
                                            method params))))

(defun magy--dispatch-request (connection method params)
  "Answer METHOD with PARAMS, which came over CONNECTION.
Fails only in the way that `jsonrpc' makes an error response of."
  (condition-case err
      (let ((inhibit-read-only nil))
        (magy-handle-request (magy-connection-project connection) method params))
    (jsonrpc-error (signal (car err) (cdr err)))
    (error
     (magy--log-at 'error "error in %s: %s" method (error-message-string err))
     (jsonrpc-error :code -32603 :message (error-message-string err)))))

(defun magy--level (params)
  "Return the level of the message in PARAMS, which has LSP's number for it."
  (pcase (plist-get params :type) (1 'error) (2 'warn) ((or 4 5) 'debug) (_ 'info)))

(cl-defmethod magy-handle-notification (_project (_method (eql 'window/showMessage)) params)
  "Show the message in PARAMS."
  (magy--message-at (magy--level params) "Magy: %s" (plist-get params :message)))

(cl-defmethod magy-handle-notification (_project (_method (eql 'window/logMessage)) params)
  "Log the message in PARAMS."
  (magy--log-at (magy--level params) "server: %s" (plist-get params :message)))

(cl-defmethod magy-handle-request
  (_project (_method (eql 'window/workDoneProgress/create)) _params)
  "Accept: progress is shown by the state of the session."
  nil)

(cl-defmethod magy-handle-request
  (_project (_method (eql 'window/showMessageRequest)) params)
  "Show the message in PARAMS; choosing would mean to wait for a person."
  (magy--message "Magy: %s" (plist-get params :message))
  nil)

(cl-defmethod magy-handle-request (_project (_method (eql 'client/registerCapability)) _params)
  "Accept."
  nil)

(cl-defmethod magy-handle-request (_project (_method (eql 'workspace/configuration)) params)
  "Answer each item of PARAMS with null: settings went with `initialize'."
  (make-vector (length (plist-get params :items)) nil))

(defun magy-connection-unload-function ()
  "End all servers, which nobody could speak to any more."
  (remove-hook 'kill-emacs-hook #'magy--stop-all)
  (dolist (project (hash-table-values magy--projects))
    (when-let ((connection (magy-project-connection project)))
      (magy--watch-no-more connection)
      (setf (magy-connection-expected-end connection) t)
      (delete-process (jsonrpc--process connection))))
  nil)

(provide 'magy-connection)
;;; magy-connection.el ends here
