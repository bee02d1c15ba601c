"""Awaiting what must not be left half-done."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

T = TypeVar("T")


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
