"""This module waits until a session reaches a state, and kills the running commands of its tree."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import suppress

from magy_server.api.service import Service
from magy_server.core.state.state import State
from magy_server.engine.session import Session
from magy_server.tools.shell.process_groups import end_group, mark

SETTLING = 0.5
"""Seconds that a cancelled turn whose commands were killed has to be closed."""


async def settled(session: Session, reached: Callable[[State], bool]) -> None:
    """Waits until the session is in such a state."""
    moved = asyncio.Event()
    unwatch = session.watch(moved.set)
    try:
        while not reached(session.state):
            moved.clear()
            await moved.wait()
    finally:
        unwatch()


async def kill(service: Service, session: Session) -> None:
    """Kills the commands of the whole tree, and gives them no time to end by themselves: somebody
    is in a hurry, and no command may be left running. A cancelled turn then ends at once."""
    tree = service.loaded.tree(session.stream)
    await asyncio.gather(
        *(
            end_group(group, mark(one.id, call), 0.0)
            for one in {each.stream: each for each in (session, *tree)}.values()
            for call, group in _groups(one.state)
        )
    )
    state = session.state
    if state.turn and state.turn.cancel:
        with suppress(TimeoutError):
            async with asyncio.timeout(SETTLING):
                await settled(session, lambda now: now.turn is None)


def _groups(state: State) -> Iterator[tuple[str, int]]:
    """Returns (call, process group) of every command that runs."""
    yield from state.background.items()
    for call in state.turn.open_calls if state.turn else ():
        if call.started and call.started.group is not None:
            yield call.call.id, call.started.group
