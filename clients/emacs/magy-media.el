;;; magy-media.el --- Links and pictures in Magy's transcripts  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Magy authors
;; SPDX-License-Identifier: GPL-3.0-or-later
;; This is free software with no warranty at all; see the file COPYING.

;;; Commentary:

;; What a model writes is not trusted: a link says where it goes, opens
;; only files of this machine and web pages, and only when a person says
;; so; a picture is shown only if it is a file here or was sent from here.

;;; Code:

(require 'magy-project)
(require 'mouse)

(defconst magy-media--largest 8000000
  "Bytes of the largest picture that is shown.")

(defvar magy-media--sent nil
  "Pictures sent from this Emacs, newest first: (SHA-256 . BYTES).")

(defvar magy-link-map
  (let ((map (make-sparse-keymap)))
    (define-key map (kbd "RET") #'magy-link-open)
    (define-key map [mouse-2] #'magy-link-open)
    (define-key map [follow-link] 'mouse-face)
    map)
  "Keymap of links.")

;;;; Links

(defun magy-link-properties (target)
  "Return the text properties of a link to TARGET."
  (list 'magy-link target 'face 'link 'mouse-face 'highlight
        'help-echo target 'keymap magy-link-map))

(defun magy-link-addresses (beg end)
  "Make links of the web addresses between BEG and END that are in prose."
  (goto-char beg)
  (while (re-search-forward "https?://[^][ \t\n<>\"'`|*]*[^][ \t\n<>\"'`|*.,;:!?)]" end t)
    (unless (or (not (cl-subsetp (ensure-list (get-text-property (match-beginning 0) 'face))
                                 '(shadow magy-heading bold italic)))
                (get-text-property (match-beginning 0) 'invisible))
      (add-text-properties (match-beginning 0) (match-end 0)
                           (magy-link-properties (match-string-no-properties 0))))))

(defun magy-link-open (&optional event)
  "Open the link at point, or the one that was clicked with EVENT."
  (interactive (list last-nonmenu-event))
  (let* ((end (and (mouse-event-p event) (event-start event)))
         (target (if end
                     (with-current-buffer (window-buffer (posn-window end))
                       (get-text-property (posn-point end) 'magy-link))
                   (get-text-property (point) 'magy-link))))
    (magy-link-visit (or target (user-error "No link here")))))

(defun magy-link-visit (target)
  "Visit TARGET: a web page, or a file with #L12 or :12 for a line."
  (cond ((string-match-p "\\`https?://" target) (browse-url target))
        ((string-match-p "\\`magy-blob:" target)
         (user-error "This picture was sent from another program"))
        (t (pcase-let ((`(,path . ,line) (magy-media--file target)))
             (unless path
               (user-error "Not a file on this machine: %s" target))
             (find-file-other-window path)
             (when line
               (goto-char (point-min))
               (forward-line (1- line)))))))

(defun magy-media--file (target)
  "Return (PATH . LINE) of the local file that TARGET means.
PATH is nil if there is none."
  (let ((line nil))
    (when (string-match "\\(?:#L\\([0-9]+\\)[^#]*\\|:\\([0-9]+\\)\\(?::[0-9]+\\)?\\)\\'" target)
      (setq line (string-to-number (or (match-string 1 target) (match-string 2 target)))
            target (substring target 0 (match-beginning 0))))
    (when (string-prefix-p "file:" target)
      (setq target (ignore-errors (magy--uri-to-path target))))
    (cons (and target
               (not (file-remote-p target))
               (not (string-match-p "\\`[a-z][a-z0-9+.-]+:" target))
               (file-exists-p target)
               (expand-file-name target))
          line)))

;;;; Pictures

(defun magy-media-note (blocks)
  "Keep the pictures in the content BLOCKS, which are sent, to show them."
  (seq-doseq (block blocks)
    (when (equal (plist-get block :type) "image")
      ;; The server says so if it is no picture.
      (when-let ((bytes (ignore-errors (base64-decode-string (plist-get block :data)))))
        (push (cons (secure-hash 'sha256 bytes) bytes) magy-media--sent)))
    (when (nthcdr 20 magy-media--sent)
      (setcdr (nthcdr 19 magy-media--sent) nil))))

(defun magy-media--picture (source data-p)
  "Return a display property for the picture SOURCE, nil where it cannot be shown.
DATA-P says that SOURCE is its bytes and not a file."
  (and (display-images-p)
       (ignore-errors                   ; it may be broken, or of an unknown type
         (create-image source nil data-p :max-width 480 :max-height 360))))

(defun magy-media-of-file (target)
  "Return a display property for the picture file TARGET, or nil."
  (when (display-images-p)
    (let ((path (car (magy-media--file target))))
      (and path
           (< (file-attribute-size (file-attributes path)) magy-media--largest)
           (magy-media--picture path nil)))))

(defun magy-media--image (block)
  "Return the picture that the content BLOCK names as text, which may show it."
  (let* ((name (or (plist-get block :name) "picture"))
         (uri (or (plist-get block :uri) ""))
         (bytes (cdr (assoc (string-remove-prefix "magy-blob:" uri) magy-media--sent)))
         (text (propertize (format "[image: %s]" name) 'face 'link))
         (shown (and bytes (magy-media--picture bytes t))))
    (if shown (propertize text 'display shown) text)))

;;;; Content blocks

(defun magy-media--linked (name uri)
  "Return NAME as a link to URI."
  (apply #'propertize (format "[%s]" name) (magy-link-properties uri)))

(defun magy-transcript--block (block)
  "Return the content BLOCK of a prompt or a result as text."
  (pcase (plist-get block :type)
    ("text" (string-trim-right (plist-get block :text)))
    ("image" (magy-media--image block))
    ("resource_link"
     (if (string-prefix-p "image/" (or (plist-get block :mimeType) ""))
         (magy-media--image block)
       (magy-media--linked (plist-get block :name) (plist-get block :uri))))
    ("resource"
     (let ((uri (magy--get block :resource :uri)))
       (magy-media--linked (file-name-nondirectory uri) uri)))
    (_ "")))

(provide 'magy-media)
;;; magy-media.el ends here
