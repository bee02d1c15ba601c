"""This module puts URLs into one normal form, and tells whether an address is public, private or
here.

One parser reads a URL for the check and for the connection: two that disagree are how checks are
evaded.
"""

from __future__ import annotations

import ipaddress
import re
from typing import TYPE_CHECKING, Literal

from magy_server.core.errors import ToolError
from magy_server.dataclass import dataclass
from magy_server.regex import regex

if TYPE_CHECKING:
    from httpx2 import URL

LONGEST = 2_000
"""Characters. A person has to read it in the question."""
_PORTS = {"http": 80, "https": 443}

Zone = Literal["public", "private", "here"]
"""Where an address is: on the internet, in a private network, or on this machine."""
IP = ipaddress.IPv4Address | ipaddress.IPv6Address

_ESCAPE = regex("%([0-9a-fA-F]{2})")
_LABEL = regex(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
_UNRESERVED = regex(r"[A-Za-z0-9._~-]")
_LOCAL = ("local", "internal", "intranet", "lan", "home", "corp", "home.arpa")
_SERVICES = frozenset(
    map(
        ipaddress.ip_address,
        ("100.100.100.200", "168.63.129.16", "192.0.0.192", "fd00:ec2::254", "fd20:ce::254"),
    )
)
"""Where clouds tell machines their secrets, besides the link-local 169.254.169.254."""
_EMBEDDING = tuple(map(ipaddress.IPv6Network, ("64:ff9b::/96", "::ffff:0:0:0/96")))
"""The last 32 bits are an IPv4 address (RFC 6052, RFC 7915)."""
_TRANSLATED = ipaddress.IPv6Network("64:ff9b:1::/48")
"""The same within one's own network, in any form (RFC 8215)."""
_SITE = ipaddress.IPv6Network("fec0::/10")
"""Site-local, from before there were unique local addresses (RFC 3879)."""


@dataclass(frozen=True, slots=True)
class Target:
    """A URL that may be meant, in its one normal form: rules match it, and people read it. `zone`
    is what the URL itself shows, without looking any name up."""

    url: str
    host: str
    port: int
    zone: Zone


def target(text: str) -> Target:
    """Raises ToolError for what is no URL that could be fetched. Imports httpx2: not for the event
    loop."""
    import httpx2

    text = text.strip()
    if len(text) > LONGEST:
        raise ToolError(f"The URL has {len(text):,} characters; {LONGEST:,} are the limit.")
    if re.search(r"[\s\\\x00-\x20\x7f]", text):
        raise ToolError(f"{text[:200]!a} is not a URL: it has blanks or backslashes in it.")
    if not re.match(r"https?://[^/]", text, re.IGNORECASE):
        raise ToolError(
            f"{text[:200]!a} cannot be fetched: give a whole URL that begins with http:// or "
            "https://. Read files with read_file."
        )
    try:
        url = httpx2.URL(_ESCAPE.sub(_plain, text)).copy_with(fragment=None)
        url = url.copy_with(host=_host(url), port=_port(url), raw_path=url.raw_path)
    except (httpx2.InvalidURL, UnicodeError, ValueError) as error:
        raise ToolError(f"{text[:200]!a} is not a URL: {error}") from None
    if url.userinfo:
        raise ToolError(
            f"The URL for {url.host} has a user name or password in it. Leave it out; pages that "
            "need a login cannot be fetched."
        )
    host = url.raw_host.decode("ascii")
    return Target(str(url), host, url.port or _PORTS[url.scheme], _shown_zone(host))


def _plain(escape: re.Match[str]) -> str:
    """Characters that need no escape are written plainly, so that a rule for `/admin` is not evaded
    by `/%61dmin`."""
    char = chr(int(escape[1], 16))
    return char if _UNRESERVED.fullmatch(char) else escape[0].upper()


def _host(url: URL) -> str:
    """ASCII, in small letters, without a final dot. Raises ToolError for what only some resolvers
    take for an address (`127.1`, `0x7f.0.0.1`, `2130706433`)."""
    host = url.raw_host.decode("ascii").lower()
    if ":" in host:
        return _written(ipaddress.IPv6Address(host))
    host = host.removesuffix(".")
    labels = host.split(".")
    if not all(map(_LABEL.fullmatch, labels)) or len(host) > 253:
        raise ToolError(f"{url.host[:200]!a} is not the name of a host.")
    if re.fullmatch(r"[0-9]+|0x[0-9a-f]*", labels[-1]):
        return str(ipaddress.IPv4Address(host))
    return host


def _written(address: ipaddress.IPv6Address) -> str:
    """The canonical form of RFC 5952. Python writes an IPv4 address in it plainly only from 3.13
    on."""
    if address.ipv4_mapped is None:
        return str(address)
    return f"::ffff:{address.ipv4_mapped}" + (f"%{address.scope_id}" if address.scope_id else "")


def _port(url: URL) -> int | None:
    if url.port is not None and not 0 < url.port < 65536:
        raise ToolError(f"{url.port} is not a port.")
    return None if url.port == _PORTS.get(url.scheme) else url.port


def _shown_zone(host: str) -> Zone:
    try:
        return zone(ipaddress.ip_address(host))
    except ValueError:
        pass
    if host == "localhost" or host.endswith(".localhost"):
        return "here"
    if "." not in host or host.endswith(tuple(f".{name}" for name in _LOCAL)):
        return "private"
    return "public"


def zone(address: IP) -> Zone:
    """Raises ToolError for addresses that are never asked for, whoever allows it."""
    inner = _inner(address)
    if inner is not None:
        return zone(inner)
    if address in _TRANSLATED:
        # Where the IPv4 address stands in it is for that network to say: none may be forbidden.
        for bits in (int(address) & 0xFFFFFFFF, _spread(int(address))):
            zone(ipaddress.IPv4Address(bits))
        return "private"
    if address.is_link_local or address in _SERVICES:
        raise ToolError(
            f"{address} is an address that gives cloud machines their secrets; Magy never fetches "
            "it. Do not try another way."
        )
    if address.is_loopback or address.is_unspecified:
        return "here"
    if address.is_multicast or address == ipaddress.ip_address("255.255.255.255"):
        raise ToolError(f"{address} is not the address of one machine.")
    return "public" if address.is_global and address not in _SITE else "private"


def _spread(address: int) -> int:
    """The IPv4 address behind a prefix of 48 bits, which leaves out bits 64 to 71 (RFC 6052)."""
    return ((address >> 64) & 0xFFFF) << 16 | (address >> 40) & 0xFFFF


def _inner(address: IP) -> IP | None:
    """The IPv4 address that an IPv6 address stands for."""
    if isinstance(address, ipaddress.IPv4Address):
        return None
    if any(address in network for network in _EMBEDDING):
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    if address in ipaddress.IPv6Network("::/96") and int(address) > 1:
        return ipaddress.IPv4Address(int(address))
    return address.ipv4_mapped or address.sixtofour
