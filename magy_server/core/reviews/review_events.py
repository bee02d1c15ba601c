"""These events record reviews, and what a person takes back.

A review belongs to a file and to no single session or root: it is a stream of its own, named
`review/<path>` (of what is applied) or `proposal/<path>` (of what is only proposed), the path
percent-encoded, so that what is below a folder has a prefix in common. Each entry carries the whole
state that it leads to, so the newest one is the fold; the others are the journal.
"""

from typing import Literal

from magy_server.core.values import FileChange, Hash, Mark, Origin, Value, Version


class Decision(Value):
    """What a person decided about hunks. `text`: what they wrote in its place, when they amended.
    `undoes`: the id of the decision that this takes back. `change`: what it does to the file of an
    agent's proposal, which is the agent's doing from then on.

    Each stands twice in the journal: as an `intent`, with the review as it was, before anything is
    done, and with what it came to. An intent without the other was interrupted."""

    id: str
    verb: Literal["accept", "reject", "amend", "comment", "undo", "commit"]
    intent: bool = False
    hunks: tuple[str, ...] = ()
    reason: str = ""
    text: str = ""
    undoes: str = ""
    by: str = ""
    change: FileChange | None = None


class Comment(Value):
    """A person's comment on a hunk that is pending."""

    id: str
    hunk: str
    text: str


class Reviewed(Value):
    """The review of a file came to this. `base` is what a person has accepted of the file (or what
    it was before any agent), `agent` what it was after the last agent's change, decision or turn;
    other differences from the live text are the person's own. `marks` are lines of `agent`.
    `changed`: by whom, when an agent's change led here. `removed`: what an agent last removed, here
    or at `moved_from`."""

    type: Literal["reviewed"] = "reviewed"
    root: str
    path: str
    base: Version
    agent: Version
    marks: tuple[Mark, ...] = ()
    origins: tuple[Origin, ...] = ()
    comments: tuple[Comment, ...] = ()
    moved_from: str = ""
    removed: Hash | None = None
    proposed: bool = False
    changed: Origin | None = None
    decision: Decision | None = None


class Noted(Value):
    """Inbox. Something that the model is to know, from here on: decisions about its hunks, say.
    It asks for no reply. A known `id` is ignored. `verb`: what was decided about so many of its
    `hunks`; "": the note is of something else. `changes`: what that made of files, of proposals of
    the turn `turn`."""

    type: Literal["noted"] = "noted"
    id: str
    text: str
    verb: str = ""
    hunks: int = 0
    turn: str = ""
    changes: tuple[FileChange, ...] = ()


class _GoingBack(Value):
    type: str
    id: str
    turn: str
    files: bool
    conversation: bool
    changes: tuple[FileChange, ...] = ()
    conflicts: tuple[str, ...] = ()
    undoes: str = ""


class Restoring(_GoingBack):
    """Inbox. A person goes back, as `Restored` of the same `id` will say. Committed before the
    first file is touched: who finds it without its `Restored` makes the rest of `changes`."""

    type: Literal["restoring"] = "restoring"


class Restored(_GoingBack):
    """Inbox. A person went back to where turn `turn` began: `files` that this session changed since
    are as they were then (`changes`, except `conflicts`, which were left alone), the `conversation`
    forgets what came since. `undoes`: instead, the named restore is taken back."""

    type: Literal["restored"] = "restored"
