;;; magy-review-data.el --- What waits for a decision  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Magy authors
;; SPDX-License-Identifier: GPL-3.0-or-later
;; This is free software with no warranty at all; see the file COPYING.

;;; Commentary:

;; The server says which files are under review and what their hunks are;
;; nothing of that is worked out here.  A project keeps the list of its
;; files.  Hunks are asked for by who shows them, whenever
;; `magy-review-changed-functions' is run.

;;; Code:

(require 'magy-buffers)

(defvar magy-review-changed-functions nil
  "Functions called with a project and the paths whose review has changed.")

(defvar magy-review--states (make-hash-table :test #'equal)
  "Hunk id -> plist of how it was decided in this Emacs.
Its members are :state, :reason and :decision.")

(defvar magy-review--decisions nil
  "What was decided in this Emacs and can be undone, newest first.
Each is a plist: :project, :decision, :uri, :proposed, :label, :hunks.")

(defconst magy-review--kept 200
  "How many decisions are remembered, to be undone.")

;;;; The files

(defun magy-review--put (project entries)
  "Make ENTRIES, a sequence, what PROJECT knows of the files that they name."
  (let* ((paths (seq-uniq (seq-map (lambda (entry) (plist-get entry :path)) entries)))
         (known (make-hash-table :test #'equal)))
    (dolist (path paths) (puthash path t known))
    (setf (magy-project-reviews project)
          (sort (append (cl-remove-if (lambda (entry) (gethash (plist-get entry :path) known))
                                      (magy-project-reviews project))
                        (cl-remove-if (lambda (entry) (zerop (plist-get entry :pending)))
                                      (append entries nil)))
                (lambda (a b) (string< (plist-get a :path) (plist-get b :path)))))
    (magy-review--changed project paths)))

(defun magy-review--changed (project paths)
  "Say that the review of PATHS in PROJECT has changed."
  (dolist (function magy-review-changed-functions)
    (magy--guarded function (funcall function project paths))))

(defun magy-review--learn (project &optional cursor)
  "Ask for what is under review in PROJECT, from CURSOR on."
  (magy-request project 'magy/review/list (append '(:limit 500)
                                                  (and cursor (list :cursor cursor)))
                (lambda (result)
                  (when-let ((files (append (plist-get result :files) nil)))
                    (magy-review--put project files))
                  (when-let ((next (plist-get result :nextCursor)))
                    (magy-review--learn project next)))
                ;; A server that knows no review says so when one is asked for.
                #'ignore))

(defun magy-review--forget (project _reason)
  "Nothing is known of the review in PROJECT: its server has gone."
  (let ((paths (mapcar (lambda (entry) (plist-get entry :path)) (magy-project-reviews project))))
    (setf (magy-project-reviews project) nil
          (magy-project-turn project) nil)
    (magy-review--changed project (delete-dups paths))))

(add-hook 'magy-ready-functions #'magy-review--learn)
(add-hook 'magy-death-functions #'magy-review--forget)

(cl-defmethod magy-handle-notification (project (_method (eql 'magy/review/changed)) params)
  "Take note of the files in PARAMS, whose review in PROJECT has changed."
  (magy-review--put project (plist-get params :files)))

(defun magy-review--entries (project path)
  "Return what PROJECT knows of the file PATH: an entry for each mode."
  (cl-remove-if-not (lambda (entry) (equal path (plist-get entry :path)))
                    (magy-project-reviews project)))

(defun magy-review--proposed-p (about)
  "Return non-nil if ABOUT, a ReviewEntry or ReviewFile, is of a proposal."
  (equal "proposed" (plist-get about :mode)))

(defun magy-review--name (project path)
  "Return PATH as people of PROJECT say it."
  (if (string-prefix-p (magy-project-root project) path)
      (substring path (length (magy-project-root project)))
    (abbreviate-file-name path)))

(defun magy-review--reachable-p (project)
  "Return non-nil if the server of PROJECT can be asked, and is not being left."
  (and (magy-live-p project) (magy-project-ready project)
       (not (magy-connection-expected-end (magy-project-connection project)))))

(defun magy-review--get (project entry then)
  "Ask for the hunks of the file that ENTRY of PROJECT is about.
THEN is called with the ReviewFile, or nil if nothing is left of it."
  (magy-request project 'magy/review/get
                (list :uri (plist-get entry :uri)
                      :proposed (if (magy-review--proposed-p entry) t :json-false))
                (lambda (result) (funcall then (plist-get result :file)))
                (lambda (problem)
                  (magy--log "review of %s: %s" (plist-get entry :path)
                             (plist-get problem :message))
                  (funcall then nil))))

(defun magy-review--get-all (project entries then)
  "Ask for the hunks of ENTRIES of PROJECT; call THEN with the list of files."
  (let ((left (length entries)) found)
    (if (zerop left)
        (funcall then nil)
      (dolist (entry entries)
        (magy-review--get
         project entry
         (lambda (file)
           (push (cons entry file) found)
           (when (zerop (cl-decf left))
             (funcall then (delq nil (mapcar (lambda (entry) (cdr (assq entry found)))
                                             entries))))))))))

;;;; Deciding

(defun magy-review--params (uri proposed)
  "Return the parameters that name the review of URI, a proposal if PROPOSED."
  (list :uri uri :proposed (if proposed t :json-false)
        :requestKey (magy--new-id "review")))

(defun magy-review--resolve (project file decision which &optional then)
  "Decide about hunks of FILE in PROJECT; call THEN with the outcome.
FILE is a ReviewFile or a ReviewEntry.  DECISION is accept, reject or
amend; WHICH are further parameters: the hunks, the reason, the text.
THEN is called with nil if the server refused, which has been said."
  (let* ((uri (plist-get file :uri))
         (proposed (magy-review--proposed-p file))
         (reason (plist-get which :reason)))
    (magy-new-step project)
    (magy-request
     project 'magy/review/resolve
     (append (magy-review--params uri proposed) (list :decision decision) which)
     (lambda (outcome)
       (magy-new-step project)
       (unwind-protect
           (progn (magy-review--keep project uri proposed outcome reason)
                  (magy-review--say uri outcome)
                  (magy-review--changed project (list (magy--uri-to-path uri))))
         (when then (funcall then outcome))))
     (lambda (problem)
       (magy--message "Magy: %s" (plist-get problem :message))
       (when then (funcall then nil))))))

(defun magy-review--keep (project uri proposed outcome reason)
  "Remember how OUTCOME decided about the hunks of URI in PROJECT, and why.
PROPOSED and REASON are as they were sent."
  (when-let ((decision (plist-get outcome :decisionId))
             (hunks (magy-review--decided outcome)))
    (dolist (hunk hunks)
      (puthash (plist-get hunk :hunkId)
               (list :state (plist-get hunk :state) :reason reason :decision decision)
               magy-review--states))
    (push (list :project project :decision decision :uri uri :proposed proposed
                :label (magy-review--summary uri outcome)
                :hunks (mapcar (lambda (hunk) (plist-get hunk :hunkId)) hunks))
          magy-review--decisions)
    (when-let ((rest (nthcdr (1- magy-review--kept) magy-review--decisions)))
      (dolist (old (cdr rest))
        (dolist (hunk (plist-get old :hunks)) (remhash hunk magy-review--states)))
      (setcdr rest nil))))

(defun magy-review--decided (outcome)
  "Return the members of OUTCOME that say that a hunk was decided about."
  (cl-remove-if-not (lambda (hunk)
                      (member (plist-get hunk :state) '("accepted" "rejected" "amended")))
                    (append (plist-get outcome :results) nil)))

(defun magy-review--summary (uri outcome)
  "Say what OUTCOME has done in the file at URI."
  (let ((done (magy-review--decided outcome)))
    (format "%s %d change%s in %s"
            (capitalize (or (plist-get (car done) :state) "decided"))
            (length done) (if (cdr done) "s" "")
            (file-name-nondirectory (magy--uri-to-path uri)))))

(defun magy-review--say (uri outcome)
  "Tell the person what OUTCOME, of the file at URI, came to."
  (let ((message (or (plist-get outcome :message) ""))
        (stale (cl-count "stale" (plist-get outcome :results)
                         :test #'equal :key (lambda (hunk) (plist-get hunk :state)))))
    (magy--message
     "%s"
     (cond ((not (string-empty-p message)) (concat "Magy: " message))
           ((null (plist-get outcome :decisionId))
            (if (zerop stale)
                "Magy: nothing was decided"
              "Magy: that change is another one by now; look at it again"))
           (t (format "%s; %d left" (magy-review--summary uri outcome)
                      (plist-get outcome :pending)))))))

(defun magy-review--undo (decision then)
  "Take DECISION, one of `magy-review--decisions', back; call THEN afterwards."
  (let ((project (plist-get decision :project)))
    (magy-new-step project)
    (magy-request
     project 'magy/review/undo
     (append (list :decisionId (plist-get decision :decision))
             (magy-review--params (plist-get decision :uri) (plist-get decision :proposed)))
     (lambda (outcome)
       (magy-new-step project)
       (let ((message (or (plist-get outcome :message) "")))
         (if (null (plist-get outcome :decisionId))
             (magy--message "Magy: %s" (if (string-empty-p message)
                                           "this cannot be undone any more" message))
           (setq magy-review--decisions (delq decision magy-review--decisions))
           (dolist (hunk (plist-get decision :hunks)) (remhash hunk magy-review--states))
           (magy--message "Taken back: %s%s" (plist-get decision :label)
                          (if (string-empty-p message) "" (concat ".  " message)))))
       (magy-review--changed project (list (magy--uri-to-path (plist-get decision :uri))))
       (funcall then))
     (lambda (problem)
       (magy--message "Magy: %s" (plist-get problem :message))
       (funcall then)))))

(provide 'magy-review-data)
;;; magy-review-data.el ends here
