"""This module finds the rewrites that a process which died had begun."""

from __future__ import annotations

from collections.abc import Sequence

from magy_server.core.agents.tree import SESSIONS, Stream
from magy_server.core.ports import StreamInfo
from magy_server.engine.loaded_sessions import FRESH
from magy_server.engine.world import World

AGENT = "rewrite"


async def left_open(world: World, roots: Sequence[str]) -> Sequence[Stream]:
    """Those of these workspace roots, which lately something happened in."""
    now, found = world.clock.now(), list[Stream]()
    for root in roots:
        page = await world.store.streams(SESSIONS, root=root, flat=True, limit=200)
        found += [i.stream for i in page.items if _is_open(i) and now - i.updated < FRESH]
    return found


def _is_open(info: StreamInfo) -> bool:
    options = info.summary.get("options") or {}
    return options.get("agent") == AGENT and info.summary.get("state") != "idle"
