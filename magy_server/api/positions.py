"""This module converts places in texts between LSP's (line and code unit) and string offsets."""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate

from magy_server.regex import regex

_LINE = regex(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+$")
WIDEST = {"utf-8": 4, "utf-16": 2, "utf-32": 1}
"""Code units of the longest character."""


def split_lines(text: str) -> list[str]:
    """Lines as LSP counts them, with their ends; the last one has no end and may be empty."""
    if "\r" not in text:
        lines = [line + "\n" for line in text.split("\n")]
        lines[-1] = lines[-1][:-1]
        return lines
    lines = _LINE.findall(text)
    if lines[-1].endswith(("\n", "\r")):
        lines.append("")
    return lines


def units(text: str, encoding: str) -> int:
    """Length in code units: bytes for utf-8, code points for utf-32."""
    if text.isascii() or encoding == "utf-32":
        return len(text)
    if encoding == "utf-8":
        return len(text.encode("utf-8", "surrogatepass"))
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def column(line: str, character: int, encoding: str) -> int:
    """The string offset of an LSP column; past the end of the line means its end, and the middle
    of a character means after it."""
    content = line.rstrip("\r\n")
    at = min(character, len(content))  # no character is less than one unit
    widest = WIDEST[encoding]
    while (over := units(content[:at], encoding) - character) > 0:
        at -= -(-over // widest)  # never too far: so many characters are needed at least
    inside = at < len(content) and units(content[:at], encoding) < character
    return at + inside


class Positions:
    """LSP positions of string offsets in one text, and back."""

    def __init__(self, text: str, encoding: str) -> None:
        self._lines = split_lines(text)
        self._starts = [0, *accumulate(map(len, self._lines))]
        self._encoding = encoding

    def position(self, offset: int) -> dict[str, int]:
        line = min(bisect_right(self._starts, offset), len(self._lines)) - 1
        before = self._lines[line][: offset - self._starts[line]]
        return {"line": line, "character": units(before, self._encoding)}

    def range(self, start: int, end: int) -> dict[str, dict[str, int]]:
        return {"start": self.position(start), "end": self.position(end)}

    def offset(self, line: int, character: int) -> int:
        if line >= len(self._lines):
            return self._starts[-1]
        return self._starts[line] + column(self._lines[line], character, self._encoding)
