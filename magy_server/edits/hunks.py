"""A person sees a review as hunks; this module makes them, and does what the person decides about
them."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from magy_server.dataclass import dataclass
from magy_server.edits.agent_lines import PERSON, Mark, Part, Review, add, ends, joined, put_back

NEAR = 1
"""Parts with so many unchanged lines between them, or fewer, are one hunk."""


@dataclass(frozen=True, slots=True)
class ReviewHunk:
    """Lines [start, end) of the text, lines [base_start, base_end) of the base. `id` stays when the
    hunk moves. `parts`: which ones of the review these are."""

    id: str
    start: int
    end: int
    base_start: int
    base_end: int
    old: tuple[str, ...]
    new: tuple[str, ...]
    by: tuple[int, ...]
    """The numbers of the agents' changes that led to it."""
    amended: bool
    """The person has changed it since."""
    parts: range


def hunks(path: str, review: Review) -> list[ReviewHunk]:
    found: list[ReviewHunk] = []
    seen: Counter[bytes] = Counter()
    delta = 0
    for group in _near(review.parts):
        parts = [review.parts[number] for number in group]
        start, end = parts[0].start, parts[-1].end
        new = tuple(review.text[start:end])
        old = tuple(put_back(new, [part.moved(-start) for part in parts]))
        what = _digest(path, old, new)
        found.append(
            ReviewHunk(
                id=hashlib.sha1(what + b"%d" % seen[what]).hexdigest()[:12],
                start=start,
                end=end,
                base_start=start + delta,
                base_end=start + delta + len(old),
                old=old,
                new=new,
                by=tuple(dict.fromkeys(by for part in parts for by in part.agents)),
                amended=any(part.amended for part in parts),
                parts=group,
            )
        )
        seen[what] += 1
        delta += len(old) - len(new)
    return found


def _digest(path: str, old: Sequence[str], new: Sequence[str]) -> bytes:
    lines = (line.encode("utf-8", "surrogatepass") for line in (path, str(len(old)), *old, *new))
    return hashlib.sha1(b"".join(b"%d:%b" % (len(line), line) for line in lines)).digest()


def _near(parts: Sequence[Part]) -> Iterator[range]:
    first = 0
    for number in range(1, len(parts) + 1):
        if number == len(parts) or parts[number].start - parts[number - 1].end > NEAR:
            yield range(first, number)
            first = number


# --- decisions ------------------------------------------------------------------------------------


def accept(review: Review, chosen: Collection[int]) -> Review:
    """Returns the review with these parts (numbers) in the base, too."""
    kept = (part for number, part in enumerate(review.parts) if number not in chosen)
    return Review(review.text, joined(review.text, kept))


def reject(review: Review, chosen: Collection[int], *, spare: bool = False) -> Review:
    """Returns the review with what the base has in the place of these parts. With `spare`, the
    lines that the person wrote into them stay."""
    back: list[Part] = []
    kept: list[Part] = []
    delta = 0
    for number, part in enumerate(review.parts):
        if number in chosen:
            own = _own(review.text, part) if spare else ()
            add(put := list(part.old), own)
            back.append(replace(part, old=tuple(put)))
            delta += len(put) - (part.end - part.start)
            if number + 1 < len(review.parts) and not own:
                kept += _without_end(part, delta)
        else:
            kept.append(part.moved(delta))
    text = put_back(review.text, back)
    return Review(text, joined(text, kept))


def _without_end(part: Part, delta: int) -> Iterator[Part]:
    """What can only be put back with the lines that follow: they have given the last line of the
    base an end."""
    if part.old and not ends(part.old[-1]):
        at = part.end + delta
        yield Part(at - 1, at, part.old[-1:], (Mark(0, 1, part.marks[0].by),))


def _own(text: Sequence[str], part: Part) -> tuple[str, ...]:
    own = (mark for mark in part.marks if mark.by == PERSON)
    return tuple(
        line for mark in own for line in text[part.start + mark.start : part.start + mark.end]
    )


def cut(review: Review, start: int, end: int) -> tuple[Review, list[int]]:
    """The same review with its parts cut so that those in lines [start, end) are whole, and their
    numbers. Only to decide about these.

    Line n of a part is taken to have replaced line n of what it replaced, the last one all the
    rest; so to decide about all lines one by one is to decide about the part.
    """
    parts: list[Part] = []
    chosen: list[int] = []
    for part in review.parts:
        low, high = max(start, part.start), min(end, part.end)
        if part.start == part.end:
            if start <= part.start <= end:
                chosen.append(len(parts))
            parts.append(part)
            continue
        if low >= high:
            parts.append(part)
            continue
        for first, last in ((part.start, low), (low, high), (high, part.end)):
            if first < last:
                if first == low:
                    chosen.append(len(parts))
                parts.append(_piece(part, first - part.start, last - part.start))
    return Review(review.text, tuple(parts)), chosen


def _piece(part: Part, start: int, end: int) -> Part:
    removers = [Mark(0, 0, mark.by) for mark in part.marks if mark.start == mark.end]
    lines = [
        Mark(max(mark.start, start) - start, min(mark.end, end) - start, mark.by)
        for mark in part.marks
        if max(mark.start, start) < min(mark.end, end)
    ]
    old = part.old[start:] if end == part.end - part.start else part.old[start:end]
    return Part(part.start + start, part.start + end, old, (*removers, *lines))
