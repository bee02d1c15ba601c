;;; magy-rewrite.el --- Rewriting text in its place  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Magy authors
;; SPDX-License-Identifier: GPL-3.0-or-later
;; This is free software with no warranty at all; see the file COPYING.

;;; Commentary:

;; A selection and an instruction become pending changes right there,
;; without a transcript.  While the answer streams, what will stand there
;; is shown below the dimmed selection; the buffer itself is changed once,
;; by the server, and one may go on typing elsewhere.

;;; Code:

(require 'magy-review-draw)

(defcustom magy-rewrite-lines 40
  "How many lines of a draft are shown while it streams: the last ones."
  :type 'natnum
  :group 'magy-review
  :package-version '(magy . "0.1"))

(defface magy-rewrite-old '((t :inherit shadow))
  "Face of text that is being rewritten."
  :group 'magy-review)

(defface magy-rewrite-new '((t :inherit magy-review-added))
  "Face of the draft of what will stand there."
  :group 'magy-review)

(defvar magy-rewrite-history nil
  "Instructions that were given.")

(cl-defstruct (magy-rewrite (:constructor magy-rewrite--make) (:copier nil))
  "Text that is being rewritten."
  project uri overlay
  session                               ; nil until the server has answered
  instruction)

(defvar magy-rewrite--all nil
  "What is being rewritten now: a list of `magy-rewrite'.")

(defvar magy-rewrite-map
  (let ((map (make-sparse-keymap)))
    (define-key map (kbd "C-g") #'magy-rewrite-cancel)
    map)
  "Keymap in text that is being rewritten.")

;;;; What is shown

(defun magy-rewrite--begin (project uri beg end instruction)
  "Show that BEG to END of the current buffer, URI of PROJECT, is rewritten.
Return the `magy-rewrite'; INSTRUCTION is what was asked."
  (let ((rewrite (magy-rewrite--make
                  :project project :uri uri :instruction instruction
                  ;; Point is often right behind a selection: the keys hold there, too.
                  :overlay (make-overlay beg end nil nil t))))
    (overlay-put (magy-rewrite-overlay rewrite) 'magy-rewrite rewrite)
    (overlay-put (magy-rewrite-overlay rewrite) 'face 'magy-rewrite-old)
    (overlay-put (magy-rewrite-overlay rewrite) 'priority -5)
    (overlay-put (magy-rewrite-overlay rewrite) 'keymap magy-rewrite-map)
    (push rewrite magy-rewrite--all)
    (magy-rewrite--draw rewrite "")
    rewrite))

(defun magy-rewrite--draw (rewrite text)
  "Show TEXT as the draft of REWRITE, below the selection."
  (let* ((overlay (magy-rewrite-overlay rewrite))
         (lines (and (not (string-empty-p text)) (magy-review--line-texts text)))
         (hidden (max 0 (- (length lines) magy-rewrite-lines))))
    (when (overlay-buffer overlay)
      (with-current-buffer (overlay-buffer overlay)
        (save-excursion
          (goto-char (overlay-end overlay))
          (overlay-put
           overlay 'after-string
           (concat
            (unless (bolp) "\n")
            (propertize
             (format "⟳ %s%s\n" (magy-rewrite--short (magy-rewrite-instruction rewrite))
                     (if (> hidden 0) (format "  (%d lines before)" hidden) ""))
             'face 'magy-review-note)
            (propertize (mapconcat (lambda (line) (concat line "\n")) (nthcdr hidden lines) "")
                        'face 'magy-rewrite-new))))))))

(defun magy-rewrite--short (instruction)
  "Return INSTRUCTION, in one line that is not long."
  (truncate-string-to-width (replace-regexp-in-string "[ \t\n]+" " " instruction) 60 nil nil "…"))

(defun magy-rewrite--end (rewrite)
  "REWRITE is over: show nothing of it any more."
  (setq magy-rewrite--all (delq rewrite magy-rewrite--all))
  (delete-overlay (magy-rewrite-overlay rewrite)))

(defun magy-rewrite--died (project _reason)
  "The server of PROJECT has gone, and its rewrites with it."
  (dolist (rewrite magy-rewrite--all)
    (when (eq project (magy-rewrite-project rewrite))
      (magy-rewrite--end rewrite))))

(add-hook 'magy-death-functions #'magy-rewrite--died)

;;;; Drafts

(defun magy-rewrite--of (project params)
  "Return the rewrite in PROJECT that the draft PARAMS belongs to, or nil.
One that was begun elsewhere, by a code action say, is shown from now on."
  (let ((session (plist-get params :sessionId)) (uri (plist-get params :uri)))
    (or (cl-find session magy-rewrite--all :test #'equal :key #'magy-rewrite-session)
        (when-let ((own (cl-find-if (lambda (rewrite)
                                      (and (null (magy-rewrite-session rewrite))
                                           (equal uri (magy-rewrite-uri rewrite))))
                                    magy-rewrite--all)))
          ;; The first draft may come before the answer that names the session.
          (setf (magy-rewrite-session own) session)
          own)
        (when-let ((buffer (and (equal "streaming" (plist-get params :state))
                                (magy--buffer-of uri))))
          (with-current-buffer buffer
            (let* ((encoding (magy-project-encoding project))
                   (rewrite (magy-rewrite--begin
                             project uri
                             (magy--point (magy--get params :range :start) encoding)
                             (magy--point (magy--get params :range :end) encoding)
                             "Rewriting")))
              (setf (magy-rewrite-session rewrite) session)
              rewrite))))))

(cl-defmethod magy-handle-notification (project (_method (eql 'magy/rewrite/draft)) params)
  "Show the draft in PARAMS, of a rewrite in PROJECT, or its end."
  (let ((rewrite (magy-rewrite--of project params))
        (message (or (plist-get params :message) ""))
        (state (plist-get params :state)))
    (if (equal state "streaming")
        (when rewrite (magy-rewrite--draw rewrite (plist-get params :text)))
      (when rewrite (magy-rewrite--end rewrite))
      (magy--message "Magy: %s%s%s"
                     (pcase state
                       ("applied" "rewritten; accept or reject it")
                       ("cancelled" "the rewrite was stopped")
                       (_ "nothing was rewritten"))
                     (if (string-empty-p message) "" (concat ".  " message))
                     (magy-rewrite--saved state (plist-get params :text))))))

(defun magy-rewrite--saved (state text)
  "Keep TEXT, that of a rewrite which ended in STATE, if it would be lost; say so."
  (if (or (not (equal state "failed")) (string-empty-p text))
      ""
    (kill-new text)
    (substitute-command-keys "  (\\[yank] inserts the new text)")))

;;;; Commands

(defun magy-rewrite--bounds ()
  "Return (BEG . END) of what is to be rewritten: region, function or paragraph.
On an empty line that is point alone: a place to write at."
  (cond ((use-region-p) (cons (region-beginning) (region-end)))
        ((and (derived-mode-p 'prog-mode) (bounds-of-thing-at-point 'defun)))
        ((save-excursion (beginning-of-line) (looking-at-p "[ \t]*$")) (cons (point) (point)))
        ((bounds-of-thing-at-point 'paragraph))
        (t (cons (line-beginning-position) (line-end-position)))))

(defun magy-rewrite--read (beg end)
  "Read what is to be done with the text from BEG to END; set it off meanwhile."
  (let ((overlay (make-overlay beg end))
        (first (line-number-at-pos beg t))
        (last (line-number-at-pos (max beg (1- end)) t)))
    (overlay-put overlay 'face 'region)
    (unwind-protect
        (read-string (cond ((= beg end) (format "Write at line %d: " first))
                           ((= first last) (format "Rewrite line %d: " first))
                           (t (format "Rewrite lines %d-%d: " first last)))
                     nil 'magy-rewrite-history)
      (delete-overlay overlay))))

;;;###autoload
(defun magy-rewrite (beg end instruction)
  "Rewrite the text from BEG to END as INSTRUCTION says.
That is the region, or else the function or paragraph at point; on an
empty line, text is written there.  The change is then under review.
\\<magy-rewrite-map>While it streams, \\[magy-rewrite-cancel] in the text stops it."
  (interactive (pcase-let ((`(,beg . ,end) (magy-rewrite--bounds)))
                 (barf-if-buffer-read-only)
                 (list beg end (magy-rewrite--read beg end))))
  (when (string-blank-p instruction) (user-error "Nothing to do"))
  (unless (and buffer-file-name (not (file-remote-p buffer-file-name)))
    (user-error "Magy can only rewrite text in a local file"))
  (deactivate-mark)
  (let ((project (magy-current-project)) (buffer (current-buffer))
        (beg (copy-marker beg)) (end (copy-marker end t)))
    (magy-when-ready project
                     (lambda ()
                       (when (buffer-live-p buffer)
                         (with-current-buffer buffer
                           (magy-rewrite--start beg end instruction)))))))

(defun magy-rewrite--start (beg end instruction)
  "Have the text from BEG to END, markers, rewritten as INSTRUCTION says."
  (unless magy-mode (magy-mode))
  (if (null magy--document)
      (magy--message "Magy: %s does not belong to an open project" (buffer-name))
    (let* ((project (magy-document-project magy--document))
           (uri (magy-document-uri magy--document))
           (range (magy--range beg end (magy-project-encoding project)))
           (rewrite (magy-rewrite--begin project uri beg end instruction)))
      (magy-request
       project 'magy/rewrite/start
       (list :requestKey (magy--new-id "rewrite") :uri uri :range range
             :instruction (magy--json-text instruction))
       (lambda (result) (setf (magy-rewrite-session rewrite) (plist-get result :sessionId)))
       (lambda (problem)
         (magy-rewrite--end rewrite)
         (magy--message "Magy: %s" (plist-get problem :message)))))))

(defun magy-rewrite--here ()
  "Return the rewrite at point, or the only one in the current buffer."
  (let ((own (cl-remove-if-not (lambda (rewrite)
                                 (eq (current-buffer)
                                     (overlay-buffer (magy-rewrite-overlay rewrite))))
                               magy-rewrite--all)))
    (or (cl-find-if (lambda (rewrite)
                      (<= (overlay-start (magy-rewrite-overlay rewrite)) (point)
                          (overlay-end (magy-rewrite-overlay rewrite))))
                    own)
        (and (null (cdr own)) (car own)))))

(defun magy-rewrite-cancel ()
  "Stop the rewrite at point, or the only one in this buffer.
Return non-nil if there is one."
  (interactive)
  (let ((rewrite (magy-rewrite--here)))
    (cond ((null rewrite)
           (when (called-interactively-p 'any) (user-error "No rewrite is running here")))
          ((magy-rewrite-session rewrite)
           (magy-request (magy-rewrite-project rewrite) 'magy/session/cancel
                         (list :sessionId (magy-rewrite-session rewrite)) #'ignore))
          (t (magy--message "Magy: it has not started yet; try again")))
    rewrite))

(add-hook 'magy-cancel-functions #'magy-rewrite-cancel)

(provide 'magy-rewrite)
;;; magy-rewrite.el ends here
