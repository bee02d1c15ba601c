"""What the readers of all formats share: a stream cut into lines, the edits known so far, and how
an edit that cannot be read is refused."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Literal, Protocol

from magy_server.edits.model import EditError, Failure, FileEdit, Hunk
from magy_server.edits.text import plain

BOM = "\ufeff"
SHOWN = 80
"""Characters of a faulty line that are shown."""
_FENCE = re.compile(r"(`{3,}|~{3,})\s*([^`\s]*)[^`]*\Z")
_HEREDOC = re.compile(r"(?:.*\s)?<<-?\s*(['\"]?)(\w+)\1\s*\Z")
_NO_NEWLINE = re.compile(r"\\ no newline at end of (?:file|text)\.?\s*\Z", re.IGNORECASE)


class Reader(Protocol):
    """Reads one format. `feed` and `finish` raise EditError; what `edits` gave before stays."""

    def feed(self, chunk: str) -> None: ...
    def finish(self) -> None: ...
    def edits(self) -> list[FileEdit]: ...


def refusal(line: int, shown: str, why: str, hunk: int = 0) -> EditError:
    """`line` counts from 1 in the edit's own text; `shown` is that line, "" when there is none
    to show. `why` is a sentence that says what is wrong and what would be right."""
    quoted = shown if len(shown) <= SHOWN else f"{shown[:SHOWN]}..."
    at = f"Line {line} of the edit" + (f", `{quoted}`" if quoted.strip() else "")
    return EditError([Failure(hunk, "parse", f"{at}: {why}", (line,))])


@dataclass(slots=True)
class _Draft:
    edit: FileEdit
    hunks: list[Hunk] = field(default_factory=list)

    def settled(self) -> FileEdit:
        return replace(self.edit, hunks=tuple(self.hunks)) if self.hunks else self.edit


class Found:
    """The edits known so far. Only the last one still gets hunks."""

    def __init__(self) -> None:
        self._settled: list[FileEdit] = []
        self._draft: _Draft | None = None
        self._shown: FileEdit | None = None
        self.hunks = 0
        """All hunks so far."""

    def add(self, edit: FileEdit) -> None:
        """A whole edit, or the beginning of one that `hunk` goes on with."""
        if self._draft:
            self._settled.append(self._draft.settled())
        self._draft, self._shown = _Draft(edit, list(edit.hunks)), None
        self.hunks += len(edit.hunks)

    def hunk(self, path: str, hunk: Hunk, *, to: str | None = None, other: str = "") -> None:
        """Belongs to the last file when that is `path`, else a new one begins."""
        edit = FileEdit(path, to=to, other=other)
        last = self._draft.edit if self._draft else None
        if last is None or replace(last, hunks=()) != edit:
            self.add(edit)
        self.grow(hunk)

    def grow(self, hunk: Hunk) -> None:
        """Belongs to the edit that was added last."""
        assert self._draft
        self._draft.hunks.append(hunk)
        self._shown = None
        self.hunks += 1

    def known(self) -> list[FileEdit]:
        if self._draft is None:
            return []
        if self._shown is None:
            self._shown = self._draft.settled()
        return [*self._settled, self._shown]


class LineReader:
    """Cuts a stream at `\\n`, `\\r\\n` and `\\r`, wherever the chunks end, and takes a byte order
    mark off its beginning. Subclasses get each complete line once, without its line end."""

    def __init__(self, path: str = "") -> None:
        self.path = path
        """Whose edit it is when the text does not say."""
        self.found = Found()
        self.number = 0
        """Of the line that is being read, from 1."""
        self._parts: list[str] = []
        self._begun = self._carriage = False

    def feed(self, chunk: str) -> None:
        if not chunk:
            return
        if not self._begun:
            self._begun = True
            chunk = chunk.removeprefix(BOM)
        if self._carriage:
            chunk = chunk.removeprefix("\n")  # the other half of a line end that was cut
        if not chunk:
            self._carriage = False
            return
        self._carriage = chunk.endswith("\r")
        first, *more = plain(chunk).split("\n")
        self._parts.append(first)
        if not more:
            return
        self._take("".join(self._parts))
        for line in more[:-1]:
            self._take(line)
        self._parts = [more[-1]]

    def _take(self, line: str) -> None:
        self.number += 1
        self.line(line)

    def finish(self) -> None:
        if last := "".join(self._parts):
            self._parts = []
            self._take(last)
        self.end()

    def edits(self) -> list[FileEdit]:
        return self.found.known()

    def line(self, line: str) -> None:
        """Raises EditError."""
        raise NotImplementedError

    def end(self) -> None:
        """After the last line. Raises EditError."""
        raise NotImplementedError

    def refuse(self, why: str, *, line: int | None = None, shown: str = "") -> EditError:
        return refusal(line or self.number, shown, why, self.found.hunks)


@dataclass(frozen=True, slots=True)
class Fence:
    """A line that opens or closes a fenced block: its marks, and the language after them."""

    marks: str
    language: str

    @classmethod
    def of(cls, line: str) -> Fence | None:
        found = _FENCE.match(line.strip())
        return cls(found[1], found[2]) if found else None

    def closes(self, line: str) -> bool:
        """Whether `line` ends the block that this one opened."""
        other = Fence.of(line)
        return (
            other is not None
            and not other.language
            and other.marks[0] == self.marks[0]
            and len(other.marks) >= len(self.marks)
        )


def heredoc(line: str) -> str | None:
    """The word that ends a here-document which this line of shell begins."""
    found = _HEREDOC.match(line.strip())
    return found[2] if found else None


def says_no_newline(line: str) -> bool:
    """As diff(1) says that the line before it has no line end."""
    return _NO_NEWLINE.match(line) is not None


Side = Literal["both", "old", "new"]
"""Which text of a hunk a line belongs to."""


def side_of(line: str) -> Side:
    """By its first character; a line with none of ` `, `-`, `+` has lost its space."""
    return "old" if line[0] == "-" else "new" if line[0] == "+" else "both"


class Sides:
    """The two texts of a hunk, line by line."""

    def __init__(self) -> None:
        self._old: list[str] = []
        self._new: list[str] = []
        self._last: Side = "both"

    def add(self, side: Side, line: str) -> None:
        if side != "new":
            self._old.append(line + "\n")
        if side != "old":
            self._new.append(line + "\n")
        self._last = side

    def cut(self) -> None:
        """The line before has no line end."""
        for side in self._of(self._last):
            if side:
                side[-1] = side[-1].removesuffix("\n")

    def ended(self, side: Side) -> bool:
        """Whether no line can follow, as the last one has no line end."""
        return any(lines and not lines[-1].endswith("\n") for lines in self._of(side))

    def _of(self, side: Side) -> Iterator[list[str]]:
        if side != "new":
            yield self._old
        if side != "old":
            yield self._new

    @property
    def old(self) -> str:
        return "".join(self._old)

    @property
    def new(self) -> str:
        return "".join(self._new)

    def __bool__(self) -> bool:
        return bool(self._old or self._new)
