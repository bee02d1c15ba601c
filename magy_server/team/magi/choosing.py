"""This module chooses the models of the three nodes, by what is configured and can be used."""

from __future__ import annotations

from collections.abc import Mapping

from magy_server.core.errors import InvalidRequest
from magy_server.core.magi.case import Case, is_small
from magy_server.core.magi.panel import Panel, capable, expected, models
from magy_server.core.magi.recorded import agent_of
from magy_server.core.magi.vote import NODES, Node
from magy_server.core.state.state import State
from magy_server.engine.world import World


def panel(world: World, state: State, case: Case) -> Panel:
    """Returns who judges the case in this session, and what that may cost. Raises InvalidRequest
    where the session's own model is a small one."""
    known = world.models(state.root)
    offered = known.models()
    own = state.conversation.briefing.model if state.conversation.briefing else state.model
    if is_small(own):
        raise InvalidRequest(_small(own, capable(offered)))
    found = models(_wanted(world, state), offered, own)
    _, usage = expected(case)
    costs = [known.facts(model).cost(usage) for model in found.values()]
    dollars = None if None in costs else sum(filter(None, costs))
    return Panel(found, dollars)


def _wanted(world: World, state: State) -> Mapping[Node, str]:
    """What the person has set: in the settings, or in an agent file of their own."""
    settings, agents = world.settings(state.root).magi, world.agents(state.root)
    found: dict[Node, str] = {}
    for node in NODES:
        agent = agents.get(agent_of(node))
        found[node] = getattr(settings, node) or (agent.model if agent else "") or ""
    return found


def _small(own: str, better: str) -> str:
    if not better:
        return (
            f"{own} is a small model, which cannot lead a deliberation, and no other is "
            "configured. Tell the person to choose a full model for this session."
        )
    return (
        f"{own} is a small model, which cannot lead a deliberation. Call spawn_agent with agent "
        f'"magi", model "{better}" and the whole question as its prompt, then wait_agent, and '
        "give the person the report that it brings, unchanged."
    )
