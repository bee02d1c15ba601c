"""This module has a graph of tasks done: each task by a child, as soon as it may begin.

It keeps nothing. Which attempts there are, the names of children say, and what they came to, the
parent's log: whoever goes on after a crash finds both as they are, and a task that was begun is not
begun twice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field, replace

from magy_server.core.agents import tree
from magy_server.core.agents.child import LIVE, Spawn
from magy_server.core.agents.mail import Mailed, TextPayload, ulid
from magy_server.core.agents.narrowing import narrowing
from magy_server.core.errors import (
    InvalidConfig,
    InvalidRequest,
    NotFound,
    NotTrusted,
    ProviderError,
)
from magy_server.core.events import Requeued
from magy_server.core.graphs.graph import GraphTask, names, plain
from magy_server.core.graphs.progress import Attempt, GraphProgress
from magy_server.core.graphs.recorded import attempts
from magy_server.core.permit import Ruleset
from magy_server.core.prompting.framing import escaped
from magy_server.core.state.state import State
from magy_server.core.values import Limits, Text
from magy_server.dataclass import dataclass
from magy_server.engine.log import Write
from magy_server.engine.session import Session
from magy_server.engine.world import World
from magy_server.team.children import Children
from magy_server.team.mailing import Mailing

FOREVER = 10 * 365 * 86_400.0
"""Seconds: a graph has as much time as the turn that it is done in."""


@dataclass(slots=True)
class GraphRun:
    """The graph `id` (the call that began it) of the session `parent`. `tasks`: in order. `since`:
    where in the log and when somebody went on with it, as in `recorded.Begun`. `show` is called
    with how it is, each time that changes."""

    world: World
    children: Children
    mailing: Mailing
    parent: Session
    id: str
    tasks: Sequence[GraphTask]
    since: tuple[int, float]
    show: Callable[[GraphProgress], None]
    _attempts: dict[str, list[Attempt]] = field(default_factory=dict)
    _blocked: str = ""
    _unable: dict[str, str] = field(default_factory=dict)
    """By task, why no agent can be spawned for it; who goes on with the graph finds out anew."""

    async def done(self) -> GraphProgress:
        """Returns how it is when all is done, when there is no room for a child and none of its own
        that could make some, or when somebody has something to say to the parent. Raises what
        spawning and waiting do."""
        await self._look()
        asking: frozenset[str] = frozenset()
        while True:
            await self._begin()
            how = self._progress()
            self.show(how)
            if how.settled or not how.live:
                return how
            try:
                waited = await self.mailing.wait(
                    self.parent.id, how.live, until="any", itself=True,
                    deadline=self.world.clock.now() + FOREVER, asked=asking,
                )  # fmt: skip
                why, asking = waited.why, waited.asking
            except NotFound:  # one was deleted before it could be waited for
                why = "done"
            await self._look()
            if why == "interrupted":
                how = self._progress()
                self.show(how)
                return how

    async def _look(self) -> None:
        """Which attempts there are, and how they are by now."""
        there = await self.children.list(self.parent.id, recursive=False, closed=True)
        # After that: of what has ended by then, the result is in the log.
        await self.parent.refresh()
        found = attempts(self.id, there, self.parent.state.reports, self.since)
        known = {one.child.session for some in found.values() for one in some}
        for task, some in self._attempts.items():
            gone = [_cancelled(one) for one in some if one.child.session not in known]
            if gone:  # a person has deleted them before they came to anything
                found[task] = sorted([*found.get(task, ()), *gone], key=lambda one: one.number)
        self._attempts = found
        await self._take_results()

    def _progress(self) -> GraphProgress:
        return GraphProgress(self.id, self.tasks, self._attempts, self._blocked, self._unable)

    async def _take_results(self) -> None:
        """They are for the graph: the parent's model gets what all come to, in the end. That of an
        attempt which was at work a moment ago stays: the next wait ends with it."""
        ended = (one for some in self._attempts.values() for one in some if one.status not in LIVE)
        mine = {one.mail.id for one in ended if one.mail}

        def decide(now: State) -> Write | None:
            read = tuple(arrival.id for arrival in now.queue.waiting if arrival.id in mine)
            return Write([Requeued(dropped=read)]) if read else None

        await self.parent.append(decide)

    # --- beginning --------------------------------------------------------------------------------

    async def _begin(self) -> None:
        """All that may begin and for which there is room."""
        stuck = (one.text for some in self._attempts.values() for one in some if one.stuck)
        self._blocked = next(stuck, "")
        if self._blocked:
            return  # the others would only find out the same
        while ready := self._ready():
            for task in ready:
                while why := await self._spawn(task):
                    if not await self._make_room():
                        self._blocked = why
                        return

    def _ready(self) -> list[GraphTask]:
        how = self._progress().states
        return [task for task in self.tasks if how[task.id] == "ready"]

    async def _spawn(self, task: GraphTask) -> str:
        """Returns why there is no room; "": it is begun, or cannot be, which holds no other up."""
        tries = self._attempts.setdefault(task.id, [])
        number = len(tries) + 1
        try:
            child, _ = await self.children.spawn(self.parent.id, self._wanted(task, number))
        except InvalidRequest as error:
            if error.reason == "spawn_limit":
                return error.message
            self._unable[task.id] = error.message
            return ""
        except (NotFound, NotTrusted, InvalidConfig, ProviderError) as error:
            self._unable[task.id] = error.message
            return ""
        tries.append(Attempt(child, number, "queued", None))
        return ""

    async def _make_room(self) -> bool:
        """Closes an agent that has nothing more to do."""
        for tries in self._attempts.values():
            for place, one in enumerate(tries):
                if one.status not in LIVE and one.child.status != "closed":
                    await self.children.close(one.child.session, reason="done", by=self.parent.id)
                    closed = await self.children.info(one.child.session)
                    tries[place] = replace(one, child=closed)
                    return True
        return False

    def _wanted(self, task: GraphTask, number: int) -> Spawn:
        key = tree.attempt(self.id, task.id, number)
        to = tree.child(self.parent.id, key)
        progress = self._progress()
        how = progress.states
        came = [self._attempts[id][-1] for id in task.needs if how[id] == "completed"]
        failed = [id for id in task.needs if how[id] != "completed"]
        prompt = escaped(task.prompt)
        if failed:
            prompt += (
                f"\n\nNothing came of {', '.join(failed)}, on which this task depends. Do what can "
                "be done without, and say in your result what is missing for that reason."
            )
        if odd := progress.at_odds(task):  # by name: what they say is data
            prompt += (
                f"\n\nThe results of {names(odd)} contradict each other. Settle by evidence "
                "what is right, or show both and say that it is open."
            )
        return Spawn(
            key=key,
            agent=task.agent,
            prompt=(Text(text=prompt),),
            name=task.id,
            model=(number > 1 and task.instead) or task.model,
            rules=self._rules(task),
            limits=Limits(requests=0, repeats=0, seconds=task.seconds) if task.seconds else None,
            letters=tuple(_passed_on(one.mail, to) for one in came if one.mail),
            worktree=task.worktree,
            plugin=task.plugin,
        )

    def _rules(self, task: GraphTask) -> Ruleset | None:
        if not task.writes:
            return None
        places = [f"./{plain(place)}" for place in task.writes]
        rules = {pattern: "allow" for place in places for pattern in (place, f"{place}/**")}
        rules["*"] = "deny"
        return narrowing({"edit": rules, "write": rules}, self.world.keys)


def _passed_on(mail: Mailed, to: str) -> Mailed:
    """The result of one agent, for another that builds on it. It comes along with the task."""
    text = mail.payload.text if isinstance(mail.payload, TextPayload) else ""
    return Mailed(
        id=ulid(0, f"{mail.id}:{to}"),
        sender=mail.sender,
        agent=mail.agent,
        name=mail.name,
        to=to,
        payload=TextPayload(text=text),
        wakes=False,
        untrusted=mail.untrusted,
    )


def _cancelled(attempt: Attempt) -> Attempt:
    """A person has deleted the agent: that is not to be done, then."""
    return replace(attempt, status="cancelled") if attempt.status in LIVE else attempt
