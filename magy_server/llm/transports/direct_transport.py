"""This transport speaks HTTP/1.1 to the server itself: importing a general HTTP library takes
longer than anything else until the first request, and an SDK copies every body.

It is for plain addresses that no proxy stands before; `HttpxTransport` is for all others.
"""

from __future__ import annotations

import asyncio
import os
import ssl
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from operator import attrgetter
from time import time
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode, urlsplit

from magy_server.dataclass import dataclass
from magy_server.llm.transports.transport import (
    Broken,
    Cut,
    Refused,
    Response,
    TimedOut,
    Transport,
    refusal,
)
from magy_server.regex import regex

if TYPE_CHECKING:
    from magy_server.llm.transports.connection import Answer, Connection

_OCTET = "(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
_CHARACTER = "([A-Za-z0-9_~!$&'()*+,;=:@-]|%[0-9A-Fa-f]{2})"
_PLAIN = regex(
    rf"https?://(({_OCTET}\.){{3}}{_OCTET}|([A-Za-z0-9_-]+\.)*[A-Za-z]([A-Za-z0-9_-]*[A-Za-z0-9])?"
    rf"|\[[0-9A-Fa-f:.]+\])(:[1-9][0-9]{{0,4}})?(/{_CHARACTER}({_CHARACTER}|\.)*)*/?"
    rf"(\?({_CHARACTER}|[./?])*)?"
)
"""Neither a name or password, nor what would have to be encoded, nor `.` and `..` in the path, nor
numbers that some read as an address (`0177.1`)."""
_BODY = ("content-length", "content-type", "transfer-encoding")
"""Headers of the one request, which nothing in the environment can know."""
_IDLE, _IDLE_TIME = 100, 30.0
"""The most connections that wait for the next request, and the seconds they are kept: a provider
that closes one sooner says so, a gateway on the way may not."""
_EYEBALLS = 0.25
"""Seconds until the next address of a name is tried as well (RFC 8305 §5)."""
_NUMBER = regex(r"\[Errno (\d+)\]")


def is_direct(url: str) -> bool:
    """Whether requests to `url` can do with this transport. May ask the system."""
    if _PLAIN.fullmatch(url) is None or _has_proxy():
        return False
    try:
        return urlsplit(url).port != 0
    except ValueError:  # the port is too high, or the address in brackets is none
        return False


def _has_proxy() -> bool:
    """Whether anything is said of proxies: what it means is for others to find out."""
    if sys.platform in ("darwin", "win32"):
        from urllib.request import getproxies

        return bool(getproxies().keys() - {"no"})
    return any(
        value and name.lower() in ("http_proxy", "https_proxy", "all_proxy")
        for name, value in os.environ.items()
    )


@dataclass(frozen=True, slots=True)
class Client:
    """`headers` are what every request says. `tls` is None for plain HTTP. `connections`: those
    at work, too."""

    host: str
    port: int
    tls: ssl.SSLContext | None
    headers: bytes
    connections: list[Connection]

    async def connection(self, patience: float) -> Connection:
        """Returns one that is free; a new one within `patience` seconds. Raises OSError, and
        TimeoutError without a number."""
        now = time()
        free = sorted((c for c in self.connections if c.free), key=attrgetter("since"))
        for old in free[:-_IDLE] + [c for c in free if not 0 <= now - c.since <= _IDLE_TIME]:
            old.close()
        self.connections[:] = [c for c in self.connections if c.open]
        while free:
            latest = free.pop()
            if latest.open and latest.quiet:
                return latest
            latest.close()
        async with asyncio.timeout(patience):
            new = await self._connected()
        self.connections.append(new)
        return new

    async def _connected(self) -> Connection:
        from magy_server.llm.transports.connection import Connection

        loop = asyncio.get_running_loop()
        try:
            _, connection = await loop.create_connection(
                Connection, self.host, self.port, ssl=self.tls, happy_eyeballs_delay=_EYEBALLS
            )
        except OSError as error:
            # Python 3.11 has only a sentence for several addresses, none of which answered.
            numbers = [] if error.errno else _NUMBER.findall(str(error))
            if not numbers:
                raise
            raise OSError(int(numbers[-1]), os.strerror(int(numbers[-1]))) from error
        return connection


class DirectTransport(Transport):
    """Certificates are those that the environment names (`SSL_CERT_FILE`, `SSL_CERT_DIR`)."""

    def _make(self) -> Client:
        import magy_server.llm.transports.connection  # noqa: F401
        from magy_server.certificates import trusted

        parts = urlsplit(self.endpoint.base_url)
        secret = parts.scheme == "https"
        usual = 443 if secret else 80
        host = parts.netloc.lower().removesuffix(f":{usual}")
        own = {"host": host, "accept-encoding": "identity", "connection": "keep-alive"}
        return Client(
            parts.hostname or "",
            parts.port or usual,
            trusted() if secret else None,
            _written({n: v for n, v in (own | self.endpoint.headers()).items() if n not in _BODY}),
            [],
        )

    async def post(self, path: str, content: bytes) -> Response:
        more = b"content-type: application/json\r\ncontent-length: %d\r\n" % len(content)
        with _failures():
            return await self._ask(b"POST", self.endpoint.url(path), more, content)

    async def get(self, place: str, query: Mapping[str, Any]) -> bytes:
        url = self.endpoint.url(place)
        if query:
            url = urlsplit(url)._replace(query=urlencode(query)).geturl()
        with _failures():
            answer = await self._ask(b"GET", url, b"", b"")
            try:
                return await answer.whole()
            finally:
                await answer.close()

    async def _ask(self, method: bytes, url: str, more: bytes, content: bytes) -> Answer:
        """Raises TransportError, OSError, ValueError."""
        client: Client = await self.ready()
        parts = urlsplit(url)
        target = parts._replace(scheme="", netloc="", path=parts.path or "/").geturl()
        head = [b"%s %s HTTP/1.1\r\n" % (method, target.encode()), client.headers, more, b"\r\n"]
        connection = await client.connection(self.endpoint.connect)
        answer = await connection.ask(b"".join(head), content)
        if self._made is not client:  # it was closed meanwhile
            connection.retire()
        if answer.succeeded:
            return answer
        raise Refused(answer.status, url, answer.headers, await refusal(answer))

    async def _end(self, client: Client) -> None:
        for connection in client.connections:
            connection.retire()


def _written(headers: Mapping[str, str]) -> bytes:
    return "".join(f"{name}: {value}\r\n" for name, value in headers.items()).encode()


@contextmanager
def _failures() -> Iterator[None]:
    try:
        yield
    except TimeoutError as error:
        raise (Broken if error.errno else TimedOut) from error
    except (Cut, OSError, ValueError) as error:
        raise Broken from error
