"""The SDK speaks with a program through these streams: one JSON message a line, in bounded memory.

A server that floods, or that sends a message larger than any that is meant, is cut off."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager

import anyio
import mcp_types as types
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage

from magy_server.core.piped_programs import Program
from magy_server.mcp.rate_limit import LARGEST, CutOff, RateLimit

BLOCKING = 1 << 18
"""Bytes of a message from which on it is read in a thread."""
WAITING = 64
"""Messages that wait for a program which does not read: the SDK, too, says one when a call is given
up, and nothing shall wait for that."""
LONGEST = 10_000
"""Characters of a line on standard error that are kept."""
MOMENT = 0.5
"""Seconds after its end in which what it complained of is waited for."""


Streams = tuple[
    MemoryObjectReceiveStream[SessionMessage | Exception], MemoryObjectSendStream[SessionMessage]
]


@asynccontextmanager
async def streams(
    program: Program, log: Callable[[str], None], over: asyncio.Future[str]
) -> AsyncGenerator[Streams, None]:
    """The program is ended after the streams. `over` is set when it does not speak any more, to a
    sentence."""
    to_us, ours = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    theirs, to_them = anyio.create_memory_object_stream[SessionMessage](WAITING)
    talk = _Talk(program, log)
    try:
        async with anyio.create_task_group() as group, to_us, ours, theirs, to_them:
            group.start_soon(talk.hear, to_us, over)
            group.start_soon(talk.speak, to_them, to_us)
            group.start_soon(talk.hear_complaints)
            try:
                yield ours, theirs
            finally:
                theirs.close()
                with anyio.move_on_after(MOMENT, shield=True):
                    await talk.spoken.wait()
                group.cancel_scope.cancel()
    finally:
        with anyio.CancelScope(shield=True):
            await program.end()


class _Talk:
    """What goes through the pipes of a program."""

    def __init__(self, program: Program, log: Callable[[str], None]) -> None:
        self._program = program
        self._log = log
        self._last = ""
        """The last line that it complained with."""
        self._complained = anyio.Event()
        self.spoken = anyio.Event()
        """All was said that there was to say."""

    async def hear(
        self,
        to_us: MemoryObjectSendStream[SessionMessage | Exception],
        over: asyncio.Future[str],
    ) -> None:
        why = ""
        try:
            limit = RateLimit()
            async for line in _lines(self._program):
                message = await _parsed(line, self._log)
                if message and limit.lets_in(message):
                    await to_us.send(message)
        except CutOff as error:
            why = str(error)
        except (anyio.ClosedResourceError, anyio.BrokenResourceError):
            why = "the connection was closed"
        finally:
            why = why or await self._why_ended()
            if not over.done():
                over.set_result(why)
            to_us.close()

    async def _why_ended(self) -> str:
        with anyio.move_on_after(MOMENT):
            await self._complained.wait()
        return "it has ended" + (f"; the last that it wrote: {self._last}" if self._last else "")

    async def speak(
        self,
        to_them: MemoryObjectReceiveStream[SessionMessage],
        to_us: MemoryObjectSendStream[SessionMessage | Exception],
    ) -> None:
        try:
            async for message in to_them:
                text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
                await self._program.write(text.encode() + b"\n")
        except OSError:
            to_us.close()
        finally:
            self.spoken.set()

    async def hear_complaints(self) -> None:
        begun = ""
        while data := await self._program.complaints():
            *whole, begun = (begun + data.decode("utf-8", "replace")).split("\n")
            for line in filter(str.strip, whole):
                self._complaint(line)
            begun = begun[:LONGEST]
        if begun.strip():
            self._complaint(begun)
        self._complained.set()

    def _complaint(self, line: str) -> None:
        self._log(line)
        self._last = line[:300]


async def _lines(program: Program) -> AsyncIterator[bytes]:
    """What it writes, line by line, without empty ones. Raises CutOff for a line of more than
    `LARGEST` bytes."""
    begun = bytearray()
    while data := await program.read():
        *whole, rest = data.split(b"\n")
        for line in whole:
            begun += line
            if begun.strip():
                yield bytes(begun)
            begun.clear()
        begun += rest
        if len(begun) > LARGEST:
            raise CutOff(f"it sent a message of more than {LARGEST >> 20} MB")
    if begun:
        yield bytes(begun)


async def _parsed(line: bytes, log: Callable[[str], None]) -> SessionMessage | None:
    """None: it is no message, which is only noted: some programs greet on standard output."""
    read = types.jsonrpc_message_adapter.validate_json
    try:
        if len(line) > BLOCKING:
            return SessionMessage(await asyncio.to_thread(read, line, by_name=False))
        return SessionMessage(read(line, by_name=False))
    except ValueError:
        log(f"no JSON-RPC message: {line[:200].decode('utf-8', 'replace')}")
        return None
