;;; magy-buffers.el --- Live buffers for Magy's agents  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Magy authors
;; SPDX-License-Identifier: GPL-3.0-or-later
;; This is free software with no warranty at all; see the file COPYING.

;;; Commentary:

;; `magy-mode' tells the server what a file buffer holds, unsaved text
;; included.  An edit by the server names the version it was made for; if
;; the buffer is not exactly that any more, it is refused and nothing
;; changes.

;;; Code:

(require 'magy-documents)

(defvar-local magy--lighter nil
  "What the mode line says behind the name of the mode, a string or nil.")
(put 'magy--lighter 'risky-local-variable t)

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
  :lighter (" Magy" magy--lighter)
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

(defun magy--catch-up (project)
  "Tell PROJECT's server, which reads again, what it has missed."
  (magy--flush-project project)
  (magy--open-all project))

(add-hook 'magy-awake-functions #'magy--catch-up)

(defun magy--cloned ()
  "Have an indirect buffer, which was just made, leave the document to its base."
  (when (buffer-base-buffer)
    (setq magy--document nil)))

(add-hook 'clone-indirect-buffer-hook #'magy--cloned)

(defun magy-buffers-unload-function ()
  "Take `magy-mode' out of all buffers, and `magy--join' out of its hook."
  (dolist (buffer (buffer-list))
    (with-current-buffer buffer
      (when magy-mode (magy-mode -1))))
  (when magy--flush-timer (cancel-timer magy--flush-timer))
  (remove-hook 'find-file-hook #'magy--join)
  (remove-hook 'clone-indirect-buffer-hook #'magy--cloned)
  (setq minor-mode-alist (assq-delete-all 'magy-mode minor-mode-alist))
  nil)

;;;; Edits by the server

(defun magy--buffer-of (uri)
  "Return the buffer whose document has URI, or nil."
  (cl-find-if (lambda (buffer)
                (equal uri (magy-document-uri (buffer-local-value 'magy--document buffer))))
              (magy--buffers)))

(defun magy--document-edits (edit)
  "Return a list (URI VERSION EDITS) for each document in the WorkspaceEdit EDIT."
  (if-let ((changes (plist-get edit :documentChanges)))
      (mapcar (lambda (change)
                (when (plist-get change :kind)
                  (error "Emacs cannot %s files for Magy" (plist-get change :kind)))
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
               (format "%s was changed in the meantime." (buffer-name)))
              ((and version (/= version now))
               (format "%s is at version %d, the edit is for %d." (buffer-name) now version))
              (buffer-read-only (format "%s is read-only in Emacs." (buffer-name)))
              ((not (verify-visited-file-modtime))
               (format "%s was changed on disk; revert the buffer first." (buffer-name))))))))

;; Comparing what is replaced keeps markers, and takes time: for long texts, or
;; many of them, only the ends that both share are left as they are.

(defconst magy--compare-limit 20000
  "So many characters are compared; replacing more is done plainly.")

(defconst magy--compare-time 0.3
  "Seconds that comparing may take for all edits of one document.")

(defun magy--shared (most same-p)
  "Return the greatest number up to MOST for which SAME-P holds, as it does below."
  (let ((low 0))
    (while (< low most)
      (let ((middle (/ (+ low most 1) 2)))
        (if (funcall same-p middle)
            (setq low middle)
          (setq most (1- middle)))))
    low))

(defun magy--replace-middle (beg end text)
  "Put TEXT in the place of BEG to END but for what is alike at both ends."
  (let* ((old (buffer-substring-no-properties beg end))
         (shorter (min (length old) (length text)))
         (head (magy--shared shorter (lambda (n)
                                       (eq t (compare-strings old 0 n text 0 n)))))
         (tail (magy--shared (- shorter head)
                             (lambda (n)
                               (eq t (compare-strings old (- (length old) n) nil
                                                      text (- (length text) n) nil))))))
    (goto-char (+ beg head))
    (delete-region (point) (- end tail))
    (insert (substring text head (- (length text) tail)))))

(defun magy--replace (beg end text seconds)
  "Put TEXT in the place of BEG to END, keeping markers in what stays the same.
To find that may take so many SECONDS."
  (if (or (= beg end) (equal text "") (<= seconds 0)
          (> (+ (- end beg) (length text)) magy--compare-limit))
      (magy--replace-middle beg end text)
    (let ((target (current-buffer)))
      (with-temp-buffer
        (insert text)
        (let ((source (current-buffer)))
          (with-current-buffer target
            (save-restriction
              (narrow-to-region beg end)
              (replace-buffer-contents source seconds))))))))

(defun magy--replace-as-one (beg end text seconds)
  "Do as `magy--replace' with BEG, END, TEXT and SECONDS.
The server is told of one change, however many it takes to make it."
  (let* ((document magy--document)
         (range (and (listp (magy-document-changes document))
                     (magy--range beg end (magy-project-encoding
                                           (magy-document-project document)))))
         (others (- (buffer-size) (- end beg)))
         (first (copy-marker beg))
         (last (copy-marker end t)))
    (let ((magy--replacing (cons first last)))
      (magy--replace beg end text seconds))
    (setf (magy-document-tick document) (buffer-chars-modified-tick))
    ;; A hook may have changed something else.
    (magy--queue document (and range (= others (- (buffer-size) (- last first)))
                               (list :range range :text (magy--text first last))))
    (set-marker first nil)
    (set-marker last nil)))

(defun magy--places (edits encoding)
  "Return the LSP EDITS, with positions in ENCODING, as (BEG END TEXT) each."
  (let ((from (list 0 1)))
    (mapcar (lambda (edit)
              (list (magy--point (magy--get edit :range :start) encoding from)
                    (magy--point (magy--get edit :range :end) encoding from)
                    (plist-get edit :newText)))
            edits)))

(defun magy--apply-edits (edits encoding)
  "Apply the LSP text EDITS, with positions in ENCODING, to the current buffer."
  (save-excursion
    (save-restriction
      (widen)
      (let ((places (magy--places edits encoding))
            (deadline (+ (float-time) magy--compare-time)))
        (when (> (length places) magy--most-changes)
          (setf (magy-document-changes magy--document) t))
        ;; From the end, so that places stay true.  At one place: a replacement
        ;; first, then insertions, the last one first, so that they end in order.
        (pcase-dolist (`(,beg ,end ,text)
                       (sort (nreverse places)
                             (lambda (a b) (or (> (car a) (car b))
                                               (and (= (car a) (car b))
                                                    (> (cadr a) (cadr b)))))))
          (magy--replace-as-one beg end text (- deadline (float-time))))))))

(defvar-local magy--step nil
  "The last edit by an agent: (TURN GROUP TICK).
GROUP is the change group with which that turn's edits in a row began.")

(defun magy--step-group (project)
  "Return the change group that an edit of PROJECT continues, or nil.
It is that of the edit before, if both are of one turn and nothing else
has changed the current buffer in between."
  (pcase magy--step
    ((and `(,turn ,began ,tick)
          (guard (and turn (eq turn (magy-project-turn project)) (listp buffer-undo-list)
                      (= tick (buffer-chars-modified-tick)))))
     began)))

(defun magy-new-step (project)
  "Have the next edit in PROJECT be a step of undo of its own."
  (when-let ((turn (magy-project-turn project)))
    (setf (magy-project-turn project) (copy-sequence turn)))) ; equal, but another

(cl-defmethod magy-handle-notification :before
  (project (_method (eql 'magy/session/update)) params)
  "Keep which turn of PROJECT's session goes on, as the update in PARAMS says."
  (let ((update (plist-get params :update)))
    (when (equal "state_update" (plist-get update :sessionUpdate))
      (when-let ((turn (magy--get update :_meta :magy :turnId)))
        (cond ((not (equal "running" (plist-get update :state)))
               (setf (magy-project-turn project) nil))
              ((not (equal turn (magy-project-turn project)))
               (setf (magy-project-turn project) turn)))))))

(defun magy--apply-all (project documents)
  "Apply DOCUMENTS, a list of (BUFFER . EDITS) of PROJECT: all or nothing.
In each buffer the edits are one step of undo, and so are those of one
turn that come in a row."
  (let ((handles (mapcar (lambda (document)
                           (with-current-buffer (car document)
                             (undo-boundary) ; what was typed before is another step
                             (prepare-change-group)))
                         documents))
        (steps (mapcar (lambda (document)
                         (with-current-buffer (car document) (magy--step-group project)))
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
      (cl-mapc (lambda (handle step)
                 (if (not done)
                     (cancel-change-group handle)
                   (undo-amalgamate-change-group (or step handle))
                   (accept-change-group handle)))
               handles steps))
    (cl-mapc (lambda (document handle step)
               (with-current-buffer (car document)
                 (undo-boundary)
                 (setq magy--step (list (magy-project-turn project) (or step handle)
                                        (buffer-chars-modified-tick)))
                 (magy--flush)))
             documents handles steps)))

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
  "Save the buffer of the document in PARAMS, if it is still of that version."
  (let ((buffer (magy--buffer-of (plist-get params :uri))))
    (list :saved (if (and buffer
                          (not (magy--refusal buffer (plist-get params :version)))
                          (with-current-buffer buffer (magy--save)))
                     t
                   :json-false))))

(provide 'magy-buffers)
;;; magy-buffers.el ends here
