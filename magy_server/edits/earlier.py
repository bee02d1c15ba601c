"""What the hunks placed so far make of a text. A model may write a hunk for the text as its earlier
hunks leave it; to find out, only the lines around what they changed are looked at."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from magy_server.edits.diff import apply
from magy_server.edits.keys import squeeze
from magy_server.edits.lines import line_after, line_start
from magy_server.edits.model import TextChange
from magy_server.edits.overlap import Owned
from magy_server.edits.source import Source
from magy_server.edits.text import plain

CHARS = 400_000_000
"""Characters of all the texts together that are made of the text for the hunks of one call."""
COMPARED = 200_000_000
"""Characters near changes that are searched for the lines of hunks, in one call."""
HITS = 200
"""Places near changes that are looked at for one pair of lines."""
STEPS = 50
"""Empty lines that are passed in search of one that is not."""


@dataclass(frozen=True, slots=True)
class _Window:
    """A change with lines around it, squeezed: the lines `before` and `after` it are as they were,
    those between were written by it."""

    change: TextChange
    before: str
    written: str
    after: str

    @property
    def text(self) -> str:
        return self.before + self.written + self.after

    def speaks(self, start: int, size: int) -> bool:
        """Whether what is at `start` has something of what was written, or lines in it that were
        not together before."""
        low = len(self.before)
        high = low + len(self.written)
        end = start + size
        return start < high and low < end if self.written else start < low < end


class Earlier:
    """The changes of the hunks that were placed, in `raw`."""

    def __init__(self, raw: str) -> None:
        self.raw = raw
        self.owned: list[Owned] = []
        """In order."""
        self._new: list[TextChange] = []
        self._windows: list[_Window] = []
        self._starts: list[int] = []
        self._near = ""
        self._after: Source | None = None
        self._chars, self._compared = CHARS, COMPARED

    def add(self, owner: int, changes: Iterable[TextChange]) -> None:
        for change in changes:
            insort(self.owned, (change, owner), key=_order)
            self._new.append(change)
        self._after = None

    def become(self, owned: Sequence[Owned]) -> None:
        """These are all the changes now."""
        known = {change for change, _ in self.owned}
        self.owned = sorted(owned, key=_order)
        self._new += [change for change, _ in owned if change not in known]
        self._after = None

    def after(self) -> Source | None:
        """The text with all changes; None if that was too much work by now."""
        if self._after is None:
            self._chars -= len(self.raw)
            if self._chars < 0:
                return None
            self._after = Source(apply(self.raw, [change for change, _ in self.owned]))
        return self._after

    def may_hold(self, old: Sequence[str]) -> bool:
        """Whether the lines `old`, white space aside, may be where something was changed: False
        only if they are not."""
        keys = [key for key in map(squeeze, old) if key]
        if not keys or not self.owned:
            return False
        self._look()
        whole = "".join(keys)
        needles = [a + b for a, b in pairwise(keys)] or keys
        self._compared -= len(self._near) * len(needles)
        if self._compared < 0:
            return True
        found = dict.fromkeys(window for needle in needles for window in self._hits(needle))
        return (len(keys) <= 2 and bool(found)) or any(
            self._is_at(window, whole, len(keys)) for window in found
        )

    def _is_at(self, window: _Window, whole: str, count: int) -> bool:
        n = bisect_left(self.owned, _order((window.change, 0)), key=_order)
        if n == len(self.owned) or self.owned[n][0] != window.change:
            return False  # it has become part of another
        wide = self._window(n, count)
        return any(wide.speaks(at, len(whole)) for at in _finds(wide.text, whole))

    def _hits(self, needle: str) -> Iterator[_Window]:
        for at in _finds(self._near, needle):
            n = bisect_right(self._starts, at) - 1
            if self._windows[n].speaks(at - self._starts[n], len(needle)):
                yield self._windows[n]

    def _look(self) -> None:
        """At the lines around the changes that are new."""
        parts = [self._near]
        size = len(self._near)
        for change in self._new:
            n = bisect_left(self.owned, _order((change, 0)), key=_order)
            if n < len(self.owned) and self.owned[n][0] == change:
                window = self._window(n, 1)
                self._windows.append(window)
                self._starts.append(size)
                parts += [window.text, "\n"]
                size += len(window.text) + 1
        self._near = "".join(parts)
        self._new = []

    def _window(self, n: int, least: int) -> _Window:
        """Change number `n` with at least so many lines on either side that hold something."""
        change = self.owned[n][0]
        left, right = plain(self._left(n, least)), plain(self._right(n, least))
        cut = left.rfind("\n") + 1
        head = left[cut:] + plain(change.text)
        whole = line_start(self.raw, change.end) == change.end and head[-1:] in ("", "\n")
        end = 0 if whole else right.find("\n") + 1 or len(right)
        return _Window(
            change, squeeze(left[:cut]), squeeze(head + right[:end]), squeeze(right[end:])
        )

    def _left(self, n: int, least: int) -> str:
        """What comes before change `n`, with the changes before it."""
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
        """What comes after change `n`, with the changes after it."""
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


def _order(owned: Owned) -> tuple[int, int]:
    return owned[0].start, owned[0].end


def _finds(text: str, wanted: str) -> Iterator[int]:
    """Some of the places of `wanted`."""
    at = text.find(wanted)
    for _ in range(HITS):
        if at < 0:
            return
        yield at
        at = text.find(wanted, at + 1)
