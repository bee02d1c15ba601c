"""A rebase carries changes over from the text in which they were worked out to the text as it is
now.

Lines decide. Changes of different lines go together, also when the lines touch; of the same lines,
or two insertions at one point, only when both sides did the same. What comes out changes no byte
that neither side meant: a line end follows the live text unless it is what was changed.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import replace

from magy_server.dataclass import dataclass
from magy_server.edits.lines import Lines, meet
from magy_server.edits.model import TextChange
from magy_server.edits.rebasing.diff import Block, apply, blocks, trim
from magy_server.edits.rebasing.parts import Part, Span, parts_of, reaches, units


@dataclass(frozen=True, slots=True)
class Conflict:
    """Both sides changed the same lines, differently: the three versions of these lines, raw, and
    the number (from 1) of the first of them in the base and in the live text."""

    base_line: int
    live_line: int
    base: str
    live: str
    wanted: str


@dataclass(frozen=True, slots=True)
class Moved:
    """What became of one change. `changes` has offsets into the live text; it is empty when there
    is a conflict, when the live text has the change already (`same`), and when it is told with the
    change before, of the same line."""

    changes: tuple[TextChange, ...] = ()
    same: bool = False
    conflict: Conflict | None = None


@dataclass(frozen=True, slots=True)
class Rebased:
    """One `Moved` for each change, in their order."""

    moved: tuple[Moved, ...]

    @property
    def changes(self) -> tuple[TextChange, ...]:
        """All that can be applied, in order and not overlapping."""
        found = [change for moved in self.moved for change in moved.changes]
        return tuple(sorted(found, key=lambda change: (change.start, change.end)))

    @property
    def conflicts(self) -> tuple[Conflict, ...]:
        """Each once, however many changes it stopped."""
        return tuple(dict.fromkeys(moved.conflict for moved in self.moved if moved.conflict))


@dataclass(frozen=True, slots=True)
class Merged:
    """`text` has all of `mine`, and of `theirs` what is not in `conflicts`. `changes` lead from
    `mine` to it."""

    text: str
    changes: tuple[TextChange, ...]
    conflicts: tuple[Conflict, ...]


def rebase(base: str, live: str, changes: Sequence[TextChange]) -> Rebased:
    """Returns `changes` (of `base`, not overlapping, in any order) as changes of `live`.

    A change is taken whole or not at all. Changes of one line are one: what meets one of them
    meets all.
    """
    if base == live:
        return Rebased(tuple(Moved((change,)) for change in changes))
    old = Lines(base)
    wanted = units(old, changes)
    parts = [part for unit in wanted for part in unit.parts]
    outcomes = iter(_outcomes(old, Lines(live), parts))
    moved = [Moved()] * len(changes)
    for unit in wanted:
        found = [next(outcomes) for _ in unit.parts]
        whole = _together(found)
        for number in unit.numbers:
            moved[number] = whole
            whole = replace(whole, changes=())
    return Rebased(tuple(moved))


def merge3(base: str, mine: str, theirs: str) -> Merged:
    """Makes in `mine` what `theirs` changed of `base`; where both changed it, `mine` stays.

    An undo is one: the text after a change as base, the live text, the text before the change.
    """
    old = Lines(base)
    parts = parts_of(old, 0, old.count, Lines(theirs))
    found = (
        [Moved(_emit(old, old, part, part.start)) for part in parts]
        if base == mine
        else _outcomes(old, Lines(mine), parts)
    )
    whole = Rebased(tuple(found))
    return Merged(apply(mine, whole.changes), whole.changes, whole.conflicts)


# --- both sides ---------------------------------------------------------------------------------


def _outcomes(base: Lines, live: Lines, parts: Sequence[Part]) -> list[Moved]:
    """For each part, in order."""
    theirs = blocks(base.lines, live.lines)
    ends = [block[1] for block in theirs]
    met = _meetings(base, live, parts, theirs)
    found: list[Moved] = []
    for number, part in enumerate(parts):
        after = bisect_right(ends, part.start)
        shift = theirs[after - 1][3] - theirs[after - 1][1] if after else 0
        if part.only_ends:
            here = next((block for block in theirs[after : after + 1] if block[0] <= part.start),
                        None)  # fmt: skip
            found.append(_ends(base, live, part, here, shift))
        elif number in met:
            found.append(met[number])
        else:
            changes = _emit(base, live, part, part.start + shift)
            found.append(Moved(changes, same=not changes))
    return found


def _ends(base: Lines, live: Lines, part: Part, here: Block | None, shift: int) -> Moved:
    """A line end is put on the line that is now in the place (`here` the other side changed it);
    where there is none, it has gone with the line."""
    if here and here[1] - here[0] != here[3] - here[2]:
        return Moved()
    at = here[2] + part.start - here[0] if here else part.start + shift
    kept = replace(part, lines=live.lines[at : at + 1])
    changes = _emit(base, live, kept, at)
    return Moved(changes, same=not changes)


def _meetings(
    base: Lines, live: Lines, parts: Sequence[Part], theirs: Sequence[Block]
) -> dict[int, Moved]:
    """The parts that meet changes of the other side, by number: the same, or in conflict."""
    spans = reaches(theirs, base.lines, live.lines)
    solid = [number for number, part in enumerate(parts) if not part.only_ends]
    ours = _reaches(base, [parts[number] for number in solid])
    groups: list[tuple[list[int], list[Block]]] = []
    first = 0
    for number, (low, high) in zip(solid, ours, strict=True):
        part = parts[number]
        while first < len(theirs) and spans[first][1] < low:
            first += 1
        near = range(first, bisect_right(spans, high, lo=first, key=lambda span: span[0]))
        met = [
            theirs[at]
            for at in near
            if _meet(part, (low, high), theirs[at], spans[at], base, live.lines)
        ]
        if not met:
            continue
        if groups and groups[-1][1][-1] == met[0]:
            groups[-1][0].append(number)
            groups[-1][1].extend(met[1:])
        else:
            groups.append(([number], met))
    found: dict[int, Moved] = {}
    for numbers, met in groups:
        found |= dict.fromkeys(numbers, _verdict(base, live, [parts[n] for n in numbers], met))
    return found


def _reaches(base: Lines, parts: Sequence[Part]) -> list[Span]:
    """As `reaches`, for parts."""
    lines: list[str] = []
    found: list[Block] = []
    for part in parts:
        at = len(lines)
        lines += part.lines
        found.append((part.start, part.end, at, len(lines)))
    return reaches(found, base.lines, lines)


def _meet(
    part: Part, reach: Span, block: Block, span: Span, base: Lines, live: Sequence[str]
) -> bool:
    """Whether they do: where they are, or where they can be said to be as well when one of them
    deletes; two insertions of the same lines wherever they can be."""
    (start, end), (first, last) = part.span, block[:2]
    said = live[block[2] : block[3]]
    if start == end and first == last:
        apart = not reach[0] <= first <= reach[1] and not span[0] <= start <= span[1]
        return start == first or (not apart and sorted(part.lines) == sorted(said))
    gone = not part.lines or not said
    if meet(part.span, (first, last), base.count, gone):
        return True
    return gone and (meet(reach, (first, last)) or meet(part.span, span))


def _verdict(base: Lines, live: Lines, parts: Sequence[Part], theirs: Sequence[Block]) -> Moved:
    """Of parts and blocks that meet one another."""
    first, last = theirs[0], theirs[-1]
    start = min(parts[0].start, first[0])
    end = max(parts[-1].end, last[1])
    low, high = first[2] - (first[0] - start), last[3] + (end - last[1])
    text, said, at = "", [], start
    for part in parts:
        text += base.between(at, part.start) + part.text
        said += [*base.lines[at : part.start], *part.lines]
        at = part.end
    text += base.between(at, end)
    said += base.lines[at:end]
    if said == live.lines[low:high]:
        return Moved(same=True)
    return Moved(
        conflict=Conflict(
            start + 1, low + 1, base.between(start, end), live.between(low, high), text
        )
    )


def _together(found: Sequence[Moved]) -> Moved:
    """What became of a change that has these parts."""
    for moved in found:
        if moved.conflict:
            return Moved(conflict=moved.conflict)
    changes = tuple(change for moved in found for change in moved.changes)
    return Moved(changes, same=not changes)


# --- into the live text -------------------------------------------------------------------------


def _emit(base: Lines, live: Lines, part: Part, at: int) -> tuple[TextChange, ...]:
    """The part in the place of as many lines of `live`, from line `at`; none when they are so."""
    count = part.end - part.start
    start, end = live.starts[at], live.starts[at + count]
    last = at + count == live.count
    ended = live.ended if part.ended == base.ended else part.ended
    usual = live.usual or base.usual or next(filter(None, part.ends), "\n")
    ends = [_end(base, live, part, n, at) or usual for n in range(len(part.lines))]
    if ends and last and not ended:
        ends[-1] = ""
    text = "".join(line + mark for line, mark in zip(part.lines, ends, strict=True))
    if text and start == len(live.raw) and not live.ended:
        text = usual + text
    if not text and count and last and not ended and at:
        start -= len(live.ends[at - 1])
    change = trim(live.raw, TextChange(start, end, text))
    return (change,) if change.text or change.start < change.end else ()


def _end(base: Lines, live: Lines, part: Part, nth: int, at: int) -> str:
    """Of the nth new line: as wanted where that differs from the base, else as in `live`; "" where
    that has none."""
    wanted = part.ends[nth]
    paired = part.start + nth < part.end and base.ends[part.start + nth]
    if paired:
        return live.ends[at + nth] if wanted == paired else wanted
    turned = base.usual and live.usual and base.usual not in live.kinds
    return live.usual if turned and wanted == base.usual else wanted
