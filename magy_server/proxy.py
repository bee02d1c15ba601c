"""This proxy lets a sandboxed program reach the hosts that a person has listed, and no others.

It speaks HTTP: `CONNECT` for all that is encrypted, and plain requests. It looks names up itself,
so that the sandbox needs no DNS, and connects to the address that it has checked: a listed name
must not lead to this machine.
"""

from __future__ import annotations

import asyncio
import ipaddress
import math
import socket
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from urllib.parse import urlsplit

from magy_server.dataclass import dataclass

PORTS = (80, 443)
"""Those of a host that is listed without one."""
_HEAD = 1 << 16
_PATIENCE = 30.0
Ends = tuple[asyncio.StreamReader, asyncio.StreamWriter]
_CHUNK = 1 << 16
_MOST_TOLD = 20
IP = ipaddress.IPv4Address | ipaddress.IPv6Address
_TRANSLATED = ipaddress.IPv6Network("64:ff9b::/96")
"""A gateway (NAT64) leads these to the IPv4 address at their end."""
_SITE = ipaddress.IPv6Network("fec0::/10")
"""Private addresses, which Python does not count as such."""
_DROPPED = (b"proxy-", b"connection:", b"keep-alive:", b"host")
"""Headers for the proxy, and what would have one server answer for another host."""


@dataclass(frozen=True, slots=True)
class Listed:
    """An entry of the list, as it is written: `host`, `*.host` or `*`, and perhaps `:port`."""

    host: str
    port: int | None = None

    @classmethod
    def of(cls, text: str) -> Listed:
        host, colon, port = text.strip().rpartition(":")
        if colon and port.isdigit() and ("[" in host or ":" not in host):
            return cls(_plain(host), int(port))
        return cls(_plain(text.strip()))

    def covers(self, host: str, port: int) -> bool:
        if port not in (PORTS if self.port is None else (self.port,)):
            return False
        if self.host.startswith("*."):
            return host.endswith(self.host[1:])
        return self.host in ("*", host)

    @property
    def exact(self) -> bool:
        return "*" not in self.host


def _plain(host: str) -> str:
    return host.strip("[]").rstrip(".").lower()


class Refused(Exception):
    """The sentence is for who asked; `code` is the answer's status."""

    def __init__(self, sentence: str, code: int = 403) -> None:
        super().__init__(sentence)
        self.code = code


class Proxy:
    """`refused`: the hosts that were asked for and are not listed. `most`: so many bytes of answers
    pass; `full`: there were more, and nothing passes any longer."""

    def __init__(self, hosts: Sequence[str], most: float = math.inf) -> None:
        self.refused: dict[str, None] = {}
        self._left = most
        self._listed = [Listed.of(host) for host in hosts]
        self._server: asyncio.Server | None = None
        self._serving: set[asyncio.Task[None]] = set()

    @property
    def full(self) -> bool:
        return self._left < 0

    async def serve(self, listening: socket.socket) -> None:
        self._server = await asyncio.start_server(self._client, sock=listening, limit=_HEAD)

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
        for task in self._serving:
            task.cancel()
        if self._serving:
            await asyncio.wait(self._serving)

    async def _client(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._serving.add(task)
        try:
            with suppress(OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
                await self._served(reader, writer)
        except asyncio.CancelledError:
            return  # by `close`
        finally:
            self._serving.discard(task)
            writer.close()

    async def _served(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(_PATIENCE):
                head = await reader.readuntil(b"\r\n\r\n")
                host, port, first = _asked(head)
                upstream = await self._connected(host, port)
        except Refused as why:
            writer.write(_refusal(why))
            await writer.drain()
            return
        except (OSError, TimeoutError) as error:
            writer.write(_refusal(Refused(f"It cannot be reached: {error}.", 502)))
            await writer.drain()
            return
        if first:
            upstream[1].write(first)
        else:
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        try:
            await self._joined((reader, writer), upstream)
        finally:
            upstream[1].close()

    async def _joined(self, one: Ends, other: Ends) -> None:
        """What the one says the other hears, until both have said all, or `other` too much."""
        async with asyncio.TaskGroup() as group:
            asking = group.create_task(_copied(one[0], other[1], lambda count: True))
            if not await _copied(other[0], one[1], self._passes):
                asking.cancel()

    def _passes(self, count: int) -> bool:
        self._left -= count
        return not self.full

    async def _connected(
        self, host: str, port: int
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        entry = next((one for one in self._listed if one.covers(host, port)), None)
        if entry is None:
            if len(self.refused) < _MOST_TOLD:
                self.refused[f"{host}:{port}"] = None
            raise Refused(
                f"The sandbox reaches only listed hosts (sandbox.hosts), not {host}:{port}."
            )
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        addresses = [str(about[0]) for *_, about in found]
        good = [address for address in addresses if _may_be(address, host, exact=entry.exact)]
        if not good:
            raise Refused(f"{host} leads to {', '.join(addresses)}, which is not on the internet.")
        for address in good[:-1]:
            with suppress(OSError):
                return await asyncio.open_connection(address, port)
        return await asyncio.open_connection(good[-1], port)


_NOBODYS: Mapping[int, IP] = {
    4: ipaddress.IPv4Address("240.0.0.1"), 6: ipaddress.IPv6Address("2001:db8::1"),
}  # fmt: skip
"""Addresses that no machine has, by the version of the protocol. Some machines let sockets be bound
to those all the same (`ip_nonlocal_bind`): there it cannot be told whose an address is."""


def _may_be(address: str, host: str, *, exact: bool) -> bool:
    """Whether a listed host may have this address. One that is listed by its own name may be in a
    private network, and only what says so by itself on this machine."""
    ip = ipaddress.ip_address(address.partition("%")[0])
    ip = _inner(ip)
    here = ip.is_loopback or ip.is_link_local or ip.is_unspecified or _is_own(ip)
    if here:
        return exact and host in ("localhost", str(ip))
    return exact or (ip.is_global and not ip.is_multicast and ip not in _SITE)


def _is_own(ip: IP) -> bool:
    """Whether it is an address of this machine: a socket can be bound to it, and not to any."""
    return _binds(ip) and not _binds(_NOBODYS[ip.version])


def _binds(ip: IP) -> bool:
    family = socket.AF_INET if ip.version == 4 else socket.AF_INET6
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as one:
            one.bind((str(ip), 0))
            return True
    except OSError:
        return False


def _inner(ip: IP) -> IP:
    """Returns the IPv4 address to which an IPv6 address leads, through a gateway or as it is."""
    if isinstance(ip, ipaddress.IPv4Address):
        return ip
    if ip in _TRANSLATED:
        return ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)
    return ip.ipv4_mapped or ip.sixtofour or ip


def _asked(head: bytes) -> tuple[str, int, bytes]:
    """Host, port, and what is to be sent there first; b"": a tunnel is wanted. Raises Refused."""
    line, _, rest = head.partition(b"\r\n")
    words = line.decode("latin-1").split(" ")
    if len(words) != 3:
        raise Refused("This is a proxy for HTTP.", 400)
    method, target, version = words
    try:
        url = urlsplit(f"//{target}" if method == "CONNECT" else target)
        host, port = _plain(url.hostname or ""), url.port
    except ValueError:
        raise Refused("The address is malformed.", 400) from None
    if not host or (method != "CONNECT" and url.scheme != "http"):
        raise Refused("This is a proxy: name a host.", 400)
    if method == "CONNECT":
        return host, port or 443, b""
    path = f"{url.path or '/'}{'?' if url.query else ''}{url.query}"
    kept = [h for h in rest.split(b"\r\n") if h and not h.lower().startswith(_DROPPED)]
    where = f"Host: {url.netloc.rpartition('@')[2]}"
    first = [f"{method} {path} {version}\r\n{where}".encode("latin-1"), *kept]
    return host, port or 80, b"\r\n".join([*first, b"Connection: close", b"", b""])


def _refusal(why: Refused) -> bytes:
    text = f"{why}\n".encode()
    head = f"HTTP/1.1 {why.code} Refused\r\nContent-Type: text/plain\r\nContent-Length: {len(text)}"
    return f"{head}\r\nConnection: close\r\n\r\n".encode() + text


async def _copied(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, passes: Callable[[int], bool]
) -> bool:
    """Returns False where something did not pass."""
    with suppress(OSError):
        while data := await reader.read(_CHUNK):
            if not passes(len(data)):
                return False
            writer.write(data)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()
    return True
