;;; magy-editor-test.el --- What Emacs tells agents  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'magy-test-helper)
(require 'flymake)
(require 'xref)

(defun magy-test-reply (n)
  "Wait for the answer to the fake server's Nth request; return the whole message."
  (magy-test-until
   (cl-find (format "fake-%d" n) (magy-test-received)
            :test #'equal :key (lambda (message) (plist-get message :id)))))

(defmacro magy-test-with-file (name content requests &rest body)
  "Evaluate BODY in the file NAME with CONTENT, of which the server asks REQUESTS.
In REQUESTS, :uri \"here\" stands for the file."
  (declare (indent 3) (debug t))
  `(let ((root (file-name-as-directory (file-truename (make-temp-file "magy-known-" t)))))
     (magy-test-with
         (apply #'magy-test-asks
                (mapcar (pcase-lambda (`(,method ,params))
                          (list method (if (equal "here" (plist-get params :uri))
                                           (plist-put params :uri
                                                      (magy--path-to-uri
                                                       (expand-file-name ,name root)))
                                         params)))
                        ,requests))
       (let ((default-directory root)
             (path (expand-file-name ,name root)))
         (setq magy-test-root root)
         (unwind-protect
             (with-current-buffer (progn (with-temp-file path (insert ,content))
                                         (find-file-noselect path))
               ,@body)
           (delete-directory root t)
           (make-directory root))))))

(defun magy-test-flymake (report &rest _)
  "A Flymake backend that REPORTs one error and one warning."
  (funcall report
           (list (flymake-make-diagnostic (current-buffer) 1 4 :error "no such thing")
                 (flymake-make-diagnostic (current-buffer) 5 8 :warning "not so good"))))

(ert-deftest magy-editor-diagnostics-are-those-of-flymake ()
  :tags '(G007)
  (magy-test-with-file "a.txt" "one\ntwo\n"
      (list (list "magy/editor/diagnostics" (list :uri nil))
            (list "magy/editor/diagnostics" (list :uri "file:///no/such/file")))
    (setq-local flymake-diagnostic-functions '(magy-test-flymake))
    (flymake-mode)
    (flymake-start)
    (magy-test-until (flymake-diagnostics))
    (magy-prompt "go")
    (let ((answer (magy-test-answer 1)))
      (should (equal (mapcar (lambda (found)
                               (list (plist-get found :severity) (plist-get found :message)
                                     (magy--get found :range :start :line)
                                     (plist-get found :uri)))
                             (sort (append (plist-get answer :diagnostics) nil)
                                   (lambda (a b) (< (plist-get a :severity)
                                                    (plist-get b :severity)))))
                     (list (list 1 "no such thing" 0 (magy--path-to-uri path))
                           (list 2 "not so good" 1 (magy--path-to-uri path)))))
      (should (eq :json-false (plist-get answer :truncated))))
    (should (string-match-p "not open in Emacs"
                            (magy--get (magy-test-reply 2) :error :message)))))

(ert-deftest magy-editor-definitions-and-references-are-those-of-xref ()
  :tags '(G007)
  (magy-test-with-file "a.py" "def one():\n    pass\n\none()\n"
      (list (list "magy/editor/definition"
                  (list :uri "here" :position '(:line 3 :character 0) :name "one"))
            (list "magy/editor/references"
                  (list :uri "here" :position '(:line 0 :character 0) :name "one"))
            (list "magy/editor/symbols" (list :uri nil :query "on")))
    (let ((found (lambda (line)
                   (list (xref-make (format "line %d" line)
                                    (xref-make-file-location path line 4))))))
      (add-hook 'xref-backend-functions (lambda () 'magy-test) nil t)
      (cl-letf (((symbol-function 'xref-backend-identifier-at-point)
                 (lambda (_) (thing-at-point 'symbol t)))
                ((symbol-function 'xref-backend-definitions)
                 (lambda (_ name) (should (equal name "one")) (funcall found 1)))
                ((symbol-function 'xref-backend-references)
                 (lambda (_ name) (should (equal name "one")) (funcall found 4)))
                ((symbol-function 'xref-backend-apropos)
                 (lambda (_ query) (should (equal query "on")) (funcall found 1))))
        (magy-prompt "go")
        (should (equal (magy-test-answer 1)
                       `(:locations [(:uri ,(magy--path-to-uri path)
                                      :range (:start (:line 0 :character 4)
                                              :end (:line 0 :character 4))
                                      :text "line 1")]
                         :truncated :json-false)))
        (should (equal 3 (magy--get (aref (plist-get (magy-test-answer 2) :locations) 0)
                                    :range :start :line)))
        (should (equal "line 1" (plist-get (aref (plist-get (magy-test-answer 3) :symbols) 0)
                                           :name)))))))

(ert-deftest magy-editor-refuses-what-would-ask-or-block ()
  (magy-test-with-file "a.txt" "one two\n"
      (list (list "magy/editor/definition"
                  (list :uri "here" :position '(:line 0 :character 0) :name "one"))
            (list "magy/editor/definition"
                  (list :uri "here" :position '(:line 0 :character 0) :name "one"))
            (list "magy/editor/definition"
                  (list :uri "here" :position '(:line 0 :character 0) :name "one")))
    (let ((tags-file-name nil) (tags-table-list nil) (n 0))
      (add-hook 'xref-backend-functions (lambda () (if (= 1 (cl-incf n)) 'etags 'magy-test))
                nil t)
      (cl-letf (((symbol-function 'xref-backend-identifier-at-point) (lambda (_) "one"))
                ((symbol-function 'xref-backend-definitions)
                 (lambda (&rest _) (if (= n 2) (read-string "Where? ") (sleep-for 30)))))
        (let ((magy-editor--seconds 0.5))
          (magy-prompt "go")
          (should (string-match-p "no tags table"
                                  (magy--get (magy-test-reply 1) :error :message)))
          (should (string-match-p "have to ask the person"
                                  (magy--get (magy-test-reply 2) :error :message)))
          (should (string-match-p "it took longer than 0.5 s"
                                  (magy--get (magy-test-reply 3) :error :message))))))))

(ert-deftest magy-editor-symbols-are-those-of-imenu ()
  :tags '(G007)
  (magy-test-with-file "a.el" "(defvar one 1)\n(defun two ()\n  2)\n(defconst three 3)\n"
      (list (list "magy/editor/symbols" (list :uri "here" :query "")))
    (magy-prompt "go")
    (should (equal (sort (mapcar (lambda (symbol)
                                   (list (plist-get symbol :name) (plist-get symbol :kind)
                                         (magy--get symbol :range :start :line)))
                                 (plist-get (magy-test-answer 1) :symbols))
                         (lambda (a b) (< (nth 2 a) (nth 2 b))))
                   '(("one" "variable" 0) ("two" "symbol" 1) ("three" "variable" 3))))))

(ert-deftest magy-editor-symbols-without-an-index-are-those-of-open-files ()
  (magy-test-with-file "a.py" "class One:\n    def upon(self):\n        pass\n\n\ndef other(): pass\n"
      (list (list "magy/editor/symbols" (list :uri nil :query "ON"))
            (list "magy/editor/symbols" (list :uri nil :query "nothing")))
    (let ((tags-file-name nil) (tags-table-list nil))
      (magy-prompt "go")
      (should (equal '(("One" "class" nil 0) ("upon" "function" "One" 1))
                     (mapcar (lambda (symbol) (list (plist-get symbol :name)
                                                    (plist-get symbol :kind)
                                                    (plist-get symbol :container)
                                                    (magy--get symbol :range :start :line)))
                             (plist-get (magy-test-answer 1) :symbols))))
      (should (string-match-p "a tags table" (magy--get (magy-test-reply 2) :error :message))))))

;;;; Evaluation

(ert-deftest magy-eval-gives-value-and-output ()
  :tags '(E116)
  (should (equal (magy-test-eval "(setq magy-test-x 20) ; a comment\n(princ \"hi\")\n(* 2 magy-test-x)")
                 '(:value "40" :output "hi" :error nil)))
  (should (equal (plist-get (magy-test-eval "(let ((inhibit-message nil)) (message \"said\"))")
                            :value)
                 "\"said\""))
  (should (equal (magy-test-eval "(error \"Not %s\" 'good)")
                 '(:value "" :output "" :error "Not good")))
  (should (string-match-p "End of file" (plist-get (magy-test-eval "(car '(1)") :error)))
  (let ((long (plist-get (magy-test-eval "(make-string 50000 ?x)") :value)))
    (should (string-match-p "x\n… 30002 more characters\\'" long))))

(ert-deftest magy-eval-takes-no-window-and-leaves-no-file ()
  (let ((magy-show-transcript nil)
        (windows (mapcar (lambda (window) (cons window (window-buffer window)))
                         (window-list))))
    (should (equal "t" (plist-get (magy-test-eval
                                   (format "(pop-to-buffer (find-file-noselect %S)) t"
                                           (locate-library "subr.el" t)))
                                  :value)))
    (should (equal windows (mapcar (lambda (window) (cons window (window-buffer window)))
                                   (window-list))))
    (should-not (get-file-buffer (or (locate-library "subr.el" t) "none")))))

(ert-deftest magy-eval-that-is-turned-off-is-refused ()
  (magy-test-with (magy-test-asks '("magy/editor/eval" (:code "1" :timeoutMs 100)))
    (let ((magy-allow-eval nil))
      (magy-prompt "go")
      (should (string-match-p "magy-allow-eval"
                              (magy--get (magy-test-reply 1) :error :message))))))

(ert-deftest magy-editor-diagnostics-are-those-of-flycheck-too ()
  (skip-unless (require 'flycheck nil t))
  (magy-test-with-file "a.txt" "one\ntwo\n"
      (list (list "magy/editor/diagnostics" (list :uri "here")))
    (let ((checker 'magy-test-checker))
      (eval `(flycheck-define-generic-checker ',checker "For a test."
               :start (lambda (checker callback)
                        (funcall callback 'finished
                                 (list (flycheck-error-new-at 2 1 'error "bad"
                                                              :checker checker))))
               :modes '(text-mode fundamental-mode))
            t)
      (setq-local flycheck-checkers (list checker))
      (flycheck-mode)
      (flycheck-buffer)
      (magy-test-until flycheck-current-errors)
      (magy-prompt "go")
      (let ((found (plist-get (magy-test-answer 1) :diagnostics)))
        (should (= 1 (length found)))
        (should (equal "bad" (plist-get (aref found 0) :message)))
        (should (equal 1 (magy--get (aref found 0) :range :start :line)))))))

(defvar flycheck-checkers)
(defvar flycheck-current-errors)
(declare-function flycheck-buffer "flycheck")
(declare-function flycheck-mode "flycheck")

(provide 'magy-editor-test)
;;; magy-editor-test.el ends here
