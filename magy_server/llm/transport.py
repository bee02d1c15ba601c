"""What carries a provider's requests to its server and brings back the answers: `Transport`. Each
says the same of what goes wrong, whichever library is behind it."""

from __future__ import annotations

import asyncio
import threading
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from magy_server.dataclass import dataclass

if TYPE_CHECKING:
    from httpx2 import Response


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
        """Sends JSON to a path below the base URL; the answer's body is still to be read. Raises
        TransportError."""

    @abstractmethod
    async def get(self, place: str, query: Mapping[str, Any]) -> Response:
        """Reads from a path below the base URL, or from a whole URL. Raises TransportError."""

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
