"""This transport sends requests through the HTTP library on which the SDKs are built: it knows
proxies and addresses of every kind."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from magy_server.certificates import trusted
from magy_server.llm.transports.transport import (
    Broken,
    Cut,
    Refused,
    Response,
    TimedOut,
    Transport,
    refusal,
)

if TYPE_CHECKING:
    import httpx2

_CONNECTIONS, _IDLE = 1000, 100
"""The most connections at once, and of those that wait for the next request: as in the SDKs."""


class HttpxResponse(Response):
    """`response`: its body is still to be read."""

    def __init__(self, response: httpx2.Response) -> None:
        self.headers = response.headers
        self._response = response
        self._parts: AsyncIterator[bytes] = response.aiter_bytes()

    async def read(self, within: float | None = None) -> bytes:
        import httpx2

        try:
            async with asyncio.timeout(within):
                return await anext(self._parts, b"")
        except httpx2.HTTPError as error:
            raise Cut from error

    async def close(self) -> None:
        await self._response.aclose()


class HttpxTransport(Transport):
    """Proxies and certificates are those that the environment names (`HTTPS_PROXY`, `NO_PROXY`,
    `SSL_CERT_FILE`, `SSL_CERT_DIR`)."""

    def _make(self) -> httpx2.AsyncClient:
        import httpx2

        endpoint = self.endpoint
        try:
            return httpx2.AsyncClient(
                headers=httpx2.Headers(endpoint.headers(), encoding="utf-8"),
                timeout=httpx2.Timeout(None, connect=endpoint.connect, write=endpoint.write),
                limits=httpx2.Limits(max_connections=_CONNECTIONS, max_keepalive_connections=_IDLE),
                verify=trusted(),
            )
        except httpx2.InvalidURL as error:
            raise ValueError(f"a proxy's address: {error}") from error

    async def post(self, path: str, content: bytes) -> Response:
        client = await self.ready()
        headers = {"content-type": "application/json"}
        with _failures():
            url = self.endpoint.url(path)
            request = client.build_request("POST", url, headers=headers, content=content)
            return HttpxResponse(await _sent(client, request))

    async def get(self, place: str, query: Mapping[str, Any]) -> bytes:
        client = await self.ready()
        with _failures():
            url = self.endpoint.url(place)
            request = client.build_request("GET", url, params=query or None)
            response = HttpxResponse(await _sent(client, request))
            try:
                return await response.whole()
            finally:
                await response.close()

    async def _end(self, client: httpx2.AsyncClient) -> None:
        await client.aclose()


async def _sent(client: httpx2.AsyncClient, request: httpx2.Request) -> httpx2.Response:
    response = await client.send(request, stream=True)
    if response.is_success:
        return response
    body = await refusal(HttpxResponse(response))
    raise Refused(response.status_code, str(response.url), response.headers, body)


@contextmanager
def _failures() -> Iterator[None]:
    import httpx2

    try:
        yield
    except httpx2.TimeoutException as error:
        raise TimedOut from error
    except (Cut, httpx2.HTTPError, httpx2.InvalidURL, OSError, ValueError) as error:
        raise Broken from error
