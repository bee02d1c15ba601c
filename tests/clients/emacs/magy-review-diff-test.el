;;; magy-review-diff-test.el --- The buffers of a review, with the real server  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'magy-review-test)
(require 'magy-review-diff)

(ert-deftest magy-review-diff-stays-in-step ()
  (magy-test-reviewing (magy-test-replacing "line 3\n" "LINE 3\n" "line 10\n" "LINE 10\n"
                                            "line 14\n" "LINE 14\n")
      magy-test-twenty
    (magy-test-drawn 3)
    (let ((file (current-buffer)))
      (magy-review-diff)
      (should (derived-mode-p 'diff-mode 'magy-review-diff-mode))
      (magy-test-until (string-search "+LINE 14" (buffer-string)))
      (should (equal (substring-no-properties (buffer-string))
                     "--- a/a.txt
+++ b/a.txt
@@ -1,6 +1,6 @@ by build
 line 1
 line 2
-line 3
+LINE 3
 line 4
 line 5
 line 6
@@ -7,7 +7,7 @@ by build
 line 7
 line 8
 line 9
-line 10
+LINE 10
 line 11
 line 12
 line 13
@@ -14,4 +14,4 @@ by build
-line 14
+LINE 14
 line 15
 line 16
 line 17

"))
      (should (looking-at-p "@@ -1,6"))
      (magy-review-diff-next)
      (should (looking-at-p "@@ -7,7"))
      (cl-letf (((symbol-function 'read-string) (lambda (&rest _) "no")))
        (magy-review-reject '(4)))
      ;; A rejected change is still to be seen.
      (magy-test-until (string-search "@@ rejected: no · by build\n-line 10\n+LINE 10\n"
                                      (buffer-string)))
      (with-current-buffer file
        (should (string-search "\nline 10\n" (buffer-string))))
      (goto-char (point-min))
      (search-forward "rejected: no")
      (should-error (magy-review-accept) :type 'user-error)
      (magy-review-diff-undo)
      (magy-test-until (not (string-search "rejected" (buffer-string))))
      (with-current-buffer file (magy-test-drawn 3)
                           (should (string-search "\nLINE 10\n" (buffer-string)))
                           ;; What is typed in the file shows here, too.
                           (goto-char (point-min))
                           (search-forward "LINE 3")
                           (insert " and mine"))
      (magy-test-until (string-search "+LINE 3 and mine" (buffer-string)))
      (should (string-search "changed by you" (buffer-string))))))

(ert-deftest magy-review-goes-from-file-to-file ()
  (magy-test-real "call: edit_file {\"path\": \"a.txt\", \"old_text\": \"x\\n\", \"new_text\": \"y\\n\"}
call: write_file {\"path\": \"b.txt\", \"content\": \"new\\n\"}
call: write_file {\"path\": \"empty.txt\", \"content\": \"\"}
---
text: All done.
"
    (save-window-excursion
      (switch-to-buffer (find-file-noselect (magy-test-file "a.txt" "1\n2\nx\n")))
      (magy-test-work "go")
      (magy-test-drawn 1)
      (magy-test-until (= 3 (length (magy-project-reviews (magy-test-project)))))
      (let ((window (selected-window)) (windows (count-windows)))
        (magy-review-next)
        (magy-test-until (looking-at-p "y"))
        (magy-review-next)
        (magy-test-until (equal "b.txt" (buffer-name (window-buffer))))
        (set-buffer (window-buffer))
        (should (eq window (selected-window)))
        (should (= windows (count-windows)))
        (magy-test-drawn 1)
        (magy-review))
      (should (derived-mode-p 'magy-review-list-mode))
      (should (= 3 (length tabulated-list-entries)))
      (goto-char (point-min))
      (search-forward "empty.txt")
      (should (string-match-p "created" (thing-at-point 'line)))
      (magy-review-diff)
      (magy-test-until (string-search "The file is new: a file, empty." (buffer-string)))
      (magy-review-accept)
      (magy-test-until (string-search "[accepted · by build]" (buffer-string)))
      (with-current-buffer (format "*magy review: %s*" (magy-project-name (magy-test-project)))
        (magy-test-until (= 2 (length tabulated-list-entries)))
        (goto-char (point-min))
        (search-forward "b.txt")
        (magy-review-list-reject)
        (magy-test-until (= 1 (length tabulated-list-entries))))
      (should-not (file-exists-p (expand-file-name "b.txt" magy-test-root)))
      (with-current-buffer "a.txt"
        (cl-letf (((symbol-function 'y-or-n-p) #'always)) (magy-review-accept-all '(4)))
        (magy-test-drawn 0)))))

(defun magy-test-overlay-here ()
  "Return the overlay that draws a change on the line of point, or nil."
  (cl-find-if (lambda (overlay) (overlay-get overlay 'magy-hunk))
              (overlays-in (point) (line-end-position))))

(ert-deftest magy-review-of-a-proposal-is-applied-when-accepted ()
  :tags '(G011)
  (magy-test-real (magy-test-replacing "line 3\n" "LINE 3\n" "line 10\n" "LINE 10\n")
    (setq magy-settings (append '(:edits (:review "propose")) magy-settings))
    (save-window-excursion
      (switch-to-buffer (find-file-noselect (magy-test-file "a.txt" magy-test-twenty)))
      (magy-test-work "go")
      (magy-test-drawn 2)
      (should (equal magy-test-twenty (buffer-string)))
      (let ((overlay (magy-test-overlay-here)))
        (should-not overlay))
      (goto-char (point-min))
      (forward-line 2)
      (let ((overlay (magy-test-overlay-here)))
        (should (eq 'magy-review-removed (overlay-get overlay 'face)))
        (should (equal "LINE 3\n" (substring-no-properties (overlay-get overlay 'after-string)))))
      (magy-review-accept)
      (magy-test-drawn 1)
      (should (string-prefix-p "line 1\nline 2\nLINE 3\n" (buffer-string)))
      ;; It moves with what is typed before it.
      (goto-char (point-min))
      (insert "mine\n")
      (magy-test-until (eql 10 (magy--get (car (magy-test-hunks)) :range :start :line)))
      (should (equal "pending" (plist-get (car (magy-test-hunks)) :state)))
      ;; Lines that the person changes meanwhile are a conflict: both are shown.
      (search-forward "line 10")
      (insert " of mine")
      (magy-test-until (equal "conflict" (plist-get (car (magy-test-hunks)) :state)))
      (magy-review-diff)
      (magy-test-until (string-search "these lines have changed since" (buffer-string)))
      (should (string-search "-line 10 of mine\n+LINE 10\n" (buffer-string))))))

(ert-deftest magy-review-shows-the-text-before ()
  (magy-test-reviewing (magy-test-replacing "line 3\n" "LINE 3\n")
      magy-test-twenty
    (magy-test-drawn 1)
    (magy-review-base)
    (with-current-buffer (magy-test-until (get-buffer "*magy base: a.txt*"))
      (magy-test-until (equal magy-test-twenty (buffer-string)))
      (should buffer-read-only)
      (kill-buffer))))

(provide 'magy-review-diff-test)
;;; magy-review-diff-test.el ends here
