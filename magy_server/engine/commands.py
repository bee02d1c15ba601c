"""Commands that sessions have in the background: ended with who started them, whichever process
that was, and though nothing of the session may be in memory."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from magy_server.engine.world import World


async def end_commands(world: World, streams: Sequence[str]) -> None:
    """All of these sessions'. Who started a command says in the log that it has ended."""
    async with asyncio.TaskGroup() as group:
        for stream in streams:
            info = await world.store.info(stream)
            name = stream.removeprefix("session/")
            for call, leader in (info.summary.get("background", {}) if info else {}).items():
                group.create_task(_end(world, leader, f"{name}:{call}"))


async def _end(world: World, leader: int, marked: str) -> None:
    await world.end_group(leader, marked)
