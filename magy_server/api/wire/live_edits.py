"""A file that the client has opened with `textDocument/didOpen` belongs to the client: its text
there is what the agent reads, unsaved changes included, and Magy changes it only by asking the
client, with the standard request `workspace/applyEdit`. All other files Magy reads and writes on
disk.

**What Magy sends.** Each request edits one open document; it never creates, renames or deletes
files. For a client that announced `workspace.workspaceEdit.documentChanges` the edit carries the
`version` of the document that it was made for. All ranges are of that text, in the negotiated
position encoding; they do not overlap and stand in ascending order, so apply them from the last to
the first. `label` is a title for the editor's undo. Requests about one document come one after the
other.

**What the client does.**

1. It compares `version` with its own. If the person has typed since, so that they differ, it
   answers `{"applied": false, "failureReason": "..."}` and changes nothing. Magy works the edit out
   anew on the new text and asks again. It refuses as well when another program has written the file
   since the client read or saved it, and for any reason of its own: with the same version as
   before, the agent is told of the refusal (a request of the client's fails with `edit_refused`).
2. Otherwise it applies all of the edit, as one step of undo, and sends `textDocument/didChange`
   with the next version.
3. It answers `{"applied": true}`. The answer and `didChange` may come in either order.

Magy believes `didChange`, not the answer: the edit counts as done when the text that the client
shows is the one that Magy meant, with what the person typed meanwhile. Send `didChange` after every
change, the person's too, with increasing versions, also while requests of yours are unanswered.

**Patience.** The client may ask the person: it has ANSWER seconds to answer, and after PATIENCE
seconds the person is shown that Magy waits. After `"applied": true` it has VERIFY seconds for
`didChange`; then the agent is told that it is not known what became of its edit. A save has SAVE
seconds. Magy withdraws a request that it does not wait for any more with `$/cancelRequest`.

A client that has no versions gets `changes` in place of `documentChanges`. Then Magy cannot know
whether the client applies an edit to the text that it was made for; an edit that lands at the wrong
place is found out and put right.

**Saving.** After an edit to a document that had no unsaved changes Magy asks a client that
announced `editor.save` to save it, with `magy/editor/save`. A client that saves a document sends
`textDocument/didSave`.
"""

from __future__ import annotations

PATIENCE = 20.0
"""Seconds after which the person is shown that Magy waits for the answer to an edit."""
ANSWER = 600.0
"""Seconds for the answer to an edit: some editors ask the person."""
VERIFY = 15.0
"""Seconds for an editor to show an edit that it says it applied: some send nothing while they wait
for an answer of their own."""
SAVE = 60.0
"""Seconds in which an editor saves a file, or has not."""


def described() -> str:
    """The documentation, with the numbers."""
    text = __doc__ or ""
    for name, seconds in (
        ("PATIENCE", PATIENCE), ("ANSWER", ANSWER), ("VERIFY", VERIFY), ("SAVE", SAVE)
    ):  # fmt: skip
        text = text.replace(name, f"{seconds:g}")
    return text
