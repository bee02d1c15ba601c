"""This module runs blocking work in a thread, and ends it when nobody waits for it any more."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import TypeVar

from magy_server.tasks import to_end

T = TypeVar("T")


class Stopped(Exception):
    """Nobody waits for the result any more."""


async def in_thread(work: Callable[[Callable[[], None]], T]) -> T:
    """Runs `work` in a thread. It calls what it is given now and then, which raises Stopped once
    the awaiting task was cancelled."""
    stop = threading.Event()

    def check() -> None:
        if stop.is_set():
            raise Stopped

    thread = asyncio.ensure_future(asyncio.to_thread(work, check))
    try:
        return await asyncio.shield(thread)
    except asyncio.CancelledError:
        stop.set()
        await to_end(asyncio.wait([thread]))
        if not thread.cancelled():
            thread.exception()  # looked at: it is Stopped, as a rule
        raise
