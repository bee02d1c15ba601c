"""`Log` keeps a session's log folded in memory: it appends, folds, and settles conflicts.

All processes that show or run a session fold the same log; only one of them, which holds the lease
of its tree, runs it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import field
from typing import Protocol

from magy_server.core.agents.tree import Stream, id_of
from magy_server.core.errors import Conflict, NotFound
from magy_server.core.events import Entry, Event
from magy_server.core.ports import Batch, Lease, Store
from magy_server.core.state.fold import ahead, fold, settled
from magy_server.core.state.state import State
from magy_server.core.summary import summarise
from magy_server.core.values import Hash
from magy_server.dataclass import dataclass
from magy_server.engine.snapshots import Snapshots

RECENT = 512
"""Entries appended since the log was loaded that are kept in memory for watchers, at least; older
ones are read from the store."""

PAGE = 200
"""So many entries are read at a time: a few milliseconds, in which nobody else reads."""
SLICE = 25
"""So many are folded before others get their turn: less than a millisecond."""

Decide = Callable[[State], "Write | None"]
"""Looks at the state and says what to append, or None when there is nothing to do any more."""


@dataclass(frozen=True, slots=True)
class Write:
    """What one append adds: to this session, and to other streams in the same transaction.
    `during`: the state in which it happened, where that is not the one it is appended to."""

    events: Sequence[Event]
    blobs: Mapping[Hash, bytes] = field(default_factory=dict)
    others: Sequence[Batch] = ()
    during: State | None = None


@dataclass(frozen=True, slots=True)
class Letter:
    """What goes along with an append, to other streams, in the same transaction."""

    batches: Sequence[Batch]
    posted: Callable[[Sequence[Entry]], None]
    """Gets what was appended to those streams, when the transaction is over: nothing when it
    failed, or was not waited for. Not called for a letter that was not used."""
    holds: Callable[[State], bool] = lambda state: True
    """Whether it is as right with this state of the session, which has moved on meanwhile."""


Letters = Callable[[], Awaitable[Sequence[Letter]]]
"""Works out what goes along, which may take a while. What it raises keeps the append from
happening."""
Companion = Callable[[State, Write], Letters | None]
"""(the state, what is to be appended to it) -> what goes along in the same transaction; None:
nothing."""


class Holder(Protocol):
    """Who holds a log, and is told what becomes of it."""

    def folded(self, entries: Sequence[Entry]) -> None:
        """The log calls this when entries have come, from here or elsewhere; the state has them."""

    def appended(self, entries: Sequence[Entry]) -> None:
        """The log calls this when this process has appended entries, which other processes do not
        know yet."""

    def vanished(self) -> None:
        """The log calls this when it finds that it was deleted."""


class Log:
    """`lease` is set while this process runs the session; appends then carry it."""

    __slots__ = (
        "_companions", "_holder", "_lock", "_snapshots", "_store", "lease", "loaded", "recent",
        "state", "stream",
    )  # fmt: skip

    def __init__(
        self, stream: Stream, store: Store, companions: Sequence[Companion], holder: Holder
    ) -> None:
        self.stream = stream
        self.state = State(stream)
        self.loaded = False
        """False: only watched; the log is read from the store, nothing is folded."""
        self.lease: Lease | None = None
        self.recent: list[Entry] = []
        self._store = store
        self._companions = companions
        self._holder = holder
        self._snapshots = Snapshots(store, stream)
        self._lock = asyncio.Lock()

    async def load(self) -> None:
        """Folds the whole log; needed to run or change a session, not to watch it. Its holder hears
        of the latest entries."""
        async with self._lock:
            if self.loaded or not await self._resumed():
                await self._catch_up()
            self.loaded = True

    async def _resumed(self) -> bool:
        """Goes on from the snapshot, if there is one of this log."""
        latest = await self._snapshots.latest(RECENT)
        if latest is None:
            return False
        kept, entries = latest
        state, new = await self._folded(kept)
        self._go_on(state, [*entries, *new])
        return True

    async def prepare(self) -> None:
        """Lets the store keep a snapshot of a log that is not loaded, unless it has one that this
        Magy made: who loads the log meanwhile waits for it, and goes on from there. Raises
        StoreError."""
        async with self._lock:
            if not self.loaded and await self._snapshots.missing():
                with suppress(NotFound):  # who asks for it next is told
                    state, _ = await self._folded(State(self.stream))
                    await self._snapshots.keep(state)

    @property
    def snapshot_due(self) -> bool:
        """Returns whether much has come since a snapshot was kept."""
        return self._snapshots.due(self.state)

    async def keep_snapshot(self) -> None:
        """Lets the store keep what is folded, if that is due still."""
        if self.snapshot_due:
            await self._snapshots.keep(self.state)

    async def reload(self) -> None:
        """Folds it anew, for what was folded may be wrong. Raises StoreError, NotFound."""
        async with self._lock:
            folded, entries = await self._folded(State(self.stream))
            if self.state.seq and not folded.seq:
                raise self._vanish()
            self.recent.clear()
            self._snapshots = Snapshots(self._store, self.stream)  # so may be what was kept of it
            self._go_on(folded, entries)

    async def refresh(self) -> None:
        """Reads what other processes appended. Raises StoreError, NotFound."""
        async with self._lock:
            await self._catch_up()

    async def append(self, decide: Decide) -> Sequence[Entry]:
        """Appends what `decide` says. When the log has moved on meanwhile, asks it again: a fact
        is simply said once more, a decision is made anew. Raises StoreError, NotFound."""
        while True:
            async with self._lock:
                state, write = self.state, decide(self.state)
                if write is None:
                    return []
                working = self._along(state, write)
                if not working and (done := await self._tried(write, ())) is not None:
                    return done
            if not working:
                continue
            done = await self._together(state, write, working, decide)
            if done is not None:
                return done

    async def _together(
        self, state: State, write: Write, working: Sequence[Letters], decide: Decide
    ) -> Sequence[Entry] | None:
        """None: something has moved on, and it is to be begun anew."""
        letters = [letter for along in working for letter in await along()]
        async with self._lock:
            if self.state is not state:
                again = decide(self.state)
                if again is None:
                    return []
                held = all(letter.holds(self.state) for letter in letters)
                if again.events != write.events or not held:
                    return None
                write = again
            return await self._tried(write, letters)

    async def _tried(self, write: Write, letters: Sequence[Letter]) -> Sequence[Entry] | None:
        """None as above. Under the lock."""
        try:
            return await self._append(write, letters)
        except Conflict:
            before = self.state.seq
            await self._catch_up()
            along = [batch for letter in letters for batch in letter.batches]
            heads = [await self._store.head(batch.stream) for batch in along]
            if self.state.seq == before and heads == [batch.after for batch in along]:
                raise  # the lease or another stream moved
            return None

    def _along(self, state: State, write: Write) -> list[Letters]:
        """They are worked out without the lock: others append meanwhile."""
        found = (companion(state, write) for companion in self._companions)
        return [one for one in found if one is not None]

    async def _append(self, write: Write, letters: Sequence[Letter]) -> Sequence[Entry]:
        now = self.state
        events = list(write.events)
        preview = ahead(now, events)
        own = Batch(self.stream, now.seq, events, write.blobs, summarise(preview))
        others = [*write.others, *(batch for letter in letters for batch in letter.batches)]
        appended: Sequence[Entry] = ()
        try:
            appended = await self._store.append([own, *others], self.lease)
            entries = [entry for entry in appended if entry.stream == self.stream]
            self._go_on(settled(now, preview, entries), entries)
            self._holder.appended(entries)
        finally:
            for letter in letters:
                streams = {batch.stream for batch in letter.batches}
                letter.posted([entry for entry in appended if entry.stream in streams])
        return entries

    def beside(self, events: Sequence[Event]) -> Batch:
        """What appends these together with something else, in an append of another stream. Call
        `grown` of the session after it."""
        summary = summarise(ahead(self.state, events))
        return Batch(self.stream, self.state.seq, events, {}, summary)

    async def _catch_up(self) -> None:
        self._go_on(*await self._folded(self.state))

    def _vanish(self) -> NotFound:
        if self.state.seq:  # else nobody has worked with it yet
            self._holder.vanished()
        return deleted(self.stream)

    async def _folded(self, state: State) -> tuple[State, Sequence[Entry]]:
        """Folds what came after this state, page by page; returns what was new, or only the latest
        of it while the log is being loaded. A log may be long: others read and run meanwhile,
        nobody sees it half folded, and what is folded needs no memory any more. Each page begins
        with the entry that was folded last: where another stands, or none, the log was deleted, and
        what is there now is not part of it. Raises StoreError, NotFound."""
        entries: deque[Entry] = deque(maxlen=None if self.loaded else RECENT)
        while True:
            after = max(0, state.seq - 1)
            page = await self._store.read(self.stream, after=after, limit=PAGE)
            if state.seq and (not page or page[0].at != state.at):
                raise self._vanish()
            new = page[1:] if state.seq else page
            for start in range(0, len(new), SLICE):
                if start:
                    await asyncio.sleep(0)
                state = fold(new[start : start + SLICE], state)
            entries += new
            if len(page) < PAGE:
                return state, list(entries)

    def _go_on(self, state: State, entries: Sequence[Entry]) -> None:
        self.state = state
        if self.loaded:
            self.recent += entries
            if len(self.recent) > 2 * RECENT:
                del self.recent[:-RECENT]
        if entries:
            self._holder.folded(entries)

    def entries_after(self, seq: int) -> list[Entry] | None:
        """Returns the entries after `seq` from memory; None when they must be read from the
        store."""
        newer = self.state.seq - seq
        if not self.loaded or newer > len(self.recent):
            return None
        return [self.recent[index] for index in range(-newer, 0)] if newer > 0 else []


def deleted(stream: Stream) -> NotFound:
    return NotFound(f"Session {id_of(stream)!r} was deleted in the meantime.")
