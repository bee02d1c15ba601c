;;; magy-editor.el --- What Emacs knows, for agents  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Magy authors
;; SPDX-License-Identifier: GPL-3.0-or-later
;; This is free software with no warranty at all; see the file COPYING.

;;; Commentary:

;; Diagnostics of Flymake and Flycheck, definitions and references of
;; xref, symbols of imenu and xref, and Emacs Lisp: whatever serves the
;; person, Eglot, lsp-mode or tags, serves the agent.  Each answer is
;; bounded in time and size, and asks the person nothing; what would have
;; to is refused with a reason.

;;; Code:

(require 'magy-buffers)
(require 'magy-guard)

(defvar flycheck-current-errors)
(defvar flymake-mode)
(defvar imenu-create-index-function)
(defvar imenu-use-markers)
(defvar tags-file-name)
(defvar tags-table-list)
(declare-function flycheck-error-filename "ext:flycheck")
(declare-function flycheck-error-id "ext:flycheck")
(declare-function flycheck-error-level "ext:flycheck")
(declare-function flycheck-error-message "ext:flycheck")
(declare-function flycheck-error-pos "ext:flycheck")
(declare-function flymake-diagnostic-beg "flymake")
(declare-function flymake-diagnostic-end "flymake")
(declare-function flymake-diagnostic-text "flymake")
(declare-function flymake-diagnostic-type "flymake")
(declare-function flymake-diagnostics "flymake")
(declare-function xref-backend-apropos "xref")
(declare-function xref-backend-definitions "xref")
(declare-function xref-backend-identifier-at-point "xref")
(declare-function xref-backend-references "xref")
(declare-function xref-find-backend "xref")
(declare-function xref-item-location "xref")
(declare-function xref-item-summary "xref")
(declare-function xref-location-group "xref")
(declare-function xref-location-line "xref")
(declare-function xref-location-marker "xref")

(defconst magy-editor--most 300
  "Most items of one answer.")

(defconst magy-editor--seconds 4
  "Seconds for a look-up; while it waits for a language server, Emacs does too.")

(defun magy-editor--refuse (format &rest args)
  "Answer the server that there is nothing, for the reason FORMAT with ARGS."
  (jsonrpc-error :code -32803 :message (apply #'format format args)))

(defun magy-editor--buffer (uri)
  "Return the buffer of URI, or refuse."
  (or (magy--buffer-of uri)
      (find-buffer-visiting (magy--uri-to-path uri))
      (magy-editor--refuse "%s is not open in Emacs, which therefore knows nothing of it."
                           (abbreviate-file-name (magy--uri-to-path uri)))))

(defun magy-editor--buffers (project)
  "Return the buffers of PROJECT's open documents."
  (seq-filter (lambda (buffer)
                (when-let ((document (buffer-local-value 'magy--document buffer)))
                  (eq project (magy-document-project document))))
              (buffer-list)))

(defun magy-editor--bounded (key items)
  "Return the answer with ITEMS under KEY, the first of them if they are many."
  (list key (vconcat (seq-take items magy-editor--most))
        :truncated (if (nthcdr magy-editor--most items) t :json-false)))

(defun magy-editor--look-up (function)
  "Return what FUNCTION returns; it may take a moment, if the person does nothing."
  (let ((result (condition-case err
                    (magy-guard-quietly
                      (magy-guard-limit
                       magy-editor--seconds
                       (lambda () (while-no-input (list (funcall function))))))
                  (inhibited-interaction
                   (magy-editor--refuse "Emacs would have to ask the person for that."))
                  (magy-guard-stopped
                   (magy-editor--refuse "Emacs: %s." (cadr err))))))
    (if (consp result)
        (car result)
      (magy-editor--refuse "The person is typing, and Emacs cannot look that up meanwhile."))))

;;;; Diagnostics

(defun magy-editor--severity (type)
  "Return LSP's number for TYPE, which is Flymake's or Flycheck's."
  (pcase (or (and (symbolp type) (get type 'flymake-category)) type)
    ((or :error 'flymake-error 'error) 1)
    ((or :warning 'flymake-warning 'warning) 2)
    (_ 3)))

(defun magy-editor--diagnostic (beg end severity message source encoding &optional code)
  "Return a diagnostic in LSP's terms, with positions in ENCODING.
It reaches from BEG to END; SEVERITY, MESSAGE, SOURCE and CODE are LSP's."
  (append (list :range (magy--range beg end encoding) :severity severity
                :message (magy--json-text (or message "")))
          (and source (list :source source))
          (and code (list :code (format "%s" code)))))

(defun magy-editor--diagnostics (encoding &optional beg end)
  "Return the current buffer's diagnostics, those from BEG to END if given.
Positions are in ENCODING."
  (save-restriction
    (widen)
    (append
     (when (bound-and-true-p flymake-mode)
       (mapcar (lambda (found)
                 (magy-editor--diagnostic
                  (flymake-diagnostic-beg found) (flymake-diagnostic-end found)
                  (magy-editor--severity (flymake-diagnostic-type found))
                  (flymake-diagnostic-text found) "flymake" encoding))
               (flymake-diagnostics beg end)))
     (when (bound-and-true-p flycheck-mode)
       (cl-loop for found in flycheck-current-errors
                for pos = (flycheck-error-pos found)
                when (and (<= (or beg pos) pos (or end pos))
                          (or (null (flycheck-error-filename found))
                              (equal (flycheck-error-filename found) buffer-file-name)))
                collect (magy-editor--diagnostic
                         pos (save-excursion (goto-char pos) (line-end-position))
                         (magy-editor--severity (flycheck-error-level found))
                         (flycheck-error-message found) "flycheck" encoding
                         (flycheck-error-id found)))))))

(defun magy-editor-diagnostics-at (point region encoding)
  "Return what is wrong in REGION, or the function or line at POINT: a vector.
REGION is (BEG . END) or nil.  Positions are in ENCODING."
  (save-excursion
    (goto-char point)
    (let ((bounds (or region
                      (and (derived-mode-p 'prog-mode)
                           (ignore-errors (bounds-of-thing-at-point 'defun)))
                      (cons (line-beginning-position) (line-end-position)))))
      (vconcat (seq-take (magy-editor--diagnostics encoding (car bounds) (cdr bounds)) 50)))))

(cl-defmethod magy-handle-request (project (_method (eql 'magy/editor/diagnostics)) params)
  "Return what is wrong in the file in PARAMS, or in all open ones of PROJECT."
  (let* ((encoding (magy-project-encoding project))
         (uri (plist-get params :uri))
         (buffers (if uri
                      (list (magy-editor--buffer uri))
                    (magy-editor--buffers project))))
    (magy-editor--bounded
     :diagnostics
     (cl-loop for buffer in buffers
              append (with-current-buffer buffer
                       (let ((uri (magy--path-to-uri (file-truename buffer-file-name))))
                         (mapcar (lambda (found) (append (list :uri uri) found))
                                 (magy-editor--diagnostics encoding))))))))

;;;; Definitions and references

(defun magy-editor--backend ()
  "Return the current buffer's xref backend, or refuse."
  (require 'xref)
  (let ((backend (xref-find-backend)))
    (when (or (null backend)
              (and (eq backend 'etags)
                   (not (or tags-file-name tags-table-list))))
      (magy-editor--refuse "Nothing in Emacs knows about the symbols of %s: no language server \
runs for it, and there is no tags table." (buffer-name)))
    backend))

(defun magy-editor--go (position name encoding)
  "Go to POSITION in ENCODING, or to where NAME is in that line."
  (goto-char (magy--point position encoding))
  (unless (or (member name '(nil "")) (looking-at-p (regexp-quote name)))
    (let ((here (point)) (case-fold-search nil))
      (beginning-of-line)
      (unless (and (re-search-forward (concat "\\_<" (regexp-quote name) "\\_>")
                                      (line-end-position) t)
                   (goto-char (match-beginning 0)))
        (goto-char here)))))

(defun magy-editor--xref (project params function)
  "Return the locations that FUNCTION finds at the place in PARAMS of PROJECT.
It is called with the xref backend and the identifier there."
  (with-current-buffer (magy-editor--buffer (plist-get params :uri))
    (save-excursion
      (save-restriction
        (widen)
        (magy-editor--go (plist-get params :position) (plist-get params :name)
                         (magy-project-encoding project))
        (let ((backend (magy-editor--backend)))
          (magy-editor--bounded
           :locations
           (magy-editor--look-up
            (lambda ()
              (when-let ((identifier (or (xref-backend-identifier-at-point backend)
                                         (plist-get params :name))))
                (mapcar #'magy-editor--location
                        (seq-take (funcall function backend identifier)
                                  (1+ magy-editor--most))))))))))))

(defun magy-editor--location (item)
  "Return the xref ITEM in LSP's terms, without visiting its file if that can be."
  (let* ((location (xref-item-location item))
         (group (xref-location-group location))
         (line (xref-location-line location))
         (text (substring-no-properties (or (xref-item-summary item) "")))
         (place (if (and line (stringp group) (file-exists-p (expand-file-name group)))
                    (let ((column (magy-editor--column location)))
                      (list (expand-file-name group) (1- line) column
                            (+ column (or (magy-editor--slot item 'length) 0))))
                  (magy-editor--visited location))))
    (list :uri (magy--path-to-uri (file-truename (nth 0 place)))
          :range (list :start (list :line (nth 1 place) :character (nth 2 place))
                       :end (list :line (nth 1 place) :character (nth 3 place)))
          :text (magy--json-text (string-trim text)))))

(defun magy-editor--slot (object slot)
  "Return SLOT of OBJECT, a structure or an instance, if it has one."
  (ignore-errors
    (if (and (fboundp 'eieio-object-p) (eieio-object-p object))
        (slot-value object slot)
      (cl-struct-slot-value (type-of object) slot object))))

(defun magy-editor--column (location)
  "Return the column of the xref LOCATION, 0 if it has none."
  (or (magy-editor--slot location 'column) 0))

(defun magy-editor--visited (location)
  "Return (FILE LINE BEG END) of the xref LOCATION by going there."
  (let ((marker (xref-location-marker location)))
    (with-current-buffer (marker-buffer marker)
      (save-excursion
        (goto-char marker)
        (let ((column (- (point) (line-beginning-position))))
          (list (or buffer-file-name (magy-editor--refuse "That is in no file."))
                (1- (line-number-at-pos nil t)) column column))))))

(cl-defmethod magy-handle-request (project (_method (eql 'magy/editor/definition)) params)
  "Return where what is at the place in PARAMS, of PROJECT, is defined."
  (magy-editor--xref project params #'xref-backend-definitions))

(cl-defmethod magy-handle-request (project (_method (eql 'magy/editor/references)) params)
  "Return where what is at the place in PARAMS, of PROJECT, is used."
  (magy-editor--xref project params #'xref-backend-references))

;;;; Symbols

(defconst magy-editor--kinds
  '("array" "class" "constant" "constructor" "enum" "enummember" "event" "face" "field" "file"
    "function" "group" "import" "interface" "key" "macro" "method" "module" "namespace" "object"
    "operator" "package" "property" "string" "struct" "type" "variable")
  "What submenus of imenu are called that group by kind, without their plural.")

(defun magy-editor--kind (name)
  "Return the kind that a submenu of imenu called NAME has the symbols of, or nil."
  (let ((name (string-replace " " "" (downcase name))))
    (car (member (pcase name
                   ("classes" "class")
                   ("properties" "property")
                   (_ (if (member name magy-editor--kinds) name (string-remove-suffix "s" name))))
                 magy-editor--kinds))))

(defun magy-editor--outline (index container encoding &optional kind)
  "Return the symbols in the imenu INDEX below CONTAINER, which are of KIND.
Positions are in ENCODING."
  (cl-loop for entry in index
           for label = (and (consp entry) (stringp (car entry))
                            (substring-no-properties (car entry)))
           for (name . own) = (and label (magy-editor--imenu-name label container))
           for place = (and label (magy-editor--imenu-place (cdr entry)))
           if place
           collect (append (list :name name :kind (or own kind "symbol")
                                 :range (magy--range place (save-excursion
                                                             (goto-char place)
                                                             (line-end-position))
                                                     encoding))
                           (and container (not (equal name container))
                                (list :container container)))
           else if (and label (consp (cdr entry)))
           append (if-let ((kind (magy-editor--kind label)))
                      (magy-editor--outline (cdr entry) container encoding kind)
                    (magy-editor--outline (cdr entry)
                                          (if container (concat container "." name) name)
                                          encoding kind))))

(defconst magy-editor--python-label
  "\\`\\(\\S-+\\) (\\(?:async \\)?\\(def\\|class\\))\\(?:\\.\\.\\.\\)?\\'"
  "What Python's mode calls a definition in the index of imenu.")

(defun magy-editor--imenu-name (label container)
  "Return (NAME . KIND) for LABEL of an imenu entry in CONTAINER; KIND may be nil.
Python's mode says \"f (def)\", \"C (class)...\", and in the latter
\"*class definition*\"."
  (cond ((string-match magy-editor--python-label label)
         (cons (match-string 1 label)
               (if (equal "def" (match-string 2 label)) "function" "class")))
        ((and container (string-match "\\`\\*\\(class\\|function\\) definition\\*\\'" label))
         (cons container (match-string 1 label)))
        (t (list label))))

(defun magy-editor--imenu-place (value)
  "Return the position that VALUE of an imenu entry means, or nil for a submenu."
  (cond ((or (integerp value) (markerp value)) value)
        ((overlayp value) (overlay-start value))
        ((and (consp value) (or (integerp (car value)) (markerp (car value))))
         (car value))))

(defun magy-editor--symbols-of (buffer encoding)
  "Return the symbols of the file that BUFFER shows, with positions in ENCODING."
  (require 'imenu)
  (with-current-buffer buffer
    (let ((uri (magy--path-to-uri (file-truename buffer-file-name)))
          (index (magy-editor--look-up
                  (lambda ()
                    (save-excursion
                      (save-restriction
                        (widen)
                        ;; Not `imenu--make-index-alist', which keeps what it made.
                        (let ((imenu-use-markers nil))
                          (condition-case err
                              (funcall imenu-create-index-function)
                            (imenu-unavailable
                             (magy-editor--refuse "%s" (error-message-string err)))))))))))
      (mapcar (lambda (symbol) (append (list :uri uri) symbol))
              (magy-editor--outline index nil encoding)))))

(defun magy-editor--symbols-like (project query)
  "Return the symbols of PROJECT that match QUERY, as its xref backends know them."
  (require 'xref)
  (let (seen found)
    (dolist (buffer (magy-editor--buffers project))
      (with-current-buffer buffer
        (let* ((backend (ignore-errors (magy-editor--backend)))
               (key (cons backend major-mode)))
          (unless (or (null backend) (member key seen) (nthcdr 5 seen))
            (push key seen)
            (setq found
                  (append found
                          (magy-editor--look-up
                           (lambda ()
                             (mapcar #'magy-editor--symbol
                                     (seq-take (xref-backend-apropos backend query)
                                               (1+ magy-editor--most)))))))))))
    (seq-uniq (if seen found (magy-editor--symbols-open project query)))))

(defconst magy-editor--open-files 20
  "In so many files, those looked at last, symbols are looked for without an index.")

(defun magy-editor--symbols-open (project query)
  "Return the symbols like QUERY in open files of PROJECT, or refuse.
This is for where nothing in Emacs knows those of the whole project."
  (or (cl-loop with case-fold-search = t
               for buffer in (seq-take (magy-editor--buffers project) magy-editor--open-files)
               append (cl-remove-if-not
                       (lambda (symbol)
                         (string-match-p (regexp-quote query) (plist-get symbol :name)))
                       (ignore-errors
                         (magy-editor--symbols-of buffer (magy-project-encoding project)))))
      (magy-editor--refuse "No open file of the project has a language server or a tags table.")))

(defun magy-editor--symbol (item)
  "Return the xref ITEM as a symbol."
  (let ((location (magy-editor--location item)))
    (list :name (plist-get location :text) :kind "symbol" :uri (plist-get location :uri)
          :range (plist-get location :range))))

(cl-defmethod magy-handle-request (project (_method (eql 'magy/editor/symbols)) params)
  "Return the symbols of the file in PARAMS, or those of PROJECT like the query."
  (magy-editor--bounded
   :symbols
   (if-let ((uri (plist-get params :uri)))
       (magy-editor--symbols-of (magy-editor--buffer uri) (magy-project-encoding project))
     (magy-editor--symbols-like project (or (plist-get params :query) "")))))

(provide 'magy-editor)
;;; magy-editor.el ends here
