"""Work that is done to its end, also when who asked for it is gone meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class Whole:
    """`await whole(work)` is as `await work`, but a cancellation leaves the work alone."""

    def __init__(self) -> None:
        self._doing: set[asyncio.Task[Any]] = set()

    async def __call__(self, work: Coroutine[Any, Any, T]) -> T:
        return await asyncio.shield(self.begin(work))

    def begin(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Nobody need wait for it; what it raises concerns only who does."""
        task = asyncio.ensure_future(work)
        self._doing.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[Any]) -> None:
        self._doing.discard(task)
        if not task.cancelled():
            task.exception()  # who asked is told; when that one is gone, it concerns nobody

    async def settle(self) -> None:
        """What was begun is done; for the end of the process."""
        await asyncio.gather(*self._doing, return_exceptions=True)
