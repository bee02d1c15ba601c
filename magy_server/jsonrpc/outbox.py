"""The outbox writes all messages to one client. Nothing here ever blocks the loop, and nothing
grows without bound.

Responses and our own requests are *sent*: they queue in order, and while too many bytes wait the
reader pauses, so that a client which asks must also read. Everything that streams is *pulled*: a
`Source` (one per subscription) is woken when it has something to say and asked for it only when
the pipe has room. A client that stops reading for a minute therefore costs one pipe buffer; events
stay in the log behind the source's cursor, and deltas merge where they are made.
"""

from __future__ import annotations

import asyncio
import logging
import os
import stat
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from magy_server.dataclass import dataclass
from magy_server.jsonrpc.messages import encode

if TYPE_CHECKING:
    from magy_server.api.connected import Source

log = logging.getLogger(__name__)

ROOM = 128 * 1024
"""Bytes. While fewer wait to be written, sources are asked for more."""
BUDGET = 64 * 1024
"""Bytes. About how much one source may hand over before the next has its turn."""
BATCH = 96 * 1024
"""Bytes handed to the write end at once, where that many wait. More than a source's budget: what it
says takes one write."""
PRESSURE = 32 * 1024 * 1024
"""Bytes. While more wait to be written, the reader pauses."""

T = TypeVar("T")


def headed(body: bytes) -> bytes:
    """Frames a message as LSP does. `Content-Length` only: jsonrpc.el of Emacs 28 searches no more
    than 100 header bytes."""
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


def lined(body: bytes) -> bytes:
    """Frames a message as a line. `encode` writes no line end into one."""
    return body + b"\n"


class WriteEnd(Protocol):
    """The part of asyncio.WriteTransport that the outbox needs."""

    def write(self, data: bytes) -> None: ...

    def get_write_buffer_size(self) -> int: ...

    def abort(self) -> None: ...


class Outbox(asyncio.BaseProtocol):
    """Frames and orders everything that leaves. Create it on the running loop, `attach` a write
    end, and await `run` as long as the connection lives."""

    def __init__(
        self,
        *,
        on_lost: Callable[[str], None] = lambda why: None,
        on_pressure: Callable[[bool], None] = lambda pressed: None,
        framed: Callable[[bytes], bytes] = headed,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._on_lost = on_lost
        self._on_pressure = on_pressure
        self._framed = framed
        self._end: WriteEnd | None = None
        self._frames: deque[bytes] = deque()
        self._queued = 0
        self._flushing = False
        self._closing = False
        self.calm = asyncio.Event()
        """Cleared while so much waits to be written that nothing more should be begun."""
        self.calm.set()
        self.lost = False
        """The client is gone, and whatever is sent is dropped."""
        self._dirty: dict[Source, None] = {}
        self._pulling: Source | None = None
        self._wanted: asyncio.Future[None] | None = None
        self._drained = asyncio.Event()
        """Set when all has been written of a connection that is to be closed."""

    def attach(self, end: WriteEnd) -> None:
        self._end = end
        self._flush()

    @property
    def waiting(self) -> int:
        """Bytes that are queued and not yet in the pipe."""
        return self._queued + (self._end.get_write_buffer_size() if self._end else 0)

    # --- saying something -----------------------------------------------------------------------

    def send(self, message: Mapping[str, Any] | bytes, *, now: bool = False) -> None:
        """Queues one message, or the encoded body of one. What is sent in one turn of the loop
        leaves in one write at its end, or at once with `now`. TypeError: JSON cannot hold it."""
        if self.lost:
            return
        frame = self._framed(encode(message))
        self._frames.append(frame)
        self._queued += len(frame)
        self._leave(now)

    def _leave(self, now: bool) -> None:
        """What was queued is to go."""
        if self._queued > PRESSURE and self.calm.is_set():
            self.calm.clear()
            self._on_pressure(True)
        if now:
            self._flush()
        elif not self._flushing:
            self._flushing = True
            self._loop.call_soon(self._end_of_turn)

    def wake(self, source: Source) -> None:
        """The source has something to say. Cheap, and safe to call at any time."""
        self._dirty[source] = None
        self._nudge()

    def forget(self, source: Source) -> None:
        """The source is not asked again; what it is handing over right now is dropped."""
        self._dirty.pop(source, None)
        if self._pulling is source:
            self._pulling = None

    async def run(self) -> None:
        """Asks woken sources in turn while there is room. Ends when the client is gone."""
        while not self.lost and not self._closing:
            if not self._dirty or self.waiting >= ROOM:
                self._wanted = self._loop.create_future()
                await self._wanted
                continue
            source = next(iter(self._dirty))
            del self._dirty[source]
            self._pulling = source
            said = await settle(self._ask(source))
            if isinstance(said, Failure):
                log.error("A stream to the editor ended: %s", said.error, exc_info=said.error)
            elif said and self._pulling is source:
                self._dirty[source] = None
            self._pulling = None
            if said:
                await asyncio.sleep(0)

    async def drain(self, timeout: float) -> bool:
        """Asks no source any more and waits until everything sent is in the pipe; False when that
        took longer."""
        self._closing = True
        self._nudge()
        if self.lost or not self.waiting:
            return True
        self._drained.clear()
        try:
            async with asyncio.timeout(timeout):
                await self._drained.wait()
        except TimeoutError:
            return False
        return True

    def close(self) -> None:
        """What has not been written is lost: `drain` first."""
        self._gone()
        if self._end is not None:
            self._end.abort()

    # --- what the write end calls ---------------------------------------------------------------

    def connection_lost(self, exc: Exception | None) -> None:
        self._end = None
        if not self.lost:
            self._gone()
            self._on_lost(f"it does not read any more ({exc!r})" if exc else "it closed the pipe")

    def resume_writing(self) -> None:
        self._flush()

    # --- inside ---------------------------------------------------------------------------------

    async def _ask(self, source: Source) -> bool:
        """False when the source has nothing more to say."""
        messages = await source.pull(BUDGET)
        if messages and self._pulling is source and not self.lost:
            framed = self._framed
            frames = [framed(encode(message)) for message in messages]
            self._frames.extend(frames)
            self._queued += sum(map(len, frames))
            self._leave(now=True)
        return bool(messages)

    def _end_of_turn(self) -> None:
        self._flushing = False
        self._flush()

    def _flush(self) -> None:
        """Hands over as much as the write end takes and a little more, so that what waits is held
        once, and small frames leave together."""
        end = self._end
        if end is None or self.lost:
            return
        while self._frames and not end.get_write_buffer_size():
            data = self._batch()
            self._queued -= len(data)
            end.write(data)
        if self._closing and not self.waiting:
            self._drained.set()
        if self._queued < PRESSURE // 2 and not self.calm.is_set():
            self.calm.set()
            self._on_pressure(False)
        if self._dirty:
            self._nudge()

    def _batch(self) -> bytes:
        """Takes the frames that are handed over together."""
        if self._queued < BATCH:
            whole = b"".join(self._frames)
            self._frames.clear()
            return whole
        batch, size = [], 0
        while self._frames and size < BATCH:
            batch.append(self._frames.popleft())
            size += len(batch[-1])
        return b"".join(batch)

    def _nudge(self) -> None:
        if self._wanted is not None and not self._wanted.done():
            self._wanted.set_result(None)

    def _gone(self) -> None:
        self.lost = True
        self._frames.clear()
        self._queued = 0
        self._dirty.clear()
        self._drained.set()
        self.calm.set()
        self._nudge()


class FileEnd:
    """Writes to what epoll cannot watch (a regular file, /dev/null): in a thread, one at a time."""

    def __init__(self, fd: int, outbox: Outbox) -> None:
        self._fd = fd
        self._outbox = outbox
        self._chunks: list[bytes] = []
        self._size = 0
        self._more = asyncio.Event()
        self._closed = False

    async def run(self) -> None:
        while not self._closed:
            await self._more.wait()
            self._more.clear()
            chunks, self._chunks = self._chunks, []
            data = b"".join(chunks)
            try:
                await asyncio.to_thread(_write_all, self._fd, data)
            except OSError as error:
                self._closed = True
                self._outbox.connection_lost(error)
                return
            self._size -= len(data)
            self._outbox.resume_writing()

    def write(self, data: bytes) -> None:
        self._chunks.append(data)
        self._size += len(data)
        self._more.set()

    def get_write_buffer_size(self) -> int:
        return self._size

    def abort(self) -> None:
        self._closed = True
        self._more.set()


def pollable(fd: int) -> bool:
    """Whether the event loop can watch the descriptor."""
    mode = os.fstat(fd).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or os.isatty(fd)


@dataclass(frozen=True, slots=True)
class Failure:
    error: Exception


async def settle(work: Awaitable[T]) -> T | Failure:
    """The outcome of work that must not take its neighbours with it: a request handler, a stream.
    Cancellation passes through."""
    try:
        return await work
    except Exception as error:
        return Failure(error)


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
