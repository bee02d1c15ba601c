"""This module says how often Python looks for cycles of garbage.

While Magy starts, it does not look: what is imported stays, and to go through all of it was a sixth
of the start. Once an engine runs, what is there by then is never looked through again.
"""

from __future__ import annotations

import gc
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import ParamSpec, TypeVar

STARTING = (200_000, 10, 50)
"""As `gc.set_threshold` has it: twice as much as a start makes, so that a command without an engine
does not grow for ever."""
RUNNING = (20_000, 10, 50)
"""Logs are folded into hundreds of thousands of values without a cycle: to look through all of them
is to stand still for half a second, so that it is done rarely."""

P = ParamSpec("P")
T = TypeVar("T")


def begin() -> None:
    """Call it before anything is imported."""
    gc.set_threshold(*STARTING)


def once_running(
    compose: Callable[P, AbstractAsyncContextManager[T]],
) -> Callable[P, AbstractAsyncContextManager[T]]:
    """Returns `compose`, after whose start garbage is looked for."""

    @asynccontextmanager
    async def composed(*args: P.args, **given: P.kwargs) -> AsyncIterator[T]:
        async with compose(*args, **given) as made:
            gc.freeze()
            gc.set_threshold(*RUNNING)
            yield made

    return composed
