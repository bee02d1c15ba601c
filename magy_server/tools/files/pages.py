"""A page holds numbered lines of a long text, in bounded memory however long text or lines are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from magy_server.core.errors import ToolError

PAGE = 50_000
"""Characters of a page, give or take a line."""
WIDTH = 2_000
"""Characters of a line that are shown."""
PIECE = 16 * 1024
"""Characters in which a text is cut whose lines are known."""


def cut(text: str) -> Iterator[str]:
    return (text[start : start + PIECE] for start in range(0, len(text), PIECE))


def breaks_of(text: str) -> Sequence[int]:
    """Returns how many line ends each piece of `cut` has: to count them takes longer than all else
    that a page needs."""
    return [piece.count("\n") for piece in cut(text)]


class Page:
    """At most `limit` lines from line `first` (counted from 1) on, and about `PAGE` characters.

    `pieces` joined are the text, with `\\n` line ends. All are consumed, to count the lines.
    `breaks`: how many line ends each of them has, if that is known.
    """

    def __init__(
        self, pieces: Iterable[str], first: int, limit: int, breaks: Iterable[int] | None = None
    ) -> None:
        self.first = first
        self.lines: list[str] = []
        self.total = 0
        room = PAGE
        begun, length = "", 0  # of the line that goes on in the next piece
        counted = ((piece, piece.count("\n")) for piece in pieces)
        for piece, ends in counted if breaks is None else zip(pieces, breaks, strict=True):
            if not piece:
                continue
            full = len(self.lines) >= limit or room <= 0
            if full or self.total + ends < first - 1:  # nothing of it is shown
                self.total += ends
                begun, length = "", int(not piece.endswith("\n"))
                continue
            lines = piece.split("\n")
            if (before := min(first - 1 - self.total, len(lines) - 1)) > 0:
                self.total += before
                begun, length = "", 0
                del lines[:before]
            for number, text in enumerate(lines):
                if number:
                    room -= self._take(begun, length, limit, room)
                    begun, length = "", 0
                    if len(self.lines) >= limit or room <= 0:
                        self.total += len(lines) - 1 - number
                        length = len(lines[-1])
                        break
                begun += text[: WIDTH - len(begun)]
                length += len(text)
        if length:
            self._take(begun, length, limit, room)

    def _take(self, line: str, length: int, limit: int, room: int) -> int:
        """Counts a line that is whole, and returns the room that it takes in the page."""
        self.total += 1
        if self.total < self.first or len(self.lines) >= limit or room <= 0:
            return 0
        if length > len(line):
            line += f" [... cut: this line has {length:,} characters]"
        self.lines.append(line)
        return len(line) + 8

    @property
    def text(self) -> str:
        """`7\\tthe line`: like `cat -n`, without the blanks, which a model would pay for."""
        return "\n".join(f"{n}\t{line}" for n, line in enumerate(self.lines, self.first))

    @property
    def next(self) -> int | None:
        """The line to read on with."""
        after = self.first + len(self.lines)
        return after if after <= self.total else None

    @property
    def note(self) -> str:
        """Which lines these are; "" when they are all."""
        if self.next is None and self.first == 1:
            return ""
        on = f"; continue with offset={self.next}" if self.next else ""
        return f"\n[lines {self.first}-{self.first + len(self.lines) - 1} of {self.total}{on}]"

    def check(self, what: str) -> None:
        """Raises ToolError when the text, which is called so, ends before the page."""
        if self.first > max(self.total, 1):
            raise ToolError(
                f"{what} has only {self.total} lines; offset {self.first} is past the end."
            )
