"""What a watcher is shown of a session that another process runs."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import cast

import pytest

from magy_server.api.service import Service
from magy_server.api.sessions.follow import Follower
from magy_server.bus.local import LocalBus
from magy_server.core.agents.tree import stream_of
from magy_server.core.errors import StoreUnavailable
from magy_server.core.events import Opened
from magy_server.engine.log import Write
from magy_server.engine.session import News, Session
from magy_server.store.faulty import Fault, FaultyStore
from magy_server.store.memory import MemoryStore
from tests.patience import PATIENCE


@pytest.mark.parametrize("error", [None, StoreUnavailable])
async def test_what_streams_is_shown_after_what_was_appended_before_it(
    tmp_path: Path, error: type[StoreUnavailable] | None
) -> None:
    store, bus, read = MemoryStore(), LocalBus(tmp_path / "bus"), asyncio.Event()
    slow = FaultyStore(store, Fault("read", at=2, until=read, error=error))
    there = Session(stream_of("s"), store, bus, "there", News())
    here = Session(stream_of("s"), slow, bus, "here", News())
    follower, moved = Follower(cast(Service, None), here, 0), asyncio.Event()
    here.watch(moved.set)
    await here.load()
    await there.load()
    await there.append(
        lambda now: Write([Opened(root=None, cwd=str(tmp_path), agent="build", model="")])
    )
    there.stream_delta("text", "r", "Hello")
    assert here.streaming.partials and follower.deltas() == []
    read.set()
    async with asyncio.timeout(PATIENCE):
        while here.reading_on:
            moved.clear()
            await moved.wait()
    assert here.state.seq == (0 if error else 1)
    assert [update["sessionUpdate"] for update in follower.deltas()] == ["agent_message_chunk"]
