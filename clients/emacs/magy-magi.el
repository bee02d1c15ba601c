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
                       (magy-magi--choose (append (plist-get result :rulings) nil))))))))

(defun magy-magi--choose (rulings)
  "Have one of RULINGS chosen, unless there is only one, and show it."
  (if (null rulings)
      (magy--message "Magy: nothing was deliberated in this session; M-x magy-deliberate")
    (let* ((lines (mapcar (lambda (one) (cons (magy-magi--line one) one)) rulings))
           (chosen (if (cdr lines)
                       (completing-read "Ruling: " lines nil t nil nil (caar lines))
                     (caar lines))))
      (magy-magi--show (cdr (assoc chosen lines))))))

(defun magy-magi--line (ruling)
  "Return RULING on one line."
  (format "%s  %s %d %%  %s" (substring (plist-get ruling :at) 0 16) (plist-get ruling :final)
          (plist-get ruling :confidence) (magy--get ruling :shown :question)))

(defun magy-magi--show (ruling)
  "Show the box and the report of RULING."
  (let ((buffer (get-buffer-create "*Magy ruling*"))
        (shown (plist-get ruling :shown)))
    (with-current-buffer buffer
      (let ((inhibit-read-only t))
        (erase-buffer)
        (insert (if (magy--true (plist-get ruling :same))
                    "Worked out again from the votes: the same as in the log, byte for byte.\n\n"
                  "The log has ANOTHER ruling than these votes come to.\n\n")
                (mapconcat #'identity (plist-get shown :box) "\n") "\n\n"
                (plist-get ruling :report)))
      (goto-char (point-min))
      (special-mode))
    (pop-to-buffer buffer)))

(provide 'magy-magi)
;;; magy-magi.el ends here
