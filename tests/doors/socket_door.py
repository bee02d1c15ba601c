"""The smallest front door: it prints what the agent of a session says over a Unix socket.

Who connects sends the id of a session and a line's end, and reads its text from the beginning, as
it grows. It stands for what a door needs of Magy: an engine from `app.compose`, and `api/`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from magy_server.api.service import Service
from magy_server.api.sessions.follow import Follower
from magy_server.core.agents.tree import stream_of
from magy_server.core.errors import MagyError
from magy_server.core.updates import Update

BUDGET = 64 * 1024
"""Characters read from the log at once."""


@asynccontextmanager
async def opened(service: Service, path: Path) -> AsyncIterator[None]:
    """The door is open inside the block, for this user alone."""
    serving: set[asyncio.Task[None]] = set()

    def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(serve(service, reader, writer))
        serving.add(task)
        task.add_done_callback(serving.discard)

    server = await asyncio.start_unix_server(connected, path)
    path.chmod(0o600)
    try:
        yield
    finally:
        server.close()
        for task in serving:
            task.cancel()
        await asyncio.gather(*serving, return_exceptions=True)


async def serve(
    service: Service, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    try:
        session_id = (await reader.readline()).decode(errors="replace").strip()
        printing = asyncio.ensure_future(printed(service, session_id, writer))
        leaving = asyncio.ensure_future(reader.read())  # ends when the reader has gone away
        try:
            await asyncio.wait({printing, leaving}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            leaving.cancel()
            printing.cancel()
        if not printing.cancelled() and printing.done():
            printing.result()
    except MagyError as error:
        writer.write(f"{error.message}\n".encode())
    except ConnectionError:
        return
    finally:
        writer.close()


async def printed(service: Service, session_id: str, writer: asyncio.StreamWriter) -> None:
    """Until the session is deleted. Raises NotFound."""
    await service.info(session_id)
    session = service.loaded.watch(stream_of(session_id))
    moved = asyncio.Event()
    unwatch = session.watch(moved.set)
    session.want_partials()
    follower, said = Follower(service, session, 0), ""
    try:
        while not session.gone:
            moved.clear()
            updates = await follower.news(BUDGET)
            for update in updates or follower.deltas():
                new, said = text(update, said)
                writer.write(new.encode())
            await writer.drain()
            if not updates:
                await moved.wait()
    finally:
        unwatch()


def text(update: Update, said: str) -> tuple[str, str]:
    """(what to print, what has been printed of the reply that streams). The whole reply comes once
    more when it is in the log."""
    match update["sessionUpdate"]:
        case "agent_message_chunk":
            new = update["content"]["text"]
            return new, said + new
        case "agent_message" if not update["content"]:
            return "\n[again]\n", ""  # the reply is tried again
        case "agent_message":
            whole = "".join(part.get("text", "") for part in update["content"])
            return f"{whole.removeprefix(said)}\n", ""
    return "", said
