;;; magy-buffers.el --- Live buffers for Magy's agents  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Magy authors
;; SPDX-License-Identifier: GPL-3.0-or-later
;; This is free software with no warranty at all; see the file COPYING.

;;; Commentary:

;; `magy-mode' tells the server what a file buffer holds, unsaved text
;; included: didOpen, incremental didChange with versions, didSave and
;; didClose.  Changes are sent in small batches.  An edit by the server
;; names the version it was made for; if the buffer is not exactly that
;; any more, the edit is refused and nothing changes.

;;; Code:

(require 'magy-connection)

(cl-defstruct (magy-document (:constructor magy-document--make) (:copier nil))
  "What the server was told about a buffer."
  project uri
  (version 0)
  changes                               ; not yet sent, newest first; or t: send all
  before                                ; (BEG END RANGE) of the change going on
  tick)                                 ; `buffer-chars-modified-tick' of what is known

(defvar-local magy--document nil
  "The buffer's `magy-document' while the server knows it.")
(put 'magy--document 'permanent-local t)

(defvar magy-mode)

(defvar magy--flush-timer nil
  "Timer that sends changes soon.")

(defconst magy--flush-delay 0.1
  "Seconds for which changes are collected before they are sent.")

;;;; Positions

(defun magy--wide (encoding beg end)
  "Return how many more units than characters ENCODING needs from BEG to END."
  (if (eq encoding 'utf-32)
      0
    (save-excursion
      (goto-char beg)
      (let ((count 0))
        (while (re-search-forward "[\U00010000-\U0010ffff]" end t)
          (cl-incf count))
        count))))

(defun magy--position (pos encoding)
  "Return the LSP position of buffer position POS in ENCODING."
  (save-excursion
    (save-restriction
      (widen)
      (goto-char pos)
      (let ((bol (let ((inhibit-field-text-motion t)) (line-beginning-position))))
        (list :line (1- (line-number-at-pos pos t))
              :character (+ (- pos bol) (magy--wide encoding bol pos)))))))

(defun magy--point (position encoding)
  "Return the buffer position of LSP POSITION in ENCODING.
A character beyond the end of its line means that end."
  (save-excursion
    (save-restriction
      (widen)
      (goto-char (point-min))
      (let ((inhibit-field-text-motion t)
            (left (plist-get position :character)))
        (when (and (zerop (forward-line (plist-get position :line))) (bolp))
          (if (eq encoding 'utf-32)
              (goto-char (min (line-end-position) (+ (point) left)))
            (while (and (> left 0) (not (eolp)))
              (cl-decf left (if (> (char-after) #xffff) 2 1))
              (forward-char))))
        (point)))))

(defun magy--range (beg end encoding)
  "Return the LSP range from BEG to END in ENCODING."
  (list :start (magy--position beg encoding) :end (magy--position end encoding)))

(defun magy--text (&optional beg end)
  "Return the current buffer's text from BEG to END, or all of it, for JSON."
  (save-restriction
    (widen)
    (magy--json-text (buffer-substring-no-properties (or beg (point-min))
                                                     (or end (point-max))))))

;;;; Telling the server

(defun magy--language-id ()
  "Return LSP's name for the language of the current buffer."
  (string-remove-suffix "-ts" (string-remove-suffix "-mode" (symbol-name major-mode))))

(defun magy--document-id (&optional versioned)
  "Return LSP's identifier of the current document, with its version if VERSIONED."
  (append (list :uri (magy-document-uri magy--document))
          (and versioned (list :version (magy-document-version magy--document)))))

(defun magy--open ()
  "Tell the server about the current buffer if its project's server is ready."
  (when-let ((path (and magy-mode (null magy--document) buffer-file-name
                        (not (file-remote-p buffer-file-name))
                        (file-truename buffer-file-name)))
             (project (magy--project-of-file path)))
    (setq magy--document
          (magy-document--make :project project :uri (magy--path-to-uri path)
                               :tick (buffer-chars-modified-tick)))
    (magy-notify project 'textDocument/didOpen
                 (list :textDocument (append (magy--document-id t)
                                             (list :languageId (magy--language-id)
                                                   :text (magy--text)))))))

(defun magy--close ()
  "Tell the server that the current buffer is no longer open."
  (when-let ((document magy--document))
    (let ((id (magy--document-id)))
      (setq magy--document nil)
      (when (magy-live-p (magy-document-project document))
        (magy-notify (magy-document-project document) 'textDocument/didClose
                     (list :textDocument id))))))

(defun magy--reopen ()
  "Close and open the current document: its file has another name."
  (magy--close)
  (magy--open))

(defun magy--before-change (beg end)
  "Keep where the text between BEG and END is, in the terms of before the change."
  (when-let ((document magy--document))
    (setf (magy-document-before document)
          (list beg end (magy--range beg end (magy-project-encoding
                                              (magy-document-project document)))))))

(defun magy--after-change (beg end length)
  "Queue the change that put BEG to END in the place of LENGTH characters.
When it is not the change that was announced (some primitives announce
more than they do), the whole text will be sent."
  (when-let ((document magy--document))
    (pcase-let ((`(,old-beg ,old-end ,range) (magy-document-before document))
                (changes (magy-document-changes document)))
      (setf (magy-document-before document) nil
            (magy-document-tick document) (buffer-chars-modified-tick)
            (magy-document-changes document)
            (if (and (listp changes) (eql beg old-beg) (eql length (- old-end old-beg)))
                (cons (list :range range :text (magy--text beg end)) changes)
              t)))
    (unless magy--flush-timer
      (setq magy--flush-timer (run-with-timer magy--flush-delay nil #'magy--flush-soon)))))

(defun magy--flush-soon ()
  "Send what waits in all buffers; called by the timer."
  (setq magy--flush-timer nil)
  (dolist (project (hash-table-values magy--projects))
    (magy--guarded "sending changes" (magy--flush-project project))))

(defun magy--changed-p ()
  "Return non-nil if the current buffer is not what the server knows."
  (or (magy-document-changes magy--document)
      (/= (magy-document-tick magy--document) (buffer-chars-modified-tick))))

(defun magy--flush ()
  "Send the current buffer's changes, if any."
  (when (and magy--document (magy--changed-p))
    (let* ((document magy--document)
           (changes (magy-document-changes document))
           (known (= (magy-document-tick document) (buffer-chars-modified-tick))))
      (cl-incf (magy-document-version document))
      (setf (magy-document-changes document) nil
            (magy-document-tick document) (buffer-chars-modified-tick))
      (magy-notify (magy-document-project document) 'textDocument/didChange
                   (list :textDocument (magy--document-id t)
                         :contentChanges
                         (if (and known (listp changes))
                             (vconcat (nreverse changes))
                           (vector (list :text (magy--text)))))))))

(defun magy--flush-project (project)
  "Send the changes of all buffers of PROJECT."
  (when (magy-project-ready project)
    (dolist (buffer (buffer-list))
      (when-let ((document (buffer-local-value 'magy--document buffer)))
        (when (eq project (magy-document-project document))
          (with-current-buffer buffer (magy--flush)))))))

(add-hook 'magy-before-send-functions #'magy--flush-project)

(defun magy--after-save ()
  "Tell the server that the buffer was saved."
  (when magy--document
    (magy--flush)
    (magy-notify (magy-document-project magy--document) 'textDocument/didSave
                 (list :textDocument (magy--document-id)))))

(defun magy--after-revert ()
  "Send the whole text: reverting may change it in ways no hook sees."
  (when magy--document
    (setf (magy-document-changes magy--document) t)
    (magy--flush)))

;;;; The mode

(defconst magy--hooks
  '((before-change-functions . magy--before-change)
    (after-change-functions . magy--after-change)
    (after-save-hook . magy--after-save)
    (after-revert-hook . magy--after-revert)
    (after-set-visited-file-name-hook . magy--reopen)
    (kill-buffer-hook . magy--close))
  "Buffer-local hooks of `magy-mode'.")

;; Reverting runs the major mode again, which kills local variables.
(dolist (hook magy--hooks)
  (put (cdr hook) 'permanent-local-hook t))

;;;###autoload
(define-minor-mode magy-mode
  "Let Magy's agents see and edit this buffer, unsaved text included.
It comes on by itself in the files of a project where Magy was started."
  :lighter " Magy"
  (dolist (hook magy--hooks)
    (if magy-mode
        (add-hook (car hook) (cdr hook) nil t)
      (remove-hook (car hook) (cdr hook) t)))
  (if magy-mode (magy--open) (magy--close)))
(put 'magy-mode 'permanent-local t)

(defun magy--turn-on ()
  "Turn `magy-mode' on where it makes sense: in a buffer of a local file."
  (when (and buffer-file-name (not magy-mode) (not (file-remote-p buffer-file-name)))
    (magy-mode)))

;;;###autoload
(define-globalized-minor-mode global-magy-mode magy-mode magy--turn-on
  :group 'magy)

(defun magy--open-all (_project)
  "Tell a server, which has become ready, about all its buffers."
  (add-hook 'find-file-hook #'magy--join)
  (dolist (buffer (buffer-list))
    (with-current-buffer buffer
      (magy--join)
      (magy--open))))

(defun magy--join ()
  "Turn `magy-mode' on if the buffer's file is in a project where Magy runs."
  (when (and buffer-file-name (not magy-mode) (not (file-remote-p buffer-file-name))
             (magy--project-of-file (file-truename buffer-file-name)))
    (magy-mode)))

(add-hook 'magy-ready-functions #'magy--open-all)

(defun magy--forget-all (project _reason)
  "Nobody knows the buffers of PROJECT any more: its server has gone."
  (dolist (buffer (buffer-list))
    (when-let ((document (buffer-local-value 'magy--document buffer)))
      (when (eq project (magy-document-project document))
        (with-current-buffer buffer (setq magy--document nil))))))

(add-hook 'magy-death-functions #'magy--forget-all)

;;;; Edits by the server

(defun magy--buffer-of (uri)
  "Return the buffer whose document has URI, or nil."
  (cl-find-if (lambda (buffer)
                (when-let ((document (buffer-local-value 'magy--document buffer)))
                  (equal uri (magy-document-uri document))))
              (buffer-list)))

(defun magy--document-edits (edit)
  "Return a list (URI VERSION EDITS) for each document in the WorkspaceEdit EDIT."
  (if-let ((changes (plist-get edit :documentChanges)))
      (mapcar (lambda (change)
                (when (plist-get change :kind)
                  (error "Emacs does not %s files for Magy" (plist-get change :kind)))
                (list (magy--get change :textDocument :uri)
                      (magy--get change :textDocument :version)
                      (plist-get change :edits)))
              changes)
    (cl-loop for (uri edits) on (plist-get edit :changes) by #'cddr
             collect (list (substring (symbol-name uri) 1) nil edits))))

(defun magy--refusal (buffer version)
  "Return why BUFFER cannot take an edit made for VERSION, or nil if it can."
  (if (null buffer)
      "The file is not open in Emacs."
    (with-current-buffer buffer
      (let ((now (magy-document-version magy--document)))
        (cond ((and version (magy--changed-p))
               (magy--flush)
               (format "%s was changed meanwhile." (buffer-name)))
              ((and version (/= version now))
               (format "%s is at version %d, the edit is for %d." (buffer-name) now version))
              (buffer-read-only (format "%s is read-only in Emacs." (buffer-name)))
              ((not (verify-visited-file-modtime))
               (format "%s was changed on disk; revert the buffer first." (buffer-name))))))))

(defun magy--replace (beg end text)
  "Put TEXT in the place of BEG to END, keeping markers in what stays the same."
  (if (or (= beg end) (equal text ""))
      (progn (goto-char beg)
             (delete-region beg end)
             (insert text))
    (let ((target (current-buffer)))
      (with-temp-buffer
        (insert text)
        (let ((source (current-buffer)))
          (with-current-buffer target
            (save-restriction
              (narrow-to-region beg end)
              (replace-buffer-contents source 0.3))))))))

(defun magy--apply-edits (edits encoding)
  "Apply the LSP text EDITS, with positions in ENCODING, to the current buffer."
  (let ((places (mapcar (lambda (edit)
                          (list (magy--point (magy--get edit :range :start) encoding)
                                (magy--point (magy--get edit :range :end) encoding)
                                (plist-get edit :newText)))
                        edits)))
    (save-excursion
      (save-restriction
        (widen)
        ;; From the end, so that places stay true.  At one place: a replacement
        ;; first, then insertions, the last one first, so that they end in order.
        (pcase-dolist (`(,beg ,end ,text)
                       (sort (nreverse places)
                             (lambda (a b) (or (> (car a) (car b))
                                               (and (= (car a) (car b))
                                                    (> (cadr a) (cadr b)))))))
          (magy--replace beg end text))))))

(defun magy--apply-all (project documents)
  "Apply DOCUMENTS, a list of (BUFFER . EDITS) of PROJECT: all or nothing.
In each buffer the edits are one step of undo."
  (let ((handles (mapcar (lambda (document)
                           (with-current-buffer (car document)
                             (undo-boundary) ; what was typed before is another step
                             (prepare-change-group)))
                         documents))
        (create-lockfiles nil)          ; a lock held elsewhere would ask
        done)
    (unwind-protect
        (progn
          (mapc #'activate-change-group handles)
          (pcase-dolist (`(,buffer . ,edits) documents)
            (with-current-buffer buffer
              (magy--apply-edits edits (magy-project-encoding project))))
          (setq done t))
      (dolist (handle handles)
        (if (not done)
            (cancel-change-group handle)
          (undo-amalgamate-change-group handle)
          (accept-change-group handle))))
    (dolist (document documents)
      (with-current-buffer (car document)
        (undo-boundary)
        (magy--flush)))))

(cl-defmethod magy-handle-request (project (_method (eql 'workspace/applyEdit)) params)
  "Apply the edit in PARAMS to live buffers of PROJECT, or say why not."
  (condition-case err
      (let* ((edits (magy--document-edits (plist-get params :edit)))
             (refused (cl-some (pcase-lambda (`(,uri ,version ,_))
                                 (magy--refusal (magy--buffer-of uri) version))
                               edits)))
        (if refused
            (list :applied :json-false :failureReason refused)
          (magy--apply-all project (mapcar (pcase-lambda (`(,uri ,_ ,changes))
                                             (cons (magy--buffer-of uri) changes))
                                           edits))
          (list :applied t)))
    (error (list :applied :json-false :failureReason (error-message-string err)))))

(defun magy--save ()
  "Save the current buffer without asking anything; return non-nil if saved.
What would need a question is left to the person."
  (when (and (verify-visited-file-modtime)
             (not buffer-read-only)
             (not (unencodable-char-position (point-min) (point-max)
                                             buffer-file-coding-system)))
    (make-directory (file-name-directory buffer-file-name) t)
    (let ((save-silently t)
          (create-lockfiles nil))
      (basic-save-buffer))
    (not (buffer-modified-p))))

(cl-defmethod magy-handle-request (_project (_method (eql 'magy/editor/save)) params)
  "Save the buffer of the document in PARAMS."
  (let ((buffer (magy--buffer-of (plist-get params :uri))))
    (list :saved (if (and buffer (with-current-buffer buffer (magy--save)))
                     t
                   :json-false))))

(provide 'magy-buffers)
;;; magy-buffers.el ends here
