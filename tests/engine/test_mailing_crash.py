"""A process that stops after any of its appends: what children came to reaches their
parent once all the same, and what waits for them ends."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from magy_server.core.events import Ended, Finished
from magy_server.core.ports import Batch, Lease
from magy_server.store.faulty import FaultyStore, Stop

from .home import Home, delivered, faulty, home, mailed

Point = tuple[str, str, int]
SCRIPT = """
prompt: delegate
call: wait_agent {"job_ids": ["s/2.0", "s/2.1"], "until": "any"}
---
text: One is enough.

prompt: look
text: I looked.

prompt: message
text: I see.
"""
CHILDREN = ("s/2.0", "s/2.1")
OF_A_CHILD = ("opened", "briefed", "replied", "ended")
OF_THE_PARENT = (
    ("opened", 1), ("prompted", 1), ("briefed", 1), ("replied", 1), ("judged", 1), ("started", 1),
    ("finished", 1), ("replied", 2), ("ended", 1),
)  # fmt: skip
POINTS: list[Point] = [
    *((f"session/{id}", kind, 1) for id in CHILDREN for kind in OF_A_CHILD),
    *(("session/s", kind, number) for kind, number in OF_THE_PARENT),
]
"""What a process stops after: the n-th event of a kind in a stream. Every run has all of these."""
SECOND_TURN: set[Point] = {
    ("session/s", "admitted", 2),
    ("session/s", "replied", 3),
    ("session/s", "ended", 2),
}
"""What follows if the other child reports only after the turn that waited for one."""


def stopping(point: Point) -> Stop:
    """The append with this event is done, and neither it nor any other returns: a process that is
    killed then is no different to the log."""
    stream, kind, number = point

    def has_it(batches: Sequence[Batch], lease: Lease | None = None) -> bool:
        events = [event for batch in batches if batch.stream == stream for event in batch.events]
        return kind in [event.type for event in events]

    return Stop("append", number, when=has_it)


def points(store: FaultyStore) -> Iterator[list[Point]]:
    """What each append came to."""
    kinds: Counter[tuple[str, str]] = Counter()
    for _, entries in store.done["append"]:
        came = list[Point]()
        for entry in entries:
            kinds[key := (entry.stream, entry.event.type)] += 1
            came.append((*key, kinds[key]))
        yield came


async def begin(here: Home) -> None:
    """All of it may be repeated."""
    await here.new()
    await here.prompt("s", "delegate")
    for id in CHILDREN:
        await here.child(id, "look", run="p1")
    here.sessions.wake(await here.live("s"))


async def settle(here: Home) -> None:
    for id in CHILDREN:
        await here.rested(id)
    await here.state("s")
    await here.until("s", lambda s: s.turn is None and not s.queue.waiting and s.turns)


async def each_once(here: Home) -> None:
    events = await here.events("s")
    told = [m.sender for m in mailed(events)]
    assert sorted(told) == sorted(CHILDREN)
    for mail in mailed(events):
        assert mail.report and mail.report.status == "completed"
        assert delivered(events, mail.id) == 1
    (waited, *_) = [e for e in events if isinstance(e, Finished)]
    assert waited.status == "completed" and "I looked." in waited.for_model
    assert {e.stop for e in events if isinstance(e, Ended)} == {"end_turn"}


async def test_an_undisturbed_run(tmp_path: Path) -> None:
    store = await faulty(tmp_path)
    async with home(tmp_path, SCRIPT, store=store) as here:
        await begin(here)
        await settle(here)
        await each_once(here)
    # How good an agent is stands in a stream of its own, which is written beside all else.
    appends = [one for one in points(store) if any(at.startswith("session/") for at, _, _ in one)]
    assert set(POINTS) <= {point for append in appends for point in append}
    assert all(set(append) & (set(POINTS) | SECOND_TURN) for append in appends)


@pytest.mark.req("A170", "G027", "A261")
@pytest.mark.parametrize("point", POINTS, ids=lambda point: "-".join(map(str, point)))
async def test_stopped_and_begun_anew(tmp_path: Path, point: Point) -> None:
    stop = stopping(point)
    async with home(tmp_path, SCRIPT, store=await faulty(tmp_path, stop)) as here:

        async def all() -> None:
            await begin(here)
            await settle(here)

        whole = asyncio.create_task(all())
        stopped = asyncio.create_task(stop.reached.wait())
        await asyncio.wait({whole, stopped}, return_when=asyncio.FIRST_COMPLETED)
        assert stop.reached.is_set() and not whole.done()
        for task in (whole, stopped):
            task.cancel()
        await asyncio.gather(whole, stopped, return_exceptions=True)
    async with home(tmp_path, SCRIPT) as here:
        await begin(here)
        await settle(here)
        await each_once(here)
