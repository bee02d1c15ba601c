"""This module speaks HTTP: it finds the address that a URL leads to, sends one request, and takes a
bounded look at the answer.

No redirect is followed: a call was judged for its URL, and where that leads is another one.

A name is resolved once; what it leads to is checked, and the connection is made to that very
address, so that a name which changes its mind (DNS rebinding) gains nothing. TLS certificates are
checked against the name. Names are not looked up before a person allowed the call: a look-up tells
the name to strangers.

`HTTP_PROXY`, `HTTPS_PROXY` and `NO_PROXY` are honoured: in many networks there is no other way out.
A proxy resolves names by itself, so the check of addresses is then made on what this machine
resolves, if it can. What is on this machine is never asked for through a proxy.
"""

from __future__ import annotations

import asyncio
import ipaddress
import re
import socket
import zlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import field
from functools import partial
from typing import TYPE_CHECKING

from magy_server import __version__
from magy_server.certificates import trusted
from magy_server.core.errors import ToolError
from magy_server.dataclass import dataclass
from magy_server.regex import regex
from magy_server.tools.web.urls import Target, target, zone

if TYPE_CHECKING:
    from httpx2 import AsyncClient, Response

MOST = 10_000_000
"""Bytes that are read of an answer, and the most that they are unpacked to."""
TOTAL_TIME = 60.0
"""The seconds for everything."""
CONNECT_TIME = 10.0
SILENCE = 20.0
"""A server may be silent for so many seconds."""
_GZIP = b"\x1f\x8b"
_MEMBERS = 1_000
"""The most bytes of one gzip answer."""
ADDRESSES = 4
"""So many addresses of one name are tried."""
_HEADERS = {
    "user-agent": f"Mozilla/5.0 (compatible; Magy/{__version__}; fetched for a person)",
    "accept": "text/html,application/xhtml+xml,text/*,application/json,*/*;q=0.5",
    "accept-language": "en,*;q=0.5",
    "accept-encoding": "gzip, deflate",
}
_REDIRECTS = (301, 302, 303, 307, 308)
_NAME = regex(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_VALUE = regex(r"(?:[!-~](?:[ -~\t]*[!-~])?)?")
Resolver = Callable[[str, int], Awaitable[Sequence[str]]]
"""async (name, port) -> its addresses as text. Raises OSError."""


async def look_up(name: str, port: int) -> Sequence[str]:
    """The system's own way; `localhost` and names below it never leave this machine (RFC 6761)."""
    if name.endswith(".localhost"):
        name = "localhost"
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(name, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[4][0]) for address in found))


def check_headers(headers: Mapping[str, str]) -> None:
    """Raises ToolError for one that cannot be sent, which names it and says nothing of its value:
    that may be a secret."""
    for name, value in headers.items():
        if not _NAME.fullmatch(name) or not _VALUE.fullmatch(value):
            raise ToolError(
                f"The header {name[:100]!a} cannot be sent: use plain ASCII, one line, no blanks "
                "at its ends."
            )


@dataclass(frozen=True, slots=True)
class Asked:
    """A request besides its URL."""

    method: str = "GET"
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None


@dataclass(frozen=True, slots=True)
class Fetched:
    """What is at `url`. `kind` is the media type in small letters, "" when the
    server named none; `size` the announced one in bytes. Of a kind that `wanted` does not want
    there is no `body`. `cut`: there is more than `MOST` bytes."""

    url: str
    status: int
    reason: str
    kind: str
    charset: str
    size: int | None
    body: bytes
    cut: bool
    headers: Sequence[tuple[str, str]] = ()

    @property
    def location(self) -> str:
        """Where a redirect leads, as the server wrote it; "" if this is none."""
        named = (value for name, value in self.headers if name.lower() == "location")
        return next(named, "") if self.status in _REDIRECTS else ""


class Web:
    """`resolve` looks names up."""

    def __init__(self, resolve: Resolver = look_up) -> None:
        self._resolve = resolve

    async def get(
        self, url: str, *, private: bool, wanted: Callable[[str], bool] = lambda kind: True
    ) -> Fetched:
        """`private`: it is allowed that this leads to a private network or this machine; for what
        the URL itself shows to be there, it need not be said.

        Raises ToolError: also for a redirect, naming where it leads.
        """
        fetched = await self.send(url, Asked(), private=private, wanted=wanted)
        if fetched.location:
            raise ToolError(await asyncio.to_thread(_leads_on, fetched))
        return fetched

    async def send(
        self,
        url: str,
        asked: Asked,
        *,
        private: bool,
        wanted: Callable[[str], bool] = lambda kind: True,
    ) -> Fetched:
        """Sends any request, and returns what this very URL answers; the rest is as with `get`."""
        import httpx2

        check_headers(asked.headers)
        try:
            async with asyncio.timeout(TOTAL_TIME):
                at = await asyncio.to_thread(target, url)
                return await self._once(at, asked, private, wanted)
        except TimeoutError:
            raise ToolError(f"{url} did not answer completely in {TOTAL_TIME:.0f} s.") from None
        except httpx2.TimeoutException as error:
            what = "connect" if isinstance(error, httpx2.ConnectTimeout) else "send anything"
            raise ToolError(f"{url}: the server did not {what} in time. Try later.") from None
        except httpx2.ConnectError as error:
            raise ToolError(
                f"{url}: no connection ({str(error)[:300]}). Is the server running, and is the URL "
                "right?"
            ) from None
        except httpx2.ProxyError as error:
            raise ToolError(f"{url}: the proxy refuses: {error}. Tell the user.") from None
        except httpx2.LocalProtocolError:  # which repeats what could not be sent
            raise ToolError(f"{url} cannot be asked for that way: it is not HTTP.") from None
        except httpx2.HTTPError as error:
            why = str(error) or type(error).__name__
            raise ToolError(f"{url} could not be fetched: {why[:300]}.") from None

    async def _once(
        self, at: Target, asked: Asked, private: bool, wanted: Callable[[str], bool]
    ) -> Fetched:
        proxy = await asyncio.to_thread(_proxy, at)
        addresses = await self._addresses(at, private, proxied=proxy is not None)
        async with await asyncio.to_thread(_client, proxy) as client:
            response = await _send(client, at, asked, () if proxy else addresses)
            try:
                return await _fetched(at, response, wanted)
            finally:
                await response.aclose()

    async def _addresses(self, at: Target, private: bool, *, proxied: bool) -> list[str]:
        """The addresses of the host, all of them checked. With a proxy a name need not resolve."""
        try:
            found = [ipaddress.ip_address(at.host)]
        except ValueError:
            try:
                names = await self._resolve(at.host, at.port)
                found = [ipaddress.ip_address(name.partition("%")[0]) for name in names]
            except OSError as error:
                if proxied:
                    return []
                why = error.strerror or error
                raise ToolError(f"There is no host {at.host}: {why}. Check the name.") from None
        for address in found:
            if zone(address) != "public" and at.zone == "public" and not private:
                raise ToolError(
                    f"{at.host} leads to {address}, on this machine or in a private network. If "
                    "that is meant, call again with private_network=true; the user is asked."
                )
        return [str(address) for address in found[:ADDRESSES]]


def _proxy(at: Target) -> str | None:
    """The proxy that the environment names for this URL. May ask the system: not for the event
    loop."""
    from urllib.request import getproxies, proxy_bypass

    if at.zone == "here" or proxy_bypass(at.host):
        return None
    proxies = getproxies()
    found = proxies.get(at.url.partition(":")[0]) or proxies.get("all")
    if found and "://" not in found:
        found = f"http://{found}"
    if found and not found.lower().startswith(("http://", "https://")):
        raise ToolError(
            f"The environment names the proxy {found.partition('@')[2] or found} for this URL; "
            "Magy supports only http:// and https:// proxies. Tell the user."
        )
    return found or None


def _client(proxy: str | None) -> AsyncClient:
    """Loads certificates: not for the event loop. No cookies from before, no .netrc."""
    import httpx2

    timeout = httpx2.Timeout(SILENCE, connect=CONNECT_TIME)
    return httpx2.AsyncClient(
        headers=_HEADERS, proxy=proxy, timeout=timeout, trust_env=False,
        verify=trusted(),
    )  # fmt: skip


async def _send(
    client: AsyncClient, at: Target, asked: Asked, addresses: Sequence[str]
) -> Response:
    """Without addresses, to the name."""
    import httpx2

    url = httpx2.URL(at.url)
    refused: httpx2.HTTPError | None = None
    for address in addresses or [at.host]:
        request = client.build_request(
            asked.method,
            url.copy_with(host=address),
            headers={**asked.headers, "host": url.netloc.decode("ascii")},
            content=asked.body,
            extensions={"sni_hostname": at.host},
        )
        try:
            return await client.send(request, stream=True)
        except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
            refused = error
    assert refused is not None
    raise refused


def _leads_on(fetched: Fetched) -> str:
    """What is said of a redirect. Imports httpx2: not for the event loop."""
    import httpx2

    try:
        new = target(str(httpx2.URL(fetched.url).join(fetched.location)))
    except (httpx2.InvalidURL, ToolError) as error:
        return f"{fetched.url} redirects to an address that cannot be fetched. {error}"
    return (
        f"{fetched.url} redirects to {new.url}\nNothing was fetched from there. Call again with "
        "that URL if it is what you want."
    )


async def _fetched(at: Target, response: Response, wanted: Callable[[str], bool]) -> Fetched:
    kind, _, parameters = response.headers.get("content-type", "").partition(";")
    kind = kind.strip().lower()
    charset = re.search(r"charset\s*=\s*[\"']?([\w.:-]+)", parameters, re.IGNORECASE)
    length = response.headers.get("content-length", "")
    body, cut = b"", False
    if wanted(kind):
        body, cut = await _body(at, response)
    return Fetched(
        url=at.url,
        status=response.status_code,
        reason=response.reason_phrase[:100],
        kind=kind,
        charset=charset[1].lower() if charset else "",
        size=int(length) if length.isascii() and length.isdigit() else None,
        body=body,
        cut=cut,
        headers=tuple(response.headers.multi_items()),
    )


async def _body(at: Target, response: Response) -> tuple[bytes, bool]:
    """Unpacked here and not by httpx2: one coding only, in bounded memory and time."""
    coding = response.headers.get("content-encoding", "identity").strip().lower()
    if coding not in ("identity", "", "gzip", "x-gzip", "deflate"):
        raise ToolError(
            f"{at.url} uses a content encoding that Magy did not ask for: {coding[:50]!a}."
        )
    packed = bytearray()
    async for chunk in response.aiter_raw():
        packed += chunk
        if len(packed) > MOST:
            break
    cut = len(packed) > MOST
    data = bytes(packed[:MOST])
    if coding in ("identity", ""):
        return data, cut
    try:
        body, more = await asyncio.to_thread(partial(_unpack, data, raw=False))
    except zlib.error:
        try:
            body, more = await asyncio.to_thread(partial(_unpack, data, raw=True))
        except zlib.error as error:
            raise ToolError(
                f"{at.url} uses the content encoding {coding}, but is damaged: {error}."
            ) from None
    return body, cut or more


def _unpack(data: bytes, *, raw: bool) -> tuple[bytes, bool]:
    """gzip (of any number of members) or zlib, or with `raw` bare deflate, which some servers mean.
    At most `MOST` bytes, and whether there is more, or was meant to be."""
    body = bytearray()
    if not data:
        return b"", False
    for _ in range(_MEMBERS):
        unpacker = zlib.decompressobj(-zlib.MAX_WBITS if raw else zlib.MAX_WBITS | 32)
        body += unpacker.decompress(data, MOST + 1 - len(body))
        if len(body) > MOST or not unpacker.eof:
            return bytes(body[:MOST]), True
        data = unpacker.unused_data
        if not data.startswith(_GZIP):
            return bytes(body), False
    return bytes(body), True
