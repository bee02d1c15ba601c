"""This module applies what a model changed within a line to that line as the file has it."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Sequence
from functools import cache

from magy_server.edits.finding.normal_forms import fold
from magy_server.edits.rebasing.diff import Block, blocks
from magy_server.regex import regex

_TOKEN = regex(r"\w+|\s+|.", re.DOTALL)
_WORDY = regex(r"\w+")
LONG = 4000
"""Characters of a line beyond which it is not taken apart."""


def merge(quoted: str, wanted: str, there: str) -> str:
    """`there` with the change from `quoted` to `wanted`. Where `there` differs from `quoted` in
    the very words that change, or in more than how the same signs are set apart, `wanted` is what
    it becomes."""
    if quoted == there or max(len(quoted), len(wanted), len(there)) > LONG:
        return wanted
    if quoted == wanted:
        return there
    if not same_signs(quoted, there):
        return wanted
    a, b, c = (_TOKEN.findall(text) for text in (quoted, wanted, there))
    asked, found = blocks(a, b), blocks(a, c)
    if any(_meet(x, y) for x in asked for y in found):
        return wanted
    out: list[str] = []
    at = 0
    for start, end, first, last, new in sorted(
        [(*block, b) for block in asked] + [(*block, c) for block in found], key=lambda x: x[:2]
    ):
        out += [*a[at:start], *new[first:last]]
        at = end
    out += a[at:]
    joined = any(_WORDY.fullmatch(x + y) for x, y in itertools.pairwise(out))
    return wanted if joined else "".join(out)


def _meet(x: Block, y: Block) -> bool:
    """They overlap, one is an insertion inside the other, or they are insertions at one point."""
    return (x[0] < y[1] and y[0] < x[1]) or (x[0] == y[0] and (x[0] == x[1] or y[0] == y[1]))


_STRING = r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'|`[^`]*`'
_SIGNS = regex(rf"{_STRING}|\w+|[^\w\s]")


def same_signs(a: str, b: str) -> bool:
    """Two lines differ only in white space that means nothing: not within a quoted string, nor
    between two words that would be one without it."""
    if a == b:
        return True
    if max(len(a), len(b)) > LONG:
        return False
    a, b = fold(a), fold(b)
    return "".join(a.split()) != "".join(b.split()) or _SIGNS.findall(a) == _SIGNS.findall(b)


def likeness(a: str, b: str, least: float = 0.0) -> float:
    """0 to 1: how much of two lines is the same, white space at the ends aside. Less than `least`
    comes to 0, sooner."""
    cutoff = 100 * least
    return _ratio()(a.strip()[:LONG], b.strip()[:LONG], score_cutoff=cutoff) / 100


@cache
def _ratio() -> Callable[..., float]:
    """Not imported before it is needed."""
    from rapidfuzz import fuzz

    return fuzz.ratio


def slip(a: str, b: str) -> bool:
    """One word is the other with two letters in the wrong order, or a letter left out or doubled;
    not one with another letter, or a plural: the names of two things differ so."""
    short, longer = sorted((a, b), key=len)
    if len(short) < 3 or len(longer) - len(short) > 1 or a == b:
        return False
    at = next(
        (n for n, (x, y) in enumerate(zip(short, longer, strict=False)) if x != y), len(short)
    )
    if len(a) == len(b):
        return a[at : at + 2] == b[at : at + 2][::-1] and a[at + 2 :] == b[at + 2 :]
    plural = at == len(short) and longer[at] == "s"
    return longer[at].isalpha() and at > 0 and short[at:] == longer[at + 1 :] and not plural


def slipped(a: str, b: str) -> bool:
    """Two lines are the same but for a slip in one word."""
    if len(a) > LONG or len(b) > LONG:
        return False
    first, second = _TOKEN.findall(a.strip()), _TOKEN.findall(b.strip())
    if len(first) != len(second):
        return False
    other = [(x, y) for x, y in zip(first, second, strict=True) if x != y]
    return len(other) == 1 and slip(*other[0])


PAIRED = 0.45
"""Two lines less alike are not one line that changed."""
CELLS = 2500
"""Pairs of lines compared at most."""


def pairs(old: Sequence[str], new: Sequence[str]) -> dict[int, int]:
    """Which line of `new` each line of `old` became, in order: the likest together."""
    if len(old) * len(new) > CELLS:
        return {n: n for n in range(len(old))} if len(old) == len(new) else {}
    best = [[0.0] * (len(new) + 1) for _ in range(len(old) + 1)]
    alike = [[_alike(a, b) for b in new] for a in old]
    for i in range(len(old) - 1, -1, -1):
        for k in range(len(new) - 1, -1, -1):
            best[i][k] = max(best[i + 1][k], best[i][k + 1], alike[i][k] + best[i + 1][k + 1])
    found: dict[int, int] = {}
    i = k = 0
    while i < len(old) and k < len(new):
        if alike[i][k] and best[i][k] == alike[i][k] + best[i + 1][k + 1]:
            found[i] = k
            i, k = i + 1, k + 1
        elif best[i][k] == best[i + 1][k]:
            i += 1
        else:
            k += 1
    return found


def _alike(a: str, b: str) -> float:
    if not a.strip() or not b.strip():
        return 0.0
    score = likeness(a, b)
    return score if score >= PAIRED else 0.0
