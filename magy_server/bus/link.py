"""A link is one connection between two processes of the mesh.

A frame is four bytes of length (big-endian) and a JSON array that begins with its kind:

    hello   id, topics          first in each direction: who this is, and what it subscribes to
    want    topic               subscribed since
    unwant  topic
    topics  topics              all that it subscribes to, in place of what was said before
    publish topic, message
    ask     number, method, params
    reply   number, {result} or {error, reason}

A frame of a kind that is not known is skipped; anything else ends the connection.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Protocol, cast

import orjson

from magy_server.bus import sockets
from magy_server.core.errors import MagyError

LOG = logging.getLogger(__name__)

MAX_FRAME = 16 * 2**20
"""Bytes. Room for the text of any buffer an editor is pleasant to use with."""
MAX_WAITING = 4 * 2**20
"""Bytes that may wait for a peer to read. A peer that is further behind misses messages."""


class Hub(Protocol):
    """The process on this side of the connection."""

    id: str

    def topics(self) -> list[str]: ...

    def opened(self, link: Link) -> None: ...

    def joined(self, link: Link) -> None:
        """The link calls this when it knows who is at the other end."""

    def left(self, link: Link) -> None: ...

    def wants(self, link: Link, more: Iterable[str], less: Iterable[str]) -> None:
        """The link calls this when the peer's subscriptions have changed."""

    def deliver(self, topic: str, message: Mapping[str, Any]) -> None: ...

    def answer(self, link: Link, number: int, method: str, params: Mapping[str, Any]) -> None: ...


def pack(*frame: Any) -> bytes:
    """Returns a frame with this value. Raises TypeError for what is not JSON."""
    body = orjson.dumps(frame)
    return len(body).to_bytes(4, "big") + body


def gone(peer: str) -> MagyError:
    return MagyError(f"The process {peer} has ended, and only it could answer.", reason="peer_gone")


class Link(asyncio.Protocol):
    """One connection. `peer` is the id of the process at the other end: the process that connects
    knows it, the other one learns it from the hello."""

    def __init__(self, hub: Hub, peer: str = "") -> None:
        self.peer = peer
        self.closed = asyncio.get_running_loop().create_future()
        self._hub = hub
        self.topics: set[str] = set()
        self._greeted = False
        self._behind = False
        self._stale = False
        self._received = bytearray()
        self._asked: dict[int, asyncio.Future[Any]] = {}
        self._numbers = itertools.count(1)

    # --- sending --------------------------------------------------------------------------------

    def offer(self, frame: bytes) -> None:
        """Sends a message, or drops it when the peer is too far behind."""
        if not self._behind:
            self._transport.write(frame)

    def announce(self, frame: bytes) -> None:
        """Sends a change of the subscriptions. A peer that is behind gets all of them later."""
        if self._behind:
            self._stale = True
        else:
            self._transport.write(frame)

    async def ask(self, method: str, params: Mapping[str, Any]) -> Any:
        """Asks the peer, and returns its answer. Raises MagyError."""
        if self._behind:
            raise MagyError(
                f"The process {self.peer} does not read its messages; it may be suspended. Resume "
                "it, or try again later.",
                reason="peer_busy",
            )
        number = next(self._numbers)
        frame = pack("ask", number, method, params)
        if len(frame) > MAX_FRAME:
            raise MagyError(f"{method}: the request has {len(frame)} bytes, more than are allowed.")
        answer = self._asked[number] = asyncio.get_running_loop().create_future()
        self._transport.write(frame)
        try:
            return await answer
        finally:
            del self._asked[number]

    def reply(self, number: int, answer: Mapping[str, Any]) -> None:
        try:
            frame = pack("reply", number, answer)
        except TypeError as error:
            LOG.error("an answer is not JSON: %s", error)
            frame = pack("reply", number, {"error": f"The answer is not JSON: {error}"})
        if len(frame) > MAX_FRAME:
            frame = pack("reply", number, {"error": f"The answer has {len(frame)} bytes."})
        if not self.closed.done():
            self._transport.write(frame)

    def abort(self) -> None:
        """Closes the connection at once. The peer still gets what the kernel has taken, but not
        what waits here."""
        self._transport.abort()

    # --- asyncio.Protocol -----------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        user = sockets.user_behind(transport.get_extra_info("socket"))
        if user != os.geteuid():
            # The directory is closed to others; this holds even where it was opened to them.
            LOG.warning("closing a connection: its other end is user %s, not this one", user)
            self._transport.abort()
            return
        self._transport.set_write_buffer_limits(high=MAX_WAITING)
        self._transport.write(pack("hello", self._hub.id, self._hub.topics()))
        self._hub.opened(self)
        if self.peer:
            self._hub.joined(self)

    def pause_writing(self) -> None:
        self._behind = True

    def resume_writing(self) -> None:
        self._behind = False
        if self._stale:
            self._stale = False
            self._transport.write(pack("topics", self._hub.topics()))

    def data_received(self, data: bytes) -> None:
        self._received += data
        try:
            for frame in self._frames():
                self._handle(frame)
        except ValueError as error:
            LOG.warning("closing the connection of %s: %s", self.peer or "a stranger", error)
            self._transport.abort()

    def connection_lost(self, error: Exception | None) -> None:
        for answer in self._asked.values():
            if not answer.done():
                answer.set_exception(gone(self.peer))
        self._hub.left(self)
        self.closed.set_result(None)

    # --- receiving ------------------------------------------------------------------------------

    def _frames(self) -> Iterator[Any]:
        """Returns the whole frames received so far. Raises ValueError."""
        received, start = self._received, 0
        try:
            while len(received) - start >= 4 and not self._transport.is_closing():
                size = int.from_bytes(received[start : start + 4], "big")
                if size > MAX_FRAME:
                    raise ValueError(f"a frame of {size} bytes")
                if len(received) - start - 4 < size:
                    return
                body = bytes(received[start + 4 : start + 4 + size])
                start += 4 + size
                yield orjson.loads(body)
        finally:
            del received[:start]

    def _handle(self, frame: Any) -> None:
        """Does what a frame says. Raises ValueError for what is no frame."""
        match frame:
            case ["hello", str(id), list(topics)] if not self._greeted:
                self._greet(id, topics)
            case [str(), *_] if not self._greeted:
                raise ValueError("no hello")
            case ["publish", str(topic), dict(message)]:
                self._hub.deliver(topic, message)
            case ["want", str(topic)]:
                self._change([topic], ())
            case ["unwant", str(topic)]:
                self._change((), [topic])
            case ["topics", list(topics)]:
                self._replace(topics)
            case ["ask", int(number), str(method), dict(params)]:
                self._hub.answer(self, number, method, params)
            case ["reply", int(number), dict(answer)]:
                self._answered(number, answer)
            case [str(kind), *_] if kind not in _KINDS:
                LOG.debug("skipping a %s frame of %s", kind, self.peer)
            case _:
                raise ValueError("a frame that is not understood")

    def _greet(self, id: str, topics: list[Any]) -> None:
        if self.peer not in ("", id):
            raise ValueError(f"it says it is {id}")
        self._greeted = True
        if not self.peer:
            self.peer = id
            self._hub.joined(self)
        self._replace(topics)

    def _replace(self, topics: list[Any]) -> None:
        now = {str(topic) for topic in topics}
        self._change(now - self.topics, self.topics - now)

    def _change(self, more: Iterable[str], less: Iterable[str]) -> None:
        self._hub.wants(self, more, less)
        self.topics.update(more)
        self.topics.difference_update(less)

    def _answered(self, number: int, answer: Mapping[str, Any]) -> None:
        waiting = self._asked.get(number)
        if waiting is None or waiting.done():  # whoever asked did not wait so long
            return
        if "error" in answer:
            reason = str(answer.get("reason", "peer_error"))
            waiting.set_exception(MagyError(str(answer["error"]), reason=reason))
        else:
            waiting.set_result(answer.get("result"))


_KINDS = frozenset({"hello", "want", "unwant", "topics", "publish", "ask", "reply"})
