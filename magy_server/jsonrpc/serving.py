"""This module serves one client on two descriptors, from its first byte until it is gone."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable

from magy_server.jsonrpc import stdio
from magy_server.jsonrpc.outbox import Outbox, headed
from magy_server.jsonrpc.peer import Peer

LEAVING = 15.0
"""Seconds in which the process ends once its client has said `exit` or is gone. All that it closes
in order is bounded, but one after the other that may come to more."""
UNTIDY = "Not all of Magy could be closed in time; the next Magy goes on with what is left open."
THREADS = 1.0
"""Seconds for threads that still run when all else is closed: they only read."""
Begin = Callable[[Outbox], tuple[Peer, Callable[[str], Awaitable[None]]]]
"""Makes the peer behind an outbox, and gives the function that closes what stands behind the peer:
async (half a sentence that says why, such as "the editor went away")."""


async def served(
    stdin: int,
    stdout: int,
    begin: Begin,
    *,
    framed: Callable[[bytes], bytes] = headed,
    already: bytes = b"",
    leaving: float = LEAVING,
) -> int:
    """Returns the exit code of the process. `already` was read before; `leaving`: seconds in which
    the process ends when the client is gone. Closes the descriptors.

    Of all tasks only those that read and write the streams can end the server: in order, and what
    they raise is raised here."""
    outbox = Outbox(
        on_lost=lambda why: peer.end(1, f"the editor disconnected: {why}"),
        on_pressure=lambda pressed: reader.pause(pressed),
        framed=framed,
    )
    reader = stdio.Reader(lambda data: peer.feed(data), lambda: peer.end_of_input(), already)
    peer, stop = begin(outbox)
    async with stdio.streams(stdin, stdout, reader, outbox):
        _on_signals(lambda name: peer.end(1, f"the signal {name} stopped it"))
        code, why = 1, "an error inside Magy stopped it"
        try:
            code, why = await peer.ended
        finally:
            stdio.end_within(leaving, code, UNTIDY)
            try:
                # Input that ended may be a script's: let it have its answers.
                await peer.finish(0.0 if outbox.lost else 0.5)
            finally:
                await stop(why)
            await peer.cancel_all()
            await outbox.drain(2.0)
    stdio.end_within(THREADS, code)
    return code


def _on_signals(end: Callable[[str], None]) -> None:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        loop.add_signal_handler(number, end, number.name)
