;;; magy-options.el --- What a person can set in Magy  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Magy authors
;; SPDX-License-Identifier: GPL-3.0-or-later
;; This is free software with no warranty at all; see the file COPYING.

;;; Commentary:

;; There are two sorts of options.  Those of the first part are about
;; Emacs.  Those of the second are settings of the server by another
;; name, with the server's defaults: one that was changed is sent when
;; the server starts and wins over magy.toml; one that was not is left
;; to magy.toml.  `magy-settings' sends any other setting.

;;; Code:

(require 'seq)

(defgroup magy nil
  "Coding agents in live buffers."
  :group 'tools
  :prefix "magy-")

;;;; The transcript

(defcustom magy-buffer-name "*magy: %s*"
  "Name of a project's transcript; %s stands for the name of the project."
  :type 'string
  :group 'magy
  :package-version '(magy . "0.1"))

(defcustom magy-transcript-style 'markdown
  "What the text of a transcript is.
In Markdown, as models write it, the markup is hidden.  In Org, who
speaks is a heading, and tools, thinking and agents are blocks.  A
transcript that is shown already takes it over with the next session, or
when you type g in it."
  :type '(choice (const :tag "Markdown" markdown) (const :tag "Org" org))
  :group 'magy
  :package-version '(magy . "0.1"))

(defcustom magy-auto-scroll t
  "Whether a transcript that shows its end follows arriving text."
  :type 'boolean
  :group 'magy
  :package-version '(magy . "0.1"))

(defcustom magy-user-prompt "USER"
  "Heading of the person's prompts."
  :type 'string
  :group 'magy
  :package-version '(magy . "0.1"))

(defcustom magy-assistant-prompt "ASSISTANT"
  "Heading of the agent's answers."
  :type 'string
  :group 'magy
  :package-version '(magy . "0.1"))

(defcustom magy-tool-call-prompt "tool"
  "Word before a tool call."
  :type 'string
  :group 'magy
  :package-version '(magy . "0.1"))

(defcustom magy-error-prompt "error"
  "Word before an error."
  :type 'string
  :group 'magy
  :package-version '(magy . "0.1"))

(defcustom magy-include-reasoning t
  "How the transcript shows the model's thinking."
  :type '(choice (const :tag "Show it" t)
                 (const :tag "Keep it folded" ignore)
                 (const :tag "Drop it" nil))
  :group 'magy
  :package-version '(magy . "0.1"))

(defcustom magy-ui-batch-insert-delay 0.05
  "Seconds for which Emacs collects updates before it shows them."
  :type 'number
  :group 'magy
  :package-version '(magy . "0.1"))

(defcustom magy-ui-fontify-threshold 500
  "Length in characters from which code is fontified only when Emacs is idle.
A shorter block of code is fontified as soon as it is complete."
  :type 'natnum
  :group 'magy
  :package-version '(magy . "0.1"))

(defcustom magy-show-transcript t
  "Whether a prompt shows the transcript in another window, without selecting it."
  :type 'boolean
  :group 'magy
  :package-version '(magy . "0.1"))

;;;; Prompts and keys

(defcustom magy-auto-context t
  "Whether `magy-dwim' sends by itself what is at point.
That is the selection, or else the function and the line at point, and
the diagnostics there.  Otherwise Emacs offers the same things, and sends
only what you choose."
  :type 'boolean
  :group 'magy
  :package-version '(magy . "0.1"))

(defcustom magy-max-history 100
  "How many prompts Emacs remembers.
The conversation itself is never cut: the server sums its older part up
when the model cannot hold more."
  :type 'natnum
  :group 'magy
  :package-version '(magy . "0.1"))

(defcustom magy-project-root-function nil
  "Function that returns the project root of the current buffer.
It is called with no arguments and may return nil, for what `project'
says, or else the directory of the buffer."
  :type '(choice (const :tag "As `project' says" nil) function)
  :group 'magy
  :package-version '(magy . "0.1"))

(defvar magy-mode-map (make-sparse-keymap)
  "Keymap of `magy-mode'; empty but for `magy-command-prefix'.")

(defcustom magy-command-prefix nil
  "Key after which `magy-mode' has Magy's commands, in the syntax of `kbd'.
By convention the keys that begin with \\`C-c' and a letter are yours, so
that Magy binds none by itself.  Set this by Customize or with
`customize-set-variable'."
  :type '(choice (const :tag "None" nil) string)
  :set (lambda (option value)
         (set-default option value)
         (when (fboundp 'magy-apply-prefix)
           (funcall 'magy-apply-prefix)))
  :group 'magy
  :package-version '(magy . "0.1"))

(defcustom magy-desktop-notifications t
  "Whether a question shows a desktop notification while Emacs has no focus.
A function is called instead, with a title and a text."
  :type '(choice (const :tag "Yes" t) (const :tag "No" nil) function)
  :group 'magy
  :package-version '(magy . "0.1"))

(defcustom magy-bypass-permission nil
  "Whether new sessions answer permission questions with yes.
Deny rules still hold.  `magy-toggle-bypass-permission' is for
the session that is shown."
  :type 'boolean
  :group 'magy
  :package-version '(magy . "0.1"))

;;;; What Emacs offers to agents

(defcustom magy-allow-eval t
  "Whether agents may ask to evaluate Emacs Lisp in this Emacs.
A rule of the server still decides each time; by default it asks.  It
takes effect when the server starts."
  :type 'boolean
  :group 'magy
  :package-version '(magy . "0.1"))

(defcustom magy-emacs-eval-timeout 10
  "Seconds after which Emacs Lisp that an agent evaluates is stopped."
  :type 'number
  :group 'magy
  :package-version '(magy . "0.1"))

;;;; Logs

(defcustom magy-enable-logging t
  "Whether to keep the log in the buffer *magy log*."
  :type 'boolean
  :group 'magy
  :package-version '(magy . "0.1"))

(defcustom magy-log-level 'info
  "The lowest level of lines that are logged."
  :type '(choice (const debug) (const info) (const warn) (const error))
  :group 'magy
  :package-version '(magy . "0.1"))

(defcustom magy-log-traffic nil
  "Whether to keep the JSON-RPC traffic in a buffer *magy PROJECT events*.
This slows long streams down considerably.  It takes effect when the
server starts."
  :type 'boolean
  :group 'magy
  :package-version '(magy . "0.1"))

;;;; The server

(defcustom magy-server-command '("magy" "lsp")
  "Command that starts the server: the program and its arguments."
  :type '(repeat string)
  :group 'magy
  :package-version '(magy . "0.1"))

(defcustom magy-patience 30
  "Seconds after which a server that has not answered a request counts as hung.
No request waits for a person or a model, so the server answers all soon."
  :type 'number
  :group 'magy
  :package-version '(magy . "0.1"))

(defcustom magy-session-directory nil
  "Directory in which the server keeps sessions, audit files and the like.
nil is the usual place, which other editors share."
  :type '(choice (const :tag "The usual place" nil) directory)
  :group 'magy
  :package-version '(magy . "0.1"))

(defcustom magy-settings nil
  "Configuration sent to the server, as a plist in the shape of magy.toml.
For example, (:default_agent \"plan\").  It overrides the files and
the options.  False is `:json-false' and a list is a vector, as
everywhere in `jsonrpc'."
  :type '(plist :key-type symbol :value-type sexp)
  :group 'magy
  :package-version '(magy . "0.1"))

;;;; Settings of the server

(defconst magy-tool-groups
  '(read edit write bash git net plan skill agent editor emacs_eval)
  "The permission keys that stand for groups of tools.")

(defcustom magy-enable-tools t
  "The groups of tools that agents have, by permission key; t is all of them.
The others are denied, whatever an agent's own rules allow."
  :type `(choice (const :tag "All" t)
                 (set ,@(mapcar (lambda (key) `(const ,key)) magy-tool-groups)))
  :group 'magy
  :package-version '(magy . "0.1"))

(defcustom magy-default-agent "build"
  "The agent that new sessions use."
  :type 'string
  :group 'magy
  :package-version '(magy . "0.1"))

(defcustom magy-load-custom-agents t
  "Whether Magy reads agents from your directory and the project's."
  :type 'boolean
  :group 'magy
  :package-version '(magy . "0.1"))

(defcustom magy-request-timeout 120
  "Seconds until a model's reply must have started."
  :type 'number
  :group 'magy
  :package-version '(magy . "0.1"))

(defcustom magy-max-sampling-requests 25
  "How many requests to the model one turn may make; 0 is no limit."
  :type 'natnum
  :group 'magy
  :package-version '(magy . "0.1"))

(defcustom magy-grep-program "rg"
  "The ripgrep program.
Where it is not there or older than version 14, Magy takes the one that
came with it."
  :type 'string
  :group 'magy
  :package-version '(magy . "0.1"))

(defcustom magy-grep-max-matches 100
  "The most matching lines that one search shows the agent."
  :type 'natnum
  :group 'magy
  :package-version '(magy . "0.1"))

(defcustom magy-bash-timeout 30
  "The time limit in seconds of an agent's command that sets none itself."
  :type 'number
  :group 'magy
  :package-version '(magy . "0.1"))

(defcustom magy-enable-audit-log t
  "Whether the server writes audit files."
  :type 'boolean
  :group 'magy
  :package-version '(magy . "0.1"))

(defcustom magy-audit-directory nil
  "Directory of the audit files; nil is \"audit\" in that of the sessions."
  :type '(choice (const :tag "With the sessions" nil) directory)
  :group 'magy
  :package-version '(magy . "0.1"))

(defcustom magy-audit-preview-length 120
  "How many characters of a command or path the audit keeps."
  :type 'natnum
  :group 'magy
  :package-version '(magy . "0.1"))

(defconst magy-options--of-the-server
  '((magy-default-agent :default_agent)
    (magy-load-custom-agents :custom_agents)
    (magy-request-timeout :model :timeout)
    (magy-max-sampling-requests :limits :requests)
    (magy-grep-program :tools :grep_program)
    (magy-grep-max-matches :tools :grep_matches)
    (magy-bash-timeout :tools :bash_timeout)
    (magy-enable-audit-log :audit :enabled)
    (magy-audit-directory :audit :directory)
    (magy-audit-preview-length :audit :preview_length))
  "Options that are settings: (OPTION KEY...), the keys as in magy.toml.")

(defun magy-options--changed-p (option)
  "Return non-nil if a person has set OPTION."
  (or (get option 'saved-value)
      (get option 'customized-value)
      (get option 'theme-value)
      (not (equal (symbol-value option)
                  (eval (car (get option 'standard-value)) t)))))

(defun magy-options--value (option)
  "Return the value of OPTION as the server gets it."
  (let ((value (symbol-value option)))
    (cond ((null value) :json-false)
          ((eq option 'magy-audit-directory) (expand-file-name value))
          (t value))))

(defun magy-options--put (plist keys value)
  "Return the nested PLIST with VALUE at the end of KEYS; PLIST is not changed."
  (plist-put (copy-sequence plist) (car keys)
             (if (cdr keys)
                 (magy-options--put (plist-get plist (car keys)) (cdr keys) value)
               value)))

(defun magy-options--merge (under over)
  "Return the nested plist UNDER with all that is in OVER."
  (let ((result (copy-sequence under)))
    (while over
      (let ((old (plist-get result (car over)))
            (new (cadr over)))
        (setq result (plist-put result (car over)
                                (if (and (consp old) (consp new))
                                    (magy-options--merge old new)
                                  new))
              over (cddr over))))
    result))

(defun magy-options-settings ()
  "Return the settings to send to the server, or nil if there are none."
  (let (settings)
    (pcase-dolist (`(,option . ,keys) magy-options--of-the-server)
      (when (magy-options--changed-p option)
        (setq settings (magy-options--put settings keys (magy-options--value option)))))
    (unless (eq magy-enable-tools t)
      (dolist (key (seq-difference magy-tool-groups magy-enable-tools))
        (setq settings (magy-options--put
                        settings (list :permission (intern (format ":%s" key))) "deny"))))
    (magy-options--merge settings magy-settings)))

(provide 'magy-options)
;;; magy-options.el ends here
