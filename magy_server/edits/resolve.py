"""This module turns hunks into changes of a text: where each belongs, and what it comes to there.

A hunk goes where its old text is, found by ever looser tiers, and only when one place is left:
nothing is guessed. What is applied is the difference between its old and its new text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from magy_server.edits import explain
from magy_server.edits.finding.choose import Site, in_order
from magy_server.edits.finding.normal_forms import FORMS
from magy_server.edits.finding.source import Source, most_places
from magy_server.edits.model import Code, Failure, Hunk, Placed, Resolved, TextChange
from magy_server.edits.placing.decorations import as_lines, cleaned
from magy_server.edits.placing.line_end_joins import unjoined
from magy_server.edits.placing.place import Found, find, settle
from magy_server.edits.placing.splice import Unsafe
from magy_server.edits.rebasing.earlier_hunks import Earlier
from magy_server.edits.rebasing.overlap import Claims, Range, brought_back, whole_lines

LOOKED = 2_000_000
"""Places that are looked at for the hunks of one call that have several; LOOSE for each of those
that are not exact."""
LOOSE = 10
MANY = 8
"""Hunks from which on it is worth to learn where each line of the text is."""
STRICT = ("exact", "cleaned", *list(FORMS)[1:])
"""The tiers that find what was quoted, white space and typography aside, the strictest first."""


def resolve(raw: str, hunks: Sequence[Hunk]) -> Resolved:
    """Where `hunks` belong in `raw` (any line ends) and what they change there, as offsets into
    `raw`. What cannot be placed is a Failure; never raises for what a model wrote."""
    return _Call(raw, hunks).resolve()


class _Call:
    def __init__(self, raw: str, hunks: Sequence[Hunk]) -> None:
        self.source = Source(raw, len(hunks) > MANY)
        self.hunks = hunks
        self.done: dict[int, Placed] = {}
        self.ranges: dict[int, Sequence[Range]] = {}
        """What of the text each of those claims, in raw offsets."""
        self.failures: dict[int, Failure] = {}
        self.claims = Claims()
        self.earlier = Earlier(raw)

    def resolve(self) -> Resolved:
        found = self._found()
        for n, (one, sites) in enumerate(zip(found, self._ordered(found), strict=True)):
            if self._follows(n, one):
                continue
            if isinstance(one, Failure):
                self.failures[n] = one
            elif len(sites) == 1:
                self._place(n, one, sites[0])
            else:
                text = explain.ambiguous(self.source, [(s.first, s.last) for s in sites])
                self._fail(n, "ambiguous", text, [site.first + 1 for site in sites])
        together = sorted(self._together().items())
        placed = [replace(self.done[n], changes=changes) for n, changes in together]
        return Resolved(tuple(placed), tuple(self.failures[n] for n in sorted(self.failures)))

    def _together(self) -> dict[int, tuple[TextChange, ...]]:
        """The changes of each hunk. Those of two hunks may meet, too, and then line ends must not
        become one between them."""
        made = [(change, n) for n, done in self.done.items() for change in done.changes]
        made.sort(key=lambda one: (one[0].start, one[0].end))
        apart = unjoined(self.source.raw, [change for change, _ in made])
        found: dict[int, tuple[TextChange, ...]] = dict.fromkeys(self.done, ())
        for change, (_, n) in zip(apart, made, strict=True):
            found[n] += (change,)
        return found

    def _found(self) -> list[Found | Failure]:
        """The places of each hunk in the text as it is."""
        known: dict[Hunk, Found | Failure] = {}
        found: list[Found | Failure] = []
        left = LOOKED
        for n, hunk in enumerate(self.hunks):
            same = replace(hunk, source=0)
            if same not in known:
                if left < 0:
                    found.append(Failure(n, "not_found", _too_many(n)))
                    continue
                one = known[same] = find(self.source, hunk)
                if isinstance(one, Found) and len(one.sites) > 1:
                    left -= len(one.sites) * (1 if one.tier == "exact" else LOOSE)
            one = known[same]
            found.append(replace(one, hunk=n) if isinstance(one, Failure) else one)
        return found

    def _ordered(self, found: Sequence[Found | Failure]) -> list[list[Site]]:
        """The sites of each hunk, less those that the order of the hunks rules out. Of a hunk that
        has more places than were looked at, the order tells nothing."""
        choices = [
            one.sites if isinstance(one, Found) and len(one.sites) <= most_places(hunk.old) else ()
            for one, hunk in zip(found, self.hunks, strict=True)
        ]
        alike = [(hunk.old, hunk.lines, hunk.anchors) for hunk in self.hunks]
        return [
            sites or (one.sites if isinstance(one, Found) else [])
            for one, sites in zip(found, in_order(choices, alike), strict=True)
        ]

    def _fail(self, n: int, code: Code, message: str, lines: Sequence[int] = ()) -> None:
        self.failures[n] = Failure(n, code, message, tuple(lines[:20]))

    def _place(self, n: int, found: Found, site: Site) -> None:
        settled = self._settled(self.source, n, found, site)
        if settled is None:
            return
        changes, note = settled
        within = self._within(site)
        ranges = [whole_lines(self.source.raw, change, within) for change in changes]
        other = self.claims.met(ranges, changes)
        if other is not None:
            self._collide(n, other, changes, site)
            return
        self.done[n] = Placed(n, changes, found.tier, note)
        self.ranges[n] = ranges
        self.claims.add(n, ranges, changes)
        self.earlier.add(n, changes)

    def _settled(
        self, source: Source, n: int, found: Found, site: Site
    ) -> tuple[tuple[TextChange, ...], str] | None:
        """The changes of hunk `n` at its site; None when it has failed."""
        try:
            settled = settle(source, self.hunks[n], found, site)
        except Unsafe as error:
            text = explain.unsafe(source, str(error), site.first, site.last)
            self._fail(n, "not_found", text, [site.first + 1])
            return None
        if isinstance(settled, str):
            self._fail(n, "already_applied", settled, [site.first + 1])
            return None
        return settled

    def _within(self, site: Site) -> Range:
        """The raw range that a hunk at `site` speaks of."""
        to_raw = self.source.view.to_raw
        if site.match is None and site.done is None:
            return to_raw(site.span[0]), to_raw(site.span[1])
        return self.source.offset(site.first), self.source.offset(site.last)

    def _collide(self, n: int, other: int, changes: tuple[TextChange, ...], site: Site) -> None:
        lines = list(range(site.first + 1, site.last + 1))[:20]
        if set(changes) <= set(self.done[other].changes):
            text = f"Edit {n + 1} is the same as edit {other + 1}; it was made once."
            self._fail(n, "already_applied", text, lines)
            return
        text = explain.collision(other, site.first, site.last)
        self._fail(n, "conflict", text, lines)

    # --- hunks written for what earlier ones left -----------------------------------------------

    def _follows(self, n: int, one: Found | Failure) -> bool:
        """Whether hunk `n` is for the text as the hunks before it leave it; then it is placed, or
        has failed. What is in the text before the call as written is meant there; else a place
        that was made by the call comes before one that is less like what was quoted."""
        if isinstance(one, Failure) and one.code not in ("not_found", "already_applied"):
            return False
        rank = _rank(one)
        if rank == 0 or not self._may_follow(self.hunks[n]):
            return False
        after = self.earlier.after()
        if after is None:
            self._fail(n, "not_found", _too_deep(n))
            return True
        found = find(after, self.hunks[n])
        if isinstance(found, Failure) or _rank(found) >= min(rank, len(STRICT)):
            return False
        if len(found.sites) > 1:
            text = explain.ambiguous(after, [(site.first, site.last) for site in found.sites])
            self._fail(n, "ambiguous", f"With the edits before this one made: {text}")
            return True
        if settled := self._settled(after, n, found, found.sites[0]):
            self._follow(n, settled, found, after.raw)
        return True

    def _may_follow(self, hunk: Hunk) -> bool:
        quoted = cleaned(as_lines(hunk), self.source.alike).old
        whole = hunk.lines or hunk.old.endswith("\n")
        return self.earlier.may_hold(quoted, whole) or any(
            self.earlier.may_hold((anchor,), whole=False) for anchor in hunk.anchors
        )

    def _follow(
        self, n: int, settled: tuple[tuple[TextChange, ...], str], found: Found, text: str
    ) -> None:
        changes, note = settled
        note = "; ".join(filter(None, [note, "found only after the edits before it"]))
        self.done[n] = Placed(n, (), found.tier, note)
        together = brought_back(self.earlier.owned, changes, n, text)
        owned: dict[int, list[TextChange]] = {k: [] for k in self.done}
        for change, owner in together:
            owned[owner].append(change)
        for k, mine in owned.items():
            if tuple(mine) != self.done[k].changes:
                self.done[k] = replace(self.done[k], changes=tuple(mine))
                self.ranges[k] = [(change.start, change.end) for change in mine]
        self.earlier.become(together)
        self.claims = Claims.of(
            (k, self.ranges.get(k, ()), done.changes) for k, done in self.done.items()
        )


def _rank(one: Found | Failure) -> int:
    """How loosely it was found: 0 as written."""
    if isinstance(one, Found) and one.tier in STRICT:
        return STRICT.index(one.tier)
    return len(STRICT)


def _too_many(n: int) -> str:
    return (
        f"The old texts of the edits before edit {n + 1} are in very many places, so Magy did not "
        "search for it. Send it in another call, and include more of the lines around each "
        "change."
    )


def _too_deep(n: int) -> str:
    return (
        f"Edit {n + 1} seems to depend on the edits before it, as too many in this call do. Send "
        "it again after this call."
    )
