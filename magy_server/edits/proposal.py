"""A proposal is a review whose text is only proposed, beside the live text, which goes on
changing."""

from __future__ import annotations

from collections.abc import Sequence

from magy_server.dataclass import dataclass
from magy_server.edits.agent_lines import Part, Review, joined, put_back
from magy_server.edits.lines import meet
from magy_server.edits.rebasing.diff import Block, blocks


@dataclass(frozen=True, slots=True)
class Place:
    """Where a part of the proposal belongs in the live text: instead of lines [start, end). `new`
    is what it proposes. With a `conflict` the person has changed these lines, which were
    `part.old`, and not to the same."""

    start: int
    end: int
    part: Part
    new: tuple[str, ...]
    conflict: bool = False


def place(review: Review, live: Sequence[str]) -> tuple[Place, ...]:
    """Returns the parts of a proposal that the live text does not have yet. What the person changed
    beside a part, or elsewhere, is no conflict; another insertion at the same point is one."""
    if list(live) == list(review.text):
        return ()
    changes = blocks(review.base, live)
    spots = _spots(review.parts)
    places: list[Place] = []
    for part, (a, b) in zip(review.parts, spots, strict=True):
        met = [change for change in changes if meet(change[:2], (a, b))]
        start, end = reach(changes, a, b)
        start = max(start, places[-1].end) if places else start
        new = tuple(review.text[part.start : part.end])
        if met and _same(review, live, (a, b), spots, changes):
            continue
        places.append(Place(start, max(start, end), part, new, conflict=bool(met)))
    return tuple(places)


def proposed(live: Sequence[str], places: Sequence[Place]) -> Review:
    """Returns the proposal made for this live text. A conflict keeps the lines as they were before
    the person changed them, so that it stays a conflict."""
    text = accepted(live, places)
    parts: list[Part] = []
    delta = 0
    for spot in places:
        old = spot.part.old if spot.conflict else tuple(live[spot.start : spot.end])
        start = spot.start + delta
        parts.append(Part(start, start + len(spot.new), old, spot.part.marks))
        delta += len(spot.new) - (spot.end - spot.start)
    return Review(text, joined(text, parts))


def within(places: Sequence[Place], start: int, end: int) -> list[Place]:
    """Returns the places whose new lines are in lines [start, end) of the proposal."""
    found = []
    delta = 0
    for spot in places:
        first = spot.start + delta
        if start <= first and first + len(spot.new) <= end:
            found.append(spot)
        delta += len(spot.new) - (spot.end - spot.start)
    return found


def accepted(live: Sequence[str], places: Sequence[Place]) -> list[str]:
    """Returns the live text with these places as proposed."""
    return put_back(live, [Part(spot.start, spot.end, spot.new, ()) for spot in places])


def _spots(parts: Sequence[Part]) -> list[tuple[int, int]]:
    """Their lines in the base."""
    found = []
    delta = 0
    for part in parts:
        found.append((part.start + delta, part.start + delta + len(part.old)))
        delta += len(part.old) - (part.end - part.start)
    return found


def _same(
    review: Review,
    live: Sequence[str],
    spot: tuple[int, int],
    spots: Sequence[tuple[int, int]],
    changes: Sequence[Block],
) -> bool:
    """Whether the person did there just what is proposed, there and whatever hangs together with
    it: a change of theirs may span several parts."""
    (low, high), grown = spot, True
    while grown:
        near = [(a, b) for a, b, _, _ in changes if meet((a, b), (low, high))]
        near += [spot for spot in spots if meet(spot, (low, high))]
        whole = min([low, *(a for a, _ in near)]), max([high, *(b for _, b in near)])
        grown, (low, high) = whole != (low, high), whole
    sizes = [part.end - part.start for part in review.parts]
    proposals = [(a, b, 0, size) for (a, b), size in zip(spots, sizes, strict=True)]
    first, last = reach(proposals, low, high)
    start, end = reach(changes, low, high)
    return list(review.text[first:last]) == list(live[start:end])


def reach(changes: Sequence[Block], start: int, end: int) -> tuple[int, int]:
    """Returns which lines [start, end) of the base became. Insertions at their edges do not belong
    to them, unless the range is empty."""
    empty = start == end
    first = _moved(changes, start, after=False, behind=not empty)
    return first, _moved(changes, end, after=True, behind=empty)


def _moved(changes: Sequence[Block], line: int, *, after: bool, behind: bool) -> int:
    """Where the boundary before `line` of the base is: `behind` what is inserted there, or before
    it. In the middle of a change it is at the start of that, or `after` it."""
    delta = 0
    for a, b, c, d in changes:
        if b < line or (b == line and (a < b or behind)):
            delta += (d - c) - (b - a)
        elif a < line:
            return (b + delta + (d - c) - (b - a)) if after else a + delta
    return line + delta
