"""Several hunks may change one text: this module finds whether they meet, and turns a hunk that was
made on top of others into a change of the text itself."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Sequence

from magy_server.edits.lines import line_start
from magy_server.edits.model import TextChange
from magy_server.edits.rebasing.diff import apply
from magy_server.edits.text import BREAK

Range = tuple[int, int]


def whole_lines(raw: str, change: TextChange, within: Range) -> Range:
    """The lines that a change changes, as far as they are `within`; an insertion of lines between
    two lines changes neither."""
    start, end = change.start, change.end
    if start == end and _between_lines(raw, change):
        return start, end
    first = line_start(raw, start)
    stop = BREAK.search(raw, end)
    last = stop.start() if stop else len(raw)
    if end > start and raw[end - 1] in "\r\n":
        last = end
    return min(start, max(first, within[0])), max(end, min(last, within[1]))


def _between_lines(raw: str, change: TextChange) -> bool:
    starts_line = change.start == 0 or raw[change.start - 1] in "\r\n"
    ends_line = change.start == len(raw) or raw[change.start] in "\r\n"
    return (starts_line and change.text.endswith(("\n", "\r"))) or (
        ends_line and change.text.startswith(("\n", "\r"))
    )


def _overlap(x: Range, y: Range) -> bool:
    """Returns whether they have a character in common, or an insertion of the one is inside the
    other."""
    if x[0] == x[1] or y[0] == y[1]:
        return x[0] < y[0] < x[1] or y[0] < x[0] < y[1]
    return max(x[0], y[0]) < min(x[1], y[1])


class Claims:
    """Which ranges of a text are whose. Those of two owners never meet, so that they stand in
    order and one is found by bisection."""

    def __init__(self) -> None:
        self._ranges: list[tuple[int, int, int]] = []
        self._changes: dict[TextChange, int] = {}

    @classmethod
    def of(cls, done: Iterable[tuple[int, Iterable[Range], Iterable[TextChange]]]) -> Claims:
        """Makes the claims of several owners. Where two of them meet, the first one has the
        range."""
        found = cls()
        ranges: list[tuple[int, int, int]] = []
        for owner, mine, changes in done:
            ranges += [(start, end, owner) for start, end in mine]
            found._changes |= dict.fromkeys(changes, owner)
        for start, end, owner in sorted(ranges):
            last = found._ranges[-1] if found._ranges else (-1, -1, owner)
            if _overlap(last[:2], (start, end)):
                found._ranges[-1] = last[0], max(last[1], end), min(last[2], owner)
            else:
                found._ranges.append((start, end, owner))
        return found

    def add(self, owner: int, ranges: Iterable[Range], changes: Iterable[TextChange] = ()) -> None:
        """`ranges`, which meet none of another owner; `changes`: those that nobody else may make
        as well."""
        for start, end in _united(ranges):
            insort(self._ranges, (start, end, owner))
        for change in changes:
            self._changes.setdefault(change, owner)

    def met(self, ranges: Iterable[Range], changes: Iterable[TextChange] = ()) -> int | None:
        """The first owner whose ranges these meet, or who makes one of these changes."""
        owners = [self._changes[change] for change in changes if change in self._changes]
        for one in ranges:
            owners += self._near(one)
        return min(owners, default=None)

    def _near(self, one: Range) -> Iterator[int]:
        at = bisect_left(self._ranges, (one[0],))
        for start, end, owner in self._ranges[max(0, at - 1) : at]:
            if _overlap((start, end), one):
                yield owner
        while at < len(self._ranges) and self._ranges[at][0] < one[1]:
            start, end, owner = self._ranges[at]
            if _overlap((start, end), one):
                yield owner
            at += 1


def _united(ranges: Iterable[Range]) -> list[Range]:
    """Those that meet as one: the changes of one line, say."""
    found: list[Range] = []
    for start, end in sorted(ranges):
        if found and _overlap(found[-1], (start, end)):
            found[-1] = found[-1][0], max(found[-1][1], end)
        elif not found or found[-1] != (start, end):
            found.append((start, end))
    return found


Owned = tuple[TextChange, int]
"""A change and the hunk it is of."""


def brought_back(
    earlier: Sequence[Owned], later: Sequence[TextChange], hunk: int, text: str
) -> list[Owned]:
    """`later`, worked out in the `text` that `earlier` (in order, not overlapping) made of another,
    as a change of that other text, together with `earlier`. Where it meets earlier changes, they
    become one, which belongs to the earliest of their hunks."""
    if not later:
        return list(earlier)
    start, end = later[0].start, later[-1].end
    middle = apply(text, later, start, end)
    before: list[Owned] = []
    after: list[Owned] = []
    head, tail, owner = start, end, hunk
    shift = behind = 0
    for one, owned in earlier:
        begin = one.start + behind
        behind += len(one.text) - (one.end - one.start)
        if begin + len(one.text) < start:
            before.append((one, owned))
            shift = behind
        elif begin > end:
            after.append((one, owned))
            behind -= len(one.text) - (one.end - one.start)
        else:
            head, tail = min(head, begin), max(tail, begin + len(one.text))
            owner = min(owner, owned)
    joined = text[head:start] + middle + text[end:tail]
    return [*before, (TextChange(head - shift, tail - behind, joined), owner), *after]
