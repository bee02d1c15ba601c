;;; magy-eglot-test.el --- Beside another language server  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'magy-test-helper)
(require 'magy-buffers-test)
(require 'magy-review-test)

(defvar eglot-server-programs)
(defvar eglot-sync-connect)
(defvar eglot-autoshutdown)
(declare-function eglot "eglot")
(declare-function eglot-current-server "eglot")
(declare-function eglot--guess-contact "eglot")
(declare-function eglot-managed-p "eglot")
(declare-function eglot-shutdown "eglot")
(declare-function eglot--signal-textDocument/didChange "eglot")
(declare-function xref-find-backend "xref")
(declare-function xref-backend-definitions "xref")
(declare-function xref-item-location "xref")
(declare-function xref-location-line "xref")

(defun magy-test-eglot-text ()
  "Return the text that Eglot's server has of the current buffer."
  (eglot--signal-textDocument/didChange)
  (jsonrpc-request (eglot-current-server) 'workspace/executeCommand
                   (list :command "tiny.text"
                         :arguments (vector (magy--path-to-uri buffer-file-name)))))

(ert-deftest magy-works-beside-eglot-in-one-buffer ()
  :tags '(G005)
  (skip-unless (require 'eglot nil t))
  (magy-test-with (magy-test-applying 0 (magy-test-edit 4 4 7 "one"))
    (let ((eglot-server-programs
           `((python-mode . (,magy-test-python
                             ,(expand-file-name "../tiny_language_server.py"
                                                magy-test-directory)))))
          (eglot-sync-connect 20)
          (python-indent-guess-indent-offset nil)
          server)
      (with-current-buffer
          (find-file-noselect
           (magy-test-file "a.txt" "# -*- mode: python -*-\ndef one():\n    pass\n\nx = two()\n"))
        (unwind-protect
            (progn
              (apply #'eglot (eglot--guess-contact))
              (setq server (eglot-current-server))
              (magy-when-ready (magy-test-project) #'ignore)
              (magy-test-params "textDocument/didOpen")
              ;; An edit by Magy reaches both servers.
              (should (eq t (plist-get (magy-test-apply) :applied)))
              (should (string-suffix-p "x = one()\n" (buffer-string)))
              (magy-test-same)
              (should (equal (magy-test-eglot-text) (buffer-string)))
              ;; Both follow what is typed.
              (goto-char (point-max))
              (insert "y = one()\n")
              (magy-test-same)
              (should (equal (magy-test-eglot-text) (buffer-string)))
              ;; Definitions come from Eglot's server.
              (search-backward "one")
              (let ((found (xref-backend-definitions
                            (xref-find-backend)
                            (xref-backend-identifier-at-point (xref-find-backend)))))
                (should (= 2 (xref-location-line (xref-item-location (car found))))))
              ;; Magy goes, Eglot stays.
              (magy-stop (magy-test-project))
              (magy-test-until (not (magy-live-p (magy-test-project))))
              (should (eglot-managed-p))
              (should (equal (magy-test-eglot-text) (buffer-string))))
          (when server (eglot-shutdown server)))))))

(ert-deftest magy-review-beside-eglot-in-one-buffer ()
  :tags '(G005)
  (skip-unless (require 'eglot nil t))
  (magy-test-real (magy-test-replacing "line 3\n" "LINE 3\n" "line 10\n" "LINE 10\n")
    (let ((eglot-server-programs
           `((python-mode . (,magy-test-python
                             ,(expand-file-name "../tiny_language_server.py"
                                                magy-test-directory)))))
          (eglot-sync-connect 20)
          (python-indent-guess-indent-offset nil)
          server)
      (save-window-excursion
        (switch-to-buffer
         (find-file-noselect (magy-test-file "a.txt" (concat "# -*- mode: python -*-\n"
                                                             magy-test-twenty))))
        (unwind-protect
            (progn
              (apply #'eglot (eglot--guess-contact))
              (setq server (eglot-current-server))
              (magy-test-work "go")
              (magy-test-drawn 2)
              (should (equal (magy-test-eglot-text) (buffer-string)))
              (goto-char (point-min))
              (search-forward "LINE 3")
              (magy-review-reject)
              (magy-test-drawn 1)
              (insert "x")
              (should (equal (magy-test-eglot-text) (buffer-string)))
              (magy-review-accept-all)
              (magy-test-drawn 0)
              (should (equal (magy-test-eglot-text) (buffer-string)))
              (should (eglot-managed-p)))
          (when server (eglot-shutdown server)))))))

;;;; A language server that people use

(defconst magy-test-pylsp (expand-file-name "pylsp" (file-name-directory magy-test-python))
  "The Python language server.")

(defun magy-test-definition (name)
  "Return the line, from 1, of the definition of NAME, as the language server says."
  (goto-char (point-max))
  (search-backward name)
  (let ((found (xref-backend-definitions (xref-find-backend) name)))
    (xref-location-line (xref-item-location (car found)))))

(ert-deftest magy-python-language-server-works-on-while-a-turn-runs ()
  :tags '(G005)
  (skip-unless (and (require 'eglot nil t) (file-executable-p magy-test-pylsp)))
  (magy-test-real "call: edit_file {\"path\": \"a.py\", \"old_text\": \"import re\\n\", \
\"new_text\": \"import os\\nimport re\\n\"}
---
call: bash {\"command\": \"python tests.py\"}
---
text: All done.
"
    (let ((eglot-server-programs `((python-mode . (,magy-test-pylsp))))
          (eglot-sync-connect 30)
          (python-indent-guess-indent-offset nil)
          server)
      (save-window-excursion
        (switch-to-buffer
         (find-file-noselect
          (magy-test-file "a.py" "import re\n\n\ndef found(text):\n    pass\n\n\nfound(1)\n")))
        (unwind-protect
            (progn
              (apply #'eglot (eglot--guess-contact))
              (setq server (eglot-current-server))
              (should (= 4 (magy-test-definition "found(1)")))
              (let ((buffer (current-buffer)))
                (magy-prompt "go")
                (magy-test-question) ; the edit is made, the command waits for an answer
                (set-buffer buffer))
              (should (string-prefix-p "import os\n" (buffer-string)))
              (goto-char (point-min))
              (insert "# typed\n")
              (eglot--signal-textDocument/didChange)
              (should (= 6 (magy-test-definition "found(1)")))
              (magy-test-give "refuse" "")
              (magy-test-idle)
              (should (= 6 (magy-test-definition "found(1)")))
              (should (eglot-managed-p)))
          (when server (eglot-shutdown server)))))))

(provide 'magy-eglot-test)
;;; magy-eglot-test.el ends here
