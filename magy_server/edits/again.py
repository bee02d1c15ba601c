"""An edit that was made before: the lines that it would add stand where they would go, or around
what they would go around, beyond what the hunk quotes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from magy_server.edits.diff import Block, blocks
from magy_server.edits.keys import indentation, squeeze
from magy_server.edits.lines import line_after, line_start
from magy_server.edits.model import TextChange
from magy_server.edits.splice import Match
from magy_server.edits.text import plain

LETTERS = 2
"""Letters and digits of a line that says something."""
STEPS = 50
"""Empty lines that are passed."""
_EVERYWHERE = re.compile(
    r"\W*(?:return|break|continue|else|pass|then|begin|try|finally|default|yield|next|exit|do"
    r"|end\w*|esac|done)\W*"
)


def made_before(
    raw: str, changes: Sequence[TextChange], quoted: Callable[[int], bool]
) -> list[TextChange]:
    """Those of `changes` whose lines are there. `quoted`: whether the hunk shows the line of `raw`
    that begins at an offset as it is, and so knows of it."""
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
    return any(_stands_at(raw, gap, wanted, quoted) for gap, wanted in _slid(raw, at, lines))


def _stands_at(raw: str, at: int, lines: Sequence[str], quoted: Callable[[int], bool]) -> bool:
    """Whether `lines` are there, below or above, and the hunk does not show them all."""
    wanted = [_key(line) for line in lines if line.strip()]
    for there in (_beside(raw, at, len(wanted), True), _beside(raw, at, len(wanted), False)[::-1]):
        if [key for key, _ in there] == wanted:
            return any(_says(key) and not quoted(start) for key, start in there)
    return False


def wrapped_before(lines: Sequence[str], match: Match) -> list[bool]:
    """Of each change of a hunk, whether it puts lines around others that stand around them."""
    known = set(match.known)
    return [_wraps(lines, match, block, known) for block in blocks(match.old, match.new)]


def _wraps(lines: Sequence[str], match: Match, block: Block, known: set[int]) -> bool:
    a, b, c, d = block
    old, new = (_solid(side) for side in (match.old[a:b], match.new[c:d]))
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


def _solid(lines: Sequence[str]) -> list[str]:
    return [line for line in lines if line.strip()]


def _words(lines: Sequence[str]) -> list[str]:
    return [squeeze(line) for line in lines]


def _slid(raw: str, at: int, lines: list[str]) -> Iterator[tuple[int, list[str]]]:
    """The same insertion in other words: `a` before `b a` is `b a` behind `a`."""
    yield at, lines
    for down in (True, False):
        gap, moved = at, lines
        for _ in range(min(STEPS, len(lines))):
            there = line_after(raw, gap) if down else _line_before(raw, gap)
            line = raw[min(gap, there) : max(gap, there)].rstrip("\r\n")
            if there == gap or line != moved[0 if down else -1]:
                break
            moved = [*moved[1:], line] if down else [line, *moved[:-1]]
            gap = there
            yield gap, moved


def _line_before(raw: str, at: int) -> int:
    if at == 0:
        return at
    return line_start(raw, at - 2 if raw[max(0, at - 2) : at] == "\r\n" else at - 1)


Key = tuple[int, str]


def _key(line: str) -> Key:
    return len(indentation(line).expandtabs(4)), squeeze(line)


def _says(key: Key) -> bool:
    letters = sum(map(str.isalnum, key[1]))
    return letters >= LETTERS and not _EVERYWHERE.fullmatch(key[1])


def _beside(raw: str, at: int, count: int, down: bool) -> list[tuple[Key, int]]:
    """What the next so many lines that are not empty say, or those before, and where they begin."""
    found: list[tuple[Key, int]] = []
    for _ in range(count + STEPS):
        there = line_after(raw, at) if down else _line_before(raw, at)
        if there == at or len(found) == count:
            break
        start, end = min(at, there), max(at, there)
        if raw[start:end].strip():
            found.append((_key(raw[start:end].rstrip("\r\n")), start))
        at = there
    return found
