;;; magy-context.el --- Prompts, and what goes with them  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Magy authors
;; SPDX-License-Identifier: GPL-3.0-or-later
;; This is free software with no warranty at all; see the file COPYING.

;;; Commentary:

;; A prompt is read in the minibuffer.  What would go with it stands
;; above: the server says what there is (the selection, the function at
;; point, what is wrong there), and C-c 1, C-c 2 and so on put each thing
;; in or take it out.  The server is asked while the person types;
;; nothing waits for it.

;;; Code:

(require 'magy-buffers)
(require 'magy-session)

(autoload 'magy-complete "magy-complete" nil t)
(declare-function magy-complete-setup "magy-complete")
(declare-function magy-editor-diagnostics-at "magy-editor")

(defvar magy-prompt-history nil
  "What was asked.")

(defface magy-context-on '((t :inherit success))
  "Face of what goes with a prompt."
  :group 'magy-faces)

(defface magy-context-off '((t :inherit shadow :strike-through t))
  "Face of what could go with a prompt and does not."
  :group 'magy-faces)

(cl-defstruct (magy-context (:constructor magy-context--make) (:copier nil))
  "What may go with a prompt."
  project
  kinds                                 ; only items of these kinds; nil: all
  (items 'pending)                      ; list of item plists; `pending' until known
  chosen                                ; those that go with it
  then                                  ; called when the items are known
  buffer)                               ; the minibuffer while it is read

;;;; What there is

(defun magy-context--excerpt (beg end)
  "Return a block with the text from BEG to END of a buffer that is not a file."
  (list :type "resource"
        :resource (list :uri (format "emacs-buffer:%s#L%d-L%d"
                                     (url-hexify-string (buffer-name))
                                     (line-number-at-pos beg t)
                                     (line-number-at-pos (max beg (1- end)) t))
                        :text (magy--text beg end))))

(defun magy-context--local ()
  "Return what Emacs itself can say of a buffer that the server does not know."
  (cond ((use-region-p)
         (list (list :kind "selection" :default t
                     :label (format "%s, %d lines" (buffer-name)
                                    (count-lines (region-beginning) (region-end)))
                     :block (magy-context--excerpt (region-beginning) (region-end)))))
        ((and (get-buffer-window) (not magy--own-project)
              (not (derived-mode-p 'magy-transcript-mode)))
         (let ((beg (window-start (get-buffer-window)))
               (end (window-end (get-buffer-window) t)))
           (when (< beg end)
             (list (list :kind "visible" :default :json-false
                         :label (format "what is shown of %s" (buffer-name))
                         :block (magy-context--excerpt beg end))))))))

(defun magy-context--place ()
  "Return markers for what the person looks at: (POINT REGION VISIBLE).
REGION and VISIBLE are (BEG . END) or nil."
  (let ((window (get-buffer-window))
        (span (lambda (beg end) (cons (copy-marker beg) (copy-marker end)))))
    (list (point-marker)
          (and (use-region-p) (funcall span (region-beginning) (region-end)))
          (and window (funcall span (window-start window) (window-end window t))))))

(defun magy-context--params (document place)
  "Return the parameters of magy/context/get for PLACE in this buffer, DOCUMENT."
  (require 'magy-editor)
  (pcase-let* ((project (magy-document-project document))
               (encoding (magy-project-encoding project))
               (`(,point ,region ,visible) place))
    (append
     (list :uri (magy-document-uri document)
           :position (magy--position point encoding)
           :diagnostics (magy-editor-diagnostics-at point region encoding)
           :openUris (vconcat (magy-context--open-uris project)))
     (and region (list :selection (magy--range (car region) (cdr region) encoding)))
     (and visible (list :visible (magy--range (car visible) (cdr visible) encoding))))))

(defun magy-context--open-uris (project)
  "Return the URIs of PROJECT's open documents, at most 50, the last used first."
  (seq-take (delq nil (mapcar (lambda (buffer)
                                (when-let ((document (buffer-local-value 'magy--document
                                                                         buffer)))
                                  (and (eq project (magy-document-project document))
                                       (magy-document-uri document))))
                              (buffer-list)))
            50))

(defun magy-context--collect (context)
  "Ask what may go into CONTEXT for the current buffer."
  (let ((local (magy-context--local))
        (place (magy-context--place))
        (buffer (current-buffer))
        (project (magy-context-project context)))
    (if (not (and buffer-file-name (not (file-remote-p buffer-file-name))))
        (magy-context--known context local)
      (magy-when-ready
       project
       (lambda ()
         (let ((document (and (buffer-live-p buffer)
                              (buffer-local-value 'magy--document buffer))))
           (if (not (and document (eq project (magy-document-project document))))
               (magy-context--known context local)
             (magy-request
              project 'magy/context/get
              (with-current-buffer buffer (magy-context--params document place))
              (lambda (result)
                (magy-context--known
                 context (if result (append (plist-get result :items) nil) local)))
              (lambda (problem)
                (magy--log-at 'warn "context: %s" (plist-get problem :message))
                (magy-context--known context local))))))
       ;; The prompt is not lost with the server: it goes on without.
       (lambda () (magy-context--known context local))))))

(defun magy-context--known (context items)
  "The ITEMS that may go into CONTEXT are known."
  (when-let ((kinds (magy-context-kinds context)))
    (setq items (seq-filter (lambda (item) (member (plist-get item :kind) kinds)) items)))
  (setf (magy-context-items context) items
        (magy-context-chosen context)
        (seq-filter (lambda (item)
                      (and (magy--true (plist-get item :default))
                           ;; What is asked for by name goes, whatever the option says.
                           (or magy-auto-context (magy-context-kinds context))))
                    items))
  (magy-context--show context)
  (when-let ((then (magy-context-then context)))
    (setf (magy-context-then context) nil)
    (funcall then)))

(defun magy-context-add (context item)
  "Put ITEM into CONTEXT, chosen, besides what the server says."
  (let ((items (magy-context-items context)))
    (setf (magy-context-items context) (cons item (if (listp items) items nil)))
    (push item (magy-context-chosen context))
    (magy-context--show context)))

(defun magy-context-blocks (context)
  "Return the blocks that go with a prompt as CONTEXT stands."
  (mapcar (lambda (item) (plist-get item :block))
          (seq-filter (lambda (item) (memq item (magy-context-chosen context)))
                      (magy-context-items context))))

;;;; In the minibuffer

(defvar-local magy-context--current nil
  "The context of the prompt that is read in this minibuffer.")

(defvar-local magy-context--overlay nil
  "The overlay that shows it.")

(defun magy-context--line (context)
  "Return CONTEXT as text for people."
  (let ((items (magy-context-items context)) (n 0))
    (cond ((eq items 'pending) (propertize "collecting what is at point…\n" 'face 'shadow))
          ((null items) "")
          (t (concat (mapconcat (lambda (item)
                                  (setq n (1+ n))
                                  (magy-context--label context item n))
                                items "  ")
                     (propertize "  (C-c 1… to change)\n" 'face 'shadow))))))

(defun magy-context--label (context item n)
  "Return the label of ITEM, the Nth of CONTEXT; a click toggles it."
  (let ((on (memq item (magy-context-chosen context)))
        (map (make-sparse-keymap)))
    (define-key map [mouse-1] (lambda () (interactive) (magy-context-toggle n)))
    (propertize (format "%s%d %s" (if on "+" "-") n (plist-get item :label))
                'face (if on 'magy-context-on 'magy-context-off)
                'mouse-face 'highlight 'keymap map)))

(defun magy-context--show (context)
  "Show CONTEXT above the prompt that is being read, if it still is."
  (when (buffer-live-p (magy-context-buffer context))
    (with-current-buffer (magy-context-buffer context)
      (when (eq context magy-context--current)
        (overlay-put magy-context--overlay 'before-string (magy-context--line context))))))

(defun magy-context-toggle (&optional n)
  "Toggle whether the Nth thing is sent along with the prompt."
  (interactive (list (if (natnump (event-basic-type last-command-event))
                         (- (event-basic-type last-command-event) ?0)
                       0)))
  (unless magy-context--current
    (user-error "This works only in the minibuffer that reads a prompt"))
  (let* ((context magy-context--current)
         (items (magy-context-items context))
         (item (and (listp items) (> n 0) (nth (1- n) items))))
    (if (null item)
        (minibuffer-message "There is no %d" n)
      (setf (magy-context-chosen context)
            (if (memq item (magy-context-chosen context))
                (remq item (magy-context-chosen context))
              (cons item (magy-context-chosen context))))
      (magy-context--show context))))

(defvar magy-context-map
  (let ((map (make-sparse-keymap)))
    (set-keymap-parent map minibuffer-local-map)
    (dolist (digit (number-sequence ?1 ?9))
      (define-key map (vector ?\C-c digit) #'magy-context-toggle)
      (define-key map (vector (event-convert-list (list 'meta digit))) #'magy-context-toggle))
    (define-key map (kbd "TAB") #'magy-complete)
    map)
  "Keymap of the minibuffer while a prompt is read.")

(defun magy-context--setup (context)
  "Prepare the minibuffer, in which a prompt with CONTEXT is read."
  (setq magy-context--current context
        magy-context--overlay (make-overlay (point-min) (point-min)))
  (setf (magy-context-buffer context) (current-buffer))
  (require 'magy-complete)
  (magy-complete-setup (magy-context-project context))
  (magy-context--show context))

(defun magy-context--read (prompt context &optional default)
  "Read a text after PROMPT, showing CONTEXT; DEFAULT stands for nothing."
  (put 'magy-prompt-history 'history-length magy-max-history)
  (let ((text (minibuffer-with-setup-hook (lambda () (magy-context--setup context))
                (read-from-minibuffer prompt nil magy-context-map nil
                                      'magy-prompt-history default))))
    (cond ((not (string-blank-p text)) text)
          (default)
          (t (user-error "Nothing to ask")))))

(defun magy-context-read-only (prompt default)
  "Read a text after PROMPT, with which nothing else goes.
DEFAULT stands for nothing."
  (let ((context (magy-context--make :project (magy-current-project) :items nil)))
    (magy-context--read prompt context default)))

(defun magy-context-when-known (context then)
  "Call THEN when it is known what goes into CONTEXT."
  (if (eq 'pending (magy-context-items context))
      (setf (magy-context-then context) then)
    (funcall then)))

;;;; Sending

(defvar magy-prompt-context-function #'ignore
  "Function that returns blocks that go with what is typed into a transcript.
It is called with no arguments in the transcript's buffer.")

(defvar magy-special-prompts
  '(("@clear" . magy-clear-session) ("@compact" . magy-compact-session))
  "Alist of prompts that are commands: (TEXT . FUNCTION).
The client calls FUNCTION with the project.")

(defvar magy-special-prompt-functions nil
  "Functions that may do what a prompt says, and then return non-nil.
They are called with the project, or the view, the text and the blocks
that go with it.")

(defun magy-special-prompt (project text blocks)
  "Do what TEXT says if it is a command as a whole; return non-nil if it was.
PROJECT, or a view, is what it is about; BLOCKS go with it."
  (if-let ((special (assoc (string-trim text) magy-special-prompts)))
      (progn
        (unless (eq project (magy-session-server project))
          (user-error "%s works only in the transcript of the project" (car special)))
        (funcall (cdr special) project)
        t)
    (run-hook-with-args-until-success 'magy-special-prompt-functions project text blocks)))

(defun magy-prompt-send (project text blocks delivery)
  "Send TEXT with BLOCKS to PROJECT's session; DELIVERY as always."
  (unless (magy-special-prompt project text blocks)
    (magy-session-prompt project (cons (list :type "text" :text (magy--json-text text)) blocks)
                         delivery))
  (magy-prompt-show project))

(defun magy-prompt-show (project)
  "Show PROJECT's transcript if `magy-show-transcript' says so; select nothing."
  (when magy-show-transcript
    (save-selected-window (display-buffer (magy-transcript-buffer project)))))

(defun magy-prompt-delivery (prefix)
  "Return the delivery that the PREFIX argument means."
  (pcase (prefix-numeric-value prefix)
    (4 "queue") (16 "interrupt") (_ "auto")))

(cl-defun magy-prompt-compose (prompt &key kinds prefix item text default)
  "Read a text after PROMPT and send it with what is here.
KINDS are the kinds of things that may go with it; nil is all.  PREFIX
says how it is delivered.  ITEM, if any, goes with it instead.  TEXT, if
not nil, is what would be read, and DEFAULT stands for nothing."
  (let* ((project (magy-current-project))
         (context (magy-context-here project kinds item)))
    (magy-context-compose prompt context
                          (lambda (text blocks)
                            (magy-prompt-send project text blocks
                                              (magy-prompt-delivery prefix)))
                          :text text :default default)))

(defun magy-context-here (project &optional kinds item)
  "Return the context of a prompt to PROJECT: what is here, or only ITEM.
KINDS are as in `magy-prompt-compose'."
  (let ((context (magy-context--make :project project :kinds kinds)))
    (cond (item (magy-context--known context nil)
                (magy-context-add context item))
          ((and (equal kinds '("selection")) (not (use-region-p)))
           (magy-context--known context nil))
          (t (magy-context--collect context)))
    context))

(cl-defun magy-context-compose (prompt context then &key text default)
  "Read a text after PROMPT; call THEN with it and the blocks that CONTEXT gives.
TEXT, if not nil, is what would be read, and DEFAULT stands for nothing."
  (let ((text (or text (magy-context--read prompt context default))))
    (deactivate-mark)
    (magy-context-when-known context
                             (lambda () (funcall then text (magy-context-blocks context))))))

(provide 'magy-context)
;;; magy-context.el ends here
