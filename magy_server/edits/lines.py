"""This module cuts a text into lines, and finds the lines that a change is about."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from functools import cached_property
from itertools import accumulate

from magy_server.edits.model import TextChange
from magy_server.edits.text import BREAK, line_end, split, usual_end


class Lines:
    """The lines of a raw text, counted from 0, what they say apart from their line ends."""

    def __init__(self, raw: str) -> None:
        self.raw = raw
        self.lines, self.ends = _cut(raw)
        self.count = len(self.lines)
        lengths = (len(line) + len(end) for line, end in zip(self.lines, self.ends, strict=True))
        self.starts = [0, *accumulate(lengths)]
        """The offset of each line, and the end of the text."""
        self.usual = usual_end(raw)
        self.ended = not self.ends or self.ends[-1] != ""
        """The last line has a line end."""

    @cached_property
    def kinds(self) -> frozenset[str]:
        """The line ends that it has; "" for a last line without one."""
        return frozenset(self.ends)

    def at(self, offset: int) -> int:
        """Returns the line that begins at `offset`."""
        return bisect_left(self.starts, offset)

    def between(self, start: int, end: int) -> str:
        """Returns lines [start, end), raw."""
        return self.raw[self.starts[start] : self.starts[end]]


def _cut(raw: str) -> tuple[list[str], list[str]]:
    """Lines and their ends; quickly where there is one kind only."""
    if "\r" in raw:
        whole = split(raw)
        ends = [line_end(line) for line in whole]
        return [line[: len(line) - len(end)] for line, end in zip(whole, ends, strict=True)], ends
    lines = raw.split("\n")
    ends = ["\n"] * (len(lines) - 1)
    if lines[-1]:
        ends.append("")
    else:
        lines.pop()
    return lines, ends


def lines_of(text: str, change: TextChange) -> tuple[int, int]:
    """The offsets where the lines begin and end that `change` is about; an empty range is the gap
    that whole lines are inserted in. After the change they are whole lines, too."""
    low = line_start(text, change.start)
    end = change.end
    if line_start(text, end) == end:
        new = text[low : change.start] + change.text
        if not new or new[-1] in "\r\n" or low == len(text):
            return low, end
    return low, line_after(text, end)


def line_start(text: str, offset: int) -> int:
    """Returns where the line of `offset` begins."""
    low = text.rfind("\n", 0, offset) + 1
    return max(low, text.rfind("\r", low, offset) + 1)


def line_after(text: str, offset: int) -> int:
    """Returns where the line after that of `offset` begins, or the text ends."""
    found = BREAK.search(text, offset)
    return found.end() if found else len(text)


def meet(one: tuple[int, int], other: tuple[int, int], size: int = 0, gone: bool = False) -> bool:
    """Whether changes of these ranges of lines cannot both be made. `gone`:
    one of them only deletes; an insertion at the edge of the text (of `size`) has then lost its
    only neighbour."""
    (a, b), (p, q) = one, other
    if a == b and p == q:
        return a == p
    if a < b and p < q:
        return a < q and p < b
    gap, low, high = (a, p, q) if a == b else (p, a, b)
    return low < gap < high or (gone and low <= gap <= high and gap in (0, size))


def longest(most: int, holds: Callable[[int], bool]) -> int:
    """The greatest n up to `most` for which `holds`, which does up to there and not beyond. A few
    comparisons of long strings are quicker than many of characters."""
    return bisect_left(range(1, most + 1), True, key=lambda n: not holds(n))
