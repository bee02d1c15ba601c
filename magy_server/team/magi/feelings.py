"""This module has a deliberation reminded of CASPER's emotional log, and adds to that.

Only where the person has turned it on, in a workspace that they trust, and where not much is at
stake: no feeling has a say in what is to be safe.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial

from magy_server.core.errors import InvalidRequest
from magy_server.core.events import Started
from magy_server.core.magi.case import Case
from magy_server.core.magi.deliberation import Deliberation, by_node
from magy_server.core.magi.emotional_log import (
    MANY,
    Log,
    Memories,
    added,
    entry,
    line,
    review_due,
    surfaced,
)
from magy_server.core.magi.vote import Memory
from magy_server.engine.session import Session
from magy_server.engine.world import World
from magy_server.team.magi import kept_log

DUE = (
    f"CASPER's emotional log has more than {MANY} strong feelings within a week. Nothing of it "
    "reaches a deliberation before a person has read it: `magy magi log`, then "
    "`magy magi log reviewed`."
)


async def memories(world: World, session: Session, case: Case, call: str) -> Memories:
    """Returns what CASPER is told, and people of that. What the call `call` has begun with, it goes
    on with; "": none has begun. A log that cannot be read reminds nobody of anything, and adds
    nothing."""
    root = session.state.root
    if root is None or case.critical or not _on(world, root):
        return Memories()
    if call and (begun := await _begun(world, session, call)) is not None:
        return Memories(True, begun)
    now = world.clock.now()
    try:
        log = await asyncio.to_thread(kept_log.read, root)
    except InvalidRequest as error:
        return Memories(notes=(error.message,))
    lines = tuple(world.typed.clean(line(one)) for one in surfaced(log, case.question, now))
    return Memories(True, lines, (DUE,) if review_due(log, now) else ())


async def remember(
    world: World, session: Session, done: Deliberation, had: Memories
) -> Sequence[str]:
    """Adds what CASPER wants kept, and returns what people are to be told of the log."""
    root, memory = session.state.root, _memory(done)
    if root is None or memory is None or not had.on:
        return had.notes
    now = world.clock.now()
    new = entry(done.case.question, _clean(world, memory), now)

    def with_it(log: Log) -> Log:
        return added(log, new, now)

    try:
        log = await asyncio.to_thread(partial(kept_log.change, root, with_it))
    except InvalidRequest as error:
        return (*had.notes, error.message)
    return (DUE,) if review_due(log, now) else ()


def _on(world: World, root: str) -> bool:
    return world.settings(root).casper.emotional_log and world.vouched(root)


async def _begun(world: World, session: Session, call: str) -> tuple[str, ...] | None:
    for one in await world.store.read(session.stream):
        if isinstance(one.event, Started) and one.event.call == call:
            return one.event.evidence.reminded
    return None


def _memory(done: Deliberation) -> Memory | None:
    ballot = by_node(done.ballots)["casper"]
    votes = (ballot.revised, ballot.vote)
    return next((vote.memory for vote in votes if vote and vote.memory), None)


def _clean(world: World, memory: Memory) -> Memory:
    """Without secrets: the file outlives the session."""

    def without(text: str) -> str:
        return world.typed.clean(world.secrets.clean(text))

    return Memory(
        valence=memory.valence,
        primary_emotion=without(memory.primary_emotion),
        lesson=without(memory.lesson),
    )
