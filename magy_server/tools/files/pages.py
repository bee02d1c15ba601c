"""A page of a long text: numbered lines in bounded memory, however long text or lines are."""

from __future__ import annotations

from collections.abc import Iterable

PAGE = 50_000
"""Characters of a page, give or take a line."""
WIDTH = 2_000
"""Characters of a line that are shown."""


class Page:
    """At most `limit` lines from line `first` (counted from 1) on, and about `PAGE` characters.

    `pieces` joined are the text, with `\\n` line ends. All are consumed, to count the lines.
    """

    def __init__(self, pieces: Iterable[str], first: int, limit: int) -> None:
        self.first = first
        self.lines: list[str] = []
        self._limit = limit
        self._room = PAGE
        self._breaks = 0
        self._shown, self._length = "", 0  # the line being read: its beginning, its whole length
        last = ""
        for piece in pieces:
            self._feed(piece)
            last = piece[-1:] or last
        if self._length and not self._full:
            self._take()
        self.total = self._breaks + (last not in ("", "\n"))

    @property
    def text(self) -> str:
        """`     7\\tthe line`, as `cat -n` prints it."""
        return "\n".join(f"{n:6}\t{line}" for n, line in enumerate(self.lines, self.first))

    @property
    def next(self) -> int | None:
        """The line to read on with."""
        after = self.first + len(self.lines)
        return after if after <= self.total else None

    @property
    def _full(self) -> bool:
        return len(self.lines) >= self._limit or self._room <= 0

    def _feed(self, piece: str) -> None:
        at = self._skip(piece)
        while not self._full:
            end = piece.find("\n", at)
            self._grow(piece, at, end if end >= 0 else len(piece))
            if end < 0:
                return
            self._take()
            self._breaks += 1
            at = end + 1
        self._breaks += piece.count("\n", at)

    def _skip(self, piece: str) -> int:
        """Where in `piece` the page begins or goes on; its end if the page comes later."""
        missing = self.first - 1 - self._breaks
        if missing <= 0:
            return 0
        if (here := piece.count("\n")) < missing:
            self._breaks += here
            return len(piece)
        at = 0
        for _ in range(missing):
            at = piece.index("\n", at) + 1
        self._breaks += missing
        return at

    def _grow(self, piece: str, start: int, end: int) -> None:
        if len(self._shown) < WIDTH:
            self._shown += piece[start : min(end, start + WIDTH - len(self._shown))]
        self._length += end - start

    def _take(self) -> None:
        line = self._shown
        if self._length > len(line):
            line += f" [... cut: this line has {self._length:,} characters]"
        self.lines.append(line)
        self._room -= len(line) + 8
        self._shown, self._length = "", 0
