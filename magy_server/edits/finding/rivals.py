"""Rivals are places with as good a claim as those that were found: there the lines that the edit
changes stand to the letter, or the edit itself names that place. Then nothing decides."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence

from magy_server.edits.finding.align import ALIKE, COMMON, with_empty
from magy_server.edits.finding.normal_forms import squeeze, weight
from magy_server.edits.finding.source import Source
from magy_server.edits.placing.decorations import Wanted
from magy_server.edits.placing.splice import Match
from magy_server.edits.placing.within_line import likeness
from magy_server.edits.rebasing.diff import blocks

TOLD = 1.0
"""The weight of the lines that must be where a number names them."""


def rivals(source: Source, wanted: Wanted, found: Sequence[Match]) -> list[Match]:
    """Returns the rivals of a hunk that was found only when white space did not count, or by most
    of its lines."""
    held = held_lines(wanted.old, wanted.new)
    if not held:
        return []
    at = _where_named(source, wanted, held)
    if at is not None:
        return [_match(source, wanted, at)]
    tier = found[0].tier
    if tier == "resembling" or (tier != "empty lines" and _to_the_letter(source, found, held)):
        return []
    return [_match(source, wanted, at) for at in _nearly(source, wanted.old, held)]


def held_lines(old: Sequence[str], new: Sequence[str]) -> set[int]:
    """The lines of `old` that a change takes away; where lines are only added, those on either
    side. Empty ones say nothing."""
    held: set[int] = set()
    for a, b, _, _ in blocks(old, new):
        held |= set(range(a, b) if a < b else range(max(0, a - 1), min(len(old), a + 1)))
    return {n for n in held if old[n].strip()}


def _where_named(source: Source, wanted: Wanted, held: set[int]) -> dict[int, int] | None:
    """The lines that a number names, if those that the change is about are there."""
    if wanted.line is None:
        return None
    first = wanted.line - 1
    if not 0 <= first <= len(source.lines) - len(wanted.old):
        return None
    equal = {
        n: first + n
        for n, line in enumerate(wanted.old)
        if line.strip() and squeeze(line) == squeeze(source.lines[first + n])
    }
    told = sum(weight(squeeze(wanted.old[n])) for n in equal)
    return equal if held <= equal.keys() and told >= TOLD else None


def _to_the_letter(source: Source, found: Sequence[Match], held: set[int]) -> bool:
    """Whether the lines that the change is about are so in one of these places."""
    return any(
        all((at := match.at[n]) is not None and source.lines[at] == match.old[n] for n in held)
        for match in found
        if len(match.old) > max(held)
    )


def _nearly(source: Source, old: Sequence[str], held: set[int]) -> Iterator[dict[int, int]]:
    """Where all of `old` is, the lines that are `held` to the letter, but for a line between, or
    one that has something more or another word."""
    index = source.form("exact").index
    rarest = min(held, key=lambda n: len(index.get(old[n], ())))
    places = index.get(old[rarest], ())
    if len(places) > COMMON:
        return
    file = source.form("spacing", blanks=False)
    solid = [n for n, line in enumerate(old) if line.strip()]
    keys = [squeeze(old[n]) for n in solid]
    start = solid.index(rarest)
    for place in places:
        at = bisect_left(file.numbers, place)
        walked = [_walk(keys, file.keys, start, at, step) for step in (-1, 1)]
        if any(one is None for one in walked):
            continue
        steps = [pair for one in walked if one is not None for pair in one[0]]
        there = {solid[i]: file.numbers[j] for i, j in [(start, at), *steps]}
        apart = sum(one[1] for one in walked if one is not None)
        if apart < 2 and all(source.lines[there[n]] == old[n] for n in held):
            yield there


def _walk(
    keys: Sequence[str], there: Sequence[str], i: int, j: int, step: int
) -> tuple[list[tuple[int, int]], int] | None:
    """Which of `there` the keys beyond `i` are, when that one is `j`, and how often they differ."""
    found: list[tuple[int, int]] = []
    apart = 0
    i, j = i + step, j + step
    while 0 <= i < len(keys):
        if not 0 <= j < len(there):
            return None
        if keys[i] != there[j]:
            apart += 1
            if 0 <= j + step < len(there) and keys[i] == there[j + step]:
                j += step
            elif keys[i] not in there[j] and likeness(keys[i], there[j]) < ALIKE:
                return None
        if apart > 1:
            return None
        found.append((i, j))
        i, j = i + step, j + step
    return found, apart


def _match(source: Source, wanted: Wanted, at: dict[int, int]) -> Match:
    placed = with_empty(source, wanted.old, at)
    weak = frozenset(
        n for n, line in at.items() if squeeze(wanted.old[n]) != squeeze(source.lines[line])
    )
    return Match("resembling", wanted, placed, weak)
