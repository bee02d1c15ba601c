;;; emacs.el --- What the benchmarks have Emacs do  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Magy authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Each function writes the seconds that something took to the file
;; BENCH_RESULT, as JSON.  See bench/emacs.py.

;;; Code:

(require 'magy)

(defun bench--write (value)
  "Write VALUE as the result."
  (with-temp-file (getenv "BENCH_RESULT")
    (insert (json-serialize value))))

(defun bench--wait (predicate)
  "Wait until PREDICATE returns non-nil."
  (let ((end (+ (float-time) 100)))
    (while (not (funcall predicate))
      (when (> (float-time) end)
        (error "Waited in vain for %s" predicate))
      (accept-process-output nil 0.005))))

(defun bench--processor ()
  "Return the processor time that this Emacs has used, in seconds."
  (float-time (get-internal-run-time)))

(defun bench--project ()
  "Return a project whose server BENCH_SERVER, a list in Lisp syntax, starts."
  (setq magy-server-command (car (read-from-string (getenv "BENCH_SERVER"))))
  (magy-project-for default-directory))

;;;; Deltas

(defun bench-deltas ()
  "Receive a stream of deltas in a transcript."
  (let ((project (bench--project)) before)
    (magy-when-ready project (lambda () (magy-session-attach project "s" #'ignore)))
    (bench--wait (lambda () (eq t (magy-project-attached project))))
    (garbage-collect)
    (setq before (bench--processor))
    (magy-session-prompt project '((:type "text" :text "go")) "auto")
    (bench--wait (lambda () (= 2 (magy-project-seq project))))
    (bench--write (vector (- (bench--processor) before)))))

(defun bench-plain ()
  "Receive the same deltas and only insert their text."
  (let* ((command (car (read-from-string (getenv "BENCH_SERVER"))))
         (done nil)
         (buffer (generate-new-buffer "plain"))
         (connection
          (make-instance
           'jsonrpc-process-connection :name "plain" :events-buffer-scrollback-size 0
           :process (lambda () (make-process :name "plain" :command command :noquery t
                                             :connection-type 'pipe
                                             :coding 'utf-8-emacs-unix))
           :notification-dispatcher
           (lambda (_connection _method params)
             (let ((text (magy--get params :update :content :text)))
               (if (null text)
                   (setq done t)
                 (with-current-buffer buffer
                   (let ((inhibit-read-only nil))
                     (goto-char (point-max))
                     (insert text))))))))
         before)
    (with-current-buffer buffer (buffer-disable-undo))
    (jsonrpc-request connection 'initialize nil)
    (garbage-collect)
    (setq before (bench--processor))
    (jsonrpc-async-request connection 'magy/session/prompt '(:sessionId "s" :messageId "m")
                           :success-fn #'ignore :timeout nil)
    (bench--wait (lambda () done))
    (bench--write (vector (- (bench--processor) before)))))

;;;; Opening

(defun bench--open (project session)
  "Return the seconds in which SESSION is shown in PROJECT's transcript."
  (let ((before (float-time)) done)
    (magy-session-attach project session (lambda () (setq done t)))
    (bench--wait (lambda () done))
    (- (float-time) before)))

(defun bench-open ()
  "Show a long session and a short one in turn."
  (let ((project (bench--project)) long short)
    (magy-when-ready project #'ignore)
    (bench--wait (lambda () (magy-project-ready project)))
    (bench--open project "short")
    (dotimes (_ (string-to-number (getenv "BENCH_TIMES")))
      (push (bench--open project "long") long)
      (push (bench--open project "short") short))
    (bench--write (list :long (vconcat long) :short (vconcat short)))))

;;;; Blocks

(defun bench--tell (project &rest update)
  "Have UPDATE of PROJECT's session arrive."
  (magy-session--receive project 'update update))

(defun bench--turn (project n)
  "Have turn N of PROJECT's session arrive."
  (cl-flet ((meta (seq) (list :_meta (list :magy (list :seq (+ (* 10 n) seq)))))
            (text (format &rest args) (vector (list :type "text"
                                                    :text (apply #'format format args)))))
    (let ((id (format "m%d" n)))
      (apply #'bench--tell project :sessionUpdate "user_message" :messageId id
             :content (text "Please do number %d" n) (meta 0))
      (apply #'bench--tell project :sessionUpdate "_magy_queue" :admitted (vector id) (meta 1))
      (dotimes (k 3)
        (apply #'bench--tell project :sessionUpdate "tool_call_update"
               :toolCallId (format "%d.%d" n k) :title "Read a file" :status "completed"
               :content (vector (list :type "content"
                                      :content (list :type "text" :text "a\nb\nc")))
               (meta (+ 2 k))))
      (apply #'bench--tell project :sessionUpdate "agent_message" :messageId (format "a%d" n)
             :content (text "Some **words** about `it`.\n\n- one\n- two\n") (meta 6))
      (apply #'bench--tell project :sessionUpdate "state_update" :state "idle" (meta 7)))))

(defun bench-block ()
  "Measure how long Emacs is busy with a batch of deltas after BENCH_TURNS turns."
  (let ((project (magy-project-for default-directory)) (longest 0))
    (setf (magy-project-session project) "s")
    (switch-to-buffer (magy-transcript-buffer project))
    (dotimes (n (string-to-number (getenv "BENCH_TURNS")))
      (bench--turn project (1+ n))
      (magy-session--flush project))
    (redisplay t)
    (garbage-collect)
    (dotimes (n 200)
      (bench--tell project :sessionUpdate "agent_message_chunk" :messageId "last"
                   :content (list :type "text" :text (format "word %d of **it**\n" n)))
      (let ((before (float-time)))
        (magy-session--flush project)
        (redisplay t)
        (setq longest (max longest (- (float-time) before)))))
    (bench--write (vector longest))
    (kill-emacs)))

(provide 'emacs)
;;; emacs.el ends here
