"""What a plugin raises is caught here, and becomes a sentence that names the package and the line;
nothing else stops for it, and nothing waits for it for long."""

from __future__ import annotations

import asyncio
import logging
import traceback
from collections.abc import Awaitable, Callable, Generator
from functools import partial
from types import coroutine
from typing import Any, TypeVar

from pydantic import ValidationError

from magy_server.core.errors import MagyError, ToolError
from magy_server.core.text.surrogates import whole
from magy_server.plugins.installed import Installed

LOG = logging.getLogger(__name__)
T = TypeVar("T")
STOPPING = 3.0
"""Seconds that a plugin has to stop in when what it does is cancelled."""
SAID = 10_000
"""Characters of a plugin's error that are told."""


class _Raised(Exception):
    """What a plugin raised, perhaps SystemExit, which would end the event loop."""

    def __init__(self, error: BaseException) -> None:
        self.error = error


async def supervised(
    plugin: Installed, what: str, work: Callable[[], Awaitable[T]], stopping: float = STOPPING
) -> T:
    """Calls and awaits what a plugin does; `what` names it for people. Raises ToolError for all
    that the plugin raises, but for the errors that Magy itself has. When it is cancelled, the
    plugin has so many seconds to stop in; then it is left where it is."""
    left = asyncio.Event()
    task = asyncio.create_task(_outcome(work, left), name=f"{what} of the plugin {plugin.name}")
    try:
        await asyncio.wait([task])
    except asyncio.CancelledError:
        if not await _stopped(task, stopping, left):
            said = "%s: %s did not stop within %g s, and was left. Tell its author."
            LOG.warning(said, plugin.title, what, stopping)
        raise
    try:
        return task.result()
    except _Raised as raised:
        error = raised.error
    except asyncio.CancelledError as raised:  # nobody cancelled it
        error = raised
    if isinstance(error, ToolError):
        raise ToolError(_said(error)) from None
    if isinstance(error, MagyError):
        raise error
    LOG.error("%s failed in %s", plugin.title, what, exc_info=error)
    raise ToolError(failure(plugin, what, error)) from None


async def _outcome(work: Callable[[], Awaitable[T]], left: asyncio.Event) -> T:
    """Raises _Raised, and CancelledError."""
    try:
        return await _stoppable(work(), left)
    except (asyncio.CancelledError, GeneratorExit):
        raise
    except BaseException as error:
        raise _Raised(error) from None


@coroutine
def _stoppable(work: Awaitable[T], left: asyncio.Event) -> Generator[Any, Any, T]:
    """Awaits it. What it does about a cancellation is up to it, but for one when it is to be left:
    then this is over, and it stays where it is."""
    steps: Any = work.__await__()
    step = partial(steps.send, None)
    while True:
        try:
            waited = step()
        except StopIteration as end:
            found: T = end.value
            return found
        try:
            step = partial(steps.send, (yield waited))
        except GeneratorExit:
            raise
        except asyncio.CancelledError as error:
            if left.is_set():
                raise
            step = partial(steps.throw, error)
        except BaseException as error:  # of what it waits for
            step = partial(steps.throw, error)


async def _stopped(task: asyncio.Task[Any], seconds: float, left: asyncio.Event) -> bool:
    """Cancels it. Returns whether it stopped by itself within so many seconds."""
    task.cancel()
    try:
        await asyncio.wait([task], timeout=seconds)
    finally:
        if not task.done():
            left.set()
            task.cancel()
        elif not task.cancelled():
            task.exception()  # looked at, so that asyncio does not report it as lost
    return task.done()


def contained(plugin: Installed, what: str, work: Callable[[], T]) -> T:
    """Calls what waits for nothing. Raises ToolError for all that the plugin raises, but for
    ValidationError and the errors that Magy itself has."""
    try:
        return work()
    except (ValidationError, MagyError):
        raise
    except BaseException as error:
        raise ToolError(failure(plugin, what, error)) from None


def bounded(text: str, most: int = SAID) -> str:
    """Returns the text as a log can hold it, with the number of characters that are left out."""
    left = len(text) - most
    return whole(text) if left <= 0 else f"{whole(text[:most])}\n[{left:,} more characters]"


def _said(error: BaseException) -> str:
    try:
        return bounded(str(error))
    except Exception:
        return "(what it says cannot be shown)"


def failure(plugin: Installed, what: str, error: BaseException) -> str:
    """Returns a sentence on an error: whose it is, where, and what to do."""
    return (
        f"{plugin.title} failed in {what}: {type(error).__name__}: {_said(error)}"
        f"{_at(plugin, error)}. {plugin.advice}"
    )


def _at(plugin: Installed, error: BaseException) -> str:
    """Where the plugin's own code was: the innermost line of its package."""
    if isinstance(error, SyntaxError) and error.filename:
        return f", {error.filename}:{error.lineno}"
    frames = traceback.extract_tb(error.__traceback__)
    top = plugin.value.partition(":")[0].partition(".")[0]
    own = [one for one in frames if f"/{top}/" in one.filename or f"/{top}.py" in one.filename]
    return f", {own[-1].filename}:{own[-1].lineno}" if own else ""
