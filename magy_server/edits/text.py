"""This module converts between a text with its own line ends and the same text with line feeds
alone.

A file's text has two views: *raw* (decoded, no byte order mark, line ends as they are) and *plain*,
every line end a `\\n`, which is what models read and write.
"""

from __future__ import annotations

from bisect import bisect_left
from itertools import accumulate

from magy_server.regex import regex

BREAK = regex(r"\r\n|\r|\n")
"""A line end, as the Language Server Protocol has it."""


def plain(raw: str) -> str:
    """Every line end as `\\n`. A lone `\\r` is one too, as editors see it."""
    if "\r" not in raw:
        return raw
    return raw.replace("\r\n", "\n").replace("\r", "\n")


class Plain:
    """The plain view of a raw text, with the way back from its offsets."""

    def __init__(self, raw: str) -> None:
        self.raw = raw
        self.text = plain(raw)
        self._pairs: list[int] = []
        if len(self.text) != len(raw):
            lengths = accumulate(len(piece) for piece in raw.split("\r\n")[:-1])
            self._pairs = [length + before for before, length in enumerate(lengths)]

    def to_raw(self, offset: int) -> int:
        """The raw offset of a plain offset; never between the two halves of a `\\r\\n`."""
        return offset + bisect_left(self._pairs, offset)


def split(raw: str) -> list[str]:
    """Lines with their ends. Unlike str.splitlines, only at `\\r\\n`, `\\r` and `\\n`."""
    if "\r" not in raw:
        *lines, last = raw.split("\n")
        lines = [line + "\n" for line in lines]
        return [*lines, last] if last else lines
    lines, at = [], 0
    for found in BREAK.finditer(raw):
        lines.append(raw[at : found.end()])
        at = found.end()
    if at < len(raw):
        lines.append(raw[at:])
    return lines


def line_end(line: str) -> str:
    """The line end that `line` has, or ""."""
    if line.endswith("\r\n"):
        return "\r\n"
    return line[-1] if line.endswith(("\n", "\r")) else ""


def usual_end(raw: str) -> str:
    """The line end most lines of `raw` have; "" when it has none."""
    pairs = raw.count("\r\n")
    counts = {"\n": raw.count("\n") - pairs, "\r\n": pairs, "\r": raw.count("\r") - pairs}
    best = max(counts, key=lambda end: counts[end])
    return best if counts[best] else ""
