"""This cache keeps looks at reviews: where neither a review nor its file has moved since, the next
look would find the same, and nobody opens the file or what the store holds of it."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import field

from magy_server.core.agents.tree import Stream
from magy_server.core.ports import Head
from magy_server.dataclass import dataclass
from magy_server.reviews import current_review, streams
from magy_server.reviews.current_review import Now
from magy_server.reviews.review_store import ReviewStore
from magy_server.reviews.streams import Standing, begun
from magy_server.reviews.views import Summary


@dataclass(frozen=True, slots=True)
class Look:
    """What a look at a review came to. `summary`: None when nothing is pending. `typed`: the file
    has something of the person's that the review does not hold yet."""

    summary: Summary | None
    typed: bool
    told: dict[tuple[str, str], str] = field(default_factory=dict)
    """What the model is told of it, by workspace root and session; "" when that is nothing."""


class Looks:
    """One for each process. It answers only while the newest entry of the review is the same, and
    so are the marks of the file and of the commit checked out around it."""

    def __init__(self, store: ReviewStore) -> None:
        self._store = store
        self._listed: dict[str, tuple[Sequence[Head], Sequence[Standing]]] = {}
        self._looks: dict[Stream, tuple[Hashable, Look]] = {}

    async def pending(self, kind: str, root: str) -> Sequence[Standing]:
        """The reviews below a root in which something was pending when they were written, the
        newest first."""
        store, prefix = self._store.world.store, streams.prefix_of(kind, root)
        heads = await store.heads(prefix)
        known, found = self._listed.get(prefix, ((), ()))
        if heads != known:
            same = {head.stream for head in set(heads).intersection(known)}
            kept = {at.stream: at for at in found if at.stream in same}
            for moved in {at.stream for at in found} - same:
                self._looks.pop(moved, None)
            standings = await streams.standings(store, prefix, kept)
            found = [at for at in standings if at.pending and at.event]
            # One that cannot be read is tried again.
            self._listed[prefix] = heads if len(standings) == len(heads) else (), found
        return found

    async def marks(self, at: Sequence[Standing]) -> Sequence[Hashable | None]:
        """Taken before the look that is remembered with it. None: look."""
        events = [one.event for one in at if one.event is not None]
        marks = await self._store.files.marks([(event.root, event.path) for event in events])
        return [mark and (one.seq, mark) for one, mark in zip(at, marks, strict=True)]

    def known(self, at: Standing, mark: Hashable | None) -> Look | None:
        kept = self._looks.get(at.stream)
        return kept[1] if kept is not None and mark is not None and kept[0] == mark else None

    def made(self, at: Standing, mark: Hashable | None, now: Now, whole: bool) -> Look:
        """`whole`: nothing of what was seen is still to be written down."""
        live = now.live
        typed = live.exists and live.version != now.event.agent and not now.unreadable
        look = Look(current_review.summary(now) if now.hunks else None, typed)
        self._looks.pop(at.stream, None)
        if mark is not None and whole and now.seq == at.seq and not (now.unreadable or begun(at)):
            self._looks[at.stream] = mark, look
        return look
