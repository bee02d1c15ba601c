"""This module collects the rules that hold in a session at this moment, its own and those of each
session above it, for the judge to decide by.

A level is one session's sources of rules as they are now. What a child may do is the strictest of
what each of its levels says. So is what becomes of its edits.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from magy_server.core import permit
from magy_server.core.errors import NotFound
from magy_server.core.permit import Rule, Ruleset
from magy_server.core.policy import strangers
from magy_server.core.policy.guardrails import NOBODY, Said, said
from magy_server.core.settings import LimitSettings, Settings
from magy_server.core.skills import statement
from magy_server.core.skills.statement import SKILL
from magy_server.core.state.state import State
from magy_server.core.summary import own_turns
from magy_server.core.tool import Tool
from magy_server.core.values import (
    Action,
    Decision,
    Effect,
    Facts,
    Grant,
    Limits,
    Resource,
    SkillUse,
)
from magy_server.dataclass import dataclass
from magy_server.engine.session import Session
from magy_server.engine.world import Project, World

PROPOSES = Ruleset(
    source="edits.review = propose",
    keys={"write": (Rule(pattern="*", action="ask", bare=True),)},
    narrows=True,
)
"""A command changes files at once, where a person wants to judge changes before they are made."""


@dataclass(frozen=True, slots=True)
class Law:
    """What decides in a session at this moment: the strictest of its own rules and those of each
    session above it. What was granted to one of them answers for it, too. `review`: what becomes of
    its edits. `project`: the workspace's own stream as it was read for this."""

    levels: Sequence[Level]
    project: Project
    grants: Sequence[Grant]
    bypass: bool
    review: str = "review"
    untrusted: Sequence[str] = ()
    """Where texts come from that it, or one above it, has read and nobody vouches for."""
    skills: Sequence[SkillUse] = ()
    """Those at work in it, or in one above it."""

    @property
    def identity(self) -> Hashable:
        """The same for two that decide the same."""
        rules = tuple((level.session, level.text) for level in self.levels[1:])
        grants = tuple(grant.id for grant in self.grants)
        own = self.levels[0].text, self.review == "propose"
        return (own, rules, grants, self.bypass, self.skills)

    def decide(self, tool: Tool, facts: Facts, arguments: Mapping[str, Any]) -> Decision:
        """`arguments`: as the model wrote them."""
        call = said(tool.name, arguments)
        asked = (
            strangers.verdict(facts, tool.key, self.untrusted, bypass=self.bypass),
            statement.verdict(tool.name, tool.effect, self.skills, bypass=self.bypass),
        )
        return permit.strictest([*filter(None, asked), *self._by_rules(tool, facts, call)])

    def _by_rules(self, tool: Tool, facts: Facts, call: Said) -> Iterator[Decision]:
        if tool.key == SKILL and facts.resources:  # a skill's file is read as any other
            yield self._under("read", tool.effect, facts, call)
            facts = facts.model_copy(update={"resources": ()})
        commands = any(resource.kind == "exec" for resource in facts.resources)
        more = (PROPOSES,) if commands and self.review == "propose" else ()
        yield self._under(tool.key, tool.effect, facts, call, more)
        new = tuple(r for r in facts.resources if r.kind == "write" and not r.exists)
        if tool.key == "edit" and new:  # a patch that makes a file writes it whole
            made = facts.model_copy(update={"resources": new})
            yield self._under("write", tool.effect, made, call)

    def _under(
        self, key: str, effect: Effect, facts: Facts, call: Said = NOBODY,
        more: Sequence[Ruleset] = (),
    ) -> Decision:  # fmt: skip
        """`more`: sources that hold beside those of each level."""
        return permit.strictest([
            permit.decide(
                facts, key, effect, [*level.sources, *more], self.grants, self.bypass, call
            )
            for level in self.levels
        ])  # fmt: skip

    def may_read(self, root: str, path: str) -> Action:
        """What the rules say about reading a file: its canonical path, in `root` or not."""
        inside = path.startswith(root.rstrip("/") + "/")
        relative = path[len(root.rstrip("/")) + 1 :] if inside else None
        facts = Facts(resources=(Resource(kind="read", subject=path, relative=relative),))
        return self._under("read", "read", facts).action

    def may_open(self, url: str) -> Action:
        """What the rules say about opening a page in a browser."""
        facts = Facts(resources=(Resource(kind="net", subject=url),))
        return self._under("browser", "net", facts).action


async def law(session: Session, world: World, *, known: bool = False) -> Law:
    """`known`: the grants of the workspace are those that this process has read last. What is
    decided by them is appended together with `project.stands`."""
    state = session.state
    above = await world.above(state)
    project = await (world.known_project if known else world.project)(state.root)
    settings = world.settings(state.root)
    return Law(
        levels=await levels(world, state, above),
        project=project,
        grants=[
            *(g for one in (state, *above) for g in _granted(one, state.spending.run)),
            *project.grants,
        ],
        bypass=settings.bypass and any(one.bypass for one in (state, *above)),
        review="auto" if _beside(state) else _strictest_review([state, *above], settings),
        untrusted=strangers.all_of(one.conversation.untrusted for one in (*above[::-1], state)),
        skills=at_work([state, *above]),
    )


def at_work(chain: Sequence[State]) -> tuple[SkillUse, ...]:
    """The skills at work in a session (the first) and in those above it."""
    found: tuple[SkillUse, ...] = ()
    for one in reversed(chain):
        found = statement.joined(found, one.skills)
    return found


def _granted(one: State, run: str) -> Iterator[Grant]:
    """What was granted for a run holds in that run only, for all who work for it."""
    return (grant for grant in one.grants if grant.scope != "run" or one.spending.run == run)


STRICTEST = ("propose", "review", "auto")


@dataclass(frozen=True, slots=True)
class Level:
    """`text`: the sources as JSON, for telling levels apart."""

    session: str
    text: str
    sources: tuple[Ruleset, ...]


async def levels(world: World, state: State, above: Sequence[State]) -> list[Level]:
    """The session's own, its parent's, and so on to the root's."""
    own = await _text(world, state)
    return [Level(state.id, own, rulesets(own)), *await levels_above(world, above)]


async def levels_above(world: World, above: Sequence[State]) -> list[Level]:
    """Those of the sessions above one. Where the agent was changed of one that has done nothing as
    this yet, there is a second level: what it would be briefed with."""
    found: list[Level] = []
    for one in above:
        texts = [await _text(world, one)]
        briefed = one.conversation.briefing
        if briefed and briefed.agent != one.agent and own_turns(one):
            texts.append(as_text(await sources(world, one)))
        found += [Level(one.id, text, _named(text, one.id)) for text in texts]
    return found


async def review_mode(world: World, state: State) -> str:
    """review | propose | auto: the strictest of its own and of those above it. One that does not
    say goes by those above; a root, by what is configured. In a worktree it is auto: the work lands
    as a whole (`landing_mode`)."""
    return "auto" if _beside(state) else await landing_mode(world, state)


async def landing_mode(world: World, state: State) -> str:
    """The same, for what becomes of its work in the files of the person."""
    try:
        chain = [state, *await world.above(state)]
    except NotFound:  # deleted just now, and this with it
        chain = [state]
    return _strictest_review(chain, world.settings(state.root))


def _beside(state: State) -> bool:
    """Whether it works in a worktree, beside the person's files."""
    return state.opened is not None and bool(state.opened.place)


def _strictest_review(chain: Sequence[State], settings: Settings) -> str:
    said = {one.review for one in chain}
    if not chain[-1].review:
        said.add(settings.edits.review)
    return min(said - {""}, key=STRICTEST.index)


async def _text(world: World, state: State) -> str:
    """What the session was briefed with. One that never was has the rules it would be given; what
    came with its parent's conversation is the parent's."""
    briefed = state.conversation.briefing
    if briefed and own_turns(state):
        return (await world.texts({briefed.rules}))[briefed.rules]
    return as_text(await sources(world, state))


async def sources(world: World, state: State) -> list[Ruleset]:
    """A session's own as it would be briefed with them now: its agent's, the configured ones, and
    those that it was spawned with."""
    own = [world.agent(state.agent, state.root).rules, *world.rules(state.root)]
    if state.opened and (hash := state.opened.rules):
        own.append(Ruleset.model_validate_json((await world.texts({hash}))[hash]))
    return own


def as_text(sources: Sequence[Ruleset]) -> str:
    return json.dumps([source.model_dump(mode="json") for source in sources])


@lru_cache(maxsize=64)
def rulesets(text: str) -> tuple[Ruleset, ...]:
    """Asked for several times with each call, and nearly always the same."""
    return tuple(Ruleset.model_validate(source) for source in json.loads(text))


@lru_cache(maxsize=64)
def _named(text: str, session: str) -> tuple[Ruleset, ...]:
    """The rules of another session, with its name: the person must see whose rule decided."""
    return tuple(
        one.model_copy(update={"source": f"{one.source} (of {session})"}) for one in rulesets(text)
    )


def caps(state: State, above: Sequence[State], configured: LimitSettings) -> Limits:
    """The lowest of the configured caps and of those that it, or one above it, was spawned with."""
    found = Limits(**configured.model_dump())
    for one in (state, *above):
        found = found.within(one.opened.limits if one.opened else None)
    return found


def inherited(above: Sequence[State], world: World) -> tuple[str, float | None]:
    """Model and temperature of the nearest above that has one."""
    model, temperature = "", None
    for one in above:
        agent = world.agents(one.root).get(one.agent)
        if (briefed := one.conversation.briefing) and own_turns(one):
            model = model or briefed.model
            warm = briefed.temperature
        else:
            model = model or one.model or (agent.model if agent else None) or ""
            warm = agent.temperature if agent else None
        temperature = warm if temperature is None else temperature
    return model, temperature


def told(state: State, above: Sequence[State], deeper: int) -> str:
    """What a child is told of its place. `deeper`: how many levels it may have below it."""
    opened = state.opened
    assert opened is not None
    parent = above[0].id
    who = f"the agent {above[0].agent!r} (session {parent})"
    lines = [
        f"You are a child agent. You were spawned by {who}."
        if opened.call
        else f"You are a child agent. A person spawned you to work beside {who}.",
        "Only the last message of your turn reaches that agent: put all that it must know into "
        "it. A <message> in this conversation comes from another agent, not from the "
        "person.",
    ]
    if deeper > 0:
        depth = "one level" if deeper == 1 else f"{deeper} levels"
        lines.append(f"You may spawn agents yourself, {depth} below you.")
    else:
        lines.append("You cannot spawn agents: do the task yourself.")
    if tree := opened.worktree:
        lines.append(
            f"You work in a git worktree of your own, on the branch {tree.branch}, which began at "
            f"{tree.base}; what is not in git, such as installed packages, is not there. Whatever "
            "you have changed is committed when your turn ends: you need not commit, and must "
            "not switch branches."
        )
    if opened.cwd != state.place:
        lines.append(f"Your directory is {opened.cwd}: your commands start there.")
    return "\n".join(lines)
