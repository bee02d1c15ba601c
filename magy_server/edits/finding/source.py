"""`Source` is a text to be edited: its lines, where each begins, and its lines in normal forms,
each made only when a tier asks for it."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import accumulate

from magy_server.edits.finding.normal_forms import ASCII_FORMS, FORMS, squeeze
from magy_server.edits.placing.indent import unit_of
from magy_server.edits.text import Plain

SITES = 1000
"""Places of one text that are looked at; more are told as "many"."""
WORK = 20_000_000
"""Characters compared at most when one text is looked for everywhere: a search that finds itself
at every offset of a hostile text would be quadratic."""
FEW = 8
"""Runs that are looked for in the whole text before it is learnt where each line is."""
COUNTED = 8
"""Offsets whose line is counted out; for more of them, the text is cut into lines."""
STRETCH = 1000
"""Lines on either side of a place, and a little more, that tell how the text is indented there."""


def most_places(wanted: str) -> int:
    """How many places of `wanted` are looked at: SITES, fewer of a very long text."""
    return min(SITES, 2 + WORK // max(1, len(wanted)))


def places(text: str, wanted: str) -> Iterator[int]:
    """The offsets of `wanted`, overlapping ones too: each could be meant. At most one
    more than `most_places`, which tells that there may be others."""
    at = text.find(wanted)
    left = 1 + most_places(wanted)
    while at >= 0 and left:
        yield at
        left -= 1
        at = text.find(wanted, at + 1)


class Lines:
    """Some lines of a text in one normal form, to look for a run of them in linear time."""

    def __init__(self, keys: list[str], numbers: Sequence[int], many: bool = False) -> None:
        """`many`: so many runs are looked for that it is worth to learn where each line is."""
        self.many = many
        self.keys = keys
        self.numbers = numbers
        """The index in the text of each of `keys`."""
        self._runs: dict[str, list[int]] = {}

    @cached_property
    def _joined(self) -> str:
        return "\n" + "\n".join(self.keys) + "\n"

    @cached_property
    def _starts(self) -> list[int]:
        return [0, *accumulate(len(key) + 1 for key in self.keys)]

    @cached_property
    def index(self) -> dict[str, list[int]]:
        """Returns where each key is, as positions in `keys`."""
        found: dict[str, list[int]] = {}
        for at, key in enumerate(self.keys):
            found.setdefault(key, []).append(at)
        return found

    def runs(self, wanted: Sequence[str]) -> list[int]:
        """The positions in `keys` where `wanted` begins."""
        if not wanted:
            return []
        needle = "\n" + "\n".join(wanted) + "\n"
        if needle not in self._runs:
            known = self.many and len(self._runs) >= FEW
            found = self._by_index(wanted) if known else None
            if found is None:
                offsets = places(self._joined, needle)
                found = [bisect_left(self._starts, at) for at in offsets]
            self._runs[needle] = found
        return self._runs[needle]

    def _by_index(self, wanted: Sequence[str]) -> list[int] | None:
        """The same by what is known of each line; None where all lines are so common that a look
        at the whole text is no more work."""
        index, size = self.index, len(wanted)
        rarest = min(range(size), key=lambda n: len(index.get(wanted[n], ())))
        begun = index.get(wanted[rarest], ())
        if len(begun) > SITES:
            return None
        keys, wanted = self.keys, list(wanted)
        return [
            at - rarest
            for at in begun
            if at >= rarest and keys[at - rarest : at - rarest + size] == wanted
        ]


class Source:
    """`raw`, with its plain view cut into lines. Lines are counted from 0 here."""

    def __init__(self, raw: str, many: bool = False) -> None:
        self.raw = raw
        self.many = many
        """Much is looked for in it."""
        self.view = Plain(raw)
        self.text = self.view.text
        self.ended = self.text == "" or self.text.endswith("\n")
        """The last line has a line end."""
        self.ascii = self.text.isascii()
        self._forms: dict[tuple[str, bool], Lines] = {}
        self._units: dict[tuple[int, int], str] = {}
        self._counted = 0

    @cached_property
    def lines(self) -> list[str]:
        """Returns the lines, without their line ends."""
        lines = self.text.split("\n")
        if self.ended:
            lines.pop()
        return lines

    @cached_property
    def starts(self) -> list[int]:
        """The plain offset of each line, and the end of the text."""
        starts = [0, *accumulate(len(line) + 1 for line in self.lines)]
        if not self.ended:
            starts[-1] -= 1
        return starts

    def offset(self, line: int) -> int:
        """Where line `line` begins in `raw`; the number of lines: where the text ends."""
        return self.view.to_raw(self.starts[line])

    def row(self, offset: int) -> int:
        """How many lines end before plain offset `offset`. For a few offsets, they are counted:
        that is quicker than cutting the text into lines."""
        self._counted += 1
        if self._counted <= COUNTED:
            return self.text.count("\n", 0, offset)
        return bisect_right(self._breaks, offset)

    @cached_property
    def _breaks(self) -> list[int]:
        """The plain offset behind each line end."""
        return self.starts[1:] if self.ended else self.starts[1:-1]

    def alike(self, line: str) -> Iterator[str]:
        """The lines that are this one, white space aside."""
        return (self.lines[at] for at in self.form("spacing").index.get(squeeze(line), ()))

    def unit(self, first: int, last: int) -> str:
        """One level of indentation as the lines around [first, last) have it. Places near each
        other share the answer."""
        low = max(0, first // STRETCH - 1) * STRETCH
        high = (last // STRETCH + 2) * STRETCH
        if (low, high) not in self._units:
            self._units[low, high] = unit_of(self.lines[low:high])
        return self._units[low, high]

    @cached_property
    def usual_unit(self) -> str:
        """Returns what `unit` does, for all lines."""
        return unit_of(self.lines)

    def form(self, name: str, blanks: bool = True) -> Lines:
        """The lines in the normal form `name`; without `blanks`, those that hold something."""
        key = (name, blanks)
        if key in self._forms:
            return self._forms[key]
        if blanks:
            normal = (ASCII_FORMS if self.ascii else FORMS)[name]
            found = Lines(list(map(normal, self.lines)), range(len(self.lines)), self.many)
        else:
            keys = self.form(name).keys
            numbers = [n for n, line in enumerate(self.lines) if line and not line.isspace()]
            found = Lines([keys[n] for n in numbers], numbers, self.many)
        self._forms[key] = found
        return found

    @cached_property
    def closed(self) -> str:
        """The plain text with a line end before it and one at its end: whole lines are found in it
        by what stands between line ends. An offset in it is that of the line in `text`."""
        return f"\n{self.text}" if self.ended else f"\n{self.text}\n"
