"""An adapter and a server on loopback, for tests of all wires."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import pytest

from magy_server.core.ports import Provider
from magy_server.llm.anthropic import AnthropicProvider
from magy_server.llm.openai import ChatProvider, ResponsesProvider
from tests.loopback import AnthropicServer, ChatServer, ModelServer, ResponsesServer
from tests.loopback.http import Exchange, HttpServer, Request

WIRES = {
    "anthropic": (AnthropicServer, AnthropicProvider),
    "responses": (ResponsesServer, ResponsesProvider),
    "chat": (ChatServer, ChatProvider),
}
TRANSPORTS = ("http", "sdk")
ALL = [
    pytest.param(server, partial(make, transport=transport), id=f"{wire}-{transport}")
    for wire, (server, make) in WIRES.items()
    for transport in TRANSPORTS
]
"""What carries the requests makes no difference."""
WAYS = ("http", "library", "sdk")
"""The transports; `library`: that for proxies, and for addresses that are not plain."""


def made(make: Callable[..., Any], way: str, *given: Any, **limits: Any) -> Any:
    """An adapter with the transport of this `way`."""
    if way != "library":
        return make(*given, transport=way, **limits)
    with pytest.MonkeyPatch.context() as patch:  # read once more before the first request
        patch.setenv("all_proxy", "http://127.0.0.1:9")
        return make(*given, **limits)


@asynccontextmanager
async def talking(
    server: ModelServer, make: Callable[..., Provider], key: str = "test-key", **limits: float
) -> AsyncIterator[Provider]:
    async with server:
        provider = make(key, server.base_url, **limits)
        yield provider
        await provider.close()


class Plain(HttpServer):
    """Answers everything with `body`."""

    def __init__(self, body: bytes, kind: str = "application/json", status: int = 200) -> None:
        super().__init__()
        self._body, self._kind, self._status = body, kind, status

    async def respond(self, request: Request, exchange: Exchange) -> None:
        await exchange.send(self._status, self._body, self._kind)
