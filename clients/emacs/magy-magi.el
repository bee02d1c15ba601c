;;; magy-magi.el --- Questions that three agents judge  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Magy authors
;; SPDX-License-Identifier: GPL-3.0-or-later
;; This is free software with no warranty at all; see the file COPYING.

;;; Commentary:

;; A deliberation is a call in the transcript, drawn as a box of three
;; columns while its votes come, or as rows where the window is too
;; narrow for that.  The server writes both.  Here is also how a person
;; begins one, and how the rulings of a session are read again.

;;; Code:

(require 'magy-child-draw)

(declare-function magy-transcript-view "magy-view")

;;;; Drawing

(defconst magy-magi--width 77
  "Columns that the box takes in a transcript, which indents it.")

(defconst magy-magi--faces
  '(("APPROVED?" . success) ("CAVEATED\\|DEADLOCK" . warning)
    ("REJECT\\(?:ED\\)?\\|DISSENTS\\|AGAINST" . error) ("RULING" . bold))
  "What votes and rulings look like, which also say it in words.")

(defvar-local magy-magi--narrow nil
  "Non-nil if deliberations are drawn as rows here.")

(defun magy-magi--narrow-p ()
  "Return non-nil if the box does not fit into the window of this buffer."
  (let ((window (get-buffer-window nil t)))
    (and window (< (window-max-chars-per-line window) magy-magi--width))))

(defun magy-magi--resized (window)
  "Draw deliberations anew if WINDOW has become too narrow for them, or wide."
  (with-current-buffer (window-buffer window)
    (unless (eq magy-magi--narrow (magy-magi--narrow-p))
      (magy-transcript-edit
       (lambda ()
         (magy-transcript-map-back
          (lambda (item)
            (when (plist-get (magy-item-data item) :deliberation)
              (magy-transcript-touch item))
            nil)))))))

(defun magy-magi-draw (item)
  "Draw ITEM, a call that is a deliberation."
  (setq magy-magi--narrow (magy-magi--narrow-p))
  (add-hook 'window-size-change-functions #'magy-magi--resized nil t)
  (let* ((data (magy-item-data item))
         (shown (plist-get data :deliberation)))
    (magy-transcript--section
     item (magy-transcript--tool-head data)
     (magy-transcript--indent
      (magy-magi--text shown (plist-get shown (if magy-magi--narrow :rows :box))
                       magy-transcript--project))
     nil)))

(defun magy-magi--text (shown lines project)
  "Return LINES of the deliberation SHOWN with faces and buttons.
The name of a node leads to its transcript, which PROJECT has."
  (let ((case-fold-search nil))
    (with-temp-buffer
      (insert (mapconcat #'identity lines "\n") "\n")
      (pcase-dolist (`(,said . ,face) magy-magi--faces)
        (goto-char (point-min))
        (while (re-search-forward (format "\\_<\\(?:%s\\)\\_>" said) nil t)
          (add-face-text-property (match-beginning 0) (match-end 0) face)))
      (seq-doseq (node (plist-get shown :nodes))
        (goto-char (point-min))
        (when-let* ((session (plist-get node :sessionId))
                    ((re-search-forward (format "^\\(?:| .*\\)?\\<%s\\>" (plist-get node :name))
                                        nil t)))
          (make-text-button (- (point) (length (plist-get node :name))) (point)
                            'follow-link t
                            'action (lambda (_) (magy-transcript-view session project)))))
      (buffer-string))))

;;;; Asking

;;;###autoload
(defun magy-deliberate (question)
  "Have QUESTION judged by three agents; their votes come to a ruling.
It goes to the session of this project, whose agent puts it to them
after you were asked once."
  (interactive (list (read-string "Deliberate about: ")))
  (when (string-blank-p question)
    (user-error "Say what is to be decided"))
  (let ((project (magy-current-project)))
    (magy-session-ensure
     project
     (lambda ()
       (magy-session-prompt project
                            (list (list :type "text" :text (concat "@magi " question)))
                            "auto")))
    (display-buffer (magy-transcript-buffer project))))

;;;; Rulings

;;;###autoload
(defun magy-rulings ()
  "Read a ruling of this project's session, worked out again from its votes."
  (interactive)
  (let ((project (magy-current-project)))
    (unless (magy-project-session project)
      (user-error "There is no session here yet"))
    (magy-session-ensure
     project
     (lambda ()
       (magy-request project 'magy/magi/list
                     (list :sessionId (magy-project-session project))
                     (lambda (result)
                       (magy-magi--choose project
                                          (append (plist-get result :rulings) nil))))))))

(defun magy-magi--choose (project rulings)
  "Have one of PROJECT's RULINGS chosen, unless there is only one, and show it."
  (if (null rulings)
      (magy--message "Magy: nothing was deliberated in this session; M-x magy-deliberate")
    (let* ((lines (mapcar (lambda (one) (cons (magy-magi--line one) one)) rulings))
           (chosen (if (cdr lines)
                       (completing-read "Ruling: " lines nil t nil nil (caar lines))
                     (caar lines))))
      (magy-magi--show project (cdr (assoc chosen lines))))))

(defun magy-magi--line (ruling)
  "Return RULING on one line."
  (format "%s  %s %d %%  %s" (substring (plist-get ruling :at) 0 16) (plist-get ruling :final)
          (plist-get ruling :confidence) (magy--get ruling :shown :question)))

(defvar magy-ruling-mode-map
  (let ((map (make-sparse-keymap)))
    (define-key map (kbd "a") #'magy-ruling-accept)
    map)
  "Keymap of `magy-ruling-mode'.")

(define-derived-mode magy-ruling-mode special-mode "Magy Ruling"
  "A ruling, worked out again from the votes.
\\{magy-ruling-mode-map}")

(defvar-local magy-ruling--shown nil
  "The ruling that this buffer shows.")

(defun magy-magi--holds (ruling)
  "Return what is to be said of RULING and the one that it overturns, or nil."
  (let ((of (plist-get ruling :overturns)))
    (cond ((null of) nil)
          ((plist-get ruling :accepted) (format "It holds in the place of %s." of))
          (t (format "It would overturn %s, which holds until you accept it: a does." of)))))

(defun magy-ruling-accept ()
  "Accept that this ruling comes in the place of the one that it overturns."
  (interactive nil magy-ruling-mode)
  (magy--in-mode 'magy-ruling-mode)
  (let ((ruling magy-ruling--shown) (project magy--own-project))
    (unless (plist-get ruling :overturns)
      (user-error "This ruling overturns none, so there is nothing to accept"))
    (when (yes-or-no-p (format "%s; have this one (%s) hold? "
                               (magy-magi--holds ruling) (plist-get ruling :final)))
      (magy-request project 'magy/magi/accept
                    (list :sessionId (directory-file-name
                                      (file-name-directory (plist-get ruling :id)))
                          :rulingId (plist-get ruling :id))
                    (lambda (result)
                      (magy--message "Magy: accepted")
                      (magy-magi--show project (plist-put (copy-sequence ruling) :accepted
                                                          (plist-get result :accepted))))))))

(defun magy-magi--show (project ruling)
  "Show the box and the report of PROJECT's RULING."
  (let ((buffer (get-buffer-create "*Magy ruling*"))
        (shown (plist-get ruling :shown)))
    (with-current-buffer buffer
      (let ((inhibit-read-only t))
        (erase-buffer)
        (insert (if (magy--true (plist-get ruling :same))
                    "Worked out again from the votes: the same as in the log, byte for byte.\n\n"
                  "The log has ANOTHER ruling than these votes come to.\n\n")
                (if-let ((said (magy-magi--holds ruling))) (concat said "\n\n") "")
                (mapconcat #'identity (plist-get shown :box) "\n") "\n\n"
                (plist-get ruling :report)))
      (goto-char (point-min))
      (magy-ruling-mode)
      (setq magy--own-project project
            magy-ruling--shown ruling))
    (pop-to-buffer buffer)))

;;;; What CASPER remembers

(defvar magy-emotional-log-mode-map
  (let ((map (make-sparse-keymap)))
    (pcase-dolist (`(,key . ,command)
                   '(("d" . magy-emotional-log-delete) ("r" . magy-emotional-log-reviewed)
                     ("g" . magy-emotional-log)))
      (define-key map (kbd key) command))
    map)
  "Keymap of `magy-emotional-log-mode'.")

(define-derived-mode magy-emotional-log-mode tabulated-list-mode "Magy Emotional Log"
  "How questions felt to CASPER in this project, and what it learned.
\\{magy-emotional-log-mode-map}"
  (setq tabulated-list-format [("When" 12 t) ("Felt" 6 t) ("Counts" 7 t) ("Emotion" 14 t)
                               ("Lesson" 40 t)]
        tabulated-list-padding 1)
  (tabulated-list-init-header))

;;;###autoload
(defun magy-emotional-log ()
  "Read what CASPER remembers in this project, and take out what is not to be kept."
  (interactive)
  (magy-magi--log (magy-current-project) nil))

(defun magy-emotional-log-delete ()
  "Take out the entry at point for good."
  (interactive nil magy-emotional-log-mode)
  (magy--in-mode 'magy-emotional-log-mode)
  (let ((id (or (tabulated-list-get-id) (user-error "No entry on this line"))))
    (when (y-or-n-p "Take this entry out for good? ")
      (magy-magi--log magy--own-project (list :delete (vector id))))))

(defun magy-emotional-log-reviewed ()
  "Say that you have read all of it, so that it may be used again."
  (interactive nil magy-emotional-log-mode)
  (magy--in-mode 'magy-emotional-log-mode)
  (magy-magi--log magy--own-project '(:reviewed t)))

(defun magy-magi--log (project change)
  "Show the emotional log of PROJECT after CHANGE, which are parameters."
  (magy-when-ready
   project
   (lambda ()
     (magy-request project 'magy/magi/log
                   (append (list :cwd (directory-file-name (magy-project-root project))) change)
                   (lambda (log)
                     ;; Not in the process filter: a window is shown.
                     (run-with-timer 0 nil #'magy-magi--show-log project log))))))

(defun magy-magi--show-log (project log)
  "Show LOG, the emotional log of PROJECT."
  (let ((buffer (get-buffer-create (format "*magy emotional log: %s*"
                                           (magy-project-name project)))))
    (with-current-buffer buffer
      (magy-emotional-log-mode)
      (setq magy--own-project project
            default-directory (magy-project-root project)
            tabulated-list-entries (mapcar #'magy-magi--felt (plist-get log :entries)))
      (tabulated-list-print t))
    (unless (eq buffer (window-buffer))
      (pop-to-buffer buffer))
    (message "%s" (substitute-command-keys
                   (concat "\\<magy-emotional-log-mode-map>"
                           (cond ((magy--true (plist-get log :reviewDue))
                                  (concat "Many strong feelings within a week: none is used until"
                                          " \\[magy-emotional-log-reviewed] says that you read"
                                          " them"))
                                 ((length= (plist-get log :entries) 0)
                                  "CASPER remembers nothing here")
                                 (t "\\[magy-emotional-log-delete] takes an entry out")))))))

(defun magy-magi--felt (entry)
  "Return the row of ENTRY of an emotional log."
  (list (plist-get entry :id)
        (vector (substring (plist-get entry :date) 0 10)
                (format "%+.1f" (plist-get entry :valence))
                (format "%d %%" (round (* 100 (plist-get entry :strength))))
                (string-replace "\n" " " (plist-get entry :emotion))
                (string-replace "\n" " " (plist-get entry :lesson)))))

(provide 'magy-magi)
;;; magy-magi.el ends here
