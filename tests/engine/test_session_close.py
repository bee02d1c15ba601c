from __future__ import annotations

import asyncio
from pathlib import Path

from magy_server.bus.local import LocalBus
from magy_server.core.agents.tree import stream_of
from magy_server.engine.session import News, Session
from magy_server.store.memory import MemoryStore


async def test_who_watches_a_session_hears_of_its_end_though_nobody_waits_for_it(
    tmp_path: Path,
) -> None:
    session = Session(stream_of("s"), MemoryStore(), LocalBus(tmp_path / "bus"), "me", News())
    heard: list[bool] = []
    session.watch(lambda: heard.append(session.gone))
    ending, may_end = asyncio.Event(), asyncio.Event()

    async def slow_to_end() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ending.set()
            await may_end.wait()

    session.later(slow_to_end())
    await asyncio.sleep(0)
    closing = asyncio.create_task(session.close())
    await ending.wait()
    closing.cancel()
    await asyncio.wait([closing])
    assert session.gone and heard == [True]
    may_end.set()
