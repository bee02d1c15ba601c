"""This module tells what an editor made of an edit by the changes that the editor then shows.

An edit was computed on one text, and the person may type while it is on its way. An editor that
keeps to the protocol refuses it then; one that does not carries the edit out at positions that are
not meant any more. Both can be seen in the notifications: which text there was before, and which
one after.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from magy_server.api.positions import Positions
from magy_server.edits.lines import longest
from magy_server.edits.model import TextChange
from magy_server.edits.rebasing.diff import apply
from magy_server.edits.rebasing.diff import changes as changes_of
from magy_server.edits.rebasing.rebase import rebase
from magy_server.edits.text import plain

Changes = tuple[TextChange, ...]
FEW = 64
"""Parts of an edit that is looked for after every keystroke."""


class Verdict:
    """Whether one edit arrived: `base` with `changes`. Feed it every text that the editor shows,
    in order.

    `landed`: the text that was shown then is the one meant, with what the person typed meanwhile.
    Else, when `owed` is not None, the edit was carried out at the wrong place, and these changes of
    the newest text put it right: with `merged` the edit is then in the text, without it is not, as
    the person has typed in the very lines of it.

    `mending`: the edit itself puts another one right. It is held to its characters, not its lines.
    """

    def __init__(
        self, base: str, changes: Sequence[TextChange], encoding: str, *, mending: bool = False
    ) -> None:
        self.landed = False
        self.owed: Changes | None = None
        self.merged = True
        self.lost = False
        """The person typed into what was to be put right."""
        self.texts = 0
        """How many were shown."""
        self._base = base
        self._encoding = encoding
        self._changes = tuple(changes)
        self._mending = mending
        self._newest = base
        self._start, self._expected = plain(base), plain(apply(base, changes))
        self._some = _SomeOf(base, changes)
        self._untouched = True
        """Whether every text so far is on the way to the one expected: nobody has typed. Else a
        text that is the expected one may have swallowed what was typed."""
        # The edit comes as one change of the document, or as one for each of its parts.
        steps = max(1, len(changes))
        self._before: deque[tuple[str, Changes | None]] = deque([(base, tuple(changes))], steps)
        at = Positions(base, encoding)
        self._ranges = [(at.position(c.start), at.position(c.end), c.text) for c in changes]

    def show(self, text: str) -> bool:
        """Whether it is decided now, or was before."""
        typed, self._newest = span(self._newest, text), text
        if self.owed is not None:
            self._carry(typed)
        elif not self.landed:
            self.texts += 1
            self._judge(text, typed)
        return self.landed or self.owed is not None

    def _carry(self, typed: TextChange) -> None:
        assert self.owed is not None
        moved = carried(self.owed, typed)
        self.lost = self.lost or moved is None
        self.owed = moved or ()

    def _judge(self, text: str, typed: TextChange) -> None:
        shown = plain(text)
        if self._untouched and shown == self._expected:
            self.landed = True
            return
        self._untouched = self._untouched and (shown in self._some or self._halfway(shown))
        # The longer step first: its last part alone may look like the whole.
        # Where nobody has typed there is nothing to find: the rest of the edit is to come.
        steps = () if self._untouched else (self._before[0], self._before[-1])
        for before, changes in dict.fromkeys(steps):
            if before == self._base or not self._may_be(before, text):
                continue
            if self._was(before, changes, text):
                return
        _, newest = self._before[-1]
        self._before.append((text, newest if newest is None else carried(newest, typed)))

    def _halfway(self, shown: str) -> bool:
        """Whether the edit is made from the end on and has come so far, in whatever parts: VS Code
        makes smaller ones of those that it gets."""
        shorter = min(len(shown), len(self._start))
        head = longest(shorter, lambda n: shown[:n] == self._start[:n])
        return self._expected.endswith(shown[head:])

    def _may_be(self, before: str, text: str) -> bool:
        """False if so little was changed that it cannot be an edit of many parts, which it would
        take long to be sure of."""
        if len(self._changes) <= FEW:
            return True
        made = span(before, text)
        reach = self._changes[-1].start - self._changes[0].end
        return 2 * max(made.end - made.start, len(made.text)) >= reach

    def _was(self, before: str, moved: Changes | None, text: str) -> bool:
        """Whether `text` is `before` with the edit."""
        if not self._mending:
            found = rebase(self._base, before, self._changes)
            moved = None if found.conflicts else found.changes
        wanted = before if moved is None else apply(before, moved)
        if moved is not None and plain(text) == plain(wanted):
            self.landed = True
        elif plain(text) == plain(self._blind(before)):
            self.merged = moved is not None
            self.owed = tuple(changes_of(text, plain(wanted), 0, len(text)))
        return self.landed or self.owed is not None

    def _blind(self, before: str) -> str:
        """The edit at its old positions, whatever stands there."""
        at = Positions(before, self._encoding)
        moved = [
            TextChange(at.offset(**start), at.offset(**end), text)
            for start, end, text in self._ranges
        ]
        return apply(before, moved)


class _SomeOf:
    """Which texts are `base` with some of the changes, but for line ends."""

    def __init__(self, base: str, changes: Sequence[TextChange]) -> None:
        self._parts: list[tuple[str, tuple[str, str]]] = []
        at = 0
        for change in sorted(changes, key=lambda change: (change.start, change.end)):
            sides = plain(base[change.start : change.end]), plain(change.text)
            self._parts.append((plain(base[at : change.start]), sides))
            at = change.end
        self._rest = plain(base[at:])

    def __contains__(self, text: str) -> bool:
        ends = {0}
        for between, sides in self._parts:
            begun = [end + len(between) for end in ends if text.startswith(between, end)]
            ends = {at + len(side) for at in begun for side in sides if text.startswith(side, at)}
        return len(text) - len(self._rest) in ends and text.endswith(self._rest)


def span(before: str, after: str) -> TextChange:
    """What was typed: the one replacement between the beginning and the end that both share."""
    shorter = min(len(before), len(after))
    head = longest(shorter, lambda n: before[:n] == after[:n])
    rest = shorter - head
    tail = longest(rest, lambda n: before[len(before) - n :] == after[len(after) - n :])
    return TextChange(head, len(before) - tail, after[head : len(after) - tail])


def carried(changes: Changes, typed: TextChange) -> Changes | None:
    """`changes` of a text as changes of what `typed` makes of it. What is inserted in one stays:
    the change then goes around it. None where something inside one was replaced."""
    by = len(typed.text) - (typed.end - typed.start)
    moved = []
    for change in changes:
        if change.end <= typed.start:
            moved.append(change)
        elif change.start >= typed.end:
            moved.append(TextChange(change.start + by, change.end + by, change.text))
        elif typed.start == typed.end:
            moved.append(TextChange(change.start, typed.start, change.text))
            moved.append(TextChange(typed.start + by, change.end + by, ""))
        else:
            return None
    return tuple(moved)
