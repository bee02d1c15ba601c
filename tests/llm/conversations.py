"""Short ways to say requests in tests of the adapters."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from typing import Any

import pytest

from magy_server.core.errors import ProviderError
from magy_server.core.events import Replied
from magy_server.core.ports import (
    Delta,
    Message,
    ModelRequest,
    Provider,
    Reading,
    ToolOutput,
    ToolSchema,
)
from magy_server.core.values import Call, Text

READ_FILE = ToolSchema("read_file", "Read a text file.", {"type": "object", "properties": {}})


def request(*messages: Message | str, **fields: Any) -> ModelRequest:
    """A `str` is a prompt; without messages there is one."""
    said = [Message("user", (Text(text=m),)) if isinstance(m, str) else m for m in messages]
    given: dict[str, Any] = {"id": "7", "session": "session/s1", "model": "test-model"}
    given |= {"system": ("You are Magy.",), "tools": (READ_FILE,), "max_tokens": 1000} | fields
    return ModelRequest(messages=tuple(said) or request("Hello").messages, **given)


def user(*parts: Any) -> Message:
    return Message("user", tuple(Text(text=p) if isinstance(p, str) else p for p in parts))


def assistant(*parts: Any) -> Message:
    return Message("assistant", tuple(Text(text=p) if isinstance(p, str) else p for p in parts))


def calling(id: str, provider_id: str = "", name: str = "read_file", **arguments: Any) -> Call:
    return Call(id=id, name=name, arguments=arguments, provider_id=provider_id)


def output(call: Call, text: str = "done", *, error: bool = False) -> ToolOutput:
    return ToolOutput(call.id, call.provider_id, text, error)


async def ask(provider: Provider, request: ModelRequest) -> tuple[list[Delta], Replied]:
    """All of a reply; checks what every provider promises about it."""
    *deltas, replied = [item async for item in _closing(provider, request)]
    assert isinstance(replied, Replied)
    assert replied.request == request.id
    assert not any(isinstance(delta, Replied) for delta in deltas), "it comes once, at the end"
    return [delta for delta in deltas if isinstance(delta, Delta)], replied


async def readings(provider: Provider, request: ModelRequest) -> list[Reading]:
    """What the server says of how far it has read."""
    return [item async for item in _closing(provider, request) if isinstance(item, Reading)]


async def _closing(
    provider: Provider, request: ModelRequest
) -> AsyncIterator[Delta | Reading | Replied]:
    stream = provider.stream(request)
    async with aclosing(stream):  # type: ignore[type-var]
        async for item in stream:
            yield item


def joined(deltas: Sequence[Delta], kind: str, index: int = 0) -> str:
    return "".join(d.text for d in deltas if d.kind == kind and d.index == index)


async def failure(provider: Provider, sent: ModelRequest | None = None) -> ProviderError:
    with pytest.raises(ProviderError) as caught:
        await ask(provider, sent or request())
    return caught.value


def event(type: str, **fields: Any) -> str:
    """A server-sent event, for `raw`."""
    return f"event: {type}\ndata: {json.dumps({'type': type, **fields})}\n\n"
