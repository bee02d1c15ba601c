"""A store that goes wrong does so where its script says, and nowhere else."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

import pytest

from magy_server.core.errors import Conflict, StoreUnavailable
from magy_server.core.ports import Batch, Lease, Store
from magy_server.store.faulty import Fault, FaultyStore, Stop
from magy_server.store.memory import MemoryStore
from tests.contracts.build import said
from tests.patience import PATIENCE

S = "session/one"


async def add(store: Store, after: int, stream: str = S) -> None:
    await store.append([Batch(stream, after, [said(str(after + 1))])])


def to_two(batches: Sequence[Batch], lease: Lease | None = None) -> bool:
    return batches[0].stream == "session/two"


async def never_returns(*calls: asyncio.Task[None]) -> None:
    """They are asked to end."""
    done, waiting = await asyncio.wait(calls, timeout=0.05)
    assert not done
    for call in waiting:
        call.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)


@pytest.mark.parametrize("error", [StoreUnavailable, Conflict])
async def test_only_the_second_append_fails_and_changes_nothing(
    error: type[StoreUnavailable] | type[Conflict],
) -> None:
    store = FaultyStore(MemoryStore(), Fault("append", 2, error=error))
    await add(store, 0)
    with pytest.raises(error, match="'append'"):
        await add(store, 1)
    assert await store.head(S) == 1
    await add(store, 1)
    assert await store.head(S) == 2
    assert [[e.seq for e in entries] for _, entries in store.done["append"]] == [[1], [2]]


async def test_without_a_number_each_call_that_is_meant_fails() -> None:
    store = FaultyStore(MemoryStore(), Fault("append", when=to_two, error=StoreUnavailable))
    for after in range(3):
        await add(store, after)
        with pytest.raises(StoreUnavailable):
            await add(store, 0, "session/two")
    assert [await store.head(s) for s in (S, "session/two")] == [3, 0]


async def test_only_what_is_meant_counts() -> None:
    store = FaultyStore(MemoryStore(), Fault("append", 2, when=to_two, error=StoreUnavailable))
    await add(store, 0, "session/two")
    await add(store, 0)
    await add(store, 1)
    with pytest.raises(StoreUnavailable):
        await add(store, 1, "session/two")


async def test_a_call_lasts_longer() -> None:
    store = FaultyStore(MemoryStore(), Fault("read", seconds=0.1))
    began = time.monotonic()
    await store.head(S)
    assert time.monotonic() - began < 0.1
    await store.read(S)
    assert time.monotonic() - began >= 0.1


async def test_a_call_waits_for_the_test_and_then_the_next_fault_befalls_it() -> None:
    gate = asyncio.Event()
    held = Fault("delete", until=gate)
    store = FaultyStore(MemoryStore(), held, Fault("delete", error=StoreUnavailable))
    await add(store, 0)
    deleting = asyncio.create_task(store.delete(S))
    await asyncio.wait_for(held.reached.wait(), PATIENCE)
    assert await store.head(S) == 1 and not deleting.done()
    gate.set()
    with pytest.raises(StoreUnavailable):
        await deleting


async def test_a_stopped_append_is_done_and_no_other_is() -> None:
    stop = Stop("append", 2)
    store = FaultyStore(MemoryStore(), stop)
    await add(store, 0)
    with pytest.raises(Conflict):  # is the store's own, and does not count
        await add(store, 7)
    await never_returns(asyncio.create_task(add(store, 1)), asyncio.create_task(add(store, 2)))
    assert stop.reached.is_set()
    assert await store.head(S) == 2


@pytest.mark.parametrize("name", ["apend", "_held"])
async def test_who_names_no_method_of_a_store_hears_of_it(name: str) -> None:
    with pytest.raises(AttributeError, match=name):
        FaultyStore(MemoryStore(), Fault(name))
