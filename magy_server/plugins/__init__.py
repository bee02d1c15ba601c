"""A plugin is made of these names: all that a package imports to add tools, listeners, contexts and
doors to Magy.

    from magy_server.plugins import Plugin, Result, ToolContext, tool

    @tool(effect="read")
    async def count_words(ctx: ToolContext, text: str) -> Result:
        \"\"\"Count the words of a text.\"\"\"
        return Result(for_model=str(len(text.split())))

    plugin = Plugin(tools=[count_words])

docs/howto/plugins.md tells how it is packed and switched on. What is named here stays as it is
between versions of Magy; the rest of Magy may change.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import field
from typing import Any

from magy_server.core import tool as tools
from magy_server.core.errors import ToolError
from magy_server.core.events import Entry
from magy_server.core.tool import FactContext, FactsFunction, Result, Tool, ToolContext
from magy_server.core.values import Effect, Facts, Resource
from magy_server.dataclass import dataclass

__all__ = [
    "Entry", "FactContext", "Facts", "Plugin", "Resource", "Result", "Tool", "ToolContext",
    "ToolError", "Where", "tool",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Where:
    """The session whose prompt is made: its id, its workspace root (canonical absolute path; None:
    it has no project), the directory that it works in, and its agent."""

    session: str
    root: str | None
    cwd: str
    agent: str


Heard = Callable[[str, Sequence[Entry]], Awaitable[None]]
"""async (session id, what was just appended to its log)."""
Context = Callable[[Where], Awaitable[str]]
"""async (where) -> a section for the prompt, or ""."""
Door = Callable[[Any, str, Sequence[str]], Awaitable[None]]
"""async (the running engine, the workspace root, the words of the command line). The engine is a
`magy_server.api.service.Service`."""


@dataclass(frozen=True, slots=True)
class Plugin:
    """What a package adds. The listeners hear of each append in this process, one after the other.
    The doors are opened with `magy plugins run DOOR`."""

    tools: Sequence[Tool] = ()
    listeners: Sequence[Heard] = ()
    contexts: Sequence[Context] = ()
    doors: Mapping[str, Door] = field(default_factory=dict)


def tool(
    *,
    effect: Effect,
    facts: FactsFunction = tools.no_facts,
    kind: str = "other",
    fresh: float = 0.0,
    seldom: bool = False,
) -> Callable[[Callable[..., Awaitable[Result]]], Tool]:
    """Makes a tool of a typed async function whose first parameter is the context; docs/howto/
    plugins.md says what the parameters mean. Its permission key is that of the plugin."""
    return tools.tool(effect=effect, key="", kind=kind, facts=facts, fresh=fresh, seldom=seldom)
