"""One connection to a server that speaks HTTP/1.1 (RFC 9112), for one request after the other.

The bytes of an answer are taken apart by httptools, Node's parser. What is here costs a tenth of
what a general HTTP library does in Python, in time and in memory; it sends nothing but a head and a
body that are complete.
"""

from __future__ import annotations

import asyncio
import zlib
from typing import cast

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

from magy_server.llm.transports.transport import Cut, Response

_MOST_WAITING = 1 << 18
"""So many bytes may wait to be read before the server is held up."""
_LONGEST_HEAD = 1 << 16
_UNPACKED = {"": False, "identity": False, "gzip": True, "x-gzip": True, "deflate": True}
"""The codings of a body, and whether zlib has to unpack it."""
_DISCONNECTED = "Server disconnected without sending a response."
_CUT = "the server disconnected in the middle of its answer"


class Connection(asyncio.Protocol):
    """`since`: when it became free, by the loop's clock."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._answer: Answer | None = None
        self.since = 0.0

    @property
    def open(self) -> bool:
        return self._transport is not None and not self._transport.is_closing()

    @property
    def free(self) -> bool:
        """Whether it can take the next request."""
        return self.open and self._answer is None

    def close(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    async def ask(self, head: bytes, content: bytes) -> Answer:
        """Sends a request, and returns its answer once the head of that is there. Raises OSError,
        ValueError for what is not HTTP. If it raises or is cancelled, the connection is closed."""
        assert self._transport is not None and self._answer is None
        self._answer = answer = Answer(self)
        self._transport.writelines([head, content])
        try:
            await answer.begun()
        except BaseException:
            self.close()
            raise
        return answer

    def over(self, *, again: bool) -> None:
        """The answer is complete, and the connection may serve `again`, or is done."""
        self.hold(False)
        self._answer = None
        self.since = asyncio.get_running_loop().time()
        if not again:
            self.close()

    def hold(self, held: bool) -> None:
        """Whether nothing more of the answer is wanted for the moment."""
        if self._transport is None or self._transport.is_closing():
            return
        if held:
            self._transport.pause_reading()
        else:
            self._transport.resume_reading()

    # --- asyncio.Protocol -----------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        if self._answer is None:  # nobody asked
            self.close()
        else:
            self._answer.take(data)

    def connection_lost(self, error: Exception | None) -> None:
        if self._answer is not None:
            self._answer.lost(error)


class Answer(Response):
    """`status` is 0 until the head is there. The parser calls the methods whose names begin with
    `on_`."""

    def __init__(self, connection: Connection) -> None:
        self.headers: dict[str, str] = {}
        self.status = 0
        self._connection = connection
        self._parser = HttpResponseParser(self)
        self._head = 0
        self._parts: list[bytes] = []
        self._waiting = 0
        self._held = False
        self._ended = False
        self._error: Exception | None = None
        self._reader: asyncio.Future[None] | None = None
        self._packed: zlib._Decompress | None = None

    # --- for the one who asked ------------------------------------------------------------------

    async def begun(self) -> None:
        """Waits for the head. Raises OSError, ValueError."""
        while not self.status:
            if self._error is not None:
                raise self._error
            await self._news(None)
        coding = self.headers.get("content-encoding", "").strip().lower()
        if coding not in _UNPACKED:
            raise ValueError(f"the answer is packed as {coding[:40]!r}, which was not asked for")
        if _UNPACKED[coding]:
            self._packed = zlib.decompressobj(zlib.MAX_WBITS | 32)

    async def read(self, within: float | None = None) -> bytes:
        while True:
            while not (self._parts or self._ended or self._error):
                await self._news(within)
            if not self._parts:
                if self._ended and (self._packed is None or self._packed.eof):
                    return b""
                raise Cut from self._error
            data = self._taken()
            if self._packed is not None:
                try:
                    data = self._packed.decompress(data)
                except zlib.error as error:
                    raise Cut from error
            if data:
                return data

    async def close(self) -> None:
        if not self._ended:
            self._connection.close()

    def _taken(self) -> bytes:
        data = b"".join(self._parts)
        self._parts.clear()
        self._waiting = 0
        if self._held and not self._ended:
            self._connection.hold(False)
        self._held = False
        return data

    async def _news(self, within: float | None) -> None:
        """Waits until something came. Raises TimeoutError."""
        loop = asyncio.get_running_loop()
        self._reader = reader = loop.create_future()
        timer = None if within is None else loop.call_later(within, _give_up, reader)
        try:
            await reader
        finally:
            self._reader = None
            if timer is not None:
                timer.cancel()

    def _tell(self) -> None:
        if self._reader is not None and not self._reader.done():
            self._reader.set_result(None)

    # --- for the connection ---------------------------------------------------------------------

    def take(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except (HttpParserError, HttpParserUpgrade) as error:
            if not self._ended:
                self._fail(ValueError(f"what came is not HTTP: {error}"))
            self._connection.close()
            return
        if not self.status:
            self._head += len(data)
            if self._head > _LONGEST_HEAD:
                self._fail(ValueError(f"the head of the answer is over {_LONGEST_HEAD} bytes"))
                self._connection.close()

    def lost(self, error: Exception | None) -> None:
        """The connection is closed."""
        if self._ended:
            return
        if error is None and self.status and self._to_the_end():
            self._ended = True
            self._tell()
        else:
            self._fail(error or ConnectionResetError(_CUT if self.status else _DISCONNECTED))

    def _to_the_end(self) -> bool:
        """Returns whether the end of the connection is that of the body (RFC 9112 §6.3)."""
        coded = "transfer-encoding" in self.headers
        chunked = self.headers.get("transfer-encoding", "").lower().endswith("chunked")
        return not chunked if coded else "content-length" not in self.headers

    def _fail(self, error: Exception) -> None:
        self._error = self._error or error
        self._tell()

    # --- for the parser -------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        if self._ended:
            raise ValueError("there is more than one answer")

    def on_header(self, name: bytes, value: bytes) -> None:
        key, text = name.decode("latin-1").lower(), value.decode("latin-1")
        self.headers[key] = f"{self.headers[key]}, {text}" if key in self.headers else text

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        if status < 200:  # an interim answer, after which the answer comes
            self.headers.clear()
            return
        self.status = status
        self._tell()

    def on_body(self, data: bytes) -> None:
        self._parts.append(data)
        self._waiting += len(data)
        if self._waiting > _MOST_WAITING and not self._held:
            self._held = True
            self._connection.hold(True)
        self._tell()

    def on_message_complete(self) -> None:
        if self.status:
            self._ended = True
            self._connection.over(again=self._parser.should_keep_alive())
            self._tell()


def _give_up(reader: asyncio.Future[None]) -> None:
    if not reader.done():
        reader.set_exception(TimeoutError())
