"""A process holds a session as its log, what streams in it, and a `Replica`, which shares both with
other processes.

Every process that shows or runs a session has one of these; all of them fold the same log. The
bus tells that the log grew, and carries what streams: it may drop, the log may not.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import field
from typing import Any

from magy_server.core.agents.mail import Mailed
from magy_server.core.agents.tree import Stream, id_of
from magy_server.core.errors import MagyError
from magy_server.core.events import Entry
from magy_server.core.listeners import Listeners
from magy_server.core.ports import Bus, Store
from magy_server.core.state.state import State
from magy_server.dataclass import dataclass
from magy_server.engine.log import Companion, Decide, Log
from magy_server.engine.snapshots import EVERY
from magy_server.engine.streaming import Partial, Streaming
from magy_server.tasks import Tasks, logged

AT_WORK: ContextVar[str] = ContextVar("AT_WORK", default="")
"""The id of the session that the running task works for; "": for none, or for several."""
Listener = Callable[[State, Sequence[Entry]], None]
"""Of `News.appended`."""


@dataclass(frozen=True, slots=True)
class News:
    """What the sessions of a process say to whoever listens."""

    appended: Listeners[[State, Sequence[Entry]]] = field(default_factory=Listeners)
    """Entries were appended here; the state has them."""
    signalled: Listeners[[Session, Sequence[Mailed]]] = field(default_factory=Listeners)
    """Signals have come, from any process; the latest of them again when the log is loaded."""
    woken: Listeners[[Session]] = field(default_factory=Listeners)
    """There may be something to do in a session."""
    vanished: Listeners[[Session]] = field(default_factory=Listeners)
    """It turned out that the log was deleted."""
    broken: Listeners[[Stream, str]] = field(default_factory=Listeners)
    """A session (its stream) cannot go on at all, and why: its log cannot be written."""


class Session:
    """A session is three things: its `log`, what streams in it (`streaming`), and a `Replica`,
    which shares both with other processes. The rest is what this process does with it."""

    __slots__ = (
        "__weakref__", "_movers", "_news", "_reading", "_replica", "_tasks", "_watchers",
        "arriving", "doubted", "first_run", "gone", "log", "stream", "streaming", "used",
    )  # fmt: skip

    def __init__(
        self,
        stream: Stream,
        store: Store,
        bus: Bus,
        me: str,
        news: News,
        companions: Sequence[Companion] = (),
    ) -> None:
        self.stream = stream
        self.log = Log(stream, store, companions, self)
        self._watchers: Listeners[[]] = Listeners()
        self._movers: Listeners[[]] = Listeners()
        """Of the log alone: a reply may stream in thousands of pieces."""
        self.streaming = Streaming(self._watchers)
        self.first_run = True
        """Nothing of it has been run by this process."""
        self.gone = False
        """It was deleted, or let go from memory."""
        self.doubted = False
        """What was folded may be wrong: it is folded anew before anything is done with it."""
        self.arriving = asyncio.Lock()
        """Held while a prompt is made ready: what comes after it must not overtake it."""
        self.used = 0.0
        """When somebody last asked for it, seconds since the epoch."""
        self._news = news
        self._reading = 0
        self._tasks = Tasks(self._failed)
        self._replica = Replica(self, bus, me)

    @property
    def id(self) -> str:
        return id_of(self.stream)

    @property
    def state(self) -> State:
        return self.log.state

    async def load(self) -> None:
        await self.log.load()

    def expect(self, length: int) -> None:
        """Somebody looks at the session, which has so many entries, and may prompt it soon. If it
        is long, what it is loaded from quickly is made besides, unless that is there."""
        if length >= EVERY and not self.log.loaded:
            self.later(self.log.prepare())

    async def append(self, decide: Decide) -> Sequence[Entry]:
        """Appends as `Log.append` does. Raises StoreError, NotFound."""
        return await self.log.append(decide)

    async def grown(self, entries: Sequence[Entry] = ()) -> None:
        """Notes that the session was appended to together with another. `entries`: those of which
        its listeners have not heard."""
        await self.refresh()
        self.appended(entries)

    async def refresh(self) -> None:
        """Reads what other processes appended. Raises StoreError, NotFound."""
        if not self.log.loaded:
            self.wake()
        elif self.doubted:
            self.doubted = False
            await self.log.reload()
            for request in self.streaming.unsettled():
                self.restart(request)
        else:
            await self.log.refresh()

    def read_on(self) -> None:
        """Another process has appended: that is read, and then shown before what streams by now."""
        self._reading += 1
        self.later(self._read_on())

    async def _read_on(self) -> None:
        try:
            await self.refresh()
        finally:
            self._reading -= 1
            self._watchers()

    @property
    def reading_on(self) -> bool:
        """Returns whether another process has appended entries that are still being read."""
        return self._reading > 0

    # --- what becomes of the log ----------------------------------------------------------------

    def folded(self, entries: Sequence[Entry]) -> None:
        for entry in entries:
            self.streaming.settle(entry.event)
        signals = [e.event for e in entries if isinstance(e.event, Mailed) and e.event.is_signal]
        if signals:
            self._news.signalled(self, signals)
        if self.log.snapshot_due:
            self.later(self.log.keep_snapshot())
        self.wake()

    def appended(self, entries: Sequence[Entry]) -> None:
        if entries:
            self._news.appended(self.state, entries)
        self._replica.grown()

    def vanished(self) -> None:
        self.gone = True
        self.wake()
        self._news.vanished(self)

    # --- what streams, here and elsewhere -------------------------------------------------------

    def stream_delta(self, kind: str, id: str, text: str, name: str = "") -> None:
        offset = self.streaming.add(kind, id, text, name)
        self._replica.streamed(kind, id, name, offset, text)

    def restart(self, request: str) -> None:
        """The reply is tried again: what was streamed of it does not count."""
        self.streaming.restart(request)
        self._replica.restarted(request)

    def want_partials(self) -> None:
        """Asks the process that runs this session for what has streamed so far."""
        self._replica.want()

    # --- who watches ----------------------------------------------------------------------------

    def watch(self, watcher: Callable[[], None]) -> Callable[[], None]:
        """Calls `watcher` whenever the log or what streams has grown. Returns a function that ends
        this."""
        return self._watchers.add(watcher)

    @asynccontextmanager
    async def moving(self) -> AsyncIterator[asyncio.Event]:
        """Gives what is set whenever the log has grown."""
        moved = asyncio.Event()
        stop = self._movers.add(moved.set)
        try:
            yield moved
        finally:
            stop()

    @property
    def watched(self) -> bool:
        return bool(self._watchers or self._movers)

    def wake(self) -> None:
        self._watchers()
        self._movers()

    # --- what goes on besides -------------------------------------------------------------------

    def later(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Does it besides everything else, for as long as the session is held here."""
        return self._tasks.begin(work, self.stream)

    def _failed(self, error: BaseException) -> None:
        if self.gone:
            return
        logged(error, self.stream)
        if not isinstance(error, MagyError):
            kind = type(error).__name__
            self.streaming.notice(f"Magy failed ({kind}). Its log says where.\n")

    async def close(self) -> None:
        """Stops what goes on here; the log stays as it is."""
        try:
            await self._tasks.cancel()
        finally:  # also when nobody waits for it any more: those who watch must hear of it
            self._replica.close()
            self.gone = True
            self.wake()
        await self._tasks.cancel()  # what came meanwhile


class Replica:
    """Tells the other processes what becomes of a session here, and hears what they tell."""

    __slots__ = ("_bus", "_me", "_session", "_wants", "close")

    def __init__(self, session: Session, bus: Bus, me: str) -> None:
        self._session = session
        self._bus = bus
        self._me = me
        self._wants = False
        self.close = bus.subscribe(session.stream, self._receive)

    def grown(self) -> None:
        self._say({"head": self._session.state.seq})

    def streamed(self, kind: str, id: str, name: str, at: int, text: str) -> None:
        self._say({"kind": kind, "id": id, "name": name, "at": at, "text": text})

    def restarted(self, request: str) -> None:
        self._say({"restart": request})

    def want(self) -> None:
        if not self._wants:
            self._wants = True
            self._say({"want": "partials"})

    def _say(self, message: Mapping[str, Any]) -> None:
        self._bus.publish(self._session.stream, {"by": self._me, **message})

    def _receive(self, message: Mapping[str, Any]) -> None:
        session = self._session
        if message.get("by") == self._me:
            return
        if "head" in message:
            if not session.log.loaded:
                session.wake()
            elif message["head"] > session.state.seq:
                session.read_on()
        elif "want" in message:
            if session.log.lease:
                self._tell(session.streaming.partials.values())
        elif "restart" in message:
            session.streaming.restart(message["restart"])
        elif "kind" in message:
            self._place(message)

    def _tell(self, partials: Iterable[Partial]) -> None:
        for one in partials:
            self.streamed(one.kind, one.id, one.name, one.start, one.since(one.start))

    def _place(self, message: Mapping[str, Any]) -> None:
        kind, id, name = message["kind"], message["id"], message["name"]
        if self._session.streaming.place(kind, id, name, message["at"], message["text"]):
            self._wants = False
        else:
            self.want()
