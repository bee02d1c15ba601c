"""Models add things to the text they quote; this module takes them off again: line numbers, fences,
escapes."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from dataclasses import replace
from functools import partial

from magy_server.dataclass import dataclass
from magy_server.edits.finding.normal_forms import squeeze, weight
from magy_server.edits.model import Hunk
from magy_server.edits.placing.within_line import likeness
from magy_server.edits.text import plain
from magy_server.regex import regex

_NUMBER = regex(r"[ \t]*L?(\d{1,7})([ ]?(?:[|│┃¦→⇥:\-]|->)|\t|(?=[ ])|$)")
_PADDING = 8
"""At most so many blanks may stand between a number and its line."""
_LOOKED = 50
"""So many lines of the text are compared with one that has a number."""
TELLING = 0.5
"""The weight of a line that is more than a brace."""
ALIKE = 0.6
"""A line less alike than this is not what another one became."""
_FENCE = regex(r"\s*(`{3,}|~{3,})")
_ELISION = regex(
    r"\s*(?:(?:#|//|--|;+|%|/\*|<!--|\{/\*)\s*)?(?:\.{3,}|…)(?:.{0,60}(?:\.{3,}|…))?"
    r"\s*(?:\*/\}?|-->)?\s*"
)
_ESCAPED = regex(r"\\([\"'`\\/nt])")
_ESCAPES = {"n": "\n", "t": "\t"}
_QUOTE = regex(r"\\([\"'`])")
_ENTITY = regex("&(lt|gt|amp|quot|apos|#39);")
_ENTITIES = {"lt": "<", "gt": ">", "amp": "&", "quot": '"', "apos": "'", "#39": "'"}


@dataclass(frozen=True, slots=True)
class Wanted:
    """A hunk as lines without their line ends, and where it says it is."""

    old: tuple[str, ...]
    new: tuple[str, ...]
    note: str = ""
    """What was taken off, for the model."""
    line: int | None = None
    """The line, from 1, that its numbers name."""
    old_ended: bool = True
    new_ended: bool = True
    """Whether the last line of each has a line end, where that is meant to the letter."""


def as_lines(hunk: Hunk) -> Wanted:
    """Of a `str_replace` the line ends stay literal: without one at the end of `old`, `new` ends
    within a line too."""
    old, new = plain(hunk.old).removeprefix("\ufeff"), plain(hunk.new).removeprefix("\ufeff")
    if hunk.lines:
        ended = old.endswith("\n"), not new or new.endswith("\n")
        return Wanted(_cut(old), _cut(new), "", hunk.line, *ended)
    if old.endswith("\n"):
        return Wanted(_cut(old), _cut(new), line=hunk.line)
    return Wanted(tuple(old.split("\n")), tuple(new.split("\n")), line=hunk.line)


def _cut(text: str) -> tuple[str, ...]:
    return tuple(text.removesuffix("\n").split("\n")) if text else ()


Alike = Callable[[str], Iterable[str]]
"""The lines of the text that are like this one, white space aside."""


def cleaned(wanted: Wanted, alike: Alike) -> Wanted:
    """Returns the text without a code fence around it and line numbers before it; the same text if
    it has neither."""
    return _without_numbers(_without_fence(wanted), alike)


def _without_fence(wanted: Wanted) -> Wanted:
    sides = [_inside_fence(side) for side in (wanted.old, wanted.new)]
    old, new = sides[0], sides[1] if sides[1] is not None else wanted.new
    if old is None:
        return wanted
    return replace(wanted, old=old, new=new, note="the code fence around it was left out")


def _inside_fence(lines: Sequence[str]) -> tuple[str, ...] | None:
    if len(lines) < 3:
        return None
    opening = _FENCE.match(lines[0])
    if opening is None or lines[-1].strip() != opening.group(1):
        return None
    return tuple(lines[1:-1])


@dataclass(frozen=True, slots=True)
class _Numbers:
    """The numbers before the lines: the sign behind them, the first and the last."""

    marks: frozenset[str]
    first: int
    last: int

    @property
    def sure(self) -> bool:
        """Numbers with blanks or dashes behind them begin lines of many kinds."""
        return not self.marks <= {"", "-"}


def _without_numbers(wanted: Wanted, alike: Alike) -> Wanted:
    numbers = _numbers(wanted.old)
    if numbers is None:
        return wanted
    rest = [_unnumbered(line, numbers.marks) for line in wanted.old]
    pad = _pad(rest, alike, numbers.sure)
    if pad is None:
        return wanted
    return replace(
        wanted,
        old=tuple(_unpadded(line, pad) for line in rest),
        new=_new_without(wanted, numbers, pad),
        note="the line numbers in it were left out",
        line=wanted.line or numbers.first,
    )


def numbered_anew(old: Sequence[str], new: Sequence[str]) -> str | None:
    """The first line of `new` when all of them have line numbers, as tools show them, and `old` has
    none though it has such lines."""
    numbers = _numbers(new)
    if numbers is None or not numbers.sure or _numbers(old) is not None:
        return None
    bare = [squeeze(_unnumbered(line, numbers.marks)) for line in new]
    if len(bare) < 2 and numbers.marks == {":"}:
        return None  # a key
    known = {key for key in map(squeeze, old) if weight(key) > TELLING}
    pairs = zip(filter(None, map(squeeze, old)), filter(None, bare), strict=False)
    if known.isdisjoint(bare) and not any(likeness(a, b) >= ALIKE for a, b in pairs):
        return None
    return next(line for line in new if line.strip())


def _pad(rest: Sequence[str], alike: Alike, sure: bool) -> int | None:
    """How many blanks behind the numbers are not of the lines: `3| x` is ` x` where numbers are
    glued to their lines, and `x` where they are not. Only the lines that are there tell. None:
    these are no numbers of lines."""
    filled = [line.rstrip() for line in rest if line.strip()]
    margin = min(_PADDING, min(map(_blanks, filled), default=0))
    votes: Counter[int] = Counter()
    for line in filled:
        found = (there.rstrip() for there in itertools.islice(alike(line), _LOOKED))
        votes.update({len(line) - len(there) for there in found if line.endswith(there)})
    likely = min(1, margin) if sure else 0
    best = max(range(margin + 1), key=lambda pad: (votes[pad], pad == likely, -pad))
    return best if sure or votes[best] == len(filled) else None


def _numbers(lines: Sequence[str]) -> _Numbers | None:
    """One before each line, in order; an empty line may be without, and `...` stands for any number
    of them."""
    marks: set[str] = set()
    first = due = None
    last = 0
    for line in lines:
        found = _NUMBER.match(line)
        if found is None:
            if line.strip() and not is_elision(line):
                return None
            due = due + 1 if due is not None and not line.strip() else None
            continue
        number = int(found[1])
        if due is not None and number != due:
            return None
        due, last = number + 1, number
        if first is None:
            first = number
        if line[found.end() :].strip() or found[2]:
            marks.add(found[2])
    if first is None or not marks or (len(marks) > 1 and marks != {":", "-"}):
        return None
    if marks <= {"", "-"} and len(lines) < 2:
        return None
    return _Numbers(frozenset(marks), first, last)


def _unnumbered(line: str, marks: Set[str]) -> str:
    found = _NUMBER.match(line)
    if found is None or not (found[2] in marks or found.end() == len(line.rstrip())):
        return line
    return line[found.end() :]


def _new_without(wanted: Wanted, numbers: _Numbers, pad: int) -> tuple[str, ...]:
    """Each line may have a number or none; where none has its sign, numbers are what they say, as
    are those that are not of these lines, and all if they are in no order."""
    marks, last = numbers.marks, numbers.last + len(wanted.new)
    found = [_NUMBER.match(line) for line in wanted.new]
    found = [one if one and numbers.first <= int(one[1]) <= last else None for one in found]
    order = [int(one[1]) for one in found if one and one[2] in marks]
    signed = any(one and one[2] in marks and one[2] for one in found)
    if order != sorted(order) or not (signed or "" in marks):
        return wanted.new
    bare = [
        _unnumbered(line, marks) if one else line
        for line, one in zip(wanted.new, found, strict=True)
    ]
    return tuple(
        line if line == without else _unpadded(without, pad)
        for line, without in zip(wanted.new, bare, strict=True)
    )


def _blanks(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _unpadded(line: str, pad: int) -> str:
    return line[min(pad, _blanks(line)) :]


def is_elision(line: str) -> bool:
    """Returns whether a line stands for others: `...`, alone, in a comment, or around a few
    words."""
    return len(line) < 200 and _ELISION.fullmatch(line) is not None


def unescaped(wanted: Wanted) -> Iterator[Wanted]:
    """Returns readings of a text that was escaped once too often, the mildest first."""
    seen = {wanted.old}
    for name, reading in _READINGS.items():
        old = _lines(reading, wanted.old)
        if old not in seen:
            seen.add(old)
            new = _lines(reading, wanted.new)
            if old[-1:] == new[-1:] == ("",) and wanted.old[-1]:
                old, new = old[:-1], new[:-1]  # the line end of the last line was escaped too
            yield replace(wanted, old=old, new=new, note=f"{name} in it were undone")


def _lines(reading: Callable[[str], str], lines: Sequence[str]) -> tuple[str, ...]:
    return tuple(reading("\n".join(lines)).split("\n")) if lines else ()


_READINGS: dict[str, Callable[[str], str]] = {
    "the backslashes before quotes": partial(_QUOTE.sub, r"\1"),
    "the backslash escapes": partial(_ESCAPED.sub, lambda found: _ESCAPES.get(found[1], found[1])),
    "the HTML entities": partial(_ENTITY.sub, lambda found: _ENTITIES[found[1]]),
}
