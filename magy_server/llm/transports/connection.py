"""A `Connection` sends requests over one socket to a server that speaks HTTP/1.1 (RFC 9112), and
reads the answers, one after the other; `direct_transport.py` opens and keeps these.

The bytes of an answer are taken apart by httptools, Node's parser. What is here costs a tenth of
what a general HTTP library does in Python, in time and in memory; it sends nothing but a head and a
body that are complete.
"""

from __future__ import annotations

import asyncio
import select
import sys
import zlib
from time import time
from typing import cast

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

from magy_server.llm.transports.transport import Cut, Response

_MOST_WAITING = 1 << 18
"""So many bytes may wait to be read before the server is held up."""
_LONGEST_HEAD = 1 << 16
"""The most bytes that are no part of a body before there is more of one: heads, trailers, and what
may stand between chunks."""
_LARGE = 1 << 16
"""A server may refuse a larger request before it has read it all, and never read the rest."""
_LARGEST_PART = 1 << 20
"""Of a packed body: a few bytes can be packed for gigabytes."""
_PLAIN = ("", "identity")
_PACKED = ("gzip", "x-gzip", "deflate")
"""The codings of a body that are read."""
_DISCONNECTED = "Server disconnected without sending a response."
_CUT = "the server disconnected in the middle of its answer"


class Connection(asyncio.Protocol):
    """`since`: when it became free, by the clock on the wall, which goes on while the computer
    sleeps."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._answer: Answer | None = None
        self._last = False
        self._large = False
        self.since = 0.0

    @property
    def open(self) -> bool:
        return self._transport is not None and not self._transport.is_closing()

    @property
    def free(self) -> bool:
        """Whether it can take the next request."""
        return self.open and self._answer is None

    @property
    def quiet(self) -> bool:
        """Whether the system has nothing from the server that the loop has not heard of, not even
        that the server closed the connection: the loop was busy, or the computer slept."""
        assert self._transport is not None
        number = self._transport.get_extra_info("socket").fileno()
        if sys.platform == "win32":
            return not select.select([number], [], [], 0)[0]
        poll = select.poll()
        poll.register(number, select.POLLIN)
        return not poll.poll(0)

    def close(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def retire(self) -> None:
        """Closes the connection, once the answer under way is complete."""
        self._last = True
        if self._answer is None:
            self.close()

    async def ask(self, head: bytes, content: bytes) -> Answer:
        """Sends a request, and returns its answer once the head of that is there. Raises OSError,
        ValueError for what is not HTTP. If it raises or is cancelled, the connection is closed."""
        assert self._transport is not None and self._answer is None
        self._answer = answer = Answer(self)
        self._large = len(content) > _LARGE
        self._transport.writelines([head, content])
        try:
            await answer.begun()
        except BaseException:
            self.close()
            raise
        return answer

    def over(self, *, refused: bool, again: bool) -> None:
        """The answer is complete. `again`: the server can take another request."""
        self.hold(False)
        self._answer = None
        self.since = time()
        if self._last or not again or (refused and self._large):
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
        # Some servers do what a strict reader refuses, though it can be read in one way only.
        self._parser.set_dangerous_leniencies(
            lenient_chunked_length=True,
            lenient_optional_cr_before_lf=True,
            lenient_spaces_after_chunk_size=True,
        )
        self._outside = 0
        self._parts: list[bytes] = []
        self._waiting = 0
        self._held = False
        self._ended = False
        self._error: Exception | None = None
        self._reader: asyncio.Future[None] | None = None
        self._coded = False
        self._packed: zlib._Decompress | None = None
        self._left = b""
        """What is still to be unpacked."""

    # --- for the one who asked ------------------------------------------------------------------

    async def begun(self) -> None:
        """Waits for the head. Raises OSError, ValueError."""
        while not self.status:
            if self._error is not None:
                raise self._error
            await self._news(None)
        coding = self.headers.get("content-encoding", "").strip().lower()
        self._coded = coding not in _PLAIN
        if self.succeeded and self._coded and coding not in _PACKED:
            raise ValueError(f"the answer is packed as {coding[:40]!r}, which was not asked for")

    @property
    def succeeded(self) -> bool:
        return 200 <= self.status < 300

    async def read(self, within: float | None = None) -> bytes:
        until = None if within is None else asyncio.get_running_loop().time() + within
        while True:
            if self._parts or self._left:
                if data := self._unpacked(self._left or self._taken()):
                    return data
            elif self._ended and (self._packed is None or self._packed.eof):
                return b""
            elif self._ended or self._error:
                raise Cut from self._error
            else:
                await self._news(until)

    def _unpacked(self, data: bytes) -> bytes:
        """Returns what the next data are unpacked, or a part of it: the rest is left for the next
        time. Raises Cut."""
        if not self._coded:
            return data
        if self._packed is None or self._packed.eof:  # there may be one archive after the other
            self._packed = zlib.decompressobj(zlib.MAX_WBITS | 32)
        try:
            part = self._packed.decompress(data, _LARGEST_PART)
        except zlib.error as error:
            raise Cut from error
        self._left = self._packed.unconsumed_tail or self._packed.unused_data.lstrip(b"\0")
        return part

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

    async def _news(self, until: float | None) -> None:
        """Waits until something came. Raises TimeoutError at the moment `until` (of the loop's
        clock)."""
        loop = asyncio.get_running_loop()
        self._reader = reader = loop.create_future()
        timer = None if until is None else loop.call_at(until, _give_up, reader)
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
        self._outside += len(data)
        try:
            self._parser.feed_data(data)
        except (HttpParserError, HttpParserUpgrade) as error:
            if not self._ended:
                self._fail(ValueError(f"what came is not HTTP: {error}"))
            self._connection.close()
            return
        if self._outside > _LONGEST_HEAD and not self._ended:
            what = "trailer" if self.status else "head"
            self._fail(ValueError(f"the {what} of the answer is over {_LONGEST_HEAD} bytes"))
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
        if self.status:  # a trailer says nothing that counts
            return
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
        self._outside = 0
        self._parts.append(data)
        self._waiting += len(data)
        if self._waiting > _MOST_WAITING and not self._held:
            self._held = True
            self._connection.hold(True)
        self._tell()

    def on_message_complete(self) -> None:
        if self.status:
            self._ended = True
            # With a length besides, others on the way may see another end than this one.
            twice = {"transfer-encoding", "content-length"} <= self.headers.keys()
            again = self._parser.should_keep_alive() and not twice
            self._connection.over(refused=not self.succeeded, again=again)
            self._tell()


def _give_up(reader: asyncio.Future[None]) -> None:
    if not reader.done():
        reader.set_exception(TimeoutError())
