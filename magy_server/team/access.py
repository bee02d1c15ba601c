"""`TeamAccess` is `core.tool.Team` for one session: with it an agent deals with others of its
tree."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Literal

from magy_server.core.agents import tree
from magy_server.core.agents.child import ChildInfo, Spawn, Waited
from magy_server.core.agents.mail import Mailed, Rated, Status
from magy_server.core.errors import (
    InvalidConfig,
    InvalidRequest,
    NotFound,
    NotTrusted,
    ProviderError,
    ToolError,
)
from magy_server.core.graphs.graph import GraphTask
from magy_server.core.graphs.progress import GraphProgress
from magy_server.core.tool import Delivery
from magy_server.engine.loaded_sessions import Sessions
from magy_server.engine.session import Session
from magy_server.engine.world import World
from magy_server.team.children import Children
from magy_server.team.mailing import Mailing
from magy_server.team.reputations import OF_AGENTS, Reputations
from magy_server.team.spawning import offered

if TYPE_CHECKING:
    from magy_server.core.graphs.recorded import Recorded
    from magy_server.core.magi.case import Case, Review
    from magy_server.core.magi.deliberation import Deliberation
    from magy_server.core.magi.emotional_log import Memories
    from magy_server.core.magi.panel import Panel

NAMED = 20
"""Agents that an error names."""
PARENT = "parent"


class TeamAccess:
    def __init__(
        self, world: World, sessions: Sessions, children: Children, mailing: Mailing,
        reputations: Reputations, session: Session,
    ) -> None:  # fmt: skip
        self._reputations = reputations
        self._session = session
        self._world = world
        self._sessions = sessions
        self._children = children
        self._mailing = mailing
        self._id = session.id
        self.timeout = world.settings(session.state.root).spawn.held.wait_timeout
        self.keys = world.keys

    def now(self) -> float:
        return self._world.clock.now()

    async def spawn(self, wanted: Spawn) -> tuple[ChildInfo, bool]:
        with _for_the_model():
            return await self._children.spawn(self._id, wanted)

    async def spawned(self, key: str) -> ChildInfo | None:
        try:
            return await self._children.info(tree.child(self._id, key))
        except NotFound:
            return None

    async def check(self, agent: str, model: str, directory_: str, plugin: str = "") -> str:
        state = self._session.state
        with _for_the_model():
            return await self._children.check(state, agent, model, directory_, plugin)

    def plugins(self) -> Mapping[str, str]:
        only, there = self._world.plugin(self._session.state), self._world.plugins()
        return {name: about for name, about in there.items() if only in ("", name)}

    def offered(self) -> Mapping[str, str]:
        return offered(self._world, self._session.state.root)

    async def worktree(self, agent: str, *, wanted: bool) -> str:
        with _for_the_model():
            return await self._children.worktree(self._session.state, agent, wanted=wanted)

    async def best(self, capability: str) -> str:
        with _for_the_model():
            return await self._reputations.best(
                self._session.state.root, list(self.offered()), capability
            )

    async def rate(self, job: str, capability: str, score: float, reason: str) -> str:
        session, agent = await self._ratable(job)
        rated = Rated(
            agent=agent, capability=capability, score=score, weight=OF_AGENTS, session=session,
            why="rating", by=self._id, reason=reason,
        )  # fmt: skip
        with _for_the_model():
            await self._reputations.rated_by(rated)
        return agent

    async def _ratable(self, job: str) -> tuple[str, str]:
        """Session and agent of who is below, or whose result this session was given."""
        given = {
            mail.sender: mail.agent
            for mail in self._session.state.conversation.items
            if isinstance(mail, Mailed) and not tree.is_below(self._id, mail.sender)
        }
        matches = [id for id in given if id == job or id.endswith(tree.SEPARATOR + job)]
        if len(matches) == 1:
            return matches[0], given[matches[0]]
        found = await self.named(job)
        return found.session, found.agent

    async def named(self, job: str) -> ChildInfo:
        """Returns the agent with this id, with this id below the session's own, or whose id ends in
        this."""
        for id in (job, tree.child(self._id, job)):
            if tree.is_below(id, self._id):
                with suppress(NotFound):
                    return await self._children.info(id)
        below = await self._children.list(self._id, closed=True)
        found = [one for one in below if one.session.endswith(tree.SEPARATOR + job)]
        if len(found) == 1:
            return found[0]
        if found:
            ids = ", ".join(one.session for one in found[:NAMED])
            raise ToolError(f"{job!r} matches more than one agent: {ids}. Give the whole id.")
        ids = ", ".join(one.session for one in below if one.status != "closed")
        there = f"Yours are: {ids[:2000]}." if ids else "You have no agents."
        raise ToolError(f"There is no agent {job!r} below you. {there}")

    async def list(self, *, closed: bool) -> Sequence[ChildInfo]:
        with _for_the_model():
            return await self._children.list(self._id, closed=closed)

    async def close(
        self, job: str, mode: Literal["finish", "cancel"], reason: str
    ) -> tuple[Status, Sequence[str]]:
        with _for_the_model():
            return await self._children.close(job, mode, reason, by=self._id)

    async def addressee(self, job: str) -> tuple[str, str]:
        above = tree.parent(self._id)
        if job not in (PARENT, above):
            found = await self.named(job)
            return found.session, found.agent
        if above is None:
            raise ToolError("You have no parent: a person prompted you. Write it in your answer.")
        with _for_the_model():
            parents = await self._sessions.above(above)
        return above, parents[0].agent

    async def send(self, to: str, text: str, delivery: Delivery, key: str) -> str:
        with _for_the_model():
            return await self._mailing.send(to, text, key=key, delivery=delivery, sender=self._id)

    async def wait(
        self, jobs: Sequence[str], until: Literal["any", "all"], deadline: float
    ) -> Waited:
        with _for_the_model():
            return await self._mailing.wait(
                self._id, jobs, until=until, deadline=deadline, itself=True
            )

    async def began_graph(self, call: str) -> Mapping[str, Any]:
        forked = self._session.state.opened and self._session.state.opened.forked_from
        if forked and tree.is_call(call) and tree.asked_at(call) <= forked[1]:
            raise ToolError(
                f"The graph {call!r} belongs to the session that this one was forked from. Give "
                "the tasks that are still to be done anew."
            )
        if began := (await self._recorded()).of(call):
            return began.arguments
        raise ToolError(
            f"There is no graph {call!r} here. Its id is in the result of the call that began it."
        )

    async def _recorded(self) -> Recorded:
        from magy_server.core.graphs.recorded import recorded  # few sessions have graphs

        return recorded(await self._world.store.read(self._session.stream))

    async def run_graph(
        self, call: str, tasks: Sequence[GraphTask], moved: Callable[[GraphProgress], None]
    ) -> GraphProgress:
        from magy_server.team.graphs import GraphRun

        began = (await self._recorded()).of(call)
        assert began is not None  # it runs
        run = GraphRun(
            self._world, self._children, self._mailing, self._session, began.id, tasks,
            began.since, moved,
        )  # fmt: skip
        with _for_the_model():
            return await run.done()

    async def panel(self, case: Case) -> Panel:
        from magy_server.team.magi.choosing import panel

        with _for_the_model():
            return panel(self._world, self._session.state, case)

    async def may_review(self, review: Review) -> None:
        from magy_server.team.magi import reviewing

        with _for_the_model():
            await reviewing.check(self._world, self._session, review)

    async def memories(self, case: Case, call: str = "") -> Memories:
        from magy_server.team.magi.feelings import memories

        return await memories(self._world, self._session, case, call)

    async def deliberate(
        self, call: str, case: Case, memories: Memories, moved: Callable[[Deliberation], None]
    ) -> Deliberation:
        from magy_server.team.magi import reviewing
        from magy_server.team.magi.run import DeliberationRun

        with _for_the_model():
            models = (await self.panel(case)).models
            if case.review:
                await reviewing.begin(self._world, self._session, call, case.review)
            rulings = await reviewing.rulings(self._world, self._session)
            run = DeliberationRun(
                self._world, self._children, self._mailing, self._session, call, case, models,
                memories, rulings, moved,
            )  # fmt: skip
            return await run.done()

    async def remember(self, done: Deliberation, memories: Memories) -> Sequence[str]:
        from magy_server.team.magi.feelings import remember

        return await remember(self._world, self._session, done, memories)

    async def awaited(self) -> Sequence[str]:
        with _for_the_model():
            return await self._mailing.awaited(self._id)


@contextmanager
def _for_the_model() -> Iterator[None]:
    """What was asked wrongly is the model's to mend; what the log cannot hold is not."""
    try:
        yield
    except (InvalidRequest, NotFound, NotTrusted, InvalidConfig, ProviderError) as error:
        raise ToolError(error.message) from None
