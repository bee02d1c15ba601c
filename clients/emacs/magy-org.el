;;; magy-org.el --- Magy's transcripts as Org or Markdown  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Magy authors
;; SPDX-License-Identifier: GPL-3.0-or-later
;; This is free software with no warranty at all; see the file COPYING.

;;; Commentary:

;; The text of a transcript is Markdown, as models write it.  Here it
;; becomes Org, for the kill ring or a file: sections for who speaks, and
;; blocks for tools, thinking and agents.  Text within code is left as it
;; is, but for the comma that Org wants before what looks like its own.

;;; Code:

(require 'magy-stream)
(require 'magy-view)

;;;; Markdown to Org

(defconst magy-org--spans
  '(("!\\[\\([^]\n]*\\)\\](<?\\([^)> \n]+\\)>?\\(?: \"[^\"\n]*\"\\)?)" . "[[\\2]]")
    ("\\[\\([^]\n]+\\)\\](<?\\([^)> \n]+\\)>?\\(?: \"[^\"\n]*\"\\)?)" . "[[\\2][\\1]]")
    ("\\*\\*\\([^ *\n][^*\n]*?\\)\\*\\*" . "\1\\1\1")
    ("\\(^\\|[^*[:word:]]\\)\\*\\([^ *\n][^*\n]*?\\)\\*" . "\\1/\\2/")
    ("\\(^\\|[^_[:word:]]\\)_\\([^ _\n][^_\n]*?\\)_\\([^_[:word:]]\\|$\\)" . "\\1/\\2/\\3")
    ("~~\\([^ ~\n][^~\n]*?\\)~~" . "+\\1+")
    ("\1" . "*"))
  "Markdown spans and what they are in Org; bold waits as \\=^A until italic is done.")

(defun magy-org--span (text)
  "Return TEXT, which has no code in it, with its spans as Org's."
  (pcase-dolist (`(,regexp . ,org) magy-org--spans)
    (setq text (replace-regexp-in-string regexp org text t)))
  text)

(defun magy-org--code (code)
  "Return CODE, of one line, as Org's verbatim text."
  (if (string-search "~" code) (concat "=" code "=") (concat "~" code "~")))

(defun magy-org--line (line)
  "Return the Markdown LINE, in no block, with its spans as Org's."
  (let ((start 0) parts)
    (while (string-match "\\(`+\\)\\([^`\n]+?\\)\\1" line start)
      (let ((from (match-beginning 0)) (to (match-end 0)) (code (match-string 2 line)))
        (push (magy-org--span (substring line start from)) parts)
        (push (magy-org--code code) parts)
        (setq start to)))
    (push (magy-org--span (substring line start)) parts)
    (string-join (nreverse parts))))

(defun magy-org--escape (text)
  "Return TEXT for a block, with a comma before what Org would take for its own."
  (replace-regexp-in-string "^\\(,*\\)\\(\\*\\|#\\+\\)" ",\\&" text t))

(defun magy-org--literal (text)
  "Return TEXT, which is no Org, for a special block.
Org takes the comma of an escaped line away only where it is an example."
  (let ((escaped (magy-org--escape text)))
    (if (equal escaped text)
        text
      (concat "#+begin_example\n" escaped "\n#+end_example"))))

(defun magy-org--remark (text)
  "Return TEXT as literal lines outside of any block; a comment is not exported."
  (concat ": " (string-replace "\n" "\n: " text)))

(defun magy-org--table-line (line)
  "Return the LINE of a Markdown table as one of Org's."
  (if (string-match-p "\\`[ \t]*|[-:| \t]+\\'" line)
      (concat "|" (mapconcat (lambda (_) "---")
                             (split-string (string-trim line "[ \t]*|" "|[ \t]*") "|")
                             "+")
              "|")
    (magy-org--line line)))

(defun magy-org--plain (line level)
  "Return the Markdown LINE as Org below a heading of LEVEL.
At level 0, in a block, where no heading can be, it is bold text."
  (cond
   ((string-match "\\`\\(#+\\) +\\(.*?\\)[ #]*\\'" line)
    (let ((depth (length (match-string 1 line))) (title (match-string 2 line)))
      (if (= level 0)
          (concat "*" (magy-org--line (string-replace "*" "" title)) "*")
        (concat (make-string (+ level depth) ?*) " " (magy-org--line title)))))
   ((string-match-p "\\`[ \t]*|.*|[ \t]*\\'" line) (magy-org--table-line line))
   ((string-match-p "\\`\\(?:-\\{3,\\}\\|\\*\\{3,\\}\\|_\\{3,\\}\\)[ \t]*\\'" line) "-----")
   ((string-match "\\`\\([ \t]*\\)[*+] +\\(.*\\)\\'" line)
    (let ((indent (match-string 1 line)) (text (match-string 2 line)))
      (concat indent "- " (magy-org--line text))))
   ((string-prefix-p "#+" line) (concat "," line))
   ((string-match-p "\\`\\*\\*+ " line) (concat "," line))
   (t (magy-org--line line))))

(defun magy-org--outside (line level)
  "Return what `magy-org-line' does for LINE, in no block, below LEVEL."
  (cond
   ((string-match "\\`[ \t]*\\(```+\\|~~~+\\)[ \t]*\\([^` \t]*\\)[^`]*\\'" line)
    (let ((fence (match-string 1 line)) (language (match-string 2 line)))
      (list (list 'code fence language)
            (string-trim-right (concat "#+begin_src " language)))))
   ((string-match "\\`> ?\\(.*\\)\\'" line)
    (let ((inner (match-string 1 line)))
      (list '(quoted) "#+begin_quote" (magy-org--plain inner level))))
   (t (list nil (magy-org--plain line level)))))

(defun magy-org-line (line state level)
  "Return the Markdown LINE as Org below a heading of LEVEL: (STATE LINE...).
STATE is what a line is within: nil, (code FENCE LANGUAGE) or (quoted)."
  (pcase state
    (`(code ,fence ,_)
     (if (and (string-match "\\`[ \t]*\\(```+\\|~~~+\\)[ \t]*\\'" line)
              (string-prefix-p fence (match-string 1 line)))
         (list nil "#+end_src")
       (list state (magy-org--escape line))))
    ((guard (not state)) (magy-org--outside line level))
    ((guard (string-match "\\`> ?\\(.*\\)\\'" line))
     (list state (magy-org--plain (match-string 1 line) level)))
    (_ (pcase-let ((`(,next . ,lines) (magy-org--outside line level)))
         (cl-list* next "#+end_quote" lines)))))

(defun magy-org-close (state)
  "Return the lines that end what a text of which STATE is the last is within."
  (pcase (car state)
    ('code '("#+end_src"))
    ('quoted '("#+end_quote"))))

(defun magy-org-from-markdown (text &optional level)
  "Return the Markdown TEXT as Org, for below a heading of LEVEL (1)."
  (let (state out)
    (dolist (line (split-string text "\n"))
      (pcase-let ((`(,next . ,lines) (magy-org-line line state (or level 1))))
        (setq state next
              out (nconc (nreverse lines) out))))
    (string-join (append (nreverse out) (magy-org-close state)) "\n")))

;;;; Items

(defun magy-org--parts (parts)
  "Return PARTS of what a tool call shows as plain text."
  (string-trim-right
   (mapconcat (lambda (part)
                (pcase (plist-get part :type)
                  ("diff" (magy--get part :patch :text))
                  ("content" (concat (substring-no-properties
                                      (magy-transcript--block (plist-get part :content)))
                                     "\n"))
                  (_ "")))
              parts "")))

(defun magy-org--texts (data)
  "Return as texts what the tool call DATA runs, and what came of it.
What is not known, or not there, is left out."
  (remove "" (list (magy-org--parts (magy-transcript-code data))
                   (string-trim-right (concat (magy-org--parts (plist-get data :content))
                                              (plist-get data :tail))))))

(defun magy-org--result (data)
  "Return all of the tool call DATA as plain text."
  (string-join (magy-org--texts data) "\n\n"))

(defun magy-org--answer (data)
  "Return how the question DATA was answered, as words."
  (concat (magy--get data :question :title) ": " (or (plist-get data :outcome) "open")
          (if (member (plist-get data :reason) '(nil ""))
              ""
            (concat ", " (plist-get data :reason)))))

(defun magy-org--prompt (data)
  "Return the text of the prompt DATA, with names for what went with it."
  (mapconcat #'magy-transcript--block (plist-get data :content) "\n"))

(defun magy-org--said (speaker data text)
  "Return TEXT, which SPEAKER says, as a section.
Tags of its heading say what DATA knows of its way into the conversation."
  (let ((tags (delq nil (list (car (memq (plist-get data :queue) '(waiting dropped)))
                              (and (plist-get data :undone) 'undone)))))
    (concat (format "* [%s]" speaker)
            (and tags (format " :%s:" (mapconcat #'symbol-name tags ":")))
            "\n" (replace-regexp-in-string "^\\*+ " ",\\&" text))))

(defun magy-org--plan (data mark)
  "Return the plan DATA as a list; MARK returns what stands before an entry."
  (mapconcat (lambda (entry)
               (concat "- " (funcall mark (plist-get entry :status)) " "
                       (plist-get entry :content)))
             (plist-get data :entries) "\n"))

(defun magy-org--box (status)
  "Return the check box for an entry with STATUS."
  (pcase status ("completed" "[X]") ("in_progress" "[-]") (_ "[ ]")))

(defun magy-org--block (name arguments text)
  "Return an Org block called NAME with ARGUMENTS around TEXT, which is Org."
  (concat "#+begin_" name
          (if (equal arguments "") "" (concat " " (string-replace "\n" " " arguments))) "\n"
          (if (equal text "") "" (concat text "\n"))
          "#+end_" name))

(defun magy-org--ended (data)
  "Return how the tool call DATA ended, or how it is."
  (or (plist-get data :ended) (plist-get data :status)))

(defun magy-org--tool (data)
  "Return the tool call DATA as a block with its output, or what there is of it."
  (let ((duration (plist-get data :duration)) (decision (plist-get data :decision)))
    (magy-org--block
     "tool"
     (concat (or (plist-get data :title) "…") " :status " (magy-org--ended data)
             (and duration (>= duration 1) (format " :seconds %.1f" duration))
             (and (plist-get decision :rule)
                  (format " :%s %s" (plist-get decision :action) (plist-get decision :rule))))
     (magy-org--literal (magy-org--result data)))))

(defun magy-org--spent (usage cost)
  "Return arguments of a block that say what USAGE and COST come to."
  (let ((dollars (magy-child-dollars cost)) (tokens (plist-get usage :totalTokens)))
    (concat (and tokens (> tokens 0) (format " :tokens %d" tokens))
            (and dollars (concat " :cost " dollars)))))

(defun magy-org--spawned (item)
  "Return ITEM, a call that spawned a child agent, as Org: its task, and how it is."
  (let* ((data (magy-item-data item))
         (input (plist-get data :input))
         (id (magy-child-draw-id item))
         (child (magy-child magy-transcript--project id)))
    (magy-org--block
     "agent"
     (concat (if input
                 (concat (or (plist-get input :agent) "agent")
                         (replace-regexp-in-string "\\`  " ": " (magy-child-draw--task input)))
               (plist-get data :title))
             " :status " (or (plist-get child :state) (magy-org--ended data))
             (and child (format " :session %s" id))
             (and (> (or (plist-get child :questions) 0) 0)
                  (format " :questions %d" (plist-get child :questions)))
             (and child (magy-org--spent (plist-get child :usage) (plist-get child :cost))))
     (magy-org--literal (if (and input (not (magy-child-draw--refused-p data)))
                            (string-trim-right (or (plist-get input :prompt) ""))
                          (magy-org--result data))))))

(defun magy-org--mail (data)
  "Return the message DATA of another agent as Org, or nil if it is for no reader."
  (let ((report (plist-get data :report))
        (text (substring-no-properties (magy-child-draw--text data))))
    (cond (report
           (magy-org--block
            "agent"
            (concat "result of " (magy-child-draw--sender data)
                    " :status " (plist-get report :status)
                    " :session " (magy--get data :mail :sender)
                    (magy-org--spent (plist-get report :usage) (plist-get report :cost)))
            (magy-org-from-markdown text 0)))
          ((plist-get data :content)
           (magy-org--said (magy-child-draw--sender data) data text)))))

(defun magy-org-item (item)
  "Return ITEM as Org, or nil if it says nothing."
  (let ((data (magy-item-data item)))
    (pcase (magy-item-kind item)
      ('user (magy-org--said (magy-transcript--speaker-name item) data (magy-org--prompt data)))
      ('agent (concat (if (> (magy-item-head item) 0)
                          (format "* [%s]\n" magy-assistant-prompt)
                        "")
                      (magy-org-from-markdown (magy-org-text item))))
      ('thought (magy-org--block "think" ""
                                 (magy-org--escape (string-trim (magy-stream-thought item)))))
      ('tool (if (magy-child-draw-spawn-p data) (magy-org--spawned item) (magy-org--tool data)))
      ('mail (magy-org--mail data))
      ('plan (magy-org--plan data #'magy-org--box))
      ('question (magy-org--remark (magy-org--answer data)))
      ('notice (magy-org--remark (format "%s: %s" (plist-get data :title)
                                         (or (plist-get data :description) "")))))))

(defun magy-org-text (item)
  "Return the text of the answer ITEM, as the model wrote it."
  (or (plist-get (magy-item-data item) :text)
      (and (eq magy-transcript--style 'org) (magy-stream-thought item))
      (if-let ((start (marker-position (magy-item-start item))))
          (string-trim-right
           (buffer-substring-no-properties (+ start (magy-item-head item))
                                           (magy-transcript--end item)))
        "")))

(defun magy-org-fence (text)
  "Return TEXT in a Markdown fence that is longer than any in it."
  (let ((fence "```"))
    (while (string-search fence text)
      (setq fence (concat fence "`")))
    (concat fence "\n" text "\n" fence)))

(defun magy-org-markdown-item (item)
  "Return ITEM as Markdown, or nil if it says nothing."
  (let ((data (magy-item-data item)))
    (pcase (magy-item-kind item)
      ('user (format "# %s\n\n%s" magy-user-prompt (magy-org--prompt data)))
      ('agent (concat (if (> (magy-item-head item) 0)
                          (format "# %s\n\n" magy-assistant-prompt)
                        "")
                      (magy-org-text item)))
      ('thought (concat "> " (string-replace "\n" "\n> "
                                             (string-trim (magy-stream-thought item)))))
      ('tool (string-join (cons (format "**%s %s** (%s)" magy-tool-call-prompt
                                        (plist-get data :title)
                                        (or (plist-get data :ended) (plist-get data :status)))
                                (mapcar #'magy-org-fence (magy-org--texts data)))
                          "\n\n"))
      ('mail (format "**%s** (%s)\n\n%s" (magy-child-draw--sender data)
                     (or (magy--get data :report :status) "message")
                     (substring-no-properties (magy-child-draw--text data))))
      ('plan (magy-org--plan data (lambda (status)
                                    (if (equal status "completed") "[x]" "[ ]"))))
      ('question (format "_%s_" (magy-org--answer data)))
      ('notice (format "_%s: %s_" (plist-get data :title)
                       (or (plist-get data :description) ""))))))

(provide 'magy-org)
;;; magy-org.el ends here
