"""`Tasks` gives background tasks an owner; `to_end` finishes work even when its caller is
cancelled."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from magy_server.core.errors import MagyError

LOG = logging.getLogger(__name__)

T = TypeVar("T")
PATIENCE = 60.0
"""Seconds that a process which ends waits for what it has begun."""
MOMENT = 1.0
"""Seconds that it has, once it is to stop."""


def logged(error: BaseException, of: str = "") -> None:
    """Logs an error: as a sentence if Magy raised it on purpose, else with its traceback. `of`:
    whose task it was."""
    foreseen = isinstance(error, MagyError)
    said = f"{of}: {error}" if of else str(error)
    LOG.error("%s", said, exc_info=None if foreseen else error)


def _heard(task: asyncio.Task[Any]) -> None:
    """What it raised concerns only who waits for it, if anybody still does."""
    if not task.cancelled():
        task.exception()


class Tasks:
    """A task that fails ends alone: `failed` is called with what it raised."""

    __slots__ = ("_all", "_failed")

    def __init__(self, failed: Callable[[BaseException], None] = logged) -> None:
        self._failed = failed
        self._all: set[asyncio.Task[Any]] = set()

    def begin(self, work: Coroutine[Any, Any, T], name: str | None = None) -> asyncio.Task[T]:
        task = self._keep(work, name)
        task.add_done_callback(self._done)
        return task

    async def alone(self, work: Coroutine[Any, Any, object]) -> None:
        """Waits until the work is over, whether it fails or not."""
        await asyncio.wait([self.begin(work)])

    async def whole(self, work: Coroutine[Any, Any, T]) -> T:
        """Awaits the work; if the caller is cancelled, the work goes on."""
        task = self._keep(work)
        task.add_done_callback(_heard)
        return await asyncio.shield(task)

    def _keep(self, work: Coroutine[Any, Any, T], name: str | None = None) -> asyncio.Task[T]:
        task = asyncio.create_task(work, name=name)
        self._all.add(task)
        task.add_done_callback(self._all.discard)
        return task

    def _done(self, task: asyncio.Task[Any]) -> None:
        if not task.cancelled() and (error := task.exception()):
            self._failed(error)

    async def settle(self, seconds: float = PATIENCE) -> bool:
        """Waits until all tasks are done, for the end of the process, and stops those that are not
        after so many seconds: a disk may never answer. What is in the midst of `to_end` has a
        moment more, and is left then. Returns whether all were done."""
        tasks = tuple(self._all)
        _, late = await asyncio.wait(tasks, timeout=seconds) if tasks else ((), ())
        for task in late:
            task.cancel()
        if late:
            await asyncio.wait(late, timeout=MOMENT)
        return not late

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
