"""The readers of all formats share this: a stream cut into lines, the edits known so far, and how
an edit that cannot be read is refused."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Literal, Protocol

from magy_server.dataclass import dataclass
from magy_server.edits.model import EditError, Failure, FileEdit, Hunk
from magy_server.edits.text import plain
from magy_server.regex import regex

BOM = "\ufeff"
SHOWN = 80
"""Characters of a faulty line that are shown."""
_FENCE = regex(r"(`{3,}|~{3,})\s*([^`\s]*)[^`]*\Z")
_HEREDOC = regex(r"(?:.*\s)?<<-?\s*(['\"]?)(\w+)\1\s*\Z")
_NO_NEWLINE = regex(r"\\ no newline at end of (?:file|text)\.?\s*\Z", re.IGNORECASE)


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


class Found:
    """The edits known so far. Only the last one still gets hunks."""

    def __init__(self) -> None:
        self._known: list[FileEdit] = []
        self._more: list[Hunk] = []
        """Hunks of the last edit that it does not have yet."""
        self.hunks = 0
        """All hunks so far."""

    def add(self, edit: FileEdit) -> None:
        """A whole edit, or the beginning of one that `hunk` goes on with."""
        self._settle()
        self._known.append(edit)
        self.hunks += len(edit.hunks)

    def hunk(self, path: str, hunk: Hunk, *, to: str | None = None, other: str = "") -> None:
        """Belongs to the last file when that is `path`, else a new one begins."""
        edit = FileEdit(path, to=to, other=other)
        if not self._known or replace(self._known[-1], hunks=()) != edit:
            self.add(edit)
        self.grow(hunk)

    def grow(self, hunk: Hunk) -> None:
        """Belongs to the edit that was added last."""
        self._more.append(hunk)
        self.hunks += 1

    def known(self) -> list[FileEdit]:
        self._settle()
        return list(self._known)

    def _settle(self) -> None:
        if self._more:
            last = self._known[-1]
            self._known[-1] = replace(last, hunks=(*last.hunks, *self._more))
            self._more = []


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

    def take(self, sides: Sides, number: int, line: str) -> Side | None:
        """Enters a line of a hunk, which is not empty, by its first character; one with none of
        ` `, `-`, `+` has lost its space. None: it only says that the one before has no end."""
        if sides and says_no_newline(line):
            sides.cut()
            return None
        side: Side = "old" if line[0] == "-" else "new" if line[0] == "+" else "both"
        if sides.ended(side):
            raise self.refuse(
                "it stands after a line that has `\\ No newline at end of file`, which is the last "
                "one of its file.", line=number, shown=line,
            )  # fmt: skip
        sides.add(side, line[1:] if line[0] in " +-" else line)
        return side

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
    """Returns whether a line says, as diff(1) does, that the line before it has no line end."""
    return _NO_NEWLINE.match(line) is not None


Side = Literal["both", "old", "new"]
"""Which text of a hunk a line belongs to."""


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
