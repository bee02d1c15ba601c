"""This module says what a `Transport` is, and which errors it raises: each says the same of what
goes wrong, whichever library is behind it."""

from __future__ import annotations

import asyncio
import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import orjson

from magy_server import __version__
from magy_server.dataclass import dataclass
from magy_server.regex import regex

_TOKEN = regex(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_VALUE = regex(r"[^\x00-\x08\x0a-\x1f\x7f\ud800-\udfff]*")
"""What a header's name and value may be (RFC 9110 §5.1, §5.5)."""
_LONGEST_BODY = 1 << 26
"""The most bytes of a body that is read at once."""
_REFUSAL_TIME, _LONGEST_REFUSAL = 5.0, 1 << 20
"""Seconds to wait for the body of a refusal, and the bytes after which nobody reads on."""


@dataclass(frozen=True, slots=True)
class Vendor:
    """Who made an API. `headers` go with every request."""

    sdk: str
    """The module of its SDK."""
    client: str
    """The SDK's name for its asynchronous client."""
    base_url: str
    key_variable: str
    """The environment variable that usually holds the key."""
    custom_headers: str
    """The environment variable with more headers for its own API, one a line."""
    headers: Mapping[str, str]
    account: Mapping[str, str]
    """More headers for its own API, and the environment variables that hold their values."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where requests go. `official`: it is the vendor's own API, which gets what the environment
    has for it; other people's servers do not. `connect` and `write` are limits in seconds; reading
    has none here."""

    vendor: Vendor
    base_url: str
    api_key: str
    official: bool
    connect: float
    write: float

    def headers(self) -> dict[str, str]:
        """Returns what every request says that no SDK makes. Names are lower-case: a later one
        replaces an earlier one. Raises ValueError for what can be no header: it may come from the
        environment. A library would quote its value, which may be a secret."""
        headers = {
            "accept": "application/json",
            "user-agent": f"magy/{__version__}",
            "authorization": f"Bearer {self.api_key or 'none'}",
            **self.vendor.headers,
        }
        if self.official:
            for name, variable in self.vendor.account.items():
                if value := os.environ.get(variable):
                    headers[name] = value
            headers |= _lines(os.environ.get(self.vendor.custom_headers, ""))
        for name, value in headers.items():
            if not (_TOKEN.fullmatch(name) and (value.isprintable() or _VALUE.fullmatch(value))):
                raise ValueError(f"{name[:40]!r} is no header, or its value is none")
        return headers

    def url(self, place: str) -> str:
        """Returns the URL of a path below the base URL; a whole URL stays as it is."""
        if "://" in place:
            return place
        parts = urlsplit(self.base_url)
        return parts._replace(path=parts.path.rstrip("/") + place).geturl()


def _lines(text: str) -> dict[str, str]:
    """Reads headers, one a line."""
    pairs = (line.partition(":") for line in text.split("\n"))
    return {name.strip().lower(): value.strip() for name, colon, value in pairs if colon}


class TransportError(Exception):
    """There is no answer of use; what is below says why."""


class Refused(TransportError):
    """The answer's status is not a success. `body`: its JSON, or text."""

    def __init__(self, status: int, url: str, headers: Mapping[str, str], body: Any) -> None:
        super().__init__(f"HTTP {status}")
        self.status = status
        self.url = url
        self.headers = headers
        self.body = body


class TimedOut(TransportError):
    """There was no connection in time."""


class Broken(TransportError):
    """There was no connection, or it broke before the answer began; the cause says why."""


class Unusable(TransportError):
    """No client can be made of what the environment says; the cause says why."""


class Cut(TransportError):
    """The answer broke off."""


class Response(ABC):
    """The answer to a request that succeeded: its body is still to be read. `headers`: names are
    lower-case, or found in any case."""

    headers: Mapping[str, str]

    @abstractmethod
    async def read(self, within: float | None = None) -> bytes:
        """Returns more of the body, and b"" at its end. Raises TimeoutError if there is nothing
        for `within` seconds, and Cut."""

    @abstractmethod
    async def close(self) -> None:
        """Ends the connection, unless the body was read to its end."""

    async def whole(self) -> bytes:
        """Returns the rest of the body. Raises Cut, also when it is over 64 MB."""
        parts = []
        size = 0
        while part := await self.read():
            parts.append(part)
            size += len(part)
            if size > _LONGEST_BODY:
                raise Cut from ValueError(f"the answer is over {_LONGEST_BODY >> 20} MB")
        return b"".join(parts)


async def refusal(response: Response) -> Any:
    """Returns the JSON in the body of a refusal, or its text; "" if it does not come in time. The
    status counts without it. Closes the answer."""
    parts: list[bytes] = []
    whole = True
    try:
        async with asyncio.timeout(_REFUSAL_TIME):
            while sum(map(len, parts)) < _LONGEST_REFUSAL and (part := await response.read()):
                parts.append(part)
    except (Cut, TimeoutError):
        whole = False
    finally:
        await response.close()
    data = b"".join(parts)
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        # It is UTF-8, whatever the header calls it: Python has encodings by name that are none of
        # text. What broke off may end in half a key, which nobody knows for one.
        return data.decode("utf-8", "replace").strip() if whole else ""


class Transport(ABC):
    """A client of one endpoint, with its connections. It follows no redirect, which would carry
    the conversation, and headers, to where nobody decided to send them; and it asks only once."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self._made: Any = None
        self._making = threading.Lock()

    @abstractmethod
    def _make(self) -> Any:
        """Imports what makes the client, and makes it."""

    @abstractmethod
    async def post(self, path: str, content: bytes) -> Response:
        """Sends JSON to a path below the base URL. Raises TransportError."""

    @abstractmethod
    async def get(self, place: str, query: Mapping[str, Any]) -> bytes:
        """Returns what is at a path below the base URL, or at a URL of the same server. Raises
        TransportError."""

    def warm(self) -> None:
        """Does what is slow before the first request. Thread-safe; the second call costs
        nothing. Raises Unusable."""
        with self._making:
            if self._made is None:
                try:
                    self._made = self._make()
                except (ImportError, OSError, ValueError) as error:
                    raise Unusable from error

    async def ready(self) -> Any:
        """Returns the client. Raises Unusable."""
        while self._made is None:
            await asyncio.to_thread(self.warm)
        return self._made

    async def close(self) -> None:
        """Closes idle connections. The transport can be used again."""
        client, self._made = self._made, None  # one that `warm` just makes has none yet
        if client is not None:
            await self._end(client)

    @abstractmethod
    async def _end(self, client: Any) -> None: ...
