"""A database that is removed, replaced or emptied while it is used, and an emptied one that is
opened: it is said, and nothing is written into a file that is gone."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from magy_server.core.errors import StoreCorrupt, StoreUnavailable
from magy_server.core.ports import Batch
from tests.contracts.build import said
from tests.contracts.conftest import sqlite

S = "session/one"


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "state"


@pytest.mark.parametrize("name", ["magy.db", "magy.db-wal", "magy.db-shm"])
@pytest.mark.parametrize("what", ["removed", "replaced"])
async def test_a_file_that_is_gone_takes_nothing(state: Path, name: str, what: str) -> None:
    async with sqlite(state) as store:
        await store.append([Batch(S, 0, [said("one")])])
        aside = state / "aside"
        os.rename(state / name, aside)
        if what == "replaced":
            (state / name).write_bytes(aside.read_bytes())
        for attempt in (
            lambda: store.append([Batch(S, 1, [said("two")])]),
            lambda: store.lease(S),
            lambda: store.delete(S),
        ):
            with pytest.raises(
                StoreUnavailable, match=f"{name} was {what}.* Magy writes nothing more"
            ):
                await attempt()
        os.replace(aside, state / name)
        await store.append([Batch(S, 1, [said("two")])])
    async with sqlite(state) as store:
        assert await store.head(S) == 2


async def test_a_file_that_is_emptied_takes_nothing(state: Path) -> None:
    async with sqlite(state) as store:
        await store.append([Batch(S, 0, [said("one")])])
        os.truncate(state / "magy.db", 0)
        with pytest.raises(StoreUnavailable, match="was emptied or cut"):
            await store.append([Batch(S, 1, [said("two")])])
        assert (state / "magy.db").stat().st_size == 0


async def test_an_emptied_file_is_not_a_new_one(state: Path) -> None:
    async with sqlite(state):
        pass
    os.truncate(state / "magy.db", 0)  # nothing was kept in it yet
    async with sqlite(state) as store:
        await store.append([Batch(S, 0, [said("one")])])
    os.truncate(state / "magy.db", 0)
    for _ in range(2):
        with pytest.raises(StoreCorrupt, match="is empty, but it held sessions before"):
            async with sqlite(state):
                pass
        assert (state / "magy.db").stat().st_size == 0
    os.unlink(state / "magy.db")
    async with sqlite(state) as store:
        assert await store.head(S) == 0
