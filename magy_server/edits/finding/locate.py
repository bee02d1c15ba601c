"""The matching ladder finds where the old lines of a hunk are in a text.

Each tier compares more loosely than the one before. The first that finds anything decides, whether
it finds one place or many: a looser tier would only find more.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from magy_server.edits.finding.align import COMMON, Aligned, alignments, with_empty
from magy_server.edits.finding.elision import elided
from magy_server.edits.finding.normal_forms import FORMS, squeeze, weight
from magy_server.edits.finding.rivals import rivals
from magy_server.edits.finding.siblings import names_another
from magy_server.edits.finding.source import Source
from magy_server.edits.placing.decorations import Wanted, cleaned, is_elision, unescaped
from magy_server.edits.placing.partial_lines import completed
from magy_server.edits.placing.splice import Match
from magy_server.edits.rebasing.diff import blocks

TIERS = tuple(FORMS)
FOLDED = ("unicode", "spacing")
LOOSE = ("indentation", "spacing", "empty lines")
"""These tiers find a block which is only like the one that was quoted."""


def locate(source: Source, wanted: Wanted) -> list[Match]:
    """The places of the first tier that has any; not those where every character is as written,
    which are found by simpler means."""
    plain = cleaned(wanted, source.alike)
    found = next(filter(None, _ladder(source, plain)), [])
    if not found or found[0].tier not in (*LOOSE, "resembling"):
        return found
    if found[0].tier in LOOSE:
        if _rather_elsewhere(source, plain, found):
            return []
        # a block that is like the one quoted in another way is as good
        found = found + _apart(without_empty(source, plain), found)
    return found + _apart(rivals(source, plain, found), found)


def _apart(others: Sequence[Match], found: Sequence[Match]) -> list[Match]:
    covered = {n for match in found for n in range(*match.span)}
    return [match for match in others if covered.isdisjoint(range(*match.span))]


def _ladder(source: Source, plain: Wanted) -> Iterator[list[Match]]:
    if not plain.old:
        return
    for tier in TIERS:
        yield in_form(source, plain, tier)
    if plain.old and any(is_elision(line) for line in plain.old):
        yield elided(source, plain)
    for reading in unescaped(plain):
        for tier in TIERS:
            yield in_form(source, reading, tier, "escapes")
    if mended := completed(source, plain):
        for tier in TIERS:
            yield in_form(source, mended, tier)
    yield without_empty(source, plain)
    yield resembling(source, plain)


def in_form(source: Source, wanted: Wanted, form: str, tier: str = "") -> list[Match]:
    """Returns where the lines are, all together, in a normal form."""
    normal = FORMS[form]
    keys = [normal(line) for line in wanted.old]
    longest = max(keys, key=len, default="").strip()
    if not longest or (not source.many and form not in FOLDED and longest not in source.text):
        return []
    lines = source.form(form)
    count = len(keys)
    name = tier or ("cleaned" if form == "exact" else form)
    return [Match(name, wanted, range(at, at + count)) for at in lines.runs(keys)]


def without_empty(source: Source, wanted: Wanted) -> list[Match]:
    """Returns where the lines are when empty ones do not count."""
    numbers = [n for n, line in enumerate(wanted.old) if line.strip()]
    keys = [squeeze(wanted.old[n]) for n in numbers]
    if sum(weight(key) for key in keys) < 1:
        return []
    lines = source.form("spacing", blanks=False)
    found = []
    for start in lines.runs(keys):
        at = {n: lines.numbers[start + k] for k, n in enumerate(numbers)}
        found.append(Match("empty lines", wanted, with_empty(source, wanted.old, at)))
    return found


ENOUGH = 0.6
"""The part of the weight of a hunk that must be there."""
SURE = 1.5
"""Lines of so much weight must be there as they are."""
CLEAR, FAR = 1.0, 2.5
"""By how much a place must be better than the next: about what a line of some words weighs; and if
some of what was quoted speaks for the next."""


def resembling(source: Source, wanted: Wanted) -> list[Match]:
    """Where most lines are, though some that stand around the change are not, or differ.

    What the edit replaces must be there as it is. A place where it is not, but where more of what
    stands around it is, may be the one that was meant and has changed: then there is none.
    """
    if not any(line.strip() for line in wanted.old):
        return []
    found = alignments(source, wanted.old)
    if found:
        wanted = _as_there(source, wanted, found[0])
    touched = {n for n in touched_lines(wanted.old, wanted.new) if wanted.old[n].strip()}
    fit = sorted((one for one in found if touched <= one.equal), key=_rank)
    if not fit or fit[0].score < ENOUGH * fit[0].total:
        return []
    best = fit[0]
    if best.firm < SURE or names_another(source, wanted.old, wanted.new, best):
        return []
    around = _around(best, touched)
    if any(_around(one, touched) > around + 0.1 for one in found if one not in fit):
        return []
    return [
        Match(
            "resembling",
            wanted,
            with_empty(source, wanted.old, one.at),
            weak=frozenset(one.at) - one.equal,
        )
        for one in fit
        if one is best or not _clearly(best, one)
    ]


def _as_there(source: Source, wanted: Wanted, best: Aligned) -> Wanted:
    """Without the changes that the file has already: a line quoted with a slip that is right in
    the new text and in the file."""
    old = list(wanted.old)
    for a, b, c, d in blocks(wanted.old, wanted.new):
        if b - a != d - c:
            continue
        for n in range(a, b):
            at = best.at.get(n)
            if at is not None and source.lines[at] == wanted.new[c + n - a]:
                old[n] = source.lines[at]
    return replace(wanted, old=tuple(old))


def _rank(one: Aligned) -> tuple[float, float, int]:
    return -one.standing, -one.score, one.first


def _clearly(best: Aligned, other: Aligned) -> bool:
    """`best` is better than `other`, and in nothing worse; or better by far. How like a line is
    does not count: one that names another thing is like those of all its siblings. Nor does how
    much a line says alone: a line that differs in the one place is no better than a line that
    stands between in the other."""
    if best.faults >= other.faults:
        return False
    ahead = best.standing - other.standing
    worse = best.extra > other.extra or bool(other.equal - best.equal - best.slips)
    return ahead >= (FAR if worse else CLEAR)


def _around(one: Aligned, touched: set[int]) -> float:
    """What speaks for a place apart from the lines that change."""
    return one.score - sum(one.gains.get(n, 0.0) for n in touched)


def _rather_elsewhere(source: Source, wanted: Wanted, found: Sequence[Match]) -> bool:
    """All that stands around the change is somewhere to the letter, with something else where the
    edit replaces. That is what was quoted, and it has changed; `found` is only like it."""
    touched = touched_lines(wanted.old, wanted.new)
    around = [n for n, line in enumerate(wanted.old) if line.strip() and n not in touched]
    if not touched or sum(weight(squeeze(wanted.old[n])) for n in around) < SURE:
        return False
    taken = {at for match in found for at in match.known}
    index = source.form("exact").index
    rarest = min(around, key=lambda n: len(index.get(wanted.old[n], ())))
    places = index.get(wanted.old[rarest], ())
    return len(places) <= COMMON and any(
        _quoted_there(source, wanted.old, touched, rarest, at, taken) for at in places
    )


def _quoted_there(
    source: Source, old: Sequence[str], touched: set[int], start: int, at: int, taken: set[int]
) -> bool:
    """All of `old` is around line `at`, which is its line `start`, to the letter, but for the lines
    that are `touched`: in their place is something else, or nothing."""
    for step, edge in ((-1, -1), (1, len(old))):
        line, n, gone = at, start, 0
        while n != edge:
            if n in touched:
                gone += 1
                near = source.lines[max(0, line - 1) : line + 2]
                if old[n].strip() and squeeze(old[n]) in map(squeeze, near):
                    return False  # an empty line more or less, perhaps
            elif (
                0 <= line < len(source.lines) and line not in taken and source.lines[line] == old[n]
            ):
                gone = 0
            elif (
                gone
                and 0 <= line - gone * step < len(source.lines)
                and (source.lines[line - gone * step] == old[n])
            ):
                line, gone = line - gone * step, 0
            else:
                return False
            n, line = n + step, line + step
    return True


def touched_lines(old: Sequence[str], new: Sequence[str]) -> set[int]:
    """The lines of `old` that are replaced or deleted; or that may be: of `a b a` that becomes `a`,
    nothing tells which `a` is left."""
    touched: set[int] = set()
    for a, b, c, d in blocks(old, new):
        size = b - a
        if size and c == d:
            while a and squeeze(old[a - 1]) == squeeze(old[a - 1 + size]):
                a -= 1
            while b < len(old) and squeeze(old[b]) == squeeze(old[b - size]):
                b += 1
        touched |= set(range(a, b))
    return touched
