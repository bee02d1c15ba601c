"""A decision is reviewed only so often, in whichever sessions of its workspace.

Each decision has a stream of its own, and a review is in it before the first node is asked: two
processes cannot both begin the last one, and one that was begun before a crash counts. A decision
is known by the question it began with; only a hash of that is kept.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from magy_server.core.agents.tree import Stream, stream_of
from magy_server.core.errors import Conflict
from magy_server.core.events import Finished, Reconsidered
from magy_server.core.magi import reviews
from magy_server.core.magi.case import Review
from magy_server.core.magi.emotional_log import topic
from magy_server.core.magi.recorded import Record, records
from magy_server.core.magi.reviews import Begun
from magy_server.core.ports import Batch, Store
from magy_server.engine.session import Session
from magy_server.engine.world import World


async def rulings(world: World, session: Session) -> Sequence[Record]:
    """Returns the deliberations that this session has had, the oldest first."""
    return records(session.id, await world.store.read(session.stream))


async def check(world: World, session: Session, review: Review, call: str = "") -> Batch | None:
    """Raises InvalidRequest for a review that may not begin. Returns what says that `call` begins
    it; None: that has been said."""
    past = await rulings(world, session)
    ruling = f"{session.id}/{call}"
    stream = _stream(session.state.root, reviews.decision(review, past))
    entries = await world.store.read(stream)
    begun = [
        Begun(entry.event.ruling, entry.event.of, entry.at)
        for entry in entries if isinstance(entry.event, Reconsidered)
    ]  # fmt: skip
    if ruling in [one.id for one in begun]:
        return None
    begun = [one for one in begun if not await _came_to_nothing(world.store, one.id)]
    reviews.check(review, past, begun, world.clock.now())
    head = entries[-1].seq if entries else 0
    return Batch(stream, head, [Reconsidered(ruling=ruling, of=review.of)])


async def begin(world: World, session: Session, call: str, review: Review) -> None:
    """Writes down that this call reviews a ruling. Raises InvalidRequest when it may not, since
    others have begun meanwhile."""
    while batch := await check(world, session, review, call):
        try:
            await world.store.append([batch])
        except Conflict:
            continue
        return


async def _came_to_nothing(store: Store, ruling: str) -> bool:
    """It was cancelled, or failed. What was deleted has been a review all the same."""
    session, _, call = ruling.rpartition("/")
    for entry in await store.read(stream_of(session)):
        if isinstance(entry.event, Finished) and entry.event.call == call:
            return entry.event.status != "completed"
    return False


def _stream(root: str | None, question: str) -> Stream:
    name = hashlib.sha256(f"{root or ''}\0{topic(question)}".encode("utf-8", "replace"))
    return Stream(f"decision/{name.hexdigest()[:32]}")
