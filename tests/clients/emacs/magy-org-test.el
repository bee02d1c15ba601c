;;; magy-org-test.el --- Markdown as it is shown, and as Org  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'magy-export)
(require 'magy-input-test)
(require 'org)

(defconst magy-test-markdown
  "# Why
It is **bold**, *thin*, _thin_, ~~gone~~ and `*code*`, see [app](app.py#L2).

* star
  - dash
1. one

> quoted **text**

| Name | N |
|---|:-:|
| a | `1` |

```elisp
(message \"**no**\")
* not a heading
#+not a keyword
```
---
end"
  "Most kinds of Markdown.")

(defconst magy-test-org
  "** Why
It is *bold*, /thin/, /thin/, +gone+ and ~*code*~, see [[app.py#L2][app]].

- star
  - dash
1. one

#+begin_quote
quoted *text*
#+end_quote

| Name | N |
|---+---|
| a | ~1~ |

#+begin_src elisp
(message \"**no**\")
,* not a heading
,#+not a keyword
#+end_src
-----
end"
  "The same as Org.")

(ert-deftest magy-markdown-becomes-org ()
  :tags '(E010)
  (should (equal magy-test-org (magy-org-from-markdown magy-test-markdown)))
  (with-temp-buffer
    (insert "* [ASSISTANT]\n" magy-test-org)
    (delay-mode-hooks (org-mode))
    (let ((tree (org-element-parse-buffer)))
      (should (equal '("[ASSISTANT]" "Why")
                     (org-element-map tree 'headline
                       (lambda (heading) (org-element-property :raw-value heading)))))
      (should (equal '("(message \"**no**\")\n* not a heading\n#+not a keyword\n")
                     (org-element-map tree 'src-block
                       (lambda (block) (org-element-property :value block)))))
      (dolist (kind '(bold italic strike-through link table quote-block horizontal-rule))
        (should (org-element-map tree kind #'identity))))))

(ert-deftest magy-markdown-unfinished-is-org-all-the-same ()
  (should (equal "#+begin_src\n,* a\n#+end_src" (magy-org-from-markdown "```\n* a")))
  (should (equal "#+begin_quote\na\n#+end_quote" (magy-org-from-markdown "> a")))
  (should (equal "2 * 3 * 4 and a_b_c" (magy-org-from-markdown "2 * 3 * 4 and a_b_c"))))

(defconst magy-test-told
  (list '(:sessionUpdate "user_message" :messageId "m1"
          :content [(:type "text" :text "Mend it.\n* now")
                    (:type "resource_link" :uri "file:///a.py" :name "a.py:3")])
        '(:sessionUpdate "_magy_queue" :admitted ["m1"])
        '(:sessionUpdate "agent_thought" :messageId "1.thought"
          :content [(:type "text" :text "Hm.\n* star")])
        '(:sessionUpdate "agent_message" :messageId "1"
          :content [(:type "text" :text "I **look**.")])
        '(:sessionUpdate "tool_call_update" :toolCallId "1.0" :name "bash" :title "Run ls"
          :status "pending" :content [(:type "content" :content (:type "text" :text "ls\n-la"))]
          :_meta (:magy (:decision (:action "allow"))))
        '(:sessionUpdate "tool_call_update" :toolCallId "1.0" :status "completed"
          :content [(:type "content" :content (:type "text" :text "a.py\n#+end_tool"))]
          :_meta (:magy (:status "completed")))
        '(:sessionUpdate "tool_call_update" :toolCallId "1.1" :name "spawn_agent"
          :title "explore: look" :status "in_progress")
        '(:sessionUpdate "agent_message" :messageId "2"
          :content [(:type "text" :text "Done.")]))
  "Updates of a session.")

(defconst magy-test-exported-org
  "#+title: A title

* [USER]
Mend it.
,* now
[a.py:3]

#+begin_think
Hm.
,* star
#+end_think

* [ASSISTANT]
I *look*.

#+begin_tool Run ls :status completed
#+begin_example
ls
-la

a.py
,#+end_tool
#+end_example
#+end_tool

#+begin_agent explore: look :status in_progress
#+end_agent

Done.
"
  "They as Org.")

(defun magy-test-export (command)
  "Return what COMMAND writes of a session whose log is `magy-test-told'."
  (let ((seq 0) file)
    (magy-test-with
        (magy-test-scenario
         'magy/session/events
         (vector
          (vector (list :result
                        (list :headSeq (length magy-test-told) :more t
                              :events (vconcat (mapcar (lambda (update)
                                                         (list :seq (cl-incf seq) :at 0
                                                               :update update))
                                                       (seq-take magy-test-told 3))))))
          (vector (list :result
                        (list :headSeq (length magy-test-told) :more :json-false
                              :events (vconcat (mapcar (lambda (update)
                                                         (list :seq (cl-incf seq) :at 0
                                                               :update update))
                                                       (seq-drop magy-test-told 3))))))))
      (setq file (expand-file-name "out" magy-test-root))
      (magy-test-in-transcript
       (magy-session-ensure (magy-test-project) #'ignore)
       (magy-test-until (eq t (magy-project-attached (magy-test-project))))
       (magy-test-tell 1 :sessionUpdate "session_info_update" :title "A title")
       (funcall command file)
       (magy-test-until (file-exists-p file))
       (should (equal '(0 3) (mapcar (lambda (message) (magy--get message :params :after))
                                     (magy-test-received "magy/session/events"))))
       (should (equal "" (magy-test-text))))
      (with-temp-buffer
        (insert-file-contents file)
        (buffer-string)))))

(ert-deftest magy-a-session-is-exported-as-org ()
  :tags '(E129)
  (should (equal magy-test-exported-org (magy-test-export #'magy-export-org)))
  ;; Org takes the comma away again, and reads the rest as it was.
  (with-temp-buffer
    (insert magy-test-exported-org)
    (delay-mode-hooks (org-mode))
    (should (equal '("ls\n-la\n\na.py\n#+end_tool\n")
                   (org-element-map (org-element-parse-buffer) 'example-block
                     (lambda (block) (org-unescape-code-in-string
                                      (org-element-property :value block))))))))

(ert-deftest magy-what-magy-remarks-is-no-comment-of-org ()
  "Comments are not exported, and what Magy says is not Org."
  (should (equal ": Run *it*: refused, no\n: way"
                 (magy-org-item (magy-item--make :kind 'question
                                                 :data '(:question (:title "Run *it*")
                                                         :outcome "refused" :reason "no\nway")))))
  (should (equal ": Resumed: It goes on.\n: Here."
                 (magy-org-item (magy-item--make :kind 'notice
                                                 :data '(:title "Resumed"
                                                         :description "It goes on.\nHere."))))))

(ert-deftest magy-headings-in-a-block-of-org-are-bold ()
  "A heading would end the block, and a comma before it would be seen."
  (should (equal "*Found*\n\n/More here/\n- one"
                 (magy-org-from-markdown "# Found\n\n*More here*\n- one" 0)))
  (should (equal "*Found it*\n\n#+begin_src c\n,#+x\n#+end_src"
                 (magy-org-from-markdown "## Found **it**\n\n```c\n#+x\n```" 0))))

(ert-deftest magy-a-session-is-exported-as-markdown ()
  (should (equal "<!-- A title -->

# USER

Mend it.
* now
[a.py:3]

> Hm.
> * star

# ASSISTANT

I **look**.

**tool Run ls** (completed)

```
ls
-la
```

```
a.py
#+end_tool
```

**tool explore: look** (in_progress)

Done.
"
                 (magy-test-export #'magy-export-markdown))))

(ert-deftest magy-a-session-is-exported-though-no-name-is-typed ()
  (should (equal magy-test-exported-org
                 (magy-test-export
                  (lambda (file)
                    (let ((made (expand-file-name "a-title.org" magy-test-root))
                          (keys (vconcat [?\M-x] "magy-export-org" [?\r ?\r])))
                      (save-window-excursion
                        (switch-to-buffer (current-buffer))
                        (execute-kbd-macro keys)
                        (magy-test-until (file-exists-p made))
                        ;; What is there is not overwritten unasked.
                        (should-error (execute-kbd-macro (vconcat keys "n"))
                                      :type 'user-error))
                      (rename-file made file)))))))

(ert-deftest magy-what-is-copied-is-org ()
  :tags '(E129)
  (magy-test-with (magy-test-scenario)
    (magy-test-in-transcript
     (magy-session-ensure (magy-test-project) #'ignore)
     (magy-test-until (eq t (magy-project-attached (magy-test-project))))
     (cl-loop for update in magy-test-told for seq from 1
              do (apply #'magy-test-tell seq update))
     (goto-char (point-min))
     (search-forward "look")
     (transient-mark-mode)
     (magy-copy-as-org (point) (1+ (point)))
     (should (equal "* [ASSISTANT]\nI *look*." (current-kill 0)))
     (push-mark (- (point) 6) t t)
     (magy-copy-as-org (region-beginning) (+ 2 (region-end)))
     (should (equal "*look*" (current-kill 0)))
     (magy-copy-as-org (point-min) (magy-transcript-end))
     (should (equal (string-remove-prefix "#+title: A title\n\n" magy-test-exported-org)
                    (concat (current-kill 0) "\n")))
     ;; Killed as usual, it is Markdown.
     (kill-new (filter-buffer-substring (- (point) 6) (+ 2 (point))))
     (should (equal "**look**" (current-kill 0))))))

;;;; As it is shown

(defmacro magy-test-shown (text &rest body)
  "Evaluate BODY in a buffer with the Markdown TEXT as it is shown."
  (declare (indent 1) (debug t))
  `(with-temp-buffer
     (add-to-invisibility-spec 'magy-markup)
     (insert ,text)
     (magy-markdown-fontify (point-min) (point-min) (point-max) nil t)
     (goto-char (point-min))
     ,@body))

(ert-deftest magy-tables-are-aligned ()
  (magy-test-shown "| Name | N |\n|---|:-:|\n| a | `1` |\n| 長い名 | **22** |\n\nend"
    (should (equal "│ Name   │ N  │\n├────────┼────┤\n│ a      │ 1  │\n│ 長い名 │ 22 │\n\nend"
                   (magy-picture-visible (point-min) (point-max))))
    (should (equal "| Name | N |\n|---|:-:|\n| a | `1` |\n| 長い名 | **22** |\n\nend"
                   (buffer-substring-no-properties (point-min) (point-max))))))

(ert-deftest magy-table-that-is-too-wide-is-wrapped ()
  (let ((words (string-join (make-list 15 "words") " ")))
    (magy-test-shown (format "| N | Text |\n|---|---|\n| a | %s |\n| b | c |\n\nend" words)
      (should (equal (format "│ N │ Text │\n%s\n│ a │ %s │\n│ b │ c │\n\nend"
                             (make-string (magy-blocks--room) ?─) words)
                     (magy-picture-visible (point-min) (point-max))))
      (search-forward words)
      (should (equal "    " (get-text-property (1- (point)) 'wrap-prefix))))))

(ert-deftest magy-code-has-the-colours-of-its-language ()
  :tags '(E009 E046)
  (magy-test-shown "```elisp\n(defun one () \"two\")\n```\n"
    (search-forward "defun")
    (should (memq 'font-lock-keyword-face
                  (ensure-list (get-text-property (1- (point)) 'face))))
    (should (memq 'magy-code-block
                  (ensure-list (get-text-property (1- (point)) 'face)))))
  (let ((magy-ui-fontify-threshold 10))
    (magy-test-shown "```elisp\n(defun one () \"two\")\n```\n"
      (search-forward "defun")
      (should-not (listp (get-text-property (1- (point)) 'face)))
      (magy-blocks--idle)
      (should (memq 'font-lock-keyword-face (get-text-property (1- (point)) 'face)))))
  ;; A model names the language: it cannot turn a mode on that is none of a file.
  (should-not (magy-blocks--mode "tool-bar"))
  (should-not (magy-blocks--mode "global-auto-revert"))
  (should (eq 'python-mode (magy-blocks--mode "Python"))))

(ert-deftest magy-links-say-where-they-go-and-open ()
  (let ((file (make-temp-file "magy-link-" nil ".txt" "one\ntwo\nthree\n")) opened)
    (unwind-protect
        (magy-test-shown (format "[here](%s#L2), [web](https://example.org/a_b_c) and
[bad](javascript:alert(1)) <https://example.org/x>." file)
          (should (equal "here" (magy-picture-visible (point-min) (+ (point) 6))))
          (search-forward "[her")
          (should (equal (concat file "#L2") (get-text-property (point) 'help-echo)))
          (save-window-excursion
            (magy-link-visit (get-text-property (point) 'magy-link))
            (should (equal "two" (buffer-substring (point) (line-end-position))))
            (kill-buffer))
          (cl-letf (((symbol-function 'browse-url) (lambda (url &rest _) (push url opened))))
            (search-forward "[we") ; the name of the file may have these letters
            (magy-link-visit (get-text-property (point) 'magy-link))
            (search-forward "[bad")
            (should-error (magy-link-visit "javascript:alert(1)") :type 'user-error)
            (should-error (magy-link-visit "/ssh:host:/etc/passwd") :type 'user-error)
            (search-forward "https://e")
            (magy-link-visit (get-text-property (point) 'magy-link)))
          (should (equal '("https://example.org/x" "https://example.org/a_b_c") opened)))
      (delete-file file))))

(ert-deftest magy-links-are-links-in-quotes-and-headings-too ()
  (magy-test-shown (concat "> See [PEP](https://a.example/1) or https://a.example/2.\n\n"
                           "# Of [x](https://a.example/3)\n\n"
                           "> `[no](https://a.example/4)` and `*args*`\n")
    (should (equal (concat "▏ See PEP or https://a.example/2.\n\nOf x\n\n"
                           "▏ [no](https://a.example/4) and *args*\n")
                   (magy-picture-visible (point-min) (point-max))))
    (let (match found)
      (while (setq match (text-property-search-forward 'magy-link))
        (push (prop-match-value match) found))
      (should (equal '("https://a.example/3" "https://a.example/2" "https://a.example/1")
                     found)))))

(ert-deftest magy-markdown-in-pieces-is-as-in-one ()
  (let ((whole (magy-test-shown magy-test-markdown (buffer-string))))
    (with-temp-buffer
      (let ((done (point-min)) state)
        (dolist (line (split-string magy-test-markdown "\n"))
          (insert line "\n")
          (setq state (magy-markdown-fontify (point-min) done (point) state)
                done (point)))
        (delete-char -1)
        (magy-markdown-fontify (point-min) (point) (point) state t)
        (let ((pieces (buffer-string)))
          (should (equal pieces whole))
          (dotimes (n (length whole))
            (should (equal (text-properties-at n pieces) (text-properties-at n whole)))))))))

(provide 'magy-org-test)
;;; magy-org-test.el ends here
