"""The parts of a plugin become parts of Magy here: tools with the plugin's permission key,
listeners that hold nobody up, and sections of prompts."""

from __future__ import annotations

import asyncio
import json
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from magy_server.core.agents.tree import id_of
from magy_server.core.errors import MagyError
from magy_server.core.events import Entry, Finished
from magy_server.core.state.state import State
from magy_server.core.text.surrogates import whole
from magy_server.core.tool import (
    PLUGIN,
    FactContext,
    Gathered,
    Result,
    Shape,
    Tool,
    ToolContext,
)
from magy_server.core.values import Effect, Facts, Resource, Value, digest
from magy_server.plugins import Context, Heard, Where
from magy_server.plugins.installed import Installed
from magy_server.plugins.supervising import bounded, contained, supervised
from magy_server.tasks import Tasks

LOG = logging.getLogger(__name__)
SHOWN = 30_000
"""Characters of a tool's answer that a model gets; the whole is kept."""
KEPT = 16 << 20
"""Bytes that are kept of an answer..."""
LARGEST = 1 << 20
"""...and of what it says of files."""
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
    return f"{PLUGIN}{plugin.name}"


# --- tools ----------------------------------------------------------------------------------------


def tool_of(plugin: Installed, given: Tool) -> Tool:
    """Returns the tool as sessions have it. Its name stands under the plugin's key among what a
    call touches, so that nothing that it says of itself keeps a call from being judged."""
    about = f"the tool {given.name}"
    reaches: Effect = "exec" if given.effect in ("read", "write") else "net"

    async def facts(ctx: FactContext, **arguments: Any) -> Gathered:
        async def found() -> Gathered:
            own = Resource(kind=reaches, subject=given.name)
            title = _title(plugin, given, arguments)
            return _facts(await given.facts(ctx, **arguments), own, title)

        return await supervised(plugin, about, found)

    async def run(ctx: ToolContext, **arguments: Any) -> Result:
        async def ran() -> Result:
            return _result(await given.run(ctx, **arguments), ctx.call)

        if given.effect != "read":
            await ctx.started()
        return await supervised(plugin, about, ran)

    return replace(
        given, key=key_of(plugin), facts=facts, run=run, recover=None,
        # What edits is not asked about where changes are only proposed; this one would be made.
        kind="execute" if given.kind == "edit" else given.kind,
        description=whole(given.description),
        shape=_Shape(plugin, about, given.shape),
    )  # fmt: skip


class _Shape:
    """Implements `core.tool.Shape`: the types of parameters may have checks of the plugin's own."""

    def __init__(self, plugin: Installed, about: str, given: Shape) -> None:
        self.schema = given.schema
        self._plugin = plugin
        self._about = about
        self._given = given

    def arguments(self, raw: Mapping[str, Any]) -> dict[str, Any]:
        return contained(self._plugin, self._about, lambda: self._given.arguments(raw))


def _title(plugin: Installed, given: Tool, arguments: dict[str, Any]) -> str:
    said = json.dumps(arguments, ensure_ascii=False, default=str) if arguments else ""
    return f"{given.name} of the plugin {plugin.name}{f': {said}' if said else ''}"


def _facts(given: object, own: Resource, title: str) -> Gathered:
    """Returns what a plugin found out, as far as it is its to say: nothing of sandboxes, hooks and
    strangers. `title`: for a call that it has no words for. Raises TypeError, ValueError."""
    if not isinstance(given, tuple) or len(given) != 2 or not isinstance(given[0], Facts):
        raise TypeError("its facts function did not return Facts and a dict of blobs")
    said: Facts = given[0]
    found = Facts(
        resources=(own, *said.resources), cwd=said.cwd, preview=said.preview, code=said.code,
        problem=said.problem,
    )  # fmt: skip
    _holds(found)
    shown = bounded(said.title, SHOWN) if said.title else whole(title)
    return found.model_copy(update={"title": shown}), _blobs(given[1])


def _result(given: object, call: str) -> Result:
    """Returns a plugin's result as a log can hold it. Raises TypeError, ValueError."""
    if not isinstance(given, Result):
        raise TypeError(f"returned {type(given).__name__}, not a Result")
    for name in ("for_model", "for_user", "diff"):
        if not isinstance(value := getattr(given, name), str):
            raise TypeError(f"the {name} of its Result is {type(value).__name__}, not str")
        if len(value) > KEPT:
            raise ValueError(f"the {name} of its Result has more than {KEPT >> 20} MB")
    if not isinstance(given.output, bytes | None) or len(given.output or b"") > KEPT:
        raise TypeError(f"the output of its Result is not bytes, at most {KEPT >> 20} MB")
    if given.events:
        raise ValueError("its Result has events, which only tools of Magy may have")
    end = Finished(
        call=call, status="completed", for_model="", background=given.background,
        changes=tuple(given.changes), seen=tuple(given.seen), images=tuple(given.images),
    )  # fmt: skip
    _holds(end)
    result = replace(
        given,
        for_model=whole(given.for_model),
        for_user=bounded(given.for_user, SHOWN),
        diff=whole(given.diff),
        blobs=_blobs(given.blobs),
        changes=end.changes,
        seen=end.seen,
        images=end.images,
        events=(),
        ok=bool(given.ok),
    )
    return _shortened(result, call)


def _shortened(result: Result, call: str) -> Result:
    text = result.for_model
    if len(text) <= SHOWN:
        return result
    said = f'read on with bash_output(call_id="{call}", offset={SHOWN})'
    cut = f"{text[:SHOWN]}\n[{len(text) - SHOWN:,} more characters; {said}]"
    return replace(result, for_model=cut, output=result.output or text.encode())


def _blobs(given: object) -> dict[str, bytes]:
    if not isinstance(given, Mapping):
        raise TypeError(f"blobs are {type(given).__name__}, not a dict")
    blobs = dict(given)
    for name, data in blobs.items():
        if not isinstance(data, bytes) or name != digest(data):
            raise ValueError(f"a blob is not bytes that {name!r:.100} is the hash of")
    if sum(map(len, blobs.values())) > KEPT:
        raise ValueError(f"there are more than {KEPT >> 20} MB of blobs")
    return blobs


def _holds(value: Value) -> None:
    """A log must be able to hold it. Raises ValueError."""
    if len(value.model_dump_json()) > LARGEST:
        raise ValueError(f"what it says of files has more than {LARGEST >> 10} KB")


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
    about = f"a context ({named(context)})"
    try:
        async with asyncio.timeout(CONTEXT_TIME):
            text = await supervised(plugin, about, lambda: context(where))
    except TimeoutError:
        LOG.warning("%s: %s took more than %g s.", plugin.title, about, CONTEXT_TIME)
        return ""
    except MagyError as error:
        LOG.warning("%s", error.message)
        return ""
    if not isinstance(text, str | None):
        said = type(text).__name__
        LOG.warning("%s: %s returned %s, not a text.", plugin.title, about, said)
        return ""
    return whole((text or "")[:SECTION])


def named(given: object) -> str:
    """Returns what its author calls it."""
    return str(getattr(given, "__qualname__", type(given).__name__))


# --- listeners ------------------------------------------------------------------------------------


class Listening:
    """Implements `engine.session.Listener`: a plugin's listener is told of appends in their order,
    beside all that goes on."""

    def __init__(self, plugin: Installed, heard: Heard) -> None:
        self._plugin = plugin
        self._heard = heard
        self._about = f"a listener ({named(heard)})"
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
                told = partial(self._heard, session, entries)
                await supervised(self._plugin, self._about, told)
            self._failures = 0
            return
        except TimeoutError:
            said = f"{self._plugin.title}: {self._about} took more than {LISTENER_TIME:g} s."
        except MagyError as error:
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
