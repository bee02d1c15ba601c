"""A model may write a hunk for the text as its earlier hunks leave it. This module knows what the
hunks placed so far make of a text; it looks only at the lines around what they changed."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Sequence
from itertools import pairwise

from magy_server.dataclass import dataclass
from magy_server.edits.finding.normal_forms import squeeze
from magy_server.edits.finding.source import Source
from magy_server.edits.lines import line_after, line_start
from magy_server.edits.model import TextChange
from magy_server.edits.rebasing.diff import apply
from magy_server.edits.rebasing.overlap import Owned
from magy_server.edits.text import plain

CHARS = 400_000_000
"""Characters of all the texts together that are made of the text for the hunks of one call."""
HITS = 200
"""Places near changes that are looked at for one pair of lines."""
STEPS = 50
"""Empty lines that are passed in search of one that is not."""


@dataclass(frozen=True, slots=True)
class _Window:
    """A change with lines around it, squeezed, without empty ones: the lines `before` and `after`
    it are as they were, those between were written by it."""

    change: TextChange
    before: list[str]
    written: list[str]
    after: list[str]

    @property
    def keys(self) -> list[str]:
        return self.before + self.written + self.after

    def speaks(self, start: int, size: int) -> bool:
        """Returns whether the lines from `start` have something of what was written, or lines in
        them that were not together before."""
        return _touches(start, start + size, len(self.before), len(self.written))


class Earlier:
    """The changes of the hunks that were placed, in `raw`."""

    def __init__(self, raw: str) -> None:
        self.raw = raw
        self.owned: list[Owned] = []
        """In order."""
        self._new: list[TextChange] = []
        self._windows: list[_Window] = []
        self._near: dict[str, list[int]] = {}
        """Which windows have a line, or two lines one after the other, that speak of a change."""
        self._text = ""
        self._starts: list[int] = []
        """All windows without their line ends, and where each begins."""
        self._after: Source | None = None
        self._chars = CHARS

    def add(self, owner: int, changes: Iterable[TextChange]) -> None:
        for change in changes:
            insort(self.owned, (change, owner), key=_order)
            self._new.append(change)
        self._after = None

    def become(self, owned: Sequence[Owned]) -> None:
        """Replaces all changes by these."""
        known = {change for change, _ in self.owned}
        self.owned = sorted(owned, key=_order)
        self._new += [change for change, _ in owned if change not in known]
        self._after = None

    def after(self) -> Source | None:
        """Returns the text with all changes; None if that was too much work by now."""
        if self._after is None:
            self._chars -= len(self.raw)
            if self._chars < 0:
                return None
            self._after = Source(apply(self.raw, [change for change, _ in self.owned]))
        return self._after

    def may_hold(self, old: Sequence[str], whole: bool = True) -> bool:
        """Whether the lines `old`, white space aside, may be where something was changed: False
        only if they are not. `whole`: the first and the last are whole lines."""
        keys = [key for key in map(squeeze, old) if key]
        if not keys or not self.owned:
            return False
        self._look()
        if not whole and len(keys) < 4:
            return self._has_pieces("".join(keys))
        if not whole:
            keys = keys[1:-1]
        needles = [f"{a}\n{b}" for a, b in pairwise(keys)] or keys
        found = dict.fromkeys(n for needle in needles for n in self._near.get(needle, ()))
        return (len(keys) <= 2 and bool(found)) or any(
            self._is_at(self._windows[n], keys) for n in found
        )

    def _is_at(self, window: _Window, keys: list[str]) -> bool:
        n = bisect_left(self.owned, _order((window.change, 0)), key=_order)
        if n == len(self.owned) or self.owned[n][0] != window.change:
            return False  # it has become part of another
        wide = self._window(n, len(keys))
        there = wide.keys
        return any(
            there[at : at + len(keys)] == keys and wide.speaks(at, len(keys))
            for at in range(len(there) - len(keys) + 1)
        )

    def _has_pieces(self, wanted: str) -> bool:
        """The same of a few lines of which the first and the last may be pieces."""
        at = self._text.find(wanted)
        for _ in range(HITS):
            if at < 0:
                return False
            n = bisect_right(self._starts, at) - 1
            window, start = self._windows[n], at - self._starts[n]
            low, size = (sum(map(len, keys)) for keys in (window.before, window.written))
            if _touches(start, start + len(wanted), low, size):
                return True
            at = self._text.find(wanted, at + 1)
        return True

    def _look(self) -> None:
        """At the lines around the changes that are new."""
        parts, size = [self._text], len(self._text)
        for change in self._new:
            n = bisect_left(self.owned, _order((change, 0)), key=_order)
            if n < len(self.owned) and self.owned[n][0] == change:
                window = self._window(n, 1)
                keys = window.keys
                self._enter(window, keys)
                self._windows.append(window)
                self._starts.append(size)
                parts += [*keys, "\n"]
                size += sum(map(len, keys)) + 1
        self._text = "".join(parts)
        self._new = []

    def _enter(self, window: _Window, keys: list[str]) -> None:
        for count in (1, 2):
            for at in range(len(keys) - count + 1):
                if window.speaks(at, count):
                    places = self._near.setdefault("\n".join(keys[at : at + count]), [])
                    if len(places) < HITS:
                        places.append(len(self._windows))

    def _window(self, n: int, least: int) -> _Window:
        """Change number `n` with at least so many lines on either side that hold something."""
        change = self.owned[n][0]
        left, right = plain(self._left(n, least)), plain(self._right(n, least))
        cut = left.rfind("\n") + 1
        head = left[cut:] + plain(change.text)
        whole = line_start(self.raw, change.end) == change.end and head[-1:] in ("", "\n")
        end = 0 if whole else right.find("\n") + 1 or len(right)
        return _Window(change, _keys(left[:cut]), _keys(head + right[:end]), _keys(right[end:]))

    def _left(self, n: int, least: int) -> str:
        """Returns what comes before change `n`, with the changes before it."""
        at, parts, solid = self.owned[n][0].start, [""], 0
        for _ in range(least + STEPS):
            if solid > least:
                break
            low = line_start(self.raw, max(0, at - 1))
            if n and self.owned[n - 1][0].end >= low:
                n -= 1
                other = self.owned[n][0]
                parts += [self.raw[other.end : at], other.text]
                at = other.start
                solid += sum(map(bool, map(str.strip, other.text.split("\n")[1:])))
            else:
                parts.append(self.raw[low:at])
                at = low
                solid += bool(parts[-1].strip())
        return "".join(reversed(parts))

    def _right(self, n: int, least: int) -> str:
        """Returns what comes after change `n`, with the changes after it."""
        at, parts, solid = self.owned[n][0].end, [""], 0
        for _ in range(least + STEPS):
            if solid > least:
                break
            high = line_after(self.raw, at)
            if n + 1 < len(self.owned) and self.owned[n + 1][0].start <= high:
                n += 1
                other = self.owned[n][0]
                parts += [self.raw[at : other.start], other.text]
                at = other.end
                solid += sum(map(bool, map(str.strip, other.text.split("\n")[:-1])))
            else:
                parts.append(self.raw[at:high])
                at = high
                solid += bool(parts[-1].strip())
        return "".join(parts)


def _touches(start: int, end: int, low: int, size: int) -> bool:
    """Whether [start, end) has something of the `size` items from `low` on; of none, both sides."""
    return start < low + size and low < end if size else start < low < end


def _order(owned: Owned) -> tuple[int, int]:
    return owned[0].start, owned[0].end


def _keys(text: str) -> list[str]:
    return [key for key in map(squeeze, text.split("\n")) if key]
