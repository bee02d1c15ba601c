"""This module says line by line what changes come to: the parts that a rebase moves or finds in
conflict."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field
from itertools import cycle, takewhile

from magy_server.dataclass import dataclass
from magy_server.edits.lines import Lines, lines_of
from magy_server.edits.model import TextChange
from magy_server.edits.rebasing.diff import Block, apply, blocks

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Part:
    """Lines [start, end) of the base become `lines` with `ends`. `only_ends`: one line keeps what
    it says. `ended`: whether the text is to end with a line end; as in the base for a part that
    does not end the wanted text."""

    start: int
    end: int
    lines: Sequence[str]
    ends: Sequence[str]
    ended: bool
    only_ends: bool = False

    @property
    def span(self) -> Span:
        return self.start, self.end

    @property
    def text(self) -> str:
        return "".join(line + end for line, end in zip(self.lines, self.ends, strict=True))


@dataclass(slots=True)
class Unit:
    """Changes that share lines [start, end) of the base."""

    start: int
    end: int
    numbers: list[int]
    changes: list[TextChange]
    parts: list[Part] = field(default_factory=list)


def units(base: Lines, changes: Sequence[TextChange]) -> list[Unit]:
    found: list[Unit] = []
    order = sorted(range(len(changes)), key=lambda n: (changes[n].start, changes[n].end))
    for number in order:
        change = changes[number]
        start, end = (base.at(offset) for offset in lines_of(base.raw, change))
        last = found[-1] if found else None
        if last and (start < last.end or start == last.end == base.count):
            last.end = max(last.end, end)
            last.numbers.append(number)
            last.changes.append(change)
        else:
            found.append(Unit(start, end, [number], [change]))
    for unit in found:
        wanted = apply(base.raw, unit.changes, base.starts[unit.start], base.starts[unit.end])
        unit.parts = parts_of(base, unit.start, unit.end, Lines(wanted))
    return found


def parts_of(base: Lines, start: int, end: int, wanted: Lines) -> list[Part]:
    """Lines [start, end) of the base become `wanted`."""
    final = base.ended
    if end == base.count:
        final = wanted.ended if wanted.count else start == 0 or bool(base.ends[start - 1])
    found: list[Part] = []
    at, there = start, 0
    differing = blocks(base.lines[start:end], wanted.lines)
    size = end - start
    for a, b, c, d in [*differing, (size, size, wanted.count, wanted.count)]:
        for line, new in zip(range(at, start + a), range(there, c), strict=True):
            if _end_changed(base, line, wanted, new, end):
                pair = wanted.lines[new : new + 1], wanted.ends[new : new + 1]
                ended = final if new == wanted.count - 1 else base.ended
                found.append(Part(line, line + 1, *pair, ended, only_ends=True))
        if a < b or c < d:
            ended = final if d == wanted.count else base.ended
            found.append(Part(start + a, start + b, wanted.lines[c:d], wanted.ends[c:d], ended))
        at, there = start + b, d
    return found


def _end_changed(base: Lines, line: int, wanted: Lines, new: int, end: int) -> bool:
    """Whether a line that says the same has another end on purpose, not because it is the last of
    one text and not of the other."""
    old_end, new_end = base.ends[line], wanted.ends[new]
    last = line == base.count - 1, end == base.count and new == wanted.count - 1
    return old_end != new_end and (last[0] == last[1] or bool(old_end and new_end))


def reaches(found: Sequence[Block], before: Sequence[str], after: Sequence[str]) -> list[Span]:
    """For each block, all lines of `before` that it can be said to be about: which of two equal
    lines was deleted, nobody can tell from the texts."""
    spans: list[Span] = []
    for number, block in enumerate(found):
        floor = found[number - 1][1] if number else 0
        limit = found[number + 1][0] if number + 1 < len(found) else len(before)
        start, end, c, d = block
        moving = after[c:d] if start == end else before[start:end] if c == d else ()
        down = _repeated((before[n] for n in range(end, limit)), moving)
        up = _repeated((before[n] for n in range(start - 1, floor - 1, -1)), moving[::-1])
        spans.append((start - up, end + down))
    return spans


def _repeated(lines: Iterable[str], moving: Sequence[str]) -> int:
    """How many of the lines say again what moves: so many further, it is the same change."""
    pairs = zip(lines, cycle(moving), strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
