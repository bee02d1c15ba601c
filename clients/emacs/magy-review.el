;;; magy-review.el --- Deciding about what agents changed  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Magy authors
;; SPDX-License-Identifier: GPL-3.0-or-later
;; This is free software with no warranty at all; see the file COPYING.

;;; Commentary:

;; Commands to decide about changes: at point in a file, in its diff
;; (`magy-review-diff') and in the list of files (`magy-review').  After
;; one of them a single key is enough for the next: a, r, e, c, u, n, p.

;;; Code:

(require 'magy-review-draw)
(require 'magy-review-going)

(defcustom magy-review-ask-reason nil
  "Whether rejecting always asks why; else only with a prefix argument.
The agent sees the reason."
  :type 'boolean
  :group 'magy-review
  :package-version '(magy . "0.1"))

(defcustom magy-review-go-on t
  "Whether a decision moves point to the next change in the same buffer."
  :type 'boolean
  :group 'magy-review
  :package-version '(magy . "0.1"))

(defvar magy-review-history nil
  "Reasons and comments that were given.")

(autoload 'magy-review-amend-target "magy-review-amend")
(autoload 'magy-review-base "magy-review-amend" nil t)
(autoload 'magy-review-ediff "magy-review-amend" nil t)
(autoload 'magy-review-list "magy-review-list")
(autoload 'magy-review-diff-file "magy-review-diff")
(autoload 'magy-review-diff-move-on "magy-review-diff")
(autoload 'magy-review-diff "magy-review-diff" nil t)

;;;; What is meant

(defun magy-review--targets ()
  "Return what a command is about: a list of (PROJECT FILE . HUNKS).
HUNKS nil means all of FILE, which may then be a ReviewEntry."
  (or (if magy-review-target-function
          (funcall magy-review-target-function)
        (magy-review--targets-here))
      (magy-review--nothing "No change waits here; \\[magy-review-next] goes to the next")))

(defun magy-review--targets-here ()
  "Return the targets in the region or on the line of point of a file's buffer."
  (when-let ((project (and magy--document (magy-document-project magy--document)))
             (found (if (use-region-p)
                        (magy-review-hunks-in (region-beginning) (region-end))
                      (when-let ((one (magy-review-hunk-here))) (list one)))))
    (mapcar (lambda (of-file)
              (cons project (cons (car of-file) (mapcar #'cdr (cdr of-file)))))
            (seq-group-by #'car found))))

(defun magy-review--target ()
  "Return the one change that a command is about, as (PROJECT FILE HUNK)."
  (let ((target (car (magy-review--targets))))
    (unless (cddr target)
      (user-error "This works on one change: go to it in the diff or the file"))
    (list (car target) (cadr target) (caddr target))))

(defun magy-review--entry ()
  "Return (PROJECT . ENTRIES) of the current file, or of what is at point."
  (if magy--document
      (let ((project (magy-document-project magy--document)))
        (cons project (or (magy-review--entries
                           project (magy--uri-to-path (magy-document-uri magy--document)))
                          (magy-review--nothing "Nothing in this file waits for a decision"))))
    (let ((targets (magy-review--targets)))
      (cons (caar targets) (mapcar #'cadr targets)))))

;;;; Deciding

(defun magy-review--which (file hunks)
  "Return the parameters that name HUNKS of FILE, or all of it."
  (append (and (plist-get file :revision) (list :revision (plist-get file :revision)))
          (if hunks
              (list :hunkIds (vconcat (mapcar (lambda (hunk) (plist-get hunk :hunkId)) hunks)))
            '(:all t))))

(defun magy-review--decide (decision targets &optional reason)
  "Make DECISION, accept or reject, about TARGETS because of REASON.
Then go to the next change of the buffer, as `magy-review-go-on' says."
  (let ((origin (point-marker)) (left (length targets)))
    (when (use-region-p) (deactivate-mark))
    (magy-review--set-out
     (caar targets)
     (lambda (journey)
       (pcase-dolist (`(,project ,file . ,hunks) targets)
         (magy-review--resolve
          project file decision
          (append (magy-review--which file hunks)
                  (and reason (not (string-blank-p reason))
                       (list :reason (magy--json-text reason))))
          (lambda (outcome)
            (unwind-protect
                (when outcome
                  (magy-review--drop (plist-get file :uri) (magy-review--decided outcome)))
              (when (zerop (cl-decf left))
                (unwind-protect (magy-review--move-on origin)
                  (magy-review--end (caar targets) journey t)))))))))))

(defun magy-review--move-on (origin)
  "Go from ORIGIN, a marker, to the next change, if the person is still there."
  (let ((buffer (marker-buffer origin)))
    (when (and magy-review-go-on buffer (eq buffer (window-buffer)))
      (with-current-buffer buffer
        (when (derived-mode-p 'magy-review-diff-mode)
          (magy-review-diff-move-on))
        (when (and magy--document (= (point) origin))
          (when-let ((next (cl-find-if (lambda (start) (>= start (line-beginning-position)))
                                       (magy-review-starts))))
            (goto-char next)))))
    (set-marker origin nil)))

(defun magy-review--reason (prefix)
  "Read why something is rejected, if PREFIX or the options say so."
  (when (or prefix magy-review-ask-reason)
    (read-string "Why not? (the agent is told; may be empty) " nil 'magy-review-history)))

;;;###autoload
(defun magy-review-accept ()
  "Accept the change at point, or those in the region."
  (interactive)
  (magy-review--when-there
   (lambda ()
     (magy-review--decide "accept" (magy-review--targets))
     (magy-review--go-on-by-keys))))

;;;###autoload
(defun magy-review-reject (&optional prefix)
  "Reject the change at point, or those in the region: the old lines come back.
With PREFIX, or if `magy-review-ask-reason' is set, say why."
  (interactive "P")
  (magy-review--when-there
   (lambda ()
     (let ((targets (magy-review--targets)))
       (magy-review--decide "reject" targets (magy-review--reason prefix))
       (magy-review--go-on-by-keys)))))

;;;###autoload
(defun magy-review-amend ()
  "Edit what the change at point puts into the file, in a small buffer."
  (interactive)
  (magy-review--when-there
   (lambda () (apply #'magy-review-amend-target (magy-review--target)))))

;;;###autoload
(defun magy-review-comment ()
  "Comment on the change at point for the agent; the change stays pending."
  (interactive)
  (magy-review--when-there
   (lambda ()
     (pcase-let* ((`(,project ,file ,hunk) (magy-review--target))
                  (text (read-string "Comment: " nil 'magy-review-history)))
       (when (string-blank-p text) (user-error "The comment is empty"))
       (magy-request project 'magy/review/comment
                     (append (magy-review--params (plist-get file :uri)
                                                  (magy-review--proposed-p file))
                             (list :hunkId (plist-get hunk :hunkId)
                                   :text (magy--json-text text)))
                     (lambda (outcome)
                       (magy--message "%s" (if (equal (plist-get outcome :message) "")
                                               "Magy: the agent is told"
                                             (plist-get outcome :message)))))
       (magy-review--go-on-by-keys)))))

;;;###autoload
(defun magy-review-undo-decision (&optional choose)
  "Take back the last decision of this Emacs, then the one before, and so on.
With a prefix argument CHOOSE, choose which."
  (interactive "P")
  ;; The last decision may be one whose answer is not there yet.
  (magy-review--when-there
   (lambda ()
     (magy-review--take-back (magy-review--read-decision choose))
     (magy-review--go-on-by-keys))
   'anywhere))

(defun magy-review--take-back (decision)
  "Take DECISION back; what is typed before the answer waits for that."
  (let ((project (plist-get decision :project)))
    (magy-review--set-out
     project
     (lambda (journey)
       (magy-review--undo decision (lambda () (magy-review--end project journey t)))))))

(defun magy-review--read-decision (choose)
  "Return the last decision that can be undone; or CHOOSE one, if non-nil."
  (let ((decisions (cl-remove-if-not (lambda (one) (magy-live-p (plist-get one :project)))
                                     magy-review--decisions)))
    (unless decisions
      (user-error "This Emacs has made no decision that can be undone"))
    (if (not choose)
        (car decisions)
      (let ((lines (cl-loop for one in decisions for n from 1
                            collect (cons (format "%d  %s" n (plist-get one :label)) one))))
        (cdr (assoc (completing-read "Take back: " lines nil t nil nil (caar lines)) lines))))))

(defun magy-review--decide-all (decision prefix)
  "Make DECISION about the current file, or with PREFIX about all files."
  (pcase-let* ((`(,project . ,entries)
                (if prefix
                    (let ((project (magy-review--project)))
                      (cons project (or (magy-project-reviews project)
                                        (magy-review--nothing
                                         "Nothing waits for a decision"))))
                  (magy-review--entry)))
               (count (cl-loop for entry in entries
                               sum (or (plist-get entry :pending)
                                       (length (plist-get entry :hunks))))))
    (when (or (null prefix)
              (y-or-n-p (format "%s %d changes in %d files? " (capitalize decision) count
                                (length entries))))
      (magy-review--decide decision
                           (mapcar (lambda (entry) (list project entry)) entries)
                           (and (equal decision "reject") magy-review-ask-reason
                                (magy-review--reason nil))))))

;;;###autoload
(defun magy-review-accept-all (&optional all-files)
  "Accept all changes of this file; with a prefix argument of ALL-FILES."
  (interactive "P")
  (magy-review--decide-all "accept" all-files))

;;;###autoload
(defun magy-review-reject-all (&optional all-files)
  "Reject all changes of this file; with a prefix argument of ALL-FILES."
  (interactive "P")
  (magy-review--decide-all "reject" all-files))

;;;; Going

(defun magy-review--go (direction)
  "Go to the next change in DIRECTION, next or previous, in whatever file."
  (let ((project (magy-review--project))
        (window (selected-window)) (buffer (current-buffer))
        (place (and magy--document
                    (list :uri (magy-document-uri magy--document)
                          :line (1- (line-number-at-pos nil t))))))
    (magy-when-ready
     project
     (lambda ()
       (magy-review--set-out
        project
        (lambda (journey)
          ;; What is typed before the answer is meant for the change, not for the text.
          (magy-review--go-on-by-keys)
          (magy-request
           project 'magy/review/navigate (append place (list :direction direction))
           (lambda (found)
             ;; Visiting a file may ask something, which the process filter must not.
             (run-with-timer 0 nil #'magy-review--arrive project journey window buffer found))
           (lambda (problem)
             (magy-review--end project journey nil)
             (magy--message "Magy: %s" (plist-get problem :message))))))))))

(defun magy-review--arrive (project journey window buffer found)
  "Show FOUND, a change of PROJECT, in WINDOW, if that still shows BUFFER.
JOURNEY is over then."
  (let ((there nil))
    (unwind-protect
        (cond ((null (plist-get found :uri))
               (magy--message "Magy: no change waits for a decision"))
              ((not (and (eq window (selected-window)) (eq buffer (window-buffer window))))
               (magy--message "Magy: the next change is in %s"
                              (magy-review--name project (magy--uri-to-path
                                                          (plist-get found :uri)))))
              (t (magy-review--visit project found)
                 (magy-review--go-on-by-keys)
                 (setq there t)))
      (magy-review--end project journey there))))

(defun magy-review--visit (project place)
  "Show PLACE of PROJECT: a plist with :uri, :range and :hunkId.
From a file this takes the window of it, else another window."
  (let* ((path (magy--uri-to-path (plist-get place :uri))) (here magy--document))
    (if (not (file-exists-p path))
        (magy-review-diff-file project (magy-review--entries project path))
      (pop-to-buffer (find-file-noselect path)
                     (if here
                         '((display-buffer-reuse-window display-buffer-same-window))
                       '((display-buffer-reuse-window display-buffer-use-some-window)
                         (inhibit-same-window . t))))
      (push-mark nil t)
      (goto-char (magy--point (magy--get place :range :start)
                              (or (magy-project-encoding project) 'utf-32)))
      (magy-review--say-where project (plist-get place :hunkId)))))

(defun magy-review--say-where (project id)
  "Say which change of PROJECT the one called ID is, and what can be done."
  (let* ((hunks (cl-loop for file in magy-review--files append
                         (append (plist-get file :hunks) nil)))
         (at (cl-position id hunks :test #'equal
                          :key (lambda (hunk) (plist-get hunk :hunkId))))
         (others (1- (length (magy-project-reviews project)))))
    (message "%s%s%s"
             (if at (format "Change %d of %d" (1+ at) (length hunks)) "Change")
             (if (> others 0) (format ", %d more file%s" others (if (= others 1) "" "s")) "")
             (if magy-review-repeat
                 "  a accept, r reject, e edit, c comment, u undo, n/p go, = diff" ""))))

;;;###autoload
(defun magy-review-next ()
  "Go to the next change that waits for a decision, in whatever file."
  (interactive)
  (magy-review--go "next"))

;;;###autoload
(defun magy-review-previous ()
  "Go to the previous change that waits for a decision, in whatever file."
  (interactive)
  (magy-review--go "previous"))

;;;; Buffers of the review

;;;###autoload
(defun magy-review ()
  "List the files of this project in which something waits for a decision."
  (interactive)
  (magy-review-list (magy-review--project)))

;;;###autoload (autoload 'magy-review-diff-move-on "magy-review-diff")
(autoload 'magy-review-diff "magy-review-diff" nil t)
;;;###autoload (autoload 'magy-review-base "magy-review-amend" nil t)
;;;###autoload (autoload 'magy-review-ediff "magy-review-amend" nil t)

(provide 'magy-review)
;;; magy-review.el ends here
