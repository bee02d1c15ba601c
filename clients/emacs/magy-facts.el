;;; magy-facts.el --- What this Emacs is, for reports  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Magy authors
;; SPDX-License-Identifier: GPL-3.0-or-later
;; This is free software with no warranty at all; see the file COPYING.

;;; Commentary:

;; Facts for the doctor and for the diagnosis: few, short, and without
;; what is private.  They go through JSON, so that they are plists.

;;; Code:

(require 'magy-connection)
(require 'seq)

(defconst magy-facts--longest 300
  "Most characters of one line.")

(defconst magy-facts--secrets
  (concat "\\(?:"
          "\\_<\\(?:sk\\|pk\\|rk\\|xox[a-z]\\|gh[a-z]\\|github_pat\\|glpat\\|AKIA\\|AIza\\)"
          "[-_]?[[:alnum:]_-]\\{12,\\}"
          "\\|\\_<ey[[:alnum:]_-]\\{10,\\}\\.[[:alnum:]_.-]+"
          "\\|\\_<[[:xdigit:]]\\{32,\\}\\_>"
          "\\)")
  "What looks like a key or a token.")

(defconst magy-facts--assignments
  (concat "\\(\\(?:\\(?:api[-_ ]?key\\|token\\|secret\\|passw\\(?:or\\)?d\\|passphrase"
          "\\|credential\\)[[:alnum:]_-]*[\"']?[[:space:]]*[:=][[:space:]]*"
          "\\|\\(?:authorization\\|bearer\\)[\"']?[[:space:]:=]+"
          "\\(?:bearer[[:space:]]+\\)?\\)\\)"
          "[\"']?[^][:space:]\"'),]+")
  "Something with a telling name, and its value.")

(defun magy-facts--names ()
  "Return what stands for the person in texts: (TEXT . INSTEAD), the longest first."
  (let ((home (directory-file-name (expand-file-name "~"))))
    (delq nil
          (list (cons home "~")
                (cons (file-truename home) "~")
                (and (> (length user-mail-address) 3) (cons user-mail-address "MAIL"))
                (and (> (length user-full-name) 3) (cons user-full-name "NAME"))
                (and (> (length (system-name)) 3) (cons (system-name) "HOST"))
                (and (> (length user-login-name) 3)
                     (not (equal user-login-name "root"))
                     (cons user-login-name "USER"))))))

(defun magy-facts--values ()
  "Return the values in the environment that are secrets by their names."
  (let ((case-fold-search t))
    (cl-loop for entry in process-environment
             when (and (string-match "\\`\\([^=]+\\)=\\([^/].\\{7,\\}\\)\\'" entry)
                       (save-match-data
                         (string-match-p "key\\|token\\|secret\\|passw\\|credential\\|auth"
                                         (match-string 1 entry))))
             collect (match-string 2 entry))))

(defun magy-facts-redact (text)
  "Return TEXT without keys, passwords, and what names the person or the machine."
  (let ((case-fold-search t))
    (dolist (value (magy-facts--values))
      (setq text (string-replace value "[redacted]" text)))
    (pcase-dolist (`(,name . ,instead) (magy-facts--names))
      (unless (equal name "/")
        ;; Not \b or \_>: a name may end in what is no letter, and what a symbol is
        ;; depends on the buffer.
        (setq text (replace-regexp-in-string
                    (concat (regexp-quote name) "\\(?:\\'\\|[^[:alnum:]]\\)")
                    (lambda (found) (concat instead (substring found (length name))))
                    text t t))))
    (setq text (replace-regexp-in-string "://[^/@[:space:]]+@" "://…@" text t t))
    (setq text (replace-regexp-in-string magy-facts--assignments "\\1[redacted]" text))
    (setq case-fold-search nil)
    (replace-regexp-in-string magy-facts--secrets "[redacted]" text t t)))

(defun magy-facts-line (format &rest args)
  "Return the line FORMAT makes of ARGS, redacted and bounded, for JSON."
  (let ((text (magy-facts-redact (apply #'format format args))))
    (magy--json-text (truncate-string-to-width
                      (replace-regexp-in-string "[[:space:]]*\n[[:space:]]*" " " text)
                      magy-facts--longest nil nil "…"))))

(defun magy-facts-tail (buffer lines)
  "Return the last LINES of BUFFER as a vector, redacted.
If there is no such buffer, it is empty."
  (if (not (get-buffer buffer))
      []
    (with-current-buffer buffer
      (save-excursion
        (save-restriction
          (widen)
          (goto-char (point-max))
          (forward-line (- lines))
          (vconcat (mapcar (lambda (line) (magy-facts-line "%s" line))
                           (split-string (buffer-substring-no-properties
                                          (max (point) (- (point-max) (* lines 500)))
                                          (point-max))
                                         "\n" t))))))))

(defun magy-facts-emacs ()
  "Return what Emacs this is."
  (list :emacs (magy-facts-line "%s" emacs-version)
        :build (magy-facts-line "%s" system-configuration)
        :system (symbol-name system-type)
        :display (cond ((daemonp) "daemon") (noninteractive "batch")
                       (window-system (symbol-name window-system)) (t "terminal"))
        :terminal (or (getenv "TERM") "")
        :features (magy-facts-line "%s" system-configuration-features)
        :jsonSupport (if (magy-facts--json-p) t :json-false)
        :readProcessOutputMax read-process-output-max
        :gcConsThreshold gc-cons-threshold))

(defun magy-facts--json-p ()
  "Return non-nil if this Emacs reads JSON by itself, fast."
  (and (fboundp 'json-parse-string)
       (condition-case nil (eq t (json-parse-string "true")) (error nil))))

(defun magy-facts-magy (project)
  "Return what Magy is here and does for PROJECT."
  (let ((connection (magy-project-connection project)))
    (list :client magy-version :protocol magy-protocol
          :server (or (and connection (plist-get (magy-connection-about connection) :version))
                      "")
          :command (magy-facts-line "%s" (string-join magy-server-command " "))
          :running (if (magy-live-p project) t :json-false)
          :hung (if (magy-hung-p project) t :json-false)
          :problem (magy-facts-line "%s" (or (and connection
                                                  (magy-connection-problem connection))
                                             ""))
          :state (magy-project-state project)
          :options (vconcat (magy-facts--options))
          :log (magy-facts-tail magy-log-buffer 20))))

(defun magy-facts--options ()
  "Return the names of Magy's options that a person has set."
  (let (names)
    (mapatoms (lambda (symbol)
                (when (and (string-prefix-p "magy-" (symbol-name symbol))
                           (get symbol 'standard-value) (boundp symbol)
                           (magy-options--changed-p symbol))
                  (push (symbol-name symbol) names))))
    (sort names #'string<)))

(provide 'magy-facts)
;;; magy-facts.el ends here
