;;; magy-complete.el --- Completion in prompts  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Magy authors
;; SPDX-License-Identifier: GPL-3.0-or-later
;; This is free software with no warranty at all; see the file COPYING.

;;; Commentary:

;; What follows an @ is completed: files, symbols, skills, agents, commands;
;; and at the beginning of a prompt what follows a /: actions.  The server
;; knows them, and is asked without waiting: the function in
;; `completion-at-point-functions' returns what has arrived, and when
;; that is nothing yet, completion is tried again as soon as it has.

;;; Code:

(require 'magy-session)

(cl-defstruct (magy-complete (:constructor magy-complete--make) (:copier nil))
  "What the server said of one text before point."
  before                                ; that text
  prefix                                ; its end, which an item replaces
  items                                 ; list of item plists
  incomplete                            ; there are more than these
  wanted)                               ; buffer in which a person waits for it

(defvar-local magy-complete--project nil
  "The project of the prompt in this buffer.")

(defvar-local magy-complete--start #'point-min
  "Function that returns where the prompt in this buffer begins.")

(defvar-local magy-complete--last nil
  "The last answer, a `magy-complete'.")

(defvar-local magy-complete--asked nil
  "The question that is open, a `magy-complete' without items.")

;; After @spawn comes the name of an agent, and perhaps a switch.
(defconst magy-complete--typed
  (concat "\\`[[:space:]]*\\(?:/[a-z0-9_-]*\\|@spawn[ \t]+[^[:space:]]*"
          "\\(?:[ \t]+-[^[:space:]]*\\)?\\)\\'"
          "\\|\\(?:\\`\\|[^[:alnum:]_.@/\\+-]\\)"
          "@\\(?:\"[^\"\n]*\\|[^[:space:]\"]*\\)\\'")
  "What a prompt ends in where it is completed.")

(defun magy-complete-setup (project &optional start)
  "Complete prompts to PROJECT in this buffer, which begin where START says.
START is a function; without it they begin after the minibuffer's prompt."
  (setq magy-complete--project project
        magy-complete--start (or start #'minibuffer-prompt-end))
  (add-hook 'completion-at-point-functions #'magy-complete-at-point nil t))

(defun magy-complete--before ()
  "Return the text of the prompt before point if it is completed there, else nil."
  (let ((before (buffer-substring-no-properties (min (point) (funcall magy-complete--start))
                                                (point))))
    (and (string-match-p magy-complete--typed before)
         before)))

(defun magy-complete-at-point ()
  "Complete the mention before point; for `completion-at-point-functions'."
  (when-let ((before (and magy-complete--project (magy-complete--before))))
    (let ((known (magy-complete--answer before)))
      (if (null known)
          (prog1 nil (magy-complete--ask before))
        (magy-complete--say-none known before)
        (let ((length (+ (length (magy-complete-prefix known))
                         (- (length before) (length (magy-complete-before known))))))
          (list (- (point) length) (point)
                (magy-complete--table (magy-complete-items known))
                :exclusive 'no
                :annotation-function (magy-complete--annotation known)
                :company-kind (magy-complete--kind known)))))))

(defun magy-complete--wanted-p ()
  "Return non-nil if a person asks for completion, not a package that offers it."
  (memq this-command '(completion-at-point magy-complete)))

(defun magy-complete--say-none (known before)
  "Say so if a person waits for what completes BEFORE and KNOWN has nothing."
  (when (magy-complete--wanted-p)
    (let ((typed (substring before (- (length (magy-complete-before known))
                                      (length (magy-complete-prefix known))))))
      (unless (magy-complete--matching typed (magy-complete-items known))
        (message "Magy knows nothing that %s could be" typed)))))

(defun magy-complete--answer (before)
  "Return the last answer if it says what completes BEFORE, else nil.
It does if BEFORE only goes on where the answer's text ended, in the same
mention, and the answer left nothing out."
  (let ((last magy-complete--last))
    (and last
         (or (equal before (magy-complete-before last))
             (and (not (magy-complete-incomplete last))
                  (string-prefix-p (magy-complete-before last) before)
                  ;; Another directory has other files.
                  (not (string-match-p "[[:space:]/:]"
                                       (substring before
                                                  (length (magy-complete-before last)))))))
         last)))

(defun magy-complete--ask (before)
  "Ask the server what completes BEFORE, unless it has been asked."
  (let* ((buffer (current-buffer))
         (project magy-complete--project)
         (wanted (and (magy-complete--wanted-p) buffer))
         (asked (magy-complete--make :before before :wanted wanted)))
    (if (and magy-complete--asked (equal before (magy-complete-before magy-complete--asked)))
        (when wanted (setf (magy-complete-wanted magy-complete--asked) wanted))
      (setq magy-complete--asked asked)
      (magy-when-ready
       project
       (lambda ()
         (magy-request
          project 'magy/prompt/complete
          (append (list :cwd (directory-file-name (magy-project-root project))
                        :before (magy--json-text before))
                  (and (eq t (magy-project-attached project))
                       (list :sessionId (magy-project-session project))))
          (lambda (result) (magy-complete--arrived buffer asked result))
          (lambda (problem)
            (magy--log-at 'warn "completion: %s" (plist-get problem :message))
            (magy-complete--arrived buffer asked nil))))))))

(defun magy-complete--arrived (buffer asked result)
  "RESULT, which ASKED in BUFFER asked for, is there; complete if somebody waits."
  (when (buffer-live-p buffer)
    (with-current-buffer buffer
      (when (eq asked magy-complete--asked)
        (setq magy-complete--asked nil)
        (setf (magy-complete-prefix asked) (or (plist-get result :prefix) "")
              (magy-complete-items asked) (append (plist-get result :items) nil)
              (magy-complete-incomplete asked) (magy--true (plist-get result :incomplete)))
        (setq magy-complete--last asked)
        ;; Not in the process filter: completion may do anything.
        (when (magy-complete-wanted asked)
          (run-with-timer 0 nil #'magy-complete--again buffer
                          (magy-complete-before asked)))))))

(defun magy-complete--again (buffer before)
  "Complete BEFORE in BUFFER if point is still behind it."
  (when (and (buffer-live-p buffer)
             (eq buffer (window-buffer (selected-window))))
    (with-current-buffer buffer
      (when (equal before (magy-complete--before))
        (if (minibufferp)
            (let ((this-command 'magy-complete))
              (magy-complete))
          (let ((this-command 'completion-at-point))
            (completion-at-point)))))))

;; `completion-at-point' is for other buffers than the minibuffer, where
;; completion has a meaning of its own.
(defun magy-complete ()
  "Complete the mention before point, in the minibuffer."
  (interactive)
  (unless magy-complete--project
    (user-error "This works only where you write a prompt"))
  (pcase (magy-complete-at-point)
    (`(,beg ,end ,table . ,_)
     (let* ((string (buffer-substring-no-properties beg end))
            (texts (all-completions string table))
            (longer (try-completion string table)))
       (cond ((null texts) (message "No match"))
             ((and (stringp longer) (not (equal longer string)))
              (delete-region beg end)
              (goto-char beg)
              (insert longer))
             ((cdr texts)
              (with-output-to-temp-buffer "*Completions*"
                (display-completion-list texts))
              (with-current-buffer "*Completions*"
                (setq-local completion-base-position (list beg end)))))))))

;;;; As the server says

(defun magy-complete--matching (string items)
  "Return the texts of ITEMS that go with STRING, which the person typed."
  (let* ((typed (string-trim string "@\"?"))
         (fits (lambda (item)
                 (or (string-search (downcase typed) (downcase (plist-get item :text)))
                     (string-search (downcase typed) (downcase (plist-get item :label)))))))
    (mapcar (lambda (item) (plist-get item :text)) (seq-filter fits items))))

(defun magy-complete--table (items)
  "Return a completion table of ITEMS, whose texts may begin otherwise than typed."
  (lambda (string predicate action)
    (pcase action
      ('metadata '(metadata (category . magy-mention)
                            (display-sort-function . identity)
                            (cycle-sort-function . identity)))
      (`(boundaries . ,_) nil)
      ('t (seq-filter (or predicate #'identity) (magy-complete--matching string items)))
      ('lambda (and (member string (magy-complete--matching string items)) t))
      (_ (magy-complete--try string (magy-complete--matching string items))))))

(defun magy-complete--try (string texts)
  "Return what STRING can be completed to, if it can only become one of TEXTS."
  (cond ((null texts) nil)
        ((and (null (cdr texts)) (equal string (car texts))) t)
        ((null (cdr texts)) (car texts))
        (t (let ((common (try-completion "" texts)))
             (if (and (stringp common) (string-prefix-p string common)) common string)))))

(defun magy-complete--style-try (string table predicate _point)
  "Complete STRING in TABLE with PREDICATE as the table itself says."
  (let ((result (funcall table string predicate nil)))
    (if (stringp result) (cons result (length result)) result)))

(defun magy-complete--style-all (string table predicate _point)
  "Return all completions of STRING in TABLE with PREDICATE."
  (funcall table string predicate t))

(add-to-list 'completion-styles-alist
             '(magy-mention magy-complete--style-try magy-complete--style-all
                            "What Magy's server offers, as it offers it."))
(add-to-list 'completion-category-defaults '(magy-mention (styles magy-mention)))

(defun magy-complete--item (known text)
  "Return the item of KNOWN whose text is TEXT."
  (cl-find text (magy-complete-items known) :test #'equal
           :key (lambda (item) (plist-get item :text))))

(defun magy-complete--annotation (known)
  "Return the annotation function of KNOWN."
  (lambda (text)
    (let* ((item (magy-complete--item known text))
           (detail (plist-get item :detail)))
      (concat "  " (plist-get item :kind)
              (if (member detail '(nil "")) "" (concat "  " detail))))))

(defun magy-complete--kind (known)
  "Return the function that tells Company and Corfu the kinds of KNOWN's items."
  (lambda (text)
    (pcase (plist-get (magy-complete--item known text) :kind)
      ("file" 'file) ("directory" 'folder) ("symbol" 'function) ("skill" 'module)
      ("action" 'event) ("agent" 'class)
      (_ 'keyword))))

(provide 'magy-complete)
;;; magy-complete.el ends here
