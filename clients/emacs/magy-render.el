;;; magy-render.el --- How Magy's transcript items look  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Magy authors
;; SPDX-License-Identifier: GPL-3.0-or-later
;; This is free software with no warranty at all; see the file COPYING.

;;; Commentary:

;; Each kind of item is drawn by a method of `magy-transcript-render',
;; from its data alone.

;;; Code:

(require 'diff-mode)
(require 'magy-transcript)

(defface magy-user
  '((((min-colors 256) (background dark)) :background "#2b3140" :extend t)
    (((min-colors 256)) :background "#e8edf6" :extend t)
    (t :inherit bold))
  "Face of what the person said."
  :group 'magy-faces)

(defface magy-thought '((t :inherit shadow))
  "Face of thinking."
  :group 'magy-faces)

(defun magy-transcript--indent (text &optional face)
  "Return TEXT shown indented and in FACE; copying it yields it as it is."
  (let ((text (propertize text 'line-prefix "    " 'wrap-prefix "    ")))
    (when face
      (add-face-text-property 0 (length text) face t text))
    text))

(defun magy-transcript--folded-p (item default)
  "Return non-nil if ITEM is folded; DEFAULT says so until a person chose."
  (pcase (magy-item-folded item)
    ('default default)
    (folded folded)))

(defun magy-transcript--section (item head body default)
  "Return HEAD and, unless ITEM is folded, BODY.  DEFAULT: see above."
  (let ((body (string-trim-right body)))
    (cond ((string-empty-p body) (concat head "\n"))
          ((magy-transcript--folded-p item default)
           (concat head (propertize (format "  …%d lines" (1+ (cl-count ?\n body)))
                                    'face 'shadow)
                   "\n"))
          ;; The last line's background reaches as far as that of the others.
          (t (concat head "\n" body
                     (propertize "\n" 'face (get-text-property (1- (length body)) 'face
                                                               body)))))))

(cl-defmethod magy-transcript-render ((_kind (eql 'user)) item)
  "Draw ITEM, a prompt."
  (let* ((data (magy-item-data item))
         (text (concat (propertize "❯ " 'face 'shadow)
                       (mapconcat #'magy-transcript--block (plist-get data :content) "\n")
                       (pcase (plist-get data :queue)
                         ('waiting "  (waiting)")
                         ('dropped "  (dropped)"))
                       "\n")))
    (add-face-text-property 0 (length text) 'magy-user t text)
    text))

(defun magy-transcript--block (block)
  "Return the content BLOCK of a prompt as text."
  (pcase (plist-get block :type)
    ("text" (string-trim-right (plist-get block :text)))
    ("resource_link" (propertize (format "[%s]" (plist-get block :name)) 'face 'link))
    ("resource" (propertize (format "[%s]" (file-name-nondirectory
                                            (magy--get block :resource :uri)))
                            'face 'link))
    (_ "")))

(cl-defmethod magy-transcript-render ((_kind (eql 'thought)) item)
  "Draw ITEM, some thinking."
  (let* ((data (magy-item-data item))
         (parts (append (magy-item-pending item) (list (or (plist-get data :text) ""))))
         (text (apply #'concat (nreverse parts))))
    (setf (magy-item-pending item) nil
          (magy-item-data item) (plist-put data :text text))
    (magy-transcript--section item (propertize "✻ Thinking" 'face 'magy-thought)
                              (magy-transcript--indent text 'magy-thought) t)))

(cl-defmethod magy-transcript-render ((_kind (eql 'notice)) item)
  "Draw ITEM, a notice."
  (let ((data (magy-item-data item)))
    (concat (propertize (format "— %s" (plist-get data :title))
                        'face (pcase (plist-get data :severity)
                                ("error" 'error) ("warning" 'warning) (_ 'shadow)))
            (if (member (plist-get data :description) '(nil ""))
                ""
              (propertize (concat ": " (plist-get data :description)) 'face 'shadow))
            "\n")))

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

(defun magy-transcript--tool-body (data)
  "Return the diff and output in the tool call DATA."
  (let ((content (plist-get data :content))
        (tail (plist-get data :tail)))
    (concat (mapconcat (lambda (part)
                         (pcase (plist-get part :type)
                           ("diff" (magy-transcript--diff (magy--get part :patch :text)))
                           ("content" (magy-transcript--indent
                                       (concat (string-trim-right
                                                (or (magy--get part :content :text) ""))
                                               "\n")
                                       'shadow))
                           (_ "")))
                       content "")
            (and tail (magy-transcript--indent tail 'shadow)))))

(defun magy-transcript--diff (patch)
  "Return the unified diff PATCH in the faces of `diff-mode'."
  (let ((patch (copy-sequence patch)) (start 0))
    (while (and (< start (length patch)) (string-match ".*\n?" patch start))
      (let ((line (match-string 0 patch)))
        (put-text-property
         start (match-end 0) 'face
         (cond ((string-match-p "\\`\\(?:---\\|\\+\\+\\+\\|diff\\|index\\) " line) 'diff-header)
               ((string-prefix-p "@@" line) 'diff-hunk-header)
               ((string-prefix-p "+" line) 'diff-added)
               ((string-prefix-p "-" line) 'diff-removed)
               (t 'diff-context))
         patch))
      (setq start (match-end 0)))
    (magy-transcript--indent patch)))

(cl-defmethod magy-transcript-render ((_kind (eql 'tool)) item)
  "Draw ITEM, a tool call: what, how it ended, and which rule decided."
  (let* ((data (magy-item-data item))
         (status (plist-get data :status))
         (ended (plist-get data :ended))
         (rule (magy--get data :decision :rule))
         (diff (cl-find "diff" (plist-get data :content) :test #'equal
                        :key (lambda (part) (plist-get part :type))))
         (duration (plist-get data :duration)))
    (magy-transcript--section
     item
     (concat (magy-transcript--tool-mark status) " "
             (or (plist-get data :title) "…")
             (and ended (not (equal ended "completed"))
                  (propertize (concat "  " ended) 'face 'error))
             (and duration (>= duration 1) (propertize (format "  %.1f s" duration) 'face 'shadow))
             (and rule (propertize (format "  %s: %s" (magy--get data :decision :action) rule)
                                   'face 'shadow)))
     (magy-transcript--tool-body data)
     (and (equal status "completed") (not diff)))))

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
