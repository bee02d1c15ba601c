"""What agents' work came to becomes their reputation, and a task that asks for the best agent for
something gets it.

Nothing is read before somebody asks. Ratings are appended behind the work, those of one agent
together; a crash in between loses them, and no more than that.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from magy_server.core.agents.child import ended
from magy_server.core.agents.mail import Rated
from magy_server.core.errors import Conflict, InvalidRequest, MagyError, NotFound
from magy_server.core.events import Ended, Entry
from magy_server.core.ports import Batch
from magy_server.core.reviews.review_events import Noted
from magy_server.core.state.state import State
from magy_server.core.values import Hash
from magy_server.engine.world import World
from magy_server.tasks import Tasks

if TYPE_CHECKING:
    from magy_server.core.agents.reputation import Reputation

LOG = logging.getLogger(__name__)
AGENTS = 500
"""Agents of which the reputation is read."""
WAITING = 1_000
"""Ratings that wait to be appended; of more the oldest are dropped."""
HUNKS = 4
"""So many hunks of one decision count."""
OF_CHANGES = 0.5
"""The weight of what a person decided about one hunk."""
OF_AGENTS = 2.0
"""The weight of what another agent says."""
LOOKED = 200
"""Ratings that are looked through for one that was given before."""
NO_BLOBS: Mapping[Hash, bytes] = {}
VERBS = {"accept": 1.0, "commit": 1.0, "amend": 0.5, "reject": 0.0}
NO_FAULT = frozenset({"cancelled", "error"})
"""Ends that say nothing of the agent: the person stopped it, or the model could not be reached."""


class Reputations:
    """One for a process; a listener, too."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._tasks = Tasks()
        self._waiting: deque[Rated] = deque(maxlen=WAITING)
        self._appending = False

    # --- what is known ------------------------------------------------------------------------

    async def all(self) -> Mapping[str, Reputation]:
        """Returns the reputation of each agent that has one."""
        from magy_server.core.agents import reputation

        page = await self._world.store.streams(reputation.STREAMS, limit=AGENTS)
        return {
            info.stream.removeprefix(reputation.STREAMS): reputation.of_summary(info.summary)
            for info in page.items
        }

    async def best(self, root: str | None, agents: Sequence[str], capability: str) -> str:
        """Returns which of these agents, that the root has, is best at it. Raises NotFound."""
        from magy_server.core.agents import reputation

        known, there = await self.all(), self._world.agents(root)
        candidates = []
        for name in agents:
            expertise = there[name].expertise
            level = reputation.level(capability, expertise.primary, expertise.secondary)
            candidates.append(reputation.Candidate(name, level, known.get(name, {})))
        found = reputation.best(candidates, capability, self._world.clock.now())
        if found is None:
            fields = sorted({field for name in agents for field in there[name].expertise.primary})
            raise NotFound(
                f"No agent is known to be good at {capability!r}. Name an agent, or what one knows "
                f"best: {', '.join(fields) or 'none says what it knows'}."
            )
        return found.agent

    # --- what is learnt -----------------------------------------------------------------------

    def __call__(self, state: State, entries: Sequence[Entry]) -> None:
        for entry in entries:
            match entry.event:
                case Ended(stop=stop) if state.opened and state.opened.parent:
                    if stop not in NO_FAULT:
                        good = float(ended(stop) == "completed")
                        self._learn(state, Rated(
                            agent=state.agent, score=good, session=state.id, why="task"
                        ))  # fmt: skip
                case Noted(verb=verb, hunks=hunks) if verb in VERBS and hunks:
                    self._learn(state, Rated(
                        agent=state.agent, score=VERBS[verb], session=state.id, why="changes",
                        weight=OF_CHANGES * min(hunks, HUNKS),
                    ))  # fmt: skip

    def _learn(self, state: State, rated: Rated) -> None:
        there = self._world.agents(state.root).get(state.agent)
        if there is None or there.hidden:
            return
        self._waiting.append(rated)
        if not self._appending:
            self._appending = True
            self._tasks.begin(self._append_waiting(), "reputations")

    async def _append_waiting(self) -> None:
        try:
            while self._waiting:
                agent = self._waiting[0].agent
                same = [one for one in self._waiting if one.agent == agent]
                others = [one for one in self._waiting if one.agent != agent]
                self._waiting.clear()
                self._waiting.extend(others)
                await self.rate(same)
        except MagyError as error:
            LOG.info("no reputation: %s", error)
        finally:
            self._appending = False

    async def rated_by(self, rated: Rated) -> None:
        """Appends what an agent says of another. Raises InvalidRequest: it has said so before."""
        from magy_server.core.agents import reputation

        stream = reputation.stream_of(rated.agent)
        head = await self._world.store.head(stream)
        for entry in await self._world.store.read(stream, before=head + 1, limit=LOOKED):
            had = entry.event
            if isinstance(had, Rated) and had.by == rated.by and _same(had, rated):
                raise InvalidRequest(
                    f"You have rated {rated.session} for {rated.capability} before; that counts."
                )
        await self.rate([rated])

    async def rate(self, ratings: Sequence[Rated]) -> None:
        """Appends ratings of one agent. Raises StoreError."""
        from magy_server.core.agents import reputation

        store, now = self._world.store, self._world.clock.now()
        stream = reputation.stream_of(ratings[0].agent)
        while True:
            info = await store.info(stream)
            known = reputation.of_summary(info.summary) if info else {}
            for rated in ratings:
                known = reputation.rate(known, rated, now)
            batch = Batch(
                stream, info.head if info else 0, ratings, NO_BLOBS, reputation.summary(known)
            )
            try:
                await store.append([batch])
                return
            except Conflict:  # somebody else has rated it meanwhile
                continue

    async def close(self) -> None:
        await self._tasks.settle()


def _same(one: Rated, other: Rated) -> bool:
    return (one.session, one.capability) == (other.session, other.capability)
