"""A trial judges a call that nobody makes: from the same facts and by the same rules as the judge,
with what each source says by itself. Nothing is run, asked or stored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from magy_server.core import permit
from magy_server.core.agents.tree import stream_of
from magy_server.core.events import Opened
from magy_server.core.permit import Ruleset
from magy_server.core.policy.guardrails import said
from magy_server.core.ports import Store
from magy_server.core.tool import Tool
from magy_server.core.values import Call, Decision, Facts
from magy_server.dataclass import dataclass
from magy_server.engine.feature_ports import Features
from magy_server.engine.judge import facts_of
from magy_server.engine.log import Write
from magy_server.engine.rules import law
from magy_server.engine.session import News, Session
from magy_server.engine.world import World

ID = "a-trial"


@dataclass(frozen=True, slots=True)
class Trial:
    """`by_source`: what each source says to the call by itself, in the order of the sources; None:
    nothing. `offered`: whether the model is shown the tool at all. `remembered`: what a lasting yes
    would remember."""

    facts: Facts
    decision: Decision
    by_source: Sequence[tuple[str, Decision | None]]
    offered: bool
    remembered: Sequence[str]


async def session_for_trials(
    world: World, store: Store, root: str, agent: str, model: str = ""
) -> Session:
    """Returns a session of its own that is in no list: `store` is one in memory. Raises NotFound if
    there is no such agent."""
    world.agent(agent, root)
    session = Session(stream_of(ID), store, world.bus, world.me, News())
    await session.load()
    opened = Opened(root=root, cwd=root, agent=agent, model=model)
    await session.append(lambda now: Write([opened]))
    return session


async def tried(
    session: Session, world: World, features: Features, tool: Tool, arguments: Mapping[str, Any]
) -> Trial:
    """Raises ToolError for arguments with which the tool cannot be called."""
    call = Call(id="0.0", name=tool.name, arguments=dict(arguments))
    facts, _ = await facts_of(session, world, features, tool, call)
    now = await law(session, world)
    decision = now.decide(tool, facts, arguments)
    sources = now.levels[0].sources
    lasting = () if decision.firm else permit.proposals(facts, tool.key)
    return Trial(
        facts,
        decision,
        _by_source(sources, tool, facts, arguments),
        not permit.withholds(sources, tool.key, tool.name),
        [f"{grant.key} {grant.pattern}" for grant in lasting],
    )


def _by_source(
    sources: Sequence[Ruleset], tool: Tool, facts: Facts, arguments: Mapping[str, Any]
) -> list[tuple[str, Decision | None]]:
    """A file's rules and its guardrails are one source to people."""
    found: dict[str, list[Decision]] = {}
    for one in sources:
        found.setdefault(one.source, []).extend(_alone(one, tool, facts, arguments))
    return [(source, permit.strictest(said) if said else None) for source, said in found.items()]


def _alone(
    source: Ruleset, tool: Tool, facts: Facts, arguments: Mapping[str, Any]
) -> list[Decision]:
    """Returns what a source says by itself, or []: nothing."""
    call = said(tool.name, arguments)
    found = permit.decide(facts, tool.key, tool.effect, [source], call=call)
    return [found] if source.source in found.rule else []
