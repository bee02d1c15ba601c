"""A process is gone that others worked beside: they see what it wrote last, and go on with it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from magy_server.api.service import Service
from magy_server.app import compose
from magy_server.bus.local import LocalBus
from magy_server.core.agents.tree import stream_of
from magy_server.core.events import Configured, Ended, Prompted, Resumed
from magy_server.core.ports import Batch
from magy_server.core.values import Text
from magy_server.engine import trees
from magy_server.store.sqlite import SqliteStore

SCRIPT = """\
prompt: look around
call: spawn_agent {"agent": "general", "prompt": "count the files", "task_name": "count"}
---
text: It counts.
---
call: bash {"command": "install -d made"}
---
text: Made.

prompt: count the files
text: There are none.
"""


class Processes:
    """Engines on one store, each with a bus of its own."""

    def __init__(self, root: Path) -> None:
        self.root = str(root)
        self._all = AsyncExitStack()

    async def begin(self) -> tuple[Service, AsyncExitStack]:
        """The engine, and what ends it."""
        own = await self._all.enter_async_context(AsyncExitStack())
        service, _ = await own.enter_async_context(compose([self.root], {"titles": False}))
        return service, own

    async def end(self) -> None:
        await self._all.aclose()


@pytest.fixture
async def processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Processes]:
    root = tmp_path / "root"
    root.mkdir()
    (tmp_path / "script").write_text(SCRIPT)
    monkeypatch.setenv("MAGY_SCRIPT", str(tmp_path / "script"))
    monkeypatch.setenv("MAGY_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("MAGY_CONFIG_DIR", str(tmp_path / "config"))
    found = Processes(root)
    yield found
    await found.end()


async def until(reached: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(120):
        while not await reached():
            await asyncio.sleep(0.05)


async def asked(service: Service, title: str) -> None:
    """Waits for this question of the root, and leaves it open."""

    async def there() -> bool:
        open_ = (await service.info("root")).summary["questions"]
        return any(title in one["title"] for one in open_)

    await until(there)


async def test_what_was_written_by_who_is_gone_is_seen(
    processes: Processes, tmp_path: Path
) -> None:
    """It died, or left, before it could say so, and nobody else is there who would."""
    service, _ = await processes.begin()
    await service.open("root", processes.root, processes.root, "build", "")
    session = await service.loaded.session(stream_of("root"))
    session.watch(lambda: None)
    gone = await SqliteStore.open(tmp_path / "state")
    told = Configured(option="title", value="written last")
    await gone.append([Batch(session.stream, session.state.seq, [told])])
    await gone.close()

    async def seen() -> bool:
        return session.state.options["title"] == "written last"

    await until(seen)


async def test_who_came_and_died_between_two_looks_is_missed_by_those_who_live(
    processes: Processes, tmp_path: Path
) -> None:
    service, _ = await processes.begin()
    await processes.begin()
    await service.open("root", processes.root, processes.root, "build", "")
    stream = stream_of("root")
    bus = LocalBus(tmp_path / "state" / "bus")
    await bus.start()
    store = await SqliteStore.open(tmp_path / "state")
    asked = Prompted(id="one", content=(Text(text="count the files"),), by=bus.id)
    summary = {**(await service.info("root")).summary, "state": "running"}
    await store.append([Batch(stream, await store.head(stream), [asked], {}, summary)])
    await store.close()
    await bus.close()

    async def answered() -> bool:
        entries = await service.world.store.read(stream)
        return any(isinstance(entry.event, Ended) for entry in entries)

    await until(answered)


async def test_a_fault_in_one_session_is_said_there_and_leaves_the_others_alone(
    processes: Processes, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Another process has written to both; who watches the first one fails."""
    service, _ = await processes.begin()
    first, second = [
        await service.open(id, processes.root, processes.root, "build", "") for id in ("a", "b")
    ]
    second.watch(lambda: None)

    def fail() -> None:
        if first.state.options.get("title") == "new" and not first.streaming.partials:
            raise ZeroDivisionError("nobody foresaw this")

    first.watch(fail)
    other = await SqliteStore.open(tmp_path / "state")
    told = Configured(option="title", value="new")
    await other.append([Batch(one.stream, one.state.seq, [told]) for one in (first, second)])
    await other.close()

    async def seen() -> bool:
        return second.state.options.get("title") == "new" and bool(first.streaming.partials)

    await until(seen)
    notice = first.streaming.partials["notice", "notice"]
    assert notice.since(0).startswith("Magy failed (ZeroDivisionError)")
    assert not second.streaming.partials
    assert "ZeroDivisionError: nobody foresaw this" in caplog.text


async def test_a_tree_goes_on_of_which_only_a_part_that_rests_is_known(
    processes: Processes,
) -> None:
    """The other has worked with the child, and only watches the root, which a result has woken."""
    runs, end = await processes.begin()
    other, _ = await processes.begin()
    await runs.open("root", processes.root, processes.root, "build", "")
    await runs.prompt("root", "one", [Text(text="look around")], "steer")
    await asked(runs, "Spawn")
    (question,) = (await runs.info("root")).summary["questions"]
    await runs.answer(
        "root", question["interactionId"], allow=True, reason="", scope="once", by="test"
    )
    await asked(runs, "install")
    (child,) = await trees.below(other.world.store, "root")
    assert child.summary["state"] == "idle"
    await other.loaded.session(child.stream)
    other.loaded.watch(stream_of("root")).watch(lambda: None)
    await end.aclose()

    async def resumed() -> bool:
        entries = await other.world.store.read(stream_of("root"))
        return Resumed(by=other.world.me) in [entry.event for entry in entries]

    await until(resumed)
