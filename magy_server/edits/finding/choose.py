"""This module finds which of several equal places a hunk means. Nothing here prefers the first one:
where nothing decides, all of them are left, and the engine refuses the hunk."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from magy_server.dataclass import dataclass
from magy_server.edits.finding.normal_forms import depth, fold, squeeze
from magy_server.edits.finding.siblings import defined
from magy_server.edits.finding.source import Source
from magy_server.edits.model import Hunk, TextChange
from magy_server.edits.placing.splice import Match
from magy_server.edits.placing.within_line import slipped
from magy_server.regex import regex

WINDOW = 200
"""Lines that a place may be away from the line a hunk names."""
_SIGNS = regex(r"[^\w\s'.,-]|\w\.\w|[^\W_]_[^\W_]|[a-z][A-Z]")
"""Prose has none of these."""


@dataclass(frozen=True, slots=True)
class Site:
    """A place of a hunk: the lines [first, last), and how it is told from its text."""

    first: int
    last: int
    span: tuple[int, int] = (0, 0)
    """Where it is in the plain text, when it is there as written."""
    match: Match | None = None
    done: tuple[TextChange, ...] | None = None
    """The changes, where they need no search."""


def below_anchors(source: Source, sites: Sequence[Site], anchors: Sequence[str]) -> list[Site]:
    """Returns the sites below the anchors: in the block that the last one begins if there are any,
    else anywhere below it, but not in a block that another definition begins. Returns none if no
    line is like the anchors, and all if these are not lines of a file, but words about it."""
    heads = anchor_lines(source, anchors)
    if not heads:
        return list(sites) if is_prose(anchors[-1]) else []
    ends = [(head, block_end(source, head)) for head in heads]
    inside = [site for site in sites if any(head <= site.first < end for head, end in ends)]
    return inside or [
        site
        for site in sites
        if any(site.first > head and not _elsewhere(source, site, head) for head in heads)
    ]


def _elsewhere(source: Source, site: Site, head: int) -> bool:
    """Returns whether `head` defines something, and `site` is in the block of something else on its
    level."""
    if not defined(source.lines[head]):
        return False
    level = depth(source.lines[head])
    within = source.lines[site.first : site.last]
    least = min((depth(line) for line in within if line.strip()), default=0)
    for n in range(site.first - 1, head, -1):
        line = source.lines[n]
        if line.strip() and depth(line) < least:
            least = depth(line)
            if least <= level and defined(line):
                return True
    return False


def is_prose(anchor: str) -> bool:
    """Returns whether a text is several plain words: a remark about the place rather than a line of
    it."""
    return len(anchor.split()) > 1 and not _SIGNS.search(anchor) and not defined(anchor)


def anchor_lines(source: Source, anchors: Sequence[str]) -> list[int]:
    """Returns the lines that the last anchor can be, each below one of the anchor before it."""
    heads: list[int] = []
    lowest = -1
    for n, anchor in enumerate(anchors):
        found = [at for at in _like(source, anchor) if n == 0 or at > lowest]
        if not found:
            return []
        heads, lowest = found, found[0]
    return heads


def _like(source: Source, anchor: str) -> list[int]:
    """The lines that are `anchor`, else those that begin with it, else those that hold it, else
    those that define what it defines or are the same but for a slip."""
    wanted = squeeze(anchor)
    if not wanted:
        return []
    index = source.form("spacing").index
    if wanted in index:
        return index[wanted]
    keys = source.form("spacing").keys
    starting = [n for n, key in enumerate(keys) if key.startswith(wanted)]
    bare = fold(anchor).strip()
    return (
        starting
        or [n for n, line in enumerate(source.lines) if bare in fold(line)]
        or _same_name(source, anchor)
        or [n for n, line in enumerate(source.lines) if slipped(anchor, line)]
    )


def _same_name(source: Source, anchor: str) -> list[int]:
    name = defined(anchor)
    if not name:
        return []
    return [n for n, line in enumerate(source.lines) if name in line and defined(line) == name]


def block_end(source: Source, head: int) -> int:
    """Returns the line behind the block that line `head` begins, by indentation."""
    level = depth(source.lines[head])
    for n in range(head + 1, len(source.lines)):
        line = source.lines[n]
        if line.strip() and depth(line) <= level:
            closes = line.lstrip()[0] in ")]}" or line.strip() == "end"
            opens = line.rstrip().endswith(("{", ":", "("))
            if not (closes and opens) and not line.lstrip().startswith("{"):
                return n + 1 if closes else n
    return len(source.lines)


def near_line(sites: Sequence[Site], line: int) -> list[Site]:
    """Returns the site clearly nearest to line `line` (from 1), else all sites."""
    ranked = sorted(sites, key=lambda site: abs(site.first + 1 - line))
    best, second = (abs(site.first + 1 - line) for site in ranked[:2])
    if best <= WINDOW and second > 2 * best + 1:
        return [ranked[0]]
    return list(sites)


def at_end(source: Source, sites: Sequence[Site]) -> list[Site]:
    """Returns the site behind which the text has only empty lines, else all sites."""
    found = [site for site in sites if not any(line.strip() for line in source.lines[site.last :])]
    return found if len(found) == 1 else list(sites)


def decided(source: Source, sites: Sequence[Site], hunk: Hunk, line: int | None) -> list[Site]:
    """Returns what is left of `sites` after all that the hunk itself says."""
    left = list(sites)
    if hunk.anchors:
        left = below_anchors(source, left, hunk.anchors)
    if len(left) > 1 and hunk.at_end:
        left = at_end(source, left)
    if len(left) > 1 and line is not None:
        left = near_line(left, line)
    return left


def in_order(choices: Sequence[Sequence[Site]], alike: Sequence[object]) -> list[list[Site]]:
    """What the order of the hunks of a call decides. `choices`: the sites of each hunk, none of
    one that failed; `alike`: equal for hunks with the same text.

    Hunks with the same text take their places one after the other when there are as many places.
    Else, if the hunks that are certain stand in the order of the text, one between two of them
    must be between their places.
    """
    left = [list(sites) for sites in choices]
    _dealt(left, alike)
    certain = [(n, sites[0]) for n, sites in enumerate(left) if len(sites) == 1]
    ordered = all(a.first <= b.first for (_, a), (_, b) in itertools.pairwise(certain))
    if not ordered or not certain:
        return left
    for n, sites in enumerate(left):
        if len(sites) < 2:
            continue
        above = max((site.last for k, site in certain if k < n), default=0)
        below = min((site.first for k, site in certain if k > n), default=None)
        between = [
            site for site in sites if site.first >= above and (below is None or site.last <= below)
        ]
        if len(between) == 1:
            left[n] = between
    return left


def _dealt(left: list[list[Site]], alike: Sequence[object]) -> None:
    groups: dict[object, list[int]] = {}
    for n, key in enumerate(alike):
        if len(left[n]) > 1:
            groups.setdefault(key, []).append(n)
    for members in groups.values():
        sites = left[members[0]]
        if len(members) == len(sites) and all(left[n] == sites for n in members):
            for n, site in zip(members, sorted(sites, key=lambda s: s.first), strict=True):
                left[n] = [site]
