"""Which sessions run here: one supervised task each, under the lease of their tree.

A lease is held only while there is something to do in the tree. Who takes it goes on with all of
the tree that was left open. Who appends a prompt tries to run it; where another process has the
tree, that one is told. A process that finishes leaves prompts of another living process to that
one, whose editor they belong to.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager
from typing import Any

from magy_server.core.errors import Conflict, MagyError, NotFound, StoreError
from magy_server.core.events import Admitted, Ended, Event
from magy_server.core.ports import StreamInfo
from magy_server.core.state import State
from magy_server.core.steps import Admit, Rest, next_step, opener
from magy_server.engine import kin
from magy_server.engine.calls import closed
from magy_server.engine.checkpoints import Checkpoints
from magy_server.engine.commands import end_commands
from magy_server.engine.compaction import given_up
from magy_server.engine.perform import Performer
from magy_server.engine.reports import Reports
from magy_server.engine.session import Listener, Session, Signalled, Write, deleted
from magy_server.engine.sessions import Sessions
from magy_server.engine.takeover import EndGroup, take_over
from magy_server.engine.trees import Trees, is_child, root_of
from magy_server.engine.turn import run
from magy_server.engine.world import World

LOG = logging.getLogger(__name__)

POLL = 2.0
"""Seconds between looks at the store while other processes work on it: the bus may drop."""
IDLE = 300.0
"""Seconds after which a session that nobody watches and that rests is let go from memory."""
FRESH = 3600.0
"""Seconds. A session left open longer ago than this waits for a person to resume it."""
ELSEWHERE = (
    "Another Magy process is running this session's agents. Your prompt starts here when they are "
    "done.\n"
)


class Runner:
    """Use as an async context manager; leaving it stops what runs and leaves turns open."""

    def __init__(self, world: World, end_group: EndGroup, listeners: Sequence[Listener]) -> None:
        self.world = world
        self.trees = Trees(world.store, self._released)
        self.broken: Callable[[str, str], None] = lambda stream, sentence: None
        """Called when a session cannot go on at all (the log cannot be written)."""
        self.end_group = end_group
        self._listeners = listeners
        self._reports = Reports(self)
        self.signalled: Signalled = lambda session, signals: None
        """Called with the signals that a session gets."""
        self._sessions = Sessions(self.blank)
        self._running: dict[str, asyncio.Task[None]] = {}
        self._again: set[str] = set()
        self._closing = False
        self._stuck: set[str] = set()
        """Sessions whose log could not be written: they wait for somebody to ask again."""
        self._blocked: dict[str, tuple[str, int]] = {}
        """Prompts that wait for a tree which another process has, by session, and how often they
        were seen to."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._unsubscribe: Callable[[], None] = lambda: None

    async def __aenter__(self) -> Runner:
        subscriptions, bus = ExitStack(), self.world.bus
        subscriptions.callback(bus.subscribe("runner", self._receive))
        subscriptions.callback(bus.subscribe(kin.DELETED, self._deleted))
        self._unsubscribe = subscriptions.close
        self._later(self._look())
        return self

    async def __aexit__(self, *exc: object) -> None:
        self._unsubscribe()
        self._closing = True
        tasks = [*self._running.values(), *self._tasks]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for kept in self._sessions:
            await kept.session.close()

    # --- sessions in memory ---------------------------------------------------------------------

    async def session(self, stream: str) -> Session:
        """The live session, folded. Raises NotFound, StoreError."""
        session = self.watch(stream)
        if not session.loaded:
            await session.load()
        elif session.state.opened is None or self._sessions.missed(stream):
            await session.refresh()  # who was making it may have been stopped right after
        if session.state.opened is None:
            await self.forget(stream)
            name = stream.removeprefix("session/")
            raise NotFound(f"There is no session {name!r}. `magy/session/list` names them.")
        if session.gone:
            raise deleted(stream)
        return session

    def watch(self, stream: str) -> Session:
        """The session for watching: costs nothing, however long its log is. Raises NotFound while
        it is deleted."""
        session = self._sessions.keep(stream)
        session.used = self.world.clock.now()
        return session

    def tree(self, stream: str) -> Sequence[Session]:
        """The folded sessions of the tree that this session is in."""
        return self._sessions.tree(stream)

    def loaded(self) -> Sequence[Session]:
        """All that are folded here."""
        return [kept.session for kept in self._sessions if kept.session.loaded]

    def blank(self, stream: str) -> Session:
        world = self.world
        session = Session(world.store, world.bus, stream, world.me, self._listeners)
        session.reporting = self._reports
        session.signalled = self.signalled
        session.vanished = self._vanished
        return session

    @asynccontextmanager
    async def forgotten(self, stream: str) -> AsyncIterator[None]:
        """Drops the session and all below it, and keeps them out of memory meanwhile."""
        with self._sessions.barred(stream):
            for name in self._sessions.within(stream):
                await self.forget(name)
            yield

    def _vanished(self, session: Session) -> None:
        """Another process has deleted it."""
        kept = self._sessions.get(session.stream)
        if kept and kept.session is session and not self._closing:
            LOG.info("%s was deleted; nothing of it goes on here.", session.stream)
            self._later(self.forget(session.stream))

    async def forget(self, stream: str) -> None:
        """Stops a session here and drops it from memory; its turn stays as it is in the log."""
        session = self._sessions.drop(stream)
        if task := self._running.get(stream):
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        self._blocked.pop(stream, None)
        if session:
            await session.close()

    # --- running --------------------------------------------------------------------------------

    def wake(self, session: Session) -> None:
        """Runs the session here if there is something to do and no living process runs it."""
        stream = session.stream
        kept = self._sessions.get(stream)
        if self._closing or kept is None or kept.session is not session:
            return
        self._stuck.discard(stream)
        if stream in self._running:
            self._again.add(stream)
            return
        step = kept.step()
        if isinstance(step, Rest) or not Performer(session, self.world).serves(step):
            return
        self.world.lanes.begin(stream)
        task = asyncio.create_task(self._supervise(session), name=stream)
        self._running[stream] = task
        task.add_done_callback(lambda _: self._ended(session))

    async def resume(self, stream: str) -> None:
        """Loads the session and runs it, if it has something to do. Raises StoreError."""
        kept = self._sessions.get(stream)
        if kept is None or not kept.session.loaded:
            info = await self.world.store.info(stream)
            if info is None or not _left_open(info):
                return
        try:
            session = await self.session(stream)
            await session.refresh()
        except NotFound:  # it was deleted meanwhile
            return
        self.wake(session)

    async def resume_tree(self, stream: str) -> None:
        """Goes on with all that was left open in the tree: for who runs this session of it. What is
        below that is needed for it, however long ago it was left; the rest may be too old."""
        now = self.world.clock.now()
        root = root_of(stream).removeprefix("session/")
        for info in await kin.whole(self.world.store, root):
            wanted = info.stream.startswith(f"{stream}/") or now - info.updated < FRESH
            if wanted and _left_open(info) and info.stream != stream:
                try:
                    await self.resume(info.stream)
                except StoreError as error:  # that one is damaged; the others go on
                    LOG.warning("%s", error)

    def _ended(self, session: Session) -> None:
        self._running.pop(session.stream, None)
        self.world.lanes.end(session.stream)
        if session.stream in self._again:
            self._again.discard(session.stream)
            if kept := self._sessions.get(session.stream):
                self.wake(kept.session)

    async def _supervise(self, session: Session) -> None:
        """A session's failure becomes the end of its turn; its siblings live on."""
        try:
            while await self._run(session):
                pass
        except StoreError as error:
            LOG.error("%s: %s", session.stream, error)
            self._give_up(session, error)
        except Exception as error:
            if not session.gone:
                LOG.exception("%s failed", session.stream)
                await self._fail(session, error.exceptions[0] if isinstance(error, ExceptionGroup)
                                 else error)  # fmt: skip
        finally:
            await self._release(session)

    async def _run(self, session: Session) -> bool:
        """One holding of the lease; the answer says whether to try again at once."""
        session.lease = await self.trees.take(session.stream)
        if session.lease is None:
            self._leave(session)
            return False
        self._blocked.pop(session.stream, None)
        if not self.trees.entered(session.stream):
            self._later(self.resume_tree(session.stream))
        await session.refresh()
        if session.state.restoring:  # its process died half-way
            await Checkpoints(self).finish(session)
        await take_over(session, self.world, self.end_group)
        perform = Performer(session, self.world)
        await run(session, perform, self.world.lanes.slot(session.stream))
        await self._release(session)
        await session.refresh()
        if (how := session.state.closed) and how.mode == "cancel":
            await end_commands(self, [session.stream])
        step = next_step(session.state)
        return not isinstance(step, Rest) and perform.serves(step)

    def _leave(self, session: Session) -> None:
        """To the process that has the tree; who holds it here for something else wakes it then."""
        if not self.trees.holds(session.stream):
            self.world.bus.publish("runner", {"by": self.world.me, "run": session.stream})
            step = next_step(session.state)
            if isinstance(step, Admit) and step.opens and not is_child(session.stream):
                self._say_blocked(session, step.turn)

    def _say_blocked(self, session: Session, prompt: str) -> None:
        """Who ran the last turn may hold the tree for a moment after that: the second time."""
        before, times = self._blocked.get(session.stream, ("", 0))
        times = times + 1 if prompt == before else 1
        self._blocked[session.stream] = prompt, times
        if times == 2:
            session.notice(ELSEWHERE)

    async def _release(self, session: Session) -> None:
        lease, session.lease = session.lease, None
        if lease is not None:
            await self.trees.give_back(session.stream)

    def _released(self, root: str) -> None:
        """Others may have waited for the tree, with prompts of their own."""
        self.world.bus.publish("runner", {"by": self.world.me, "free": root})

    async def _fail(self, session: Session, cause: Exception) -> None:
        """What nobody foresaw may go well when it is begun anew from the log."""
        if isinstance(cause, StoreError):
            if not isinstance(cause, Conflict):
                self._give_up(session, cause)
            return None
        if isinstance(cause, MagyError):
            return await self._end(session, cause.message)
        supervisor = self.world.supervisor
        if supervisor and supervisor.restarts(session, cause):
            self._again.add(session.stream)
            return None
        said = f"Magy failed: {type(cause).__name__}: {cause}"
        if supervisor:
            said += (
                f". Magy restarted it {supervisor.tries(session)} times, and it failed each time."
            )
        return await self._end(session, said)

    async def _end(self, session: Session, said: str) -> None:
        """The end of its turn, or of what it was about to begin."""

        def decide(now: State) -> Write | None:
            events: list[Event] = []
            if now.compact and now.turn is None:
                return given_up(now, said)
            if now.turn:
                turn = now.turn.id
                events += [closed(call) for call in now.turn.open_calls]
            elif first := opener(now):  # its turn could not even begin
                turn = first.id
                events.append(Admitted(turn=turn, prompts=(turn,), first=now.prompts[turn]))
            else:
                return None
            return Write([*events, Ended(turn=turn, stop="error", message=said)])

        try:
            if await session.append(decide):
                self._again.add(session.stream)  # what else waits has its turn
        except StoreError as second:
            self._give_up(session, second)
        except NotFound:  # it was deleted meanwhile
            return

    def _give_up(self, session: Session, error: StoreError) -> None:
        self._stuck.add(session.stream)
        self.broken(session.stream, error.message)

    # --- with other processes -------------------------------------------------------------------

    def _receive(self, message: Mapping[str, Any]) -> None:
        """Another process has a tree no more, or leaves a session to who has its tree."""
        if message.get("by") == self.world.me:
            return
        if stream := str(message.get("run", "")):
            if self.trees.holds(stream):
                self._later(self.resume(stream))
        elif root := str(message.get("free", "")):
            for session in self.tree(root):
                self.wake(session)

    def _deleted(self, message: Mapping[str, Any]) -> None:
        if self._sessions.get(stream := f"session/{message.get('session', '')}"):
            self._later(self._forget_deleted(stream))

    async def _forget_deleted(self, stream: str) -> None:
        """It may have been made anew meanwhile."""
        if not await self.world.store.head(stream):
            await self.forget(stream)

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
        """Sessions that rest, unseen, are not looked at: there may be thousands."""
        if self.world.peers() and await self.world.store.changed():
            self._sessions.changed()
        for kept in self._sessions.at_work(self.trees.held()):
            session = kept.session
            if self._sessions.missed(session.stream):
                try:
                    await session.refresh()
                except NotFound:  # it was deleted: `_vanished`
                    continue
                except StoreError as error:  # that one is damaged; the others go on
                    LOG.error("%s: %s", session.stream, error)
                    continue
            if session.stream not in self._stuck:
                self.wake(session)  # perhaps the process whose prompt waits has died

    async def _let_go(self) -> None:
        now = self.world.clock.now()
        for kept in self._sessions:
            stream = kept.session.stream
            if now - kept.session.used > IDLE and kept.quiet and stream not in self._running:
                await self.forget(stream)

    def _later(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()):
            LOG.error("%s", error)


def _left_open(info: StreamInfo) -> bool:
    return info.summary.get("state") != "idle"
