"""The SDK speaks streamable HTTP through these; answers have a largest size."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Any

import httpx2
from mcp.client.streamable_http import streamable_http_client

from magy_server.mcp.offers import LinkError, Reach

LARGEST = 32 << 20
"""Bytes of one answer, or of one event in a stream of them."""


def http_streams(url: str, http: httpx2.AsyncClient) -> AbstractAsyncContextManager[Any]:
    return streamable_http_client(url, http_client=http, max_sse_event_size=LARGEST)


def client_for(name: str, reach: Reach, auth: httpx2.Auth | None = None) -> httpx2.AsyncClient:
    """Nothing is read for ever: a stream that says nothing for five minutes is opened again. Where
    `auth` is None, only the headers of `reach` say who we are."""
    return httpx2.AsyncClient(
        headers=dict(reach.headers),
        timeout=httpx2.Timeout(30.0, read=300.0),
        auth=auth,
        event_hooks={"response": [_bounded] if auth else [partial(_let_in, name, reach), _bounded]},
    )


def has_header(headers: Mapping[str, str]) -> bool:
    """Returns whether these headers say by themselves who we are."""
    return any(name.lower() == "authorization" for name in headers)


def login_wanted(name: str, status: int, *, known: bool) -> str:
    """Returns what to say of a server that answered so; `known`: somebody has logged in there."""
    if status == 403:
        return "it refuses what it was asked (HTTP 403)"
    why = "the login to it is over" if known else "it needs a login"
    return f"{why}: run `magy mcp login {name}` in a terminal (HTTP {status})"


async def _let_in(name: str, reach: Reach, response: httpx2.Response) -> None:
    """Raises LinkError: the server does not want us."""
    if response.status_code not in (401, 403):
        return
    if has_header(reach.headers):
        why = f"it does not accept the Authorization header (HTTP {response.status_code})"
        raise LinkError(why)
    raise LinkError(login_wanted(name, response.status_code, known=False))


async def _bounded(response: httpx2.Response) -> None:
    """A stream of events is bounded event by event; of other answers the whole is."""
    kind = response.headers.get("content-type", "")
    if not kind.startswith("text/event-stream"):
        response.stream = _Bounded(response.stream)


class _Bounded(httpx2.AsyncByteStream):
    def __init__(self, stream: Any) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for chunk in self._stream:
            size += len(chunk)
            if size > LARGEST:
                raise LinkError(f"it sent an answer of more than {LARGEST >> 20} MB")
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()
