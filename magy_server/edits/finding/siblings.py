"""This module tells whether a place like the quoted one belongs to another thing of the same kind:
the block that was meant is gone or renamed, and a sibling has the same lines."""

from __future__ import annotations

from collections.abc import Sequence

from magy_server.edits.finding.align import Aligned
from magy_server.edits.finding.normal_forms import depth
from magy_server.edits.finding.source import Source
from magy_server.edits.placing.within_line import slip
from magy_server.edits.rebasing.diff import Block, blocks
from magy_server.regex import regex

PLAIN, HEADED = 2.0, 5.0
"""The weight of lines that must be there as they are when a line around the change has another
name; and when it is the line that begins the block of the change."""
_WORD = regex(r"[^\W\d]\w+")
_DEFINES = regex(
    r"\b(?:def|class|func|fn|fun|function|struct|enum|trait|interface|impl|module|mod|namespace"
    r"|sub|proc|macro|(?:def(?:n-?|un|macro|method|test|var|multi|protocol|record)))\s+"
    r"(?:\([^)]*\)\s*)?([^\W\d][\w.:?!*-]*)"
    r"|\b(?:describe|it|test)\s*\(\s*[\"'`]([^\"'`]+)"
)


def names_another(source: Source, old: Sequence[str], new: Sequence[str], one: Aligned) -> bool:
    """A line around the change is not there, another name stands in its place, and the lines that
    are there could belong to either."""
    changed = blocks(old, new)
    touched = {n for a, b, _, _ in changed for n in range(a, b)}
    for n, line in enumerate(old):
        if n in one.equal or n in touched or not line.strip():
            continue
        there = _instead(source, one, n)
        if not _renamed(line, there):
            continue
        heads = any(_heads(old, new, n, block) for block in changed)
        if heads and (name := defined(line)):
            if not any(name in text or slip(name, defined(text)) for text in there):
                return True
        elif one.firm < (HEADED if heads else PLAIN):
            return True
    return False


def _heads(old: Sequence[str], new: Sequence[str], n: int, block: Block) -> bool:
    """Line `n` begins the block that the change is in."""
    a, b, c, d = block
    level = depth(old[n])
    inside = [line for line in (*old[n + 1 : b], *new[c:d]) if line.strip()]
    return n < a and all(depth(line) > level for line in inside)


def _instead(source: Source, one: Aligned, n: int) -> list[str]:
    """What the file has where line `n` of old would be."""
    if n in one.at:
        return [source.lines[one.at[n]]]
    above = max((at for k, at in one.at.items() if k < n), default=None)
    below = min((at for k, at in one.at.items() if k > n), default=None)
    if above is None and below is not None:
        first, last = max(0, below - 3), below
    elif above is not None and below is None:
        first, last = above + 1, above + 4
    else:
        first, last = (above or 0) + 1, below or 0
    return [line for line in source.lines[first:last] if line.strip()]


def _renamed(line: str, there: Sequence[str]) -> bool:
    """`line` has a word that is not there, and another is there: more than a slip."""
    mine, others = set(_WORD.findall(line)), set(_WORD.findall(" ".join(there)))
    missing, new = mine - others, others - mine
    return any(not any(slip(word, other) for other in new) for word in missing) and bool(new)


def defined(line: str) -> str:
    """The name that a line defines, or ""."""
    found = _DEFINES.search(line)
    return (found[1] or found[2]) if found else ""
