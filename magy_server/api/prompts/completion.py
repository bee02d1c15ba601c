"""`magy/prompt/complete` offers what may follow an `@` in a prompt, or a `/` at its beginning."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Collection
from itertools import islice
from typing import Literal

from magy_server.api.connected import Connected
from magy_server.api.prompts.readable_files import Reach
from magy_server.api.wire import editor as wire
from magy_server.api.wire.editor import Completion
from magy_server.core.errors import EditorError
from magy_server.core.knowledge import Symbols
from magy_server.core.settings import ToolSettings
from magy_server.core.specs import Agents
from magy_server.tools.files.paths import below
from magy_server.tools.prompts.openings import AT, SPAWN, Opening, after_at, alone, mention
from magy_server.tools.prompts.symbol_mentions import SYMBOL
from magy_server.tools.search.file_name_index import FileIndex, Names, best, exists
from magy_server.tools.stoppable_thread import Stopped, in_thread

MOST = 50
PATIENCE = 1.0
"""Seconds for the names of the files, the first time, and for the editor's symbols."""
_LONGEST = 1_000
"""Characters before the cursor that matter."""


class PromptVerbs:
    """One completion at a time: a newer request ends the older one."""

    def __init__(self, at: Connected, reach: Reach) -> None:
        self._at = at
        self._service = at.service
        self._editor = at.service.world.editor
        self._reach = reach
        self._index = FileIndex(ToolSettings().grep_program, at.spawn)
        self._running: asyncio.Task[wire.CompleteResult] | None = None

    async def complete(self, params: wire.CompleteParams) -> wire.CompleteResult:
        begun = params.before.strip()
        if len(begun) <= _LONGEST and begun.startswith(("/", SPAWN)):
            opened = alone(params.before, await self._agents(params))
            servers = await self._of_servers(params, begun) if begun.startswith("/") else []
            if opened is not None or servers:
                typed, openings = opened or (begun, ())
                items = [*map(_item, openings), *servers]
                return wire.CompleteResult(
                    prefix=typed, items=items[:MOST], incomplete=len(items) > MOST
                )
        found = AT.search(params.before[-_LONGEST:])
        if found is None:
            return wire.CompleteResult(prefix="", items=[])
        if self._running is not None:
            self._running.cancel()
        task = self._running = asyncio.ensure_future(self._complete(params, found))
        try:
            await asyncio.wait({task})
        finally:
            task.cancel()
        if task.cancelled():
            return wire.CompleteResult(prefix=found[0], items=[], incomplete=True)
        return task.result()

    async def _complete(
        self, params: wire.CompleteParams, found: re.Match[str]
    ) -> wire.CompleteResult:
        query = found["bare"] if found["quoted"] is None else found["quoted"]
        begins = params.before.strip() == found[0]
        first: list[Completion] = []
        if begins:
            root = await self._root(params)
            world = self._service.world
            skills = (await asyncio.to_thread(world.skills, root)).mentionable
            agents = await asyncio.to_thread(world.agents, root)
            first = [_item(one) for one in after_at(agents, skills)]
        items: list[Completion] = await self._of_servers(params, found[0])
        if found["quoted"] is None:
            items += [item for item in first if item.label[1:].startswith(query)]
        root = await self._root(params)
        whole = True
        if root is not None and (found["quoted"] is not None or not query.startswith(SYMBOL)):
            names = await self._index.names(root, PATIENCE)
            taken = {item.text.rstrip() for item in first}
            items += [_file(name, taken) for name in await self._files(root, names, query)]
            whole = names.whole
        if root is not None and found["quoted"] is None:
            items += await self._symbols(query)
        more = len(items) > MOST or not whole
        return wire.CompleteResult(prefix=found[0], items=items[:MOST], incomplete=more)

    async def _of_servers(self, params: wire.CompleteParams, typed: str) -> list[Completion]:
        """Resources and prompts of MCP servers; `typed` begins with `@` or `/`."""
        begun = typed.strip()
        if params.session_id is not None:
            root = (await self._service.info(params.session_id)).root
        else:
            root = await self._root(params)
        tools = self._service.world.tools
        found = await tools.mentionable(root, begun[:1], begun[1:]) if begun[1:] else ()
        kind: Literal["file", "action"] = "file" if begun[:1] == "@" else "action"
        return [
            Completion(label=one.text, text=one.text, kind=kind, detail=one.about) for one in found
        ]

    async def _agents(self, params: wire.CompleteParams) -> Agents:
        return await asyncio.to_thread(self._service.world.agents, await self._root(params))

    async def _root(self, params: wire.CompleteParams) -> str | None:
        """Where mentions of this prompt are looked up."""
        if params.session_id is not None:
            info = await self._service.info(params.session_id)
            return info.root or info.summary.get("cwd")
        if params.cwd is not None:
            return self._at.place(params.cwd)[0]
        return self._at.first

    async def _files(self, root: str, names: Names, query: str) -> list[str]:
        """With nothing typed, those that are open come first."""
        open_ = [n for p in self._editor.open_paths() if (n := below(root, p)) and n != "."]

        def look(check: Callable[[], None]) -> list[str]:
            found = best(names, query, MOST * 2, check)
            if not query:
                known = [name for name in reversed(open_) if name in names]
                found = list(dict.fromkeys([*known, *found]))
            return [name for name in found if exists(root, name)]

        try:
            found = await in_thread(look)
        except Stopped:
            return []
        top = root.rstrip("/")
        shown = (name for name in found if not self._reach.denied(f"{top}/{name}"))
        return list(islice(shown, MOST + 1))

    async def _symbols(self, query: str) -> list[Completion]:
        explicit = query.startswith(SYMBOL)
        wanted = query.removeprefix(SYMBOL)
        if "symbols" not in self._editor.knows or "/" in wanted:
            return []
        if len(wanted) < (1 if explicit else 2):
            return []
        try:
            async with asyncio.timeout(PATIENCE):
                found = await self._editor.ask(Symbols(None, wanted))
        except (EditorError, TimeoutError):
            return []
        items: dict[str, Completion] = {}
        for symbol in found.items:
            path = symbol.at.path
            if path is None or not re.fullmatch(r'[^\s"@]+', symbol.name):
                continue
            if wanted.casefold() in symbol.name.casefold() and not self._reach.denied(path):
                where = f"{self._reach.name(path)}:{symbol.at.line}"
                detail = f"{symbol.kind} in {where}" if symbol.kind else where
                item = Completion(
                    label=symbol.name, text=f"@{SYMBOL}{symbol.name}", kind="symbol", detail=detail
                )
                items.setdefault(symbol.name, item)
        names = sorted(
            items, key=lambda n: (not n.casefold().startswith(wanted.casefold()), len(n), n)
        )
        return [items[name] for name in names[:MOST]]


def _item(one: Opening) -> Completion:
    return Completion(label=one.label, text=one.text, kind=one.kind, detail=one.detail)


def _file(name: str, taken: Collection[str]) -> Completion:
    """Of a directory one may go on into it."""
    kind: Literal["directory", "file"] = "directory" if name.endswith("/") else "file"
    return Completion(label=name, text=mention(name, taken), kind=kind)
