"""Features see the sessions of a process through `Sessions`; `LoadedSessions` keeps them in
memory."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Protocol

from magy_server.core.agents import tree
from magy_server.core.agents.tree import Stream, id_of, stream_of
from magy_server.core.errors import NotFound, StoreError
from magy_server.core.ports import Bus, Clock, Store, StreamInfo
from magy_server.core.state.state import State
from magy_server.core.steps import Rest, Step, next_step
from magy_server.dataclass import dataclass
from magy_server.engine import trees
from magy_server.engine.log import Companion, deleted
from magy_server.engine.session import News, Session
from magy_server.engine.trees import Part, Trees, root_of

LOG = logging.getLogger(__name__)
FRESH = 3600.0
"""Seconds. A session left open longer ago than this waits for a person to resume it."""


class Sessions(Protocol):
    """What features need of the sessions of a process. `LoadedSessions` is the real one."""

    @property
    def trees(self) -> Trees: ...

    @property
    def news(self) -> News: ...

    @property
    def store(self) -> Store: ...

    @property
    def clock(self) -> Clock: ...

    async def session(self, stream: Stream) -> Session:
        """The live session, folded. Raises NotFound, StoreError."""

    def watch(self, stream: Stream) -> Session:
        """The session for watching: costs nothing, however long its log is. Raises NotFound while
        it is deleted."""

    async def above(self, id: str) -> Sequence[State]:
        """The states of this session (its id), its parent and so on to the root. Raises
        NotFound."""

    def tree(self, stream: Stream) -> Sequence[Session]:
        """The folded sessions of the tree that this session is in."""

    def folded(self) -> Sequence[Session]:
        """All that are folded here."""

    def wake(self, session: Session) -> None:
        """Runs the session here if there is something to do and no living process runs it."""

    async def resume(self, stream: Stream) -> None:
        """Loads the session and runs it, if it has something to do. Raises StoreError."""

    async def resume_tree(self, stream: Stream, part: Part) -> None:
        """Goes on with what was left open in this part of the tree: for who runs this session of
        it. What is below that is needed for it, however long ago it was left; the rest may be too
        old."""

    async def forget(self, stream: Stream) -> None:
        """Stops a session here and drops it from memory; its turn stays as it is in the log."""

    def forgotten(self, stream: Stream) -> AbstractAsyncContextManager[None]:
        """Drops the session and all below it, and keeps them out of memory meanwhile."""


@dataclass(slots=True, eq=False)
class Kept:
    """A session in memory."""

    session: Session
    read: int
    """Which change by others it was last read after."""
    rests: int = -1
    """The seq at which it is known to rest."""

    def step(self) -> Step:
        """What is next; costs nothing while a session rests: there may be thousands."""
        seq = self.session.state.seq
        if self.rests == seq:
            return Rest()
        step = next_step(self.session.state)
        self.rests = seq if isinstance(step, Rest) else -1
        return step

    @property
    def quiet(self) -> bool:
        """Returns whether the session rests and nobody watches it."""
        return not self.session.watched and isinstance(self.step(), Rest)


class LoadedSessions:
    """The sessions that one process has in memory."""

    def __init__(self, store: Store, bus: Bus, clock: Clock, me: str) -> None:
        self.news = News()
        self.companions: list[Companion] = []
        """They go along with each append, in this order."""
        self.trees = Trees(store, self._released)
        self.store = store
        self._bus = bus
        self.clock = clock
        self._me = me
        self._by_root: dict[Stream, dict[Stream, Kept]] = {}
        self._changes = 0
        self._barred: list[Stream] = []
        """None of these and of those below them comes into memory: they are being deleted."""

    # --- those in memory ------------------------------------------------------------------------

    def __iter__(self) -> Iterator[Kept]:
        """Those that are there now."""
        return iter([kept for one in self._by_root.values() for kept in one.values()])

    def get(self, stream: Stream) -> Kept | None:
        return self._by_root.get(root_of(stream), {}).get(stream)

    async def session(self, stream: Stream) -> Session:
        session = self.watch(stream)
        if not session.log.loaded:
            await session.load()
        elif session.state.opened is None or self.missed(stream):
            await session.refresh()  # who was making it may have been stopped right after
        if session.state.opened is None:
            await self.forget(stream)
            name = id_of(stream)
            raise NotFound(f"There is no session {name!r}. The list of sessions has all of them.")
        if session.gone:
            raise deleted(stream)
        return session

    def watch(self, stream: Stream) -> Session:
        if any(_within(stream, top) for top in self._barred):
            raise deleted(stream)
        there = self._by_root.setdefault(root_of(stream), {})
        if stream not in there:
            new = Session(stream, self.store, self._bus, self._me, self.news, self.companions)
            there[stream] = Kept(new, self._changes)
        session = there[stream].session
        session.used = self.clock.now()
        return session

    async def above(self, id: str) -> Sequence[State]:
        names = [id, *tree.ancestors(id)]
        return [(await self.session(stream_of(name))).state for name in names]

    def tree(self, stream: Stream) -> Sequence[Session]:
        there = self._by_root.get(root_of(stream), {})
        return [kept.session for kept in there.values() if kept.session.log.loaded]

    def folded(self) -> Sequence[Session]:
        return [kept.session for kept in self if kept.session.log.loaded]

    # --- letting go -----------------------------------------------------------------------------

    async def forget(self, stream: Stream) -> None:
        root = root_of(stream)
        there = self._by_root.get(root, {})
        kept = there.pop(stream, None)
        if not there:
            self._by_root.pop(root, None)
        if kept:
            await kept.session.close()

    @asynccontextmanager
    async def forgotten(self, stream: Stream) -> AsyncIterator[None]:
        self._barred.append(stream)
        try:
            for name in [n for n in self._by_root.get(root_of(stream), {}) if _within(n, stream)]:
                await self.forget(name)
            yield
        finally:
            self._barred.remove(stream)

    # --- running --------------------------------------------------------------------------------

    def wake(self, session: Session) -> None:
        self.news.woken(session)

    async def resume(self, stream: Stream) -> None:
        kept = self.get(stream)
        if kept is None or not kept.session.log.loaded:
            info = await self.store.info(stream)
            if info is None or not _left_open(info):
                return
        try:
            session = await self.session(stream)
            await session.refresh()
        except NotFound:  # it was deleted meanwhile
            return
        self.wake(session)

    async def resume_tree(self, stream: Stream, part: Part) -> None:
        def needed(info: StreamInfo) -> bool:
            below = info.stream.startswith(f"{stream}/")
            beside = part == "tree" and info.stream != stream and self._fresh(info)
            return below or beside

        await self._resume(root_of(stream), needed)

    async def go_on(self) -> None:
        """A process has died, or left: it may have run a tree of which only what rests is folded
        here. Goes on with what it left open there a short while ago."""
        for root in tuple(self._by_root):
            if self.tree(root):
                await self._resume(root, self._fresh)

    def _fresh(self, info: StreamInfo) -> bool:
        return self.clock.now() - info.updated < FRESH

    async def _resume(self, root: Stream, wanted: Callable[[StreamInfo], bool]) -> None:
        """Those sessions of a tree that were left open."""
        for info in await trees.whole(self.store, id_of(root)):
            if _left_open(info) and wanted(info):
                try:
                    await self.resume(info.stream)
                except StoreError as error:  # that one is damaged; the others go on
                    LOG.warning("%s", error)

    def _released(self, root: str) -> None:
        """Others may have waited for the tree, with prompts of their own."""
        self._bus.publish("runner", {"by": self._me, "free": root})

    # --- what others append ---------------------------------------------------------------------

    def at_work(self, roots: Iterable[Stream]) -> Sequence[Kept]:
        """Returns all sessions of these trees, and of the others those that are not quiet."""
        trees = [self._by_root[root] for root in roots if root in self._by_root]
        found = {id(kept): kept for there in trees for kept in there.values()}
        found.update((id(kept), kept) for kept in self if not kept.quiet)
        return list(found.values())

    def changed(self) -> None:
        """Notes that other processes may have appended to any session."""
        self._changes += 1

    def missed(self, stream: Stream) -> bool:
        """Returns whether other processes may have appended to the session since it was last read.
        A caller that gets True must read it."""
        kept = self.get(stream)
        if kept is None or kept.read == self._changes:
            return False
        kept.read = self._changes
        return True


def _left_open(info: StreamInfo) -> bool:
    return info.summary.get("state") != "idle"


def _within(stream: Stream, top: Stream) -> bool:
    return stream == top or stream.startswith(f"{top}/")
