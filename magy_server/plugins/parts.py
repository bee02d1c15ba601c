"""The parts of a plugin become parts of Magy here: tools with the plugin's permission key,
listeners that hold nobody up, and sections of prompts."""

from __future__ import annotations

import asyncio
import json
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any

from magy_server.core.agents.tree import id_of
from magy_server.core.errors import ToolError
from magy_server.core.events import Entry
from magy_server.core.state.state import State
from magy_server.core.tool import FactContext, Gathered, Result, Tool, ToolContext
from magy_server.core.values import Effect, Resource
from magy_server.plugins import Context, Heard, Where
from magy_server.plugins.installed import Installed
from magy_server.plugins.supervising import supervised
from magy_server.tasks import Tasks

LOG = logging.getLogger(__name__)
SHOWN = 30_000
"""Characters of a tool's answer that a model gets; the whole is kept."""
SECTION = 20_000
"""Characters of a context that a prompt gets."""
CONTEXT_TIME = 10.0
"""Seconds that a context may take..."""
LISTENER_TIME = 30.0
"""...and a listener, for one append."""
WAITING = 1_000
"""Appends that wait for a listener; with more it is too slow, and is told of no more."""
FAILURES = 5
"""After so many in a row a listener is told of no more."""
ENDING = 5.0
"""Seconds that listeners have at the end of the process for what they are still told."""


def key_of(plugin: Installed) -> str:
    """Returns the permission key of the plugin's tools."""
    return f"plugin_{plugin.name}"


# --- tools ----------------------------------------------------------------------------------------


def tool_of(plugin: Installed, given: Tool) -> Tool:
    """Returns the tool as sessions have it. Its name stands under the plugin's key among what a
    call touches, so that nothing that it says of itself keeps a call from being judged."""
    about = f"the tool {given.name}"
    reaches: Effect = "exec" if given.effect in ("read", "write") else "net"

    async def facts(ctx: FactContext, **arguments: Any) -> Gathered:
        found, blobs = await supervised(plugin, about, given.facts(ctx, **arguments))
        own = Resource(kind=reaches, subject=given.name)
        title = found.title or _title(plugin, given, arguments)
        whole = found.model_copy(update={"resources": (own, *found.resources), "title": title})
        return whole, blobs

    async def run(ctx: ToolContext, **arguments: Any) -> Result:
        if given.effect != "read":
            await ctx.started()
        result = await supervised(plugin, about, given.run(ctx, **arguments))
        if not isinstance(result, Result):
            raise ToolError(
                f"{plugin.title}: {about} returned {type(result).__name__}, not a Result. Tell its "
                "author."
            )
        return _bounded(result, ctx.call)

    return replace(given, key=key_of(plugin), facts=facts, run=run)


def _title(plugin: Installed, given: Tool, arguments: dict[str, Any]) -> str:
    said = json.dumps(arguments, ensure_ascii=False, default=str) if arguments else ""
    return f"{given.name} of the plugin {plugin.name}{f': {said}' if said else ''}"


def _bounded(result: Result, call: str) -> Result:
    text = result.for_model
    if len(text) <= SHOWN:
        return result
    said = f'read on with bash_output(call_id="{call}", offset={SHOWN})'
    cut = f"{text[:SHOWN]}\n[{len(text) - SHOWN:,} more characters; {said}]"
    whole = result.output or text.encode("utf-8", "replace")
    return replace(result, for_model=cut, output=whole)


# --- contexts -------------------------------------------------------------------------------------

Provider = Callable[[State], Awaitable[Sequence[tuple[str, str]]]]
"""`engine.world.ContextProvider`."""


def provider_of(plugin: Installed, contexts: Sequence[Context]) -> Provider:
    """Returns what adds one section to prompts, with the texts of all contexts that have any."""

    async def provider(state: State) -> Sequence[tuple[str, str]]:
        opened = state.opened
        if opened is None:
            return []
        where = Where(id_of(state.stream), state.root, state.place, state.agent)
        said = [text for one in contexts if (text := await _context(plugin, one, where))]
        return [(key_of(plugin), "\n\n".join(said)[:SECTION])] if said else []

    return provider


async def _context(plugin: Installed, context: Context, where: Where) -> str:
    about = f"a context ({_name(context)})"
    try:
        async with asyncio.timeout(CONTEXT_TIME):
            text = await supervised(plugin, about, context(where))
    except TimeoutError:
        LOG.warning("%s: %s took more than %g s.", plugin.title, about, CONTEXT_TIME)
        return ""
    except ToolError as error:
        LOG.warning("%s", error.message)
        return ""
    return str(text or "")


def _name(given: object) -> str:
    return str(getattr(given, "__qualname__", type(given).__name__))


# --- listeners ------------------------------------------------------------------------------------


class Listening:
    """Implements `engine.session.Listener`: a plugin's listener is told of appends in their order,
    beside all that goes on."""

    def __init__(self, plugin: Installed, heard: Heard) -> None:
        self._plugin = plugin
        self._heard = heard
        self._about = f"a listener ({_name(heard)})"
        self._waiting: deque[tuple[str, Sequence[Entry]]] = deque()
        self._tasks = Tasks()
        self._telling = False
        self._failures = 0
        self._off = False

    def __call__(self, state: State, entries: Sequence[Entry]) -> None:
        if self._off:
            return
        if len(self._waiting) >= WAITING:
            self._leave(f"it is {WAITING} appends behind")
            return
        self._waiting.append((id_of(state.stream), tuple(entries)))
        if not self._telling:
            self._telling = True
            self._tasks.begin(self._tell(), f"listener of {self._plugin.name}")

    async def _tell(self) -> None:
        try:
            while self._waiting and not self._off:
                await self._one(*self._waiting.popleft())
        finally:
            self._telling = False

    async def _one(self, session: str, entries: Sequence[Entry]) -> None:
        try:
            async with asyncio.timeout(LISTENER_TIME):
                await supervised(self._plugin, self._about, self._heard(session, entries))
            self._failures = 0
            return
        except TimeoutError:
            said = f"{self._plugin.title}: {self._about} took more than {LISTENER_TIME:g} s."
        except ToolError as error:
            said = error.message
        LOG.warning("%s", said)
        self._failures += 1
        if self._failures >= FAILURES:
            self._leave(f"it failed {FAILURES} times in a row")

    def _leave(self, why: str) -> None:
        self._off = True
        self._waiting.clear()
        said = f"{self._about} is told of nothing more until Magy is started again: {why}"
        LOG.warning("%s: %s.", self._plugin.title, said)

    async def close(self) -> None:
        await self._tasks.settle(ENDING)
