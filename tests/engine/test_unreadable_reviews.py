"""A review that a newer Magy wrote concerns its own file, and nothing else."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from magy_server.core.errors import StoreNewer
from magy_server.core.reviews.review_events import Reviewed
from magy_server.core.values import Version
from magy_server.reviews import streams
from magy_server.reviews.streams import APPLIED, Standing, stream_of
from magy_server.store.sqlite import SqliteStore

OWN, OTHER = "/project/own.py", "/project/other.py"


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    """Two files are under review."""
    store = await SqliteStore.open(tmp_path)
    for path in (OWN, OTHER):
        event = Reviewed(root="/project", path=path, base=Version(), agent=Version())
        await store.append([streams.batch(Standing(stream_of(path, False)), [event], {}, True)])
    yield store
    await store.close()


def newer(path: str, table: str, column: str, place: str) -> None:
    """Adds what this Magy does not know to what is stored of `OTHER`."""
    with sqlite3.connect(path) as db:
        db.execute(
            f"UPDATE {table} SET {column} = CAST(json_set({column}, ?, 1) AS BLOB) "
            "WHERE stream = ?",
            (place, stream_of(OTHER, False)),
        )
    db.close()


async def standing(store: SqliteStore) -> Standing:
    info = await store.info(stream_of(OTHER, False))
    assert info
    return await streams.standing_of(store, info)


async def test_a_summary_that_cannot_be_read_is_made_good_by_the_log(store: SqliteStore) -> None:
    newer(store.path, "streams", "summary", "$.reviewed.later")
    at = await standing(store)
    assert (at.seq, at.pending, at.event and at.event.path) == (1, True, OTHER)


async def test_one_that_cannot_be_read_is_left_out_and_says_why(store: SqliteStore) -> None:
    newer(store.path, "streams", "summary", "$.reviewed.later")
    newer(store.path, "entries", "body", "$.later")
    found = await streams.standings(store, streams.prefix_of(APPLIED, "/project"))
    assert [at.event.path for at in found if at.event] == [OWN]
    with pytest.raises(StoreNewer, match="newer Magy"):
        await standing(store)
