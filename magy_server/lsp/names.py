"""What the server announces in its answer to `initialize`. Nothing is imported here."""

ACCEPT, REJECT, COMMENT = "magy.hunk.accept", "magy.hunk.reject", "magy.hunk.comment"
ACCEPT_ALL, REJECT_ALL = "magy.file.acceptAll", "magy.file.rejectAll"
NEXT, PREVIOUS = "magy.review.next", "magy.review.previous"
COMMANDS = (ACCEPT, REJECT, COMMENT, ACCEPT_ALL, REJECT_ALL, NEXT, PREVIOUS)

ACCEPT_KIND, REJECT_KIND = "quickfix.magy.accept", "quickfix.magy.reject"
KINDS = (ACCEPT_KIND, REJECT_KIND)

STANDARD = (
    "textDocument/codeLens",
    "textDocument/codeAction",
    "workspace/textDocumentContent",
)
"""Requests of the standard protocol that the front door answers."""
