"""A process that ends waits for what it has begun, and not for ever."""

from __future__ import annotations

import asyncio

from magy_server.tasks import Tasks


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
