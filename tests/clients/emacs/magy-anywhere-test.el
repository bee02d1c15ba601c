;;; magy-anywhere-test.el --- Commands in the wrong place  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'magy-test-helper)

(defun magy-test-commands ()
  "Return all commands of Magy, but those of modes."
  (dolist (file (directory-files (file-name-directory (locate-library "magy")) nil "\\.el\\'"))
    ;; Evil is not there.
    (unless (equal file "magy-evil.el")
      (require (intern (file-name-sans-extension file)))))
  (let (commands)
    (mapatoms (lambda (symbol)
                (when (and (commandp symbol)
                           (string-match-p "\\`magy-" (symbol-name symbol))
                           (not (string-match-p "\\`magy-test\\|-mode\\'" (symbol-name symbol))))
                  (push symbol commands))))
    (sort commands #'string<)))

(defun magy-test-called (command)
  "Call COMMAND as a person does; return what went wrong, but for user errors."
  (condition-case problem
      (cl-letf (((symbol-function 'read-from-minibuffer) (lambda (&rest _) "x"))
                ((symbol-function 'read-string) (lambda (&rest _) "x"))
                ((symbol-function 'read-file-name) (lambda (&rest _) "/x"))
                ((symbol-function 'completing-read) (lambda (&rest _) (user-error "No choice")))
                ((symbol-function 'read-key) (lambda (&rest _) ?x))
                ((symbol-function 'read-char-choice) (lambda (&rest _) (user-error "No choice")))
                ((symbol-function 'y-or-n-p) #'ignore)
                ((symbol-function 'display-buffer) #'ignore)
                ((symbol-function 'pop-to-buffer) #'ignore))
        (call-interactively command)
        nil)
    ((user-error quit) nil)
    (error (list command problem))))

(ert-deftest magy-commands-in-a-wrong-place-say-so ()
  "No command answers with a bare error of Lisp, wherever it is called."
  (let ((directory (file-name-as-directory (make-temp-file "magy-test-" t)))
        (magy-server-command '("magy-that-is-not-there"))
        (magy--projects (make-hash-table :test #'equal))
        (commands (magy-test-commands))
        (last-nonmenu-event ?x)
        (inhibit-message t))
    (should (> (length commands) 80))
    (unwind-protect
        (dolist (command commands)
          (save-window-excursion
            (with-temp-buffer
              (setq default-directory directory)
              (insert "hello world\n")
              (should-not (magy-test-called command)))))
      (dolist (project (hash-table-values magy--projects))
        (when (buffer-live-p (magy-project-buffer project))
          (kill-buffer (magy-project-buffer project))))
      (delete-directory directory t))))

(ert-deftest magy-commands-of-a-buffer-name-it ()
  (with-temp-buffer
    (dolist (command '(magy-checkpoints-older magy-permission-answer-key magy-review-amend-done
                       magy-review-amend-give-up magy-review-diff-refresh
                       magy-transcript-next-turn magy-transcript-previous-turn
                       magy-transcript-toggle-all magy-undo-do magy-undo-refresh
                       magy-undo-toggle-files magy-undo-toggle-conversation))
      (autoload-do-load (symbol-function command) command)
      (should (string-match-p
               "This works only in buffers in magy-"
               (error-message-string
                (should-error (call-interactively command) :type 'user-error)))))
    (dolist (command '(magy-complete magy-context-toggle magy-modeline-menu))
      (should-error (let ((last-nonmenu-event ?x)) (call-interactively command))
                    :type 'user-error))))

;;;; The menu

(ert-deftest magy-menu-fits-a-small-terminal ()
  (should (<= (cl-loop for row in (magy-menu--rows)
                       sum (+ 2 (apply #'max (mapcar (lambda (column) (length (cdr column)))
                                                     row))))
              20))
  (let ((lines (split-string (magy-menu--text) "\n")))
    (should (<= (length lines) 20))
    (should (<= (apply #'max (mapcar #'string-width lines)) 79)))
  (dolist (group magy-commands)
    (pcase-dolist (`(,key ,command ,what) (cdr group))
      (unless (eq command 'magy-menu)
        (should (cl-some (lambda (row)
                           (cl-some (lambda (column) (member (list key command what) column))
                                    row))
                         (magy-menu--rows)))
        (should (string-match-p (regexp-quote (format "%s  %s" key what))
                                (magy-menu--text)))))))

(provide 'magy-anywhere-test)
;;; magy-anywhere-test.el ends here
