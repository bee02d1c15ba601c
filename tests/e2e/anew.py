"""What a server sent to a model, against what its log says: the process makes each request of what
it has from the one before, and here all are made anew."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

from magy_server.core.ports import ModelRequest
from magy_server.llm import anthropic_wire, chat_wire, responses_wire
from magy_server.llm.openai_quirks import known
from magy_server.llm.request_cache import as_json
from magy_server.replay import asked
from magy_server.store.sqlite import SqliteStore
from tests.loopback import AnthropicServer, ChatServer, ModelServer

TOLD = ("blind", "wants_thinking", "pictures_apart")
"""What a server may have taught about a model; the log does not say it."""


async def check(state: Path, servers: Sequence[ModelServer]) -> int:
    """Every request that got a reply was sent as the log says, to the byte of its conversation.
    Returns how many were compared."""
    sent = {_conversation(one.raw) for server in servers for one in server.taken}
    store = await SqliteStore.open(state)
    compared = 0
    try:
        page = await store.streams("session/", limit=1000)
        for info in page.items:
            for request, _ in await asked(store, info.stream) or ():
                own = replace(request, model=request.model.partition("/")[2])
                ways = [as_json(body) for server in servers for body in _bodies(server, own)]
                assert sent & set(map(_conversation, ways)), f"{info.stream}: {own.messages}"
                compared += 1
    finally:
        await store.close()
    return compared


def _conversation(raw: bytes) -> bytes:
    """What stands in a body from the conversation on, which comes last but for `stream`."""
    begins = max(raw.find(b'"messages":['), raw.find(b'"input":['))
    return raw[begins : raw.rindex(b"]") + 1]


def _bodies(server: ModelServer, request: ModelRequest) -> Iterator[Mapping[str, Any]]:
    if isinstance(server, AnthropicServer):
        for blind in (False, True):
            yield anthropic_wire.body(request, blind=blind)
        return
    wire = chat_wire if isinstance(server, ChatServer) else responses_wire
    for values in product((False, True), repeat=len(TOLD)):
        quirks = replace(
            known(server.base_url, request.model), **dict(zip(TOLD, values, strict=True))
        )
        yield wire.body(request, quirks)
