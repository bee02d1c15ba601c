;;; magy-magi-test.el --- Rulings and what CASPER remembers  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'magy-test-helper)
(require 'magy-magi)

(defun magy-test-ruling (&rest more)
  "Return a ruling as the server says it, with MORE."
  (append more
          '(:id "emacs-1/6.0" :at "2026-11-27T12:00:00Z" :final "REJECTED" :standing "decisive"
            :confidence 80 :personNeeded t :same t :report "The report." :ruling (:id "x")
            :shown (:question "Ship it?" :box ["+--+"] :nodes []))))

(ert-deftest magy-ruling-that-overturns-another-holds-once-it-is-accepted ()
  (magy-test-with
      (magy-test-scenario
       'magy/magi/list (vector (vector (list :result
                                             (list :rulings (vector (magy-test-ruling
                                                                     :overturns "emacs-1/5.0"
                                                                     :accepted nil))
                                                   :running []))))
       'magy/magi/accept [[(:result (:accepted "2026-11-27T12:01:00Z" :known :json-false))]])
    (save-window-excursion
      (magy-session-ensure (magy-current-project) #'ignore)
      (magy-test-until (magy-project-session (magy-test-project)))
      (magy-rulings)
      (magy-test-until (get-buffer "*Magy ruling*"))
      (with-current-buffer "*Magy ruling*"
        (should (string-search "It would overturn emacs-1/5.0, which holds until you accept it"
                               (buffer-string)))
        (cl-letf (((symbol-function 'yes-or-no-p) #'always))
          (call-interactively (key-binding (kbd "a"))))
        (should (equal '(:sessionId "emacs-1" :rulingId "emacs-1/6.0")
                       (magy-test-params "magy/magi/accept"))))
      (magy-test-until (with-current-buffer "*Magy ruling*"
                         (string-search "It holds in the place of emacs-1/5.0."
                                        (buffer-string))))
      (kill-buffer "*Magy ruling*"))))

(defconst magy-test-felt
  '(:id "one" :date "2026-11-27T12:00:00+00:00" :topicHash "00" :valence -0.8 :emotion "fear"
    :lesson "Wait a while." :strength 0.75 :keptUntil "2027-02-25")
  "An entry of an emotional log.")

(ert-deftest magy-emotional-log-is-read-and-reviewed ()
  :tags '(D087)
  (magy-test-with
      (magy-test-scenario
       'magy/magi/log
       (vector (vector (list :result (list :path "/p/memory/x.json" :reviewed nil :reviewDue t
                                           :entries (vector magy-test-felt))))
               (vector (list :result (list :path "/p/memory/x.json" :reviewed "2026" :entries []
                                           :reviewDue :json-false)))))
    (save-window-excursion
      (magy-emotional-log)
      (let ((name (format "*magy emotional log: %s*" (magy-project-name (magy-test-project)))))
        (magy-test-until (get-buffer name))
        (with-current-buffer name
          (should (string-match-p "2026-11-27 +-0.8 +75 % +fear +Wait a while\\." (buffer-string)))
          (goto-char (point-min))
          (cl-letf (((symbol-function 'y-or-n-p) #'always))
            (call-interactively (key-binding (kbd "d"))))
          (magy-test-until (= 2 (length (magy-test-received "magy/magi/log"))))
          (should (equal ["one"] (plist-get (magy-test-params "magy/magi/log") :delete))))
        (magy-test-until (with-current-buffer name (string-empty-p (buffer-string))))
        (with-current-buffer name
          (call-interactively (key-binding (kbd "r")))
          (magy-test-until (= 3 (length (magy-test-received "magy/magi/log"))))
          (should (eq t (plist-get (magy-test-params "magy/magi/log") :reviewed)))
          (kill-buffer))))))

(provide 'magy-magi-test)
;;; magy-magi-test.el ends here
