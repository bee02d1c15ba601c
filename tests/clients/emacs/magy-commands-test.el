;;; magy-commands-test.el --- Commands, and a server that fails  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'magy-test-helper)
(require 'magy-actions)
(require 'magy-agents)
(require 'magy-choose)
(require 'magy-menu)
(require 'magy-modeline)
(require 'magy-resume)

(defconst magy-test-question
  '(:interactionId "ask-1" :kind "permission" :toolCallId "3.0" :title "Run pytest"
    :rule "build: bash is ask" :agent "build" :remember [(:key "bash" :pattern "pytest *")]
    :covers ["bash `pytest *`"])
  "A question.")

(defun magy-test-question-turn ()
  "Return the turn in which a prompt leads to a question."
  (vector (vector '(:result (:messageId "$messageId" :outcome "started"))
                  (magy-test-event 1 :sessionUpdate "_magy_interaction"
                                   :open magy-test-question))))

(defun magy-test-options (&rest options)
  "Return the turn in which a session is shown with OPTIONS, (ID VALUE CHOICES...)."
  (let ((page (magy-test-page "$sessionId")))
    (plist-put (plist-get page :summary) :configOptions
               (vconcat (mapcar (pcase-lambda (`(,id ,value . ,choices))
                                  (list :configId id :name id :currentValue value
                                        :options (vconcat choices)))
                                options)))
    (vector (vector (list :result page)))))

(defmacro magy-test-choosing (text offered &rest body)
  "Evaluate BODY, in which the person chooses the line with TEXT.
OFFERED, a variable, becomes what was offered: a list of (GROUP . LINE)."
  (declare (indent 2) (debug t))
  `(cl-letf (((symbol-function 'completing-read)
              (lambda (_prompt table &rest _)
                (let* ((group (cdr (assq 'group-function
                                         (cdr (funcall table "" nil 'metadata)))))
                       (lines (all-completions "" table)))
                  (setq ,offered (mapcar (lambda (line)
                                           (cons (and group (funcall group line nil)) line))
                                         lines))
                  (cl-find ,text lines :test #'string-search)))))
     ,@body))

;;;; Sessions

(ert-deftest magy-new-session-leaves-the-old-one ()
  (magy-test-with (magy-test-scenario)
    (magy-prompt "go")
    (magy-test-params "magy/session/prompt")
    (let ((old (magy-project-session (magy-test-project))))
      (magy-new-session)
      (should (equal old (plist-get (magy-test-params "magy/session/unsubscribe") :sessionId)))
      (magy-test-until (= 2 (length (magy-test-received "magy/session/resume"))))
      (should-not (magy-test-received "magy/session/close"))
      (should-not (equal old (magy-project-session (magy-test-project)))))))

(ert-deftest magy-sessions-to-resume-are-grouped-by-project ()
  :tags '(E058 E072)
  (magy-test-with
      (magy-test-scenario
       'magy/session/list
       (vector (vector (list :result
                             (list :sessions
                                   (vector '(:sessionId "s-own" :cwd "/" :root "$cwd" :title "Mine"
                                             :updatedAt "2026-01-02T03:04:05.000+00:00"
                                             :state "idle" :turns 2 :headSeq 4)
                                           '(:sessionId "s-other" :cwd "/" :root "/elsewhere"
                                             :title "Theirs" :updatedAt nil
                                             :state "running" :turns 1 :headSeq 4)
                                           '(:sessionId "s-none" :cwd "/" :root nil :title nil
                                             :updatedAt nil :state "idle" :turns 0
                                             :headSeq 1)))))))
    (let (offered)
      (magy-test-choosing "Mine" offered
        (magy-resume-session)
        (magy-test-until (equal "s-own" (magy-project-session (magy-test-project)))))
      (should (equal (mapcar #'car offered) '("This project" "/elsewhere" "No project")))
      (should (equal "Mine" (cdar offered))))))

(ert-deftest magy-sessions-to-resume-are-completed-by-their-titles ()
  :tags '(E058)
  (let* ((infos (mapcar (lambda (id)
                          (list :sessionId id :title (unless (equal id "s-3") "Mend it") :turns 1
                                :state "idle" :updatedAt "2026-01-02T03:04:05.000+00:00"))
                        '("s-1" "s-2" "s-3")))
         (table (magy-choose--table (magy-resume--lines infos) nil #'magy-resume--remark))
         (annotate (alist-get 'annotation-function (cdr (funcall table "" nil 'metadata)))))
    (should (equal '("Mend it" "Mend it (s-2)" "s-3") (all-completions "" table)))
    (should (equal "Mend it" (try-completion "Me" table)))
    (should (string-match-p "\\`  2026-01-02 [0-9:]+, 1 turn, idle\\'"
                            (funcall annotate "Mend it")))))

(ert-deftest magy-model-can-be-chosen-after-a-prompt-told-which-it-is ()
  "Such an update says what was chosen, and not what else could be."
  (magy-test-with
      (magy-test-scenario
       'magy/session/resume (magy-test-options '("model" "x/one" "x/one" "x/two"))
       'magy/session/prompt
       (vector (vector '(:result (:messageId "$messageId" :outcome "started"))
                       (magy-test-event 1 :sessionUpdate "config_option_update"
                                        :configOptions [(:configId "model" :name "Model"
                                                         :currentValue "x/two")])))
       'magy/model/list
       [[(:result (:providers [(:provider "x" :models ["x/two"] :problem "")
                               (:provider "y" :models ["y/three"] :problem "")
                               (:provider "z" :models [] :problem "z is not running")]))]]
       'magy/session/set_config_option
       [[(:result (:configOptions [(:configId "model" :name "Model" :currentValue "$value"
                                    :options ["x/one" "x/two"])]))]])
    (magy-prompt "go")
    (magy-test-until (equal "x/two" (magy-agents--option (magy-test-project) "model")))
    (let (offered)
      (magy-test-choosing "x/one" offered
        (magy-select-model)
        (magy-test-until (equal "x/one" (magy-agents--option (magy-test-project) "model"))))
      (should (equal '("x/one" "x/two" "y/three") (mapcar #'cdr offered)))
      (with-current-buffer "*Messages*"
        (goto-char (point-min))
        (should (search-forward "Magy: z is not running" nil t))))))

(ert-deftest magy-choice-that-comes-late-takes-no-keys ()
  (let ((this-command 'magy-select-agent) said asked)
    (magy-test-with
        (magy-test-scenario
         'magy/agent/list [[(:result (:agents [(:name "build" :mode "primary"
                                                :description "Builds")]))]])
      (cl-letf (((symbol-function 'message)
                 (lambda (format &rest arguments)
                   (push (apply #'format-message (or format "") arguments) said)))
                ((symbol-function 'completing-read) (lambda (&rest _) (setq asked t) "")))
        (magy-select-agent)
        (should (member "Magy: asking…" said))
        (run-hooks 'pre-command-hook)   ; the person types something
        (should-not (memq 'magy-choose--goes-on pre-command-hook))
        (magy-test-until
         (member "Magy: the answer has arrived: type M-x magy-select-agent again" said))
        ;; A key sequence that is half typed is meant for something, too.
        (magy-select-agent)
        (cl-letf (((symbol-function 'this-command-keys-vector) (lambda () [?\C-x])))
          (magy-test-until (= 2 (cl-count-if (lambda (line) (string-search "has arrived" line))
                                             said))))
        (should-not asked)
        (magy-select-agent)
        (magy-test-until asked)))))

(ert-deftest magy-titles-are-completed-by-any-part-of-them ()
  (let ((found (completion-all-completions
                "parser" (magy-choose--table '(("Mend the parser" . 1) ("Greet" . 2)) nil nil)
                nil 6)))
    (setcdr (last found) nil)
    (should (equal '("Mend the parser") (mapcar #'substring-no-properties found)))))

(ert-deftest magy-bypass-is-an-option-and-a-command ()
  :tags '(E047 E062)
  (magy-test-with
      (magy-test-scenario
       'magy/session/resume (magy-test-options '("bypass" "off" "on" "off"))
       'magy/session/set_config_option
       [[(:result (:configOptions [(:configId "bypass" :name "b" :currentValue "$value"
                                    :options [])]))]])
    (let ((magy-bypass-permission t))
      (magy-prompt "go")
      (magy-test-params "magy/session/prompt")
      (let ((params (magy-test-params "magy/session/set_config_option")))
        (should (equal (list (plist-get params :configId) (plist-get params :value))
                       '("bypass" "on")))))
    (magy-toggle-bypass-permission)
    (magy-test-until (equal "on" (magy-agents--option (magy-test-project) "bypass")))
    (magy-toggle-bypass-permission)
    (magy-test-until (equal "off" (magy-agents--option (magy-test-project) "bypass")))))

;;;; Agents

(defun magy-test-agents ()
  "Return a scenario with two agents and two models."
  (magy-test-scenario
   'magy/session/resume (magy-test-options '("agent" "build") '("model" "a/one" "a/one" "a/two"))
   'magy/agent/list
   [[(:result (:agents [(:name "build" :description "Does all" :mode "primary" :model nil)
                        (:name "plan" :description "Only plans" :mode "primary"
                         :model "a/two")]))]]
   'magy/model/list [[(:result (:providers []))]]
   'magy/session/set_config_option
   [[(:result (:configOptions [(:configId "$configId" :name "x" :currentValue "$value"
                                :options [])]))]]))

(ert-deftest magy-agent-and-model-are-chosen ()
  :tags '(E057 E060)
  (magy-test-with (magy-test-agents)
    (let (offered)
      (magy-test-choosing "plan" offered
        (magy-select-agent)
        (magy-test-until (equal "plan" (magy-agents--option (magy-test-project) "agent"))))
      (should (equal (mapcar #'cdr offered) '("build" "plan")))
      (magy-test-choosing "two" offered
        (magy-select-model)
        (magy-test-until (equal "a/two" (magy-agents--option (magy-test-project) "model")))))
    (magy-show-current-agent)
    (with-current-buffer magy-log-buffer
      (goto-char (point-min))
      (should (search-forward "agent plan, model a/two" nil t)))))

(ert-deftest magy-agents-are-listed ()
  :tags '(E061)
  (magy-test-with (magy-test-agents)
    (save-window-excursion
      (magy-list-agents)
      (let ((name (format "*magy agents: %s*" (magy-project-name (magy-test-project)))))
        (magy-test-until (get-buffer name))
        (with-current-buffer name
          (goto-char (point-min))
          (should (search-forward-regexp "plan +primary +a/two +Only plans" nil t))
          (beginning-of-line)
          (magy-agents-choose)
          (magy-test-until (equal "plan" (magy-agents--option (magy-test-project) "agent")))
          (kill-buffer))))))

;;;; Actions

(ert-deftest magy-actions-are-asked-for-resolved-and-done ()
  (magy-test-with
      (magy-test-scenario
       'textDocument/codeAction
       [[(:result [(:title "Explain" :kind "source.magy" :data (:n 1))
                   (:title "Fix" :disabled (:reason "Nothing is wrong"))])]]
       'codeAction/resolve
       [[(:result (:title "Explain"
                   :command (:title "Explain" :command "magy.action.run"
                             :arguments [(:action "explain" :uri "u")])))]])
    (with-current-buffer (find-file-noselect (magy-test-file "a.el" "(one two)\n"))
      (goto-char 7)
      (save-window-excursion
        (switch-to-buffer (current-buffer))
        (let (offered)
          (magy-test-choosing "Explain" offered
            (magy-actions)
            (magy-test-params "workspace/executeCommand"))
          (should (equal (mapcar #'cdr offered) '("Explain")))))
      (should (equal (plist-get (magy-test-params "textDocument/codeAction") :range)
                     '(:start (:line 0 :character 5) :end (:line 0 :character 8))))
      (should (equal (plist-get (magy-test-params "codeAction/resolve") :data) '(:n 1)))
      (should (equal (magy-test-params "workspace/executeCommand")
                     `(:command "magy.action.run"
                       :arguments [(:action "explain" :uri "u"
                                    :sessionId ,(magy-project-session
                                                 (magy-test-project)))]))))))

(ert-deftest magy-question-about-the-symbol-at-point ()
  :tags '(E052)
  (magy-test-with (magy-test-scenario)
    (with-current-buffer (find-file-noselect (magy-test-file "a.el" "(one two)\n"))
      (goto-char 7)
      (cl-letf (((symbol-function 'read-from-minibuffer)
                 (lambda (prompt &rest _) (should (equal prompt "Ask Magy about two: ")) "why?")))
        (call-interactively #'magy-ask-at-point))
      (let ((params (aref (plist-get (magy-test-params "workspace/executeCommand") :arguments)
                          0)))
        (should (equal (plist-get params :action) "ask"))
        (should (equal (plist-get params :text) "why?"))
        (should (equal (plist-get params :uri) (magy-test-uri "a.el")))
        (should (equal (plist-get params :range)
                       '(:start (:line 0 :character 5) :end (:line 0 :character 8))))
        (should (plist-get params :messageId))))))

(ert-deftest magy-actions-are-in-the-context-menu ()
  (magy-test-with (magy-test-scenario)
    (with-current-buffer (find-file-noselect (magy-test-file "a.el" "(one two)\n"))
      (let ((click (list 'mouse-3 (list (selected-window) 1 '(0 . 0) 0))))
        (should (equal '(keymap) (magy-actions-context-menu (make-sparse-keymap) click)))
        (magy-mode)
        (let* ((menu (magy-actions-context-menu (make-sparse-keymap) click))
               (own (lookup-key menu [magy])))
          (should (keymapp own))
          (should (memq 'magy-actions-context-menu (default-value 'context-menu-functions)))
          (should (lookup-key menu [magy explain]))
          (should (lookup-key menu [magy magy-actions])))))))

;;;; What runs

(ert-deftest magy-question-is-seen-everywhere-and-takes-no-window ()
  :tags '(G022)
  (magy-test-with (magy-test-scenario 'magy/session/prompt (magy-test-question-turn))
    (let ((configuration (current-window-configuration)) told)
      (let ((magy-show-transcript nil)
            (magy-desktop-notifications (lambda (title body) (push (cons title body) told))))
        (cl-letf (((symbol-function 'frame-focus-state) #'ignore))
          (magy-prompt "go")
          (magy-test-see "? Run pytest")))
      (magy-test-see "asked because: build: bash is ask")
      (magy-test-see "(asked by build)")
      (magy-test-see "[n] refuse  [y] allow once  [s] for this session  [p] for this project")
      (magy-test-see "a lasting yes would allow: bash `pytest *`")
      (should (= 1 (length (magy-permission--all))))
      (should (equal " [Magy asks 1]" (substring-no-properties (magy-modeline))))
      (should (string-match-p ": asks: Run pytest, nothing used yet\nmouse-1" (magy-modeline--help)))
      (should (memq 'magy-modeline--construct global-mode-string))
      (should (equal (cdar told) "Run pytest"))
      (should (compare-window-configurations configuration
                                             (current-window-configuration)))
      (with-current-buffer magy-log-buffer
        (goto-char (point-min))
        (should (search-forward "PERM Magy asks: Run pytest" nil t))))))

(ert-deftest magy-question-of-a-child-names-it-and-its-parent ()
  :tags '(G022)
  (cl-letf (((symbol-function 'magy--new-id) (lambda (prefix) (concat prefix "-1"))))
    (magy-test-with
        (magy-test-scenario
         'magy/session/resume (magy-test-options '("agent" "build"))
         'magy/session/prompt
         (vector (vector '(:result (:messageId "$messageId" :outcome "started"))
                         (list :notify "magy/interaction/changed"
                               :params (list :sessionId "emacs-1/7.0"
                                             :opened (vector (append '(:agent "explore"
                                                                       :sessionId "emacs-1/7.0")
                                                                     magy-test-question)))))))
      (magy-prompt "go")
      (magy-test-see "? Run pytest  (asked by explore, a child of build)")
      (magy-test-see "asked because: build: bash is ask"))))

(ert-deftest magy-emacs-is-not-left-unasked-while-an-agent-works ()
  (magy-test-with
      (magy-test-scenario
       'magy/session/prompt
       (vector (vector '(:result (:messageId "$messageId" :outcome "started"))
                       (magy-test-event 1 :sessionUpdate "state_update" :state "running"))))
    (let ((confirm-kill-processes t) asked)
      (cl-letf (((symbol-function 'yes-or-no-p)
                 (lambda (prompt) (setq asked prompt) nil)))
        (cl-flet ((may-leave () (run-hook-with-args-until-failure 'kill-emacs-query-functions)))
          (should (may-leave))
          (magy-prompt "go")
          (magy-test-until (equal "running" (magy-project-state (magy-test-project))))
          (should-not (may-leave))
          (should (string-prefix-p (format "Magy works in %s; "
                                           (magy-project-name (magy-test-project)))
                                   asked))
          (setq confirm-kill-processes nil)
          (should (may-leave)))))))

(ert-deftest magy-stopping-a-server-is-said ()
  (magy-test-with (magy-test-scenario)
    (magy-session-ensure (magy-test-project) #'ignore)
    (magy-test-until (eq t (magy-project-attached (magy-test-project))))
    (funcall-interactively #'magy-stop (magy-test-project))
    (magy-test-until (when-let ((log (get-buffer magy-log-buffer)))
                       (with-current-buffer log
                         (string-search "was shut down" (buffer-string)))))))

(ert-deftest magy-mode-line-says-what-runs-and-how-to-stop-it ()
  (magy-test-with
      (magy-test-scenario
       'magy/session/prompt
       (vector (vector '(:result (:messageId "$messageId" :outcome "started"))
                       (magy-test-event 1 :sessionUpdate "state_update" :state "running"))))
    (magy-prompt "go")
    (magy-test-until (equal "running" (magy-project-state (magy-test-project))))
    (should (equal (format " [Magy works in %s]" (magy-project-name (magy-test-project)))
                   (substring-no-properties (magy-modeline))))
    (cl-letf (((symbol-function 'x-popup-menu)
               (lambda (_event menu)
                 (cdr (cl-find "Stop the agent" (cdadr menu)
                               :test (lambda (part entry) (string-search part (car entry))))))))
      (magy-modeline-menu nil))
    (should (equal (magy-project-session (magy-test-project))
                   (plist-get (magy-test-params "magy/session/cancel") :sessionId)))))

;;;; A server that fails

(ert-deftest magy-server-that-cannot-start-is-said ()
  (magy-test-with (magy-test-scenario 'initialize [[(:exit 3)]])
    (magy-prompt "go")
    (magy-test-until (with-current-buffer (get-buffer-create magy-log-buffer)
                       (goto-char (point-min))
                       (search-forward "ERROR Magy could not start" nil t)))
    (should-not (magy-live-p (magy-test-project))))
  (let ((magy-server-command '("no-such-program-of-magy")))
    (should-error (magy-prompt "go") :type 'user-error)))

(ert-deftest magy-server-of-another-version-is-said ()
  (magy-test-with
      (magy-test-scenario
       'initialize [[(:result (:capabilities (:positionEncoding "utf-32"
                                              :experimental (:magy (:version "9.1.0"
                                                                    :protocol 9)))))]])
    (magy-prompt "go")
    (magy-test-params "magy/session/prompt")
    (with-current-buffer magy-log-buffer
      (goto-char (point-min))
      (should (search-forward "WARN Magy 9.1.0 for" nil t))
      (should (search-forward "speaks protocol 9, and this client, 0.1.0, speaks 1" nil t)))))

(ert-deftest magy-server-that-hangs-is-said-and-restarted-with-nothing-lost ()
  (magy-test-with
      ;; It never answers a prompt of its first life.
      (magy-test-scenario 'magy/session/prompt [[(:silent t)]])
    (let ((magy-patience 0.3))
      (magy-prompt "remember me")
      (magy-test-until (magy-hung-p (magy-test-project)))
      (should (eq 'magy/session/prompt (magy-hung-p (magy-test-project))))
      (should (equal " [Magy hangs]" (substring-no-properties (magy-modeline))))
      (with-current-buffer magy-log-buffer
        (goto-char (point-min))
        (should (search-forward "M-x magy-restart; nothing is lost" nil t)))
      (let ((sent (magy-test-params "magy/session/prompt")))
        (magy-restart (magy-test-project))
        (magy-test-until (= 2 (length (magy-test-received "magy/session/prompt"))))
        ;; The same id: had the first one arrived, the second would change nothing.
        (should (equal sent (magy-test-params "magy/session/prompt")))
        (should (equal (plist-get sent :sessionId)
                       (plist-get (magy-test-params "magy/session/resume") :sessionId)))))))

(ert-deftest magy-server-that-only-is-slow-is-not-called-hung ()
  (magy-test-with (magy-test-scenario 'magy/agent/list [[(:silent t)]])
    (let ((magy-patience 2) (began (float-time)))
      (magy-when-ready (magy-test-project) #'ignore)
      (magy-test-until (magy-project-ready (magy-test-project)))
      (magy-request (magy-test-project) 'magy/agent/list nil #'ignore)
      (while (< (- (float-time) began) 3)
        (magy-request (magy-test-project) 'magy/session/list nil #'ignore)
        (sleep-for 0.1))
      (should-not (magy-hung-p (magy-test-project)))
      (magy-test-until (magy-hung-p (magy-test-project)))
      (magy-request (magy-test-project) 'magy/session/list nil #'ignore)
      (magy-test-until (not (magy-hung-p (magy-test-project))))
      (with-current-buffer magy-log-buffer
        (goto-char (point-min))
        (should (search-forward "answers again" nil t))))))

(ert-deftest magy-prompt-that-a-dying-server-did-not-accept-is-sent-to-the-next ()
  (magy-test-with (magy-test-scenario 'magy/session/prompt [[(:exit 1)]])
    (magy-prompt "remember me")
    (magy-test-see "The server ended")
    (should (= 1 (length (magy-project-unsent (magy-test-project)))))
    (magy-session-ensure (magy-test-project) #'ignore)
    (magy-test-until (= 2 (length (magy-test-received "magy/session/prompt"))))
    (pcase-let ((`(,a ,b) (magy-test-received "magy/session/prompt")))
      (should (equal (plist-get a :params) (plist-get b :params))))))

;;;; Keys and menu

(ert-deftest magy-menu-has-every-command-with-its-key ()
  :tags '(E064)
  (dolist (group magy-commands)
    (pcase-dolist (`(,key ,command ,_) (cdr group))
      (should (commandp command))
      (should (eq command (lookup-key magy-command-map key)))))
  (should (eq 'magy-menu (lookup-key magy-transcript-mode-map "?")))
  (skip-unless (require 'transient nil t))
  (should (magy-menu--define))
  (should (commandp 'magy-menu--transient)))

(ert-deftest magy-menu-works-without-transient ()
  (let (done)
    (cl-letf (((symbol-function 'magy-menu--define) #'ignore)
              ((symbol-function 'read-key) (lambda (&rest _) ?l))
              ((symbol-function 'magy-show-log) (lambda () (interactive) (setq done t))))
      (magy-menu)
      (should done)
      (with-current-buffer " *magy menu*"
        (goto-char (point-min))
        (should (search-forward "l  log" nil t))))))

(ert-deftest magy-evil-mode-is-there-for-those-who-want-it ()
  :tags '(E016)
  (should-not (featurep 'magy-evil))
  (skip-unless (require 'evil nil t))
  (require 'magy-evil)
  (unwind-protect
      (progn (magy-evil-mode)
             (should (eq 'emacs (evil-initial-state 'magy-transcript-mode)))
             (magy-evil-mode -1)
             (should-not (eq 'emacs (evil-initial-state 'magy-transcript-mode))))
    (magy-evil-mode -1)))

(declare-function evil-initial-state "evil")

(provide 'magy-commands-test)
;;; magy-commands-test.el ends here
