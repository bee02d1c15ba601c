"""The supervisor tells how a process's agents are, and starts again what failed, without any model.

An agent is a task over a log, so an agent that died of an error of ours is begun anew from the log,
its turn as after a crash. Only one that keeps failing is given up; the others never notice.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from collections import deque
from collections.abc import Sequence
from dataclasses import field

from magy_server.core.agents.child import status
from magy_server.core.agents.mail import Status
from magy_server.core.agents.tree import SESSIONS, Stream
from magy_server.core.events import Ended, Entry
from magy_server.core.prompting.sizes import size
from magy_server.core.state.state import State
from magy_server.dataclass import dataclass
from magy_server.engine.loaded_sessions import Sessions
from magy_server.engine.session import Session
from magy_server.engine.world import World
from magy_server.tasks import Tasks

LOG = logging.getLogger(__name__)
EVERY = 30.0
"""Seconds between two looks at all agents."""
MOST = 5
"""Errors in a row at which an agent is given up."""
LATEST = 20
"""Outcomes of which the error rate is told."""
KEPT = 1_000
"""Agents of which a record is kept."""


@dataclass(frozen=True, slots=True)
class Health:
    """`queue_depth`: prompts and messages that wait. `errors`: in a row; `error_rate`: 0 to 1, of
    the latest outcomes. `memory`: bytes, roughly. `last_progress`: seconds since the epoch, 0: none
    yet."""

    session: str
    state: Status
    queue_depth: int
    errors: int
    error_rate: float
    restarts: int
    memory: int
    last_progress: float


@dataclass(slots=True)
class _Record:
    errors: int = 0
    restarts: int = 0
    outcomes: deque[bool] = field(default_factory=lambda: deque(maxlen=LATEST))
    """For the latest turns, and tasks that died: whether each ended with an error."""
    streamed: int = 0
    progress: float = 0.0

    def failed(self) -> None:
        self.errors += 1
        self.outcomes.append(True)

    def went_well(self) -> None:
        self.errors = 0
        self.outcomes.append(False)


class Supervisor:
    """One for a process; a listener, too. Use as an async context manager."""

    def __init__(self, world: World, sessions: Sessions) -> None:
        self._world = world
        self._loaded = sessions
        self._records: dict[str, _Record] = {}
        self._tasks = Tasks()

    async def __aenter__(self) -> Supervisor:
        self._tasks.begin(self._watch(), "supervisor")
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._tasks.cancel()

    def __call__(self, state: State, entries: Sequence[Entry]) -> None:
        if not state.stream.startswith(SESSIONS):
            return
        record = self._record(state.stream)
        record.progress = entries[-1].at
        for entry in entries:
            if isinstance(entry.event, Ended):
                if entry.event.stop == "error":
                    record.failed()
                else:
                    record.went_well()

    def health(self) -> list[Health]:
        """The health of each agent that works here, waits or did lately; those at work first."""
        found = [
            self._health(session)
            for session in self._sessions()
            if session.stream in self._records or status(session.state) in AT_WORK
        ]
        return sorted(found, key=lambda one: (one.state not in AT_WORK, one.session))

    # --- starting again -------------------------------------------------------------------------

    def restarts(self, session: Session, error: Exception) -> bool:
        """Unless it has failed too often in a row."""
        record = self._record(session.stream)
        if record.errors + 1 >= MOST:
            return False
        record.failed()
        record.restarts += 1
        LOG.warning(
            "%s: begun anew from its log (%d of %d) after %s: %s",
            session.stream, record.errors, MOST - 1, type(error).__name__, error,
        )  # fmt: skip
        session.doubted = True
        return True

    def tries(self, session: Session) -> int:
        return self._record(session.stream).errors

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(EVERY)
            self.look()

    def look(self) -> None:
        """Notes the progress of each agent. The runner, which looks more often, wakes those that
        have something to do."""
        now = self._world.clock.now()
        for session in self._sessions():
            record = self._records.get(session.stream)
            streamed = sum(partial.size for partial in session.streaming.partials.values())
            if record and streamed > record.streamed:
                record.progress = now
            if record:
                record.streamed = streamed
        self._forget()

    # --- records --------------------------------------------------------------------------------

    def _sessions(self) -> list[Session]:
        return [one for one in self._loaded.folded() if one.state.opened]

    def _record(self, stream: Stream) -> _Record:
        record = self._records.pop(stream, None) or _Record()
        self._records[stream] = record  # the newest last
        return record

    def _forget(self) -> None:
        """The records of agents that are no longer in memory, and went well."""
        here = {session.stream for session in self._sessions()}
        for stream, record in tuple(self._records.items()):
            if stream not in here and (not record.errors or len(self._records) > KEPT):
                del self._records[stream]

    def _health(self, session: Session) -> Health:
        state, record = session.state, self._records.get(session.stream) or _Record()
        queued = self._world.slots.queued(session.stream)
        failures = sum(record.outcomes)
        return Health(
            session=session.id,
            state=status(state, queued=queued),
            queue_depth=len(state.queue.waiting),
            errors=record.errors,
            error_rate=failures / len(record.outcomes) if record.outcomes else 0.0,
            restarts=record.restarts,
            memory=rough_size(session),
            last_progress=max(record.progress, state.at),
        )


AT_WORK: tuple[Status, ...] = ("queued", "running", "waiting")
_EMPTY = 4_096
_ENTRY = 600


def rough_size(session: Session) -> int:
    """Bytes: the texts, and what Python needs to hold them."""
    state = session.state
    texts = sum(map(size, state.conversation.items)) + sum(map(size, state.queue.waiting))
    streamed = sum(partial.size - partial.start for partial in session.streaming.partials.values())
    items = len(state.conversation.items) + len(session.log.recent) + len(state.queue.waiting)
    ids = sum(map(sys.getsizeof, state.queue.seqs))
    return _EMPTY + 2 * (texts + streamed) + _ENTRY * items + ids
