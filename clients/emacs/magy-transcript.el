;;; magy-transcript.el --- The transcript of a Magy session  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Magy authors
;; SPDX-License-Identifier: GPL-3.0-or-later
;; This is free software with no warranty at all; see the file COPYING.


;;; Commentary:

;; A transcript is a list of items, each one stretch of a read-only
;; buffer that carries the item as text property `magy-item'.  An item is
;; a message, some thinking, a tool call, a question and so on; updates
;; from the server make items or change them, and every update may come
;; twice.  Items that changed are drawn once a batch; text that streams
;; is only inserted at its end.

;;; Code:

(require 'magy-connection)
(require 'magy-markdown)

(defface magy-question '((t :inherit warning))
  "Face of an open question."
  :group 'magy-faces)

(cl-defstruct (magy-item (:constructor magy-item--make) (:copier nil))
  "One thing in a transcript."
  kind                                  ; symbol; see `magy-transcript-render'
  data                                  ; plist
  start                                 ; marker; the end is where the property ends
  (folded 'default)                     ; t, nil or default
  page                                  ; `magy-transcript--at' when it was made
  streamed                              ; only deltas so far: not in the log yet
  pending                               ; streamed text to insert, newest first
  (done 0) fence)                       ; fontified up to this offset, within this fence

(defvar-local magy-transcript--project nil
  "The project that the transcript belongs to.")

(defvar-local magy-transcript--items nil
  "Hash table: id -> `magy-item'.")

(defvar-local magy-transcript--dirty nil
  "Items to draw at the end of the batch.")

(defvar magy-transcript--at nil
  "Marker where new items go while older ones are inserted, else nil.")

;;;; The buffer

(defvar magy-transcript-mode-map
  (let ((map (make-sparse-keymap)))
    (define-key map (kbd "TAB") #'magy-transcript-toggle)
    (define-key map (kbd "<backtab>") #'magy-transcript-toggle-all)
    (define-key map (kbd "RET") #'magy-transcript-visit)
    (define-key map (kbd "M-n") #'magy-transcript-next-turn)
    (define-key map (kbd "M-p") #'magy-transcript-previous-turn)
    map)
  "Keymap of `magy-transcript-mode'; other files add their commands.")

(define-derived-mode magy-transcript-mode special-mode "Magy"
  "What an agent says and does.
\\{magy-transcript-mode-map}"
  (setq-local buffer-undo-list t
              truncate-lines nil
              scroll-conservatively 101 ; the end stays at the bottom
              word-wrap t
              header-line-format '(:eval (magy-transcript--header)))
  (add-to-invisibility-spec 'magy-markup)
  (setq magy-transcript--items (make-hash-table :test #'equal)))

(defun magy-transcript-buffer (project)
  "Return PROJECT's transcript buffer, made when needed."
  (let ((buffer (magy-project-buffer project)))
    (if (buffer-live-p buffer)
        buffer
      (setq buffer (generate-new-buffer (format "*magy: %s*" (magy-project-name project))))
      (with-current-buffer buffer
        (magy-transcript-mode)
        (setq magy-transcript--project project
              default-directory (magy-project-root project))
        (add-hook 'kill-buffer-hook #'magy-transcript--killed nil t))
      (setf (magy-project-buffer project) buffer))))

(defun magy-transcript--killed ()
  "Forget what was shown, so that the next command attaches afresh."
  (setf (magy-project-buffer magy-transcript--project) nil
        (magy-project-attached magy-transcript--project) nil
        (magy-project-seq magy-transcript--project) 0))

(defun magy-transcript-reset ()
  "Empty the current transcript."
  (let ((inhibit-read-only t))
    (erase-buffer)
    (clrhash magy-transcript--items)
    (setq magy-transcript--dirty nil)))

(defun magy-transcript--header ()
  "Return the header line: what the session is and does."
  (let* ((project magy-transcript--project)
         (state (magy-project-state project))
         (options (magy-project-options project))
         (words (list (or (magy-project-title project) (magy-project-name project))
                      (alist-get "agent" options nil nil #'equal)
                      (alist-get "model" options nil nil #'equal)
                      (and (> (magy-project-tokens project) 0)
                           (format "%s tokens" (file-size-human-readable
                                                (magy-project-tokens project) 'si))))))
    (concat " "
            (cond ((magy-project-questions project)
                   (propertize "? question" 'face 'magy-question))
                  ((not (magy-live-p project)) (propertize "○ off" 'face 'shadow))
                  ((equal state "running") (propertize "● running" 'face 'success))
                  (t (concat "● " (if (equal state "requires_action") "waiting" state))))
            "  "
            (string-replace "%" "%%" (string-join (delq nil words) " · ")))))

;;;; Items

(defun magy-transcript-item (id)
  "Return the item called ID, or nil."
  (gethash id magy-transcript--items))

(defun magy-transcript--touch (item)
  "Have ITEM drawn at the end of the batch."
  (cl-pushnew item magy-transcript--dirty :test #'eq))

(defun magy-transcript-ensure (kind id)
  "Return the item called ID, made as a KIND of item when needed."
  (or (magy-transcript-item id)
      (let ((item (magy-item--make :kind kind :page magy-transcript--at)))
        (goto-char (or magy-transcript--at (point-max)))
        (let ((beg (point)))
          (insert (propertize "\n\n" 'magy-item item))
          (setf (magy-item-start item) (copy-marker beg t)))
        (puthash id item magy-transcript--items)
        (magy-transcript--touch item)
        item)))

(defun magy-transcript-merge (item &rest plist)
  "Put the non-nil values of PLIST into ITEM and have it drawn.
While older entries are read, what was known before is newer and stays."
  (let ((data (magy-item-data item))
        (newer (not (eq magy-transcript--at (magy-item-page item)))))
    (cl-loop for (key value) on plist by #'cddr
             when (and value (not (and magy-transcript--at newer (plist-get data key))))
             do (setq data (plist-put data key value)))
    (setf (magy-item-data item) data)
    (magy-transcript--touch item)))

(defun magy-transcript--end (item)
  "Return where ITEM ends."
  (next-single-property-change (magy-item-start item) 'magy-item nil (point-max)))

(defun magy-transcript-remove (id)
  "Take the item called ID away."
  (when-let ((item (magy-transcript-item id)))
    (delete-region (magy-item-start item) (magy-transcript--end item))
    (setq magy-transcript--dirty (delq item magy-transcript--dirty))
    (remhash id magy-transcript--items)))

(defun magy-transcript-drop-streamed ()
  "Take away what was streamed and never became part of the log."
  (dolist (id (hash-table-keys magy-transcript--items))
    (when (magy-item-streamed (magy-transcript-item id))
      (magy-transcript-remove id))))

(defun magy-transcript--at-point ()
  "Return the item at point, or nil."
  (get-text-property (point) 'magy-item))

;;;; Drawing

(cl-defgeneric magy-transcript-render (kind item)
  "Return ITEM, which is of KIND, as a propertized string.")

(defun magy-transcript--draw (item)
  "Draw ITEM as it is now."
  (if (eq (magy-item-kind item) 'agent)
      (magy-transcript--draw-agent item)
    (let ((start (marker-position (magy-item-start item)))
          (text (magy-transcript-render (magy-item-kind item) item)))
      (goto-char start)
      (delete-region start (magy-transcript--end item))
      (insert (propertize (concat text "\n") 'magy-item item))
      (set-marker (magy-item-start item) start))))

(defun magy-transcript--draw-agent (item)
  "Insert what is new in the agent message ITEM, and fontify whole lines.
The message is followed by two newlines that are not part of it."
  (let* ((whole (plist-get (magy-item-data item) :text))
         (start (marker-position (magy-item-start item)))
         (end (- (magy-transcript--end item) 2))
         (new (if (magy-item-pending item)
                  (apply #'concat (nreverse (magy-item-pending item)))
                "")))
    (when (and whole (not (equal whole (buffer-substring-no-properties start end))))
      (delete-region start end)
      (setf (magy-item-done item) 0
            (magy-item-fence item) nil)
      (setq end start new whole))
    (goto-char end)
    (insert (propertize new 'magy-item item))
    (set-marker (magy-item-start item) start)
    (setf (magy-item-pending item) nil)
    (let ((from (+ start (magy-item-done item)))
          (to (if whole (point) (line-beginning-position))))
      (when (< from to)
        (setf (magy-item-fence item) (magy-markdown-fontify from to (magy-item-fence item))
              (magy-item-done item) (- to start))))))

(defun magy-transcript--place (pos)
  "Return what position POS means: the end, or an item and an offset in it."
  (let ((item (and (< pos (point-max)) (get-text-property pos 'magy-item))))
    (cond (item (cons item (- pos (magy-item-start item))))
          ((= pos (point-max)) 'end)
          (t pos))))

(defun magy-transcript--position (place)
  "Return the position that PLACE means now."
  (pcase place
    ('end (point-max))
    (`(,item . ,offset)
     (min (+ (magy-item-start item) offset)
          (max (magy-item-start item) (1- (magy-transcript--end item)))))
    (_ (min place (point-max)))))

(defun magy-transcript-edit (function)
  "Call FUNCTION, which may change items; draw them; keep point in all windows.
Point at the end stays at the end."
  (let ((inhibit-read-only t)
        (own (magy-transcript--place (point)))
        (windows (mapcar (lambda (window)
                           (cons window (magy-transcript--place (window-point window))))
                         (get-buffer-window-list nil nil t))))
    (unwind-protect
        (progn
          (funcall function)
          (mapc #'magy-transcript--draw (nreverse magy-transcript--dirty)))
      (setq magy-transcript--dirty nil)
      (goto-char (magy-transcript--position own))
      (pcase-dolist (`(,window . ,place) windows)
        (set-window-point window (magy-transcript--position place)))
      (force-mode-line-update t))))

(defun magy-transcript-show-older-button (function)
  "Offer at the top to call FUNCTION for older turns; nil takes the offer away."
  (let ((end (next-single-property-change (point-min) 'magy-top nil (point-max))))
    (when (and (< (point-min) (point-max)) (get-text-property (point-min) 'magy-top))
      (delete-region (point-min) end)))
  (when function
    (goto-char (point-min))
    (insert (propertize (concat (magy-transcript-button "Show older" function) "\n\n")
                        'magy-top t))))


(defun magy-transcript-button (label function)
  "Return a button LABEL that calls FUNCTION."
  (make-text-button label nil 'action (lambda (_) (funcall function)) 'follow-link t))

;;;; Commands

(defun magy-transcript-toggle ()
  "Fold or unfold the item at point."
  (interactive)
  (let ((item (or (magy-transcript--at-point) (user-error "Nothing here to fold"))))
    (magy-transcript--set-folded (list item) (not (magy-transcript--shown-folded-p item)))))

(defun magy-transcript--shown-folded-p (item)
  "Return non-nil if ITEM is drawn folded."
  (save-excursion
    (goto-char (magy-item-start item))
    (goto-char (line-end-position))
    (>= (1+ (point)) (1- (magy-transcript--end item)))))

(defun magy-transcript--set-folded (items folded)
  "Draw ITEMS as FOLDED says."
  (magy-transcript-edit (lambda ()
                          (dolist (item items)
                            (setf (magy-item-folded item) folded)
                            (magy-transcript--touch item)))))

(defun magy-transcript-toggle-all ()
  "Fold all thinking and tool calls, or unfold them if they are folded."
  (interactive)
  (let ((items (cl-remove-if-not (lambda (item) (memq (magy-item-kind item) '(thought tool)))
                                 (hash-table-values magy-transcript--items))))
    (magy-transcript--set-folded
     items (not (cl-every #'magy-transcript--shown-folded-p items)))))

(defun magy-transcript-next-turn (&optional count)
  "Go to the COUNTth next prompt; backwards if negative."
  (interactive "p")
  (let* ((here (point))
         (starts (sort (cl-loop for item being the hash-values of magy-transcript--items
                                when (eq (magy-item-kind item) 'user)
                                collect (marker-position (magy-item-start item)))
                       #'<))
         (count (or count 1))
         (ahead (if (> count 0)
                    (cl-remove-if (lambda (pos) (<= pos here)) starts)
                  (nreverse (cl-remove-if (lambda (pos) (>= pos here)) starts)))))
    (goto-char (or (nth (1- (abs count)) ahead)
                   (if (> count 0) (point-max) (point-min))))))

(defun magy-transcript-previous-turn (&optional count)
  "Go to the COUNTth previous prompt."
  (interactive "p")
  (magy-transcript-next-turn (- (or count 1))))

(defun magy-transcript-visit ()
  "Visit the first file that the tool call at point is about."
  (interactive)
  (let* ((item (magy-transcript--at-point))
         (locations (and item (plist-get (magy-item-data item) :locations))))
    (if (> (length locations) 0)
        (find-file-other-window (plist-get (aref locations 0) :path))
      (user-error "No file here"))))

(provide 'magy-transcript)
;;; magy-transcript.el ends here
