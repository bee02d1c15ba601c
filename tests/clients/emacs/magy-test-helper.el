;;; magy-test-helper.el --- What Magy's ERT tests share  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Tests run against a scripted server in a process of its own.
;; The environment variable MAGY_PYTHON names the Python to run it with.

;;; Code:

;; In a new home Emacs would compile natively what it loads and what tests
;; redefine, each time.
(dolist (option '(native-comp-deferred-compilation native-comp-jit-compilation
                  comp-enable-subr-trampolines native-comp-enable-subr-trampolines))
  (set option nil))

(require 'ert)
(require 'magy)

(defconst magy-test-python (or (getenv "MAGY_PYTHON") "python3")
  "The Python that servers run under.")

(defvar magy-test-fresh nil
  "Non-nil if a real server is to be a child of Emacs.
It must be where a test signals its process or asks who started it.")

(defun magy-test-server ()
  "Return the command of a real server.
Unless `magy-test-fresh', or without the environment variable NURSERY,
what it starts only stands for a server with everything imported."
  `(,magy-test-python
    ,@(when (and (getenv "NURSERY") (not magy-test-fresh))
        (list "-I" "-S" (expand-file-name "../stub.py" magy-test-directory)))
    "-m" "magy_server" "lsp"))

(defconst magy-test-directory (file-name-directory (or load-file-name buffer-file-name))
  "Where the tests are.")

(defvar magy-test-root nil
  "Root of the project of the current test.")

(defvar magy-test-log nil
  "File to which the fake server writes what it gets.")

(defun magy-test-wait (what predicate &optional seconds)
  "Wait until PREDICATE holds, at most SECONDS (120); fail with WHAT."
  (let ((end (time-add nil (or seconds 120))) value)
    (while (not (setq value (funcall predicate)))
      (when (time-less-p end nil)
        (ert-fail (list "Waited in vain" what
                        (when (get-buffer "*magy log*")
                          (with-current-buffer "*magy log*" (buffer-string))))))
      (accept-process-output nil 0.02))
    value))

(defmacro magy-test-until (&rest body)
  "Wait until the last form of BODY is non-nil; return it."
  (declare (debug t))
  `(magy-test-wait ',body (lambda () ,@body)))

(defun magy-test-project ()
  "Return the project of the current test."
  (magy-project-for magy-test-root))

(defun magy-test-file (name content)
  "Make the file NAME with CONTENT in the project; return its path."
  (let ((path (expand-file-name name magy-test-root))
        (coding-system-for-write 'utf-8-unix))
    (make-directory (file-name-directory path) t)
    (with-temp-file path (insert content))
    path))

(defun magy-test-uri (name)
  "Return the URI of the file NAME of the project."
  (magy--path-to-uri (file-truename (expand-file-name name magy-test-root))))

(defun magy-test-received (&optional method)
  "Return the messages that the fake server got, those with METHOD if given."
  (when (file-exists-p magy-test-log)
    (with-temp-buffer
      (let ((coding-system-for-read 'utf-8))
        (insert-file-contents magy-test-log))
      (cl-loop until (eobp)
               for message = (json-parse-buffer :object-type 'plist :null-object nil
                                                :false-object :json-false)
               do (skip-chars-forward "\n")
               when (or (null method) (equal method (plist-get message :method)))
               collect message))))

(defun magy-test-params (method)
  "Wait for a message with METHOD; return the params of the last one."
  (plist-get (car (last (magy-test-until (magy-test-received method)))) :params))

(defun magy-test-answer (n)
  "Wait for the answer to the fake server's Nth request; return its result."
  (plist-get (magy-test-until
              (cl-find (format "fake-%d" n) (magy-test-received)
                       :test #'equal :key (lambda (message) (plist-get message :id))))
             :result))

(defun magy-test-page (session &rest updates)
  "Return a subscription result for SESSION with UPDATES, entries counted from 1."
  (let ((n 0))
    (list :headSeq (length updates) :floorSeq 1 :more :json-false
          :summary (list :session (list :sessionId session :cwd "/" :title nil :state "idle"
                                        :turns 0 :headSeq 0)
                         :configOptions [(:configId "agent" :name "Agent"
                                                    :currentValue "build" :options [])]
                         :waiting [] :interactions [] :plan [] :usage '(:totalTokens 0))
          :events (vconcat (mapcar (lambda (update) (list :seq (cl-incf n) :at 0 :update update))
                                   updates)))))

(defun magy-test-event (seq &rest update)
  "Return the step that sends UPDATE as entry SEQ, or as a delta if SEQ is nil."
  (list :notify "magy/session/update"
        :params (list :sessionId "$sessionId"
                      :update (if seq
                                  (append update (list :_meta (list :magy (magy-test-meta
                                                                           seq update))))
                                update))))

(defun magy-test-meta (seq update)
  "Return what the server says beside UPDATE, entry SEQ."
  (let ((used (plist-get update :used)))
    (append (list :seq seq) (when used (list :usage (list :totalTokens used))))))

(defun magy-test-chunk (id text)
  "Return the step that streams TEXT as part of message ID."
  (magy-test-event nil :sessionUpdate "agent_message_chunk" :messageId id
                   :content (list :type "text" :text text)))

(defvar magy-test-encoding "utf-32"
  "Position encoding that the fake server chooses.")

(defun magy-test-scenario (&rest turns)
  "Return a scenario: TURNS is a plist of method -> list of turns, over sane defaults."
  (append turns
          (list 'initialize
                `[[(:result (:capabilities
                                          (:positionEncoding ,magy-test-encoding
                                           :experimental (:magy (:version "0.1.0"
                                                                 :protocol 1)))))]]
                'magy/session/new [[(:result (:sessionId "$sessionId" :configOptions []))]]
                'magy/session/resume (vector (vector (list :result
                                                           (magy-test-page "$sessionId"))))
                'magy/session/prompt [[(:result (:messageId "$messageId"
                                                            :outcome "started"))]])))

(defun magy-test-asks (&rest requests)
  "Return a scenario in which a prompt is followed by REQUESTS, (METHOD PARAMS)."
  (magy-test-scenario
   'magy/session/prompt
   (vector (vconcat '((:result (:messageId "$messageId" :outcome "started")))
                    (mapcar (pcase-lambda (`(,method ,params))
                              (list :request method :params params))
                            requests)))))

(defun magy-test-eval (code &optional milliseconds)
  "Have an agent evaluate CODE within MILLISECONDS; return the answer."
  (magy-test-with (magy-test-asks (list "magy/editor/eval"
                                        (list :code code :timeoutMs (or milliseconds 60000))))
    (magy-prompt "go")
    (magy-test-answer 1)))

(defun magy-test--json (scenario)
  "Return SCENARIO as JSON text; the first of several turns for a method counts."
  (let ((object (make-hash-table :test #'equal)))
    (cl-loop for (method turns) on scenario by #'cddr
             unless (gethash (symbol-name method) object)
             do (puthash (symbol-name method) turns object))
    (json-serialize object :null-object nil :false-object :json-false)))

(defun magy-test--clean-up ()
  "End servers and kill the buffers of the project."
  (let ((project (magy-test-project)))
    (magy-stop project)
    (when-let ((connection (magy-project-connection project)))
      (magy-test-until (not (jsonrpc-running-p connection))))
    (dolist (buffer (buffer-list))
      (when (or (eq buffer (magy-project-buffer project))
                (string-prefix-p magy-test-root (or (buffer-file-name buffer) "")))
        (with-current-buffer buffer
          (set-buffer-modified-p nil)
          (let ((kill-buffer-query-functions nil)) (kill-buffer)))))
    (clrhash magy--projects)
    (delete-directory magy-test-root t)))

(defmacro magy-test-with (scenario &rest body)
  "Evaluate BODY in a project whose server follows SCENARIO."
  (declare (indent 1) (debug t))
  `(let* ((magy-test-root (file-name-as-directory
                           (file-truename (make-temp-file "magy-test-" t))))
          (magy-test-log (expand-file-name ".received" magy-test-root))
          (script (expand-file-name ".scenario" magy-test-root))
          (default-directory magy-test-root)
          (magy-server-command (list magy-test-python "-I" "-S"
                                     (expand-file-name "../fake_server.py" magy-test-directory)
                                     script magy-test-log))
          (make-backup-files nil)
          (create-lockfiles nil)
          (inhibit-message t))
     (when (get-buffer "*magy log*") (kill-buffer "*magy log*"))
     (let ((coding-system-for-write 'utf-8-unix))
       (with-temp-file script (insert (magy-test--json ,scenario))))
     (unwind-protect (progn ,@body)
       (magy-test--clean-up))))

(defun magy-test-text (&optional visible)
  "Return the transcript's text without properties, or only what is VISIBLE.
The input and what else is in the foot is not part of it."
  (with-current-buffer (magy-transcript-buffer (magy-test-project))
    (if (not visible)
        (buffer-substring-no-properties (point-min) (magy-transcript-end))
      (cl-loop for pos from (point-min) below (magy-transcript-end)
               unless (invisible-p pos) concat (string (char-after pos))))))

(defun magy-test-see (text)
  "Wait until the transcript contains TEXT."
  (magy-test-wait (list 'see text)
                  (lambda () (string-match-p (regexp-quote text) (magy-test-text)))))

(provide 'magy-test-helper)
;;; magy-test-helper.el ends here
