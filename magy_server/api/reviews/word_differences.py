"""This module finds the words that differ within changed lines, for editors that show them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from magy_server.api.positions import split_lines, units
from magy_server.api.wire.reviews import Word
from magy_server.edits.placing.within_line import pairs
from magy_server.edits.rebasing.diff import Block, blocks
from magy_server.regex import regex

MOST_LINES, LONGEST = 40, 2000
"""Lines of a hunk, and characters of a line, beyond which nobody looks at words any more."""
_PART = regex(r"\w+|\s+|.", re.DOTALL)
_ENDING = regex(r"[\s)\]}]")
"""What belongs to the words before it."""


def words(old: str, new: str, encoding: str) -> list[Word]:
    """The words that differ between each line and the one that it became; nothing for lines that
    have little in common with any of the other side."""
    before, after = _lines(old), _lines(new)
    if max(len(before), len(after)) > MOST_LINES:
        return []
    found: list[Word] = []
    became = pairs(before, after)
    if len(before) == len(after):  # those that are too unlike to be paired stand beside each other
        left = set(range(len(before))) - {*became, *became.values()}
        became = {**became, **{number: number for number in left}}
    for number, other in sorted(became.items()):
        a, b = before[number], after[other]
        if a != b and max(len(a), len(b)) <= LONGEST:
            found += _differing(number, a, other, b, encoding)
    return found


def _lines(text: str) -> list[str]:
    lines = [line.rstrip("\r\n") for line in split_lines(text)]
    return lines[:-1] if lines[-1] == "" else lines


def _differing(number: int, old: str, other: int, new: str, encoding: str) -> Iterator[Word]:
    before, after = _PART.findall(old), _PART.findall(new)
    found = blocks(before, after)
    ends = [*(block[0] for block in found[1:]), len(before)]
    settled = [_settled(*one, before, after) for one in zip(found, ends, strict=True)]
    differing = _joined(settled, before)
    kept = (p for n, p in enumerate(before) if not any(a <= n < b for a, b, _, _ in differing))
    if not "".join(kept).strip():
        return  # one line in the place of another
    for first, last, start, end in differing:
        for side, line, parts, a, b in (
            ("old", number, before, first, last),
            ("new", other, after, start, end),
        ):
            if a < b:
                at, to = (units("".join(parts[:n]), encoding) for n in (a, b))
                yield Word.model_validate({"side": side, "line": line, "start": at, "end": to})


def _settled(block: Block, until: int, before: Sequence[str], after: Sequence[str]) -> Block:
    """Where words were only added or taken away, several places may say the same: `, 2)` behind a
    bracket is `), 2` before it. That one is taken which does not begin with an end. `until` is
    where the next block begins in `before`."""
    a, b, c, d = block
    if (a == b) == (c == d):
        return block
    parts, start, end = (after, c, d) if a == b else (before, a, b)
    by = 0
    while by < until - b and parts[start + by] == parts[end + by]:
        if not _ENDING.match(parts[start + by]):
            break
        by += 1
    return (a + by, b + by, c + by, d + by)


def _joined(found: Sequence[Block], before: Sequence[str]) -> list[Block]:
    """With what has only a blank between it as one."""
    joined: list[Block] = []
    for block in found:
        if joined and not "".join(before[joined[-1][1] : block[0]]).strip():
            block = (joined[-1][0], block[1], joined[-1][2], block[3])
            joined.pop()
        joined.append(block)
    return joined
