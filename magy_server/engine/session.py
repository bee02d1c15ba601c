"""A session as one process holds it: the folded log, what is streaming, and who watches.

Every process that shows or runs a session has one of these; all of them fold the same log. The
bus tells that the log grew, and carries what streams: it may drop, the log may not.
"""

from __future__ import annotations

import asyncio
import logging
from bisect import bisect_right
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from magy_server.core.errors import Conflict, NotFound
from magy_server.core.events import Entry, Event, Hash, Mailed
from magy_server.core.fold import apply
from magy_server.core.ports import Batch, Bus, Lease, Store
from magy_server.core.state import State
from magy_server.engine.news import Listeners
from magy_server.engine.summary import summarise

LOG = logging.getLogger(__name__)
RECENT = 512
"""Entries kept in memory for watchers; older ones are read from the store."""
TAIL = 64 * 1024
"""Characters of a running tool's output that are kept for who looks in now."""

Decide = Callable[[State], "Write | None"]
"""Looks at the state and says what to append, or None when there is nothing to do any more."""
Listener = Callable[[State, Sequence[Entry]], None]


@dataclass(frozen=True, slots=True)
class Write:
    """What one append adds: to this session, and to other streams in the same transaction."""

    events: Sequence[Event]
    blobs: Mapping[Hash, bytes] = field(default_factory=dict)
    others: Sequence[Batch] = ()


class Letter(Protocol):
    """What goes along with an append, to another stream, in the same transaction."""

    batch: Batch

    async def stale(self) -> bool:
        """Whether that stream does not stand any more where this was to go."""
        ...

    def posted(self, appended: Sequence[Entry]) -> None:
        """The transaction is over; `appended` is empty when it failed, or was not waited for."""
        ...


Companion = Callable[[State, Sequence[Event]], Awaitable[Letter | None]]
"""async (the state, what is to be appended to it) -> what goes along in the same transaction."""


@dataclass(frozen=True, slots=True)
class News:
    """What the sessions of a process say to whoever listens."""

    appended: Listeners[[State, Sequence[Entry]]] = field(default_factory=Listeners)
    """Entries were appended here; the state has them."""
    signalled: Listeners[[Session, Sequence[Mailed]]] = field(default_factory=Listeners)
    """Signals have come, from any process; all of them again when the log is loaded."""
    woken: Listeners[[Session]] = field(default_factory=Listeners)
    """There may be something to do in a session."""
    vanished: Listeners[[Session]] = field(default_factory=Listeners)
    """It turned out that the log was deleted."""
    broken: Listeners[[str, str]] = field(default_factory=Listeners)
    """A session (its stream) cannot go on at all, and why: its log cannot be written."""


@dataclass(slots=True)
class Partial:
    """Something that streams: `kind` text | thinking | call | output, of the message or call `id`.
    Of a command's output only the newest `TAIL` characters are kept, at least."""

    kind: str
    id: str
    name: str = ""
    size: int = 0
    _chunks: list[str] = field(default_factory=list)
    _starts: list[int] = field(default_factory=list)

    @property
    def start(self) -> int:
        """The offset, in characters, of the first one still kept."""
        return self._starts[0] if self._starts else self.size

    def add(self, text: str) -> None:
        self._chunks.append(text)
        self._starts.append(self.size)
        self.size += len(text)
        if self.kind == "output" and self.size - self.start > 2 * TAIL:
            kept = self.since(self.size - TAIL)
            self._chunks, self._starts = [kept], [self.size - len(kept)]

    def skip_to(self, offset: int) -> None:
        """What came before is lost."""
        self._chunks, self._starts, self.size = [], [], offset

    def since(self, offset: int) -> str:
        """What came after `offset`, as far as it is kept. Costs what it gives."""
        first = max(0, bisect_right(self._starts, offset) - 1)
        if first >= len(self._chunks):
            return ""
        text = "".join(self._chunks[first:])
        return text[max(0, offset - self._starts[first]) :]


class Session:
    """`lease` is set while this process runs the session; appends then carry it."""

    def __init__(
        self,
        stream: str,
        store: Store,
        bus: Bus,
        me: str,
        news: News,
        companions: Sequence[Companion] = (),
    ) -> None:
        self.stream = stream
        self.state = State(stream)
        self.loaded = False
        """False: only watched; the log is read from the store, nothing is folded."""
        self.lease: Lease | None = None
        self.fresh = True
        """Nothing of it has been run by this process."""
        self.gone = False
        """It was deleted, or let go from memory."""
        self.doubted = False
        """What was folded may be wrong: it is folded anew before anything is done with it."""
        self.recent: deque[Entry] = deque(maxlen=RECENT)
        self.partials: dict[tuple[str, str], Partial] = {}
        self.moved = asyncio.Event()
        self.arriving = asyncio.Lock()
        """Held while a prompt is made ready: what comes after it must not overtake it."""
        self.used = 0.0
        """When somebody last asked for it, seconds since the epoch."""
        self._store = store
        self._bus = bus
        self._me = me
        self._news = news
        self._companions = companions
        self._lock = asyncio.Lock()
        self._watchers: list[Callable[[], None]] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._wants = False
        self._unsubscribe = bus.subscribe(stream, self._receive)

    async def load(self) -> None:
        """Folds the whole log; needed to run or change a session, not to watch it."""
        async with self._lock:
            await self._catch_up()
            self.loaded = True

    async def _reload(self) -> None:
        self.doubted = False
        async with self._lock:
            entries = await self._store.read(self.stream)
            if self.state.seq and not entries:
                raise self._vanish()
            self.state = State(self.stream)
            self.recent.clear()
            self._fold(entries)
        for kind, id in tuple(self.partials):
            if kind not in ("output", "notice"):
                self.restart(id)

    async def append(self, decide: Decide) -> Sequence[Entry]:
        """Appends what `decide` says. When the log has moved on meanwhile, asks it again: a fact
        is simply said once more, a decision is made anew. Raises StoreError, NotFound."""
        async with self._lock:
            while True:
                write = decide(self.state)
                if write is None:
                    return []
                letters = await self._letters(write.events)
                try:
                    return await self._append(write, letters)
                except Conflict:
                    before = self.state.seq
                    await self._catch_up()
                    if self.state.seq == before and not await _stale(letters):
                        raise  # the lease or another stream moved

    async def _letters(self, events: Sequence[Event]) -> Sequence[Letter]:
        """A companion may wait for the lock of a session above this one: never the other way
        round."""
        found = [await companion(self.state, events) for companion in self._companions]
        return [letter for letter in found if letter]

    async def _append(self, write: Write, letters: Sequence[Letter]) -> Sequence[Entry]:
        now = self.state
        events = list(write.events)
        preview = ahead(now, events)
        own = Batch(self.stream, now.seq, events, write.blobs, summarise(preview))
        others = [*write.others, *(letter.batch for letter in letters)]
        appended: Sequence[Entry] = ()
        try:
            appended = await self._store.append([own, *others], self.lease)
        finally:
            for letter in letters:
                letter.posted([e for e in appended if e.stream == letter.batch.stream])
        entries = [entry for entry in appended if entry.stream == self.stream]
        self._fold(entries)
        self._heard(entries)
        return entries

    def _heard(self, entries: Sequence[Entry]) -> None:
        if entries:
            self._news.appended(self.state, entries)
        self._bus.publish(self.stream, {"by": self._me, "head": self.state.seq})

    def beside(self, events: Sequence[Event]) -> Batch:
        """What appends these together with something else, in an append of another stream. Call
        `grown` after it."""
        summary = summarise(ahead(self.state, events))
        return Batch(self.stream, self.state.seq, events, {}, summary)

    async def grown(self, entries: Sequence[Entry] = ()) -> None:
        """`entries`: those of it that its listeners have not heard of."""
        await self.refresh()
        self._heard(entries)

    async def refresh(self) -> None:
        """Reads what other processes appended. Raises StoreError, NotFound."""
        if not self.loaded:
            return self.wake()
        if self.doubted:
            return await self._reload()
        async with self._lock:
            return await self._catch_up()

    async def _catch_up(self) -> None:
        """The last entry known is read again: where another stands, or none, the log that was
        folded is no more."""
        known, at = self.state.seq, self.state.at
        entries = await self._store.read(self.stream, after=max(0, known - 1))
        if not known:
            self._fold(entries)
        elif entries and entries[0].at == at:
            self._fold(entries[1:])
        else:
            raise self._vanish()

    def _vanish(self) -> NotFound:
        self.gone = True
        self.wake()
        self._news.vanished(self)
        return deleted(self.stream)

    def _fold(self, entries: Iterable[Entry]) -> None:
        entries = list(entries)
        if not entries:
            return
        for entry in entries:
            self.state = apply(self.state, entry)
            self.recent.append(entry)
            self.settle(entry.event)
        signals = [e.event for e in entries if isinstance(e.event, Mailed) and e.event.is_signal]
        if signals:
            self._news.signalled(self, signals)
        self.wake()

    def settle(self, event: Event) -> None:
        """The event replaces what was streamed before it."""
        if event.type == "replied":
            self.forget(event.request)
        elif event.type == "finished":
            self.partials.pop(("output", event.call), None)
        elif event.type in ("compacted", "consulted"):
            self.partials.pop(("notice", "notice"), None)
        elif event.type == "ended":
            self.partials.clear()

    def watch(self, watcher: Callable[[], None]) -> Callable[[], None]:
        """Calls `watcher` whenever the log or what streams has grown. The answer ends it."""
        self._watchers.append(watcher)
        return lambda: self._watchers.remove(watcher) if watcher in self._watchers else None

    @property
    def watched(self) -> bool:
        return bool(self._watchers)

    def wake(self) -> None:
        self.moved.set()
        for watcher in tuple(self._watchers):
            watcher()

    # --- what streams ---------------------------------------------------------------------------

    def stream_delta(self, kind: str, id: str, text: str, name: str = "") -> None:
        key = (kind, id)
        partial = self.partials.get(key) or self.partials.setdefault(key, Partial(kind, id, name))
        offset = partial.size
        partial.add(text)
        for watcher in tuple(self._watchers):
            watcher()
        message = {"by": self._me, "kind": kind, "id": id, "name": name, "at": offset, "text": text}
        self._bus.publish(self.stream, message)

    def forget(self, request: str) -> None:
        """Drops what was streamed of a reply: the whole one is in the log."""
        calls = request if request.endswith(".") else f"{request}."
        for key in [k for k in self.partials if k[1] == request or k[1].startswith(calls)]:
            if key[0] != "output":
                del self.partials[key]

    def restart(self, request: str) -> None:
        """The reply is tried again: what was streamed of it does not count."""
        self._restarted(request)
        self._bus.publish(self.stream, {"by": self._me, "restart": request})

    def _restarted(self, request: str) -> None:
        """New empty partials in the place of the old ones, so that watchers see the change."""
        for key in [key for key in self.partials if key[1] == request]:
            self.partials[key] = Partial(*key)
        self.forget(f"{request}.")
        self.wake()

    def notice(self, text: str) -> None:
        """Something passing, for who watches (a retry, say); never stored."""
        partial = self.partials.setdefault(("notice", "notice"), Partial("notice", "notice"))
        partial.add(text)
        self.wake()

    def progress(self, request: str, text: str) -> None:
        """What goes on until the reply to `request` begins, for who watches: it takes the place of
        what was said before. Empty text: it has begun."""
        self.partials.pop(("progress", request), None)
        if text:
            partial = self.partials[("progress", request)] = Partial("progress", request)
            partial.add(text)
            self.wake()

    def _receive(self, message: Mapping[str, Any]) -> None:
        if message.get("by") == self._me:
            return
        if "head" in message:
            if not self.loaded:
                self.wake()
            elif message["head"] > self.state.seq:
                self.later(self.refresh())
        elif "want" in message:
            if self.lease:
                for partial in self.partials.values():
                    self._say(partial)
        elif "restart" in message:
            self._restarted(message["restart"])
        elif "kind" in message:
            self._stream_remote(message)

    def entries_after(self, seq: int) -> list[Entry] | None:
        """From memory; None when they must be read from the store."""
        if not self.loaded or (self.recent and self.recent[0].seq > seq + 1):
            return None
        newer = self.state.seq - seq
        return [self.recent[index] for index in range(-newer, 0)] if newer > 0 else []

    def want_partials(self) -> None:
        """Asks the process that runs this session for what has streamed so far."""
        if not self._wants:
            self._wants = True
            self._bus.publish(self.stream, {"by": self._me, "want": "partials"})

    def _say(self, partial: Partial) -> None:
        self._bus.publish(
            self.stream,
            {"by": self._me, "kind": partial.kind, "id": partial.id, "name": partial.name,
             "at": partial.start, "text": partial.since(partial.start)},
        )  # fmt: skip

    def _stream_remote(self, message: Mapping[str, Any]) -> None:
        key = (message["kind"], message["id"])
        partial = self.partials.setdefault(key, Partial(*key, message["name"]))
        at, text = message["at"], message["text"]
        if at > partial.size:
            if partial.kind != "output":
                return self.want_partials()
            partial.skip_to(at)
        self._wants = False
        if new := text[partial.size - at :]:
            partial.add(new)
            self.wake()
        return None

    def later(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Does it besides everything else, for as long as the session is held here."""
        task = asyncio.create_task(work, name=self.stream)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) and not self.gone:
            LOG.error("%s: %s", self.stream, error)

    async def close(self) -> None:
        """Stops what goes on here; the log stays as it is."""
        await self._stop()
        self._unsubscribe()
        self.gone = True
        self.wake()
        await self._stop()  # what came meanwhile

    async def _stop(self) -> None:
        tasks = tuple(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _stale(letters: Sequence[Letter]) -> bool:
    return any([await letter.stale() for letter in letters])


def deleted(stream: str) -> NotFound:
    return NotFound(f"Session {stream.removeprefix('session/')!r} was deleted in the meantime.")


def ahead(state: State, events: Sequence[Event]) -> State:
    """The state as it will be, for the summary that is stored in the same transaction."""
    for event in events:
        state = apply(state, Entry.model_construct(
            stream=state.stream, seq=state.seq + 1, at=state.at, event=event))  # fmt: skip
    return state
