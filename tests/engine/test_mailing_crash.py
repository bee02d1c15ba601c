"""A process that stops after any of its appends: what children came to reaches their
parent once all the same, and what waits for them ends."""

from __future__ import annotations

import asyncio
import itertools
from pathlib import Path
from typing import Any

import pytest

from magy_server.core.events import Ended, Finished
from magy_server.store.sqlite import SqliteStore

from .home import Home, delivered, home, mailed

APPENDS = 30
"""Of an undisturbed run, at most; `test_an_undisturbed_run` holds it to that."""
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


class Stopping:
    """The n-th append is done, and neither it nor any after it returns: a process that is killed
    then is no different to the log."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
        self.stopped = asyncio.Event()
        self.armed = True
        self.count = 0
        numbers, append = itertools.count(1), SqliteStore.append

        async def stopping(store: SqliteStore, *args: Any, **kwargs: Any) -> Any:
            self.count = next(numbers) if self.armed else 0
            done = await append(store, *args, **kwargs) if self.count <= number else None
            if self.count < number:
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
    here.runner.wake(await here.live("s"))


async def settle(here: Home) -> None:
    for id in CHILDREN:
        await here.rested(id)
    await here.state("s")
    await here.until("s", lambda s: s.turn is None and not s.waiting and s.turns)


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
    stopping = Stopping(monkeypatch, 1_000)
    async with home(tmp_path, SCRIPT) as here:
        await begin(here)
        await settle(here)
        await each_once(here)
    assert stopping.count <= APPENDS


@pytest.mark.req("A170", "G027")
@pytest.mark.parametrize("number", range(1, APPENDS + 1))
async def test_stopped_and_begun_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    stopping = Stopping(monkeypatch, number)
    async with home(tmp_path, SCRIPT) as here:

        async def all() -> None:
            await begin(here)
            await settle(here)

        whole = asyncio.create_task(all())
        stop = asyncio.create_task(stopping.stopped.wait())
        await asyncio.wait({whole, stop}, return_when=asyncio.FIRST_COMPLETED)
        for task in (whole, stop):
            task.cancel()
        await asyncio.gather(whole, stop, return_exceptions=True)
    stopping.armed = False
    async with home(tmp_path, SCRIPT) as here:
        await begin(here)
        await settle(here)
        await each_once(here)
