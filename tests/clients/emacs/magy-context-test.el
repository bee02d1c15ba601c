;;; magy-context-test.el --- Prompts and what goes with them  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'magy-test-helper)
(require 'magy-complete)

(defun magy-test-item (kind label default text)
  "Return the item of a context: KIND, LABEL, DEFAULT, and a block with TEXT."
  (list :kind kind :label label :default (if default t :json-false)
        :block (list :type "resource" :resource (list :uri "file:///a" :text text))))

(defun magy-test-context (&rest turns)
  "Return a scenario in which there are two things at point, and TURNS."
  (apply #'magy-test-scenario
         (append turns
                 (list 'magy/context/get
                       (vector (vector (list :result
                                             (list :items
                                                   (vector
                                                    (magy-test-item "definition" "a.el:5-6"
                                                                    t "two")
                                                    (magy-test-item "open" "b.el"
                                                                    nil "bee"))))))))))

(defun magy-test-sent ()
  "Return the texts of the last prompt."
  (mapcar (lambda (block) (or (plist-get block :text) (magy--get block :resource :text)))
          (plist-get (magy-test-params "magy/session/prompt") :prompt)))

(defun magy-test--in-minibuffer (function)
  "Call FUNCTION in place of reading, in a buffer like the minibuffer; return its text."
  (with-temp-buffer
    (use-local-map magy-context-map)
    (run-hooks 'minibuffer-setup-hook)
    (funcall function)
    (buffer-string)))

(defmacro magy-test-reading (function &rest body)
  "Evaluate BODY with FUNCTION in place of the person who types a prompt."
  (declare (indent 1) (debug t))
  `(cl-letf (((symbol-function 'read-from-minibuffer)
              (lambda (&rest _) (magy-test--in-minibuffer ,function))))
     ,@body))

(defun magy-test-shown ()
  "Return what is shown above the prompt, when it is known."
  (magy-test-until (listp (magy-context-items magy-context--current)))
  (substring-no-properties (overlay-get magy-context--overlay 'before-string)))

(defun magy-test-press (key)
  "Do what KEY does in the current buffer."
  (let ((last-command-event (aref (kbd key) (1- (length (kbd key))))))
    (call-interactively (key-binding (kbd key)))))

(ert-deftest magy-dwim-shows-what-it-sends-and-sends-what-is-chosen ()
  :tags '(E011 E048)
  (magy-test-with (magy-test-context)
    (with-current-buffer (find-file-noselect (magy-test-file "a.el" "(defun two ()\n  2)\n"))
      (forward-char 7)
      (magy-test-reading
          (lambda ()
            (should (equal (magy-test-shown) "+1 a.el:5-6  -2 b.el  (C-c 1… to change)\n"))
            (insert "why?"))
        (magy-dwim))
      (should (equal (magy-test-sent) '("why?" "two")))
      (let ((asked (magy-test-params "magy/context/get")))
        (should (equal (plist-get asked :uri) (magy-test-uri "a.el")))
        (should (equal (plist-get asked :position) '(:line 0 :character 7)))
        (should (equal (plist-get asked :openUris) (vector (magy-test-uri "a.el"))))
        (should-not (plist-get asked :selection))))))

(ert-deftest magy-context-is-changed-by-keys ()
  (magy-test-with (magy-test-context)
    (with-current-buffer (find-file-noselect (magy-test-file "a.el" "(defun two ()\n  2)\n"))
      (magy-test-reading
          (lambda ()
            (magy-test-shown)
            (magy-test-press "C-c 1")
            (should (equal (magy-test-shown) "-1 a.el:5-6  -2 b.el  (C-c 1… to change)\n"))
            (magy-test-press "M-2")
            (should (equal (magy-test-shown) "-1 a.el:5-6  +2 b.el  (C-c 1… to change)\n"))
            (insert "why?"))
        (magy-dwim))
      (should (equal (magy-test-sent) '("why?" "bee"))))))

(ert-deftest magy-without-auto-context-nothing-goes-unless-chosen ()
  :tags '(E044)
  (magy-test-with (magy-test-context)
    (with-current-buffer (find-file-noselect (magy-test-file "a.el" "(defun two ()\n  2)\n"))
      (let ((magy-auto-context nil))
        (magy-dwim "why?")
        (should (equal (magy-test-sent) '("why?")))))))

(ert-deftest magy-prompt-typed-before-the-context-is-known-waits-for-it ()
  (magy-test-with (magy-test-context)
    (with-current-buffer (find-file-noselect (magy-test-file "a.el" "(defun two ()\n  2)\n"))
      (magy-test-reading (lambda () (insert "why?"))
        (magy-dwim))
      (should (equal (magy-test-sent) '("why?" "two"))))))

(ert-deftest magy-prompt-is-read-from-the-keyboard ()
  (magy-test-with (magy-test-context)
    (with-current-buffer (find-file-noselect (magy-test-file "a.el" "(defun two ()\n  2)\n"))
      (let ((magy-prompt-history nil))
        (execute-kbd-macro (vconcat [?\M-x] "magy-prompt" [?\r] "hello there" [?\r]))
        (should (equal (magy-test-sent) '("hello there")))
        (should (equal magy-prompt-history '("hello there")))))))

(ert-deftest magy-prompt-sends-only-the-region ()
  :tags '(E051)
  (magy-test-with
      (magy-test-scenario
       'magy/context/get
       (vector (vector (list :result
                             (list :items (vector (magy-test-item "selection" "a.txt:2" t "two")
                                                  (magy-test-item "diagnostics" "1" t "bad")))))))
    (with-current-buffer (find-file-noselect (magy-test-file "a.txt" "one\ntwo\nthree\n"))
      (transient-mark-mode)
      (should-error (magy-prompt-region "explain") :type 'user-error)
      (goto-char 5)
      (push-mark 8 t t)
      (magy-prompt-region "explain" '(4))
      (should (equal (magy-test-sent) '("explain" "two")))
      (should (equal "queue" (plist-get (magy-test-params "magy/session/prompt") :delivery)))
      (should (equal (plist-get (magy-test-params "magy/context/get") :selection)
                     '(:start (:line 1 :character 0) :end (:line 1 :character 3)))))))

(ert-deftest magy-region-of-a-buffer-without-a-file-goes-as-it-is ()
  (magy-test-with (magy-test-scenario)
    (with-temp-buffer
      (insert "one\ntwo\n")
      (transient-mark-mode)
      (goto-char 5)
      (push-mark (point-max) t t)
      (magy-prompt "explain")
      (should (equal (magy-test-sent) '("explain" "two\n")))
      (should-not (magy-test-received "magy/context/get")))))

(ert-deftest magy-clear-clears-without-a-model ()
  :tags '(E053 E067)
  (magy-test-with
      (magy-test-scenario
       'magy/session/resume
       (vector (vector (list :result
                             (let ((page (magy-test-page "$sessionId")))
                               (plist-put (plist-get page :summary) :configOptions
                                          [(:configId "agent" :name "Agent"
                                            :currentValue "plan" :options [])])
                               page)))))
    (magy-prompt "hello")
    (magy-test-params "magy/session/prompt")
    (let ((old (magy-project-session (magy-test-project))))
      (magy-prompt " @clear ")
      (should (equal old (plist-get (magy-test-params "magy/session/close") :sessionId)))
      (magy-test-until (= 2 (length (magy-test-received "magy/session/resume"))))
      (should-not (equal old (magy-project-session (magy-test-project))))
      (should (equal "plan" (plist-get (magy-test-params "magy/session/new") :agent)))
      (should (= 1 (length (magy-test-received "magy/session/prompt")))))))

;;;; Completion

(defun magy-test-completing (&rest items)
  "Return a scenario in which ITEMS, (TEXT LABEL KIND), complete what follows @."
  (magy-test-scenario
   'magy/prompt/complete
   (vector (vector (list :result
                         (list :prefix "@pa"
                               :items (vconcat
                                       (mapcar (pcase-lambda (`(,text ,label ,kind))
                                                 (list :text text :label label :kind kind
                                                       :detail ""))
                                               items))
                               :incomplete :json-false))))))

(defmacro magy-test-composing (text &rest body)
  "Evaluate BODY in a buffer in which a prompt with TEXT is written."
  (declare (indent 1) (debug t))
  `(with-temp-buffer
     (magy-complete-setup (magy-test-project) #'point-min)
     (insert ,text)
     ,@body))

(defun magy-test-capf ()
  "Return what is offered at point, when it has arrived."
  (pcase-let ((`(,beg ,end ,table . ,_)
               (magy-test-until (magy-complete-at-point))))
    (list (buffer-substring beg end)
          (all-completions (buffer-substring beg end) table))))

(ert-deftest magy-completion-asks-without-waiting ()
  :tags '(E074)
  (magy-test-with (magy-test-completing '("@parser.py" "parser.py" "file")
                                        '("@sym:make_path" "make_path" "symbol")
                                        '("@path-skill" "@path-skill" "skill"))
    (magy-test-composing "see @pa"
      (should-not (magy-complete-at-point)) ; nothing has arrived
      (should (equal (magy-test-capf)
                     '("@pa" ("@parser.py" "@sym:make_path" "@path-skill"))))
      ;; What it knows it does not ask again.
      (insert "rs")
      (should (equal (magy-test-capf) '("@pars" ("@parser.py"))))
      (should (= 1 (length (magy-test-received "magy/prompt/complete"))))
      (should (equal (plist-get (magy-test-params "magy/prompt/complete") :before) "see @pa")))
    (magy-test-composing "me@example.org is no mention"
      (should-not (magy-complete-at-point))
      (should-not magy-complete--asked))))

(ert-deftest magy-completion-happens-when-the-answer-arrives ()
  (magy-test-with (magy-test-completing '("@sym:make_path" "make_path" "symbol"))
    (save-window-excursion
      (magy-test-composing "see @pa"
        (switch-to-buffer (current-buffer))
        (let ((this-command 'completion-at-point))
          (completion-at-point))
        (magy-test-until (equal (buffer-string) "see @sym:make_path"))
        (should (equal (point) (point-max)))))))

(ert-deftest magy-completion-of-what-nobody-knows-is-said ()
  (magy-test-with (magy-test-completing)
    (save-window-excursion
      (magy-test-composing "see @pa"
        (switch-to-buffer (current-buffer))
        (let ((this-command 'completion-at-point) (said nil))
          (cl-letf (((symbol-function 'message)
                     (lambda (format &rest arguments)
                       (push (and format (apply #'format-message format arguments)) said))))
            (completion-at-point)
            (magy-test-until (member "Magy knows nothing that @pa could be" said))
            (setq said nil)
            (insert "x")
            ;; A package that offers completion at each key says nothing.
            (let ((this-command 'self-insert-command))
              (magy-complete-at-point))
            (should-not said)
            (completion-at-point)
            (should (member "Magy knows nothing that @pax could be" said))))))))

(ert-deftest magy-completion-in-the-minibuffer-inserts-or-lists ()
  (magy-test-with (magy-test-completing '("@parser.py" "parser.py" "file")
                                        '("@sym:make_path" "make_path" "symbol"))
    (should (eq 'magy-complete (lookup-key magy-context-map (kbd "TAB"))))
    (save-window-excursion
      (magy-test-composing "see @pa"
        (magy-complete)
        (magy-test-until magy-complete--last)
        (magy-complete)
        (with-current-buffer "*Completions*"
          (goto-char (point-min))
          (should (search-forward "@sym:make_path" nil t)))
        (insert "rs")
        (magy-complete)
        (should (equal (buffer-string) "see @parser.py"))))))

(ert-deftest magy-completion-that-comes-too-late-changes-nothing ()
  (magy-test-with (magy-test-completing '("@parser.py" "parser.py" "file"))
    (save-window-excursion
      (magy-test-composing "see @pa"
        (switch-to-buffer (current-buffer))
        (let ((this-command 'completion-at-point))
          (completion-at-point))
        (insert " and")
        (magy-test-until (and magy-complete--last (magy-complete-items magy-complete--last)))
        (sleep-for 0.1)
        (should (equal (buffer-string) "see @pa and"))))))

(provide 'magy-context-test)
;;; magy-context-test.el ends here
