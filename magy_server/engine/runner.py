"""The runner runs sessions here, each in a supervised task under the lease of its tree, and takes
over those whose process has died.

A lease is held only while there is something to do in the tree. Who takes it goes on with all of
the tree that was left open. Who appends a prompt tries to run it; where another process has the
tree, that one is told. A process that finishes leaves prompts of another living process to that
one, whose editor they belong to.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any
from weakref import WeakKeyDictionary

from magy_server import own_files
from magy_server.core.agents.tree import Stream, stream_of
from magy_server.core.errors import Conflict, MagyError, NotFound, StoreError
from magy_server.core.events import Admitted, Ended, Event, Exited, Resumed
from magy_server.core.ports import LEFT
from magy_server.core.state.state import State
from magy_server.core.steps import Admit, Rest, next_step, opener
from magy_server.engine import trees
from magy_server.engine.calls import closed, no_room
from magy_server.engine.compaction import given_up
from magy_server.engine.feature_ports import Features
from magy_server.engine.loaded_sessions import LoadedSessions
from magy_server.engine.log import Write
from magy_server.engine.perform import Performer
from magy_server.engine.session import AT_WORK, Session
from magy_server.engine.trees import is_child
from magy_server.engine.turn import run
from magy_server.engine.world import World
from magy_server.tasks import Tasks, logged

LOG = logging.getLogger(__name__)

POLL = 2.0
"""Seconds between looks at the store while other processes work on it: the bus may drop."""
IDLE = 300.0
"""Seconds after which a session that nobody watches and that rests is let go from memory."""
ELSEWHERE = (
    "Another Magy process is running this session's agents. Your prompt starts here when they are "
    "done.\n"
)


class Runner:
    """Use as an async context manager; leaving it stops what runs and leaves turns open."""

    def __init__(self, world: World, sessions: LoadedSessions, features: Features) -> None:
        self._world = world
        self._sessions = sessions
        self._features = features
        self._running: dict[str, asyncio.Task[None]] = {}
        self._again: set[str] = set()
        self._closing = False
        self._stuck: set[str] = set()
        """Sessions whose log could not be written: they wait for somebody to ask again."""
        self._bereft = False
        """Another process has left, or died, since the last look."""
        self._blocked: WeakKeyDictionary[Session, tuple[str, int]] = WeakKeyDictionary()
        """Prompts that wait for a tree which another process has, and how often they were seen
        to."""
        self._tasks = Tasks()
        self._subscriptions = ExitStack()

    async def __aenter__(self) -> Runner:
        bus, news = self._world.bus, self._sessions.news
        self._subscriptions.callback(bus.subscribe("runner", self._receive))
        self._subscriptions.callback(bus.subscribe(trees.DELETED, self._deleted))
        self._subscriptions.callback(bus.subscribe(LEFT, self._lost))
        self._subscriptions.callback(news.woken.add(self._wake))
        self._subscriptions.callback(news.vanished.add(self._vanished))
        self._tasks.begin(self._look())
        return self

    async def __aexit__(self, *exc: object) -> None:
        self._subscriptions.close()
        self._closing = True
        running = tuple(self._running.values())
        for task in running:
            task.cancel()
        await asyncio.gather(*running, self._tasks.cancel(), return_exceptions=True)
        for kept in self._sessions:
            await kept.session.close()

    def _vanished(self, session: Session) -> None:
        """Another process has deleted it."""
        kept = self._sessions.get(session.stream)
        if kept and kept.session is session and not self._closing:
            LOG.info("%s was deleted; nothing of it goes on here.", session.stream)
            self._tasks.begin(self._sessions.forget(session.stream))

    # --- running --------------------------------------------------------------------------------

    def _wake(self, session: Session) -> None:
        stream = session.stream
        kept = self._sessions.get(stream)
        if self._closing or kept is None or kept.session is not session:
            return
        self._stuck.discard(stream)
        if stream in self._running:
            self._again.add(stream)
            return
        step = kept.step()
        if isinstance(step, Rest) or not self._performer(session).serves(step):
            return
        self._world.slots.begin(stream)
        task = self._running[stream] = session.later(self._supervise(session))
        task.add_done_callback(lambda _: self._ended(session))

    def _performer(self, session: Session) -> Performer:
        return Performer(session, self._world, self._features)

    def _ended(self, session: Session) -> None:
        self._running.pop(session.stream, None)
        self._world.slots.end(session.stream)
        if session.stream in self._again:
            self._again.discard(session.stream)
            if kept := self._sessions.get(session.stream):
                self._wake(kept.session)

    async def _supervise(self, session: Session) -> None:
        """A session's failure becomes the end of its turn; its siblings live on."""
        AT_WORK.set(session.id)
        try:
            while await self._run(session):
                pass
        except Exception as error:
            if not session.gone:
                await self._fail(session, _first(error))
        finally:
            await self._release(session)

    async def _run(self, session: Session) -> bool:
        """One holding of the lease; the answer says whether to try again at once."""
        session.log.lease = await self._sessions.trees.take(session.stream)
        if session.log.lease is None:
            self._leave(session)
            return False
        self._blocked.pop(session, None)
        if part := self._sessions.trees.unseen(session.stream):
            self._tasks.begin(self._sessions.resume_tree(session.stream, part))
        await session.refresh()
        if session.state.history.restoring:  # its process died half-way
            await self._features.restores.finish(session)
        await take_over(session, self._world)
        perform = self._performer(session)
        await run(session, perform, self._world.slots.slot(session.stream))
        await self._release(session)
        await session.refresh()
        if (how := session.state.closed) and how.mode == "cancel":
            await self._world.end_commands([session.stream])
        step = next_step(session.state)
        return not isinstance(step, Rest) and perform.serves(step)

    def _leave(self, session: Session) -> None:
        """To the process that has the tree; who holds it here for something else wakes it then."""
        if not self._sessions.trees.holds(session.stream):
            self._world.bus.publish("runner", {"by": self._world.me, "run": session.stream})
            step = next_step(session.state)
            if isinstance(step, Admit) and step.opens and not is_child(session.stream):
                self._say_blocked(session, step.turn)

    def _say_blocked(self, session: Session, prompt: str) -> None:
        """Who ran the last turn may hold the tree for a moment after that: the second time."""
        before, times = self._blocked.get(session, ("", 0))
        times = times + 1 if prompt == before else 1
        self._blocked[session] = prompt, times
        if times == 2:
            session.streaming.notice(ELSEWHERE)

    async def _release(self, session: Session) -> None:
        if session.log.lease:
            session.log.lease = None
            await self._sessions.trees.give_back(session.stream)

    async def _fail(self, session: Session, cause: Exception) -> None:
        """What nobody foresaw may go well when it is begun anew from the log."""
        if said := no_room(cause):
            cause = MagyError(said)
        logged(cause, session.stream)
        if isinstance(cause, StoreError):
            if not isinstance(cause, Conflict):
                self._give_up(session, cause)
        elif isinstance(cause, MagyError):
            await self._end(session, cause.message)
        elif self._features.supervisor.restarts(session, cause):
            self._again.add(session.stream)
        else:
            said = f"Magy failed: {type(cause).__name__}: {cause}"
            if tries := self._features.supervisor.tries(session):
                said += f". Magy restarted it {tries} times, and it failed each time."
            await self._end(session, said + own_files.advice())

    async def _end(self, session: Session, said: str) -> None:
        """The end of its turn, or of what it was about to begin."""
        landed = await self._features.worktrees.landed(session.state, "error", said)

        def decide(now: State) -> Write | None:
            events: list[Event] = []
            if now.compact and now.turn is None:
                return given_up(now, said)
            if now.turn:
                turn = now.turn.id
                events += [closed(call) for call in now.turn.open_calls]
            elif first := opener(now):  # its turn could not even begin
                turn = first.id
                events.append(Admitted(turn=turn, prompts=(turn,), first=now.queue.seqs[turn]))
            else:
                return None
            return Write([*events, Ended(turn=turn, stop="error", message=landed.message)])

        try:
            if await session.append(decide):
                self._again.add(session.stream)  # what else waits has its turn
        except StoreError as second:
            self._give_up(session, second)
        except NotFound:  # it was deleted meanwhile
            return

    def _give_up(self, session: Session, error: StoreError) -> None:
        self._stuck.add(session.stream)
        self._sessions.news.broken(session.stream, error.message)

    # --- with other processes -------------------------------------------------------------------

    def _receive(self, message: Mapping[str, Any]) -> None:
        """Another process has a tree no more, or leaves a session to who has its tree."""
        if message.get("by") == self._world.me:
            return
        if stream := Stream(str(message.get("run", ""))):
            if self._sessions.trees.holds(stream):
                self._tasks.begin(self._sessions.resume(stream))
        elif root := Stream(str(message.get("free", ""))):
            for session in self._sessions.tree(root):
                self._wake(session)

    def _deleted(self, message: Mapping[str, Any]) -> None:
        if self._sessions.get(stream := stream_of(str(message.get("session", "")))):
            self._tasks.begin(self._forget_deleted(stream))

    def _lost(self, message: Mapping[str, Any]) -> None:
        """Who came and died between two looks counts, too."""
        self._bereft = True

    async def _forget_deleted(self, stream: Stream) -> None:
        """It may have been made anew meanwhile."""
        if not await self._world.store.head(stream):
            await self._sessions.forget(stream)

    async def _look(self) -> None:
        """What the bus dropped is found in the store, a little later."""
        while True:
            await asyncio.sleep(POLL)
            await self._tasks.alone(self._catch_up())
            await self._tasks.alone(self._let_go())

    async def _catch_up(self) -> None:
        """Sessions that rest, unseen, are not looked at: there may be thousands. A process that is
        gone may have written last and told nobody, so who lives now does not count."""
        if changed := await self._world.store.changed():
            self._sessions.changed()
        bereft, self._bereft = self._bereft, False
        if bereft or (changed and not self._world.peers()):
            await self._sessions.go_on()
        for kept in self._sessions.at_work(self._sessions.trees.held()):
            await asyncio.wait([kept.session.later(self._see_to(kept.session))])

    async def _see_to(self, session: Session) -> None:
        """As a task of its own: what is wrong with one is nothing to the others."""
        if self._sessions.missed(session.stream):
            try:
                await session.refresh()
            except NotFound:  # it was deleted: `_vanished`
                return
        if session.stream not in self._stuck:
            self._wake(session)  # perhaps the process whose prompt waits has died

    async def _let_go(self) -> None:
        now = self._world.clock.now()
        for kept in self._sessions:
            stream = kept.session.stream
            if now - kept.session.used > IDLE and kept.quiet and stream not in self._running:
                await self._sessions.forget(stream)


def _first(error: Exception) -> Exception:
    """Of what failed at once, one."""
    return _first(error.exceptions[0]) if isinstance(error, ExceptionGroup) else error


async def take_over(session: Session, world: World) -> None:
    """Ends what the dead holder of the lease left running, then marks its calls as orphans. For who
    holds the lease now. Raises StoreError."""
    events = await _lost_background(session, world) if session.first_run else []
    session.first_run = False
    if turn := session.state.turn:
        name = session.id
        for call in turn.open_calls:
            if call.started and call.started.group:
                await world.end_group(call.started.group, f"{name}:{call.call.id}")
        events.append(Resumed(by=world.me))
    await session.append(lambda now: Write(events) if events else None)


async def _lost_background(session: Session, world: World) -> list[Event]:
    """Background commands belong to the process that started them: when the session is new to this
    one, and no other is alive, they are nobody's."""
    if world.peers():
        return []
    name, groups = session.id, session.state.background
    for call, group in groups.items():
        await world.end_group(group, f"{name}:{call}")
    return [Exited(call=call, code=None) for call in groups]
