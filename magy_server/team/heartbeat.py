"""The process that runs a tree answers pings to its agents, without a model: even while an agent is
busy, or its model does not answer."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from magy_server.core.agents import tree
from magy_server.core.agents.child import status
from magy_server.core.agents.mail import Mailed, SignalPayload, key_of, keys, ulid
from magy_server.core.agents.tree import Stream, stream_of
from magy_server.core.errors import NotFound
from magy_server.core.state.state import State
from magy_server.engine.loaded_sessions import Sessions
from magy_server.engine.log import Write
from magy_server.engine.session import Session
from magy_server.engine.world import World


class Heartbeat:
    """A listener to the signals that sessions are found to have got."""

    def __init__(self, world: World, sessions: Sessions) -> None:
        self._world = world
        self._sessions = sessions

    def __call__(self, session: Session, signals: Sequence[Mailed]) -> None:
        if pings := [mail for mail in signals if mail.payload == SignalPayload(signal="ping")]:
            session.later(self._answer(session, pings))

    async def _answer(self, session: Session, pings: Sequence[Mailed]) -> None:
        """To the agent that asks; to the parent if a person does. Each ping once, whoever finds
        it, however often."""
        id = session.id
        trees, user = self._sessions.trees, Stream(f"{session.stream}/heartbeat")
        if not await trees.take(user) and not trees.holds(user):
            return  # another process runs the tree: only that one can say how it is
        asked: dict[str, list[Mailed]] = {}
        for ping in pings:
            asked.setdefault(ping.sender or tree.parent(id) or id, []).append(ping)
        try:
            for to, those in asked.items():
                with suppress(NotFound):
                    asking = await self._sessions.session(stream_of(to))
                    await self._beat(session, asking, those)
        finally:
            await trees.give_back(user)

    async def _beat(self, session: Session, asking: Session, pings: Sequence[Mailed]) -> None:
        """Answers those that were not answered yet, in one append. When a log is loaded that is
        seldom any of all that it has."""
        id, to, state = session.id, asking.id, session.state
        at = self._world.clock.now()
        now = status(state, queued=self._world.slots.queued(session.stream))
        about = {"state": now, "waiting": str(len(state.queue.waiting)), "seq": str(state.seq)}
        ids = {ping.id: ulid(at, f"{id}:heartbeat:{ping.id}") for ping in pings}

        def decide(now: State) -> Write | None:
            had = keys(now.queue.seqs)
            beats = [
                Mailed(
                    id=beat,
                    sender=id,
                    agent=state.agent,
                    to=to,
                    payload=SignalPayload(signal="heartbeat"),
                    wakes=False,
                    correlation=ping,
                    metadata=about,
                )
                for ping, beat in ids.items()
                if key_of(beat) not in had
            ]
            return Write(beats) if beats else None

        await asking.append(decide)
