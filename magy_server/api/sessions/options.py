"""This module says which values a session's options may have, and which hold where nobody chose."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from magy_server.core.errors import InvalidRequest, ProviderError
from magy_server.engine.world import World

Option = Literal["agent", "model", "bypass", "title", "review"]
VALUES: Mapping[str, Sequence[str]] = {
    "bypass": ("off", "on"),
    "review": ("review", "propose", "auto"),
}
"""Options that have these values and no others."""


def check(world: World, root: str | None, option: Option, value: str) -> None:
    """Raises InvalidRequest, NotFound or ProviderError when there is no such choice."""
    if option == "agent":
        world.agent(value, root)
    elif option == "model":
        world.models(root).named(value)
    elif value not in VALUES.get(option, (value,)):
        raise InvalidRequest(f"{option} is one of {', '.join(VALUES[option])}, not {value!r}.")
    elif option == "bypass" and value == "on" and not world.settings(root).bypass:
        raise InvalidRequest(
            "Bypass is forbidden here: the configuration says `bypass = false`. `magy config` "
            "shows which file says so."
        )


async def in_force(world: World, about: Mapping[str, Any], root: str | None) -> dict[str, str]:
    """Returns a session's options as they hold: one that names no model uses its agent's, or the
    configured one; "" when there is none."""
    filled = dict(about)
    if not filled.get("model"):
        agent = world.agents(root).get(filled.get("agent", ""))
        filled["model"] = (agent and agent.model) or await _default_model(world, root)
    filled["review"] = filled.get("review") or world.settings(root).edits.review
    allowed = world.settings(root).bypass
    filled["bypass"] = (allowed and filled.get("bypass")) or "off"
    return filled


def choices(world: World, root: str | None) -> dict[str, Sequence[str]]:
    agents = world.agents(root).values()
    offered = [a.name for a in agents if not a.hidden and a.mode != "subagent"]
    found = {"agent": offered, "model": world.models(root).models(), **VALUES}
    return found if world.settings(root).bypass else {**found, "bypass": ("off",)}


async def _default_model(world: World, root: str | None) -> str:
    try:
        return await world.models(root).default()
    except ProviderError:
        return ""  # whoever prompts is told
