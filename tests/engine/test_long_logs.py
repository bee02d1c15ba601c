"""A long log is read and folded page by page, so that others get their turn."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from magy_server.core.agents.tree import stream_of
from magy_server.core.events import Entry, Opened, Prompted
from magy_server.core.ports import Batch
from magy_server.core.state.fold import fold
from magy_server.core.state.state import State
from magy_server.core.values import Text
from magy_server.engine.log import PAGE, Log
from magy_server.store.sqlite import SqliteStore

STREAM = stream_of("long")
PAGES = 10


class Watching:
    """Notes what the log tells its holder."""

    def __init__(self) -> None:
        self.told: list[int] = []

    def folded(self, entries: Sequence[Entry]) -> None:
        self.told.append(len(entries))

    def appended(self, entries: Sequence[Entry]) -> None: ...

    def vanished(self) -> None: ...


async def test_others_get_their_turn_and_nobody_sees_it_half_folded(tmp_path: Path) -> None:
    store = await SqliteStore.open(str(tmp_path))
    events = [Opened(agent="build", cwd="/", root="/", model="m")]
    prompts = [Prompted(id=f"p{n}", content=(Text(text="hello"),)) for n in range(PAGES * PAGE)]
    await store.append([Batch(STREAM, 0, [*events, *prompts])], None)
    watching = Watching()
    log = Log(STREAM, store, (), watching)
    seen = []

    async def beside() -> None:
        while not log.loaded:
            seen.append(log.state.seq)
            await asyncio.sleep(0)

    other = asyncio.create_task(beside())
    await asyncio.sleep(0)
    await log.load()
    await other
    assert seen[:PAGES] == [0] * PAGES, "as long as it is folded"
    assert watching.told == [1 + len(prompts)]
    assert log.state == fold(await store.read(STREAM), State(STREAM))
    await log.reload()
    assert log.state.seq == 1 + len(prompts)
    await store.close()
