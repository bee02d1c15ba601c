;;; magy-sections-test.el --- Folding, scrolling, pictures, sums  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'magy-input-test)

(defmacro magy-test-attached (scenario &rest body)
  "Evaluate BODY in the transcript of a session; its server follows SCENARIO."
  (declare (indent 1) (debug t))
  `(magy-test-with ,scenario
     (magy-test-in-transcript
      (magy-session-ensure (magy-test-project) #'ignore)
      (magy-test-until (eq t (magy-project-attached (magy-test-project))))
      ,@body)))

(defun magy-test-visible ()
  "Return what is seen of the items of the current transcript."
  (magy-picture-visible (point-min) (magy-transcript-end)))

(defun magy-test-prompt-of (lines)
  "Return a prompt of LINES lines as content."
  (vector (list :type "text"
                :text (mapconcat (lambda (n) (format "line %d" n))
                                 (number-sequence 1 lines) "\n"))))

;;;; Folding

(ert-deftest magy-sections-fold ()
  :tags '(E056 E063)
  (magy-test-attached (magy-test-scenario)
    (magy-test-tell 1 :sessionUpdate "user_message" :messageId "m1"
                    :content (magy-test-prompt-of 40))
    (magy-test-say 2 "a" "# Title\n\ntext\n\n**end**")
    (magy-test-tell 3 :sessionUpdate "tool_call_update" :toolCallId "3.0" :title "Read"
                    :status "completed"
                    :content [(:type "content" :content (:type "text" :text "one\ntwo"))])
    (let ((folded "USER ❯ line 1\nline 2\nline 3\nline 4\nline 5\nline 6\nline 7\nline 8  …32 lines")
          (answer "ASSISTANT\nTitle\n\ntext\n\nend\n\n"))
      (should (equal (concat folded "\n\n" answer "tool ✓ Read  …2 lines\n\n")
                     (magy-test-visible)))
      (goto-char (point-min))
      (magy-test-press "TAB")
      (should (string-match-p "line 8\nline 9\n.*" (magy-test-visible)))
      (magy-test-press "TAB")
      (search-forward "ASSISTANT")
      (magy-test-press "TAB")
      (should (equal (concat folded "\n\nASSISTANT\nTitle  …4 lines\n\ntool ✓ Read  …2 lines\n\n")
                     (magy-test-visible)))
      ;; What is folded can still change.
      (magy-test-say 2 "a" "# Title\n\ntext\n\n**end**\nmore")
      (should (string-match-p "Title  …5 lines\n\ntool" (magy-test-visible)))
      (magy-test-say 2 "a" "# Title\n\ntext\n\n**end**")
      (goto-char (point-min))
      (search-forward "ASSISTANT")
      (magy-test-press "TAB")
      (magy-test-press "<backtab>")
      (should (equal (concat folded "\n\n" answer "tool ✓ Read\n    one\n    two\n\n")
                     (magy-test-visible)))
      (goto-char (point-max))
      (magy-toggle-section)
      (should (equal (concat folded "\n\n" answer "tool ✓ Read  …2 lines\n\n")
                     (magy-test-visible)))
      (should (equal (concat answer "tool ✓ Read  …2 lines\n\n")
                     (progn (goto-char (point-max))
                            (magy-transcript-previous-turn)
                            (should (looking-at "USER"))
                            (string-remove-prefix (concat folded "\n\n")
                                                  (magy-test-visible))))))))

(ert-deftest magy-command-stays-when-its-output-is-there ()
  :tags '(G022)
  (magy-test-attached (magy-test-scenario)
    (cl-flet ((tell (seq text &rest more)
                (apply #'magy-test-tell seq
                       (append more
                               (list :sessionUpdate "tool_call_update" :toolCallId "1.0"
                                     :name "bash" :title "Run it"
                                     :content (vector (list :type "content"
                                                            :content (list :type "text"
                                                                           :text text))))))))
      (tell nil "ls\nrm it" :status "pending" :_meta '(:magy (:decision (:action "ask"))))
      (should (equal "tool · Run it\nls\nrm it\n\n" (magy-test-text)))
      (tell 2 "out" :status "failed")
      (should (equal "tool ✗ Run it\nls\nrm it\n\nout\n\n" (magy-test-text))))))

;;;; Visiting

(ert-deftest magy-visiting-takes-what-is-at-point-and-is-there ()
  (magy-test-attached (magy-test-scenario)
    (let ((paths (mapcar (lambda (name) (magy-test-file name "text\n")) '("a.py" "b.py"))))
      (cl-flet ((tell (id decision)
                  (magy-test-tell nil :sessionUpdate "tool_call_update" :toolCallId id
                                  :title "Run it" :status "pending"
                                  :locations (vconcat (mapcar (lambda (path) (list :path path))
                                                              paths))
                                  :content [(:type "content"
                                             :content (:type "text" :text "rm -f b.py a.py\n"))]
                                  :_meta (list :magy (list :decision decision))))
                (visited ()
                  (save-window-excursion
                    (save-current-buffer
                      (magy-transcript-visit)
                      (file-name-nondirectory buffer-file-name)))))
        ;; What a command names is visited only there: it may be about to go.
        (tell "1.0" '(:action "ask"))
        (goto-char (point-min))
        (should-error (visited) :type 'user-error)
        (search-forward "a.p")
        (should (equal "a.py" (visited)))
        (search-backward "b.p")
        (should (equal "b.py" (visited)))
        (delete-file (cadr paths))
        (should (string-match-p "There is no .*b\\.py now"
                                (cadr (should-error (visited) :type 'user-error))))
        (tell "2.0" nil)
        (goto-char (magy-item-start (magy-transcript-item "2.0")))
        (should (equal "a.py" (visited)))))))

;;;; Readers

(ert-deftest magy-reader-is-left-alone ()
  :tags '(E019)
  (magy-test-attached (magy-test-scenario)
    (dotimes (n 30)
      (magy-test-turn (1+ n)))
    (save-window-excursion
      (switch-to-buffer (current-buffer))
      (goto-char (point-min))
      (search-forward "answer 3\n")
      (set-window-start nil (line-beginning-position 0))
      (let ((start (window-start)) (here (point)))
        (dotimes (n 20)
          (magy-test-say nil "s" (format "more %d\n" n)))
        (should (= here (window-point)))
        (should (= start (window-start))))
      (goto-char (point-max))
      (magy-test-say nil "s" "more\n")
      (should (= (point-max) (window-point)))
      ;; Who asks something wants to see what comes.
      (goto-char (point-min))
      (let ((magy-auto-scroll nil))
        (magy-prompt "again")
        (should (= (point-min) (window-point))))
      (magy-prompt "again")
      (should (= (point-max) (window-point)))
      ;; Another window that shows the end stays there if it is not to scroll.
      (let ((magy-auto-scroll nil) (other (split-window)))
        (with-selected-window other (goto-char (point-max)))
        (magy-test-say nil "s" "yet more\n")
        (let ((there (window-point other)))
          (should (< there (magy-transcript-end)))
          (magy-test-say nil "s" "and more\n")
          (should (= there (window-point other))))))))

(ert-deftest magy-scrolling-to-the-top-reads-older-turns ()
  :tags '(G004)
  (magy-test-attached
      (magy-test-scenario
       'magy/session/resume
       (vector (vector (list :result (plist-put
                                      (magy-test-page
                                       "$sessionId"
                                       '(:sessionUpdate "user_message" :messageId "m9"
                                         :content [(:type "text" :text "ninth")]))
                                      :floorSeq 9))))
       'magy/session/events
       [[(:result (:headSeq 9 :more :json-false
                   :events [(:seq 5 :at 0 :update (:sessionUpdate "user_message" :messageId "m5"
                                                   :content [(:type "text" :text "fifth")]))]))]])
    (dotimes (n 30)
      (magy-test-turn (+ 10 n)))
    (save-window-excursion
      (switch-to-buffer (current-buffer))
      (goto-char (point-max))
      ;; What redisplay calls when a person has scrolled.
      (run-hook-with-args 'window-scroll-functions (selected-window) 200)
      (should-not (magy-test-received "magy/session/events"))
      (goto-char (point-min))
      (set-window-start nil (point-min))
      (run-hook-with-args 'window-scroll-functions (selected-window) (point-min))
      (magy-test-until (string-match-p "USER ❯ fifth\n" (magy-test-text)))
      (should (equal 9 (plist-get (magy-test-params "magy/session/events") :before)))
      ;; What was read is still where it was.
      (should (looking-at "USER ❯ ninth"))
      (should (= (point) (window-start))))))

;;;; Pictures

(ert-deftest magy-pictures-are-named ()
  (magy-test-attached (magy-test-scenario)
    (magy-test-tell 1 :sessionUpdate "user_message" :messageId "m1"
                    :content [(:type "text" :text "look")
                              (:type "resource_link" :uri "magy-blob:12" :name "shot.png"
                               :mimeType "image/png")
                              (:type "resource_link" :uri "file:///tmp/a.py#L3" :name "a.py:3")])
    (should (equal "USER ❯ look\n[image: shot.png]\n[a.py:3]\n\n" (magy-test-visible)))
    (goto-char (point-min))
    (search-forward "a.py")
    (should (equal "file:///tmp/a.py#L3" (get-text-property (point) 'magy-link)))
    (should (eq 'magy-link-open (key-binding (kbd "RET"))))))

(ert-deftest magy-answered-question-below-its-call-is-one-line ()
  (magy-test-attached (magy-test-scenario)
    (let* ((title (concat "Run echo one &&\n" (string-join (make-list 20 "echo more") " && ")))
           (question (list :interactionId "ask-1" :kind "permission" :toolCallId "1.0"
                           :title title :rule "build: bash is ask" :remember [] :covers []
                           :sessionId (magy-project-session (magy-test-project)))))
      (magy-test-tell 2 :sessionUpdate "tool_call_update" :toolCallId "1.0" :title title
                      :status "pending" :kind "execute")
      (magy-test-tell 3 :sessionUpdate "_magy_interaction" :open question)
      (magy-test-see (concat "? " title))
      (magy-test-tell 4 :sessionUpdate "_magy_interaction"
                      :resolved '(:interactionId "ask-1" :outcome "allowed" :scope "once"
                                  :reason ""))
      (magy-test-see "? Run echo one && echo more && echo more && echo mo…  allowed\n")
      (magy-test-see (string-join (make-list 20 "echo more") " && ")))))

;;;; Sums

(ert-deftest magy-header-says-what-it-costs ()
  (magy-test-attached (magy-test-scenario)
    (cl-flet ((used (seq tokens cost)
                (magy-test-tell nil :sessionUpdate "usage_update" :used tokens
                                :_meta (list :magy (list :seq seq :request (format "%d" seq)
                                                         :usage (list :totalTokens tokens)
                                                         :cost cost)))))
      (magy-test-tell nil :sessionUpdate "config_option_update"
                      :configOptions [(:configId "model" :name "Model" :currentValue "m")]
                      :_meta '(:magy (:seq 1 :window 200000)))
      (used 2 20000 0.25)
      (used 3 30000 0.5)
      (used 3 30000 0.5)                ; every update may come twice
      (should (string-suffix-p " · build · m · 50k tokens · 15%% of 200k · $0.75"
                               (substring-no-properties (magy-transcript-header))))
      (used 4 10000 nil)
      (should (string-suffix-p " · $0.75+" (magy-transcript-header))))))

(ert-deftest magy-header-cuts-the-title-and-not-what-the-agent-may ()
  (magy-test-attached (magy-test-scenario)
    (let ((project magy-transcript--view))
      (setf (magy-project-title project) (string-join (make-list 20 "abcd") " ")
            (magy-project-options project) '(("agent" . "build") ("bypass" . "on")))
      (let ((header (substring-no-properties (magy-transcript-header))))
        (should (string-suffix-p "… · build · asks nothing" header))
        (should (= (window-width) (string-width header)))))))

(ert-deftest magy-header-says-what-a-turn-takes ()
  :tags '(G026)
  (magy-test-attached (magy-test-scenario)
    (cl-flet ((used (seq cached cost)
                (magy-test-tell nil :sessionUpdate "usage_update" :used (+ 1000 cached)
                                :_meta (list :magy
                                             (list :seq seq :cost cost :request "1"
                                                   :usage (list :totalTokens (+ 1000 cached)
                                                                :inputTokens 1000
                                                                :cachedReadTokens cached)))))
              (header () (substring-no-properties (magy-transcript-header))))
      (used 1 0 0.5)
      (magy-test-tell 2 :sessionUpdate "state_update" :state "running"
                      :_meta '(:magy (:opens t)))
      (used 3 3000 0.02)
      (should (string-suffix-p (concat " · 5k tokens, 60%% cached · $0.52"
                                       " · turn 4k tokens, 75%% cached, $0.020")
                               (header)))
      (used 4 0 0.1)
      (should (string-suffix-p " · turn 5k tokens, 60%% cached, $0.12" (header)))
      (magy-test-tell 5 :sessionUpdate "state_update" :state "idle")
      (should (string-suffix-p " · 6k tokens, 50%% cached · $0.62" (header))))))

(ert-deftest magy-what-was-taken-back-is-marked ()
  (magy-test-attached (magy-test-scenario)
    (dotimes (n 3)
      (magy-test-turn (1+ n)))
    (magy-test-tell 20 :sessionUpdate "_magy_restored" :restoreId "r1" :turnId "m2"
                    :undoes nil :files t :conversation t
                    :changes [(:operation "modify" :path "/a.py")] :conflicts ["/b.py"])
    ;; The same in words for those that do not know the update.
    (magy-test-tell 20 :sessionUpdate "notice" :severity "info" :title "Restored"
                    :description "1 file and the conversation, as before an earlier prompt")
    (should (equal (concat "USER ❯ prompt 1\n\nASSISTANT\nanswer 1\n\n"
                           "USER ❯ prompt 2  (undone)\n\nASSISTANT\nanswer 2\n\n"
                           "USER ❯ prompt 3  (undone)\n\nASSISTANT\nanswer 3\n\n"
                           "— Undone: 1 file and the conversation, back to before “prompt 2”; "
                           "1 file left alone\n\n")
                   (magy-test-text)))
    (magy-test-tell 21 :sessionUpdate "_magy_restored" :restoreId "r2" :turnId "m2"
                    :undoes "r1" :files t :conversation t :changes [] :conflicts [])
    (should-not (string-match-p "(undone)" (magy-test-text)))
    (should (string-suffix-p "alone\n\n— Redone: the conversation\n\n" (magy-test-text)))
    (magy-test-tell 22 :sessionUpdate "_magy_restored" :restoreId "r3" :turnId "m2"
                    :undoes "r2" :files t :conversation :json-false :changes [] :conflicts [])
    (should (string-suffix-p "— Undone: 0 files, back to before “prompt 2”\n\n"
                             (magy-test-text)))))

(ert-deftest magy-labels-are-options ()
  :tags '(E030 E031 E032)
  (let ((magy-user-prompt "ME") (magy-assistant-prompt "IT") (magy-tool-call-prompt "call"))
    (magy-test-attached (magy-test-scenario)
      (magy-test-turn 1)
      (magy-test-tell 5 :sessionUpdate "tool_call_update" :toolCallId "5.0" :title "Read"
                      :status "completed")
      (should (equal "ME ❯ prompt 1\n\nIT\nanswer 1\n\ncall ✓ Read\n\n" (magy-test-text))))))

(ert-deftest magy-error-label-is-an-option ()
  :tags '(E033)
  (let ((magy-error-prompt "oops"))
    (magy-test-attached (magy-test-scenario)
      (magy-test-tell 5 :sessionUpdate "notice" :severity "error" :title "Full disk"
                      :description "Free some.")
      (should (equal "— oops: Full disk: Free some.\n\n" (magy-test-text))))))

(ert-deftest magy-updates-are-shown-in-batches ()
  :tags '(E009 E045)
  (let ((magy-ui-batch-insert-delay 3600)
        (magy-session--slice 3600))  ; however slow the machine, one batch
    (magy-test-attached (magy-test-scenario)
      (let ((project (magy-test-project)))
        (dolist (word '("one " "two " "three"))
          (magy-session--receive
           project 'update (list :sessionUpdate "agent_message_chunk" :messageId "1"
                                 :content (list :type "text" :text word))))
        (should (equal "" (magy-test-text)))
        ;; One timer for all of them, and as late as the option says.
        (should (< 3000 (float-time (time-subtract (timer--time (magy-project-timer project))
                                                   nil))))
        (timer-event-handler (magy-project-timer project))
        (should (equal "ASSISTANT\none two three\n\n" (magy-test-text)))))))

(provide 'magy-sections-test)
;;; magy-sections-test.el ends here
