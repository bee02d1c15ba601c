;;; magy-eglot-test.el --- Beside another language server  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'magy-test-helper)
(require 'magy-buffers-test)

(defvar eglot-server-programs)
(defvar eglot-sync-connect)
(defvar eglot-autoshutdown)
(declare-function eglot "eglot")
(declare-function eglot-current-server "eglot")
(declare-function eglot--guess-contact "eglot")
(declare-function eglot-managed-p "eglot")
(declare-function eglot-shutdown "eglot")
(declare-function eglot--signal-textDocument/didChange "eglot")

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

(provide 'magy-eglot-test)
;;; magy-eglot-test.el ends here
