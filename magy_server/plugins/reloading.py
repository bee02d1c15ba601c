"""Plugins that are installed for development follow their files: when these have changed, the next
prompt imports them anew. One that is wrong then stays as it was, with a sentence that says why."""

from __future__ import annotations

import asyncio
import importlib.util
import logging
import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from magy_server.core.errors import InvalidConfig
from magy_server.core.events import Entry
from magy_server.core.specs import Agents
from magy_server.core.state.state import State
from magy_server.core.tool import Tool
from magy_server.plugins.installed import Installed
from magy_server.plugins.loading import STARTING, Plugins, load, load_again
from magy_server.plugins.parts import Listening, Provider
from magy_server.plugins.switches import Chosen

LOG = logging.getLogger(__name__)
MOST = 10_000
"""Files of a package that are looked at."""
Stamp = tuple[tuple[str, int, int], ...]
"""Of each source its path, when it was changed (nanoseconds), and its size."""


class LivePlugins:
    """The plugins in use at this moment, with what they give. A listener of the engine."""

    def __init__(
        self, plugins: Plugins, stamps: Mapping[str, Stamp], chosen: Chosen, taken: Collection[str],
        seconds: float,
    ) -> None:  # fmt: skip
        self._now = plugins
        self._stamps = dict(stamps)
        self._chosen = chosen.plugins
        self._taken = frozenset(taken)
        self._seconds = seconds
        self._looking = asyncio.Lock()
        self._ended: list[Listening] = []
        self._hearing = {one.installed.name: one.listening() for one in plugins.used.values()}

    @property
    def names(self) -> Mapping[str, str]:
        """Returns those in use, and what each is for."""
        return {name: one.installed.about for name, one in self._now.used.items()}

    @property
    def skills(self) -> Mapping[str, str]:
        """Returns by plugin the folder of skills that it brings."""
        return self._now.skills

    @property
    def problems(self) -> Sequence[str]:
        """Returns what is wrong with those that are switched on and not used, or used as they
        were."""
        return self._now.problems

    @property
    def tools(self) -> Sequence[Tool]:
        return self._now.tools

    def sections(self, agents: Callable[[str | None], Agents]) -> Provider:
        """Returns an `engine.world.ContextProvider`. `agents`: those of a workspace root."""

        async def provider(state: State) -> Sequence[tuple[str, str]]:
            given = state.opened.plugin if state.opened else ""
            only = agents(state.root).plugin(state.agent, given)
            own = [say for name, say in self._now.providers.items() if only in ("", name)]
            return [one for say in own for one in await say(state)]

        return provider

    def __call__(self, state: State, entries: Sequence[Entry]) -> None:
        for hearing in self._hearing.values():
            for one in hearing:
                one(state, entries)

    async def close(self) -> None:
        for one in (*self._ended, *(one for hearing in self._hearing.values() for one in hearing)):
            await one.close()

    async def fresh(self) -> None:
        """Looks whether sources have changed since they were imported."""
        async with self._looking:
            for name in self._stamps:
                stamp = await asyncio.to_thread(stamp_of, self._chosen[name])
                if stamp != self._stamps[name]:
                    self._stamps[name] = stamp
                    await self._again(self._chosen[name])

    async def _again(self, one: Installed) -> None:
        used, unusable = dict(self._now.used), dict(self._now.unusable)
        others = {tool.name for name in used if name != one.name for tool in used[name].tools}
        try:
            loaded = await load_again(one, self._taken | others, self._seconds)
        except InvalidConfig as error:
            stays = " Until then it stays as it was before." if one.name in used else ""
            unusable[one.name] = f"{error.message}{stays}"
            LOG.warning("%s", unusable[one.name])
        else:
            used[one.name] = loaded
            unusable.pop(one.name, None)
            self._ended += self._hearing.get(one.name, ())
            self._hearing[one.name] = loaded.listening()
            LOG.info("%s was imported anew: its files have changed.", one.title)
        self._now = replace(self._now, used=used, unusable=unusable)


async def load_live(
    chosen: Chosen, taken: Collection[str], seconds: float = STARTING
) -> LivePlugins:
    """As `load`."""
    editable = [name for name, one in chosen.plugins.items() if one.editable]
    # Looked at before: what changes during the import is imported anew with the next prompt.
    stamps = {name: await asyncio.to_thread(stamp_of, chosen.plugins[name]) for name in editable}
    plugins = await load(chosen, taken, seconds)
    return LivePlugins(plugins, stamps, chosen, taken, seconds)


def stamp_of(one: Installed) -> Stamp:
    """Nothing for what cannot be found. Imports none of it."""
    try:
        spec = importlib.util.find_spec(one.value.partition(":")[0].partition(".")[0])
    except (ImportError, ValueError):
        return ()
    if spec is None:
        return ()
    places = [*(spec.submodule_search_locations or ())]
    files = [file for place in places for file in _sources(place)] if places else [spec.origin]
    found = []
    for file in sorted(filter(None, files))[:MOST]:
        try:
            about = os.stat(file)
        except OSError:
            continue
        found.append((file, about.st_mtime_ns, about.st_size))
    return tuple(found)


def _sources(place: str) -> Iterator[str]:
    for folder, folders, files in os.walk(place):
        folders[:] = [name for name in folders if name.isidentifier() and name != "__pycache__"]
        yield from (os.path.join(folder, name) for name in files if name.endswith(".py"))
