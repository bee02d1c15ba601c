"""This module connects the protocol's descriptors with the event loop, and the log with standard
error."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import select
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable
from typing import cast

from magy_server.jsonrpc.outbox import FileEnd, Outbox, pollable

log = logging.getLogger(__name__)

READ_SIZE = 64 * 1024
"""Bytes a read. asyncio's own 256 KiB costs a memory mapping each time."""


def end_within(seconds: float, code: int, saying: str = "") -> None:
    """Ends the process after so many seconds, `saying` so in its log, if it has not ended by then:
    whatever waits in it, threads too. What it leaves is as after a crash."""

    def end() -> None:
        time.sleep(seconds)
        if saying:
            log.warning("%s", saying)
        os._exit(code)

    threading.Thread(target=end, name="the end", daemon=True).start()


class Reader(asyncio.Protocol):
    """Hands over what it reads; `pause` is how a client that does not read is slowed down."""

    def __init__(
        self, receive: Callable[[bytes], None], ended: Callable[[], None], already: bytes = b""
    ) -> None:
        """`already` was read before, and is handed over first."""
        self._receive = receive
        self._already = already
        self._ended = ended
        self._transport: asyncio.ReadTransport | None = None
        self._open = asyncio.Event()
        self._open.set()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.ReadTransport, transport)
        setattr(transport, "max_size", READ_SIZE)  # noqa: B010 - not part of the typed interface
        self._receive(self._already)

    def data_received(self, data: bytes) -> None:
        self._receive(data)

    def eof_received(self) -> None:
        self._ended()

    def connection_lost(self, exc: Exception | None) -> None:
        self._ended()

    def pause(self, paused: bool) -> None:
        if paused:
            self._open.clear()
        else:
            self._open.set()
        if self._transport is not None and not self._transport.is_closing():
            if paused:
                self._transport.pause_reading()
            else:
                self._transport.resume_reading()

    async def read_file(self, fd: int) -> None:
        """The same for a descriptor that the loop cannot watch."""
        self._receive(self._already)
        while data := await asyncio.to_thread(os.read, fd, READ_SIZE):
            self._receive(data)
            await self._open.wait()
        self._ended()


@contextlib.asynccontextmanager
async def streams(stdin: int, stdout: int, reader: Reader, outbox: Outbox) -> AsyncIterator[None]:
    """Connects both ends for as long as the context lasts, then closes them."""
    loop = asyncio.get_running_loop()
    # Copies, since asyncio closes its own as soon as the other side does.
    with os.fdopen(os.dup(stdin), "rb", 0) as source, os.fdopen(os.dup(stdout), "wb", 0) as sink:
        async with asyncio.TaskGroup() as group:
            jobs = [group.create_task(outbox.run())]
            incoming: asyncio.ReadTransport | None = None
            if pollable(stdout):
                transport, _ = await loop.connect_write_pipe(lambda: outbox, sink)
                # Any byte that the pipe did not take pauses, so that its being taken is told.
                transport.set_write_buffer_limits(high=0)
                outbox.attach(transport)
            else:
                end = FileEnd(sink.fileno(), outbox)
                jobs.append(group.create_task(end.run()))
                outbox.attach(end)
            if pollable(stdin):
                incoming, _ = await loop.connect_read_pipe(lambda: reader, source)
            else:
                jobs.append(group.create_task(reader.read_file(source.fileno())))
            try:
                yield
            finally:
                if incoming is not None:
                    incoming.close()
                outbox.close()
                # The descriptions may be shared (a terminal): leave them as they were found.
                for fd in (stdin, stdout):
                    os.set_blocking(fd, True)
                    os.close(fd)
                for job in jobs:
                    job.cancel()


class StderrHandler(logging.Handler):
    """Logs to standard error, and rather drops a line than wait for a client that never reads it:
    a full pipe there would stop the whole server."""

    def emit(self, record: logging.LogRecord) -> None:
        data = (self.format(record) + "\n").encode("utf-8", "replace")
        for at in range(0, len(data), select.PIPE_BUF):
            with contextlib.suppress(OSError, ValueError):
                if not select.select([], [2], [], 0)[1]:
                    return
                os.write(2, data[at : at + select.PIPE_BUF])


def log_to_stderr(level: int = logging.WARNING) -> None:
    handler = StderrHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=level, handlers=[handler])
    if sys.stdout is not None:
        sys.stdout = sys.stderr
