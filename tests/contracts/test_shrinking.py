"""Blobs that nothing refers to go, and so does their room, while other processes are at work."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from itertools import count
from pathlib import Path

import pytest

from magy_server.core.ports import Batch
from magy_server.store.shrinking import shrink
from tests.contracts.build import blob, finished, hash_of, opened, said
from tests.contracts.conftest import Spawn, sqlite


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "state"


def never() -> bool:
    return False


async def filled(state: Path, live: int = 0) -> Path:
    """A database of which 4 MB have been deleted; `live`: events of half a kB that have not."""
    texts = [str(n) * (100_000 // len(str(n))) for n in range(10, 50)]
    blobs = {hash_of(text): text.encode() for text in texts}
    async with sqlite(state) as store:
        await store.append([Batch("session/gone", 0, [finished(text) for text in texts], blobs)])
        await store.append([Batch("session/kept", 0, [finished("kept")], blob("kept"))])
        await store.append([Batch("session/live", 0, [opened(), *[said("x" * 200)] * live])])
        assert await store.delete("session/gone")
    return state / "magy.db"


def asked(path: Path, query: str) -> Sequence[tuple[object, ...]]:
    with closing(sqlite3.connect(path)) as db:
        return db.execute(query).fetchall()


async def whole(state: Path, live: int = 0) -> None:
    async with sqlite(state) as store:
        head = await store.head("session/kept")
        assert await store.blob(hash_of("kept")) == b"kept"
        assert await store.head("session/live") == live + 1
        await store.append([Batch("session/kept", head, [said("more")])])
    assert asked(state / "magy.db", "PRAGMA integrity_check") == [("ok",)]
    assert asked(state / "magy.db", "PRAGMA journal_mode") == [("wal",)]


async def test_no_blob_goes_that_another_process_names_and_none_stays_that_nobody_does(
    state: Path, spawn: Spawn
) -> None:
    """One process makes sessions that share their texts; another deletes the older ones at once, so
    that the last that refers to a text goes just when the next one is made."""
    async with sqlite(state) as store:
        child = await spawn("share", state)
        for _ in range(100):
            number = await child.line()
            assert await store.delete(f"session/{number}")
        made = 100 + len(await child.finish())  # it has found all of its texts
        for number in range(100, made):
            assert await store.delete(f"session/{number}")
    path = state / "magy.db"
    assert asked(path, "SELECT hash FROM blobs") == asked(path, "SELECT hash FROM refs") == []


async def test_the_file_gets_smaller(state: Path) -> None:
    path = await filled(state)
    before = path.stat().st_size
    found = shrink(str(path), never)
    assert found.given > 3_000_000 and (found.spare, found.why) == (0, "")
    assert path.stat().st_size == before - found.given
    await whole(state)


async def test_little_room_is_not_worth_it(state: Path) -> None:
    path = await filled(state)
    async with sqlite(state) as store:
        text = "x" * 3_800_000
        await store.append([Batch("session/kept", 1, [finished(text)], blob(text))])
    before = path.stat().st_size
    found = shrink(str(path), never)
    assert found.given == 0 and 0 < found.spare < before / 10 and found.why == ""
    assert path.stat().st_size == before


async def test_nobody_finds_the_file_cut_who_has_it_open(state: Path, spawn: Spawn) -> None:
    path = await filled(state)
    child = await spawn("write", state, "session/other", "x", "3")
    assert await child.line() == "ready"
    before = path.stat().st_size
    found = shrink(str(path), never)
    assert found.given == 0 and found.spare > 3_000_000
    assert found.why == "another Magy uses the database"
    assert path.stat().st_size == before
    await child.tell("go")
    assert len(await child.finish()) == 4
    assert shrink(str(path), never).given > 3_000_000
    await whole(state)


async def test_it_can_be_stopped(state: Path) -> None:
    path = await filled(state, 10_000)
    questions = count()
    found = shrink(str(path), lambda: next(questions) >= 1)
    assert (found.given, found.why) == (0, "it was interrupted")
    assert next(questions) == 2
    await whole(state, 10_000)


async def test_killed_in_between_it_has_done_nothing(state: Path, spawn: Spawn) -> None:
    path = await filled(state, 10_000)
    before = path.stat().st_size
    child = await spawn("shrunk", path)
    assert await child.line() == "in the middle"
    await child.kill()
    assert path.stat().st_size == before
    await whole(state, 10_000)
    assert shrink(str(path), never).given > 3_000_000
    await whole(state, 10_000)


async def test_killed_while_it_writes_the_file_it_has_done_all_or_nothing(
    state: Path, spawn: Spawn
) -> None:
    path = await filled(state, 10_000)
    journal = path.with_name("magy.db-journal")
    child = await spawn("shrunk", path)
    assert await child.line() == "in the middle"
    await child.tell("go on")
    while not (journal.exists() and journal.stat().st_size) and path.stat().st_size > 7_000_000:
        await asyncio.sleep(0)
    await child.kill()
    await whole(state, 10_000)


async def test_who_comes_meanwhile_waits(state: Path, spawn: Spawn) -> None:
    path = await filled(state, 10_000)
    child = await spawn("shrunk", path)
    assert await child.line() == "in the middle"
    coming = asyncio.create_task(whole(state, 10_000))
    await asyncio.wait([coming], timeout=0.3)
    assert not coming.done()
    await child.tell("go on")
    await coming
    ((given, spare, why),) = await child.finish()
    assert given > 3_000_000 and (spare, why) == (0, "")
