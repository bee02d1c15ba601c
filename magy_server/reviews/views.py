"""Front doors see reviews, and ask for decisions, in these values. All are immutable; lines are
counted from 0."""

from __future__ import annotations

from dataclasses import field
from typing import Literal

from magy_server.core.reviews.review_events import Comment
from magy_server.core.values import Origin
from magy_server.dataclass import dataclass

Status = Literal["created", "modified", "deleted", "renamed"]
HunkKind = Literal[
    "add", "change", "delete", "create", "remove", "rename", "mode", "link", "binary"
]
"""The first three are of lines; the others are of the file as a whole."""
HunkState = Literal["pending", "conflict", "accepted", "rejected", "amended", "commented", "stale"]
"""`conflict`: of a proposal whose lines the person changed since; it cannot be accepted as it is.
`stale`: there is no such hunk (any more). The others are what a decision came to."""
Verb = Literal["accept", "reject", "amend", "comment"]


@dataclass(frozen=True, slots=True)
class HunkInfo:
    """`start`, `end`: whole lines of the live text, end exclusive; an empty range is where lines
    were removed, or are proposed to be added. Of a file as a whole they are 0, and `old` and `new`
    say in words what was and is."""

    id: str
    kind: HunkKind
    start: int
    end: int
    base_start: int
    base_end: int
    old: str
    new: str
    anchor: int = 0
    """The line to draw at what has no line of its own: below it, or..."""
    above: bool = False
    """...above it."""
    state: HunkState = "pending"
    amended: bool = False
    """The person changed it since."""
    origins: tuple[Origin, ...] = ()
    comments: tuple[Comment, ...] = ()

    @property
    def whole(self) -> bool:
        """Whether the hunk is about the file as a whole, not about lines."""
        return self.kind not in ("add", "change", "delete")


@dataclass(frozen=True, slots=True)
class Summary:
    """A file in the list of what is under review."""

    root: str
    path: str
    status: Status
    revision: str
    """Changes whenever anything of the review does; the same in all processes."""
    pending: int
    """Hunks."""
    added: int
    removed: int
    sessions: tuple[str, ...]
    """Ids of the sessions whose hunks are pending."""
    proposed: bool = False
    moved_from: str = ""


@dataclass(frozen=True, slots=True)
class ReviewFile(Summary):
    """The review of a file as it is now. `base` is what the person has accepted, `live` what the
    file is (an open buffer's text), `proposed_text` what it is proposed to be (only with
    `proposed`); raw texts, None: no file, or no text."""

    hunks: tuple[HunkInfo, ...] = ()
    base: str | None = None
    live: str | None = None
    proposed_text: str | None = None
    version: int | None = None
    """The version of the open document that has the lines; None: the file is closed."""
    eol: str = "\n"
    base_ends: bool = True
    """Whether the last line of the base has a line end,..."""
    live_ends: bool = True
    """...and that of the live text."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a decision. `decision`: its id, for `undo`; "" when none was made. `results`:
    what became of each hunk. `message`: a sentence for the person, "" when all went as asked.
    `file` is the review afterwards."""

    file: ReviewFile
    decision: str = ""
    results: tuple[tuple[str, HunkState], ...] = ()
    message: str = ""
    known: bool = False
    """The same request came before; nothing was done again."""


@dataclass(frozen=True, slots=True)
class Lines:
    """Lines [start, end) of the live text, to decide about a part of a hunk."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Which:
    """What is decided about: the hunks named, those lines, or all."""

    ids: tuple[str, ...] = ()
    lines: Lines | None = None
    all: bool = False


@dataclass(frozen=True, slots=True)
class Wish:
    """A decision that a person asks for. `key`: the same one again is harmless."""

    verb: Verb
    which: Which = field(default_factory=Which)
    reason: str = ""
    text: str = ""
    """For `amend`, what is to replace the hunk; for `comment`, what it says."""
    by: str = ""
    key: str = ""
    revision: str = ""
    """What `which.lines` were seen in."""
