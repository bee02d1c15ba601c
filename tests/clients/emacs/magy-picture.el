;;; magy-picture.el --- What a recorded session looks like, as text  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; emacs -Q --batch -L clients/emacs -L tests/clients/emacs -l magy-picture.el \
;;   --eval '(magy-picture "SCENARIO" "PICTURE" "BLOCKS")'
;;
;; SCENARIO is one of tests/clients/fake_server.py whose server sends a
;; recorded session; the log line "end of the recording" ends it.
;; BLOCKS gets as JSON the kind and the whole text of each item, in order.

;;; Code:

(require 'magy-test-helper)

(defun magy-picture-visible (beg end)
  "Return the text from BEG to END as it is seen."
  (let ((pos beg) parts)
    (while (< pos end)
      (let* ((next (next-char-property-change pos end))
             (display (get-char-property pos 'display)))
        (cond ((or (invisible-p pos) (eq 'space (car-safe display))))
              ((stringp display)
               ;; One string is shown for all the text that has it.
               (setq next (next-single-char-property-change pos 'display nil end))
               (push display parts))
              (t (push (magy-picture--lines pos next) parts)))
        (setq pos next)))
    (mapconcat #'substring-no-properties (nreverse parts) "")))

(defun magy-picture--lines (beg end)
  "Return the text from BEG to END with what is shown before its lines."
  (let ((pos beg) parts)
    (while (< pos end)
      (let ((next (min end (save-excursion (goto-char pos) (line-beginning-position 2)))))
        (push (concat (and (memq (char-before pos) '(nil ?\n))
                           (get-text-property pos 'line-prefix))
                      (buffer-substring-no-properties pos next))
              parts)
        (setq pos next)))
    (string-join (nreverse parts))))

(defun magy-picture-text (project)
  "Return what PROJECT's transcript shows: the header line and everything below."
  (with-current-buffer (magy-transcript-buffer project)
    (concat (string-replace "%%" "%" (magy-transcript-header)) "\n"
            (make-string 72 ?=) "\n"
            (magy-picture-visible (point-min) (point-max)))))

;; What copying an item yields, unfolded: its text without ornaments.
(defun magy-picture-blocks (project)
  "Return the items of PROJECT's transcript as a vector of [KIND TEXT]."
  (with-current-buffer (magy-transcript-buffer project)
    (let (items)
      (magy-transcript-map-back (lambda (item) (push item items) nil))
      (magy-transcript--set-folded items nil)
      (vconcat (mapcar (lambda (item)
                         (vector (symbol-name (magy-item-kind item))
                                 (magy-transcript--copy (marker-position (magy-item-start item))
                                                        (magy-transcript--end item))))
                       items)))))

(defun magy-picture--recorded ()
  "Return non-nil when all that was recorded has arrived."
  (with-current-buffer (get-buffer-create magy-log-buffer)
    (goto-char (point-min))
    (search-forward "end of the recording" nil t)))

(defun magy-picture (scenario picture blocks)
  "Write to PICTURE what a client of the server that follows SCENARIO shows.
Write the items, as JSON, to BLOCKS."
  (let* ((directory (file-name-as-directory (make-temp-file "shop-" t)))
         (root (expand-file-name "shop/" directory))
         (coding-system-for-write 'utf-8-unix)
         (magy-server-command (list magy-test-python
                                    (expand-file-name "../fake_server.py" magy-test-directory)
                                    scenario (expand-file-name "received" directory))))
    (make-directory root)
    (unwind-protect
        (let* ((default-directory root)
               (project (magy-project-for root)))
          (magy-when-ready project (lambda () (magy-session-attach project "s-1" #'ignore)))
          (magy-test-wait "the recording" #'magy-picture--recorded)
          (magy-session--flush project)
          (magy-children-show project)
          (with-temp-file picture
            (insert (magy-picture-text project)))
          (with-temp-file blocks
            (insert (json-serialize (magy-picture-blocks project))))
          (magy-stop project)
          (magy-test-until (not (magy-live-p project))))
      (delete-directory directory t))))

(provide 'magy-picture)
;;; magy-picture.el ends here
