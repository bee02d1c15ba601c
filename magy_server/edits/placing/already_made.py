"""This module notices an edit that was made before: the lines that it would add stand there
already, at or around their place, outside what the hunk quotes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice

from magy_server.edits.finding.normal_forms import depth, squeeze
from magy_server.edits.lines import line_after, line_start
from magy_server.edits.model import TextChange
from magy_server.edits.placing.splice import Match
from magy_server.edits.rebasing.diff import Block, blocks
from magy_server.edits.text import plain
from magy_server.regex import regex

LETTERS = 2
"""A line that says something has so many letters and digits."""
STEPS = 50
"""The search passes so many empty lines."""
_EVERYWHERE = regex(
    r"\W*(?:return|break|continue|else|pass|then|begin|try|finally|default|yield|next|exit|do"
    r"|end\w*|esac|done)\W*"
)


def made_before(
    raw: str, changes: Sequence[TextChange], quoted: Callable[[int], bool]
) -> list[TextChange]:
    """Returns those of `changes` whose lines are there. `quoted`: whether the hunk shows the line
    of `raw` that begins at an offset as it is, and so knows of it: such a line is not one of those
    that the edit adds, nor is what stands beyond it where they would go."""
    return [change for change in changes if _is_there(raw, change, quoted)]


def _is_there(raw: str, change: TextChange, quoted: Callable[[int], bool]) -> bool:
    at, text = change.start, plain(change.text)
    if at != change.end or not text.strip():
        return False
    if text.startswith("\n") and line_start(raw, at) != at:
        at = line_after(raw, at)  # at the end of a line: it is of the gap below that
        text = f"{text[1:]}\n"
    elif not text.endswith("\n") or line_start(raw, at) != at:
        return False
    lines = text.removesuffix("\n").split("\n")
    if not any(_says(_key(line)) for line in lines):
        return False
    return any(_stands_at(raw, slid, quoted) for slid in _slid(raw, at, lines))


def _stands_at(raw: str, slid: Slid, quoted: Callable[[int], bool]) -> bool:
    """Returns whether the lines are there, below or above, with no line between that the hunk
    shows."""
    at, lines, past = slid
    wanted = [_key(line) for line in lines if past or line.strip()]
    for down in (True, False):
        there = list(islice(_beside(raw, at, down, past, quoted), len(wanted)))
        if wanted == (there if down else there[::-1]):
            return True
    return False


def wrapped_before(lines: Sequence[str], match: Match) -> list[bool]:
    """Returns of each change of a hunk whether it puts lines around others that stand around
    them."""
    known = set(match.known)
    return [_wraps(lines, match, block, known) for block in blocks(match.old, match.new)]


def _wraps(lines: Sequence[str], match: Match, block: Block, known: set[int]) -> bool:
    a, b, c, d = block
    old, new = (
        [line for line in side if line.strip()] for side in (match.old[a:b], match.new[c:d])
    )
    at = [where for where in match.at[a:b] if where is not None and lines[where].strip()]
    head = next((n for n in range(1, len(new)) if _words(new[n:][: len(old)]) == _words(old)), 0)
    if not old or not head or len(at) != len(old):
        return False
    above = [n for n in range(max(0, at[0] - head - STEPS), at[0]) if lines[n].strip()][-head:]
    rest = len(new) - head - len(old)
    after = range(at[-1] + 1, min(len(lines), at[-1] + 1 + rest + STEPS))
    below = [n for n in after if lines[n].strip()][:rest]
    there = [_key(lines[n]) for n in (*above, *at, *below)]
    wanted = [_key(line) for line in new]
    return (
        [key for _, key in there] == [key for _, key in wanted]
        and all(side[head - 1][0] < side[head][0] for side in (there, wanted))
        and any(_says(there[n]) for n in range(head))
        and known.isdisjoint(above)
    )


def _words(lines: Sequence[str]) -> list[str]:
    return [squeeze(line) for line in lines]


Slid = tuple[int, list[str], bool]
"""Where lines go, which, and whether that is past more than an empty line: what was passed is one
of them then, and there are as many empty lines between them, not more and not less."""


def _slid(raw: str, at: int, lines: list[str]) -> Iterator[Slid]:
    """Returns the same insertion in other words: `a` before `b a` is `b a` behind `a`."""
    yield at, lines, False
    for down in (True, False):
        gap, moved = at, lines
        for step in range(min(STEPS, len(lines))):
            there = line_after(raw, gap) if down else _line_before(raw, gap)
            line = raw[min(gap, there) : max(gap, there)].rstrip("\r\n")
            if there == gap or line != moved[0 if down else -1]:
                break
            moved = [*moved[1:], line] if down else [line, *moved[:-1]]
            gap = there
            yield gap, moved, step > 0 or bool(line.strip())


def _line_before(raw: str, at: int) -> int:
    if at == 0:
        return at
    return line_start(raw, at - 2 if raw[max(0, at - 2) : at] == "\r\n" else at - 1)


Key = tuple[int, str]


def _key(line: str) -> Key:
    return depth(line), squeeze(line)


def _says(key: Key) -> bool:
    letters = sum(map(str.isalnum, key[1]))
    return letters >= LETTERS and not _EVERYWHERE.fullmatch(key[1])


def _beside(
    raw: str, at: int, down: bool, empty: bool, quoted: Callable[[int], bool]
) -> Iterator[Key]:
    """Returns what the next lines say, or those before, as far as the hunk does not show them; with
    empty ones or without."""
    left = STEPS
    while left:
        there = line_after(raw, at) if down else _line_before(raw, at)
        start, end = min(at, there), max(at, there)
        if there == at or quoted(start):
            return
        said = raw[start:end].strip()
        if said or empty:
            yield _key(raw[start:end].rstrip("\r\n"))
        left = STEPS if said else left - 1
        at = there
