"""This module aligns a hunk with a file in which not all of its lines are there as written.

Lines that are there (in their loosest form) vote for where the hunk begins, so that a large file
costs next to nothing; only the best few places are aligned line by line. All work is bounded.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from heapq import nlargest

from magy_server.dataclass import dataclass
from magy_server.edits.finding.normal_forms import squeeze, weight
from magy_server.edits.finding.source import Lines, Source
from magy_server.edits.placing.within_line import likeness, slipped

ALIKE = 0.6
"""A line less alike than this is another line."""
EXTENDED, BEGUN = 0.7, 0.9
"""How alike a line is that holds all of it, at least; and that begins with it."""
WORTH = 0.8
"""A line that is nearly the same counts so much beside one that is the same."""
EXACT = 1e-6
"""Of lines that are the same in their loosest form, this much prefers the one that is as
written."""
COMMON = 60
"""A line that the file has more often than this does not vote."""
PLACES = 12
"""The engine aligns so many places line by line."""
CELLS = 60_000
"""The engine compares at most so many pairs of lines, in all places together."""
VOTES = 200_000
LINES = 50_000
"""The engine compares one line with so many others."""
MISSING, EXTRA = 0.35, 0.7
"""What a line of the hunk costs that is not there, by its weight, and a line between."""


@dataclass(frozen=True, slots=True)
class Aligned:
    """Where a hunk could be. `at`: for each line of `old` that is not empty, by its index, the
    line of the file. `equal`: those of them that are the same in their loosest form."""

    at: dict[int, int]
    equal: frozenset[int]
    slips: frozenset[int]
    """Those of them that are the same but for a slip in one word."""
    score: float
    """The weight of what is there, less that of what is not."""
    gains: dict[int, float]
    """What each line of `old` that is there counts."""
    extra: int
    """The lines of the file between them, empty ones aside."""
    total: float
    """The weight of all lines."""
    solid: int
    """How many lines of `old` are not empty."""

    @property
    def faults(self) -> int:
        """How far it is from what was quoted, in half lines: two for a line that differs, is not
        there or stands between; one for a slip."""
        return 2 * (self.solid - len(self.equal) + self.extra) - len(self.slips)

    @property
    def firm(self) -> float:
        """The weight of the lines that are there as they are."""
        return sum(self.gains[n] for n in self.equal)

    @property
    def standing(self) -> float:
        """The score when a line that only resembles its own counts as one that is not there."""
        sure = self.firm + sum(self.gains[n] for n in self.slips)
        return sure - MISSING * (self.total - sure) - EXTRA * self.extra

    @property
    def first(self) -> int:
        return min(self.at.values())

    @property
    def last(self) -> int:
        return max(self.at.values())


@dataclass(frozen=True, slots=True)
class _Old:
    numbers: list[int]
    keys: list[str]
    weights: list[float]
    lines: Sequence[str]


def alignments(source: Source, old: Sequence[str]) -> list[Aligned]:
    """Returns the places where `old` could be, the best first, none overlapping a better one."""
    numbers = [n for n, line in enumerate(old) if line.strip()]
    keys = [squeeze(old[n]) for n in numbers]
    wanted = _Old(numbers, keys, [weight(key) for key in keys], old)
    file = source.form("spacing", blanks=False)
    found: list[Aligned] = []
    left = CELLS
    starts = _starts(file, wanted)
    for start in starts:
        slack = 3 + len(keys) // 3
        crowded = any(start != other and abs(start - other) < slack + len(keys) for other in starts)
        for by in (slack, 1):
            first, last = max(0, start - by), min(len(file.keys), start + len(keys) + by)
            left -= len(keys) * (last - first)
            if left < 0:
                break
            aligned = _align(source, file, wanted, first, last)
            if aligned is None:
                break
            found.append(aligned)
            # a better place nearby would hide this one: then it is looked at alone, too
            if not crowded and aligned.first >= file.numbers[max(0, start - 1)]:
                break
    found.sort(key=lambda one: (-one.score, one.first))
    best: list[Aligned] = []
    for one in found:
        if not any(one.first <= other.last and other.first <= one.last for other in best):
            best.append(one)
    return best


def _starts(file: Lines, old: _Old) -> list[int]:
    """Returns where `old` would begin in `file.keys`, by the votes of the lines that are there."""
    votes: dict[int, float] = {}
    left = VOTES
    for n, key in enumerate(old.keys):
        places = file.index.get(key, ())
        if 0 < len(places) <= COMMON and old.weights[n] and left > 0:
            left -= len(places)
            for at in places:
                votes[at - n] = votes.get(at - n, 0.0) + old.weights[n] / len(places)
    # what a place got, with what its neighbours got when a line more or less is between
    near = {
        at: count + sum(votes[at + by] * 0.5 for by in (-2, -1, 1, 2) if at + by in votes)
        for at, count in nlargest(200, votes.items(), key=lambda vote: vote[1])
    }
    chosen: list[int] = []
    for at in sorted(near, key=lambda at: (-near[at], at)):
        if all(abs(at - other) > min(2, len(old.keys) - 1) for other in chosen):
            chosen.append(at)
        if len(chosen) == PLACES:
            break
    return chosen


def _align(source: Source, file: Lines, old: _Old, first: int, last: int) -> Aligned | None:
    """Returns the best alignment with lines [first, last) of `file`."""
    keys = file.keys[first:last]
    there = [source.lines[number].strip() for number in file.numbers[first:last]]
    rows, columns = len(old.keys), len(keys)
    gain = [[0.0] * columns for _ in range(rows)]
    for i, key in enumerate(old.keys):
        line = old.lines[old.numbers[i]].strip()
        for j, other in enumerate(keys):
            if key == other:
                gain[i][j] = old.weights[i] * (1 + EXACT * (line == there[j]))
            elif old.weights[i] > 0.5:
                alike = likeness(line, there[j], ALIKE)
                if key in other:  # and something more, as a comment behind it
                    alike = max(alike, BEGUN if other.startswith(key) else EXTENDED)
                if alike >= ALIKE:
                    gain[i][j] = old.weights[i] * WORTH * (alike - ALIKE) / (1 - ALIKE)
    at = _path(gain, old.weights, columns)
    if not at:
        return None
    equal = frozenset(old.numbers[i] for i, j in at.items() if old.keys[i] == keys[j])
    lines = {old.numbers[i]: file.numbers[first + j] for i, j in at.items()}
    slips = frozenset(
        n
        for n, line in lines.items()
        if n not in equal and slipped(old.lines[n], source.lines[line])
    )
    counts = {i: min(gain[i][j], old.weights[i]) for i, j in at.items()}
    score = sum(counts.values())
    score -= sum(MISSING * old.weights[i] for i in range(rows) if i not in at)
    span = max(at.values()) - min(at.values()) + 1
    extra = span - len(at)
    gains = {old.numbers[i]: count for i, count in counts.items()}
    total = sum(old.weights)
    return Aligned(lines, equal, slips, score - EXTRA * extra, gains, extra, total, rows)


def _path(gain: list[list[float]], weights: Sequence[float], columns: int) -> dict[int, int]:
    """Which column each row is, ascending, for the greatest gain; columns left out cost something,
    but not before the first row and after the last."""
    rows = len(gain)
    best = [[0.0] * (columns + 1) for _ in range(rows + 1)]
    for i in range(rows - 1, -1, -1):
        free = i == 0
        row, below, cost = best[i], best[i + 1], MISSING * weights[i]
        row[columns] = below[columns] - cost
        for j in range(columns - 1, -1, -1):
            here = max(below[j] - cost, row[j + 1] - (0.0 if free else EXTRA))
            if gain[i][j]:
                here = max(here, gain[i][j] + below[j + 1])
            row[j] = here
    found: dict[int, int] = {}
    i = j = 0
    while i < rows and j < columns:
        here = best[i][j]
        if gain[i][j] and here == gain[i][j] + best[i + 1][j + 1]:
            found[i] = j
            i, j = i + 1, j + 1
        elif here == best[i + 1][j] - MISSING * weights[i]:
            i += 1
        else:
            j += 1
    return found


def with_empty(source: Source, old: Sequence[str], at: dict[int, int]) -> tuple[int | None, ...]:
    """`at` with the empty lines of `old` too: where there are as many of them in the file."""
    found: list[int | None] = [at.get(n) for n in range(len(old))]
    solid = [n for n, line in enumerate(old) if line.strip()]
    for a, b in itertools.pairwise(solid):
        before, after = found[a], found[b]
        if before is not None and after is not None and after - before == b - a:
            for n in range(1, b - a):
                if not source.lines[before + n].strip():
                    found[a + n] = before + n
        elif before is not None and after is None:
            beyond(source, found, old, a, 1)
        elif before is None and after is not None:
            taken = max((line for line in found[:a] if line is not None), default=-1)
            beyond(source, found, old, b, -1, taken)
    beyond(source, found, old, solid[0], -1)
    beyond(source, found, old, solid[-1], 1)
    return tuple(found)


def beyond(
    source: Source,
    found: list[int | None],
    old: Sequence[str],
    start: int,
    step: int,
    taken: int = -1,
) -> None:
    """Finds the empty lines of `old` that come next in one direction, as far as there are any
    behind line `taken`."""
    at = found[start]
    n = start + step
    while at is not None and 0 <= n < len(old) and not old[n].strip():
        at += step
        if not taken < at < len(source.lines) or source.lines[at].strip():
            return
        found[n] = at
        n += step


def similar_line(source: Source, line: str) -> int | None:
    """Returns the line of the file most like `line`, if any is like it."""
    from rapidfuzz import fuzz, process

    # lines much longer than that are left out by their length alone
    lines = source.form("indentation").keys[:LINES]
    found = process.extractOne(line.strip()[:500], lines, scorer=fuzz.ratio, score_cutoff=60)
    return found[2] if found else None
