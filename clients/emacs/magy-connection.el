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

(require 'magy-project)

(defconst magy-version "0.1.0"
  "Version of this client.")

(defcustom magy-server-command '("magy" "lsp")
  "Command that starts the server: the program and its arguments."
  :type '(repeat string)
  :group 'magy
  :package-version '(magy . "0.1"))

(defcustom magy-settings nil
  "Configuration sent to the server, as a plist in the shape of magy.toml.
For example, (:agent \"plan\").  It wins over the files.  False is
`:json-false' and a list is a vector, as everywhere in `jsonrpc'."
  :type '(plist :key-type symbol :value-type sexp)
  :group 'magy
  :package-version '(magy . "0.1"))

(defcustom magy-log-traffic nil
  "Whether to keep the JSON-RPC traffic in a buffer *magy PROJECT events*.
This slows long streams down a good deal.  It takes effect when the
server starts."
  :type 'boolean
  :group 'magy
  :package-version '(magy . "0.1"))

(defvar magy-ready-functions nil
  "Functions called with a project when its server is ready.")

(defvar magy-death-functions nil
  "Functions called with a project and a reason when its server has died.")

(defvar magy-before-send-functions nil
  "Functions called with a project before anything depends on live buffers.")

(defclass magy-connection (jsonrpc-process-connection)
  ((project :initarg :project :reader magy-connection-project)
   (expected-end :initform nil :accessor magy-connection-expected-end))
  :documentation "A connection to one project's Magy server.")

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
                       :capabilities '(:interactions t :editor (:save t)))
                 (and magy-settings (list :settings magy-settings)))))))

(defun magy--make-process (name)
  "Start the server as process NAME and return the process."
  (let ((program (car magy-server-command)))
    (unless (executable-find program)
      (user-error "Cannot find `%s': install Magy, or set `magy-server-command'" program))
    (let* ((errors (get-buffer-create (format "*%s stderr*" name)))
           (process (make-process
                     :name name :command magy-server-command :connection-type 'pipe
                     :coding 'utf-8-emacs-unix :noquery t :stderr errors)))
      (when-let ((pipe (get-buffer-process errors)))
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
    (jsonrpc-async-request
     connection 'initialize (magy--initialize-params project)
     :success-fn (lambda (result) (magy--initialized project connection result))
     :error-fn (lambda (problem)
                 (magy--give-up project connection (plist-get problem :message)))
     :timeout 60
     :timeout-fn (lambda () (magy--give-up project connection "no answer in 60 s")))))

(defun magy--give-up (project connection why)
  "End CONNECTION, which could not start PROJECT's server because of WHY."
  (setf (magy-project-todo project) nil)
  (magy--message "Magy could not start for %s: %s" (magy-project-name project) why)
  (when (jsonrpc-running-p connection)
    (setf (magy-connection-expected-end connection) t)
    (delete-process (jsonrpc--process connection))))

(defun magy--initialized (project connection result)
  "PROJECT's server answered the handshake on CONNECTION with RESULT."
  (let ((encoding (magy--get result :capabilities :positionEncoding)))
    (setf (magy-project-encoding project) (if (equal encoding "utf-32") 'utf-32 'utf-16)
          (magy-project-ready project) t))
  (jsonrpc-notify connection 'initialized (make-hash-table))
  (run-hook-with-args 'magy-ready-functions project)
  (let ((todo (nreverse (magy-project-todo project))))
    (setf (magy-project-todo project) nil)
    (dolist (function todo)
      (magy--guarded "a command" (funcall function)))))

(defun magy-when-ready (project function)
  "Call FUNCTION when PROJECT's server is ready, starting it when needed."
  (unless (magy-live-p project)
    (magy--connect project))
  (if (magy-project-ready project)
      (funcall function)
    (push function (magy-project-todo project))))

(defun magy--on-shutdown (connection)
  "CONNECTION's server has ended; say so unless that was wanted."
  (let ((project (magy-connection-project connection)))
    (when (eq connection (magy-project-connection project))
      (let ((status (process-exit-status (jsonrpc--process connection)))
            (started (magy-project-ready project)))
        (setf (magy-project-ready project) nil
              (magy-project-todo project) nil)
        (magy--keep-errors connection)
        (unless (magy-connection-expected-end connection)
          (magy--message "Magy's server for %s ended (status %s, see *magy log*)%s"
                         (magy-project-name project) status
                         (if started "; the next command starts it again" "")))
        (run-hook-with-args 'magy-death-functions project
                            (unless (magy-connection-expected-end connection)
                              (format "The server ended with status %s." status)))))))

(defun magy--keep-errors (connection)
  "Copy the end of what CONNECTION's server said on standard error to the log."
  (let ((buffer (jsonrpc-stderr-buffer connection)))
    (when (buffer-live-p buffer)
      (let ((text (with-current-buffer buffer
                    (buffer-substring-no-properties
                     (max (point-min) (- (point-max) 4000)) (point-max)))))
        (unless (string-blank-p text)
          (magy--log "server: %s" (string-trim text)))))))

(defun magy-stop (project)
  "Shut PROJECT's server down in the orderly way; its sessions stay in its log."
  (interactive (list (magy-current-project)))
  (when (magy-live-p project)
    (let* ((connection (magy-project-connection project))
           (process (jsonrpc--process connection))
           (exit (lambda (&rest _)
                   ;; It may be gone already.
                   (ignore-errors (jsonrpc-notify connection 'exit nil)))))
      (setf (magy-connection-expected-end connection) t)
      (jsonrpc-async-request connection 'shutdown nil :timeout nil
                             :success-fn exit :error-fn exit)
      (run-with-timer 5 nil (lambda ()
                              (when (process-live-p process)
                                (delete-process process)))))))

(defun magy--stop-all ()
  "Tell every server to end, without waiting for it: Emacs is being left."
  (dolist (project (hash-table-values magy--projects))
    (magy--guarded "leaving Emacs"
      (when (magy-live-p project)
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
  (jsonrpc-async-request
   (magy-project-connection project) method params
   ;; No time-out: whoever waits can go on, and a dead server fails them all.
   :timeout nil
   :success-fn (lambda (result)
                 (magy--called method (lambda () (funcall success result))))
   :error-fn (lambda (problem)
               (magy--called method
                             (lambda ()
                               (if failure
                                   (funcall failure problem)
                                 (magy--message "Magy: %s" (plist-get problem :message))))))))

(defun magy--called (what function)
  "Call FUNCTION because of WHAT, which arrived from a server.
The process filter binds `inhibit-read-only', which is not for buffers."
  (let ((inhibit-read-only nil))
    (magy--guarded what (funcall function))))

(defun magy-notify (project method params)
  "Tell PROJECT's server METHOD with PARAMS.
Never fail: this runs in hooks of buffers, and a server that has just
died is dealt with when its end is noticed."
  (magy--guarded method
    (jsonrpc-notify (magy-project-connection project) method params)))

(cl-defgeneric magy-handle-notification (_project _method _params)
  "Handle the notification METHOD with PARAMS from PROJECT's server."
  nil)

(cl-defgeneric magy-handle-request (_project method _params)
  "Return the answer to the request METHOD with PARAMS of PROJECT's server."
  (jsonrpc-error :code -32601 :message (format "Emacs does not offer %s" method)))

(defun magy--dispatch-notification (connection method params)
  "Handle METHOD with PARAMS, which came over CONNECTION; never fail."
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
     (magy--log "error in %s: %s" method (error-message-string err))
     (jsonrpc-error :code -32603 :message (error-message-string err)))))

(cl-defmethod magy-handle-notification (_project (_method (eql 'window/showMessage)) params)
  "Show the message in PARAMS."
  (magy--message "Magy: %s" (plist-get params :message)))

(cl-defmethod magy-handle-notification (_project (_method (eql 'window/logMessage)) params)
  "Log the message in PARAMS."
  (magy--log "server: %s" (plist-get params :message)))

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

(provide 'magy-connection)
;;; magy-connection.el ends here
