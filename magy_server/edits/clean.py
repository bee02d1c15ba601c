"""What models add to the text they quote, taken off again: line numbers, fences, escapes."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from magy_server.edits.model import Hunk
from magy_server.edits.text import plain

_NUMBER = re.compile(r"[ \t]*L?(\d{1,7})([ ]?[|│→:]|\t|(?=\s*$))")
_FENCE = re.compile(r"\s*(`{3,}|~{3,})")
_ELISION = re.compile(
    r"\s*(?:(?:#|//|--|;+|%|/\*|<!--|\{/\*)\s*)?(?:\.{3,}|…)(?:.{0,60}(?:\.{3,}|…))?"
    r"\s*(?:\*/\}?|-->)?\s*"
)
_ESCAPED = re.compile(r"\\([\"'`\\/nt])")
_QUOTE = re.compile(r"\\([\"'`])")
_ENTITY = re.compile("&(lt|gt|amp|quot|apos|#39);")
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


def as_lines(hunk: Hunk) -> Wanted:
    """Of a `str_replace` the line ends stay literal: without one at the end of `old`, `new` ends
    within a line too."""
    old, new = plain(hunk.old).removeprefix("\ufeff"), plain(hunk.new).removeprefix("\ufeff")
    if hunk.lines or old.endswith("\n"):
        return Wanted(_cut(old), _cut(new), line=hunk.line)
    return Wanted(tuple(old.split("\n")), tuple(new.split("\n")), line=hunk.line)


def _cut(text: str) -> tuple[str, ...]:
    return tuple(text.removesuffix("\n").split("\n")) if text else ()


def cleaned(wanted: Wanted) -> Wanted:
    """Without a code fence around it and line numbers before it; itself if it has neither."""
    return _without_numbers(_without_fence(wanted))


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


def _without_numbers(wanted: Wanted) -> Wanted:
    found = [_NUMBER.match(line) for line in wanted.old]
    numbers = [int(one.group(1)) for one in found if one is not None]
    if len(numbers) < len(wanted.old) or not numbers:
        return wanted
    if any(after != before + 1 for before, after in itertools.pairwise(numbers)):
        return wanted
    marks = {one.group(2) for one in found if one is not None and one.group(2)}
    if len(marks) != 1:
        return wanted
    mark = marks.pop()
    rest = [line[one.end() :] for line, one in zip(wanted.old, found, strict=True) if one]
    pad = " " if mark[-1] in "|│:" and all(line[:1] in ("", " ") for line in rest) else ""
    return replace(
        wanted,
        old=tuple(line.removeprefix(pad) for line in rest),
        new=tuple(_unnumbered(line, mark, pad) for line in wanted.new),
        note="the line numbers in it were left out",
        line=wanted.line or numbers[0],
    )


def _unnumbered(line: str, mark: str, pad: str) -> str:
    found = _NUMBER.match(line)
    if found is None or found.group(2) not in (mark, ""):
        return line
    return line[found.end() :].removeprefix(pad)


def is_elision(line: str) -> bool:
    """A line that stands for others: `...`, alone, in a comment, or around a few words."""
    return len(line) < 200 and _ELISION.fullmatch(line) is not None


def unescaped(wanted: Wanted) -> Iterator[Wanted]:
    """Readings of a text that was escaped once too often, the mildest first."""
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


def _quotes(text: str) -> str:
    return _QUOTE.sub(r"\1", text)


def _escapes(text: str) -> str:
    return _ESCAPED.sub(lambda found: {"n": "\n", "t": "\t"}.get(found[1], found[1]), text)


def _entities(text: str) -> str:
    return _ENTITY.sub(lambda found: _ENTITIES[found[1]], text)


_READINGS: dict[str, Callable[[str], str]] = {
    "the backslashes before quotes": _quotes,
    "the backslash escapes": _escapes,
    "the HTML entities": _entities,
}
