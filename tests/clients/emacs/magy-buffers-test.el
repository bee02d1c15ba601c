;;; magy-buffers-test.el --- Live buffers, edits, saving  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'magy-test-helper)

(defun magy-test-visit (name content)
  "Visit the new file NAME with CONTENT; return the buffer once the server knows it."
  (let ((buffer (find-file-noselect (magy-test-file name content))))
    (magy-when-ready (magy-test-project) #'ignore)
    (magy-test-params "textDocument/didOpen")
    buffer))

(defun magy-test--offset (text position)
  "Return the index in TEXT of the LSP POSITION, counted in `magy-test-encoding'."
  (let ((start 0))
    (dotimes (_ (plist-get position :line))
      (setq start (1+ (string-match "\n" text start))))
    (let ((left (plist-get position :character)))
      (while (> left 0)
        (cl-decf left (if (and (equal magy-test-encoding "utf-16")
                               (> (aref text start) #xffff))
                          2 1))
        (cl-incf start)))
    start))

(defun magy-test-mirror ()
  "Return (TEXT . VERSION) of the document as a server would have it."
  (let (text version)
    (dolist (message (magy-test-received))
      (pcase (plist-get message :method)
        ("textDocument/didOpen"
         (setq text (magy--get message :params :textDocument :text)
               version (magy--get message :params :textDocument :version)))
        ("textDocument/didChange"
         (setq version (magy--get message :params :textDocument :version))
         (seq-doseq (change (magy--get message :params :contentChanges))
           (setq text
                 (if-let ((range (plist-get change :range)))
                     (concat (substring text 0 (magy-test--offset text (plist-get range :start)))
                             (plist-get change :text)
                             (substring text (magy-test--offset text (plist-get range :end))))
                   (plist-get change :text)))))))
    (cons text version)))

(defun magy-test-same ()
  "Flush, and check that the server's copy is the current buffer's text."
  (magy--flush)
  (magy-test-until (equal (cdr (magy-test-mirror)) (magy-document-version magy--document)))
  (should (equal (car (magy-test-mirror))
                 (buffer-substring-no-properties (point-min) (point-max)))))

(defun magy-test-changes ()
  "Return the content changes of the last didChange."
  (plist-get (magy-test-params "textDocument/didChange") :contentChanges))

(ert-deftest magy-unsaved-text-is-sent-incrementally ()
  :tags '(G006)
  (dolist (magy-test-encoding '("utf-32" "utf-16"))
    (magy-test-with (magy-test-scenario)
      (with-current-buffer (magy-test-visit "a.txt" "eins\nzwei 😀 λ\ndrei\n")
        (goto-char (point-min))
        (search-forward "😀")
        (insert "!")
        (delete-region (point-min) (+ 3 (point-min)))
        (magy-test-same)
        (should (equal (magy--get (aref (magy-test-changes) 0) :range :start)
                       (if (equal magy-test-encoding "utf-16")
                           '(:line 1 :character 7)
                         '(:line 1 :character 6))))
        (let ((inhibit-message t))
          (goto-char (point-max))
          (insert "vier\n")
          (upcase-region (point-min) (point-max))
          (subst-char-in-region (point-min) (point-max) ?E ?X)
          (transpose-lines 1)
          (sort-lines nil (point-min) (point-max))
          (replace-string "X" "yy" nil (point-min) (point-max)))
        (magy-test-same)))))

(ert-deftest magy-random-edits-and-undo-arrive-exactly ()
  (magy-test-with (magy-test-scenario)
    (with-current-buffer (magy-test-visit "a.txt" "aλ\n😀b\n\nccc\n")
      (random "magy")
      (buffer-enable-undo)
      (dotimes (_ 200)
        (let* ((beg (+ 1 (random (1+ (buffer-size)))))
               (end (min (+ beg (random 5)) (point-max))))
          (pcase (random 5)
            (0 (delete-region beg end))
            (1 (goto-char beg) (insert (aref ["x" "\n" "😀" "ä\nö"] (random 4))))
            (2 (capitalize-region beg end))
            (3 (undo-boundary) (ignore-errors (primitive-undo 1 buffer-undo-list)))
            (4 (translate-region beg end "abcdefghijklmnopqrstuvwxyz")))))
      (magy-test-same))))

(ert-deftest magy-changes-that-no-hook-saw-are-sent-whole ()
  (magy-test-with (magy-test-scenario)
    (with-current-buffer (magy-test-visit "a.txt" "one\n")
      (let ((inhibit-modification-hooks t))
        (insert "silent "))
      (magy-test-same)
      (should-not (plist-get (aref (magy-test-changes) 0) :range)))))

(ert-deftest magy-raw-bytes-do-not-break-the-wire ()
  (magy-test-with (magy-test-scenario)
    (with-current-buffer (magy-test-visit "a.txt" "one\n")
      (goto-char (point-min))
      (insert (string-to-multibyte "\377") "ä")
      (magy--flush)
      (should (equal "\ufffdä" (mapconcat (lambda (change) (plist-get change :text))
                                          (magy-test-changes) ""))))))

(ert-deftest magy-revert-rename-and-kill-are-told ()
  (magy-test-with (magy-test-scenario)
    (with-current-buffer (magy-test-visit "a.txt" "one\n")
      (magy-test-file "a.txt" "two\nthree\n")
      (set-visited-file-modtime)
      (revert-buffer t t)
      (should magy-mode)
      (magy-test-same)
      (insert "x")
      (save-buffer)
      (should (equal (magy--get (magy-test-params "textDocument/didSave") :textDocument :uri)
                     (magy-test-uri "a.txt")))
      (write-file (expand-file-name "b.txt" magy-test-root))
      (magy-test-until (= 2 (length (magy-test-received "textDocument/didOpen"))))
      (should (equal (magy--get (magy-test-params "textDocument/didOpen") :textDocument :uri)
                     (magy-test-uri "b.txt")))
      (kill-buffer))
    (magy-test-until (= 2 (length (magy-test-received "textDocument/didClose"))))))

(ert-deftest magy-global-mode-starts-nothing-until-the-first-command ()
  :tags '(E015)
  (magy-test-with (magy-test-scenario)
    (unwind-protect
        (with-current-buffer (find-file-noselect (magy-test-file "a.txt" "one\n"))
          (global-magy-mode)
          (should magy-mode)
          (should-not (magy-live-p (magy-test-project)))
          (insert "text ")
          (should-not (magy-test-received))
          (magy-prompt "go")
          (should (equal "text one\n" (magy--get (magy-test-params "textDocument/didOpen")
                                                 :textDocument :text))))
      (global-magy-mode -1))))

(ert-deftest magy-new-files-of-the-project-join-others-do-not ()
  (magy-test-with (magy-test-scenario)
    (magy-test-visit "a.txt" "one\n")
    (with-current-buffer (find-file-noselect (magy-test-file "sub/b ü.txt" "two\n"))
      (should magy-mode)
      (should (equal (magy-document-uri magy--document) (magy-test-uri "sub/b ü.txt")))
      (should (string-match-p "sub/b%20%C3%BC.txt" (magy-document-uri magy--document))))
    (let ((other (make-temp-file "magy-other")))
      (with-current-buffer (find-file-noselect other)
        (should-not magy-mode)
        (magy-mode)
        (should-not magy--document)
        (kill-buffer))
      (delete-file other))))

;;;; Edits

(defun magy-test-edit (line from to text)
  "Return a text edit in LINE that puts TEXT in the place of FROM to TO."
  (list :range (list :start (list :line line :character from)
                     :end (list :line line :character to))
        :newText text))

(defun magy-test-applying (version &rest edits)
  "Return a scenario in which a cancel request applies EDITS to a.txt at VERSION."
  (magy-test-scenario
   'magy/session/cancel
   (vector (vector '(:result (:cancelled t))
                   (list :request "workspace/applyEdit"
                         :params (list :label "Edit" :edit
                                       (list :documentChanges
                                             (vector (list :textDocument
                                                           (list :uri "$sessionId"
                                                                 :version version)
                                                           :edits (vconcat edits))))))))))

(defun magy-test-apply ()
  "Have the server apply its edit to a.txt; return the answer."
  (magy-request (magy-test-project) 'magy/session/cancel
                (list :sessionId (magy-test-uri "a.txt")) #'ignore)
  (magy-test-answer 1))

(ert-deftest magy-edit-is-one-undo-step-and-keeps-markers ()
  :tags '(G006)
  (magy-test-with (magy-test-applying 1
                                      (magy-test-edit 0 0 3 "ONE")
                                      (magy-test-edit 2 0 5 "three 😀 more")
                                      (magy-test-edit 3 0 0 "four\n")
                                      (magy-test-edit 3 0 0 "five\n"))
    (with-current-buffer (magy-test-visit "a.txt" "one\ntwo\nthree\n")
      (buffer-enable-undo)
      (goto-char (point-min))
      (search-forward "two")
      (insert " typed")
      (let ((marker (copy-marker (1- (point)))))
        (magy--flush)
        (should (eq t (plist-get (magy-test-apply) :applied)))
        (should (equal (buffer-string)
                       "ONE\ntwo typed\nthree 😀 more\nfour\nfive\n"))
        (should (looking-back "typed" (point-min)))
        (should (eq ?d (char-after marker)))
        (magy-test-same)
        ;; The change came before the answer: the server may believe the answer.
        (let ((kinds (mapcar (lambda (m) (or (plist-get m :method) (plist-get m :id)))
                             (magy-test-received))))
          (should (< (cl-position "textDocument/didChange" kinds :test #'equal :from-end t)
                     (cl-position "fake-1" kinds :test #'equal))))
        (setq last-command nil)
        (undo)
        (should (equal (buffer-string) "one\ntwo typed\nthree\n"))
        (magy-test-same)))))

(ert-deftest magy-edit-for-another-version-is-refused ()
  (magy-test-with (magy-test-applying 0 (magy-test-edit 0 0 3 "ONE"))
    (with-current-buffer (magy-test-visit "a.txt" "one\n")
      (insert "x")
      (let ((answer (magy-test-apply)))
        (should (eq :json-false (plist-get answer :applied)))
        (should (string-match-p "version 1, the edit is for 0"
                                (plist-get answer :failureReason))))
      (should (equal "xone\n" (buffer-string))))))

(ert-deftest magy-edit-to-text-typed-meanwhile-is-refused ()
  (magy-test-with (magy-test-applying 0 (magy-test-edit 0 0 3 "ONE"))
    (with-current-buffer (magy-test-visit "a.txt" "one\n")
      (magy-request (magy-test-project) 'magy/session/cancel
                    (list :sessionId (magy-test-uri "a.txt")) #'ignore)
      ;; Typed after everything was sent, before the edit is read.
      (let ((inhibit-modification-hooks t)) (insert "x"))
      (should (string-match-p "changed in the meantime\\|at version 1"
                              (plist-get (magy-test-answer 1) :failureReason)))
      (should (equal "xone\n" (buffer-string)))
      (magy-test-same))))

(ert-deftest magy-edit-that-fails-leaves-nothing-half-done ()
  (magy-test-with (magy-test-applying 0
                                      (magy-test-edit 0 0 3 "ONE")
                                      (magy-test-edit 2 0 5 "THREE"))
    (with-current-buffer (magy-test-visit "a.txt" "one\ntwo\nthree\n")
      (with-silent-modifications
        (put-text-property 1 3 'read-only t))
      (should (string-match-p "read-only" (plist-get (magy-test-apply) :failureReason)))
      (should (equal (substring-no-properties (buffer-string)) "one\ntwo\nthree\n")))))

(ert-deftest magy-edit-is-refused-where-a-person-is-needed ()
  (magy-test-with (magy-test-applying 0 (magy-test-edit 0 0 3 "ONE"))
    (with-current-buffer (magy-test-visit "a.txt" "one\n")
      (magy-test-file "a.txt" "changed on disk\n")
      (set-file-times buffer-file-name (time-add nil 100))
      (should (string-match-p "changed on disk" (plist-get (magy-test-apply) :failureReason)))
      (should (equal "one\n" (buffer-string))))))

(ert-deftest magy-edit-of-a-file-that-is-not-open-is-refused ()
  (magy-test-with (magy-test-applying 0 (magy-test-edit 0 0 3 "ONE"))
    (magy-test-visit "b.txt" "one\n")
    (should (string-match-p "not open" (plist-get (magy-test-apply) :failureReason)))))

(ert-deftest magy-save-writes-the-buffer-or-says-no ()
  (magy-test-with
      (magy-test-scenario 'magy/session/cancel
                          [[(:result (:cancelled t))
                            (:request "magy/editor/save" :params (:uri "$sessionId"))]])
    (with-current-buffer (magy-test-visit "a.txt" "one\n")
      (goto-char (point-max))
      (insert "two\n")
      (should (eq t (plist-get (magy-test-apply) :saved)))
      (should-not (buffer-modified-p))
      (should (equal "one\ntwo\n" (with-temp-buffer
                                    (insert-file-contents (expand-file-name "a.txt" magy-test-root))
                                    (buffer-string))))
      (magy-test-params "textDocument/didSave")
      (insert "three\n")
      (set-file-times buffer-file-name (time-add nil 100))
      (magy-request (magy-test-project) 'magy/session/cancel
                    (list :sessionId (magy-test-uri "a.txt")) #'ignore)
      (should (eq :json-false (plist-get (magy-test-answer 2) :saved)))
      (should (buffer-modified-p)))))

(ert-deftest magy-what-was-typed-since-is-not-saved ()
  (magy-test-with
      (magy-test-scenario 'magy/session/cancel
                          [[(:result (:cancelled t))
                            (:request "magy/editor/save"
                             :params (:uri "$sessionId" :version 0))]])
    (with-current-buffer (magy-test-visit "a.txt" "one\n")
      (goto-char (point-max))
      (insert "two\n")
      (should (eq :json-false (plist-get (magy-test-apply) :saved)))
      (should (buffer-modified-p)))))

(ert-deftest magy-documents-are-opened-again-after-a-restart ()
  (magy-test-with (magy-test-scenario 'magy/session/cancel [[(:exit 1)]])
    (with-current-buffer (magy-test-visit "a.txt" "one\n")
      (magy-request (magy-test-project) 'magy/session/cancel '(:sessionId "x") #'ignore #'ignore)
      (magy-test-until (not (magy-live-p (magy-test-project))))
      (insert "saved ")
      (save-buffer)
      (insert "unsaved ")
      (magy-when-ready (magy-test-project) #'ignore)
      (magy-test-until (= 2 (length (magy-test-received "textDocument/didOpen"))))
      (should (equal (car (magy-test-mirror)) "saved unsaved one\n"))
      (insert "more ")
      (magy-test-same))))

(provide 'magy-buffers-test)
;;; magy-buffers-test.el ends here
