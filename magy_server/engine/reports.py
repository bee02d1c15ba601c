"""The results of children go into the inboxes of their parents, in the transaction that ends the
child's turn: none is lost, and none comes twice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from magy_server.core.errors import NotFound
from magy_server.core.events import Ended, Entry, Event
from magy_server.core.ports import Batch, Store
from magy_server.core.reports import result
from magy_server.core.state import State
from magy_server.engine.session import Letter, Session, ahead

if TYPE_CHECKING:
    from magy_server.engine.runner import Runner


class Reports:
    """`Session.reporting` of all sessions of a process."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner

    async def __call__(self, state: State, events: Sequence[Event]) -> Letter | None:
        """None: who appends this has no parent, or has none any more."""
        number, ended = next((n, e) for n, e in enumerate(events) if isinstance(e, Ended))
        mail = result(ahead(state, events[:number]), ended, self._runner.world.clock.now())
        if mail is None:
            return None
        parent = await self._parent(mail.to)
        return _Letter(self._runner, parent, parent.beside([mail])) if parent else None

    async def _parent(self, id: str) -> Session | None:
        """As it is now."""
        stream = f"session/{id}"
        head = await self._runner.world.store.head(stream)
        if not head:
            return None
        try:
            parent = await self._runner.session(stream)
            if parent.state.seq < head:
                await parent.refresh()
        except NotFound:
            return None
        return parent


class _Letter:
    def __init__(self, runner: Runner, parent: Session, batch: Batch) -> None:
        self.batch = batch
        self._runner = runner
        self._parent = parent

    async def stale(self) -> bool:
        store: Store = self._runner.world.store
        return await store.head(self.batch.stream) != self.batch.after

    def posted(self, appended: Sequence[Entry]) -> None:
        """Who resumes after this finds the parent's log as long as it is by now; a parent that
        rests has something to do."""
        self._parent.later(self._tell(appended))

    async def _tell(self, appended: Sequence[Entry]) -> None:
        await self._parent.grown(appended)
        self._runner.wake(self._parent)
