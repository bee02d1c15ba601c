;;; magy-project.el --- Projects, and what Magy's files share  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Magy authors
;; SPDX-License-Identifier: GPL-3.0-or-later
;; This is free software with no warranty at all; see the file COPYING.

;;; Commentary:

;; A project root has one server and shows one session.  Also here: how
;; Emacs' text and file names are said in JSON.

;;; Code:

(require 'cl-lib)
(require 'jsonrpc)
(require 'magy-log)
(require 'magy-options)
(require 'project)
(require 'subr-x)
(require 'url-util)

(cl-defstruct (magy-project (:constructor magy-project--make) (:copier nil))
  "A project root with its server and the session that is shown for it."
  root                                  ; canonical directory name, with "/"
  connection                            ; nil until started
  ready                                 ; the server has answered `initialize'
  todo                                  ; to do when it has, newest first: (FUNCTION . FAILURE)
  encoding                              ; position encoding: utf-32 or utf-16
  session                               ; id of the session shown, or nil
  attached                              ; nil, t, or a list of functions that wait for it
  (seq 0)                               ; last log entry received of it
  (floor 1)                             ; first log entry received of it
  (state "idle")                        ; idle, running or requires_action
  progress                              ; what the model does before it replies, or nil
  title options                         ; of the session; options: (ID . VALUE) list
  choices                               ; what the options may be: (ID . vector) list
  unsent                                ; prompts not yet accepted, oldest first
  (counted 0)                           ; up to this log entry usage and cost are counted
  (cost 0) (unpriced 0)                 ; in US dollars; requests whose price is not known
  (context 0) (window 0)                ; tokens that the model was sent last, and can hold
  usage                                 ; tokens used, by kind: a plist
  spent                                 ; in the last turn: a plist of :usage and :cost
  waiting                               ; prompts that wait: (ID . plist), in their order
  questions                             ; (ID . plist), oldest first, of all its sessions
  reviews                               ; what is under review: ReviewEntry, by path
  turn                                  ; the turn that goes on and may edit, or nil
  (children (make-hash-table :test #'equal)) ; child agents of its sessions: id -> plist
  changed                               ; (TIMER ID...): those whose news is not shown yet
  buffer                                ; the transcript
  queue timer)                          ; updates not yet rendered, newest first

(defvar magy--projects (make-hash-table :test #'equal)
  "Canonical root -> `magy-project', for every root used in this Emacs.")

;;;; Small helpers

(defmacro magy--guarded (what &rest body)
  "Evaluate BODY; an error in it is logged as having happened in WHAT.
This is for the boundary with the process: an error that left the
filter would stop the messages behind it."
  (declare (indent 1) (debug t))
  `(condition-case err
       (progn ,@body)
     (error (magy--message-at 'error "Magy: error in %s: %s"
                              ,what (error-message-string err)))))

(defun magy--get (object &rest keys)
  "Follow KEYS through the nested plist OBJECT."
  (dolist (key keys object)
    (setq object (plist-get object key))))

(defun magy--true (value)
  "Return non-nil unless the JSON VALUE is false or null."
  (and value (not (eq value :json-false))))

(defun magy--json-text (string)
  "Return STRING with each character that JSON cannot hold made U+FFFD.
These are raw bytes and what lies outside Unicode; the length stays."
  (let ((string (string-to-multibyte string)))
    (if (not (string-match-p "[\ud800-\udfff]\\|[^\u0000-\U0010ffff]" string))
        string
      (apply #'string (mapcar (lambda (char)
                                (if (or (> char #x10ffff) (<= #xd800 char #xdfff))
                                    #xfffd
                                  char))
                              string)))))

(defconst magy--path-characters
  (let ((allowed (copy-sequence url-path-allowed-chars)))
    (aset allowed ?% nil)               ; the name may hold one itself
    allowed)
  "Which characters of file names stand for themselves in a URI.")

(defun magy--path-to-uri (path)
  "Return the file URI of the absolute file name PATH."
  (concat "file://" (url-hexify-string (encode-coding-string path 'utf-8 t)
                                       magy--path-characters)))

(defun magy--uri-to-path (uri)
  "Return the file name that the file URI stands for."
  (if (string-match "\\`file://[^/]*\\(/.*\\)\\'" uri)
      (decode-coding-string (url-unhex-string (match-string 1 uri)) 'utf-8)
    (error "Not a file: %s" uri)))

(defun magy--new-id (prefix)
  "Return an id that nobody else makes, beginning with PREFIX."
  (format "%s-%s-%06x%06x" prefix (format-time-string "%Y%m%d-%H%M%S")
          (random #x1000000) (random #x1000000)))

(defun magy--in-mode (&rest modes)
  "Signal a `user-error' unless the current buffer is in one of MODES."
  (unless (cl-some (lambda (mode)
                     (or (derived-mode-p mode) (and (boundp mode) (symbol-value mode))))
                   modes)
    (user-error "This works only in buffers in %s" (mapconcat #'symbol-name modes " or "))))

;;;; Projects

(defun magy--canonical-root (dir)
  "Return DIR as a canonical directory name."
  (file-name-as-directory (file-truename (expand-file-name dir))))

(defun magy-project-for (root)
  "Return the `magy-project' of directory ROOT, made when needed."
  (let ((root (magy--canonical-root root)))
    (or (gethash root magy--projects)
        (puthash root (magy-project--make :root root) magy--projects))))

(defvar-local magy--own-project nil
  "The project that the current buffer shows something of, if it shows that.")

(defun magy-current-project ()
  "Return the project of the current buffer: its own, or that of its directory.
`magy-project-root-function' is asked first, then `project-current'."
  (or magy--own-project
      (cl-find (current-buffer) (hash-table-values magy--projects)
               :key #'magy-project-buffer)
      (magy-project-for
       (or (and magy-project-root-function (funcall magy-project-root-function))
           (when-let ((found (project-current nil)))
             (project-root found))
           default-directory))))

(defun magy-project-name (project)
  "Return PROJECT's name for people."
  (file-name-nondirectory (directory-file-name (magy-project-root project))))

(defun magy-live-p (project)
  "Return non-nil if PROJECT's server runs."
  (and (magy-project-connection project)
       (jsonrpc-running-p (magy-project-connection project))))

(defun magy--project-of-file (path)
  "Return the ready project that the file PATH is in, the innermost one."
  (let (best)
    (dolist (project (hash-table-values magy--projects) best)
      (when (and (magy-project-ready project)
                 (string-prefix-p (magy-project-root project) path)
                 (or (null best) (> (length (magy-project-root project))
                                    (length (magy-project-root best)))))
        (setq best project)))))

(provide 'magy-project)
;;; magy-project.el ends here
