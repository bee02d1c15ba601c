"""This module counts the columns of a terminal that a text takes, and divides it into rows.
Pure."""

from __future__ import annotations

import unicodedata
from itertools import pairwise

from magy_server.regex import regex

_WIDE = "\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef"
_WORD = regex(rf"[{_WIDE}]|[^\s{_WIDE}]+")
"""A row may end before each of these."""
_HANG = regex(r"\s*(?:(?:[-*+>]|\d{1,3}[.)])\s+)?")
"""What further rows of a line stand below: not its indentation, nor the bullet."""


def width_of(text: str) -> int:
    """Returns how many columns a terminal takes for `text`, which has no controls."""
    if text.isascii():
        return len(text)
    return sum(_columns(char) for char in text)


def _columns(char: str) -> int:
    if unicodedata.combining(char) or unicodedata.category(char) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def shortened(text: str, columns: int, cut: str = "…") -> str:
    """Returns the beginning of a line, with a mark when that is not all."""
    if width_of(text) <= columns:
        return text
    room = columns - len(cut)
    taken: list[str] = []
    for char in text:
        room -= _columns(char)
        if room < 0:
            break
        taken.append(char)
    return "".join(taken) + cut if columns > len(cut) else cut[: max(0, columns)]


def breaks(line: str, width: int, hang: int = 0, *, long: bool = False) -> list[int]:
    """Returns where to divide a line so that each row fits: between words. All rows but the first
    have `hang` columns less. A longer word stays whole, so that it can be copied from what the
    terminal makes of it; with `long` it is divided, too."""
    found: list[int] = []
    begun, room, empty = 0, width, True

    def end(at: int) -> None:
        nonlocal begun, room
        found.append(at)
        begun, room = at, max(2, width - hang)

    for word in _WORD.finditer(line):
        if not empty and width_of(line[begun : word.end()]) > room:
            end(word.start())
        while long and width_of(line[begun : word.end()]) > room:
            end(begun + len(shortened(line[begun : word.end()], room, "")))
        empty = False
    return found


def wrapped(line: str, width: int, *, long: bool = False) -> list[str]:
    """Returns the rows of a line, below each other; see `breaks`."""
    lead = _HANG.match(line)
    hang = width_of(lead.group()) if lead else 0
    ends = [0, *breaks(line, width, hang, long=long), len(line)]
    first, *rest = (line[start:end].rstrip() for start, end in pairwise(ends))
    return [first, *(" " * hang + row for row in rest)]
