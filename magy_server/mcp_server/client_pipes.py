"""The SDK's server speaks with its client through these streams: one JSON message a line, in
bounded memory, and never waiting for a client that does not read."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import mcp_types as types
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from pydantic import ValidationError

from magy_server.api.wire.codes import INVALID_REQUEST, REQUEST_FAILED
from magy_server.jsonrpc import stdio
from magy_server.jsonrpc.lines import LineDecoder
from magy_server.jsonrpc.messages import Malformed
from magy_server.jsonrpc.outbox import Outbox, lined
from magy_server.jsonrpc.peer import MOST_REQUESTS

LARGEST = 32 * 1024 * 1024
"""Bytes of one message."""
WAITING = 64
"""While so many messages wait for the SDK's server, no more are read."""
LEAVES = 2.0
"""Seconds in which a client can still read what was said when its input ended."""

Streams = tuple[
    MemoryObjectReceiveStream[SessionMessage | Exception], MemoryObjectSendStream[SessionMessage]
]


@asynccontextmanager
async def streams(
    stdin: int, stdout: int, lost: Callable[[str], None]
) -> AsyncGenerator[Streams, None]:
    """Closes the descriptors. `lost` is told why the client does not read any more."""
    talk = _Talk(lost)
    to_us, ours = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    theirs, to_them = anyio.create_memory_object_stream[SessionMessage](0)
    async with stdio.streams(stdin, stdout, talk.reader, talk.outbox):
        async with anyio.create_task_group() as group, to_us, ours, theirs, to_them:
            group.start_soon(talk.hear, to_us)
            group.start_soon(talk.speak, to_them)
            yield ours, theirs
            group.cancel_scope.cancel()
        await talk.outbox.drain(LEAVES)


class _Talk:
    def __init__(self, lost: Callable[[str], None]) -> None:
        self.reader = stdio.Reader(self._received, self._ended)
        self.outbox = Outbox(on_lost=lost, on_pressure=self._pressed, framed=lined)
        self._decoder = LineDecoder(LARGEST)
        self._heard: deque[Any] = deque()
        self._more = anyio.Event()
        self._over = self._is_pressed = self._paused = False
        self._running: set[types.RequestId] = set()

    # --- from the client ----------------------------------------------------------------------

    def _received(self, data: bytes) -> None:
        for message in self._decoder.feed(data):
            if isinstance(message, Malformed):
                self._refuse(message.id, message.code, message.message)
            else:
                self._heard.append(message)
        self._more.set()
        self._pace()

    def _ended(self) -> None:
        self._over = True
        self._more.set()

    def _pressed(self, pressed: bool) -> None:
        self._is_pressed = pressed
        self._pace()

    def _pace(self) -> None:
        pause = self._is_pressed or len(self._heard) >= WAITING
        if pause != self._paused:
            self._paused = pause
            self.reader.pause(pause)

    async def hear(self, to_us: MemoryObjectSendStream[SessionMessage | Exception]) -> None:
        async with to_us:
            while self._heard or not self._over:
                if not self._heard:
                    self._more = anyio.Event()
                    await self._more.wait()
                    continue
                message = self._known(self._heard.popleft())
                self._pace()
                if message is not None:
                    await to_us.send(SessionMessage(message))

    def _known(self, said: Any) -> types.JSONRPCMessage | None:
        """Returns the message; None: it was answered with an error."""
        id = said.get("id") if isinstance(said, dict) else None
        try:
            message = types.jsonrpc_message_adapter.validate_python(said, by_name=False)
        except ValidationError:
            self._refuse(id, INVALID_REQUEST, "This is no message of JSON-RPC 2.0.")
            return None
        if isinstance(message, types.JSONRPCRequest):
            if len(self._running) >= MOST_REQUESTS:
                text = f"{MOST_REQUESTS} requests are running; wait for some to end."
                self._refuse(message.id, REQUEST_FAILED, text)
                return None
            self._running.add(message.id)
        return message

    def _refuse(self, id: Any, code: int, text: str) -> None:
        error = {"code": code, "message": text}
        known = id if isinstance(id, (int, str)) else None
        self.outbox.send({"jsonrpc": "2.0", "id": known, "error": error})

    # --- to the client ------------------------------------------------------------------------

    async def speak(self, to_them: MemoryObjectReceiveStream[SessionMessage]) -> None:
        async with to_them:
            async for said in to_them:
                message = said.message
                if (
                    isinstance(message, types.JSONRPCResponse | types.JSONRPCError)
                    and message.id is not None
                ):
                    self._running.discard(message.id)
                text = message.model_dump_json(by_alias=True, exclude_unset=True)
                self.outbox.send(text.encode())
                await self.outbox.calm.wait()
