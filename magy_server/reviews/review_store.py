"""`ReviewStore` connects all work on reviews with store and disk: it finds how a review and its
file stand, appends, and tells those who watch."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from typing import Any
from weakref import WeakValueDictionary

from magy_server.core.agents.tree import Stream, stream_of
from magy_server.core.errors import Conflict, NotFound, ToolError
from magy_server.core.listeners import Listeners
from magy_server.core.ports import Batch, Files, Found, same
from magy_server.core.reviews.review_events import Noted, Reviewed
from magy_server.core.reviews.undo_merge import UNSAVED
from magy_server.core.values import Hash
from magy_server.engine.loaded_sessions import Sessions
from magy_server.engine.log import Write
from magy_server.engine.session import Session
from magy_server.engine.world import World
from magy_server.reviews import current_review, streams
from magy_server.reviews.current_review import Now
from magy_server.reviews.file_review import FileReview, Side, Stored, held_of, made, side
from magy_server.reviews.restore_files import adrift, look
from magy_server.reviews.streams import Standing

TOPIC = "reviews"
KEPT = 16
"""Reviews in memory."""
Changed = Callable[[Sequence[str]], None]
"""(paths)"""


class ReviewStore:
    def __init__(self, world: World, sessions: Sessions) -> None:
        self.world = world
        self._sessions = sessions
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._watchers = Listeners[Sequence[str]]()
        self._kept: dict[str, tuple[Reviewed, FileReview]] = {}
        self._open: set[tuple[str, bool]] = set()
        self.close = self.world.bus.subscribe(TOPIC, self._receive)

    @property
    def files(self) -> Files:
        return self.world.files

    def lock(self, stream: Stream) -> asyncio.Lock:
        """Held while something is decided about a file: in this process one after the other."""
        return self._locks.setdefault(stream, asyncio.Lock())

    def locked(self, stream: Stream) -> bool:
        """Whether somebody holds that lock now; of most streams there is none, and none is made."""
        lock = self._locks.get(stream)
        return lock is not None and lock.locked()

    @asynccontextmanager
    async def changing(self, paths: Collection[str]) -> AsyncIterator[None]:
        """Locks these files from before they are changed until the journal says who changed what: a
        look in between would take an agent's lines for the person's."""
        async with AsyncExitStack() as held:
            for stream in sorted(streams.stream_of(path, False) for path in set(paths)):
                await held.enter_async_context(self.lock(stream))
            yield

    async def decided(self) -> None:
        """Waits for the decisions about proposals that are being carried out in this process."""
        for stream, lock in tuple(self._locks.items()):
            if stream.startswith(streams.PROPOSED):
                async with lock:
                    pass

    # --- looking --------------------------------------------------------------------------------

    async def standing(self, stream: Stream) -> Standing:
        info = await self.world.store.info(stream)
        if info is None:
            return Standing(stream)
        return await streams.standing_of(self.world.store, info)

    async def held(self, event: Reviewed) -> FileReview:
        """The review as it was stored."""
        hashes = [version.hash for version in (event.base, event.agent) if version.hash]
        blobs = await self.world.store.blobs(hashes)
        return await asyncio.to_thread(held_of, event, blobs, self.files.text)

    async def known(self, path: str, proposed: bool) -> Standing:
        """How a file that is, or was, under review stands. Raises NotFound."""
        at = await self.standing(streams.stream_of(path, proposed))
        if at.event is None:
            what = "proposed for" if proposed else "under review in"
            raise NotFound(f"Nothing is {what} {path}. `magy/review/list` names what is.")
        return at

    async def now(self, at: Standing) -> Now:
        """The review in the live file. What cannot be looked into (a directory, by now) is as it
        was seen last."""
        assert at.event is not None
        stored = await self._stored(at, at.event)
        try:
            gone = at.event.agent.hash is None and not at.event.proposed
            held = (at.event.base.hash, at.event.removed) if gone else ()
            found = await look(self.files, at.event.root, at.event.path, held, () if gone else None)
        except ToolError as error:
            return current_review.blind(at.seq, stored, at.event, error.message)
        if gone and at.pending and adrift(found):  # that it was removed is still to be decided
            shown = await self.shown(at.seq, stored, at.event, Found(found.path))
            return replace(shown, unreadable=f"{shown.held.name} was removed. {UNSAVED}")
        return await self.shown(at.seq, stored, at.event, found)

    async def _stored(self, at: Standing, event: Reviewed) -> FileReview:
        """The last few are kept: a file is looked at whenever the person pauses."""
        kept = self._kept.pop(at.stream, None)
        if kept is None or kept[0] != event:
            kept = event, await self.held(event)
        self._kept[at.stream] = kept
        if len(self._kept) > KEPT:
            del self._kept[next(iter(self._kept))]
        return kept[1]

    async def shown(self, seq: int, held: FileReview, event: Reviewed, found: Found) -> Now:
        return await asyncio.to_thread(current_review.now, seq, held, event, found, self.files.text)

    def side(self, found: Found) -> Side:
        return side(found.version, found.data, self.files.text)

    def made(self, one: Side) -> Side:
        """Returns a side with its bytes. Raises ToolError."""
        return made(one, self.files.encode)

    # --- appending ------------------------------------------------------------------------------

    async def append(
        self,
        at: Standing,
        stored: Sequence[Stored],
        pending: bool,
        notes: Mapping[str, Noted] | None = None,
    ) -> Standing:
        """All of it, and what sessions (by id) are told of it, or nothing. Raises Conflict."""
        blobs: dict[Hash, bytes] = {}
        for one in stored:
            blobs.update(one.blobs)
        events = [one.event for one in stored]
        batch = streams.batch(at, events, blobs, pending)
        told = [(session, notes[id]) for id, session in await self._living(notes)] if notes else []
        if told:
            (first, note), *others = told
            batches = [batch, *(session.log.beside([other]) for session, other in others)]
            await first.append(lambda now: Write([note], others=batches))
            for session, _ in others:
                await session.grown()
        else:
            await self.world.store.append([batch])
        self.said([batch])
        return Standing(at.stream, at.seq + len(events), events[-1], pending)

    async def together(
        self,
        work_out: Callable[[], Awaitable[Sequence[Batch]]],
        append: Callable[[Sequence[Batch]], Awaitable[object]],
    ) -> None:
        """Appends something with the reviews that go along, which are worked out anew when somebody
        has decided about one of the files meanwhile. Raises Conflict: something else moved on."""
        before: Sequence[Batch] | None = None
        while True:
            reviews = await work_out()
            try:
                await append(reviews)
                break
            except Conflict:
                if before is not None and same(before, reviews):
                    raise
                before = reviews
        self.said(reviews)

    async def _living(self, notes: Mapping[str, Noted]) -> list[tuple[str, Session]]:
        """A session may have been deleted meanwhile."""
        found = []
        for id in notes:
            stream = stream_of(id)
            if await self.world.store.head(stream):
                try:
                    session = await self._sessions.session(stream)
                    await session.refresh()
                except NotFound:
                    continue
                found.append((id, session))
        return found

    # --- telling --------------------------------------------------------------------------------

    def said(self, batches: Sequence[Batch]) -> None:
        """Tells those who watch that these batches were appended."""
        pending: dict[bool, dict[str, bool]] = {}
        for batch in batches:
            event = batch.events[-1]
            if isinstance(event, Reviewed):
                about = pending.setdefault(event.proposed, {})
                about[event.path] = bool((batch.summary or {}).get("pending"))
        for proposed, paths in pending.items():
            self.world.bus.publish(TOPIC, {"proposed": proposed, "paths": paths})

    def put(self, paths: Sequence[str]) -> None:
        """Tells those who watch that these files came, went or have other contents; what is on
        record of their reviews is as before."""
        if paths:
            self.world.bus.publish(TOPIC, {"proposed": False, "paths": dict.fromkeys(paths)})

    def note(self, path: str, proposed: bool, pending: bool) -> None:
        """Notes whether something of a file is pending."""
        (self._open.add if pending else self._open.discard)((path, proposed))

    def under(self, path: str) -> bool:
        return (path, False) in self._open or (path, True) in self._open

    def watch(self, changed: Changed) -> Callable[[], None]:
        return self._watchers.add(changed)

    def _receive(self, message: Mapping[str, Any]) -> None:
        paths = message["paths"]
        for path, pending in paths.items():
            if pending is not None:
                self.note(path, bool(message["proposed"]), pending)
        self._watchers(list(paths))
