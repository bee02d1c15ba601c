"""The plugins that a person has switched on are imported here, and checked. One that is wrong is
not used at all, with a sentence that says why; the others are."""

from __future__ import annotations

import asyncio
import inspect
import json
import sys
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, TypeVar

from magy_server.core.errors import InvalidConfig, NotFound
from magy_server.core.tool import Tool
from magy_server.dataclass import dataclass
from magy_server.plugins import Door, Plugin
from magy_server.plugins.importing import forget, import_module
from magy_server.plugins.installed import Installed
from magy_server.plugins.parts import Listening, Provider, named, provider_of, tool_of
from magy_server.plugins.supervising import failure
from magy_server.plugins.switches import Chosen
from magy_server.regex import regex

STARTING = 10.0
"""Seconds that the import of a plugin may take."""
_TOOL = regex(r"[a-zA-Z][a-zA-Z0-9_]{0,63}")
_FOREIGN = "mcp__"
"""How the tools of MCP servers begin."""
_DOOR = regex(r"[!-~]{1,64}")
TOLD = 50_000
"""Characters of what a tool tells models: its docstring, and its schema."""
_EFFECTS = ("read", "write", "exec", "net")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Loaded:
    """A plugin in use, with its tools as sessions have them."""

    installed: Installed
    plugin: Plugin
    tools: tuple[Tool, ...]

    def listening(self) -> list[Listening]:
        """Returns new listeners; who takes them closes them."""
        return [Listening(self.installed, heard) for heard in self.plugin.listeners]


@dataclass(frozen=True, slots=True)
class Plugins:
    """Those in use by name, and why the others that are switched on are not."""

    used: Mapping[str, Loaded]
    unusable: Mapping[str, str]
    others: tuple[str, ...] = ()
    """What is wrong with packages whose plugins are not switched on."""

    @property
    def problems(self) -> tuple[str, ...]:
        return (*self.unusable.values(), *self.others)

    @property
    def tools(self) -> list[Tool]:
        return [tool for one in self.used.values() for tool in one.tools]

    @property
    def skills(self) -> dict[str, str]:
        """Returns by plugin the folder of skills that it brings."""
        return {
            name: one.installed.skills for name, one in self.used.items() if one.installed.skills
        }

    @property
    def providers(self) -> dict[str, Provider]:
        return {
            name: provider_of(one.installed, one.plugin.contexts)
            for name, one in self.used.items()
            if one.plugin.contexts
        }

    def door(self, name: str) -> tuple[Installed, Door]:
        """Raises NotFound."""
        doors = {
            called: (one.installed, door)
            for one in self.used.values()
            for called, door in one.plugin.doors.items()
        }
        if name not in doors:
            names = ", ".join(doors) or "none"
            raise NotFound(
                f"No plugin that is switched on has a door {name!r}. Doors that they have: {names}."
            )
        return doors[name]


async def load(chosen: Chosen, taken: Collection[str], seconds: float = STARTING) -> Plugins:
    """Imports what is chosen, each in a thread that may take so many seconds. `taken`: the names of
    the tools that Magy has itself."""
    used, unusable = dict[str, Loaded](), dict(chosen.unusable)
    names = set(taken)
    for name, one in chosen.plugins.items():
        try:
            loaded = await _loaded(one, frozenset(names), seconds)
        except InvalidConfig as error:
            unusable[name] = error.message
            continue
        used[name] = loaded
        names |= {tool.name for tool in loaded.tools}
    return Plugins(used, unusable, chosen.problems)


async def load_again(one: Installed, taken: Collection[str], seconds: float) -> Loaded:
    """Imports what was imported before from its sources as they are now. What calls of before have
    at hand stays what it was, and all of it does when this fails. Raises InvalidConfig."""
    top = one.value.partition(":")[0].partition(".")[0]
    before = forget(top)
    try:
        return await _loaded(one, taken, seconds)
    except InvalidConfig:
        forget(top)
        sys.modules.update(before)
        raise


async def _loaded(one: Installed, taken: Collection[str], seconds: float) -> Loaded:
    """Raises InvalidConfig."""
    try:
        async with asyncio.timeout(seconds):
            return await _in_daemon_thread(lambda: _imported(one, taken))
    except TimeoutError:
        raise InvalidConfig(
            f"{one.title} did not finish its start (the import of {one.value}) in {seconds:g} s, "
            f"and is not used. {one.advice}"
        ) from None
    except _Failed as failed:
        if isinstance(failed.error, _Wrong):
            said = f"{one.title} is not used: {failed.error}. {one.advice}"
            raise InvalidConfig(said) from None
        raise InvalidConfig(failure(one, "its start", failed.error)) from None


class _Wrong(Exception):
    """A part of a plugin cannot be used, because of this."""


class _Failed(Exception):
    """What a plugin raised while it was imported: perhaps SystemExit."""

    def __init__(self, error: BaseException) -> None:
        self.error = error


async def _in_daemon_thread(work: Callable[[], T]) -> T:
    """A thread that hangs does not keep the process from ending. Raises _Failed."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def settle(set: Callable[[Any], None], value: Any) -> None:
        if not done.done():
            set(value)

    def run() -> None:
        try:
            result = work()
        except BaseException as error:
            outcome: tuple[Callable[[Any], None], Any] = (done.set_exception, _Failed(error))
        else:
            outcome = (done.set_result, result)
        if not loop.is_closed():
            loop.call_soon_threadsafe(settle, *outcome)

    threading.Thread(target=run, name="plugin", daemon=True).start()
    return await done


def _imported(one: Installed, taken: Collection[str]) -> Loaded:
    """May raise anything."""
    module, _, attribute = one.value.partition(":")
    found: Any = import_module(one, module)
    for name in attribute.split(".") if attribute else ():
        found = getattr(found, name)
    if not isinstance(found, Plugin):
        raise TypeError(f"{one.value} is a {type(found).__name__}, not a Plugin")
    plugin = _checked(found)
    _check_tools(plugin.tools, taken)
    return Loaded(one, plugin, tuple(tool_of(one, tool) for tool in plugin.tools))


def _checked(plugin: Plugin) -> Plugin:
    """Returns its parts, which it cannot change any more. Raises _Wrong."""
    for name in ("tools", "listeners", "contexts"):
        if not isinstance(given := getattr(plugin, name), list | tuple):
            raise _Wrong(f"its {name} are {given!r:.200}, not a list: write {name}=[...]")
    if not isinstance(plugin.doors, Mapping):
        raise _Wrong(f"its doors are {plugin.doors!r:.200}, not a dict from names to functions")
    parts = Plugin(
        tools=tuple(plugin.tools), listeners=tuple(plugin.listeners),
        contexts=tuple(plugin.contexts), doors=dict(plugin.doors),
    )  # fmt: skip
    for door in parts.doors:
        if not isinstance(door, str) or not _DOOR.fullmatch(door):
            raise _Wrong(f"a door of it has the name {door!r:.200}, which nobody can type")
    for function in (*parts.listeners, *parts.contexts, *parts.doors.values()):
        _check_async(function)
    return parts


def _check_tools(tools: Sequence[object], taken: Collection[str]) -> None:
    """Raises _Wrong."""
    names = set(taken)
    for tool in tools:
        if not isinstance(tool, Tool):
            raise _Wrong(f"{tool!r:.200} among its tools was not made with `tool`")
        if not _TOOL.fullmatch(tool.name) or tool.name.startswith(_FOREIGN):
            raise _Wrong(f"a tool of it has the name {tool.name!r:.200}, which cannot be used")
        if tool.name in names:
            raise _Wrong(f"there is a tool of the name {tool.name!r} already")
        if tool.effect not in _EFFECTS:
            raise _Wrong(f"the effect of its tool {tool.name} is none of {', '.join(_EFFECTS)}")
        if not tool.description:
            raise _Wrong(f"its tool {tool.name} has no docstring, which models are told")
        schema = json.dumps(tool.parameters, ensure_ascii=False, allow_nan=False).encode()
        if max(len(tool.description), len(schema)) > TOLD:
            raise _Wrong(f"its tool {tool.name} has more than {TOLD:,} characters to tell models")
        if not isinstance(tool.kind, str) or not isinstance(tool.fresh, int | float):
            raise _Wrong(f"its tool {tool.name} has a kind that is no text, or fresh is no number")
        _check_async(tool.run)
        _check_async(tool.facts)
        names.add(tool.name)


def _check_async(function: object) -> None:
    """Raises _Wrong."""
    if not callable(function) or not (
        inspect.iscoroutinefunction(function)
        or inspect.iscoroutinefunction(getattr(function, "__call__", None))  # noqa: B004
    ):
        raise _Wrong(f"{named(function):.200} is not an async function")
