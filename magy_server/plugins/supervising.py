"""What a plugin raises is caught here, and becomes a sentence that names the package and the line;
nothing else stops for it."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Awaitable
from typing import TypeVar

from magy_server.core.errors import MagyError, ToolError
from magy_server.plugins.installed import Installed

LOG = logging.getLogger(__name__)
T = TypeVar("T")


async def supervised(plugin: Installed, what: str, work: Awaitable[T]) -> T:
    """Awaits what a plugin does; `what` names it for people. Raises ToolError for all that the
    plugin raises, but for the errors that Magy itself has."""
    try:
        return await work
    except MagyError:
        raise
    except Exception as error:
        LOG.exception("%s failed in %s", plugin.title, what)
        raise ToolError(failure(plugin, what, error)) from None


def failure(plugin: Installed, what: str, error: BaseException) -> str:
    """Returns a sentence on an error: whose it is, where, and what to do."""
    return (
        f"{plugin.title} failed in {what}: {type(error).__name__}: {error}{_at(plugin, error)}. "
        f"Tell its author; `magy plugins disable {plugin.name}` switches it off."
    )


def _at(plugin: Installed, error: BaseException) -> str:
    """Where the plugin's own code was: the innermost line of its package."""
    if isinstance(error, SyntaxError) and error.filename:
        return f", {error.filename}:{error.lineno}"
    frames = traceback.extract_tb(error.__traceback__)
    top = plugin.value.partition(":")[0].partition(".")[0]
    own = [one for one in frames if f"/{top}/" in one.filename or f"/{top}.py" in one.filename]
    return f", {own[-1].filename}:{own[-1].lineno}" if own else ""
