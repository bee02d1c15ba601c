;;; magy-review-draw.el --- Pending changes in live buffers  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Magy authors
;; SPDX-License-Identifier: GPL-3.0-or-later
;; This is free software with no warranty at all; see the file COPYING.

;;; Commentary:

;; The hunks of a file under review are drawn in its buffer by overlays:
;; new lines have a background, removed lines are shown above them, words
;; that differ are set off.  What the server says belongs to a version of
;; the document; if the buffer is at another one, nothing is drawn and
;; the server, which hears of every change, will speak again.

;;; Code:

(require 'magy-review-data)
(require 'magy-review-text)

(defcustom magy-review-draw t
  "Whether pending changes are shown in the buffers of their files."
  :type 'boolean
  :group 'magy-review
  :package-version '(magy . "0.1"))

(defcustom magy-review-draw-limit 200
  "How many pending changes are shown in one buffer: those nearest to point."
  :type 'natnum
  :group 'magy-review
  :package-version '(magy . "0.1"))

(when (fboundp 'define-fringe-bitmap)   ; not without a window system
  (define-fringe-bitmap 'magy-review-bar [#b11100000] nil nil '(top t)))

(defconst magy-review--mark
  (propertize "!" 'display '(left-fringe magy-review-bar magy-review-fringe))
  "Prefix of changed lines; it takes no room in the text.")

(defun magy-review--fringe-p ()
  "Return non-nil if lines of the current buffer are marked in the fringe.
On terminals such a prefix would spoil the strings of overlays."
  (and (display-graphic-p)
       (cl-every (lambda (window) (display-graphic-p (window-frame window)))
                 (get-buffer-window-list nil nil t))))

(defconst magy-review--words-limit 1000
  "How many differing words are set off in one buffer.")

(defvar-local magy-review--files nil
  "What is shown in the buffer: a list of ReviewFile.")
(put 'magy-review--files 'permanent-local t)

(defvar-local magy-review--places nil
  "Where its hunks are: a list of (BEG END FILE . HUNK), from the top.
BEG and END are markers, which move with what is typed.")
(put 'magy-review--places 'permanent-local t)

(defvar-local magy-review--timer nil
  "Timer that gets the hunks of the buffer again.")
(put 'magy-review--timer 'permanent-local t)

(defvar-local magy-review--asked 0
  "Number of the newest request for the hunks of the buffer.")
(put 'magy-review--asked 'permanent-local t)

(defvar-local magy-review--late 0
  "How many answers in a row came for another version of the buffer.")
(put 'magy-review--late 'permanent-local t)

;;;; Drawing

(defun magy-review--overlay (beg end &rest properties)
  "Return an overlay from BEG to END that the review owns, with PROPERTIES."
  (let ((overlay (make-overlay beg end)))
    (overlay-put overlay 'magy-review t)
    (overlay-put overlay 'priority -10)
    (cl-loop for (key value) on properties by #'cddr do (overlay-put overlay key value))
    overlay))

(defun magy-review--clear ()
  "Take all of the review out of the current buffer."
  (save-restriction
    (widen)
    (remove-overlays (point-min) (point-max) 'magy-review t))
  (mapc #'magy-review--unmark magy-review--places)
  (setq magy-review--files nil
        magy-review--places nil)
  (magy-review--count))

(defun magy-review--count ()
  "Show in the mode line how many changes wait in the current buffer."
  (let ((count (cl-loop for file in magy-review--files sum (length (plist-get file :hunks)))))
    (setq magy--lighter (and (> count 0)
                             (propertize (format " %d" count) 'face 'warning
                                         'help-echo "changes that wait for a decision")))
    (force-mode-line-update)))

(defun magy-review--own-lines (text)
  "Return TEXT, to be inserted at point, which may be behind an unended line."
  (if (bolp) text (concat "\n" (string-remove-suffix "\n" text))))

(defun magy-review--bounds (hunk encoding from)
  "Return (BEG . END) of the lines of HUNK, with columns in ENCODING.
FROM is as in `magy--point'."
  (let ((range (plist-get hunk :range)))
    (cons (magy--point (plist-get range :start) encoding from)
          (magy--point (plist-get range :end) encoding from))))

(defun magy-review--unmark (place)
  "Have the markers of PLACE follow the text no more."
  (set-marker (car place) nil)
  (set-marker (cadr place) nil))

(defun magy-review--mark-all (encoding)
  "Note where the hunks of the current buffer are, with columns in ENCODING."
  (setq magy-review--places
        (seq-sort-by
         #'car #'<
         (cl-loop for file in magy-review--files
                  for from = (list 0 1)
                  append (mapcar (lambda (hunk)
                                   (pcase-let ((`(,beg . ,end)
                                                (magy-review--bounds hunk encoding from)))
                                     (cons (copy-marker beg)
                                           (cons (copy-marker end) (cons file hunk)))))
                                 (plist-get file :hunks))))))

(defun magy-review--draw-hunk (file hunk encoding from)
  "Draw HUNK of FILE, with columns in ENCODING; return how many words were drawn.
FROM is as in `magy--point'."
  (pcase-let* ((`(,beg . ,end) (magy-review--bounds hunk encoding from))
               (proposed (magy-review--proposed-p file))
               (overlay (magy-review--overlay beg end 'magy-hunk (cons file hunk)
                                              'help-echo #'magy-review--help)))
    (when (< beg end)
      (overlay-put overlay 'face (if proposed 'magy-review-removed 'magy-review-added))
      (when (magy-review--fringe-p)
        (overlay-put overlay 'line-prefix magy-review--mark)
        (overlay-put overlay 'wrap-prefix magy-review--mark)))
    (goto-char beg)
    (cond ((not (magy-review-lines-p hunk))
           (overlay-put overlay 'before-string
                        (propertize (concat (magy-review-sentence hunk) "\n")
                                    'face '(magy-review-note magy-review-added))))
          (proposed (magy-review--draw-proposed overlay hunk encoding))
          (t (overlay-put overlay 'before-string (magy-review--old-lines hunk encoding))))
    (if proposed 0 (magy-review--draw-words beg hunk encoding))))

(defun magy-review--old-lines (hunk encoding)
  "Return the lines that HUNK removed, for display at point, or nil.
Columns are in ENCODING."
  (unless (string-empty-p (plist-get hunk :oldText))
    (let ((lines (magy-review--shown-lines
                  (plist-get hunk :oldText) (magy-review-hunk-words hunk "old")
                  'magy-review-removed 'magy-review-removed-word encoding)))
      (magy-review--own-lines
       (if (and (equal "delete" (plist-get hunk :kind)) (magy-review--fringe-p))
           ;; There is no line of the buffer that could have the prefix.
           (replace-regexp-in-string "^\\(?:.\\|\n\\)" (concat magy-review--mark "\\&") lines)
         lines)))))

(defun magy-review--draw-proposed (overlay hunk encoding)
  "Show by OVERLAY what HUNK proposes, below the lines that it is to replace.
Columns are in ENCODING."
  (let ((text (concat
               (unless (string-empty-p (plist-get hunk :newText))
                 (magy-review--shown-lines
                  (plist-get hunk :newText) (magy-review-hunk-words hunk "new")
                  'magy-review-added 'magy-review-added-word encoding))
               (when (equal "conflict" (plist-get hunk :state))
                 (propertize "proposed for other lines: yours have changed since then\n"
                             'face 'magy-review-conflict)))))
    (goto-char (overlay-end overlay))
    (overlay-put overlay
                 (if (= (overlay-start overlay) (overlay-end overlay)) 'before-string 'after-string)
                 (magy-review--own-lines text))))

(defun magy-review--draw-words (beg hunk encoding)
  "Set off the words of HUNK, which begins at BEG, that are new; return how many."
  (let ((words (magy-review-hunk-words hunk "new")))
    (dolist (word words)
      (goto-char beg)
      (forward-line (plist-get word :line))
      (let* ((bol (point))
             (at (magy-review-columns (buffer-substring bol (line-end-position))
                                      (plist-get word :start) (plist-get word :end) encoding)))
        (magy-review--overlay (+ bol (car at)) (+ bol (cdr at)) 'priority -9
                              'evaporate t 'face 'magy-review-added-word)))
    (length words)))

(defun magy-review--help (_window overlay _pos)
  "Return what OVERLAY's change is, for the mouse."
  (magy-review-about (cdr (overlay-get overlay 'magy-hunk))))

(defun magy-review--nearest (files)
  "Return (FILE . HUNK) for the hunks of FILES to draw, in their order."
  (let ((all (cl-loop for file in files
                      append (mapcar (lambda (hunk) (cons file hunk)) (plist-get file :hunks))))
        (here (1- (line-number-at-pos nil t))))
    (if (<= (length all) magy-review-draw-limit)
        all
      (seq-sort-by
       #'magy-review--line #'<
       (seq-take (seq-sort-by (lambda (one) (abs (- here (magy-review--line one)))) #'< all)
                 magy-review-draw-limit)))))

(defun magy-review--line (one)
  "Return the first line, from 0, of the hunk of ONE, a pair (FILE . HUNK)."
  (magy--get (cdr one) :range :start :line))

(defun magy-review--show (files)
  "Show the hunks of FILES in the current buffer, whose text they belong to."
  (magy-review--clear)
  (setq magy-review--files files)
  (let ((encoding (magy-project-encoding (magy-document-project magy--document)))
        (words 0)
        (from (list 0 1)))
    (save-excursion
      (save-restriction
        (widen)
        (magy-review--mark-all encoding)
        (when magy-review-draw
          (pcase-dolist (`(,file . ,hunk) (magy-review--nearest files))
            (when (> words magy-review--words-limit)
              (setq hunk (plist-put (copy-sequence hunk) :words nil)))
            (cl-incf words (magy-review--draw-hunk file hunk encoding from)))))))
  (magy-review--count))

;;;; Keeping in step

(defun magy-review--current-p (files)
  "Return non-nil if FILES belong to the text of the current buffer as it is."
  (and (not (magy--changed-p))
       (cl-every (lambda (file)
                   (eql (plist-get file :docVersion) (magy-document-version magy--document)))
                 files)))

(defun magy-review--refresh (buffer)
  "Get what is under review in BUFFER and show it."
  (when (buffer-live-p buffer)
    (with-current-buffer buffer
      (setq magy-review--timer nil)
      (if-let ((project (and magy--document (magy-document-project magy--document)))
               (entries (and (magy-review--reachable-p project)
                             (magy-review--entries
                              project (magy--uri-to-path (magy-document-uri magy--document))))))
          (let ((asked (cl-incf magy-review--asked)))
            (magy--guarded "showing the review"
              (magy-review--get-all
               project entries (lambda (files) (magy-review--arrived buffer asked files)))))
        (magy-review--clear)))))

(defun magy-review--arrived (buffer asked files)
  "Show FILES, the answer to request number ASKED, in BUFFER if still true."
  (when (buffer-live-p buffer)
    (with-current-buffer buffer
      (when (and magy--document (= asked magy-review--asked))
        (if (magy-review--current-p files)
            (progn (setq magy-review--late 0)
                   (magy-review--show files))
          ;; The server hears of the change and speaks again; this is for the case that it
          ;; had spoken of it before it answered.
          (magy-review--soon (* 0.2 (expt 2 (min 8 (cl-incf magy-review--late))))))))))

(defun magy-review--soon (delay)
  "Get the hunks of the current buffer after DELAY seconds."
  (unless magy-review--timer
    (setq magy-review--timer
          (run-with-timer delay nil #'magy-review--refresh (current-buffer)))))

(defun magy-review--redraw (project paths)
  "The review of PATHS in PROJECT has changed: show it where they are open."
  (dolist (buffer (buffer-list))
    (when-let ((document (buffer-local-value 'magy--document buffer)))
      (when (and (eq project (magy-document-project document))
                 (member (magy--uri-to-path (magy-document-uri document)) paths))
        (with-current-buffer buffer
          (when (and magy-review--timer (> magy-review--late 0))
            (cancel-timer magy-review--timer)
            (setq magy-review--timer nil))
          (magy-review--soon 0.02))))))

(defun magy-review--gone (project _reason)
  "The server of PROJECT has gone: nothing is drawn that may be wrong by now."
  (dolist (buffer (buffer-list))
    (with-current-buffer buffer
      (when (and magy-review--files
                 (or (null magy--document)
                     (eq project (magy-document-project magy--document))))
        (magy-review--clear)))))

(defun magy-review--mode-changed ()
  "Show nothing of the review where `magy-mode' is off."
  (when (and magy-review--files (not magy-mode))
    (magy-review--clear)))

(add-hook 'magy-mode-hook #'magy-review--mode-changed)
(add-hook 'magy-review-changed-functions #'magy-review--redraw)
(add-hook 'magy-death-functions #'magy-review--gone)

(defun magy-review--drop (uri hunks)
  "Show HUNKS, a list of HunkState, no more where URI is open: they are decided."
  (let ((ids (mapcar (lambda (hunk) (plist-get hunk :hunkId)) hunks)))
    (when-let ((buffer (magy--buffer-of uri)))
      (with-current-buffer buffer
        (save-restriction
          (widen)
          (dolist (overlay (overlays-in (point-min) (point-max)))
            (when (member (plist-get (cdr (overlay-get overlay 'magy-hunk)) :hunkId) ids)
              (delete-overlay overlay))))
        (setq magy-review--files (mapcar (lambda (file) (magy-review--without file ids))
                                         magy-review--files)
              magy-review--places
              (cl-remove-if (lambda (place)
                              (member (plist-get (cdddr place) :hunkId) ids))
                            magy-review--places))
        (magy-review--count)))))

(defun magy-review--without (file ids)
  "Return FILE without the hunks called IDS."
  (plist-put (copy-sequence file) :hunks
             (cl-remove-if (lambda (hunk) (member (plist-get hunk :hunkId) ids))
                           (plist-get file :hunks))))

;;;; What is at point

;; Not what is drawn is asked, which is only some of it or nothing at all.

(defun magy-review--on-p (place bol eol)
  "Return non-nil if PLACE is that of a hunk that has the line from BOL to EOL."
  (pcase-let ((`(,beg ,end . ,_) place))
    (and (<= beg eol)
         (or (> end bol)
             (and (= beg end) (>= beg bol))))))

(defun magy-review--places-here ()
  "Return those of `magy-review--places' on the line of point, the best first."
  (save-restriction
    (widen)
    (let* ((bol (line-beginning-position)) (eol (line-end-position))
           (next (min (1+ eol) (point-max))))
      (cl-remove-duplicates
       (append (cl-remove-if-not (lambda (place) (magy-review--on-p place bol eol))
                                 magy-review--places)
               ;; Deleted lines are shown between two lines and belong to both.
               (cl-remove-if-not (lambda (place) (= (car place) (cadr place) next))
                                 magy-review--places))
       :test #'eq :from-end t))))

(defun magy-review-hunks-in (beg end)
  "Return (FILE . HUNK) for each change between BEG and END, from the top."
  (cl-loop for (from to . one) in magy-review--places
           when (and (<= from end) (>= to beg)
                     (or (< from end) (= beg from))
                     (or (> to beg) (= beg from)))
           collect one))

(defun magy-review-hunk-here ()
  "Return (FILE . HUNK) for the change on the line of point, or nil."
  (cddar (magy-review--places-here)))

(defun magy-review-starts ()
  "Return where the changes of this buffer begin, from the top."
  (mapcar (lambda (place) (marker-position (car place))) magy-review--places))

(provide 'magy-review-draw)
;;; magy-review-draw.el ends here
