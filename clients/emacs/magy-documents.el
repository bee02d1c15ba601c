;;; magy-documents.el --- What the server is told of buffers  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Magy authors
;; SPDX-License-Identifier: GPL-3.0-or-later
;; This is free software with no warranty at all; see the file COPYING.

;;; Commentary:

;; didOpen, incremental didChange with versions, didSave and didClose.
;; Changes are sent in small batches.  What the server could not be told
;; is kept: a change that was not sent makes the whole text be sent as
;; soon as that can be done, so that both sides always mean one text.

;;; Code:

(require 'magy-connection)
(require 'magy-positions)

(cl-defstruct (magy-document (:constructor magy-document--make) (:copier nil))
  "What the server was told about a buffer."
  project uri
  (version 0)
  changes                               ; not yet sent, newest first; or t: send all
  (count 0)                             ; how many CHANGES there are
  before                                ; (BEG END RANGE SIZE) before the change going on
  tick)                                 ; `buffer-chars-modified-tick' of what is known

(defvar-local magy--document nil
  "The buffer's `magy-document' while the server knows it.")
(put 'magy--document 'permanent-local t)

(defvar magy-mode)

(defvar magy--replacing nil
  "Where an edit by the server is being made, as markers (BEG . END).
What is changed within is told as one change when it is done.")

(defvar magy--flush-timer nil
  "Timer that sends changes soon.")

(defconst magy--flush-delay 0.1
  "Seconds for which changes are collected before they are sent.")

(defconst magy--most-changes 100
  "So many changes are sent one by one; for more, the whole text is sent.
It is then cheaper for both sides.")

;;;; Opening and closing

(defun magy--buffers (&optional project)
  "Return the buffers that the server of PROJECT, or any, knows.
An indirect buffer shares the text and has no document of its own."
  (cl-remove-if-not
   (lambda (buffer)
     (when-let ((document (and (null (buffer-base-buffer buffer))
                               (buffer-local-value 'magy--document buffer))))
       (or (null project) (eq project (magy-document-project document)))))
   (buffer-list)))

(defun magy--here ()
  "Return the document of the current buffer, unless that is an indirect one."
  (and magy--document (null (buffer-base-buffer)) magy--document))

(defun magy--language-id ()
  "Return LSP's name for the language of the current buffer."
  (string-remove-suffix "-ts" (string-remove-suffix "-mode" (symbol-name major-mode))))

(defun magy--document-id ()
  "Return LSP's identifier of the current document, without its version."
  (list :uri (magy-document-uri magy--document)))

(defun magy--open ()
  "Tell the server about the current buffer if its project's server is ready."
  (when-let ((path (and magy-mode (null magy--document) (null (buffer-base-buffer))
                        buffer-file-name (not (file-remote-p buffer-file-name))
                        (file-truename buffer-file-name)))
             (project (magy--project-of-file path)))
    (let ((document (magy-document--make :project project :uri (magy--path-to-uri path)
                                         :tick (buffer-chars-modified-tick))))
      ;; What cannot be said now is said when the server reads again.
      (if (and (magy-writable-p project)
               (magy-notify project 'textDocument/didOpen
                            (list :textDocument
                                  (list :uri (magy-document-uri document)
                                        :version (magy-document-version document)
                                        :languageId (magy--language-id)
                                        :text (magy--text)))))
          (setq magy--document document)
        (magy-await project)))))

(defun magy--close ()
  "Tell the server that the current buffer is no longer open."
  (when-let ((document (magy--here)))
    (let ((id (magy--document-id))
          (project (magy-document-project document)))
      (setq magy--document nil)
      (when (magy-live-p project)
        (magy-notify-surely project 'textDocument/didClose (list :textDocument id))))))

(defun magy--reopen ()
  "Close and open the current document: its file has another name."
  (magy--close)
  (magy--open))

;;;; Changes

(defun magy--replacing-p ()
  "Return non-nil while an edit by the server is made in the current buffer."
  (and magy--replacing (eq (current-buffer) (marker-buffer (cdr magy--replacing)))))

(defun magy--before-change (beg end)
  "Keep where the text between BEG and END is, in the terms of before the change."
  (when-let ((document (and (not (magy--replacing-p)) (magy--here))))
    (setf (magy-document-before document)
          (and (listp (magy-document-changes document))
               (list beg end (magy--range beg end (magy-project-encoding
                                                   (magy-document-project document)))
                     (buffer-size))))))

(defun magy--after-change (beg end length)
  "Queue the change that put BEG to END in the place of LENGTH characters.
When it is not the change that was announced (some primitives announce
more than they do), the whole text will be sent."
  (if-let ((document (magy--here)))
      (pcase-let ((`(,old-beg ,old-end ,range ,size) (magy-document-before document)))
        (setf (magy-document-before document) nil
              (magy-document-tick document) (buffer-chars-modified-tick))
        (unless (and (magy--replacing-p) (<= (car magy--replacing) beg)
                     (<= end (cdr magy--replacing)))
          (magy--queue document (and range (eql beg old-beg) (eql length (- old-end old-beg))
                                     ;; Other hooks change things, too, and no hook sees it.
                                     (= (buffer-size) (+ size (- end beg length)))
                                     (list :range range :text (magy--text beg end))))))
    ;; In an indirect buffer: its base has the document.
    (when-let ((base (buffer-base-buffer))
               (document (buffer-local-value 'magy--document base)))
      (magy--queue document nil))))

(defun magy--queue (document change)
  "Have CHANGE of DOCUMENT sent soon, or the whole text if it is nil."
  (setf (magy-document-changes document)
        (and change (listp (magy-document-changes document))
             (<= (cl-incf (magy-document-count document)) magy--most-changes)
             (cons change (magy-document-changes document))))
  (unless (magy-document-changes document)
    (setf (magy-document-changes document) t))
  (unless magy--flush-timer
    (setq magy--flush-timer (run-with-timer magy--flush-delay nil #'magy--flush-soon))))

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
  "Send the current buffer's changes, if any.
If they cannot be sent, the server stays at the version that it knows,
and is sent the whole text later."
  (when (and (magy--here) (magy--changed-p) (not (magy--replacing-p)))
    (let* ((document magy--document)
           (changes (magy-document-changes document))
           (tick (buffer-chars-modified-tick))
           (version (1+ (magy-document-version document)))
           (project (magy-document-project document)))
      (if (and (magy-writable-p project)
               (magy-notify
                project 'textDocument/didChange
                (list :textDocument (append (magy--document-id) (list :version version))
                      :contentChanges
                      (if (and (consp changes) (= tick (magy-document-tick document)))
                          (vconcat (reverse changes))
                        (vector (list :text (magy--text)))))))
          (setf (magy-document-version document) version
                (magy-document-changes document) nil
                (magy-document-tick document) tick)
        (magy-await project)
        (setf (magy-document-changes document) t))
      (setf (magy-document-count document) 0))))

(defun magy--flush-project (project)
  "Send the changes of all buffers of PROJECT."
  (when (magy-project-ready project)
    (dolist (buffer (magy--buffers project))
      (with-current-buffer buffer (magy--flush)))))

(add-hook 'magy-before-send-functions #'magy--flush-project)

(defun magy--after-save ()
  "Tell the server that the buffer was saved."
  (when (magy--here)
    (magy--flush)
    (magy-notify (magy-document-project magy--document) 'textDocument/didSave
                 (list :textDocument (magy--document-id)))))

(defun magy--after-revert ()
  "Send the whole text: reverting may change it in ways no hook sees."
  (when (magy--here)
    (setf (magy-document-changes magy--document) t)
    (magy--flush)))

(defun magy--forget-all (project _reason)
  "Nobody knows the buffers of PROJECT any more: its server has gone."
  (dolist (buffer (magy--buffers project))
    (with-current-buffer buffer (setq magy--document nil))))

(add-hook 'magy-death-functions #'magy--forget-all)

(provide 'magy-documents)
;;; magy-documents.el ends here
