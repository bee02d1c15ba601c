"""A process that ends waits for what it has begun, and not for ever."""

from __future__ import annotations

import asyncio

from magy_server.tasks import Tasks, to_end
from tests.patience import PATIENCE


async def test_what_was_begun_is_done() -> None:
    done = []

    async def work() -> None:
        await asyncio.sleep(0.01)
        done.append(1)

    tasks = Tasks()
    tasks.begin(work())
    assert await tasks.settle() and done
    assert await tasks.settle(), "there is nothing to wait for"


async def test_what_never_ends_is_stopped() -> None:
    """An append to a disk that does not answer, say."""
    tasks = Tasks()
    stuck = tasks.begin(asyncio.Event().wait())
    waiting = asyncio.create_task(tasks.whole(asyncio.Event().wait()))
    await asyncio.sleep(0)
    assert not await tasks.settle(0.01)
    assert stuck.cancelled()
    assert await asyncio.gather(waiting, return_exceptions=True)


async def test_what_cannot_be_stopped_holds_up_no_end() -> None:
    """A thread that waits for such a disk."""
    answers = asyncio.Event()
    tasks = Tasks()
    tasks.begin(to_end(answers.wait()))
    await asyncio.sleep(0)
    async with asyncio.timeout(PATIENCE):
        assert not await tasks.settle(0.01)
    answers.set()
    assert await tasks.settle()
