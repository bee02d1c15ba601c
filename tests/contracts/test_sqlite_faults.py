"""The store on full and read-only disks, and with damaged, foreign and newer files."""

from __future__ import annotations

import asyncio
import errno
import os
import resource
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path

import pytest

from magy_server.core.agents.tree import Stream
from magy_server.core.errors import (
    InvalidRequest,
    NotFound,
    StoreCorrupt,
    StoreNewer,
    StoreUnavailable,
)
from magy_server.core.ports import Batch
from magy_server.store.schema import MIGRATIONS, migrate, open_database
from tests.contracts.build import blob, finished, hash_of, said
from tests.contracts.conftest import sqlite
from tests.disks import filled, small_disk

S = "session/one"


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "state"


def change(state: Path, *statements: str) -> None:
    """What another program does to the file."""
    with closing(sqlite3.connect(state / "magy.db", isolation_level=None)) as db:
        for statement in statements:
            db.execute(statement)


# --- disks that do not take it ------------------------------------------------------------------


@contextmanager
def quota(state: Path) -> Iterator[None]:
    """No file of this process may grow any more: the kernel's own limit (EFBIG)."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    size = (state / "magy.db-wal").stat().st_size
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + 1000, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


async def test_a_name_that_is_no_text_is_refused(state: Path) -> None:
    async with sqlite(state) as store:
        with pytest.raises(InvalidRequest, match=r"'session/\\udcff' is not UTF-8"):
            await store.info(Stream(os.fsdecode(b"session/\xff")))


async def _runs_out_and_recovers(
    state: Path, full: Callable[[Path], AbstractContextManager[None]]
) -> None:
    async with sqlite(state) as store:
        await store.append([Batch(S, 0, [said("before")])])
        with full(state):
            big = "x" * 300_000
            appends = [
                store.append([Batch(S, 1, [finished(big)], blob(big))]),
                store.append([Batch("session/two", 0, [said("small")])]),
            ]
            for outcome in await asyncio.gather(*appends, return_exceptions=True):
                assert isinstance(outcome, StoreUnavailable)
                assert str(state / "magy.db") in outcome.message
                assert "space" in outcome.message
            assert [entry.seq for entry in await store.read(S)] == [1]
            assert await store.head("session/two") == 0
        with pytest.raises(NotFound):
            await store.blob(hash_of(big))
        await store.append([Batch(S, 1, [finished(big)], blob(big))])
        assert await store.blob(hash_of(big)) == big.encode()
    async with sqlite(state) as store:
        assert [entry.seq for entry in await store.read(S)] == [1, 2]


async def test_a_quota_is_reached_and_lifted(state: Path) -> None:
    await _runs_out_and_recovers(state, quota)


async def test_a_full_disk_and_space_again(tmp_path: Path) -> None:
    """Where no file system can be mounted, the quota once more."""
    with small_disk(tmp_path / "disk") as mounted:
        await _runs_out_and_recovers(tmp_path / "disk" / "state", filled if mounted else quota)


@contextmanager
def powerless(directory: Path) -> Iterator[None]:
    """As a user to whom the modes of files mean something; root gives its powers up meanwhile."""
    if os.geteuid() != 0:
        yield
        return
    for path in (directory, *directory.rglob("*")):
        os.chown(path, 65534, 65534)
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def public() -> Iterator[Path]:
    """A directory whose parents anyone may enter."""
    path = Path(tempfile.mkdtemp(prefix="magy-", dir="/tmp"))
    yield path
    shutil.rmtree(path)


async def test_a_read_only_directory_is_refused_in_words(public: Path) -> None:
    public.chmod(0o500)
    with powerless(public):
        with pytest.raises(StoreUnavailable, match="is yours and writable") as caught:
            async with sqlite(public):
                pass
        cause = caught.value.__cause__
        assert isinstance(cause, OSError) and cause.errno == errno.EACCES
        with pytest.raises(StoreUnavailable):
            async with sqlite(public / "below"):
                pass


async def test_a_read_only_file_is_refused_in_words(public: Path) -> None:
    async with sqlite(public) as store:
        await store.append([Batch(S, 0, [said("x")])])
    (public / "magy.db").chmod(0o400)
    with powerless(public):
        with pytest.raises(StoreUnavailable, match="writable"):
            async with sqlite(public) as store:
                await store.append([Batch(S, 1, [said("y")])])
        (public / "magy.db").chmod(0o600)
        async with sqlite(public) as store:
            assert len(await store.append([Batch(S, 1, [said("y")])])) == 1


# --- damage and other versions ------------------------------------------------------------------


async def test_a_file_that_is_no_database(state: Path) -> None:
    state.mkdir()
    (state / "magy.db").write_bytes(b"garbage " * 1000)
    with pytest.raises(StoreCorrupt, match="magy doctor") as caught:
        async with sqlite(state):
            pass
    assert str(state / "magy.db") in caught.value.message
    assert "move the file away" in caught.value.message
    assert (state / "magy.db").read_bytes() == b"garbage " * 1000


async def test_a_database_with_damaged_pages(state: Path) -> None:
    async with sqlite(state) as store:
        await store.append([Batch(S, 0, [said("x" * 200) for _ in range(500)])])
    data = bytearray((state / "magy.db").read_bytes())
    for at in range(16 * 4096, len(data)):
        data[at] = at * 7 % 251
    (state / "magy.db").write_bytes(data)
    async with sqlite(state) as store:
        with pytest.raises(StoreCorrupt, match="is damaged"):
            await store.read(S)


async def test_a_database_of_another_program(state: Path) -> None:
    state.mkdir()
    change(state, "CREATE TABLE songs (name)")
    before = (state / "magy.db").read_bytes()
    with pytest.raises(StoreCorrupt, match="of another program"):
        async with sqlite(state):
            pass
    with closing(sqlite3.connect(state / "magy.db")) as db:
        assert db.execute("SELECT name FROM sqlite_master").fetchall() == [("songs",)]
    assert len(before) == (state / "magy.db").stat().st_size


async def test_a_database_of_a_newer_magy(state: Path) -> None:
    async with sqlite(state):
        pass
    change(state, "PRAGMA user_version = 99")
    with pytest.raises(StoreNewer, match="written by a newer Magy") as caught:
        async with sqlite(state):
            pass
    assert str(state / "magy.db") in caught.value.message


async def test_an_older_database_is_brought_up_to_date_whole(state: Path) -> None:
    async with sqlite(state) as store:
        await store.append([Batch(S, 0, [said("x")])])
    path = str(state / "magy.db")
    failing = (*MIGRATIONS, ("CREATE TABLE more (x)",), ("CREATE TABLE entries (x)",))
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        with pytest.raises(sqlite3.OperationalError, match="already exists"):
            migrate(db, path, failing)
        assert db.execute("PRAGMA user_version").fetchone() == (len(MIGRATIONS),)
        assert not db.execute("SELECT * FROM sqlite_master WHERE name = 'more'").fetchall()
        migrate(db, path, failing[:-1])
        assert db.execute("PRAGMA user_version").fetchone() == (len(MIGRATIONS) + 1,)
        assert db.execute("SELECT count(*) FROM entries").fetchone() == (1,)


async def test_two_that_make_the_tables_at_once_take_each_other_for_magy(state: Path) -> None:
    """Another one makes them between two of the looks of this one."""
    state.mkdir()
    path = str(state / "magy.db")
    others: list[sqlite3.Connection] = []

    def meanwhile(statement: str) -> None:
        if "sqlite_master" in statement and not others:
            others.append(open_database(path, 10))

    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA journal_mode = WAL")
        db.set_trace_callback(meanwhile)
        migrate(db, path)
        assert db.execute("PRAGMA user_version").fetchone() == (len(MIGRATIONS),)
    (other,) = others
    other.close()


@pytest.mark.parametrize(
    ("damage", "error", "words"),
    [
        ("body = x'7b'", StoreCorrupt, "session/one, entry 2 cannot be read"),
        ("body = x'ff'", StoreCorrupt, "session/one, entry 2 cannot be read"),
        ("""body = '{"type":"resumed"}'""", StoreCorrupt, "by: Field required"),
        ("""body = '{"type":"dreamt","of":"x"}'""", StoreNewer, "entry 2 was written by a newer"),
        ("""body = '{"type":"resumed","by":"p","mood":"x"}'""", StoreNewer, "by a newer Magy"),
        ("seq = 9", StoreCorrupt, "entries 2 to 2 are missing"),
    ],
)
async def test_one_bad_entry_stops_only_its_stream(
    state: Path, damage: str, error: type[Exception], words: str
) -> None:
    async with sqlite(state) as store:
        for stream in (S, "session/two"):
            await store.append([Batch(stream, 0, [said("1"), said("2"), said("3")])])
        change(state, f"UPDATE entries SET {damage} WHERE stream = '{S}' AND seq = 2")
        with pytest.raises(error, match=words):
            await store.read(S)
        assert len(await store.read(S, limit=1)) == 1
        assert len(await store.read("session/two")) == 3
        assert len((await store.streams("session/")).items) == 2
        assert await store.delete(S)


async def test_a_changed_blob_is_noticed(state: Path) -> None:
    async with sqlite(state) as store:
        await store.append([Batch(S, 0, [finished("long")], blob("long"))])
        change(state, "UPDATE blobs SET data = x'00'")
        with pytest.raises(StoreCorrupt, match=hash_of("long")):
            await store.blob(hash_of("long"))
