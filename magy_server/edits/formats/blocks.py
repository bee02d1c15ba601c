"""This module reads search/replace blocks, as Aider, Cline and Roo Code have them.

    greet.py                      ------- SEARCH              <<<<<<< SEARCH
    <<<<<<< SEARCH                return 'hello'              :start_line:2
    return 'hello'                =======                     -------
    =======                       return 'good morning'       return 'hello'
    return 'good morning'         +++++++ REPLACE             =======
    >>>>>>> REPLACE                                           return 'good morning'
                                                              >>>>>>> REPLACE

Markers have three characters or more, usually seven. Where several lines of a block could be its
divider, the one that is as long as the first marker is meant, else the block is refused. A line of
content that looks like a marker has a backslash before it. Roo's and Cline's blocks name no file
when the tool does; without that, all are looked at for names as Aider's are. `\\ No newline at end
of file` may end either side, as in a diff.
"""

from __future__ import annotations

import re
from dataclasses import field
from typing import Literal

from magy_server.dataclass import dataclass
from magy_server.edits.formats.heading_names import path_before
from magy_server.edits.formats.stream import LineReader, says_no_newline
from magy_server.edits.model import EditError, Hunk
from magy_server.regex import regex

Style = Literal["aider", "cline", "roo"]
VALID = {
    "aider": "<<<<<<< SEARCH, =======, >>>>>>> REPLACE",
    "cline": "------- SEARCH, =======, +++++++ REPLACE",
    "roo": "<<<<<<< SEARCH, =======, >>>>>>> REPLACE",
}
MARKER = regex(r"(?:<{3,}|-{3,}) SEARCH>?|={3,}|(?:>{3,}|\+{3,}) REPLACE>?")
"""A whole line, any spaces after it aside."""
_HEAD = regex(r"(<{3,}|-{3,}) SEARCH>?")
_DIVIDER = regex(r"={3,}")
_TAIL = regex(r"(?:>{3,}|\+{3,}) REPLACE>?")
_NEARLY = regex(r"[-<>+=]{2,}\s*(SEARCH|REPLACE)\s*>?", re.IGNORECASE)
_ESCAPED = regex(rf"\\+(?:{MARKER.pattern})\s*\Z")
_ESCAPED_ROO = regex(r"\\+(?:<{7}|={7}|>{7}|-{7}|:start_line:|:end_line:)")
_START = regex(r":(start|end)_line:\s*(\d{1,9})\s*\Z")


@dataclass(slots=True)
class _Block:
    line: int
    path: str
    length: int
    """Of its first marker."""
    lines: list[str] = field(default_factory=list)
    dividers: dict[int, int] = field(default_factory=dict)
    """Lines that could be the divider: index in `lines`, and number in the edit."""
    start: int | None = None
    preamble: bool = True
    """Roo's `:start_line:` may still come."""


class BlockReader(LineReader):
    def __init__(self, style: Style, path: str = "") -> None:
        super().__init__(path)
        self._style: Style = style
        self._before: list[str] = []
        self._current = ""
        self._block: _Block | None = None

    def line(self, line: str) -> None:
        text = line.rstrip()
        if self._block is None:
            self._outside(line, text)
        elif _TAIL.fullmatch(text):
            self._end_block(self._block)
        else:
            self._inside(self._block, line, text)

    def end(self) -> None:
        block = self._block
        if block and self._style == "cline" and block.dividers:
            if len(last := block.lines[-1]) >= 3 and "+++++++ REPLACE".startswith(last):
                block.lines.pop()
            self._end_block(block)  # Cline's last block needs no marker at its end
        elif block:
            wanted = "`>>>>>>> REPLACE`" if block.dividers else "`=======` and `>>>>>>> REPLACE`"
            raise self._refuse(f"the block that begins here does not end; {wanted} is missing.",
                               block.line)  # fmt: skip
        if not self.found.known():
            raise self._refuse("there is no block in it.", self.number or 1)

    def _outside(self, line: str, text: str) -> None:
        if head := _HEAD.fullmatch(text):
            self._block = _Block(self.number, self._path(), len(head[1]))
            self._before = []
            return
        if _NEARLY.fullmatch(text.strip()):
            raise self._refuse("this marker is misplaced or malformed.",
                               self.number, line)  # fmt: skip
        self._before = [*self._before[-2:], line]

    def _path(self) -> str:
        if self.path and self._style != "aider":
            return self.path
        known = self._current or self.path
        found = path_before(self._before, known=bool(known))
        if not found and not known:
            raise self._refuse(
                "no file is named before this block. Write the name alone on the line before it.",
                self.number, named=True,
            )  # fmt: skip
        self._current = found or known
        return self._current

    def _inside(self, block: _Block, line: str, text: str) -> None:
        if self._style == "roo" and block.preamble and self._preamble(block, text):
            return
        block.preamble = False
        if _HEAD.fullmatch(text):
            raise self._refuse(
                f"a block begins inside the one that begins at line {block.line}, which has not "
                "ended. If this line is content, write a backslash before it.", self.number, line,
            )  # fmt: skip
        # Cline takes a divider with spaces after it for content
        if _DIVIDER.fullmatch(line if self._style == "cline" else text):
            block.dividers[len(block.lines)] = self.number
        block.lines.append(line)

    def _preamble(self, block: _Block, text: str) -> bool:
        if found := _START.match(text):
            if found[1] == "start":
                block.start = int(found[2]) or None
            return True
        block.preamble = False
        return text == "-------"

    def _end_block(self, block: _Block) -> None:
        self._block = None
        at = self._divider(block)
        old, new = self._content(block.lines[:at]), self._content(block.lines[at + 1 :])
        at_end = False
        if self._style == "aider" and not old.strip():
            old, at_end = "", True  # as Aider defines it: a new file, or more at the end of one
        elif self._style == "roo" and not old:
            raise self._refuse(
                "the SEARCH part is empty. Put the lines to replace into it, or a line to insert "
                "beside.", block.line,
            )  # fmt: skip
        self.found.hunk(
            block.path,
            Hunk(old, new, lines=True, line=block.start, at_end=at_end, source=block.line),
        )

    def _divider(self, block: _Block) -> int:
        """The index of the line between the two sides."""
        if not block.dividers:
            raise self._refuse("`=======` is missing between SEARCH and REPLACE.", block.line)
        if len(block.dividers) == 1:
            return next(iter(block.dividers))
        fitting = [at for at in block.dividers if len(block.lines[at].rstrip()) == block.length]
        if len(fitting) != 1:
            places = ", ".join(map(str, list(block.dividers.values())[:9]))
            raise self._refuse(
                "several lines of this block could divide SEARCH from REPLACE (lines "
                f"{places} of the edit). Write a backslash before those that are content, or use "
                "markers of another length.", block.line,
            )  # fmt: skip
        return fitting[0]

    def _content(self, lines: list[str]) -> str:
        if lines and says_no_newline(lines[-1]):
            return "\n".join(map(self._unescaped, lines[:-1]))
        return "".join(self._unescaped(line) + "\n" for line in lines)

    def _unescaped(self, line: str) -> str:
        if not line.startswith("\\"):
            return line
        roo = self._style == "roo" and _ESCAPED_ROO.match(line)
        return line[1:] if roo or _ESCAPED.match(line) or _is_escaped_note(line) else line

    def _refuse(self, why: str, line: int, shown: str = "", *, named: bool = False) -> EditError:
        name = "the file's name, then " if named or self._style == "aider" else ""
        return self.refuse(f"{why} A block is: {name}{VALID[self._style]}, each on a line of its "
                           "own.", line=line, shown=shown)  # fmt: skip


def _is_escaped_note(line: str) -> bool:
    return line.startswith("\\\\") and says_no_newline("\\" + line.lstrip("\\"))
