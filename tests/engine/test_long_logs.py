"""A long log is read and folded page by page, so that others get their turn, or from a snapshot."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from magy_server.core.agents.tree import stream_of
from magy_server.core.errors import NotFound, StoreUnavailable
from magy_server.core.events import (
    Admitted,
    Configured,
    Ended,
    Entry,
    Event,
    Opened,
    Prompted,
    Replied,
)
from magy_server.core.ports import Batch
from magy_server.core.state.fold import fold
from magy_server.core.state.state import State
from magy_server.core.values import Text
from magy_server.engine.log import PAGE, RECENT, SLICE, Log, Write
from magy_server.engine.snapshot_format import dump
from magy_server.engine.snapshots import EVERY
from magy_server.store.faulty import Fault, FaultyStore
from magy_server.store.sqlite import SqliteStore

STREAM = stream_of("long")
PAGES = 10
PER_TURN = 40


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
    turns = PAGES * PAGE // SLICE
    assert seen[:turns] == [0] * turns, "as long as it is folded"
    assert watching.told == [RECENT], "the others need no memory any more"
    assert log.state == fold(await store.read(STREAM), State(STREAM))
    await log.reload()
    assert log.state.seq == 1 + len(prompts)
    await store.close()


def events(turns: int, first: int = 0) -> list[Event]:
    made: list[Event] = []
    for n in range(first, first + turns):
        prompt = Prompted(id=f"p{n}", content=(Text(text="hello"),))
        reply = Replied(request=f"r{n}", model="m", content=(Text(text="yes"),), stop="end_turn")
        made += [prompt, Admitted(turn=prompt.id, prompts=(prompt.id,), first=1, opens=True)]
        made += [reply, Ended(turn=prompt.id, stop="end_turn")]
        made += [Configured(option="title", value=f"{n}.{m}") for m in range(PER_TURN - 4)]
    return made


@asynccontextmanager
async def written(
    directory: Path, turns: int = EVERY // PER_TURN
) -> AsyncIterator[tuple[FaultyStore, Log]]:
    """A log that is loaded and has a snapshot."""
    store = FaultyStore(await SqliteStore.open(str(directory)))
    opened = Opened(agent="build", cwd="/", root="/", model="m")
    await store.append([Batch(STREAM, 0, [opened, *events(turns)])], None)
    log = Log(STREAM, store, (), Watching())
    await log.load()
    assert log.snapshot_due
    await log.keep_snapshot()
    assert not log.snapshot_due
    try:
        yield store, log
    finally:
        await store.close()


async def loaded(store: FaultyStore) -> tuple[Log, int]:
    """Another process's, and how many entries it read."""
    log, before = Log(STREAM, store, (), Watching()), len(store.done["read"])
    await log.load()
    plain = fold(await store.read(STREAM), State(STREAM))
    assert log.state == plain
    return log, sum(len(entries) for _, entries in store.done["read"][before:-1])


async def test_who_has_a_snapshot_folds_only_what_came_since(tmp_path: Path) -> None:
    async with written(tmp_path) as (store, first):
        await first.append(lambda state: Write(events(3, 5000)))
        log, read = await loaded(store)
        assert read == RECENT + 3 * PER_TURN + 1, "one again, by which it knows the log"
        assert not log.snapshot_due


async def test_what_comes_after_a_log_was_loaded_is_in_memory_and_not_all_of_it(
    tmp_path: Path,
) -> None:
    async with written(tmp_path) as (store, _):
        log, _ = await loaded(store)
        seq = log.state.seq
        assert (log.entries_after(seq), log.entries_after(seq - 1)) == ([], None)
        for n in range(3 * RECENT // PER_TURN):
            added = await log.append(lambda state, n=n: Write(events(1, 5000 + n)))
            assert log.entries_after(seq) == added
            seq = log.state.seq
        newest = log.entries_after(seq - RECENT)
        assert newest is not None and [e.seq for e in newest] == [*range(seq - RECENT + 1, seq + 1)]
        assert log.entries_after(seq - 2 * RECENT - 1) is None


async def test_one_that_is_missing_is_made_while_nobody_has_the_log_loaded(tmp_path: Path) -> None:
    async with written(tmp_path) as (store, first):
        kept = await store.snapshot(STREAM)
        assert kept is not None
        log = Log(STREAM, store, (), Watching())
        await log.prepare()
        assert len(store.done["keep"]) == 1, "it is there already"
        await store.keep(STREAM, kept._replace(code="another Magy"))
        preparing = asyncio.create_task(log.prepare())
        await asyncio.sleep(0)
        before = len(store.done["read"])
        await log.load()
        await preparing
        assert await store.snapshot(STREAM) == kept
        pages = -(-(first.state.seq + 1) // PAGE)
        assert len(store.done["read"]) == before + pages + 2, "it was folded once"
        assert log.state == first.state and not log.snapshot_due


async def test_one_that_is_of_no_use_costs_a_fold_and_nothing_else(tmp_path: Path) -> None:
    async with written(tmp_path) as (store, first):
        whole = first.state.seq
        kept = await store.snapshot(STREAM)
        assert kept is not None
        for other in (
            kept._replace(code="another Magy"),
            kept._replace(body=kept.body[:-9]),
            kept._replace(body=dump(replace(first.state, at=1.0))),
            kept._replace(body=dump(replace(first.state, stream=stream_of("other")))),
        ):
            await store.keep(STREAM, other)
            log, read = await loaded(store)
            assert read >= whole
            assert log.snapshot_due, "so that the next one is spared it"


async def test_a_stream_that_was_made_anew_does_not_get_the_old_snapshot(tmp_path: Path) -> None:
    async with written(tmp_path) as (store, _):
        kept = await store.snapshot(STREAM)
        assert kept is not None
        await store.delete(STREAM)
        opened = Opened(agent="build", cwd="/", root="/", model="m")
        await store.append([Batch(STREAM, 0, [opened, *events(2 * EVERY // PER_TURN)])], None)
        await store.keep(STREAM, kept)
        await loaded(store)


@pytest.mark.parametrize("work", [Log.load, Log.prepare])
async def test_a_log_that_is_made_anew_while_it_is_folded_is_not_mixed_with_the_old_one(
    tmp_path: Path, work: Callable[[Log], Coroutine[Any, Any, None]]
) -> None:
    """As when a machine slept in the middle of it, and another process went on sooner."""
    fault = Fault("read", at=3, until=asyncio.Event())
    store = FaultyStore(await SqliteStore.open(str(tmp_path)), fault)
    opened = Opened(agent="build", cwd="/", root="/", model="m")
    turns = EVERY // PER_TURN
    try:
        await store.append([Batch(STREAM, 0, [opened, *events(turns)])], None)
        log = Log(STREAM, store, (), Watching())
        working = asyncio.create_task(work(log))
        await fault.reached.wait()
        await store.delete(STREAM)
        await store.append([Batch(STREAM, 0, [opened, *events(2 * turns, 5000)])], None)
        assert fault.until
        fault.until.set()
        with suppress(NotFound):
            await working
        assert await store.snapshot(STREAM) is None
        await log.load()
        assert log.state == fold(await store.read(STREAM), State(STREAM))
    finally:
        await store.close()


async def test_a_fold_that_is_doubted_replaces_what_was_kept_of_it(tmp_path: Path) -> None:
    async with written(tmp_path) as (store, first):
        await first.reload()
        assert first.snapshot_due
        assert first.state == fold(await store.read(STREAM), State(STREAM))


async def test_a_store_that_keeps_no_snapshot_stops_nobody(tmp_path: Path) -> None:
    fault = Fault("keep", error=StoreUnavailable)
    store = FaultyStore(await SqliteStore.open(str(tmp_path)), fault)
    opened = Opened(agent="build", cwd="/", root="/", model="m")
    await store.append([Batch(STREAM, 0, [opened, *events(EVERY // PER_TURN)])], None)
    log = Log(STREAM, store, (), Watching())
    await log.load()
    await log.keep_snapshot()
    assert await store.snapshot(STREAM) is None and not log.snapshot_due
    await store.close()
