;;; magy-options-test.el --- What a person sets, and what becomes of it  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'magy-test-helper)

(defun magy-test-settings ()
  "Start the server; return the settings that it got."
  (magy-when-ready (magy-test-project) #'ignore)
  (magy--get (magy-test-params "initialize") :initializationOptions :magy :settings))

(ert-deftest magy-options-have-the-documented-defaults ()
  :tags '(E022)
  (should (equal '(nil 100 120 25 t t info t "USER" "ASSISTANT" "tool" "error" "rg" 100 30 10 120
                       t t 0.05 500 nil "build" t t)
                 (list magy-project-root-function magy-max-history magy-request-timeout
                       magy-max-sampling-requests magy-load-custom-agents magy-enable-logging
                       magy-log-level magy-enable-audit-log magy-user-prompt
                       magy-assistant-prompt magy-tool-call-prompt magy-error-prompt
                       magy-grep-program magy-grep-max-matches magy-bash-timeout
                       magy-emacs-eval-timeout magy-audit-preview-length magy-include-reasoning
                       magy-auto-context magy-ui-batch-insert-delay magy-ui-fontify-threshold
                       magy-bypass-permission magy-default-agent magy-enable-tools
                       magy-auto-scroll))))

(ert-deftest magy-options-that-nobody-changed-leave-the-server-alone ()
  (magy-test-with (magy-test-scenario)
    (should-not (magy-test-settings))))

(ert-deftest magy-options-about-agents-are-settings-of-the-server ()
  :tags '(E025 E026 E029)
  (magy-test-with (magy-test-scenario)
    (let ((magy-default-agent "plan")
          (magy-load-custom-agents nil)
          (magy-enable-audit-log nil))
      (should (equal (magy-test-settings)
                     '(:default_agent "plan" :custom_agents :json-false
                       :audit (:enabled :json-false)))))))

(ert-deftest magy-options-about-tools-are-settings-of-the-server ()
  :tags '(E037 E038 E039)
  (magy-test-with (magy-test-scenario)
    (let ((magy-grep-program "ugrep")
          (magy-grep-max-matches 7)
          (magy-bash-timeout 5))
      (should (equal (magy-test-settings)
                     '(:tools (:grep_program "ugrep" :grep_matches 7 :bash_timeout 5)))))))

(ert-deftest magy-options-about-limits-are-settings-of-the-server ()
  :tags '(E023 E024 E042)
  (magy-test-with (magy-test-scenario)
    (let ((magy-request-timeout 60)
          (magy-max-sampling-requests 0)
          (magy-audit-directory "~/audit")
          (magy-audit-preview-length 0))
      (should (equal (magy-test-settings)
                     `(:model (:timeout 60) :limits (:requests 0)
                       :audit (:directory ,(expand-file-name "~/audit")
                               :preview_length 0)))))))

(ert-deftest magy-settings-win-over-options ()
  (magy-test-with (magy-test-scenario)
    (let ((magy-bash-timeout 5)
          (magy-settings '(:tools (:bash_timeout 6 :glob_results 9) :titles :json-false)))
      (should (equal (magy-test-settings)
                     '(:tools (:bash_timeout 6 :glob_results 9) :titles :json-false))))))

(ert-deftest magy-tools-that-are-not-enabled-are-denied ()
  :tags '(E020)
  (magy-test-with (magy-test-scenario)
    (let ((magy-enable-tools '(read git plan editor)))
      (should (equal (plist-get (magy-test-settings) :permission)
                     '(:edit "deny" :write "deny" :bash "deny" :net "deny" :skill "deny" :agent "deny"
                       :emacs_eval "deny"))))))

(ert-deftest magy-eval-that-is-not-allowed-is-not-announced ()
  (magy-test-with (magy-test-scenario)
    (let ((magy-allow-eval nil))
      (magy-when-ready (magy-test-project) #'ignore)
      (should (equal '(:save t :diagnostics t :definition t :references t :symbols t)
                     (magy--get (magy-test-params "initialize") :initializationOptions :magy
                                :capabilities :editor))))))

(ert-deftest magy-session-directory-is-the-servers-state-directory ()
  :tags '(E035)
  (let ((magy-session-directory "~/elsewhere"))
    (should (member (concat "MAGY_STATE_DIR=" (expand-file-name "~/elsewhere"))
                    (magy--environment))))
  (let ((magy-session-directory nil))
    (should (equal process-environment (magy--environment)))))

(ert-deftest magy-project-root-is-what-the-function-says ()
  :tags '(E021)
  (magy-test-with (magy-test-scenario)
    (let* ((inner (expand-file-name "inner/" magy-test-root))
           (magy-project-root-function (lambda () inner)))
      (make-directory inner)
      (should (equal (magy-project-root (magy-current-project)) inner))
      (setq magy-project-root-function #'ignore)
      (should (equal (magy-project-root (magy-current-project)) magy-test-root)))))

(ert-deftest magy-prefix-is-the-persons-choice ()
  :tags '(E015)
  (magy-test-with (magy-test-scenario)
    (unwind-protect
        (with-current-buffer (find-file-noselect (magy-test-file "a.txt" "x"))
          (should-not (where-is-internal 'magy-command-map magy-mode-map))
          (customize-set-variable 'magy-command-prefix "C-c m")
          (global-magy-mode)
          (should magy-mode)
          (should-not (magy-live-p (magy-test-project))) ; nothing is started by a mode
          (should (eq 'magy-dwim (key-binding (kbd "C-c m p"))))
          (customize-set-variable 'magy-command-prefix "C-c a")
          (should (eq 'magy-dwim (key-binding (kbd "C-c a p"))))
          (should-not (commandp (key-binding (kbd "C-c m p")))))
      (global-magy-mode -1)
      (customize-set-variable 'magy-command-prefix nil))))

(ert-deftest magy-log-holds-what-is-important-enough ()
  :tags '(E027 E028 E054)
  (when (get-buffer magy-log-buffer) (kill-buffer magy-log-buffer))
  (let ((magy-log-level 'info) (inhibit-message t))
    (magy--log-at 'debug "not this")
    (magy--log "plain")
    (magy--log-at 'perm "allowed")
    (magy--log-at 'error "bad")
    (let ((magy-log-level 'warn))
      (magy--log "nor this")
      (magy--log-at 'perm "nor that")
      (magy--message-at 'warn "careful"))
    (let ((magy-enable-logging nil))
      (magy--log-at 'error "nor here"))
    (save-window-excursion (magy-show-log))
    (with-current-buffer magy-log-buffer
      (should (derived-mode-p 'magy-log-mode))
      (should (equal '("INFO plain" "PERM allowed" "ERROR bad" "WARN careful")
                     (mapcar (lambda (line) (substring line 20))
                             (split-string (buffer-string) "\n" t)))))))

(ert-deftest magy-log-is-emptied ()
  :tags '(E055)
  (let ((inhibit-message t))
    (magy--log-at 'error "bad"))
  (with-current-buffer magy-log-buffer
    (should (< 0 (buffer-size)))
    (call-interactively (lookup-key magy-command-map "L"))
    (should (= 0 (buffer-size)))))

(provide 'magy-options-test)
;;; magy-options-test.el ends here
