;;; magy-robust-test.el --- Transcripts survive what people do  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'magy-sections-test)

;;;; Narrowing

(ert-deftest magy-narrowed-transcript-stays-whole ()
  (magy-test-attached (magy-test-scenario)
    (magy-test-turn 1)
    (magy-test-type "draft")
    (narrow-to-region 5 12)
    (magy-test-say 6 "b" "another answer")
    (magy-test-tell 7 :sessionUpdate "user_message" :messageId "w"
                    :content [(:type "text" :text "later")])
    (magy-test-tell 8 :sessionUpdate "_magy_queue" :added "w" :delivery "queue")
    (should (buffer-narrowed-p))
    (should (equal "draft" (magy-input-text)))
    (should (= 5 (point-min)))
    (widen)
    (should (string-prefix-p "USER ❯ prompt 1\n\nASSISTANT\nanswer 1\n\nanother answer\n\n"
                             (magy-test-text)))
    (should (string-match-p "Waiting.*\n· 1  later\n.*\ndraft\\'" (buffer-string)))
    (narrow-to-region 5 12)
    (magy-transcript-reset)
    (widen)
    (should (equal "" (magy-test-text)))))

(ert-deftest magy-narrowed-transcript-drops-old-turns-and-reads-older ()
  (let ((magy-transcript-turns 3))
    (magy-test-attached
        (magy-test-scenario
         'magy/session/events
         [[(:result (:headSeq 80 :more :json-false
                     :events [(:seq 1 :at 0 :update (:sessionUpdate "user_message" :messageId "m1"
                                                     :content [(:type "text" :text "old")]))]))]])
      (magy-test-turn 1)
      (narrow-to-region 8 9)
      (dotimes (n 15) (magy-test-turn (+ 2 n)))
      (should-not (save-restriction (widen) (string-match-p "prompt 1\n" (magy-test-text))))
      (narrow-to-region (magy-transcript-end) (magy-transcript-end))
      (magy-session-show-older (magy-test-project))
      (magy-test-until (save-restriction (widen) (string-prefix-p "USER ❯ old\n"
                                                                  (magy-test-text)))))))

;;;; Failures

(cl-defmethod magy-transcript-render ((_kind (eql 'broken)) _item)
  "Fail."
  (error "Cannot be drawn"))

(ert-deftest magy-item-that-cannot-be-drawn-hides-no-other ()
  (magy-test-attached (magy-test-scenario)
    (magy-transcript-edit (lambda ()
                            (magy-transcript-ensure 'broken "x")
                            (magy-session--message 'agent "a" '(:text "an answer") 1)))
    (should (string-match-p "an answer" (magy-test-text)))))

(ert-deftest magy-news-that-could-not-be-shown-are-kept ()
  (magy-test-attached (magy-test-scenario)
    (let ((project (magy-test-project)))
      (cl-letf (((symbol-function 'magy-transcript-edit) (lambda (_) (error "Broken"))))
        (should-error (magy-test-say 1 "a" "one")))
      (magy-test-say 2 "b" "two")
      (should (string-match-p "one\n\ntwo" (magy-test-text)))
      (should-not (magy-project-queue project)))))

;;;; Clones, killing

(ert-deftest magy-clone-of-a-transcript-is-not-the-transcript ()
  (magy-test-attached (magy-test-scenario)
    (magy-test-turn 1)
    (kill-buffer (clone-indirect-buffer "a clone" nil))
    (should (eq (current-buffer) (magy-project-buffer (magy-test-project))))
    (should (eq t (magy-project-attached (magy-test-project))))
    (magy-test-turn 2)
    (should (string-match-p "answer 2" (magy-test-text)))))

(ert-deftest magy-killed-transcript-comes-back-with-its-history ()
  (magy-test-with
      (magy-test-scenario
       'magy/session/resume
       (vector (vector (list :result
                             (magy-test-page "$sessionId"
                                             '(:sessionUpdate "user_message" :messageId "m1"
                                               :content [(:type "text" :text "long ago")]))))))
    (let ((project (magy-test-project)))
      (magy-session-ensure project #'ignore)
      (magy-test-until (eq t (magy-project-attached project)))
      (kill-buffer (magy-transcript-buffer project))
      ;; The agent goes on.
      (magy-handle-notification
       project 'magy/session/update
       (list :sessionId (magy-project-session project)
             :update '(:sessionUpdate "agent_message" :messageId "2"
                       :content [(:type "text" :text "unseen")] :_meta (:magy (:seq 7)))))
      (magy-handle-notification
       project 'magy/session/update
       (list :sessionId (magy-project-session project)
             :update '(:sessionUpdate "state_update" :state "running" :_meta (:magy (:seq 8)))))
      (magy-session--flush project)
      (should (equal "running" (magy-project-state project)))
      (should-not (magy-project-buffer project))
      (should (= 0 (magy-project-seq project)))
      (save-window-excursion (magy-transcript))
      (magy-test-see "long ago")
      (should (plist-get (magy--get (magy-test-params "magy/session/resume") :from) :tail)))))

(ert-deftest magy-transcript-in-another-mode-is-none ()
  (magy-test-attached (magy-test-scenario)
    (magy-test-turn 1)
    (fundamental-mode)
    (should-not (magy-project-buffer (magy-test-project)))
    (magy-test-turn 2)
    (should (string-match-p "answer 2" (magy-test-text)))
    (set-buffer-modified-p nil)
    (kill-buffer)
    (should (magy-project-buffer (magy-test-project)))))

(ert-deftest magy-reverting-shows-the-session-again ()
  (magy-test-attached
      (magy-test-scenario
       'magy/session/resume
       (vector (vector (list :result
                             (magy-test-page "$sessionId"
                                             '(:sessionUpdate "user_message" :messageId "m1"
                                               :content [(:type "text" :text "first")]))))))
    (magy-test-type "draft")
    (magy-test-say nil "x" "something odd")
    (goto-char (point-min))
    (magy-test-press "g")
    (magy-test-until (equal "USER ❯ first\n\n" (magy-test-text)))
    (should (equal "draft" (magy-input-text)))))

;;;; Much

(defun magy-test-faces (beg end)
  "Return how many characters from BEG to END are bold."
  (cl-loop for pos from beg below end count (eq 'bold (get-text-property pos 'face))))

(ert-deftest magy-long-answer-gets-its-looks-bit-by-bit ()
  (magy-test-attached (magy-test-scenario)
    (let ((magy-transcript--share 100)
          (text (mapconcat (lambda (n) (format "%02d **b**\n" n)) (number-sequence 1 40) "")))
      (magy-test-say 1 "a" text)
      (should (< 0 (magy-test-faces (point-min) (magy-transcript-end)) 20))
      (magy-test-until (= 40 (magy-test-faces (point-min) (magy-transcript-end))))
      (should-not magy-transcript--later)
      (should (string-match-p "40 \\*\\*b" (magy-test-text))))))

(ert-deftest magy-stream-is-drawn-in-shares ()
  (magy-test-attached (magy-test-scenario)
    (let ((magy-transcript--share 100) (project (magy-test-project))
          (magy-ui-batch-insert-delay 3600))
      (dotimes (_ 40)
        (magy-session--receive
         project 'update '(:sessionUpdate "agent_message_chunk" :messageId "1"
                           :content (:type "text" :text "one **b** more\n"))))
      (timer-event-handler (magy-project-timer project))
      (should (< 0 (magy-test-faces (point-min) (magy-transcript-end)) 20))
      (should (< (buffer-size) 400))
      (magy-test-until (= 40 (magy-test-faces (point-min) (magy-transcript-end)))))))

(ert-deftest magy-too-long-an-answer-is-plain-in-the-end ()
  (magy-test-attached (magy-test-scenario)
    (let ((magy-stream--longest 200)
          (text (mapconcat (lambda (n) (format "%02d **b**\n" n)) (number-sequence 1 40) "")))
      (magy-test-say 1 "a" text)
      (should (= 22 (magy-test-faces (point-min) (magy-transcript-end))))
      (should (string-match-p "40 \\*\\*b" (magy-test-text)))
      (should (string-match-p "so long" (with-current-buffer "*magy log*" (buffer-string)))))))

(ert-deftest magy-line-without-end-costs-nothing ()
  (magy-test-attached (magy-test-scenario)
    (magy-test-say 1 "a" (concat "**b**\n" (mapconcat #'identity (make-list 2000 "`c` **b**") "")
                                 "\n**b**"))
    (magy-test-until (= 2 (magy-test-faces (point-min) (magy-transcript-end))))))

;;;; Small things

(ert-deftest magy-loads-what-every-session-needs-and-no-more ()
  (let ((output (with-output-to-string
                  (with-current-buffer standard-output
                    (call-process (expand-file-name invocation-name invocation-directory)
                                  nil t nil "-Q" "--batch"
                                  "-L" (file-name-directory (locate-library "magy"))
                                  "-l" "magy" "--eval" "(princ features)")))))
    (should (string-match-p "\\_<magy-transcript\\_>" output))
    (dolist (feature '("browse-url" "diff-mode" "magy-review" "magy-review-draw" "magy-undo"
                       "url"))
      (should-not (string-match-p (format "[( ]%s[ )]" feature) output)))))

(ert-deftest magy-transcript-is-not-modified-by-the-agent ()
  (magy-test-attached (magy-test-scenario)
    (magy-test-turn 1)
    (should-not (buffer-modified-p))
    (magy-test-type "draft")
    (magy-test-turn 2)
    (should (buffer-modified-p))
    (magy-input-submit)
    (should-not (buffer-modified-p))))

(ert-deftest magy-ornaments-are-not-copied ()
  (magy-test-attached (magy-test-scenario)
    (magy-test-turn 1)
    (magy-test-type "draft")
    (kill-new "")
    (copy-region-as-kill (point-min) (point-max))
    (should (equal "USER ❯ prompt 1\n\nASSISTANT\nanswer 1\n\ndraft" (current-kill 0)))))

(provide 'magy-robust-test)
;;; magy-robust-test.el ends here
