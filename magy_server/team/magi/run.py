"""This module has a deliberation done: each vote by a child of its own that knows of no other.

It keeps nothing. Which attempts there are, the names of children say, and what they came to, the
parent's log: whoever goes on after a crash finds both as they are, so the ruling is the same.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from magy_server.core.agents import tree
from magy_server.core.agents.child import LIVE, ChildInfo, Spawn
from magy_server.core.errors import InvalidRequest, NotFound
from magy_server.core.events import Requeued
from magy_server.core.magi import tasks
from magy_server.core.magi.case import GRACE, TIMES, Case, mode
from magy_server.core.magi.deliberation import (
    GONE,
    Attempt,
    Ballot,
    Deliberation,
    Stage,
    by_node,
)
from magy_server.core.magi.digest import digest
from magy_server.core.magi.emotional_log import Memories
from magy_server.core.magi.recorded import (
    Record,
    agent_of,
    begun_as,
    deliberation,
    earlier,
    task_name,
)
from magy_server.core.magi.vote import Node
from magy_server.core.state.state import State
from magy_server.core.values import Limits, Text
from magy_server.dataclass import dataclass
from magy_server.engine.log import Write
from magy_server.engine.session import Session
from magy_server.engine.world import World
from magy_server.team.children import Children
from magy_server.team.mailing import Mailing

PAUSE = 1.0
"""Seconds before a node that failed is asked again."""
LEAST = 1.0
"""Seconds that a wait lasts at least: who is being stopped takes a moment."""
REQUESTS = 12
"""Model requests that a node may take for one vote."""


@dataclass(slots=True)
class DeliberationRun:
    """The deliberation that the call `id` of the session `parent` began. `models`: which each node
    is asked with; "": the session's own. `memories`: what CASPER is told of its emotional log.
    `rulings`: those that the session has had. `show` is called with how it is, each time that
    changes."""

    world: World
    children: Children
    mailing: Mailing
    parent: Session
    id: str
    case: Case
    models: Mapping[Node, str]
    memories: Memories
    rulings: Sequence[Record]
    show: Callable[[Deliberation], None]

    async def done(self) -> Deliberation:
        """Returns it when all votes are there, or no more come. Raises what spawning and waiting
        do; what was begun goes on then, and is found by who begins again."""
        while True:
            now, live = await self._look()
            self.show(now)
            if now.complete:
                await self._close_ended()
                return now
            if not await self._begin(now):
                await self._wait(live)

    # --- looking ----------------------------------------------------------------------------------

    async def _look(self) -> tuple[Deliberation, list[ChildInfo]]:
        """How it is by now: what has ended, the log tells, and who is at work, the list, which
        comes along."""
        there = await self._there()
        await self.parent.refresh()
        state = self.parent.state
        reports = {child: one.mail for child, one in state.reports.items()}
        now = deliberation(self.parent.id, self.id, self.case, reports, self.memories.lines)
        now = replace(now, earlier=earlier(self.case, self.rulings))
        live = [one for one in there if one.session not in reports]
        await self._take_results()
        working = [one for one in live if one.status in LIVE]
        return replace(now, ballots=with_live(now.ballots, self.id, live)), working

    async def _there(self) -> list[ChildInfo]:
        """The children that are for this deliberation."""
        found = await self.children.list(self.parent.id, recursive=False, closed=True)
        return [one for one in found if begun_as(self.id, one.session)]

    async def _take_results(self) -> None:
        """They are for the tally: the parent's model gets the ruling."""
        mine = {
            one.mail.id for child, one in self.parent.state.reports.items()
            if begun_as(self.id, child)
        }  # fmt: skip

        def decide(now: State) -> Write | None:
            read = tuple(arrival.id for arrival in now.queue.waiting if arrival.id in mine)
            return Write([Requeued(dropped=read)]) if read else None

        await self.parent.append(decide)

    # --- beginning --------------------------------------------------------------------------------

    async def _begin(self, now: Deliberation) -> bool:
        """Begins all that may begin and for which there is room; returns whether that was anything.
        Who has ended makes room first: a node is closed before its replacement begins. Raises
        InvalidRequest when there is no room, and none of its own that will make some."""
        if not now.begins:
            return False
        await self._close_ended()
        if any(number > 1 for _, _, number in now.begins):
            await asyncio.sleep(PAUSE)
        began = False
        for node, stage, number in now.begins:
            try:
                await self.children.spawn(self.parent.id, self._wanted(now, node, stage, number))
            except InvalidRequest as error:
                if error.reason != "spawn_limit" or not await self._open():
                    raise
                return began
            began = True
        return began

    async def _open(self) -> list[ChildInfo]:
        """Those that take room: they are at work, or were a moment ago."""
        return [one for one in await self._there() if one.status != "closed"]

    async def _close_ended(self) -> None:
        for one in await self._open():
            if one.status not in LIVE:
                await self.children.close(one.session, reason="done", by=self.parent.id)

    def _wanted(self, now: Deliberation, node: Node, stage: Stage, number: int) -> Spawn:
        name, seconds = mode(self.case)[0], self._seconds(stage)
        ballot = by_node(now.ballots)[node]
        if stage == 2:
            assert ballot.vote is not None
            text = tasks.second(node, self.case, name, seconds, ballot.vote, digest(now))
        else:
            problem = ballot.first[-1].problem if ballot.first else ""
            memory = ""
            if node == "casper" and self.memories.on:
                memory = tasks.remembering(self.memories.lines)
            text = tasks.first(node, self.case, name, seconds, problem, memory)
        return Spawn(
            key=tree.attempt(self.id, task_name(node, stage), number),
            agent=agent_of(node),
            prompt=(Text(text=text),),
            name=f"{node.upper()}, {'second' if stage == 2 else 'first'} vote",
            model=self._model(node, number),
            limits=Limits(requests=REQUESTS, repeats=0, seconds=seconds),
        )

    def _model(self, node: Node, number: int) -> str:
        """The replacement is of the session's own model: that one works, or nothing would."""
        briefing = self.parent.state.conversation.briefing
        return self.models[node] if number < 3 or not briefing else briefing.model

    def _seconds(self, stage: Stage) -> float:
        times = TIMES[mode(self.case)[0]]
        return times.second if stage == 2 else times.first

    # --- waiting ----------------------------------------------------------------------------------

    async def _wait(self, live: Sequence[ChildInfo]) -> None:
        """Until one of them, who were at work when it was looked, has ended: who has since then,
        ends the wait at once. Or until the time of one is long over: then it is looked for once,
        and stopped if it is still at work."""
        if not live:
            return
        deadline = max(min(map(self._deadline, live)), self.world.clock.now() + LEAST)
        try:
            waited = await self.mailing.wait(
                self.parent.id, [one.session for one in live], until="any", deadline=deadline
            )
        except NotFound:  # one was deleted before it could be waited for
            return
        if waited.why != "timed_out":
            return
        for one in await self._there():
            if one.status in LIVE and self._deadline(one) <= self.world.clock.now():
                await self.children.close(
                    one.session, "cancel", "its time is over", by=self.parent.id
                )

    def _deadline(self, child: ChildInfo) -> float:
        about = begun_as(self.id, child.session)
        return child.created + self._seconds(about[1] if about else 1) + GRACE


def with_live(
    ballots: Sequence[Ballot], call: str, live: Sequence[ChildInfo]
) -> tuple[Ballot, ...]:
    """Returns the ballots with the attempts of `live`: children of whom nothing has come yet. Who
    was closed says nothing more."""
    more: dict[tuple[Node, Stage], list[Attempt]] = {}
    for one in sorted(live, key=lambda child: child.session):
        if about := begun_as(call, one.session):
            now = Attempt(one.model, "live") if one.status in LIVE else GONE
            more.setdefault(about[:2], []).append(now)
    return tuple(
        Ballot(
            one.node,
            (*one.first, *more.get((one.node, 1), ())),
            (*one.second, *more.get((one.node, 2), ())),
        )
        for one in ballots
    )
