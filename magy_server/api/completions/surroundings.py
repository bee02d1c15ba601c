"""This module takes the text around a cursor out of an open document, at a cost that does not grow
with the document."""

from __future__ import annotations

from collections.abc import Callable

from magy_server.api.positions import column
from magy_server.core.text.surrogates import whole
from magy_server.dataclass import dataclass
from magy_server.edits.text import line_end, plain

STEP = 16
"""Lines. The text before the cursor begins at a line whose number this divides, so that it begins
alike while one types: a model server that has read the last prompt goes on from there."""

Line = Callable[[int], str]
"""(number, from 0) -> the line with its end; "" beyond the last."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """`before` ends at the cursor and `after` begins there; every line end is a `\\n`. `first`: the
    number of the line with which `before` begins, from 0; `begins`: that is the beginning of the
    document. `end`: the line end that the document has here."""

    before: str
    after: str
    first: int
    begins: bool
    end: str

    @property
    def line_before(self) -> str:
        """Returns what stands before the cursor in its line."""
        return self.before.rpartition("\n")[2]

    @property
    def line_after(self) -> str:
        return self.after.partition("\n")[0]

    @property
    def within_line(self) -> bool:
        """Returns whether more than blanks follows the cursor in its line."""
        return bool(self.line_after.strip())

    @property
    def empty(self) -> bool:
        return not self.before.strip() and not self.after.strip()


def around(
    line: Line, number: int, character: int, encoding: str, *, before: int, after: int
) -> Surroundings:
    """Returns whole lines where there is room, at most `before` and `after` characters, around an
    LSP position. `encoding`: how the position counts characters."""
    here = line(number)
    at = column(here, character, encoding)
    return around_column(line, number, here, at, before=before, after=after)


def around_column(
    line: Line, number: int, here: str, at: int, *, before: int, after: int
) -> Surroundings:
    """The same at a string offset of a line, which then counts as `here`."""
    first, pieces = _backwards(line, number, here[:at], before)
    text = "".join(pieces)
    cut = text[-before:]
    begins = first == 0 and len(cut) == len(text)
    follows = _forwards(line, number, here[at:], after)
    ends = line_end(here) or line_end(line(max(number - 1, 0)))
    return Surroundings(whole(plain(cut)), whole(plain(follows)), first, begins, ends or "\n")


def _backwards(line: Line, number: int, here: str, most: int) -> tuple[int, list[str]]:
    pieces, room, first = [here], most - len(here), number
    while first > 0 and room > 0:
        above = line(first - 1)
        if len(above) > room:
            break
        first, room = first - 1, room - len(above)
        pieces.append(above)
    pieces.reverse()
    aligned = -(-first // STEP) * STEP
    if aligned - first <= (number - first) // 2:
        return aligned, pieces[aligned - first :]
    return first, pieces


def _forwards(line: Line, number: int, here: str, most: int) -> str:
    pieces, room = [here], most - len(here)
    while room > 0 and (below := line(number := number + 1)):
        if len(below) > room:
            break
        pieces.append(below)
        room -= len(below)
    return "".join(pieces)[:most]
