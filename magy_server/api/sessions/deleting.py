"""Deleting a session and all below it.

While that goes on, nothing of it is in memory here nor comes there, so nothing goes on with it, and
the store removes all of it at once. Other processes are told, and find out when they look.
"""

from __future__ import annotations

from magy_server.core.agents.tree import Stream, stream_of
from magy_server.core.errors import InvalidRequest
from magy_server.engine import trees
from magy_server.engine.sessions import Sessions
from magy_server.engine.world import World


async def delete(world: World, sessions: Sessions, session: str) -> bool:
    """Stops what runs of it here, its commands in the background too. False: there was nothing.
    Raises InvalidRequest when it runs elsewhere."""
    stream = stream_of(session)
    user = Stream(f"{stream}/:deleting")  # no child has such a name
    if not await sessions.trees.take(user):  # before it is let go of: nobody else goes on with it
        raise _refusal(session, here=sessions.trees.holds(user))
    try:
        async with sessions.forgotten(stream):
            if not await sessions.trees.take(stream):
                raise _refusal(session, here=True)
            try:
                infos = await trees.whole(world.store, session)
                await world.end_commands([info.stream for info in infos])
                found = await world.store.delete(stream)
            finally:
                await sessions.trees.give_back(stream)
        for info in infos:
            trees.say_deleted(world.bus, info)
    finally:
        await sessions.trees.give_back(user)
    return found


def _refusal(session: str, *, here: bool) -> InvalidRequest:
    if here:
        return InvalidRequest(
            f"Session {session!r} is being deleted or restored; try again when that is done.",
            reason="busy",
        )
    return InvalidRequest(
        f"Another process runs session {session!r}; cancel or close it there first.",
        reason="busy",
    )
