"""The history keeps what a person can go back to: what a session was when each of its turns began,
and what going back took away."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from itertools import takewhile

from magy_server.core.events import Compacted
from magy_server.core.reviews.review_events import Restored, Restoring
from magy_server.core.state.conversation import Conversation, Item
from magy_server.core.state.queue import Arrival
from magy_server.core.state.replacing import replace
from magy_server.core.state.vector import Vector
from magy_server.core.values import FileChange
from magy_server.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Past:
    """What a session was when turn `turn` began. `lost`: the conversation was compacted, a person
    cannot go back to here; its items are not kept."""

    turn: str
    seq: int
    conversation: Conversation
    files: Mapping[str, str]
    lost: bool = False

    @property
    def length(self) -> int:
        """So many items the conversation had."""
        return len(self.conversation.items)

    def on(self, items: Vector[Item]) -> Past:
        """The same, which are the first of these, in their storage."""
        return replace(
            self, conversation=replace(self.conversation, items=items.first(self.length))
        )


@dataclass(frozen=True, slots=True)
class Kept:
    """What a restore took away, so that it can be undone: how it was before. `place` and `length`
    say where it left the conversation: after which turn, and with how many items."""

    restored: Restored
    seq: int
    conversation: Conversation
    waiting: tuple[Arrival, ...]
    pasts: Vector[Past]
    files: Mapping[str, str]
    place: str
    length: int


@dataclass(frozen=True, slots=True)
class History:
    pasts: Vector[Past] = field(default_factory=Vector)
    """The beginnings of the turns that are in the conversation, or were until it was compacted."""
    kept: tuple[Kept, ...] = ()
    """By the restores since the last turn or compaction, oldest first."""
    restoring: Restoring | None = None
    """A restore that was begun and not finished."""
    files: Mapping[str, str] = field(default_factory=dict)
    """created | changed | deleted, by path: what this session did to each file, on the whole."""

    def past(self, turn: str) -> Past | None:
        return next((past for past in self.pasts if past.turn == turn), None)

    def kept_by(self, restore: str) -> Kept | None:
        return next((kept for kept in self.kept if kept.restored.id == restore), None)

    @property
    def place(self) -> str:
        """The turn that the conversation ends with; no two places between turns have the same."""
        return self.pasts[-1].turn if self.pasts else ""

    def began(self, turn: str, seq: int, conversation: Conversation) -> History:
        """A turn begins. What was undone before it is gone for the conversation: it goes on from
        here."""
        past = Past(turn, seq, conversation, self.files)
        return replace(self, pasts=self.pasts.append(past), kept=(), restoring=None)

    def compacted(self, event: Compacted, before: Conversation, now: Conversation) -> History:
        def shorter(past: Past) -> Past:
            if past.lost:
                return past
            then = past.conversation
            if past.length < event.dropped:
                return replace(past, conversation=replace(then, items=Vector()), lost=True)
            return replace(past, conversation=then.shortened(event, before, now))

        return replace(self, pasts=Vector(map(shorter, self.pasts)), kept=())

    def cut(self, past: Past) -> tuple[History, Conversation]:
        """Back to where this turn began; what was said since is not kept in memory."""
        earlier = takewhile(lambda one: one.turn != past.turn, self.pasts)
        items = Vector(past.conversation.items)
        return (
            replace(self, pasts=Vector(one.on(items) for one in earlier)),
            replace(past.conversation, items=items),
        )

    def changed(self, changes: Iterable[FileChange]) -> History:
        files = self.files
        for change in changes:
            if change.via == "proposed":
                continue
            new = files.get(change.path) == "created" or change.before is None
            what = "deleted" if change.after is None else "created" if new else "changed"
            files = {**files, change.path: what}
        return self if files is self.files else replace(self, files=files)
