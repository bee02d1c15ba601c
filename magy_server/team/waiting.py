"""`Waiting` waits for agents by looking at how they are, without polling, under one timer.

It never counts what it heard (it is level-triggered), so it misses nothing that ended before the
wait began, or while nobody listened."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Literal

from magy_server.core.agents import tree
from magy_server.core.agents.child import LIVE, Result, Waited, status
from magy_server.core.agents.tree import stream_of
from magy_server.core.errors import NotFound
from magy_server.core.state.state import Reported
from magy_server.engine.loaded_sessions import Sessions
from magy_server.engine.session import Session
from magy_server.engine.world import World
from magy_server.team.children import Children

Why = Literal["done", "timed_out", "interrupted", "asking"]


class Waiting:
    """`targets` are below `waiter`; `after` is a cursor in its log. For `itself` and `asked` see
    `Mailing.wait`."""

    def __init__(
        self,
        world: World,
        sessions: Sessions,
        children: Children,
        waiter: Session,
        targets: Sequence[Session],
        until: Literal["any", "all"],
        after: int | None,
        itself: bool,
        asked: frozenset[str] | None,
    ) -> None:
        self._world = world
        self._sessions = sessions
        self._children = children
        self._waiter = waiter
        self._targets = list(targets)
        self._any = until == "any"
        self._after = after
        self._itself = itself
        self._asked = asked
        self._moved = asyncio.Event()
        self._watching = ExitStack()
        self._deleted: list[str] = []
        self._rested = {one.id: one.state.turns for one in targets if _rests(one)}
        """Those that rested when the wait began, after so many turns."""

    async def until(self, deadline: float) -> Waited:
        """Waits, and returns the results. `deadline`: seconds since the epoch. Raises NotFound when
        the session that waits was deleted."""
        left = deadline - self._world.clock.now()
        why: Why | None = None
        with self._watching:
            for session in (self._waiter, *self._targets):
                self._watch(session)
            try:
                async with asyncio.timeout(max(0.0, left)):
                    while (why := await self._look()) is None:
                        await self._moved.wait()
            except TimeoutError:
                why = await self._look() or "timed_out"
        return await self._waited(why)

    def _watch(self, session: Session) -> None:
        self._watching.callback(session.watch(self._seen(session)))

    def _seen(self, session: Session) -> Callable[[], None]:
        """What merely streams is no news."""
        known = session.state.seq

        def look() -> None:
            nonlocal known
            if session.state.seq != known or session.gone:
                known = session.state.seq
                self._moved.set()

        return look

    async def _look(self) -> Why | None:
        self._moved.clear()
        await self._renew()
        if self._ended():
            # A result is in the waiter's log as soon as its child's turn has ended: read as far.
            await self._waiter.refresh()
            if self._ended():
                return "done"
        if self._itself and self._waiter.state.queue.steers:
            return "interrupted"
        return None if self._asked in (None, self._asking()) else "asking"

    def _asking(self) -> frozenset[str]:
        return frozenset(target.id for target in self._targets if target.state.questions)

    async def _renew(self) -> None:
        """What was only let go from memory is still there; the store knows what was deleted."""
        if self._waiter.gone:
            try:
                self._waiter = await self._again(self._waiter)
            except NotFound:
                raise NotFound(
                    f"Session {self._waiter.id!r}, which was waiting, was deleted in the meantime."
                ) from None
        for target in [one for one in self._targets if one.gone]:
            place = self._targets.index(target)
            try:
                self._targets[place] = await self._again(target)
            except NotFound:
                del self._targets[place]
                self._deleted.append(target.id)

    async def _again(self, session: Session) -> Session:
        found = await self._sessions.session(session.stream)
        self._watch(found)
        return found

    def _ended(self) -> bool:
        done = [target for target in self._targets if self._done(target)]
        if len(done) == len(self._targets):
            return True  # nothing more can come, either
        return self._any and bool(self._deleted or any(map(self._new, done)))

    def _done(self, target: Session) -> bool:
        if not _rests(target):
            return False
        if self._after is None or target.state.closed:
            return True
        reported = self._reported(target)
        return reported is None or reported.seq > self._after

    def _new(self, target: Session) -> bool:
        """Who waits has not had yet what this one, which rests, came to."""
        came = self._rested.get(target.id) != target.state.turns
        return came or not self._itself or self._in_inbox(self._reported(target))

    def _reported(self, target: Session) -> Reported | None:
        return self._waiter.state.reports.get(target.id)

    def _in_inbox(self, reported: Reported | None) -> bool:
        inbox = (arrival.id for arrival in self._waiter.state.queue.waiting)
        return reported is not None and reported.mail.id in inbox

    async def _waited(self, why: Why) -> Waited:
        cursor = self._waiter.state.seq
        results = []
        for target in self._targets:
            try:
                results.append(await self._result(target))
            except NotFound:  # deleted, perhaps by another process
                self._deleted.append(target.id)
        return Waited(tuple(results), cursor, why, tuple(self._deleted), self._asking())

    async def _result(self, target: Session) -> Result:
        """One that is not below the waiter directly has told its own parent."""
        id = target.id
        info = await self._children.info(id)
        if not self._done(target):
            return Result(info)
        direct = tree.parent(id) == self._waiter.id
        found = self._reported(target) if direct else await self._told(id)
        if found is None:
            return Result(info)
        text = "\n".join(part.text for part in found.mail.content)
        return Result(
            info,
            text,
            found.mail.report,
            found.seq if direct else 0,
            found.mail.id if direct and self._in_inbox(found) else "",
        )

    async def _told(self, id: str) -> Reported | None:
        parent = await self._sessions.session(stream_of(tree.parent(id) or ""))
        await parent.refresh()
        return parent.state.reports.get(id)


def _rests(target: Session) -> bool:
    return status(target.state) not in LIVE
