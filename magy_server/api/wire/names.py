"""These names stand in the server's answer to `initialize`. This module imports nothing."""

ACCEPT, REJECT, COMMENT = "magy.hunk.accept", "magy.hunk.reject", "magy.hunk.comment"
ACCEPT_ALL, REJECT_ALL = "magy.file.acceptAll", "magy.file.rejectAll"
NEXT, PREVIOUS = "magy.review.next", "magy.review.previous"
RUN, PROMPT, REWRITE = "magy.action.run", "magy.prompt", "magy.rewrite"
CANCEL, NEW, SHOW = "magy.cancel", "magy.session.new", "magy.transcript.show"
SPAWN, CHILDREN, CLOSE = "magy.child.spawn", "magy.child.list", "magy.child.close"
REVIEWING = (ACCEPT, REJECT, COMMENT, ACCEPT_ALL, REJECT_ALL, NEXT, PREVIOUS)
ASKING = (RUN, PROMPT, REWRITE, CANCEL, NEW, SHOW, SPAWN, CHILDREN, CLOSE)
COMMANDS = (*REVIEWING, *ASKING)
PLACED = (RUN, REWRITE)
"""Those that may replace what stands at a place: meant as the text is when the command comes."""

ACCEPT_KIND, REJECT_KIND = "quickfix.magy.accept", "quickfix.magy.reject"
CANCEL_KIND, SHOW_KIND = "source.magy.cancel", "source.magy.transcript"
KINDS = (
    ACCEPT_KIND, REJECT_KIND,
    "quickfix.magy", "refactor.magy", "refactor.rewrite.magy", "source.magy",
)  # fmt: skip

CODE_ACTION, RESOLVE = "textDocument/codeAction", "codeAction/resolve"
INLINE = "textDocument/inlineCompletion"
STANDARD = (
    "textDocument/codeLens",
    INLINE,
    CODE_ACTION,
    RESOLVE,
    "workspace/textDocumentContent",
)
"""Requests of the standard protocol that the front door answers."""
