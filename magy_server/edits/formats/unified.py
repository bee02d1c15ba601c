"""This module reads unified diffs as git, diff(1) and models write them.

The text of a hunk says where it belongs; its numbers are a hint (`Hunk.line`), may be wrong, and
may be missing (`@@ ... @@`, `@@ def greet():`). Where they are right they decide what else would
be ambiguous: whether `--- x` is a removed line or the next file's name, and whether an empty line
at the end of a hunk belongs to it. `a/` and `b/` before names, git's headers, fences around the
diff and prose between diffs are understood.
"""

from __future__ import annotations

import re
from collections import deque

from magy_server.dataclass import dataclass
from magy_server.edits.formats.diff_names import (
    NULL,
    Unclear,
    diff_names,
    header_name,
    same_file,
    stamped,
)
from magy_server.edits.formats.sections import Section, above, is_section, section
from magy_server.edits.formats.stream import (
    Fence,
    LineReader,
    Side,
    Sides,
)
from magy_server.edits.model import FileEdit, Hunk
from magy_server.regex import regex

VALID = (
    "A diff has `--- a/NAME`, `+++ b/NAME`, then for each place `@@ -1,3 +1,4 @@` (or `@@ ... @@`) "
    "and lines that begin with ` `, `-` or `+`."
)
_META = regex(
    r"(?:old mode|new mode|index|similarity index|dissimilarity index) \S|Index: \S|={20,}\Z"
)
_ENDS = regex(
    r"diff --|index [0-9a-f]{4,}\.\.|Index: \S|={20,}\Z|Only in \S|(?:old|new) mode \d{6}\Z"
    r"|(?:deleted|new) file mode \d{6}\Z|(?:rename|copy) (?:from|to) |similarity index \d+%"
    r"|Binary files .* differ\Z|GIT binary patch\Z|\*\*\* End Patch\s*\Z"
)
"""What stands between the hunks of two files."""


@dataclass(slots=True)
class _File:
    """What the headers say of one file. Names are without `a/` and `b/`; None: there is no file."""

    line: int
    old: str | None = ""
    new: str | None = ""
    rename_from: str | None = None
    rename_to: str | None = None
    other: str = ""
    """The second of two files that diff(1) has compared."""
    named: bool = False
    """By `---` and `+++`, not only by `diff --git`."""
    mode: bool = False
    hunks: int = 0
    content: str = ""
    above: Hunk | None = None
    """A hunk of context only, which tells where the next one is."""

    def fits(self, left: str | None, right: str | None) -> bool:
        """Whether git's headers before them were of these names, which still have prefixes."""
        if self.old is NULL and left is not NULL:
            return False
        return all(
            one is NULL or of is NULL or one.endswith(of)
            for one, of in ((left, self.old), (right, self.new))
        )

    @property
    def path(self) -> str:
        return self.rename_from or self.old or self.new or ""

    @property
    def to(self) -> str | None:
        return self.rename_to if self.rename_to != self.path else None


@dataclass(slots=True)
class _Body:
    """A hunk that is being read."""

    line: int
    at: Section | None
    sides: Sides
    old_left: int = 0
    new_left: int = 0
    blank: int = 0
    """Empty lines that belong to it only if more of it follows."""

    @property
    def counted(self) -> bool:
        return self.at is not None and self.at.old is not None

    @property
    def full(self) -> bool:
        return self.counted and self.old_left <= 0 and self.new_left <= 0

    def count(self, side: Side) -> None:
        self.old_left -= side != "new"
        self.new_left -= side != "old"

    def fill(self, blank: int) -> None:
        for _ in range(blank):
            self.count("both")
            self.sides.add("both", "")
        self.blank = 0


class UnifiedReader(LineReader):
    def __init__(self, path: str = "") -> None:
        super().__init__(path)
        self._waiting: deque[tuple[int, str]] = deque()
        self._fence: Fence | None = None
        self._file: _File | None = None
        self._body: _Body | None = None

    def line(self, line: str) -> None:
        self._waiting.append((self.number, line))
        self._go_on(last=False)

    def end(self) -> None:
        self._go_on(last=True)
        self._end_file()
        if not self.found.known():
            raise self.refuse(f"there is no diff in it. {VALID}", line=self.number or 1)

    def _go_on(self, *, last: bool) -> None:
        """Only a line that may be a file's name has to wait for the two that follow."""
        while self._waiting:
            number, line = self._waiting[0]
            if line.startswith("--- ") and len(self._waiting) < 3 and not last:
                return
            self._waiting.popleft()
            if not (self._body and self._inside(number, line)):
                self._between(number, line)

    # --- in a hunk --------------------------------------------------------------------------------

    def _inside(self, number: int, line: str) -> bool:
        """Whether the line belongs to the hunk; if not, the hunk has ended."""
        body = self._body
        assert body
        if line == "":
            body.blank += 1
            return True
        if self._ends(body, line):
            self._end_hunk()
            return False
        body.fill(body.blank)
        if side := self.take(body.sides, number, line):
            body.count(side)
        return True

    def _ends(self, body: _Body, line: str) -> bool:
        if line[0] == "-":
            if line == "-- " or line == "--":  # a mail's signature follows
                return body.full
            return self._names_follow(body, line)
        if line[0] in " +\\":
            return False
        if is_section(line) or _ENDS.match(line):
            return True
        if self._fence and self._fence.closes(line):
            return True
        return body.full

    def _names_follow(self, body: _Body, line: str) -> bool:
        """Whether `line` is the `---` of the next file rather than a removed line `-- ...`."""
        if not line.startswith("--- ") or not self._waiting:
            return False
        if not self._waiting[0][1].startswith("+++ "):
            return False
        if body.at is None or header_name(line) is NULL:
            return True
        follows = len(self._waiting) > 1 and is_section(self._waiting[1][1])
        blank = body.blank
        return follows and (body.old_left - blank, body.new_left - blank) != (1, 1)

    def _end_hunk(self) -> None:
        body, file = self._body, self._file
        assert body and file
        self._body = None
        left = body.old_left
        if body.counted and left == body.new_left and 0 < left <= body.blank:
            body.fill(left)
        if not body.sides:
            raise self.refuse(f"the hunk is empty. {VALID}", line=body.line)
        if body.sides.old == body.sides.new and None not in (file.old, file.new):
            file.above = _lowered(body, file.above)
            return
        file.hunks += 1
        if file.old is None:
            if body.sides.old:
                raise self.refuse(
                    "the header says that the file is new (`--- /dev/null`), but this hunk has "
                    "existing lines. Begin every line with `+`, or name the file.",
                    line=body.line,
                )  # fmt: skip
            file.content += body.sides.new
            return
        if file.new is None and body.sides.new:
            raise self.refuse(
                "the header says that the file is deleted (`+++ /dev/null`), but this hunk keeps "
                "or adds lines. Begin every line with `-`, or name the file.", line=body.line,
            )  # fmt: skip
        hunk = _lowered(body, file.above)
        file.above = None
        if file.new is None and file.hunks == 1:
            self.found.add(FileEdit(file.path, "delete", (hunk,)))
        elif file.new is None:
            self.found.grow(hunk)
        else:
            self.found.hunk(file.path, hunk, to=file.to, other=file.other)

    # --- between hunks ----------------------------------------------------------------------------

    def _between(self, number: int, line: str) -> None:
        if line.startswith("diff --git "):
            self._end_file()
            self._file = _File(number)
            if names := diff_names(line):
                self._file.old, self._file.new = names
        elif line.startswith("--- ") and self._waiting and self._waiting[0][1].startswith("+++ "):
            self._name(number, line, self._waiting.popleft()[1])
        elif line.startswith("@@@"):
            raise self.refuse(
                "a combined diff (of a merge) cannot be applied; make one against a single "
                "version.", line=number, shown=line,
            )  # fmt: skip
        elif is_section(line):
            self._begin(number, section(line), line)
        elif line == "GIT binary patch" or re.match(r"Binary files .* differ\Z", line):
            raise self.refuse("Magy does not edit binary files.", line=number, shown=line)
        elif fence := Fence.of(line):
            self._fence = None if self._fence else fence
        elif self._file and self._header(self._file, number, line):
            return
        elif self._file and self._file.named and not self._file.hunks and line[:1] in tuple(" +-"):
            self._begin(number, None, line)
            self._inside(number, line)

    def _header(self, file: _File, number: int, line: str) -> bool:
        """One of git's extended headers."""
        if file.named:
            return False
        word, _, rest = line.partition(" mode ")
        if word in ("new file", "deleted file") and rest:
            if word == "new file":
                file.old = None
            else:
                file.new = None
            return True
        if line.startswith(("rename from ", "rename to ")):
            name = header_name(line.removeprefix("rename "), dated=False)
            if line.startswith("rename from "):
                file.rename_from = name
            else:
                file.rename_to = name
            return True
        if line.startswith(("copy from ", "copy to ")):
            raise self.refuse(
                "an edit cannot copy a file; write the new file in full, with `--- /dev/null`.",
                line=number, shown=line,
            )  # fmt: skip
        file.mode = file.mode or line.startswith(("old mode ", "new mode "))
        return _META.match(line) is not None

    def _name(self, number: int, left: str, right: str) -> None:
        file = self._file
        names = header_name(left), header_name(right)
        if file is None or file.named or not file.fits(*names):
            self._end_file()
            file = self._file = _File(number)
        file.named = True
        try:
            file.old, file.new = same_file(*names, renamed=file.rename_from is not None)
        except Unclear as error:
            if self.path:
                file.old = file.new = self.path
            elif stamped(left) and stamped(right):
                file.old = file.new = names[0]
                file.other = names[1] or ""
            else:
                raise self.refuse(str(error), line=number, shown=left) from None

    def _begin(self, number: int, at: Section | None, line: str) -> None:
        if self._file is None:
            if not self.path:
                raise self.refuse(f"no file is named before it. {VALID}", line=number, shown=line)
            self._file = _File(number, self.path, self.path, named=True)
        self._body = _Body(number, at, Sides())
        if at and at.old is not None and at.new is not None:
            self._body.old_left, self._body.new_left = at.old, at.new

    def _end_file(self) -> None:
        if self._body:
            self._end_hunk()
        file, self._file = self._file, None
        if file is None:
            return
        if file.above and not file.hunks and not file.to:
            file.hunks += 1
            self.found.hunk(file.path, file.above, to=file.to, other=file.other)
        if file.old is None and file.new is None:
            raise self.refuse("both names are /dev/null.", line=file.line)
        if file.old is None:
            self.found.add(FileEdit(file.path, "create", content=file.content))
        elif file.new is None and not file.hunks:
            self.found.add(FileEdit(file.path, "delete"))
        elif file.to and not file.hunks:
            self.found.add(FileEdit(file.path, to=file.to))
        elif not file.hunks:
            if file.mode:
                raise self.refuse(
                    f"the diff of {file.path} changes only its mode, which an edit cannot do; use "
                    "chmod, and leave this part out.", line=file.line,
                )  # fmt: skip
            raise self.refuse(f"the diff of {file.path} changes nothing. {VALID}", line=file.line)


def _lowered(body: _Body, before: Hunk | None) -> Hunk:
    at, old = body.at or Section(), body.sides.old
    line, anchors = at.line, above(before) if at.line is None else ()
    if at.heading and line is None:
        anchors = (*anchors, at.heading)
    if not old and line is not None:
        # an insertion stands and falls with its number: it must be a diff made by a program
        exact = at.old == 0 and body.new_left == 0
        line = line + 1 if exact else None
    return Hunk(
        old, body.sides.new, lines=True, anchors=anchors, line=line or None, source=body.line
    )
