"""What a process does first with a session that another one, now dead, was running; and how
commands in the background are ended, whichever process started them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from magy_server.core.events import Event, Exited, Resumed
from magy_server.engine.log import Write
from magy_server.engine.session import Session
from magy_server.engine.world import World


async def take_over(session: Session, world: World) -> None:
    """Ends what the dead holder of the lease left running, then marks its calls as orphans. For who
    holds the lease now. Raises StoreError."""
    events = await _lost_background(session, world) if session.fresh else []
    session.fresh = False
    if turn := session.state.turn:
        name = session.stream.removeprefix("session/")
        for call in turn.open_calls:
            if call.started and call.started.group:
                await world.end_group(call.started.group, f"{name}:{call.call.id}")
        events.append(Resumed(by=world.me))
    await session.append(lambda now: Write(events) if events else None)


async def _lost_background(session: Session, world: World) -> list[Event]:
    """Background commands belong to the process that started them: when the session is new to this
    one, and no other is alive, they are nobody's."""
    if world.peers():
        return []
    name, groups = session.stream.removeprefix("session/"), session.state.background
    for call, group in groups.items():
        await world.end_group(group, f"{name}:{call}")
    return [Exited(call=call, code=None) for call in groups]


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
