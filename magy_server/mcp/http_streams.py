"""The SDK speaks streamable HTTP through these: answers have a largest size, and a server that
floods is cut off."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import anyio
import httpx2
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage

from magy_server.mcp.offers import LinkError, Reach
from magy_server.mcp.rate_limit import LARGEST, CutOff, RateLimit

Streams = tuple[MemoryObjectReceiveStream[SessionMessage | Exception], Any]

BYTES = 4 << 20
"""Bytes a second that one stream of events may bring for long..."""
SURGE = 2 * LARGEST
"""...and so many more are a flood."""
REQUESTS = 10
"""Requests a second that are made for long: a server may have us come back at once, for ever..."""
BURST = 200
"""...and so many more without a pause."""


@asynccontextmanager
async def http_streams(
    url: str, http: httpx2.AsyncClient, over: asyncio.Future[str]
) -> AsyncGenerator[Streams, None]:
    """`over` is set when the server floods, to a sentence; it is not listened to any more then."""
    to_us, ours = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    async with (
        streamable_http_client(url, http_client=http, max_sse_event_size=LARGEST) as (
            theirs,
            to_them,
        ),
        anyio.create_task_group() as group,
        to_us,
        ours,
    ):
        group.start_soon(_hear, theirs, to_us, over)
        try:
            yield ours, to_them
        finally:
            group.cancel_scope.cancel()


async def _hear(theirs: Any, to_us: MemoryObjectSendStream[Any], over: asyncio.Future[str]) -> None:
    limit = RateLimit()
    try:
        async for message in theirs:
            if isinstance(message, Exception) or limit.lets_in(message):
                await to_us.send(message)
    except CutOff as error:
        if not over.done():
            over.set_result(str(error))
    except (anyio.ClosedResourceError, anyio.BrokenResourceError):
        return
    finally:
        to_us.close()


def client_for(name: str, reach: Reach, auth: httpx2.Auth | None = None) -> httpx2.AsyncClient:
    """Nothing is read for ever: a stream that says nothing for five minutes is opened again. Where
    `auth` is None, only the headers of `reach` say who we are."""
    pace = _Pace()
    hooks: list[Callable[..., Any]] = [_bounded]
    if auth is None:
        hooks.insert(0, partial(_let_in, name, reach))
    return httpx2.AsyncClient(
        # What is packed may be a thousand times as much when it is unpacked.
        headers={"Accept-Encoding": "identity", **reach.headers},
        timeout=httpx2.Timeout(30.0, read=300.0),
        auth=auth,
        event_hooks={"request": [pace.keep], "response": hooks},
    )


class _Pace:
    """Keeps requests from following each other without a pause."""

    def __init__(self) -> None:
        self._at = time.monotonic()
        self._over = 0.0
        """Requests beyond those that might have been made by now."""

    async def keep(self, request: httpx2.Request) -> None:
        now = time.monotonic()
        self._over = max(0.0, self._over - REQUESTS * (now - self._at)) + 1
        self._at = now
        if self._over > BURST:
            await asyncio.sleep((self._over - BURST) / REQUESTS)


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
    """A stream of events is bounded event by event, and in what it brings in a while; of other
    answers the whole is. Raises LinkError."""
    if response.headers.get("content-encoding", "identity").strip().lower() != "identity":
        raise LinkError("it packs its answers, which it was asked not to do")
    kind = response.headers.get("content-type", "")
    flows = kind.lower().startswith("text/event-stream")
    response.stream = _Flowing(response.stream) if flows else _Whole(response.stream)


class _Whole(httpx2.AsyncByteStream):
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


class _Flowing(_Whole):
    async def __aiter__(self) -> AsyncIterator[bytes]:
        at, over = time.monotonic(), 0.0
        async for chunk in self._stream:
            now = time.monotonic()
            at, over = now, max(0.0, over - BYTES * (now - at)) + len(chunk)
            if over > SURGE:
                raise LinkError(f"it flooded: more than {SURGE >> 20} MB came at once")
            yield chunk
