;;; magy-review-diff.el --- Changes under review as a diff  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Magy authors
;; SPDX-License-Identifier: GPL-3.0-or-later
;; This is free software with no warranty at all; see the file COPYING.

;;; Commentary:

;; The changes of one file or of all, in a buffer of `diff-mode'.  It is
;; written from the hunks that the server gives and stays in step with
;; them.  What was decided in it remains to be seen until it is closed.

;;; Code:

(require 'magy-review)
(require 'magy-review-diff-text)
(require 'magy-shown-diff)

(defconst magy-review-diff--most 50
  "How many files one diff shows.")

(defvar-local magy-review-diff--project nil
  "The project whose changes are shown.")

(defvar-local magy-review-diff--path nil
  "The file whose changes are shown; nil: all.")

(defvar-local magy-review-diff--known nil
  "What is shown: an alist (PATH . MODE) -> (FILE . HUNKS), decided ones included.")

(defvar-local magy-review-diff--more 0
  "How many files are under review beside those shown.")

(defvar-local magy-review-diff--timer nil
  "Timer that gets everything again.")

(defvar-local magy-review-diff--asked 0
  "Number of the newest request.")

(defvar magy-review-diff-mode-map
  (let ((map (make-sparse-keymap)))
    (pcase-dolist (`(,key . ,command)
                   '(("n" . magy-review-diff-next) ("p" . magy-review-diff-previous)
                     ("a" . magy-review-accept) ("r" . magy-review-reject)
                     ("e" . magy-review-amend) ("c" . magy-review-comment)
                     ("u" . magy-review-diff-undo) ("RET" . magy-review-diff-visit)
                     ("A" . magy-review-accept-all) ("R" . magy-review-reject-all)
                     ("b" . magy-review-base) ("E" . magy-review-ediff)
                     ("g" . magy-review-diff-refresh) ("q" . quit-window)
                     ("SPC" . scroll-up-command) ("DEL" . scroll-down-command)
                     ("?" . describe-mode)))
      (define-key map (kbd key) command))
    map)
  "Keymap of `magy-review-diff-mode'.")

(define-derived-mode magy-review-diff-mode magy-shown-diff-mode "Magy Diff"
  "The changes that wait for a decision.
\\{magy-review-diff-mode-map}"
  (setq magy-review-target-function #'magy-review-diff--targets
        header-line-format
        " a accept  r reject  e edit  c comment  u undo  n/p go  RET visit  A/R file"))

;;;; Writing

(defun magy-review-diff--insert (key file hunks)
  "Insert HUNKS of FILE, known by KEY, with a header."
  (let* ((name (magy-review--name magy-review-diff--project (car key)))
         (status (plist-get file :status))
         (pending (append (plist-get file :hunks) nil))
         (lines (magy-review-diff--live-lines file))
         (before 0)
         (beg (point)))
    (insert (format "--- %s\n+++ %s%s\n"
                    (if (equal status "created") "/dev/null" (concat "a/" name))
                    (if (equal status "deleted") "/dev/null" (concat "b/" name))
                    (if (magy-review--proposed-p file) "\tproposed: accept applies it" "")))
    (put-text-property beg (point) 'magy-review (list file))
    (dolist (hunk hunks)
      (let* ((waits (memq hunk pending))
             (next (and waits (cl-find-if #'magy-review-lines-p (cdr waits))))
             (after (if next (magy--get next :range :start :line) most-positive-fixnum))
             (beg (point)))
        (insert (magy-review-diff--hunk file hunk waits lines before after))
        (when waits
          (setq before (min after (+ (magy-review-diff--end hunk) magy-review-context))))
        (put-text-property beg (point) 'magy-review (list file hunk (and waits t)))
        (if waits
            (magy-review-diff--draw-words beg (point) hunk)
          (overlay-put (make-overlay beg (point)) 'face 'shadow))))
    (insert "\n")))

(defun magy-review-diff--draw-words (beg end hunk)
  "Set off the words that differ in HUNK, which was inserted from BEG to END."
  (pcase-dolist (`(,side ,sign ,face) '(("old" "-" diff-refine-removed)
                                        ("new" "+" diff-refine-added)))
    (when-let ((words (magy-review-hunk-words hunk side)))
      (save-excursion
        (goto-char beg)
        (when (re-search-forward (concat "^" (regexp-quote sign)) end t)
          (let ((first (line-beginning-position))
                (encoding (or (magy-project-encoding magy-review-diff--project) 'utf-32)))
            (dolist (word words)
              (goto-char first)
              (forward-line (plist-get word :line))
              (let* ((bol (1+ (point)))
                     (at (magy-review-columns (buffer-substring bol (line-end-position))
                                              (plist-get word :start) (plist-get word :end)
                                              encoding)))
                (overlay-put (make-overlay (+ bol (car at)) (+ bol (cdr at))) 'face face)))))))))

(defun magy-review-diff--shown (known)
  "Return the hunks to show of KNOWN, a member of `magy-review-diff--known'."
  (pcase-let ((`(,_ ,file . ,hunks) known))
    (cl-remove-if-not (lambda (hunk)
                        (or (seq-contains-p (plist-get file :hunks) hunk #'eq)
                            (gethash (plist-get hunk :hunkId) magy-review--states)))
                      hunks)))

(defun magy-review-diff--write ()
  "Write the diff of what is known; point stays at its change."
  (let ((inhibit-read-only t)
        (places (mapcar (lambda (window)
                          (cons window (magy-review-diff--place (window-point window))))
                        (get-buffer-window-list nil nil t)))
        (own (magy-review-diff--place (point)))
        (first (= (buffer-size) 0)))
    (erase-buffer)
    (delete-all-overlays)
    (dolist (known magy-review-diff--known)
      (when-let ((hunks (magy-review-diff--shown known)))
        (magy-review-diff--insert (car known) (cadr known) hunks)))
    (when (> magy-review-diff--more 0)
      (insert (format "%d more files wait; they follow when these are decided.\n"
                      magy-review-diff--more)))
    (when (= (buffer-size) 0)
      (insert "Nothing waits for a decision here.\n"))
    (set-buffer-modified-p nil)
    (goto-char (if first (magy-review-diff--first) (magy-review-diff--position own)))
    (pcase-dolist (`(,window . ,place) places)
      (set-window-point window (if first (point) (magy-review-diff--position place))))))

(defun magy-review-diff--place (pos)
  "Return what POS means: (HUNK-ID OFFSET LINE)."
  (let* ((here (get-text-property (min pos (point-max)) 'magy-review))
         (beg (if here (magy-review-diff--start pos) pos)))
    (list (plist-get (cadr here) :hunkId) (- pos beg) (line-number-at-pos pos))))

(defun magy-review-diff--start (pos)
  "Return where the stretch of text that POS is in begins."
  (if (or (= pos (point-min))
          (not (eq (get-text-property pos 'magy-review)
                   (get-text-property (1- pos) 'magy-review))))
      pos
    (previous-single-property-change pos 'magy-review nil (point-min))))

(defun magy-review-diff--position (place)
  "Return the position that PLACE means now."
  (pcase-let ((`(,id ,offset ,line) place) (pos (point-min)) (found nil))
    (while (and id pos (not found))
      (if (equal id (plist-get (cadr (get-text-property pos 'magy-review)) :hunkId))
          (setq found pos)
        (setq pos (next-single-property-change pos 'magy-review))))
    (if found
        (min (+ found offset) (1- (next-single-property-change found 'magy-review nil (point-max))))
      (save-excursion
        (goto-char (point-min))
        (forward-line (1- line))
        (point)))))

(defun magy-review-diff--first ()
  "Return the position of the first change."
  (let ((pos (point-min)))
    (while (and pos (not (cadr (get-text-property pos 'magy-review))))
      (setq pos (next-single-property-change pos 'magy-review)))
    (or pos (point-min))))

;;;; Keeping in step

(defun magy-review-diff--entries ()
  "Return the ReviewEntries that the current buffer shows."
  (let ((project magy-review-diff--project))
    (if magy-review-diff--path
        (magy-review--entries project magy-review-diff--path)
      (magy-project-reviews project))))

(defun magy-review-diff-refresh ()
  "Get the changes of this buffer again."
  (interactive nil magy-review-diff-mode)
  (magy--in-mode 'magy-review-diff-mode)
  (setq magy-review-diff--timer nil)
  (let* ((buffer (current-buffer))
         (entries (magy-review-diff--entries))
         (shown (seq-take entries magy-review-diff--most))
         (asked (cl-incf magy-review-diff--asked)))
    (setq magy-review-diff--more (- (length entries) (length shown)))
    (magy-review--get-all magy-review-diff--project shown
                          (lambda (files) (magy-review-diff--arrived buffer asked files)))))

(defun magy-review-diff--arrived (buffer asked files)
  "Show FILES, the answer to request number ASKED, in BUFFER."
  (when (buffer-live-p buffer)
    (with-current-buffer buffer
      (when (= asked magy-review-diff--asked)
        (let ((keys (mapcar #'magy-review-diff--know files)))
          ;; Of the others nothing waits any more.
          (dolist (known magy-review-diff--known)
            (unless (member (car known) keys)
              (setf (cadr known) (plist-put (copy-sequence (cadr known)) :hunks nil)))))
        (magy-review-diff--write)))))

(defun magy-review-diff--know (file)
  "Take FILE into what is known; return its key."
  (let* ((key (cons (magy--uri-to-path (plist-get file :uri)) (plist-get file :mode)))
         (known (assoc key magy-review-diff--known))
         (hunks (append (plist-get file :hunks) nil))
         (ids (mapcar (lambda (hunk) (plist-get hunk :hunkId)) hunks))
         (all (seq-sort-by
               (lambda (hunk) (magy--get hunk :baseRange :start :line)) #'<
               (append hunks (cl-remove-if (lambda (hunk)
                                             (member (plist-get hunk :hunkId) ids))
                                           (cddr known))))))
    (if known
        (setcdr known (cons file all))
      (setq magy-review-diff--known
            (sort (cons (cons key (cons file all)) magy-review-diff--known)
                  (lambda (a b) (string< (caar a) (caar b))))))
    key))

(defun magy-review-diff--redraw (project paths)
  "The review of PATHS in PROJECT has changed: diffs that show them are redrawn."
  (dolist (buffer (buffer-list))
    (when (eq project (buffer-local-value 'magy-review-diff--project buffer))
      (with-current-buffer buffer
        (when (and (or (null magy-review-diff--path) (member magy-review-diff--path paths))
                   (null magy-review-diff--timer))
          (setq magy-review-diff--timer
                (run-with-timer 0.05 nil #'magy-review-diff--refresh-soon buffer)))))))

(defun magy-review-diff--refresh-soon (buffer)
  "Get what BUFFER shows again, unless the server has gone."
  (when (buffer-live-p buffer)
    (with-current-buffer buffer
      (setq magy-review-diff--timer nil)
      (when (magy-review--reachable-p magy-review-diff--project)
        (magy--guarded "showing the review" (magy-review-diff-refresh))))))

(add-hook 'magy-review-changed-functions #'magy-review-diff--redraw)

(defun magy-review-diff--open (project path)
  "Show what waits in PROJECT, or only in its file PATH, as a diff."
  (let ((buffer (get-buffer-create
                 (format "*magy diff: %s*" (if path
                                               (magy-review--name project path)
                                             (magy-project-name project))))))
    (with-current-buffer buffer
      (magy-review-diff-mode)
      (setq magy-review-diff--project project
            magy--own-project project
            magy-review-diff--path path
            default-directory (magy-project-root project)))
    (pop-to-buffer buffer)
    (let ((inhibit-read-only t)) (erase-buffer))
    (magy-when-ready project (lambda ()
                               (when (buffer-live-p buffer)
                                 (with-current-buffer buffer (magy-review-diff-refresh)))))))

(defun magy-review-diff-file (project entries)
  "Show the file that ENTRIES of PROJECT are about as a diff."
  (if entries
      (magy-review-diff--open project (plist-get (car entries) :path))
    (message "Magy: nothing in this file waits any more")))

;;;###autoload
(defun magy-review-diff (&optional all-files)
  "Show what waits for a decision in this file as a diff.
With a prefix argument of ALL-FILES, or where no file is, show all of
the project."
  (interactive "P")
  (if (or all-files (not (or magy--document magy-review-target-function)))
      (magy-review-diff--open (magy-review--project) nil)
    (pcase-let ((`(,project . ,entries) (magy-review--entry)))
      (magy-review-diff--open project
                              (or (plist-get (car entries) :path)
                                  (magy--uri-to-path (plist-get (car entries) :uri)))))))

;;;; Commands

(defun magy-review-diff--here ()
  "Return what is at point: (FILE), or (FILE HUNK PENDING)."
  (or (get-text-property (point) 'magy-review) (user-error "No change here")))

(defun magy-review-diff--targets ()
  "Return what is at point as a target, see `magy-review--targets'."
  (pcase-let ((`(,file ,hunk ,pending) (magy-review-diff--here)))
    (when (and hunk (not pending))
      (user-error "This is decided; u undoes the decision"))
    (list (cons magy-review-diff--project (cons file (and hunk (list hunk)))))))

(defun magy-review-diff-next (&optional count)
  "Go to the COUNTth next change; backwards if negative."
  (interactive "p" magy-review-diff-mode)
  (let* ((count (or count 1))
         (starts (magy-review-diff--starts))
         (here (point))
         (ahead (if (> count 0)
                    (cl-remove-if (lambda (start) (<= start here)) starts)
                  (reverse (cl-remove-if (lambda (start) (>= start here)) starts)))))
    (goto-char (or (nth (1- (abs count)) ahead) (car (last ahead))
                   (user-error "No more changes")))))

(defun magy-review-diff-previous (&optional count)
  "Go to the COUNTth previous change."
  (interactive "p" magy-review-diff-mode)
  (magy-review-diff-next (- (or count 1))))

(defun magy-review-diff--starts (&optional pending)
  "Return where the changes begin, or only those that are PENDING."
  (let ((pos (point-min)) starts)
    (while pos
      (pcase (get-text-property pos 'magy-review)
        (`(,_ ,_ ,waits) (when (or waits (not pending)) (push pos starts))))
      (setq pos (next-single-property-change pos 'magy-review)))
    (nreverse starts)))

(defun magy-review-diff-move-on ()
  "Go to the next change that waits, behind point or else from the top."
  (let ((starts (magy-review-diff--starts t)))
    (when starts
      (goto-char (or (cl-find-if (lambda (start) (> start (point))) starts) (car starts))))))

(defun magy-review-diff-undo ()
  "Take back the decision about the change at point, or else the last one."
  (interactive nil magy-review-diff-mode)
  (let* ((hunk (cadr (get-text-property (point) 'magy-review)))
         (id (plist-get (gethash (plist-get hunk :hunkId) magy-review--states) :decision))
         (decision (cl-find id magy-review--decisions :test #'equal
                            :key (lambda (one) (plist-get one :decision)))))
    (if decision
        (magy-review--take-back decision)
      (magy-review-undo-decision))))

(defun magy-review-diff-visit ()
  "Go to the change at point in its file, in another window."
  (interactive nil magy-review-diff-mode)
  (pcase-let ((`(,file ,hunk) (magy-review-diff--here)))
    (unless (file-exists-p (magy--uri-to-path (plist-get file :uri)))
      (user-error "The file does not exist"))
    (magy-review--visit magy-review-diff--project
                        (list :uri (plist-get file :uri)
                              :range (if hunk
                                         (plist-get hunk :range)
                                       '(:start (:line 0 :character 0)))
                              :hunkId (plist-get hunk :hunkId)))))

(provide 'magy-review-diff)
;;; magy-review-diff.el ends here
