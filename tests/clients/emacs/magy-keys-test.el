;;; magy-keys-test.el --- Keys do what their maps say  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'magy-test-helper)
(require 'magy-agents)
(require 'magy-agents-tree)
(require 'magy-checkpoints)
(require 'magy-doctor)
(require 'magy-permissions)
(require 'magy-review-diff)
(require 'magy-review-list)
(require 'magy-undo)

(ert-deftest magy-keys-of-modes-are-not-those-of-others ()
  "A mode that a mode is derived from may put keys before those of its maps."
  (let ((seen 0))
    (dolist (mode '(magy-agents-mode magy-agents-tree-mode magy-checkpoints-mode magy-doctor-mode magy-log-mode magy-permissions-mode
                    magy-review-diff-mode magy-review-list-mode magy-transcript-mode
                    magy-undo-mode))
      (with-temp-buffer
        (funcall mode)
        (map-keymap-internal
         (lambda (event command)
           (when (commandp command)
             (cl-incf seen)
             (should (equal (list mode event command)
                            (list mode event (key-binding (vector event)))))))
         (symbol-value (intern (format "%s-map" mode))))))
    (should (> seen 30))))

(provide 'magy-keys-test)
;;; magy-keys-test.el ends here
