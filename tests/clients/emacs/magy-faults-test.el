;;; magy-faults-test.el --- Servers that stop, die or are slow  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'magy-test-helper)

(defun magy-test-process ()
  "Return the process of the project's server."
  (jsonrpc--process (magy-project-connection (magy-test-project))))

(defun magy-test-signal (signal)
  "Send SIGNAL, STOP or CONT, to the server, and wait until it works."
  (signal-process (magy-test-process) signal)
  (magy-test-until (eq (if (eq signal 'STOP) 'stop 'run) (process-status (magy-test-process)))))

(defun magy-test-opened (name content)
  "Visit the new file NAME with CONTENT; return the buffer once the server knows it."
  (let ((buffer (find-file-noselect (magy-test-file name content))))
    (magy-when-ready (magy-test-project) #'ignore)
    (magy-test-params "textDocument/didOpen")
    buffer))

(defun magy-test-told ()
  "Return (VERSION CHANGES) of each didChange that the server got."
  (mapcar (lambda (message)
            (list (magy--get message :params :textDocument :version)
                  (magy--get message :params :contentChanges)))
          (magy-test-received "textDocument/didChange")))

(defun magy-test-whole (told)
  "Return the text of TOLD if that is the whole text of a document."
  (let ((changes (cadr told)))
    (and (= 1 (length changes)) (null (plist-get (aref changes 0) :range))
         (plist-get (aref changes 0) :text))))

(ert-deftest magy-what-is-typed-while-the-server-is-stopped-is-told-whole-later ()
  (magy-test-with (magy-test-scenario)
    (with-current-buffer (magy-test-opened "a.txt" "one\n")
      (magy-test-signal 'STOP)
      (goto-char (point-min))
      (insert "typed\n")
      (magy--flush)
      (should (= 0 (magy-document-version magy--document)))
      (magy-test-signal 'CONT)
      ;; Without any command.
      (magy-test-until (magy-test-told))
      (goto-char (point-max))
      (insert "x\n")
      (magy--flush)
      (magy-test-until (= 2 (length (magy-test-told))))
      (should (equal '(1 2) (mapcar #'car (magy-test-told))))
      (should (equal "typed\none\n" (magy-test-whole (car (magy-test-told)))))
      (should (equal 2 (magy--get (aref (cadr (cadr (magy-test-told))) 0)
                                  :range :start :line))))))

(ert-deftest magy-files-opened-and-closed-while-the-server-is-stopped-are-told-later ()
  (magy-test-with (magy-test-scenario)
    (let ((a (magy-test-opened "a.txt" "one\n")))
      (magy-test-signal 'STOP)
      (kill-buffer a)
      (let ((b (find-file-noselect (magy-test-file "b.txt" "two\n"))))
        (with-current-buffer b
          (should magy-mode)
          (goto-char (point-max))
          (insert "three\n")
          (magy-test-signal 'CONT)
          (magy-test-until (= 2 (length (magy-test-received "textDocument/didOpen"))))
          (should (equal "two\nthree\n" (magy--get (magy-test-params "textDocument/didOpen")
                                                   :textDocument :text)))
          (should (equal (magy-test-uri "a.txt")
                         (magy--get (magy-test-params "textDocument/didClose")
                                    :textDocument :uri))))))))

(ert-deftest magy-requests-wait-for-a-stopped-server ()
  (magy-test-with (magy-test-scenario 'magy/session/cancel [[(:result (:cancelled t))]])
    (magy-test-opened "a.txt" "one\n")
    (let ((project (magy-test-project)) answers)
      (magy-test-signal 'STOP)
      (dotimes (n 2)
        (magy-request project 'magy/session/cancel '(:sessionId "x")
                      (lambda (_) (push n answers)) #'ignore))
      (should (magy-hung-p project))
      (should (string-search "hangs" (magy-modeline--text)))
      (magy-test-signal 'CONT)
      (magy-test-until (equal '(1 0) answers))
      (should-not (magy-hung-p project))
      (should (equal "" (magy-modeline--text))))))

(ert-deftest magy-requests-to-a-server-that-ends-while-stopped-fail ()
  (magy-test-with (magy-test-scenario)
    (magy-test-opened "a.txt" "one\n")
    (let ((project (magy-test-project)) problems)
      (magy-test-signal 'STOP)
      (magy-request project 'magy/session/cancel '(:sessionId "x") #'error
                    (lambda (problem) (push (plist-get problem :message) problems)))
      (signal-process (magy-test-process) 'KILL)
      (magy-test-until (equal '("the server has ended") problems))
      (magy-test-until (not (magy-live-p project)))
      (magy-request project 'magy/session/cancel '(:sessionId "x") #'error
                    (lambda (problem) (push (plist-get problem :message) problems)))
      (magy-test-until (equal "the server does not run" (car problems))))))

(ert-deftest magy-prompt-to-a-stopped-server-arrives-when-it-goes-on ()
  (magy-test-with (magy-test-scenario)
    (let ((project (magy-test-project)))
      (magy-prompt "first")
      (magy-test-until (and (eq t (magy-project-attached project))
                            (null (magy-project-unsent project))))
      (magy-test-signal 'STOP)
      (magy-prompt "second")
      (should (magy-project-unsent project))
      (magy-test-signal 'CONT)
      (magy-test-until (null (magy-project-unsent project)))
      (should (= 2 (length (magy-test-received "magy/session/prompt")))))))

(ert-deftest magy-indirect-buffers-leave-the-document-to-their-base ()
  (magy-test-with (magy-test-scenario)
    (with-current-buffer (magy-test-opened "a.txt" "one\n")
      (let ((clone (clone-indirect-buffer "magy clone" nil)))
        (with-current-buffer clone
          (should-not magy--document)
          (goto-char (point-max))
          (insert "from the clone\n"))
        (should (eq (current-buffer) (magy--buffer-of (magy-test-uri "a.txt"))))
        (magy-test-until (equal "one\nfrom the clone\n"
                                (magy-test-whole (car (magy-test-told)))))
        (kill-buffer clone))
      (should magy--document)
      (goto-char (point-max))
      (insert "later\n")
      (magy--flush)
      (magy-test-until (= 2 (length (magy-test-told))))
      (should-not (magy-test-received "textDocument/didClose")))))

(ert-deftest magy-percent-in-a-file-name-is-itself ()
  (let ((uri (magy--path-to-uri "/tmp/a%41 ü.py")))
    (should (equal uri "file:///tmp/a%2541%20%C3%BC.py"))
    (should (equal (magy--uri-to-path uri) "/tmp/a%41 ü.py"))))

(defun magy-test-lines (count)
  "Return COUNT lines of text."
  (mapconcat (lambda (n) (format "line %d\n" n)) (number-sequence 1 count) ""))

(defun magy-test-line-edits (count)
  "Return an edit for each of COUNT lines: `line' becomes `Zeile'."
  (mapcar (lambda (n) (list :range (list :start (list :line n :character 0)
                                         :end (list :line n :character 4))
                            :newText "Zeile"))
          (number-sequence 0 (1- count))))

(ert-deftest magy-edits-are-told-as-they-were-asked-for ()
  (magy-test-with (magy-test-scenario)
    (with-current-buffer (magy-test-opened "a.txt" (magy-test-lines 300))
      (let ((old "line 1\nline 2\nline 3\n") (new "1 eins\nline 2, two\n3 drei\n"))
        (magy--apply-edits
         (list (list :range (list :start '(:line 0 :character 0) :end '(:line 3 :character 0))
                     :newText new))
         'utf-32)
        (magy--flush)
        (should (string-prefix-p new (buffer-string)))
        (magy-test-until (magy-test-told))
        (let ((changes (cadr (car (magy-test-told)))))
          (should (= 1 (length changes)))
          (should (equal new (plist-get (aref changes 0) :text))))
        (magy--apply-edits
         (list (list :range (list :start '(:line 0 :character 0) :end '(:line 3 :character 0))
                     :newText old))
         'utf-32))
      (magy--apply-edits (magy-test-line-edits 300) 'utf-32)
      (magy--flush)
      (should (equal (string-replace "line" "Zeile" (magy-test-lines 300)) (buffer-string)))
      (magy-test-until (= 2 (length (magy-test-told))))
      (should (equal (buffer-string) (magy-test-whole (cadr (magy-test-told))))))))

(ert-deftest magy-edit-that-a-hook-goes-beyond-is-told-whole ()
  (magy-test-with (magy-test-scenario)
    (with-current-buffer (magy-test-opened "a.txt" (magy-test-lines 3))
      (add-hook 'after-change-functions
                (lambda (beg _end _length)
                  (when (< 1 beg)
                    (save-excursion
                      (save-restriction
                        (widen)
                        (goto-char (point-min))
                        (insert "hook\n")))))
                nil t)
      (magy--apply-edits (last (magy-test-line-edits 3)) 'utf-32)
      (magy--flush)
      (magy-test-until (magy-test-told))
      (should (equal (buffer-string) (magy-test-whole (car (magy-test-told))))))))

(ert-deftest magy-large-replacement-leaves-what-is-alike-at-both-ends ()
  (with-temp-buffer
    (let ((text (magy-test-lines 5000)))
      (insert text)
      (let ((head (copy-marker 100)) (tail (copy-marker (- (point-max) 100))))
        (magy--replace (point-min) (point-max)
                       (string-replace "line 2500\n" "new\n" text) 0.3)
        (should (equal (buffer-string) (string-replace "line 2500\n" "new\n" text)))
        (should (= 100 head))
        (should (= tail (- (point-max) 100)))))
    (erase-buffer)
    (insert "aaa")
    (magy--replace-middle 1 4 "aaaa")
    (should (equal "aaaa" (buffer-string)))))

(ert-deftest magy-many-changes-at-once-are-told-whole ()
  (magy-test-with (magy-test-scenario)
    (with-current-buffer (magy-test-opened "a.txt" (magy-test-lines 500))
      (goto-char (point-min))
      (while (search-forward "line" nil t)
        (replace-match "Zeile"))
      (should (eq t (magy-document-changes magy--document)))
      (magy--flush)
      (magy-test-until (magy-test-told))
      (should (equal (buffer-string) (magy-test-whole (car (magy-test-told))))))))

(ert-deftest magy-an-error-at-a-server-s-end-stops-nothing ()
  (magy-test-with (magy-test-scenario)
    (with-current-buffer (magy-test-opened "a.txt" "one\n")
      (let ((magy-death-functions (cons (lambda (&rest _) (error "Broken"))
                                        magy-death-functions)))
        (signal-process (magy-test-process) 'KILL)
        (magy-test-until (not (magy-live-p (magy-test-project))))
        (magy-test-until (null magy--document))))))

(ert-deftest magy-server-that-dies-at-once-says-why-and-gives-the-prompt-back ()
  (magy-test-with (magy-test-scenario)
    (let ((magy-server-command '("sh" "-c" "echo boom >&2; exit 3"))
          (project (magy-test-project)))
      (dotimes (_ 2)
        (condition-case err
            (magy-prompt "do it")
          (user-error (should (string-search "could not start" (cadr err)))))
        (magy-test-until (not (magy-live-p project))))
      (magy-test-see "The server ended at once, with status 3: boom")
      (should-not (string-search "goes on" (magy-test-text)))
      (magy-test-until (null (magy-project-unsent project)))
      (with-current-buffer (magy-project-buffer project)
        (should (equal "do it" (magy-input-text)))))))

(ert-deftest magy-unloading-leaves-nothing-behind ()
  (let* ((code '(progn
                  (require 'magy)
                  (require 'magy-modeline)
                  (magy-modeline--show nil)
                  (magy--open-all nil)
                  (with-temp-buffer
                    (setq buffer-file-name "/tmp/magy-not-there")
                    (magy-mode)
                    (unload-feature 'magy t)
                    (insert "typed")
                    (set-buffer-modified-p nil)
                    (princ (format "left: %S" (list find-file-hook kill-emacs-hook
                                                    after-change-functions
                                                    global-mode-string
                                                    (assq 'magy-mode minor-mode-alist)
                                                    (seq-filter
                                                     (lambda (feature)
                                                       (string-prefix-p
                                                        "magy" (symbol-name feature)))
                                                     features)))))))
         (output (with-temp-buffer
                   (call-process (expand-file-name invocation-name invocation-directory)
                                 nil t nil "-Q" "--batch"
                                 "-L" (file-name-directory (locate-library "magy"))
                                 "--eval" (prin1-to-string code))
                   (buffer-string))))
    (should (string-search "left: " output))
    (should-not (string-search "magy" (substring output (string-search "left: " output))))))

(provide 'magy-faults-test)
;;; magy-faults-test.el ends here
