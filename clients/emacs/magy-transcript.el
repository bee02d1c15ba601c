;;; magy-transcript.el --- The transcript of a Magy session  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Magy authors
;; SPDX-License-Identifier: GPL-3.0-or-later
;; This is free software with no warranty at all; see the file COPYING.


;;; Commentary:

;; A transcript is a list of items, each one stretch of read-only text
;; that carries the item as text property `magy-item'.  An item is a
;; message, some thinking, a tool call, a question and so on; updates
;; from the server make items or change them, and every update may come
;; twice.  Items that changed are drawn once a batch; text that streams
;; is only inserted at its end.
;;
;; Behind the items is the foot: what waits, and where the person
;; writes.  Nothing here changes what is written there.

;;; Code:

(require 'magy-connection)
(require 'magy-markdown)

(defface magy-question '((t :inherit warning))
  "Face of an open question."
  :group 'magy-faces)

(defface magy-heading-label '((t :inherit (shadow bold)))
  "Face of the words that say who speaks."
  :group 'magy-faces)

(defface magy-undone '((t :inherit shadow :strike-through t))
  "Face of the first line of what was undone."
  :group 'magy-faces)

(cl-defstruct (magy-item (:constructor magy-item--make) (:copier nil))
  "One thing in a transcript."
  kind                                  ; symbol; see `magy-transcript-render'
  id
  data                                  ; plist
  start                                 ; marker; the end is where the property ends
  (folded 'default)                     ; as a person chose: t, nil, or default
  shown                                 ; non-nil if it is drawn folded
  seq last                              ; first and last entry of the log about it
  page                                  ; `magy-transcript--at' when it was made
  streamed                              ; only deltas so far: not in the log yet
  pending                               ; streamed text to insert, newest first
  (head 0)                              ; length of the heading before streamed text
  (done 0) state)                       ; fontified up to this offset; how it goes on there

(defvar-local magy-transcript--project nil
  "The project whose server serves the transcript.")

(defvar-local magy-transcript--view nil
  "What the transcript shows: the project's session, or a view of another.")

(defvar-local magy-transcript--style 'markdown
  "The value of `magy-transcript-style' that the transcript is drawn with.")

(defvar-local magy-transcript--items nil
  "Hash table: id -> `magy-item'.")

(defvar-local magy-transcript--dirty nil
  "Items to draw at the end of the batch.")

(defvar-local magy-transcript--foot nil
  "Marker behind the last item.")

(defvar-local magy-transcript--turns 0
  "How many prompts are drawn.")

(defvar-local magy-transcript--answered nil
  "Non-nil if the heading of what the agent says was drawn since the last prompt.")

(defvar magy-transcript--at nil
  "Marker where new items go while older ones are inserted, else nil.")

(defvar magy-transcript-made-hook nil
  "Hook run in a new transcript of a project, to which it may add a foot.")

(defvar-local magy-transcript-moved-functions nil
  "Functions called with the number of characters that the foot has moved by.")

;;;; The buffer

(defvar magy-transcript-mode-map
  (let ((map (make-sparse-keymap)))
    (define-key map (kbd "TAB") #'magy-transcript-toggle)
    (define-key map (kbd "<backtab>") #'magy-transcript-toggle-all)
    (define-key map (kbd "RET") #'magy-transcript-visit)
    (define-key map (kbd "M-n") #'magy-transcript-next-turn)
    (define-key map (kbd "M-p") #'magy-transcript-previous-turn)
    (define-key map (kbd "C-g") #'magy-transcript-interrupt)
    (define-key map "w" #'magy-copy-as-org)
    (define-key map "?" #'magy-menu)
    map)
  "Keymap of `magy-transcript-mode', outside of the input.
Other files add their commands.")

(define-derived-mode magy-transcript-mode special-mode "Magy"
  "What an agent says and does.
\\{magy-transcript-mode-map}"
  (setq-local buffer-undo-list t
              truncate-lines nil
              scroll-conservatively 101 ; the end stays at the bottom
              word-wrap t
              bidi-paragraph-direction 'left-to-right ; finding it out takes long
              filter-buffer-substring-function #'magy-transcript--copy
              header-line-format '(:eval (magy-transcript-header)))
  (add-to-invisibility-spec 'magy-markup)
  (add-to-invisibility-spec 'magy-fold)
  (setq magy-transcript--items (make-hash-table :test #'equal)
        magy-transcript--foot (copy-marker (point-max) t)))

(autoload 'magy-copy-as-org "magy-export" nil t)
(autoload 'magy-menu "magy-menu" nil t)
(declare-function magy-org-transcript-begin "magy-org-transcript")
(declare-function magy-transcript-header "magy-header")
(declare-function magy-transcript-toggle "magy-sections")
(declare-function magy-transcript-toggle-all "magy-sections")
(declare-function magy-transcript-visit "magy-sections")
(declare-function magy-transcript-next-turn "magy-sections")
(declare-function magy-transcript-previous-turn "magy-sections")
(declare-function magy-transcript-interrupt "magy-sections")

(defun magy-transcript--copy (beg end &optional delete)
  "Return the text from BEG to END as it is to be copied; DELETE it if non-nil.
What makes it read-only stays behind, and so do ornaments."
  (let ((text (if delete
                  (delete-and-extract-region beg end)
                (buffer-substring beg end))))
    (dolist (ornament '(magy-top magy-queue magy-separator))
      (setq text (magy-transcript--without ornament text)))
    (set-text-properties 0 (length text) nil text)
    text))

(defun magy-transcript--without (property text)
  "Return TEXT without the stretches that have PROPERTY."
  (let ((pos 0) parts)
    (while (< pos (length text))
      (let ((end (next-single-property-change pos property text (length text))))
        (unless (get-text-property pos property text)
          (push (substring text pos end) parts))
        (setq pos end)))
    (apply #'concat (nreverse parts))))

(defmacro magy-transcript-whole (&rest body)
  "Evaluate BODY with all of the transcript, though a person has narrowed it."
  (declare (indent 0) (debug t))
  `(save-restriction (widen) ,@body))

(defun magy-transcript-buffer (project)
  "Return PROJECT's transcript buffer, made when needed."
  (let ((buffer (magy-project-buffer project)))
    (if (buffer-live-p buffer)
        buffer
      (setq buffer (generate-new-buffer
                    (string-replace "%s" (magy-project-name project) magy-buffer-name)))
      (magy-transcript-prepare buffer project project)
      (with-current-buffer buffer
        (run-hooks 'magy-transcript-made-hook))
      buffer)))

(defun magy-transcript-prepare (buffer project view)
  "Make BUFFER the transcript of VIEW, which PROJECT's server serves."
  (with-current-buffer buffer
    (magy-transcript-mode)
    (setq magy-transcript--project project
          magy-transcript--view view
          default-directory (magy-project-root project))
    (magy-transcript--take-style)
    (add-hook 'kill-buffer-hook #'magy-transcript--killed nil t)
    ;; In another mode it is a text like any other, and the next transcript a new one.
    (add-hook 'change-major-mode-hook #'magy-transcript--killed nil t))
  (setf (magy-project-buffer view) buffer))

(defun magy-transcript--take-style ()
  "Have the transcript, of which nothing is drawn, follow the option of its style."
  (unless (eq magy-transcript--style magy-transcript-style)
    (setq magy-transcript--style magy-transcript-style)
    (cond ((eq magy-transcript-style 'org)
           (require 'magy-org-transcript)
           (magy-org-transcript-begin))
          (t (setq mode-name "Magy")
             (kill-local-variable 'outline-regexp)))))

(defun magy-transcript--killed ()
  "Forget what was shown, so that the next command attaches afresh."
  (when (magy-transcript--own-p)
    (setf (magy-project-buffer magy-transcript--view) nil
          (magy-project-attached magy-transcript--view) nil
          (magy-project-seq magy-transcript--view) 0)))

(defun magy-transcript--own-p ()
  "Return non-nil if this is the transcript itself, and no clone of it."
  ;; Hooks of killing a buffer outlive its mode.
  (and magy-transcript--view
       (eq (current-buffer) (magy-project-buffer magy-transcript--view))))

(defun magy-transcript-reset ()
  "Take all items of the current transcript away; the foot stays."
  (let ((inhibit-read-only t))
    (magy-transcript-whole
      (delete-region (point-min) magy-transcript--foot))
    (maphash (lambda (_ item) (set-marker (magy-item-start item) nil)) magy-transcript--items)
    (clrhash magy-transcript--items)
    (setq magy-transcript--dirty nil
          magy-transcript--turns 0
          magy-transcript--answered nil)
    (magy-transcript--take-style)))

(defun magy-transcript-end ()
  "Return the position behind the last item."
  (marker-position magy-transcript--foot))

;;;; Items

(defun magy-transcript-item (id)
  "Return the item called ID, or nil."
  (gethash id magy-transcript--items))

(defun magy-transcript-touch (item)
  "Have ITEM drawn at the end of the batch."
  (cl-pushnew item magy-transcript--dirty :test #'eq))

(defun magy-transcript--mark (text item)
  "Return TEXT as part of ITEM, for the buffer."
  (propertize text 'magy-item item 'read-only t 'front-sticky '(read-only)))

(cl-defgeneric magy-transcript-frame (kind)
  "Return what a new item of KIND begins and ends with: (HEAD . TAIL).
What streams into it goes between them."
  (cons (if (or (not (eq kind 'agent)) magy-transcript--answered
                (equal magy-assistant-prompt ""))
            ""
          (concat (propertize magy-assistant-prompt 'face 'magy-heading-label) "\n"))
        "\n\n"))

(defun magy-transcript--begin (kind)
  "Return the frame of a new item of KIND; note who speaks."
  (prog1 (magy-transcript-frame kind)
    (when (eq kind 'user)
      (cl-incf magy-transcript--turns))
    (pcase kind
      ((or 'user 'mail) (setq magy-transcript--answered nil))
      ('agent (setq magy-transcript--answered t)))))

(defun magy-transcript--streams ()
  "Return where the first item begins that is not in the log yet, or nil."
  (let (starts)
    (maphash (lambda (_ item)
               (when (magy-item-streamed item)
                 (push (marker-position (magy-item-start item)) starts)))
             magy-transcript--items)
    (and starts (apply #'min starts))))

(defun magy-transcript-ensure (kind id)
  "Return the item called ID, made as a KIND of item when needed."
  (or (magy-transcript-item id)
      (let* ((frame (magy-transcript--begin kind))
             (item (magy-item--make :kind kind :id id :page magy-transcript--at
                                    :head (length (car frame)))))
        (goto-char (or magy-transcript--at
                       ;; A prompt of another editor may come after what is streamed about it.
                       (and (eq kind 'user) (magy-transcript--streams))
                       magy-transcript--foot))
        (let ((beg (point)))
          (insert (magy-transcript--mark (concat (car frame) (cdr frame)) item))
          (setf (magy-item-start item) (copy-marker beg t)))
        (puthash id item magy-transcript--items)
        (magy-transcript-touch item)
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
    (magy-transcript-touch item)))

(defun magy-transcript--end (item)
  "Return where ITEM ends."
  (let ((foot (marker-position magy-transcript--foot)))
    ;; What streams is the last item, and may be long.
    (if (eq item (get-text-property (1- foot) 'magy-item))
        foot
      (next-single-property-change (magy-item-start item) 'magy-item nil foot))))

(defun magy-transcript--forget (item)
  "Take ITEM, whose text is gone or will be, out of the books."
  (when (eq (magy-item-kind item) 'user)
    (cl-decf magy-transcript--turns))
  (when (and (eq (magy-item-kind item) 'agent) (> (magy-item-head item) 0))
    (setq magy-transcript--answered nil))
  (set-marker (magy-item-start item) nil)
  (setq magy-transcript--dirty (delq item magy-transcript--dirty))
  (remhash (magy-item-id item) magy-transcript--items))

(defun magy-transcript-remove (id)
  "Take the item called ID away."
  (when-let ((item (magy-transcript-item id)))
    (delete-region (magy-item-start item) (magy-transcript--end item))
    (magy-transcript--forget item)))

(defun magy-transcript-map-back (function)
  "Call FUNCTION with each item, the last one first, until it returns non-nil.
Return what it returned."
  (let ((pos (marker-position magy-transcript--foot)) item found)
    (while (and (not found) (> pos (point-min))
                (setq item (get-text-property (1- pos) 'magy-item)))
      (setq pos (marker-position (magy-item-start item))
            found (funcall function item)))
    found))

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

(cl-defgeneric magy-transcript-styled (_item plain)
  "Return what is drawn of ITEM in the style of the transcript.
PLAIN, which is not empty, is what `magy-transcript-render' returned."
  plain)

(cl-defgeneric magy-transcript-draw (_kind item)
  "Draw ITEM, which is of KIND, as it is now: by default anew."
  (let ((start (marker-position (magy-item-start item)))
        (text (magy-transcript-render (magy-item-kind item) item)))
    (goto-char start)
    (delete-region start (magy-transcript--end item))
    (insert (magy-transcript--mark (if (equal text "")
                                       (propertize "\n" 'invisible 'magy-fold)
                                     (concat (magy-transcript-styled item text) "\n"))
                                   item))
    (when (plist-get (magy-item-data item) :undone)
      (add-face-text-property start (point) 'shadow)
      (goto-char start)
      (add-face-text-property start (line-end-position) 'magy-undone))
    (set-marker (magy-item-start item) start)))

(defun magy-transcript-show-older-button (function)
  "Offer at the top to call FUNCTION for older turns; nil takes the offer away."
  (let ((end (next-single-property-change (point-min) 'magy-top nil (point-max))))
    (when (and (< (point-min) (point-max)) (get-text-property (point-min) 'magy-top))
      (delete-region (point-min) end)))
  (when function
    (goto-char (point-min))
    (insert (propertize (concat (magy-transcript-button "Show older" function) "\n\n")
                        'magy-top t 'read-only t 'front-sticky '(read-only)))))

(defun magy-transcript-button (label function)
  "Return a button LABEL that calls FUNCTION."
  (make-text-button label nil 'action (lambda (_) (funcall function)) 'follow-link t))

(provide 'magy-transcript)
;;; magy-transcript.el ends here
