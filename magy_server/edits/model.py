"""These values say what a model wants (`FileEdit`, `Hunk`), what that comes to in a text
(`TextChange`), and why it cannot be done (`EditError`). All are immutable."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from magy_server.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class TextChange:
    """Replace characters [start, end) of a text, in Python string offsets."""

    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class Hunk:
    """One change as a model wrote it: `old` becomes `new`, both plain text (line ends `\\n`).

    With `lines`, both are whole lines; a last line without a line end is then the end of a file
    that has none. Without, `old` may begin and end anywhere (`str_replace`).
    """

    old: str
    new: str
    lines: bool = False
    anchors: tuple[str, ...] = ()
    """Lines above, outermost first, below which `old` is looked for (`@@` of a V4A patch)."""
    line: int | None = None
    """Where `old` is expected, counted from 1: a hint that only decides between equals. With an
    empty `old` it says all: `new` is inserted before this line."""
    at_end: bool = False
    """`old` is the end of the file; with an empty `old`, `new` is appended."""
    every: bool = False
    """Replace every occurrence, which then must be exact."""
    source: int = 1
    """The line of the edit's own text where the hunk begins, for messages."""


@dataclass(frozen=True, slots=True)
class FileEdit:
    """What is wanted of one file. `path` is as written; "" where the format names none.

    `update` changes a file that exists by `hunks`; `create` makes one with `content` that does not
    exist; `write` makes it hold `content` whatever it held; `delete` removes it. `to`: then it is
    renamed.
    """

    path: str
    op: Literal["update", "create", "write", "delete"] = "update"
    hunks: tuple[Hunk, ...] = ()
    content: str = ""
    to: str | None = None
    other: str = ""
    """What diff(1) calls the second of two files, `path` being the first: whoever knows the files
    may see which one is meant."""


Code = Literal[
    "not_found",
    "ambiguous",
    "conflict",
    "no_change",
    "already_applied",
    "placeholder",
    "parse",
    "unknown_file",
    "exists",
]
"""`not_found`: no such place, in any tier. `ambiguous`: several, and nothing decides. `conflict`:
the user changed these very lines since they were read. `no_change`: old and new are the same.
`already_applied`: what is wanted is there. `placeholder`: the new text leaves something out in
words ("rest of the code"). `parse`: the edit itself is malformed. `unknown_file`, `exists`: of
paths."""


@dataclass(frozen=True, slots=True)
class Failure:
    """Why hunk number `hunk` (from 0) cannot be applied. `message` is written for the model: what
    is wrong, where, what to do next. `lines`: those it speaks of in the text, from 1."""

    hunk: int
    code: Code
    message: str
    lines: tuple[int, ...] = ()


class EditError(Exception):
    """An edit that is refused. `failures` has one or more, in order."""

    def __init__(self, failures: Sequence[Failure]) -> None:
        self.failures = tuple(failures)
        super().__init__("\n".join(failure.message for failure in self.failures))


@dataclass(frozen=True, slots=True)
class Placed:
    """Where a hunk went: its changes in the text it was resolved in, and what is remarkable about
    the way it was found ("re-indented by 4 spaces"), for the model; "" when it was exact."""

    hunk: int
    changes: tuple[TextChange, ...]
    tier: str = "exact"
    note: str = ""


@dataclass(frozen=True, slots=True)
class Resolved:
    """What the hunks of one file come to in one text. All of them were looked for, whatever became
    of the others; `changes` are those of the placed ones, in order and not overlapping."""

    placed: tuple[Placed, ...]
    failures: tuple[Failure, ...] = ()

    @property
    def changes(self) -> tuple[TextChange, ...]:
        found = [change for placed in self.placed for change in placed.changes]
        return tuple(sorted(found, key=lambda change: (change.start, change.end)))
