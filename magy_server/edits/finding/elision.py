"""`...` in a hunk stands for lines that stay; this module finds where the parts between are."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from magy_server.edits.finding.align import beyond
from magy_server.edits.finding.normal_forms import FORMS, depth
from magy_server.edits.finding.source import SITES, Source
from magy_server.edits.placing.decorations import Wanted, is_elision
from magy_server.edits.placing.splice import Match

STARTS = 50
"""Places of the first part beyond which none is looked at."""
BLOCK = 4000
"""The engine looks through so many lines of a block for its end."""
Segment = tuple[int, tuple[str, ...]]
"""The index in `old` of its first line, and its lines."""


def elided(source: Source, wanted: Wanted) -> list[Match]:
    """Returns where the parts between the elisions are, in order. `new` must have the same
    elisions."""
    marks = [n for n, line in enumerate(wanted.old) if is_elision(line)]
    if len(marks) != sum(is_elision(line) for line in wanted.new):
        return []
    parts = _segments(wanted.old, marks)
    if not parts or len(parts) > 50:
        return []
    # the elisions themselves must pair up in a diff, however differently they are written
    left = iter([wanted.old[n] for n in marks])
    new = tuple(next(left) if is_elision(line) else line for line in wanted.new)
    wanted = replace(wanted, new=new)
    for form in FORMS:
        if found := _in_order(source, parts, form):
            return [
                Match("elision", wanted, at, elided=frozenset(marks))
                for at in (_placed(source, wanted.old, parts, starts) for starts in found)
            ]
    return []


def _segments(old: Sequence[str], marks: Sequence[int]) -> list[Segment]:
    edges = [-1, *marks, len(old)]
    found = []
    for before, after in pairwise(edges):
        first, last = before + 1, after
        while first < last and not old[first].strip():
            first += 1
        while first < last and not old[last - 1].strip():
            last -= 1
        if first < last:
            found.append((first, tuple(old[first:last])))
    return found


def _in_order(source: Source, parts: Sequence[Segment], form: str) -> list[list[int]]:
    """Every way to place the parts one after the other: for each place of the first, the others
    at the only place each has after it: within the block that the first begins, else within the
    block that it is in, else anywhere. None, if there are too many places to tell."""
    normal, lines = FORMS[form], source.form(form)
    runs = [lines.runs([normal(line) for line in part]) for _, part in parts]
    if not all(runs) or len(runs[0]) > STARTS or any(len(places) > SITES for places in runs):
        return []
    found = []
    for start in runs[0]:
        starts = [start]
        limits = (_block_end(source, start), _block_end(source, start, around=True))
        for (_, before), places in zip(parts, runs[1:], strict=False):
            after = places[bisect_left(places, starts[-1] + len(before)) :]
            near = (after[: bisect_left(after, limit)] for limit in limits)
            nearest = next(filter(None, near), after)
            if len(nearest) != 1:
                break
            starts.append(nearest[0])
        else:
            found.append(starts)
    return found


def _block_end(source: Source, start: int, around: bool = False) -> int:
    """Behind the block that line `start` begins, or the one `around` it: up to a line that is
    indented less, or as little and is not what closes it. At most BLOCK lines."""
    level = depth(source.lines[start]) - around
    last = min(start + BLOCK, len(source.lines))
    for n in range(start + 1, last):
        line = source.lines[n]
        if line.strip() and depth(line) <= level:
            return n + 1 if line.lstrip()[0] in ")]}" or line.strip() == "end" else n
    return last


def _placed(
    source: Source, old: Sequence[str], parts: Sequence[Segment], starts: Sequence[int]
) -> tuple[int | None, ...]:
    at: list[int | None] = [None] * len(old)
    for (first, part), start in zip(parts, starts, strict=True):
        for n in range(len(part)):
            at[first + n] = start + n
        beyond(source, at, old, first, -1)
        beyond(source, at, old, first + len(part) - 1, 1)
    return tuple(at)
