"""Background tasks that have an owner, and work that is done to its end though nobody waits."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def _nobody(error: BaseException) -> None:
    """What it raises concerns only who waits for it."""


class Tasks:
    """`failed` is called with what a task raised, unless it was cancelled."""

    def __init__(self, failed: Callable[[BaseException], None] = _nobody) -> None:
        self._failed = failed
        self._all: set[asyncio.Task[Any]] = set()

    def begin(self, work: Coroutine[Any, Any, T], name: str | None = None) -> asyncio.Task[T]:
        task = asyncio.create_task(work, name=name)
        self._all.add(task)
        task.add_done_callback(self._done)
        return task

    async def whole(self, work: Coroutine[Any, Any, T]) -> T:
        """As `await work`, but a cancellation of who waits leaves the work alone."""
        return await asyncio.shield(self.begin(work))

    def _done(self, task: asyncio.Task[Any]) -> None:
        self._all.discard(task)
        if not task.cancelled() and (error := task.exception()):
            self._failed(error)

    async def settle(self) -> None:
        """What was begun is done; for the end of the process."""
        await asyncio.gather(*self._all, return_exceptions=True)

    async def cancel(self) -> None:
        """Stops all of them, and waits until they have stopped."""
        tasks = tuple(self._all)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def to_end(work: Awaitable[T]) -> T:
    """Awaits `work` to its end even when cancelled meanwhile: a thread cannot be stopped, and what
    it does must be over before the call is closed. The cancellation is raised afterwards."""
    task = asyncio.ensure_future(work)
    cancelled = False
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError:
            cancelled = True
    if cancelled:
        if not task.cancelled():
            task.exception()  # looked at, so that asyncio does not report it as lost
        raise asyncio.CancelledError
    return task.result()
