"""The store on disk: its file, other processes, sudden death."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import stat
import struct
import subprocess
import sys
import threading
from contextlib import closing, suppress
from pathlib import Path

import pytest

from magy_server.core.errors import Conflict, StoreUnavailable
from magy_server.core.ports import Batch, Lease
from magy_server.store.sqlite import SqliteStore
from tests.contracts.build import blob, finished, hash_of, opened, said
from tests.contracts.conftest import Spawn, sqlite
from tests.patience import PATIENCE

S = "session/one"


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "state"


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


# --- the file -----------------------------------------------------------------------------------


async def test_all_is_there_after_reopening(state: Path) -> None:
    async with sqlite(state) as store:
        await store.append([Batch(S, 0, [opened(), finished("long")], blob("long"), {"n": 1})])
        before = (await store.read(S), await store.info(S))
    async with sqlite(state) as store:
        assert (await store.read(S), await store.info(S)) == before
        assert await store.blob(hash_of("long")) == b"long"


def test_an_opening_that_is_cut_short_leaves_no_thread(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As by Ctrl-C: its thread would speak to a loop that is gone."""

    async def cut_short(after: float) -> None:
        opening = asyncio.ensure_future(SqliteStore.open(state))
        await asyncio.wait([opening], timeout=after)
        opening.cancel()
        with suppress(asyncio.CancelledError):
            await (await opening).close()

    failed: list[object] = []
    monkeypatch.setattr(threading, "excepthook", failed.append)
    before = set(threading.enumerate())
    for step in range(40):
        asyncio.run(cut_short(step / 2000))
    for thread in set(threading.enumerate()) - before:
        thread.join(PATIENCE)
    assert not failed


async def test_only_the_owner_can_read_it(state: Path) -> None:
    state.mkdir(mode=0o755)
    (state / "magy.db").touch(mode=0o644)
    async with sqlite(state) as store:
        await store.append([Batch(S, 0, [said("x")])])
        await store.lease(S)
        files = {path for path in state.rglob("*") if path.is_file()}
        assert len(files) == 5  # the database, its -wal, -shm and -used, one lock
        assert {mode(path) for path in files} == {0o600}
        assert mode(state) == mode(state / "locks") == 0o700


async def test_waiting_appends_share_a_commit(state: Path) -> None:
    async with sqlite(state) as store:
        await store.append([Batch("session/first", 0, [said("x")])])
        before = commits(state)
        appends = [store.append([Batch(f"session/{n}", 0, [said("x")])]) for n in range(64)]
        await asyncio.gather(*appends)
        assert commits(state) - before <= 3
        for n in range(64):
            assert [entry.seq for entry in await store.read(f"session/{n}")] == [1]


def commits(state: Path) -> int:
    """Committed transactions in the write-ahead log (https://sqlite.org/fileformat.html, 4.1: a
    frame header holds the size of the database in pages if the frame ends a transaction)."""
    data = (state / "magy.db-wal").read_bytes()
    (page,) = struct.unpack_from(">I", data, 8)
    count = 0
    for at in range(32, len(data) - 23, 24 + page):
        (size,) = struct.unpack_from(">I", data, at + 4)
        count += size > 0 and data[at + 8 : at + 16] == data[16:24]  # not of an earlier log
    return count


async def test_a_cancelled_append_harms_no_other(state: Path) -> None:
    async with sqlite(state) as store:
        tasks = [
            asyncio.ensure_future(store.append([Batch(f"session/{n}", 0, [said("x")])]))
            for n in range(8)
        ]
        await asyncio.sleep(0)
        tasks[3].cancel()
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        assert [isinstance(o, list) for o in outcomes] == [n != 3 for n in range(8)]
        assert len(await store.append([Batch("session/8", 0, [said("x")])])) == 1


async def test_closing_waits_for_what_is_being_appended(state: Path) -> None:
    async with sqlite(state) as store:
        append = asyncio.ensure_future(store.append([Batch(S, 0, [said("x")])]))
        await asyncio.sleep(0)
        await store.close()
        assert len(await append) == 1


# --- other processes ----------------------------------------------------------------------------


async def test_processes_collide_on_one_log_and_nothing_is_lost(state: Path, spawn: Spawn) -> None:
    # All three also make the new file at once.
    children = await asyncio.gather(*(spawn("write", state, S, name, "40") for name in "abc"))
    for child in children:
        assert await child.line() == "ready"
    for child in children:
        await child.tell("go")
    outputs = await asyncio.gather(*(child.finish() for child in children))
    seqs = [seq for output in outputs for seq in output[:-1]]
    assert sorted(seqs) == list(range(1, 121))
    assert sum(output[-1]["conflicts"] for output in outputs) > 0
    async with sqlite(state) as store:
        entries = await store.read(S)
    assert [entry.seq for entry in entries] == list(range(1, 121))
    for name, output in zip("abc", outputs, strict=True):
        mine = [e.seq for e in entries if e.event.type == "prompted" and e.event.id[0] == name]
        assert mine == output[:-1]


async def test_what_was_answered_survives_sigkill(state: Path, spawn: Spawn) -> None:
    child = await spawn("write", state, S, "a", "100000")
    assert await child.line() == "ready"
    await child.tell("go")
    for n in range(1, 31):
        assert await child.line() == n
    await child.kill()
    async with sqlite(state) as store:
        entries = await store.read(S)
        assert len(entries) >= 30
        assert [entry.seq for entry in entries] == list(range(1, len(entries) + 1))
        await store.append([Batch(S, len(entries), [said("on")])])


async def test_changes_of_others_are_noticed_once(state: Path) -> None:
    async with sqlite(state) as one, sqlite(state) as two:
        assert not await one.changed()
        await one.append([Batch(S, 0, [said("mine")])])
        assert not await one.changed()
        await two.append([Batch(S, 1, [said("theirs")])])
        await one.append([Batch(S, 2, [said("mine again")])])
        assert await one.changed()
        assert not await one.changed()
        assert await two.changed()


async def test_a_reader_elsewhere_sees_a_deletion_whole(state: Path) -> None:
    async with sqlite(state) as one, sqlite(state) as two:
        await one.append([Batch(S, 0, [said(str(n)) for n in range(200)])])

        async def read() -> set[int]:
            return {len(await two.read(S)) for _ in range(20)}

        reading = asyncio.ensure_future(read())
        await asyncio.sleep(0.005)
        assert await one.delete(S)
        assert await reading <= {200, 0}
        assert await two.read(S) == []


async def test_one_who_never_lets_go_makes_the_store_unavailable_not_stuck(state: Path) -> None:
    async with sqlite(state, busy_timeout=0.2) as store:
        with closing(sqlite3.connect(state / "magy.db", isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            appends = [store.append([Batch(f"session/{n}", 0, [said("x")])]) for n in range(3)]
            outcomes = await asyncio.gather(*appends, return_exceptions=True)
            for outcome in outcomes:
                assert isinstance(outcome, StoreUnavailable)
                assert str(state / "magy.db") in outcome.message
                assert "kept it locked" in outcome.message
            assert len({id(outcome) for outcome in outcomes}) == 3
            with pytest.raises(StoreUnavailable):
                await store.lease(S)
            other.execute("ROLLBACK")
        assert await store.lease(S) == Lease(S, 1)
        assert len(await store.append([Batch("session/0", 0, [said("x")])])) == 1


# --- leases -------------------------------------------------------------------------------------


async def test_sigkill_frees_a_lease_though_a_program_lives_on(state: Path, spawn: Spawn) -> None:
    child = await spawn("hold", state, S)
    held = await child.line()
    assert held["epoch"] == 1
    async with sqlite(state) as store:
        assert await store.lease(S) is None
        await child.kill()
        try:
            os.kill(held["program"], 0)  # the program it had started is still there
            assert await store.lease(S) == Lease(S, 2)
        finally:
            os.kill(held["program"], 9)


async def test_a_holder_whose_lease_moved_on_cannot_append(state: Path) -> None:
    async with sqlite(state) as one, sqlite(state) as two:
        lease = await one.lease(S)
        assert lease
        assert await two.lease(S) is None
        (lock,) = (state / "locks").iterdir()
        lock.unlink()  # as a file system that forgets its locks would
        newer = await two.lease(S)
        assert newer == Lease(S, 2)
        with pytest.raises(Conflict, match="now at epoch 2"):
            await one.append([Batch(S, 0, [opened()])], lease)
        await one.release(lease)
        await two.append([Batch(S, 0, [opened()])], newer)
        assert await one.lease(S) is None


async def test_released_leases_leave_no_files(state: Path) -> None:
    async with sqlite(state) as store:
        leases = [await store.lease(f"session/{n}") for n in range(3)]
        assert leases[0]
        await store.release(leases[0])
        assert len(list((state / "locks").iterdir())) == 2
    assert list((state / "locks").iterdir()) == []


def test_nothing_heavy_is_imported_before_a_store_is_opened() -> None:
    code = "import sys, magy_server.store.sqlite; print('aiosqlite' in sys.modules)"
    root = Path(__file__).parents[2]
    run = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True)
    assert run.stdout == "False\n"
