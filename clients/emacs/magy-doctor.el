;;; magy-doctor.el --- What is wrong with Magy here  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Magy authors
;; SPDX-License-Identifier: GPL-3.0-or-later
;; This is free software with no warranty at all; see the file COPYING.

;;; Commentary:

;; Emacs looks at itself, and the server at all else.  Where the server
;; cannot start, it is said why, and the program is asked instead.

;;; Code:

(require 'magy-facts)

(defvar magy-command-map)

(defvar-local magy-doctor--project nil
  "The project that is looked at.")

(defvar-local magy-doctor--report nil
  "The report as text for an issue.")

(defvar-local magy-doctor--waiting nil
  "Non-nil while the server has not answered.")

(defvar magy-doctor-mode-map
  (let ((map (make-sparse-keymap)))
    (define-key map "w" #'magy-doctor-copy)
    (define-key map "n" #'magy-doctor-next)
    map)
  "Keymap of `magy-doctor-mode'.")

(define-derived-mode magy-doctor-mode special-mode "Magy-Doctor"
  "What is wrong with Magy here, and how to fix it.
\\{magy-doctor-mode-map}"
  (setq-local buffer-undo-list t
              revert-buffer-function (lambda (&rest _) (magy-doctor))))

;;;; What Emacs finds

(defun magy-doctor--check (name status summary &optional fix)
  "Return a check called NAME with STATUS, SUMMARY and what would FIX it."
  (list :name name :status status :summary (magy-facts-line "%s" summary) :detail ""
        :fix (if fix (magy-facts-line "%s" fix) "")))

(defun magy-doctor--emacs ()
  "Return the checks of Emacs itself."
  (list
   (magy-doctor--check "emacs" "ok" (format "Emacs %s, %s." emacs-version
                                            (if window-system "in a window" "in a terminal")))
   (if (magy-facts--json-p)
       (magy-doctor--check "json" "ok" "Emacs reads JSON by itself.")
     (magy-doctor--check "json" "fail" "This Emacs was built without JSON support."
                         "Install an Emacs that has it (--with-json, or Emacs 30)."))
   (if (>= read-process-output-max 65536)
       (magy-doctor--check "pipe" "ok" "Output is read in large pieces.")
     (magy-doctor--check "pipe" "info"
                         (format "Output is read in pieces of %d bytes."
                                 read-process-output-max)
                         "For faster streams: (setq read-process-output-max (* 1024 1024))"))
   (if (or magy-command-prefix
           ;; People bind the keymap by its name, or itself.
           (where-is-internal 'magy-command-map nil t)
           (where-is-internal magy-command-map nil t))
       (magy-doctor--check "keys" "ok" "Magy's commands have a prefix.")
     (magy-doctor--check "keys" "info" "Magy's commands have no keys."
                         "(global-set-key (kbd \"C-c m\") #'magy-command-map)"))))

(defun magy-doctor--program ()
  "Return the check of the server's program."
  (let* ((program (car magy-server-command))
         (found (executable-find program)))
    (if found
        (magy-doctor--check "program" "ok" (format "The server is %s." found))
      (magy-doctor--check
       "program" "fail" (format "Emacs cannot find the program `%s'." program)
       "Install Magy, or set `magy-server-command' to the program's full name."))))

(defun magy-doctor--server (project)
  "Return the checks of PROJECT's server that Emacs can make."
  (let* ((connection (magy-project-connection project))
         (about (and connection (magy-connection-about connection))))
    (list
     (magy-doctor--program)
     (cond
      ((file-remote-p (magy-project-root project))
       (magy-doctor--check "server" "fail" "The project is on another host."
                           "Work on a local copy; remote projects are not supported yet."))
      ((magy-hung-p project)
       (magy-doctor--check "server" "fail"
                           (format "The server has not answered %s." (magy-hung-p project))
                           "M-x magy-restart; nothing is lost."))
      ((magy-live-p project)
       (if (equal magy-protocol (plist-get about :protocol))
           (magy-doctor--check "server" "ok" (format "Magy %s runs." (plist-get about :version)))
         (magy-doctor--check
          "server" "warn"
          (format "Magy %s speaks protocol %s, and this client, %s, speaks %d."
                  (plist-get about :version) (plist-get about :protocol)
                  magy-version magy-protocol)
          "Update the older one.")))
      ((and connection (magy-connection-problem connection))
       (magy-doctor--check "server" "fail" (magy-connection-problem connection)
                           (format "See %s for what it wrote." magy-log-buffer)))
      (t (magy-doctor--check "server" "info" "The server does not run."))))))

;;;; Showing it

(defconst magy-doctor--marks
  '(("ok" "✓" success) ("info" "·" shadow) ("warn" "!" warning) ("fail" "✗" error))
  "How a status looks: (STATUS MARK FACE).")

(defun magy-doctor--insert (title checks)
  "Insert CHECKS under TITLE."
  (insert (propertize title 'face 'bold) "\n")
  (seq-doseq (check checks)
    (pcase-let ((`(,_ ,mark ,face) (assoc (plist-get check :status) magy-doctor--marks)))
      (insert "  " (propertize mark 'face face 'magy-doctor face) " "
              (format "%-14s" (plist-get check :name)) (plist-get check :summary) "\n")
      (dolist (key '(:detail :fix))
        (unless (member (plist-get check key) '(nil ""))
          (insert (propertize (concat (make-string 18 ?\s)
                                      (if (eq key :fix) "→ " "") (plist-get check key) "\n")
                              'face (if (eq key :fix) 'font-lock-doc-face 'shadow)
                              'wrap-prefix (make-string 20 ?\s)))))))
  (insert "\n"))

(defun magy-doctor--draw (checks waiting)
  "Draw what Emacs found, and CHECKS, the server's.
WAITING, if not nil, says that there will be more."
  (let ((inhibit-read-only t)
        (own (append (magy-doctor--emacs) (magy-doctor--server magy-doctor--project))))
    (setq magy-doctor--waiting waiting)
    (erase-buffer)
    (magy-doctor--insert "Emacs" own)
    (if waiting
        (insert (propertize (concat waiting "\n") 'face 'shadow))
      (magy-doctor--insert "Server" checks)
      (insert (propertize "w copies this as text for an issue; g checks again\n" 'face 'shadow)))
    (goto-char (point-min))))

(defun magy-doctor-copy ()
  "Copy the report as text for an issue, without keys and names."
  (interactive)
  (kill-new (or magy-doctor--report
                (magy-facts-redact (buffer-substring-no-properties (point-min) (point-max)))))
  (message "The report is on the kill ring"))

(defun magy-doctor-next ()
  "Go to the next problem."
  (interactive)
  (let ((next (save-excursion
                (forward-line)
                (cl-loop until (eobp)
                         when (memq (get-text-property (+ 2 (line-beginning-position))
                                                       'magy-doctor)
                                    '(error warning))
                         return (point)
                         do (forward-line)))))
    (if next (goto-char next) (message "There are no other problems"))))

;;;; Asking the server

(defun magy-doctor--facts (project)
  "Return what the server puts into the report: Emacs and PROJECT."
  (list :editor (magy-facts-emacs) :magy (magy-facts-magy project)))

(defun magy-doctor--ask (project buffer)
  "Ask PROJECT's server what is wrong, for BUFFER."
  (magy-request
   project 'magy/doctor/run
   (list :cwd (directory-file-name (magy-project-root project))
         :editor (magy-doctor--facts project))
   (lambda (result)
     (when (buffer-live-p buffer)
       (with-current-buffer buffer
         (setq magy-doctor--report (plist-get result :report))
         (magy-doctor--draw (plist-get result :checks) nil))))
   (lambda (problem)
     (magy-doctor--instead buffer (plist-get problem :message)))))

(defun magy-doctor--died (project _reason)
  "PROJECT's server is gone: who waits for it asks the program instead."
  (dolist (buffer (buffer-list))
    (with-current-buffer buffer
      (when (and magy-doctor--waiting (eq project magy-doctor--project))
        (magy-doctor--instead buffer "The server ended.")))))

(add-hook 'magy-death-functions #'magy-doctor--died)

(defun magy-doctor--command ()
  "Return the command line of the doctor that belongs to `magy-server-command'."
  (append (if (equal "lsp" (car (last magy-server-command)))
              (butlast magy-server-command)
            magy-server-command)
          '("doctor" "--json")))

(defun magy-doctor--instead (buffer why)
  "Have the program look, for BUFFER, since the server cannot because of WHY."
  (when (buffer-live-p buffer)
    (with-current-buffer buffer
      (if (not (executable-find (car magy-server-command)))
          (magy-doctor--draw (list (magy-doctor--check "server" "fail" why)) nil)
        (magy-doctor--draw nil (format "%s  Asking the program instead…" why))
        (let ((output (generate-new-buffer " *magy doctor*"))
              (default-directory (magy-project-root magy-doctor--project))
              (process-environment (magy--environment)))
          (make-process
           :name "magy doctor" :buffer output :noquery t :connection-type 'pipe
           :command (magy-doctor--command) :stderr (make-pipe-process
                                                    :name "magy doctor errors" :noquery t
                                                    :buffer nil :filter #'ignore)
           :sentinel (lambda (process _event)
                       (unless (process-live-p process)
                         (magy-doctor--program-said buffer output why)))))))))

(defun magy-doctor--program-said (buffer output why)
  "Show in BUFFER what the program wrote to OUTPUT; WHY is why it was asked."
  (let ((found (with-current-buffer output
                 (goto-char (point-min))
                 (ignore-errors
                   (plist-get (json-parse-buffer :object-type 'plist :null-object nil)
                              :findings)))))
    (kill-buffer output)
    (when (buffer-live-p buffer)
      (with-current-buffer buffer
        (magy-doctor--draw
         (cons (magy-doctor--check "server" "fail" why)
               (if found
                   (mapcar #'magy-doctor--finding found)
                 (list (magy-doctor--check
                        "program" "fail" (format "`%s' prints nothing."
                                                 (string-join (magy-doctor--command) " "))
                        "Run it in a terminal to see why."))))
         nil)))))

(defun magy-doctor--finding (finding)
  "Return FINDING, as the program says it, as a check."
  (magy-doctor--check (plist-get finding :topic)
                      (pcase (plist-get finding :status)
                        ("note" "info") ("warning" "warn") ("problem" "fail") (_ "ok"))
                      (plist-get finding :what)
                      (and (not (member (plist-get finding :mend) '(nil "")))
                           (plist-get finding :mend))))

;;;###autoload
(defun magy-doctor ()
  "Say what is wrong with Magy here, and how to fix it."
  (interactive)
  (let* ((project (magy-current-project))
         (buffer (get-buffer-create (format "*magy doctor: %s*" (magy-project-name project)))))
    (with-current-buffer buffer
      (magy-doctor-mode)
      (setq magy-doctor--project project
            magy--own-project project
            default-directory (magy-project-root project))
      (magy-doctor--draw nil "Looking at the rest…"))
    (display-buffer buffer)
    (if (magy-hung-p project)
        (magy-doctor--instead buffer "The server hangs.")
      (condition-case err
          (magy-when-ready project (lambda () (magy-doctor--ask project buffer)))
        (error (magy-doctor--instead buffer (error-message-string err)))))))

(provide 'magy-doctor)
;;; magy-doctor.el ends here
