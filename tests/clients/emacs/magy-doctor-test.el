;;; magy-doctor-test.el --- The doctor and the diagnosis  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'magy-test-helper)
(require 'magy-diagnose)
(require 'magy-doctor)

(defun magy-test-doctor (text)
  "Wait until the doctor says TEXT; return all it says."
  (let ((name (format "*magy doctor: %s*" (magy-project-name (magy-test-project)))))
    (magy-test-wait (list 'doctor text)
                    (lambda ()
                      (with-current-buffer name
                        (string-match-p (regexp-quote text) (buffer-string))))
                    40)
    (with-current-buffer name (buffer-string))))

(defun magy-test-doctor-check (name)
  "Return what the doctor finds about NAME in Emacs itself."
  (cl-find name (magy-doctor--emacs) :test #'equal
           :key (lambda (check) (plist-get check :name))))

(ert-deftest magy-doctor-sees-the-keys-however-they-are-bound ()
  (dolist (binding (list 'magy-command-map magy-command-map))
    (let ((magy-command-prefix nil) (before (lookup-key global-map (kbd "C-c m"))))
      (unwind-protect
          (progn
            (global-set-key (kbd "C-c m") nil)
            (should (equal "info" (plist-get (magy-test-doctor-check "keys") :status)))
            (global-set-key (kbd "C-c m") binding)
            (should (equal "ok" (plist-get (magy-test-doctor-check "keys") :status))))
        (global-set-key (kbd "C-c m") (and (not (numberp before)) before))))))

(ert-deftest magy-doctor-shows-what-emacs-and-the-server-find ()
  :tags '(E050)
  (magy-test-with
      (magy-test-scenario
       'magy/doctor/run
       [[(:result (:checks [(:name "models" :status "fail" :summary "No key is set."
                             :detail "" :fix "Set ANTHROPIC_API_KEY.")
                            (:name "state" :status "ok" :summary "Fine." :detail "" :fix "")]
                   :report "the report"))]])
    (save-window-excursion
      (magy-doctor)
      (let ((said (magy-test-doctor "No key is set")))
        (should (string-match-p "^Emacs\n  ✓ emacs +Emacs" said))
        (should (string-match-p "✓ server +Magy 0.1.0 runs" said))
        (should (string-match-p "^Server\n  ✗ models +No key is set.\n +→ Set ANTHROPIC_API_KEY"
                                said)))
      (with-current-buffer (format "*magy doctor: %s*" (magy-project-name (magy-test-project)))
        (goto-char (point-min))
        (magy-doctor-next)
        (should (looking-at-p "  ✗ models"))
        (let ((kill-ring nil))
          (magy-doctor-copy)
          (should (equal (car kill-ring) "the report")))
        (kill-buffer))
      (let ((facts (plist-get (magy-test-params "magy/doctor/run") :editor)))
        (should (equal (magy--get facts :editor :emacs) emacs-version))
        (should (equal (magy--get facts :magy :client) magy-version))))))

(ert-deftest magy-doctor-says-why-the-server-cannot-start ()
  :tags '(E130)
  (magy-test-with (magy-test-scenario)
    (save-window-excursion
      (let ((magy-server-command '("no-such-program-of-magy" "lsp")))
        (magy-doctor)
        (let ((said (magy-test-doctor "checks again")))
          (should (string-match-p "✗ program +Emacs cannot find the program `no-such" said))
          (should (string-match-p "→ Install Magy" said))))
      ;; The server dies at once, but the program can say what is wrong.
      (let* ((script (magy-test-file
                      "magy" "#!/bin/sh
case $1 in
  lsp) echo 'it is broken' >&2; exit 4;;
  doctor) echo '{\"findings\": [{\"topic\": \"sqlite\", \"status\": \"problem\",
    \"what\": \"Too old.\", \"mend\": \"Get a newer one.\"}]}';;
esac
"))
             (magy-server-command (list script "lsp")))
        (set-file-modes script #o755)
        (magy-doctor)
        (let ((said (magy-test-doctor "checks again")))
          (should (string-match-p "✗ sqlite +Too old.\n +→ Get a newer one." said))
          (should (string-match-p "✗ server" said)))
        (with-current-buffer magy-log-buffer
          (goto-char (point-min))
          (should (search-forward "it is broken" nil t)))))))

(ert-deftest magy-report-holds-nothing-private ()
  (let* ((user-full-name "Ada Lovelace")
         (user-mail-address "ada@example.org")
         (process-environment (cons "SOME_API_KEY=hush-hush-hush" process-environment)))
    (should (equal (magy-facts-redact
                    (concat (expand-file-name "~/x.el") " by Ada Lovelace <ada@example.org> "
                            "api_key=abcdef token: xyz \"password\": \"p w\" sk-abcdefghijklmnop1 "
                            "https://me:pass@host/ hush-hush-hush Authorization: Bearer abc.def"))
                   (concat "~/x.el by NAME <MAIL> "
                           "api_key=[redacted] token: [redacted] \"password\": [redacted] w\" "
                           "[redacted] https://…@host/ [redacted] "
                           "Authorization: Bearer [redacted]")))
    (should (equal "18k tokens so far, no secrets"
                   (magy-facts-redact "18k tokens so far, no secrets")))
    (should (equal "nothing to hide, keys and all"
                   (magy-facts-redact "nothing to hide, keys and all")))))

;; A home may end in a letter, a sign or a mark: none of them may give it away.
(ert-deftest magy-report-names-no-home-whatever-it-ends-in ()
  (dolist (home '("/tmp/someone" "/tmp/some-one_" "/tmp/some.one+" "/tmp/someone)"))
    (let ((process-environment (cons (concat "HOME=" home) process-environment)))
      (should (equal "see ~/x.el, ~: and ~"
                     (magy-facts-redact (format "see %s/x.el, %s: and %s" home home home))))
      (should (equal "/tmp/someoneelse/x.el"
                     (magy-facts-redact "/tmp/someoneelse/x.el"))))))

(ert-deftest magy-diagnosis-goes-with-a-report-that-is-shown-first ()
  :tags '(E049 E130)
  (magy-test-with (magy-test-scenario)
    (let ((inhibit-message t) seen)
      (message "Wrong type argument: stringp, nil")
      (save-window-excursion
        (cl-letf (((symbol-function 'read-from-minibuffer)
                   (lambda (&rest _)
                     (setq seen (with-current-buffer "*magy report*" (buffer-string)))
                     "")))
          (call-interactively #'magy-diagnose-emacs)))
      (let* ((blocks (plist-get (magy-test-params "magy/session/prompt") :prompt))
             (report (magy--get (aref blocks 1) :resource :text))
             (parsed (json-parse-string report :object-type 'plist :array-type 'list)))
        (should (equal (plist-get (aref blocks 0) :text) magy-diagnose--question))
        (should (equal report seen))
        (should (< (length report) 60000))
        (should (equal emacs-version (magy--get parsed :emacs :emacs)))
        (should (member "Wrong type argument: stringp, nil" (plist-get parsed :messages)))
        (should (member "magy-server-command" (magy--get parsed :magy :options)))
        (should-not (string-search (expand-file-name "~/") report))))))

(provide 'magy-doctor-test)
;;; magy-doctor-test.el ends here
