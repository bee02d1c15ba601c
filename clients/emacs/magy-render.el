;;; magy-render.el --- How Magy's transcript items look  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Magy authors
;; SPDX-License-Identifier: GPL-3.0-or-later
;; This is free software with no warranty at all; see the file COPYING.

;;; Commentary:

;; Each kind of item is drawn by a method of `magy-transcript-render',
;; from its data alone.

;;; Code:

(require 'magy-media)
(require 'magy-sections)

(defface magy-user
  '((((min-colors 256) (background dark)) :background "#2b3140" :extend t)
    (((min-colors 256)) :background "#e8edf6" :extend t)
    (t :inherit bold))
  "Face of what the person said."
  :group 'magy-faces)

(defface magy-thought '((t :inherit shadow))
  "Face of thinking."
  :group 'magy-faces)

(defconst magy-transcript--longest-prompt 24
  "Lines from which on a prompt is folded until a person unfolds it.")

(defconst magy-transcript--prompt-beginning 8
  "Lines that are shown of a folded prompt.")

;;;; Helpers

(defun magy-transcript--indent (text &optional face)
  "Return TEXT shown indented and in FACE; copying it yields it as it is."
  (let ((text (propertize text 'line-prefix "    " 'wrap-prefix "    ")))
    (when face
      (add-face-text-property 0 (length text) face t text))
    text))

(defun magy-transcript--more (lines)
  "Return the words that LINES lines are folded here."
  (propertize (if (= lines 1) "  …1 line" (format "  …%d lines" lines)) 'face 'shadow))

(defun magy-transcript--section (item head body default)
  "Return HEAD and, unless ITEM is folded, BODY.
DEFAULT is as in `magy-transcript--folded-p'."
  (let ((body (string-trim-right body)))
    (cond ((string-empty-p body)
           (magy-transcript--folded-p item nil)
           (concat head "\n"))
          ((magy-transcript--folded-p item default)
           (concat head (magy-transcript--more (1+ (cl-count ?\n body))) "\n"))
          ;; The last line's background reaches as far as that of the others.
          (t (concat head "\n" body
                     (propertize "\n" 'face (get-text-property (1- (length body)) 'face
                                                               body)))))))

(defun magy-transcript--word (word)
  "Return WORD, which stands before something, and a space; nothing if it is empty."
  (if (member word '(nil "")) "" (concat (propertize word 'face 'shadow) " ")))

;;;; Prompts, notices, the plan

(defun magy-transcript--cut (item text)
  "Return TEXT, or its beginning while ITEM is folded."
  (let ((lines (1+ (cl-count ?\n text))))
    (if (magy-transcript--folded-p item (> lines magy-transcript--longest-prompt))
        (let ((shown (if (> lines magy-transcript--prompt-beginning)
                         magy-transcript--prompt-beginning
                       1)))
          (concat (string-join (seq-take (split-string text "\n") shown) "\n")
                  (if (< shown lines) (magy-transcript--more (- lines shown)) "")))
      text)))

(defun magy-transcript--speaker-name (item)
  "Return who says ITEM, a prompt: the person, or whoever gave a child its task."
  (if (string-suffix-p ":task" (magy-item-id item)) "TASK" magy-user-prompt))

(defun magy-transcript--speaker (item)
  "Return who says ITEM, a prompt, as it is shown."
  (let ((word (magy-transcript--speaker-name item)))
    (if (member word '(nil "")) "" (propertize (concat word " ") 'face 'magy-heading-label))))

(cl-defmethod magy-transcript-render ((_kind (eql 'user)) item)
  "Draw ITEM, a prompt; the foot shows one that waits."
  (let* ((data (magy-item-data item))
         (queue (plist-get data :queue)))
    (if (and (eq queue 'waiting) (< (magy-transcript-end) (point-max)))
        ""
      (let ((text (concat (magy-transcript--speaker item)
                          (propertize "❯ " 'face 'shadow)
                          (magy-transcript--cut
                           item (mapconcat #'magy-transcript--block
                                           (plist-get data :content) "\n"))
                          (pcase queue
                            ('waiting "  (waiting)")
                            ('dropped "  (dropped)"))
                          (and (plist-get data :undone) "  (undone)")
                          "\n")))
        (add-face-text-property 0 (length text) 'magy-user t text)
        text))))

(cl-defmethod magy-transcript-render ((_kind (eql 'notice)) item)
  "Draw ITEM, a notice."
  (let* ((data (magy-item-data item))
         (failed (equal (plist-get data :severity) "error"))
         (title (plist-get data :title))
         (description (plist-get data :description)))
    (concat (propertize (concat "— " (and failed (magy-transcript--error-title title))
                                (and (not failed) title))
                        'face (pcase (plist-get data :severity)
                                ("error" 'error) ("warning" 'warning) (_ 'shadow)))
            (if (member description '(nil ""))
                ""
              (propertize (concat ": " description) 'face 'shadow))
            "\n")))

(defun magy-transcript--error-title (title)
  "Return TITLE with the word for errors before it, but not twice the same."
  (cond ((member magy-error-prompt '(nil "")) title)
        ((equal (downcase title) (downcase magy-error-prompt)) magy-error-prompt)
        (t (concat magy-error-prompt ": " title))))

(cl-defmethod magy-transcript-render ((_kind (eql 'plan)) item)
  "Draw ITEM, the agent's plan."
  (let* ((entries (plist-get (magy-item-data item) :entries))
         (finished (cl-count "completed" entries :test #'equal
                             :key (lambda (entry) (plist-get entry :status)))))
    (magy-transcript--section
     item
     (propertize (format "Plan %d/%d" finished (length entries)) 'face 'bold)
     (mapconcat (lambda (entry)
                  (pcase-let ((`(,mark . ,face)
                               (pcase (plist-get entry :status)
                                 ("completed" '("✓" . shadow))
                                 ("in_progress" '("▸" . bold))
                                 ("cancelled" '("✗" . shadow))
                                 (_ '("·")))))
                    (magy-transcript--indent
                     (concat mark " " (plist-get entry :content) "\n") face)))
                entries "")
     nil)))

;;;; Tool calls

(defun magy-transcript--tool-mark (status)
  "Return the mark of a tool call with STATUS, in its face."
  (pcase status
    ("completed" (propertize "✓" 'face 'success))
    ("failed" (propertize "✗" 'face 'error))
    ("cancelled" (propertize "⊘" 'face 'shadow))
    ("in_progress" (propertize "▸" 'face 'warning))
    (_ (propertize "·" 'face 'shadow))))

(defun magy-transcript--tool-part (part)
  "Return PART of what a tool call shows: a diff, text, a picture."
  (pcase (plist-get part :type)
    ("diff" (magy-transcript--diff (magy--get part :patch :text)))
    ("content"
     (let ((block (plist-get part :content)))
       (if (equal (plist-get block :type) "text")
           (magy-transcript--indent
            (concat (string-trim-right (plist-get block :text)) "\n") 'shadow)
         (concat (magy-transcript--indent (magy-transcript--block block)) "\n"))))
    (_ "")))

(defun magy-transcript-code (data)
  "Return what the tool call DATA runs, as parts, unless its content says so still."
  (let ((code (plist-get data :code)))
    (unless (equal code (append (plist-get data :content) nil))
      code)))

(defun magy-transcript--tool-body (data)
  "Return in the tool call DATA all that runs, the diff and output."
  (let ((tail (plist-get data :tail)) (code (magy-transcript-code data)))
    (concat (mapconcat #'magy-transcript--tool-part code "")
            (and code "\n")
            (mapconcat #'magy-transcript--tool-part (plist-get data :content) "")
            (and tail (magy-transcript--indent tail 'shadow)))))

(defun magy-transcript--diff-face (line)
  "Return the face of LINE of a diff."
  (cond ((string-match-p "\\`\\(?:---\\|\\+\\+\\+\\|diff\\|index\\) " line) 'shadow)
        ((string-prefix-p "@@" line) 'shadow)
        ((string-prefix-p "+" line) 'diff-added)
        ((string-prefix-p "-" line) 'diff-removed)
        (t 'diff-context)))

(defun magy-transcript--diff (patch)
  "Return the unified diff PATCH in the faces of `diff-mode'."
  (require 'diff-mode)
  (let ((patch (copy-sequence patch)) (start 0))
    (while (and (< start (length patch)) (string-match ".*\n?" patch start))
      (let ((line (match-string 0 patch)))
        (put-text-property
         start (match-end 0) 'face
         (magy-transcript--diff-face line) patch))
      (setq start (match-end 0)))
    (magy-transcript--indent patch)))

(defun magy-transcript--tool-head (data)
  "Return the first line of the tool call DATA.
It says what it does, how it ended, and which rule decided."
  (let ((ended (plist-get data :ended))
        (rule (magy--get data :decision :rule))
        (duration (plist-get data :duration)))
    (concat (magy-transcript--word magy-tool-call-prompt)
            (magy-transcript--tool-mark (plist-get data :status)) " "
            (or (plist-get data :title) "…")
            (and ended (not (equal ended "completed"))
                 (propertize (concat "  " ended) 'face 'error))
            (and duration (>= duration 1) (propertize (format "  %.1f s" duration) 'face 'shadow))
            (and rule (propertize (format "  %s: %s" (magy--get data :decision :action) rule)
                                  'face 'shadow)))))

(cl-defmethod magy-transcript-render ((_kind (eql 'tool)) item)
  "Draw ITEM, a tool call.
One that is done is folded, unless it changed something."
  (let* ((data (magy-item-data item))
         (diff (seq-some (lambda (part) (equal "diff" (plist-get part :type)))
                         (plist-get data :content))))
    (magy-transcript--section item (magy-transcript--tool-head data)
                              (magy-transcript--tool-body data)
                              (and (equal (plist-get data :status) "completed") (not diff)))))

(defconst magy-transcript--tail 2000
  "How many characters of a running tool's output are shown.")

(defun magy-transcript--tail-of (text)
  "Return the last lines of TEXT."
  (if (<= (length text) magy-transcript--tail)
      text
    (let ((end (substring text (- magy-transcript--tail))))
      (if (string-match "\n." end) (substring end (1+ (match-beginning 0))) end))))

(provide 'magy-render)
;;; magy-render.el ends here
