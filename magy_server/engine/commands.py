"""Commands that sessions have in the background: ended with who started them, whichever process
that was, and though nothing of the session may be in memory."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from magy_server.engine.runner import Runner


async def end_commands(runner: Runner, streams: Sequence[str]) -> None:
    """All of these sessions'. Who started a command says in the log that it has ended."""
    async with asyncio.TaskGroup() as group:
        for stream in streams:
            info = await runner.world.store.info(stream)
            name = stream.removeprefix("session/")
            for call, leader in (info.summary.get("background", {}) if info else {}).items():
                group.create_task(_end(runner, leader, f"{name}:{call}"))


async def _end(runner: Runner, leader: int, marked: str) -> None:
    await runner.end_group(leader, marked)
