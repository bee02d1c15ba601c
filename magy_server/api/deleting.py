"""Deleting a session and all below it.

While that goes on, nothing of it is in memory here nor comes there, so nothing goes on with it, and
the store removes all of it at once. Other processes are told, and find out when they look.
"""

from __future__ import annotations

from magy_server.core.errors import InvalidRequest
from magy_server.engine import kin
from magy_server.engine.commands import end_commands
from magy_server.engine.runner import Runner


async def delete(runner: Runner, session: str) -> bool:
    """Stops what runs of it here, its commands in the background too. False: there was nothing.
    Raises InvalidRequest when it runs elsewhere."""
    world, stream = runner.world, f"session/{session}"
    user = f"{stream}/:deleting"  # no child has such a name
    if not await runner.trees.take(user):  # before it is let go of: nobody else goes on with it
        raise _refusal(session, here=runner.trees.holds(user))
    try:
        async with runner.forgotten(stream):
            if not await runner.trees.take(stream):
                raise _refusal(session, here=True)
            try:
                infos = await kin.whole(world.store, session)
                await end_commands(runner, [info.stream for info in infos])
                found = await world.store.delete(stream)
            finally:
                await runner.trees.give_back(stream)
        for info in infos:
            kin.say_deleted(world.bus, info)
    finally:
        await runner.trees.give_back(user)
    return found


def _refusal(session: str, *, here: bool) -> InvalidRequest:
    if here:
        return InvalidRequest(
            f"Session {session!r} is being deleted or restored; try again when that is done."
        )
    return InvalidRequest(
        f"Another process runs session {session!r}; cancel or close it there first."
    )
