"""A process that stops after any of its appends: what children came to reaches their
parent once all the same, and what waits for them ends."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from magy_server.core.events import Ended, Entry, Finished
from magy_server.store.sqlite import SqliteStore

from .home import Home, delivered, home, mailed

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


class Stopping:
    """The append with the event at `point` is done, and neither it nor any other returns: a process
    that is killed then is no different to the log."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, point: Point | None) -> None:
        self.stopped = asyncio.Event()
        self.armed = True
        self.appends: list[list[Point]] = []
        kinds: Counter[tuple[str, str]] = Counter()
        append = SqliteStore.append

        def points(entries: Sequence[Entry]) -> Iterator[Point]:
            for entry in entries:
                kinds[key := (entry.stream, entry.event.type)] += 1
                yield *key, kinds[key]

        async def stopping(store: SqliteStore, *args: Any, **kwargs: Any) -> Any:
            if not (self.armed and self.stopped.is_set()):
                done = await append(store, *args, **kwargs)
                if not self.armed:
                    return done
                self.appends.append(list(points(done)))
                if point not in self.appends[-1] and not self.stopped.is_set():
                    return done
                self.stopped.set()
            return await asyncio.get_running_loop().create_future()

        monkeypatch.setattr(SqliteStore, "append", stopping)


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


async def test_an_undisturbed_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stopping = Stopping(monkeypatch, None)
    async with home(tmp_path, SCRIPT) as here:
        await begin(here)
        await settle(here)
        await each_once(here)
    seen = {point for points in stopping.appends for point in points}
    assert set(POINTS) <= seen
    assert all(set(points) & (set(POINTS) | SECOND_TURN) for points in stopping.appends)


@pytest.mark.req("A170", "G027", "A261")
@pytest.mark.parametrize("point", POINTS, ids=lambda point: "-".join(map(str, point)))
async def test_stopped_and_begun_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, point: Point
) -> None:
    stopping = Stopping(monkeypatch, point)
    async with home(tmp_path, SCRIPT) as here:

        async def all() -> None:
            await begin(here)
            await settle(here)

        whole = asyncio.create_task(all())
        stop = asyncio.create_task(stopping.stopped.wait())
        await asyncio.wait({whole, stop}, return_when=asyncio.FIRST_COMPLETED)
        assert stopping.stopped.is_set() and not whole.done()
        for task in (whole, stop):
            task.cancel()
        await asyncio.gather(whole, stop, return_exceptions=True)
    stopping.armed = False
    async with home(tmp_path, SCRIPT) as here:
        await begin(here)
        await settle(here)
        await each_once(here)
