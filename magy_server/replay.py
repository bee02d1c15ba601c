"""`magy replay` prints every request of a session's conversation exactly as it was sent, from the
log alone. It leaves titles and summaries out."""

from __future__ import annotations

import asyncio
import base64
import dataclasses
import json
import sys
from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel

from magy_server.cli.plain_output import tell
from magy_server.config import layers
from magy_server.core import prompt
from magy_server.core.agents.tree import Stream, stream_of
from magy_server.core.errors import MagyError, NotFound
from magy_server.core.events import Briefed, Compacted, Event, Finished, Prompted, Replied
from magy_server.core.ports import ModelRequest
from magy_server.core.state.state import State
from magy_server.core.values import Hash, Image
from magy_server.store.sqlite import SqliteStore


def replay(session: str, upto: int | None) -> int:
    """Prints one JSON object a line: {"request": ..., "reply": ...}. The exit code."""
    try:
        lines = asyncio.run(_lines(session, upto))
    except MagyError as error:
        print(f"magy: {error.message}", file=sys.stderr)
        return 2 if isinstance(error, NotFound) else 1
    for line in lines:
        tell(f"{line}\n")
    return 0


async def _lines(session: str, upto: int | None) -> list[str]:
    store = await SqliteStore.open(str(layers.state_dir()))
    try:
        pairs = await asked(store, stream_of(session), upto)
        if pairs is None:
            raise NotFound(f"There is no session {session!r}. `magy sessions` lists them.")
        return [
            json.dumps({"request": request, "reply": reply}, default=_plain, ensure_ascii=False)
            for request, reply in pairs
        ]
    finally:
        await store.close()


async def asked(
    store: SqliteStore, stream: Stream, upto: int | None = None
) -> list[tuple[ModelRequest, Replied]] | None:
    """Returns every request with its reply, up to an event; None when there is no such session."""
    entries = await store.read(stream, before=None if upto is None else upto + 1)
    if not entries:
        return None
    texts, pictures = await _blobs(store, [entry.event for entry in entries])
    return list(prompt.requests(entries, State(stream), texts, pictures))


async def _blobs(
    store: SqliteStore, events: Sequence[Event]
) -> tuple[dict[Hash, str], dict[Hash, bytes]]:
    """What the requests were built from: texts, and pictures."""
    texts: set[Hash] = set()
    pictures: set[Hash] = set()
    for event in events:
        match event:
            case Briefed():
                texts.update(part.hash for part in event.sections + event.tools)
            case Compacted(summary=str(summary)):
                texts.add(summary)
            case Prompted():
                pictures.update(p.hash for p in event.content if isinstance(p, Image))
            case Finished():
                pictures.update(image.hash for image in event.images)
    found = await store.blobs([*texts, *pictures])
    return (
        {hash: found[hash].decode() for hash in texts},
        {hash: found[hash] for hash in pictures},
    )


def _plain(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    named = [field.name for field in dataclasses.fields(value) if field.compare]
    return {name: getattr(value, name) for name in named}
