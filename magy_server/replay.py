"""`magy replay`: every model request of a session, exactly as it was sent, from the log alone."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import sys
from typing import Any

from pydantic import BaseModel

from magy_server import config
from magy_server.core import prompt
from magy_server.core.errors import MagyError, NotFound
from magy_server.core.events import Briefed
from magy_server.core.state import State
from magy_server.store.sqlite import SqliteStore


def replay(session: str, upto: int | None) -> int:
    """Prints one JSON object a line: {"request": ..., "reply": ...}. The exit code."""
    try:
        lines = asyncio.run(_lines(session, upto))
    except MagyError as error:
        print(f"magy: {error.message}", file=sys.stderr)
        return 1
    for line in lines:
        print(line)
    return 0


async def _lines(session: str, upto: int | None) -> list[str]:
    store = await SqliteStore.open(str(config.state_dir()))
    try:
        stream = f"session/{session}"
        entries = await store.read(stream, before=None if upto is None else upto + 1)
        if not entries:
            raise NotFound(f"There is no session {session!r} in {config.state_dir()}.")
        briefings = [entry.event for entry in entries if isinstance(entry.event, Briefed)]
        hashes = {part.hash for b in briefings for part in b.sections + b.tools}
        texts = {hash: data.decode() for hash, data in (await store.blobs(list(hashes))).items()}
        pairs = prompt.requests(entries, State(stream), texts)
        return [
            json.dumps({"request": request, "reply": reply}, default=_plain, ensure_ascii=False)
            for request, reply in pairs
        ]
    finally:
        await store.close()


def _plain(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
