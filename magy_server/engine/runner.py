"""Which sessions run here: one supervised task each, under the session's lease.

A lease is held only while there is something to do. Who appends a prompt tries to run it; a process
that finishes a turn leaves waiting prompts of another living process to that one, whose editor they
belong to.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from magy_server.core.errors import Conflict, MagyError, NotFound, StoreError
from magy_server.core.events import Admitted, Ended, Event, Exited, Resumed
from magy_server.core.state import State
from magy_server.core.steps import Rest, next_step
from magy_server.engine.calls import closed
from magy_server.engine.checkpoints import Checkpoints
from magy_server.engine.compaction import given_up
from magy_server.engine.perform import Performer
from magy_server.engine.session import Listener, Session, Write
from magy_server.engine.turn import run
from magy_server.engine.world import World

LOG = logging.getLogger(__name__)

EndGroup = Callable[[int, str], Awaitable[object]]
"""async (process group, its MAGY_CALL marker): ends what a dead server left running."""
POLL = 2.0
"""Seconds between looks at the store while other processes work on it: the bus may drop."""
IDLE = 300.0
"""Seconds after which a session that nobody watches and that rests is let go from memory."""


class Runner:
    """Use as an async context manager; leaving it stops what runs and leaves turns open."""

    def __init__(self, world: World, end_group: EndGroup, listeners: Sequence[Listener]) -> None:
        self.world = world
        self.broken: Callable[[str, str], None] = lambda stream, sentence: None
        """Called when a session cannot go on at all (the log cannot be written)."""
        self._end_group = end_group
        self._listeners = listeners
        self._sessions: dict[str, Session] = {}
        self._running: dict[str, asyncio.Task[None]] = {}
        self._again: set[str] = set()
        self._closing = False
        self._stuck: set[str] = set()
        """Sessions whose log could not be written: they wait for somebody to ask again."""
        self._poll: asyncio.Task[None] | None = None
        self._unsubscribe: Callable[[], None] = lambda: None

    async def __aenter__(self) -> Runner:
        self._unsubscribe = self.world.bus.subscribe("runner", self._receive)
        self._poll = asyncio.create_task(self._look(), name="look")
        return self

    async def __aexit__(self, *exc: object) -> None:
        self._unsubscribe()
        self._closing = True
        tasks = [*self._running.values(), *([self._poll] if self._poll else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for session in self._sessions.values():
            await session.close()

    async def session(self, stream: str) -> Session:
        """The live session, folded. Raises NotFound, StoreError."""
        session = self.watch(stream)
        if not session.loaded:
            await session.load()
        elif session.state.opened is None:
            await session.refresh()  # who was making it may have been stopped right after
        if session.state.opened is None:
            await self.forget(stream)
            name = stream.removeprefix("session/")
            raise NotFound(f"There is no session {name!r}. `magy/session/list` names them.")
        return session

    def watch(self, stream: str) -> Session:
        """The session for watching: costs nothing, however long its log is."""
        session = self._sessions.get(stream)
        session = session or self._sessions.setdefault(stream, self.blank(stream))
        session.used = self.world.clock.now()
        return session

    def blank(self, stream: str) -> Session:
        return Session(self.world.store, self.world.bus, stream, self.world.me, self._listeners)

    async def forget(self, stream: str) -> None:
        """Stops a session here and drops it from memory; its turn stays as it is in the log."""
        session = self._sessions.pop(stream, None)
        if task := self._running.get(stream):
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        if session:
            await session.close()

    def wake(self, session: Session) -> None:
        """Runs the session here if there is something to do and no living process runs it."""
        if self._closing or self._sessions.get(session.stream) is not session:
            return
        self._stuck.discard(session.stream)
        if session.stream in self._running:
            self._again.add(session.stream)
            return
        step = next_step(session.state)
        if isinstance(step, Rest) or not Performer(session, self.world).serves(step):
            return
        task = asyncio.create_task(self._supervise(session), name=session.stream)
        self._running[session.stream] = task
        task.add_done_callback(lambda _: self._ended(session))

    def _ended(self, session: Session) -> None:
        self._running.pop(session.stream, None)
        if session.stream in self._again:
            self._again.discard(session.stream)
            self.wake(session)

    async def _supervise(self, session: Session) -> None:
        """A session's failure becomes the end of its turn; its siblings live on."""
        try:
            while await self._run(session):
                pass
        except StoreError as error:
            LOG.error("%s: %s", session.stream, error)
            self._give_up(session, error)
        except Exception as error:
            LOG.exception("%s failed", session.stream)
            await self._fail(session, error)
        finally:
            await self._release(session)

    async def _run(self, session: Session) -> bool:
        """One holding of the lease; the answer says whether to try again at once."""
        session.lease = await self.world.store.lease(session.stream)
        if session.lease is None:
            return False
        await session.refresh()
        if session.state.restoring:  # its process died half-way
            await Checkpoints(self).finish(session)
        if session.state.turn or (session.fresh and session.state.background):
            await self._take_over(session)
        session.fresh = False
        perform = Performer(session, self.world)
        await run(session, perform)
        await self._release(session)
        await session.refresh()
        step = next_step(session.state)
        if not perform.serves(step):
            self.world.bus.publish("runner", {"by": self.world.me, "free": session.stream})
            return False
        return not isinstance(step, Rest)

    async def _release(self, session: Session) -> None:
        lease, session.lease = session.lease, None
        if lease is not None:
            await self.world.store.release(lease)

    async def _take_over(self, session: Session) -> None:
        """Ends what the dead holder left running, then marks its calls as orphans."""
        turn = session.state.turn
        name = session.stream.removeprefix("session/")
        for call in turn.open_calls if turn else ():
            if call.started and call.started.group:
                await self._end_group(call.started.group, f"{name}:{call.call.id}")
        events = await self._lost_background(session, name)
        if turn:
            events.append(Resumed(by=self.world.me))
        await session.append(lambda now: Write(events) if events else None)

    async def _lost_background(self, session: Session, name: str) -> list[Event]:
        """Background commands belong to the process that started them: when the session is new to
        this one, and no other is alive, they are nobody's."""
        if not session.fresh or self.world.peers():
            return []
        groups: Mapping[str, int] = session.state.background
        for call, group in groups.items():
            await self._end_group(group, f"{name}:{call}")
        return [Exited(call=call, code=None) for call in groups]

    async def _fail(self, session: Session, error: Exception) -> None:
        cause = error.exceptions[0] if isinstance(error, ExceptionGroup) else error
        if isinstance(cause, StoreError):
            if not isinstance(cause, Conflict):
                self._give_up(session, cause)
            return
        said = f"Magy failed: {type(cause).__name__}: {cause}"
        if isinstance(cause, MagyError):
            said = cause.message

        def decide(now: State) -> Write | None:
            events: list[Event] = []
            if now.compact and now.turn is None:
                return given_up(now, said)
            if now.turn:
                turn = now.turn.id
                events += [closed(call) for call in now.turn.open_calls]
            elif now.waiting:  # its turn could not even begin
                turn = now.waiting[0].id
                events.append(Admitted(turn=turn, prompts=(turn,), first=now.prompts[turn]))
            else:
                return None
            return Write([*events, Ended(turn=turn, stop="error", message=said)])

        try:
            if await session.append(decide):
                self._again.add(session.stream)  # what else waits has its turn
        except StoreError as second:
            self._give_up(session, second)

    def _give_up(self, session: Session, error: StoreError) -> None:
        self._stuck.add(session.stream)
        self.broken(session.stream, error.message)

    def _receive(self, message: Mapping[str, Any]) -> None:
        """Another process finished a turn and leaves the session to whose prompt is next."""
        session = self._sessions.get(str(message.get("free")))
        if session and message.get("by") != self.world.me:
            self.wake(session)

    async def _look(self) -> None:
        """What the bus dropped is found in the store, a little later."""
        while True:
            await asyncio.sleep(POLL)
            try:
                await self._catch_up()
            except StoreError as error:
                LOG.error("%s", error)
            await self._let_go()

    async def _catch_up(self) -> None:
        if self.world.peers() and await self.world.store.changed():
            for session in tuple(self._sessions.values()):
                await session.refresh()
        for session in tuple(self._sessions.values()):
            if session.stream not in self._stuck:
                self.wake(session)  # perhaps the process whose prompt waits has died

    async def _let_go(self) -> None:
        now = self.world.clock.now()
        for stream, session in tuple(self._sessions.items()):
            resting = stream not in self._running and isinstance(next_step(session.state), Rest)
            if resting and not session.watched and now - session.used > IDLE:
                del self._sessions[stream]
                await session.close()
