;;; acp_el.el --- A turn with Magy by acp.el, in Emacs -*- lexical-binding: t -*-

;; acp.el is what agent-shell speaks with.  Run by `python -m scripts.acp_clients'.

;;; Code:

(require 'acp)
(require 'map)

(defvar said "" "What the agent has said since this was last cleared.")
(defvar asked nil "The last question.")
(defvar answers t "Whether questions are answered.")
(defvar buffer (find-file-noselect (getenv "FILE")))

(defun until (what true)
  "Wait until TRUE returns something; end Emacs if it does not.  WHAT is awaited."
  (let ((end (+ (float-time) 30)))
    (while (and (not (funcall true)) (< (float-time) end))
      (accept-process-output nil 0.02))
    (unless (funcall true)
      (message "not seen: %s\n%s" what said)
      (kill-emacs 1))
    (message "seen: %s" what)))

(defun served (client request)
  "Answer a REQUEST of the agent behind CLIENT, as agent-shell does."
  (let ((id (map-elt request 'id)) (params (map-elt request 'params)))
    (pcase (map-elt request 'method)
      ("session/request_permission"
       (setq asked params)
       (when answers
         (acp-send-response
          :client client
          :response (acp-make-session-request-permission-response
                     :request-id id :option-id (map-nested-elt params '(options 0 optionId))))))
      ("fs/read_text_file"
       (acp-send-response
        :client client
        :response (acp-make-fs-read-text-file-response
                   :request-id id
                   :content (with-current-buffer buffer (buffer-string)))))
      ("fs/write_text_file"
       (with-current-buffer buffer
         (erase-buffer)
         (insert (map-elt params 'content)))
       (acp-send-response
        :client client :response (acp-make-fs-write-text-file-response :request-id id))))))

(defun connected ()
  "A client of a new agent, which is initialized."
  (let ((client (acp-make-client :command "magy" :command-params '("acp")
                                 :context-buffer (current-buffer))))
    (acp-subscribe-to-notifications
     :client client
     :on-notification
     (lambda (told)
       (when (equal (map-nested-elt told '(params update sessionUpdate)) "agent_message_chunk")
         (setq said (concat said (map-nested-elt told '(params update content text)))))))
    (acp-subscribe-to-requests :client client :on-request (lambda (one) (served client one)))
    (acp-send-request :client client :sync t
                      :request (acp-make-initialize-request
                                :protocol-version 1
                                :read-text-file-capability t :write-text-file-capability t))
    client))

(defun prompt (client session words)
  "Begin a turn with WORDS; return a function that tells how it ended, nil before."
  (let (result)
    (acp-send-request :client client
                      :request (acp-make-session-prompt-request
                                :session-id session :prompt `(((type . "text") (text . ,words))))
                      :on-success (lambda (found) (setq result (map-elt found 'stopReason)))
                      :on-failure (lambda (error &rest _) (setq result error)))
    (lambda () result)))

(let* ((client (connected))
       (made (acp-send-request :client client :sync t
                               :request (acp-make-session-new-request :cwd default-directory)))
       (session (map-elt made 'sessionId)))
  (until "modes and options" (lambda () (and (map-elt made 'modes) (map-elt made 'configOptions))))
  (with-current-buffer buffer
    (goto-char (point-max))
    (insert "# not saved\n"))
  (let ((ended (prompt client session "be polite")))
    (until "the end of the turn" (lambda () (equal (funcall ended) "end_turn"))))
  (until "a question with a diff"
         (lambda () (equal (map-nested-elt asked '(toolCall content 0 type)) "diff")))
  (until "the edit beside the unsaved text"
         (lambda () (with-current-buffer buffer
                      (equal (buffer-string)
                             "def greet():\n    print(\"good morning\")\n# not saved\n"))))
  (let ((ended (prompt client session "slow")))
    (until "a reply that streams" (lambda () (string-search "This is" said)))
    (acp-send-notification :client client
                           :notification (acp-make-session-cancel-notification
                                          :session-id session))
    (until "a turn that was stopped" (lambda () (equal (funcall ended) "cancelled"))))
  (setq answers nil asked nil)
  (with-current-buffer buffer
    (erase-buffer)
    (insert "print(\"hi\")\n"))
  (prompt client session "be polite")
  (until "a question that nobody answers" (lambda () asked))
  (signal-process (map-elt client :process) 'SIGKILL)
  (until "the agent is gone" (lambda () (not (process-live-p (map-elt client :process)))))
  (setq answers t asked nil said "")
  (let ((client (connected)))
    (acp-send-request :client client :sync t
                      :request (acp-make-session-load-request
                                :session-id session :cwd default-directory))
    (until "what was said before" (lambda () (string-search "This is" said)))
    (until "the question, asked again" (lambda () asked))
    (until "the edit" (lambda () (with-current-buffer buffer
                                   (equal (buffer-string) "print(\"good morning\")\n"))))
    (let ((ended (prompt client session "again")))
      (until "a turn in the session of before" (lambda () (equal (funcall ended) "end_turn")))))
  (kill-emacs 0))

;;; acp_el.el ends here
