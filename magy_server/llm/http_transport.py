"""This transport sends requests with the HTTP library alone: importing an SDK takes longer than all
else until the first request, and an SDK copies every body."""

from __future__ import annotations

import os
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import orjson

from magy_server import __version__
from magy_server.llm.transport import Broken, Refused, TimedOut, Transport

if TYPE_CHECKING:
    from httpx2 import URL, AsyncClient, Request, Response

_CONNECTIONS, _IDLE = 1000, 100
"""The most connections at once, and of those that wait for the next request: as in the SDKs."""


class HttpTransport(Transport):
    """Proxies and certificates are those that the environment names (`HTTPS_PROXY`, `NO_PROXY`,
    `SSL_CERT_FILE`, `SSL_CERT_DIR`)."""

    def _make(self) -> AsyncClient:
        import httpx2

        endpoint = self.endpoint
        try:
            return httpx2.AsyncClient(
                headers=httpx2.Headers(self._headers(), encoding="utf-8"),
                timeout=httpx2.Timeout(None, connect=endpoint.connect, write=endpoint.write),
                limits=httpx2.Limits(max_connections=_CONNECTIONS, max_keepalive_connections=_IDLE),
                verify=_tls(os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR")),
            )
        except httpx2.InvalidURL as error:
            raise ValueError(f"a proxy's address: {error}") from error

    def _headers(self) -> dict[str, str]:
        """Returns what every request says. Names are lower-case: a later one replaces an earlier
        one."""
        endpoint, vendor = self.endpoint, self.endpoint.vendor
        headers = {
            "accept": "application/json",
            "user-agent": f"magy/{__version__}",
            "authorization": f"Bearer {endpoint.api_key or 'none'}",
            **vendor.headers,
        }
        if endpoint.official:
            for name, variable in vendor.account.items():
                if value := os.environ.get(variable):
                    headers[name] = value
            headers |= _lines(os.environ.get(vendor.custom_headers, ""))
        return headers

    def _url(self, place: str) -> str:
        if "://" in place:
            return place
        parts = urlsplit(self.endpoint.base_url)
        return parts._replace(path=parts.path.rstrip("/") + place).geturl()

    async def post(self, path: str, content: bytes) -> Response:
        client = await self.ready()
        headers = {"content-type": "application/json"}
        with _failures():
            url = _parsed(self._url(path))
            request = client.build_request("POST", url, headers=headers, content=content)
            return await _sent(client, request)

    async def get(self, place: str, query: Mapping[str, Any]) -> Response:
        client = await self.ready()
        with _failures():
            request = client.build_request("GET", self._url(place), params=query or None)
            response = await _sent(client, request)
            await response.aread()
            return response

    async def _end(self, client: AsyncClient) -> None:
        await client.aclose()


@lru_cache(maxsize=64)
def _parsed(url: str) -> URL:
    """Taking an address apart and checking it is a tenth of what a request costs. Raises
    InvalidURL."""
    import httpx2

    return httpx2.URL(url)


@lru_cache(maxsize=1)
def _tls(file: str | None, folder: str | None) -> ssl.SSLContext:
    """Returns what certificates are checked with, as long as the environment names the same ones
    (`file`, `folder`): reading them takes longer than a request."""
    import httpx2

    return httpx2.create_ssl_context()


def _lines(text: str) -> dict[str, str]:
    """Reads headers, one a line."""
    pairs = (line.partition(":") for line in text.split("\n"))
    return {name.strip().lower(): value.strip() for name, colon, value in pairs if colon}


async def _sent(client: AsyncClient, request: Request) -> Response:
    response = await client.send(request, stream=True)
    if response.is_success:
        return response
    try:
        body = _said(await response.aread())
    finally:
        await response.aclose()
    raise Refused(response.status_code, str(response.url), response.headers, body)


def _said(data: bytes) -> Any:
    """Returns the JSON in it, or the text. That is UTF-8, whatever the header calls it: Python has
    encodings by name that are none of text."""
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        return data.decode("utf-8", "replace").strip()


@contextmanager
def _failures() -> Iterator[None]:
    import httpx2

    try:
        yield
    except httpx2.TimeoutException as error:
        raise TimedOut from error
    except (httpx2.HTTPError, httpx2.InvalidURL, OSError, ValueError) as error:
        raise Broken from error
