"""The least of an HTTP/1.1 server that shows a client everything a real one may do to it:
keep-alive, chunked streaming, late answers, cut connections."""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
import struct
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Request:
    """A request as it came. Header names are lower-case; `path` is without the query. `at` is when
    it had come, in seconds of `time.monotonic`. `refused`: its body is wrong."""

    method: str
    path: str
    headers: dict[str, str]
    raw: bytes
    query: str = ""
    at: float = field(default_factory=time.monotonic)
    refused: bool = False
    disconnected: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the client went away before its answer was finished."""

    @property
    def body(self) -> Any:
        return json.loads(self.raw)


class NotHttp(Exception):
    pass


class Exchange:
    """The answer to one request."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer
        self._chunked = False

    async def send(
        self, status: int, body: bytes, kind: str, headers: Mapping[str, str] | None = None
    ) -> None:
        """A whole answer."""
        self._head(status, kind, {"content-length": str(len(body))} | dict(headers or {}))
        self._writer.write(body)
        await self._writer.drain()

    async def begin(self, kind: str = "text/event-stream; charset=utf-8") -> None:
        """The head of a streamed answer."""
        self._head(200, kind, {"transfer-encoding": "chunked"})
        self._chunked = True
        await self._writer.drain()

    async def write(self, data: bytes) -> None:
        """One chunk, in one TCP write."""
        self._writer.write(b"%x\r\n%s\r\n" % (len(data), data))
        await self._writer.drain()

    async def end(self) -> None:
        if self._chunked:
            self._writer.write(b"0\r\n\r\n")
            await self._writer.drain()

    def cut(self) -> None:
        """Ends the connection without the end of the answer."""
        self._writer.close()

    def reset(self) -> None:
        """Ends the connection with RST."""
        sock: socket.socket = self._writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._writer.transport.abort()

    def _head(self, status: int, kind: str, headers: Mapping[str, str]) -> None:
        lines = [f"HTTP/1.1 {status} {'OK' if status == 200 else 'Error'}", f"content-type: {kind}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        self._writer.write(("\r\n".join(lines) + "\r\n\r\n").encode())


class HttpServer:
    """Override `respond`. Use as `async with`, or with `start` and `stop`. `tls`: speak HTTPS."""

    def __init__(self, port: int = 0, *, tls: ssl.SSLContext | None = None) -> None:
        self.requests: list[Request] = []
        self.connections = 0
        self._port = port
        self._tls = tls
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._news = asyncio.Condition()

    async def start(self) -> None:
        self._server = await asyncio.start_server(
            self._serve, "127.0.0.1", self._port, ssl=self._tls
        )
        self._port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Closes the port and every connection."""
        if self._server is not None:
            self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def __aenter__(self) -> HttpServer:
        await self.start()
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.stop()

    @property
    def base_url(self) -> str:
        return f"http{'s' if self._tls else ''}://127.0.0.1:{self._port}"

    async def wait_for(self, count: int) -> None:
        """Returns once `count` requests have come in all."""
        async with self._news:
            await self._news.wait_for(lambda: len(self.requests) >= count)

    async def respond(self, request: Request, exchange: Exchange) -> None:
        raise NotImplementedError

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        self.connections += 1
        try:
            while (request := await _read(reader)) is not None:
                async with self._news:
                    self.requests.append(request)
                    self._news.notify_all()
                if not await self._answer(request, reader, writer):
                    break
                if request.headers.get("connection", "").lower() == "close":
                    break
        except NotHttp:
            await Exchange(writer).send(400, b"HTTP, please\n", "text/plain")
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # `stop` cancels; nobody awaits this task but asyncio, which would log it
        finally:
            writer.close()

    async def _answer(
        self, request: Request, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        """Answers while watching for the client to go away. False: the connection is done."""
        work = asyncio.create_task(self.respond(request, Exchange(writer)))
        watch = asyncio.create_task(reader.read(1))
        try:
            await asyncio.wait({work, watch}, return_when=asyncio.FIRST_COMPLETED)
            if work.done():
                work.result()
                return not writer.is_closing()
            request.disconnected.set()
            return False
        except ConnectionError:
            request.disconnected.set()
            raise
        finally:
            work.cancel()
            watch.cancel()
            await asyncio.gather(work, watch, return_exceptions=True)


async def _read(reader: asyncio.StreamReader) -> Request | None:
    """The next request of a connection; None at its end. Raises NotHttp (a TLS greeting, say)."""
    try:
        first_byte = await reader.readexactly(1)
        if not first_byte.isupper():
            raise NotHttp
        head = (first_byte + await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.strip().split("\r\n")
    method, target, _ = first.split(" ", 2)
    path, _, query = target.partition("?")
    headers = {name.lower(): value.strip() for name, _, value in (x.partition(":") for x in lines)}
    raw = await reader.readexactly(int(headers.get("content-length", "0")))
    return Request(method, path, headers, raw, query)
