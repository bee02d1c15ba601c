"""What completion takes is counted by the day, whichever process took it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from magy_server.api.completions.spending import KEPT, Day, Spending, stream_of_day
from magy_server.core.events import Suggested
from magy_server.core.values import Usage
from magy_server.store.memory import MemoryStore

DAY = 86_400.0
NOON = 1_764_158_400.0


class Clock:
    def __init__(self, now: float) -> None:
        self.time = now

    def now(self) -> float:
        return self.time


def took(input: int, cost: float | None, **more: str) -> Suggested:
    about = {"outcome": "text", **more}
    return Suggested.model_validate(
        {"root": None, "model": "a/b", "usage": Usage(input=input), "cost": cost, **about}
    )


@pytest.mark.req("G009")
async def test_processes_that_count_at_once_lose_nothing() -> None:
    store, clock = MemoryStore(), Clock(NOON)
    all_ = [Spending(store, clock) for _ in range(8)]
    await asyncio.gather(*(one.record(took(10, 0.5)) for one in all_))
    assert await Spending(store, clock).today() == Day(requests=8, tokens=80, cost=4.0)
    entries: Sequence[object] = await store.read(stream_of_day(NOON))
    assert len(entries) == 8


async def test_each_day_begins_with_nothing_and_old_ones_go() -> None:
    clock = Clock(NOON)
    store = MemoryStore()
    spending = Spending(store, clock)
    await spending.record(took(10, 0.5))
    clock.time += DAY
    assert await spending.today() == Day()
    await spending.record(took(1, None))
    assert (await spending.today()).cost == 0.0
    assert await store.head(stream_of_day(NOON)) == 1
    clock.time = NOON + (KEPT + 1) * DAY
    await spending.record(took(1, 0.1))
    assert await store.head(stream_of_day(NOON)) == 0
    assert await store.head(stream_of_day(NOON + DAY)) == 1


async def test_the_day_knows_why_the_latest_request_failed() -> None:
    spending = Spending(MemoryStore(), Clock(NOON))
    await spending.record(took(0, None, outcome="failed", why="The key is wrong."))
    await spending.record(took(0, 0.1, outcome="cancelled"))
    assert (await spending.today()).fault == "The key is wrong."
    await spending.record(took(5, 0.1))
    assert not (await spending.today()).fault
