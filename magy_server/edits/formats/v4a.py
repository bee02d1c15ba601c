"""This module reads V4A patches (`*** Begin Patch`), which OpenAI's models are trained to write.

After the grammar of Codex `apply_patch`, with what models get wrong allowed where it stays clear
what is meant: spaces around markers, a here-document or a fence around the patch, missing Begin
and End lines, context lines without the leading space, an added file without `+`. Of diffs it
takes `\\ No newline at end of file` and the numbers of `@@ -1,3 +1,4 @@`, as a hint.
"""

from __future__ import annotations

import re
from dataclasses import field

from magy_server.dataclass import dataclass
from magy_server.edits.formats.sections import above, is_section, section
from magy_server.edits.formats.stream import (
    Fence,
    LineReader,
    Sides,
    heredoc,
    says_no_newline,
)
from magy_server.edits.model import FileEdit, Hunk
from magy_server.regex import regex

HEADERS = ("*** Add File: NAME", "*** Update File: NAME", "*** Delete File: NAME")
VALID = f"A file begins with one of {', '.join(f'`{header}`' for header in HEADERS)}."
WHOLE = (
    "A patch is `*** Begin Patch`, files, `*** End Patch`. "
    + VALID
    + " Changes are `@@` lines, and lines that begin with ` `, `-` or `+`."
)
_HEADER = regex(r"\*\*\*\s*(Add|Update|Delete) File:\s*(.*?)\s*\Z", re.IGNORECASE)
_MOVE = regex(r"\*\*\*\s*Move to:\s*(.*?)\s*\Z", re.IGNORECASE)
_BEGIN = regex(r"\*\*\*\s*Begin Patch\s*\Z", re.IGNORECASE)
_END = regex(r"\*\*\*\s*End Patch\s*\Z", re.IGNORECASE)
_STRAY = regex(r"\*{3,}\s*(?:End(?: Patch)?)?[\s*]*\Z", re.IGNORECASE)
"""What is left of an end line."""
_END_OF_FILE = regex(r"\*\*\*\s*End of File\s*\Z", re.IGNORECASE)


@dataclass(slots=True)
class _File:
    op: str
    path: str
    line: int
    to: str | None = None
    hunks: int = 0
    content: list[str] = field(default_factory=list)
    above: Hunk | None = None
    """A hunk of context only, which tells where the next one is."""
    marked: bool | None = None
    """Whether the lines of an added file begin with `+`; None before the first."""
    blank: int = 0


@dataclass(slots=True)
class _Body:
    line: int
    anchors: list[str] = field(default_factory=list)
    hint: int | None = None
    sides: Sides = field(default_factory=Sides)
    blank: int = 0
    at_end: bool = False


class V4AReader(LineReader):
    def __init__(self, path: str = "") -> None:
        super().__init__(path)
        self._fence: Fence | None = None
        self._terminator: str | None = None
        self._ended = False
        """After `*** End Patch`; a further `*** Begin Patch` may follow."""
        self._doubtful: list[tuple[int, str]] = []
        """` *** End Patch` and empty lines: the end if nothing follows, else a context line."""
        self._file: _File | None = None
        self._body: _Body | None = None

    def line(self, line: str) -> None:
        if self._doubtful or (self._file and self._padded_end(line)):
            if not line.strip() or not self._doubtful:
                self._doubtful.append((self.number, line))
                return
            doubtful, self._doubtful = self._doubtful, []
            if self._closing(line):
                self._close()
                return
            for number, text in doubtful:
                self._one(number, text)
            self.line(line)
        else:
            self._one(self.number, line)

    def _padded_end(self, line: str) -> bool:
        if self._body is None:
            return False
        if line[:1] == " ":
            return _END.match(line.strip()) is not None
        return _STRAY.match(line) is not None and not _END.match(line)

    def _closing(self, line: str) -> bool:
        """Whether the fence or the here-document around the patch ends here."""
        if self._fence and self._fence.closes(line):
            return True
        return self._terminator is not None and line.strip() == self._terminator

    def _one(self, number: int, line: str) -> None:
        if self._file is None:
            self._outside(number, line)
        elif _END.match(line) or self._closing(line):
            self._close()
        elif line.startswith("***"):
            self._marker(number, line)
        elif self._file.op != "update" and (
            _HEADER.match(line.strip()) or _END.match(line.strip())
        ):
            self._one(number, line.strip())
        elif self._file.op == "add":
            self._added(self._file, number, line)
        elif self._file.op == "delete":
            if line.strip():
                raise self.refuse(
                    f"nothing can follow `*** Delete File: {self._file.path}`. {VALID}",
                    line=number, shown=line,
                )  # fmt: skip
        else:
            self._updated(self._file, number, line)

    def end(self) -> None:
        self._close()
        if not self.found.known():
            raise self.refuse(f"the patch changes nothing. {WHOLE}", line=self.number or 1)

    def _close(self) -> None:
        self._end_file()
        self._ended = True
        self._doubtful = []

    # --- outside of files -------------------------------------------------------------------------

    def _outside(self, number: int, line: str) -> None:
        text = line.strip()
        if _BEGIN.match(text):
            self._ended = False
        elif self._ended:
            return
        elif text.startswith("***"):
            if not _END.match(text):
                self._marker(number, text)
            else:
                self._ended = True
        elif is_section(line) and self.path:
            self._file = _File("update", self.path, number)
            self._updated(self._file, number, line)
        elif fence := Fence.of(line):
            self._fence = fence
        elif word := heredoc(line):
            self._terminator = word

    def _marker(self, number: int, line: str) -> None:
        """A line that begins with `***`."""
        file = self._file
        if found := _HEADER.match(line):
            self._end_file()
            if not found[2]:
                raise self.refuse(
                    f"the name of the file is missing. {VALID}", line=number, shown=line
                )
            self._file = _File(found[1].lower(), found[2], number)
            if self._file.op == "delete":
                self.found.add(FileEdit(found[2], "delete"))
        elif move := _MOVE.match(line):
            if not file or file.op != "update" or self._body or file.hunks or not move[1]:
                raise self.refuse(
                    "`*** Move to: NAME` stands right after `*** Update File: NAME`.",
                    line=number, shown=line,
                )  # fmt: skip
            file.to = move[1] if move[1] != file.path else None
        elif _END_OF_FILE.match(line) and file and file.op != "delete":
            if self._body:
                self._body.at_end = True
                self._end_hunk()
        elif not _BEGIN.match(line):
            raise self.refuse(f"this is not a header of a patch. {VALID}", line=number, shown=line)

    # --- in a file --------------------------------------------------------------------------------

    def _added(self, file: _File, number: int, line: str) -> None:
        if not line.strip() and file.marked is not False:
            file.blank += 1  # content without its `+` if more of it follows
            return
        if file.marked is None:
            file.marked = line.startswith("+")
            file.blank = 0 if file.marked else file.blank
        if says_no_newline(line) and file.content:
            file.content[-1] = file.content[-1].removesuffix("\n")
            return
        over = file.content and not file.content[-1].endswith("\n")
        if line.startswith("+") is not file.marked or over:
            raise self.refuse(
                f"it is not clear whether it belongs to {file.path}. Begin every line of an added "
                "file with `+`.", line=number, shown=line,
            )  # fmt: skip
        file.content += ["\n"] * file.blank
        file.blank = 0
        file.content.append((line[1:] if file.marked else line) + "\n")

    def _updated(self, file: _File, number: int, line: str) -> None:
        if is_section(line):
            if self._body and self._body.sides:
                self._end_hunk()
            body = self._body = self._body or _Body(number)
            body.blank = 0
            at = section(line)
            body.hint = at.line or body.hint
            if at.heading and at.line is None:
                body.anchors.append(at.heading)
            return
        if line == "":
            if self._body:
                self._body.blank += 1
            return
        body = self._body = self._body or _Body(number)
        for _ in range(body.blank):
            body.sides.add("both", "")
        body.blank = 0
        self.take(body.sides, number, line)

    def _end_hunk(self) -> None:
        body, self._body = self._body, None
        file = self._file
        if body is None or file is None:
            return
        if not body.sides:
            raise self.refuse(
                f"this `@@` has no lines after it. {WHOLE}", line=body.line,
            )  # fmt: skip
        old = body.sides.old
        anchors = (*above(file.above), *body.anchors)
        bare = not old and not anchors
        hint = body.hint if old else None
        hunk = Hunk(
            old, body.sides.new, lines=True, anchors=anchors, line=hint,
            at_end=body.at_end or bare, source=body.line,
        )  # fmt: skip
        if old == hunk.new:
            file.above = hunk
            return
        file.above = None
        file.hunks += 1
        self.found.hunk(file.path, hunk, to=file.to)

    def _end_file(self) -> None:
        self._end_hunk()
        file, self._file = self._file, None
        if file is None:
            return
        if file.above and not file.hunks and not file.to:
            file.hunks += 1
            self.found.hunk(file.path, file.above, to=file.to)
        if file.op == "add":
            self.found.add(FileEdit(file.path, "create", content="".join(file.content)))
        elif file.op == "update" and not file.hunks and file.to:
            self.found.add(FileEdit(file.path, to=file.to))
        elif file.op == "update" and not file.hunks:
            raise self.refuse(
                f"no change of {file.path} follows. {WHOLE}", line=file.line,
            )  # fmt: skip
