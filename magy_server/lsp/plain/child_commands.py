"""The commands for children, for editors without Magy code (G001): spawn, list, close."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence

from magy_server.api.children.child_verbs import ChildVerbs
from magy_server.api.wire import children as child_wire
from magy_server.api.wire import commands as wire
from magy_server.api.wire import names
from magy_server.api.wire.shapes import TextBlock
from magy_server.core.errors import InvalidRequest, NotFound
from magy_server.core.events import Content
from magy_server.core.summary import task_id
from magy_server.core.text.sanitizing import one_line
from magy_server.lsp.plain.prompt_sessions import Asking
from magy_server.lsp.plain.targets import Pointing
from magy_server.lsp.plain.typed_command import Command, command

Say = Callable[[str], None]


class PlainChildren:
    """`say` shows a text in a window."""

    def __init__(self, verbs: ChildVerbs, asking: Asking, pointing: Pointing, say: Say) -> None:
        self._verbs = verbs
        self._asking = asking
        self._pointing = pointing
        self._say = say

    def commands(self) -> Mapping[str, Command]:
        return {
            names.SPAWN: command(names.SPAWN, wire.SpawnRun, self.spawn),
            names.CHILDREN: command(names.CHILDREN, wire.ChildrenRun, self._list),
            names.CLOSE: command(names.CLOSE, wire.CloseRun, self._close),
        }

    async def spawn(self, asked: wire.SpawnRun) -> wire.Spawned:
        if not asked.text.strip():
            raise InvalidRequest(f"{names.SPAWN}: `text` is empty: describe the task.")
        if asked.range and not asked.uri:
            raise InvalidRequest(f"{names.SPAWN}: `range` needs a file: name it as `uri`.")
        if asked.uri and self._asking.foreign(asked.uri):
            raise InvalidRequest(
                f"{names.SPAWN}: {asked.uri} is not in an open project: open its folder, or leave "
                "`uri` out."
            )
        parent = asked.session_id
        parent = parent or await self._asking.session(self._asking.where(asked.uri))
        lines: Sequence[Content] = ()
        if asked.uri and asked.range:
            lines = (await self._pointing.at(asked.uri, asked.range)).content
        params = child_wire.ChildSpawnParams(
            parent_session_id=parent,
            request_key=asked.request_key or f"c-{secrets.token_hex(6)}",
            prompt=[TextBlock(type="text", text=asked.text)],
            agent=asked.agent,
            name=asked.name,
        )
        spawned = await self._verbs.spawn(params, lines)
        child = spawned.child.session_id
        if not spawned.known:
            self._asking.follow(child, task_id(child))
        return wire.Spawned(session_id=child, parent_session_id=parent)

    async def _list(self, asked: wire.ChildrenRun) -> child_wire.ChildListResult:
        session_id = asked.session_id or self._asking.last
        if session_id is None:
            raise NotFound("There are no children yet: this editor has sent no prompt.")
        params = child_wire.ChildListParams(parent_session_id=session_id, include_closed=True)
        found = await self._verbs.list(params)
        self._say("\n".join(_lines(found.children)) or f"Session {session_id} has no children.")
        return found

    async def _close(self, asked: wire.CloseRun) -> child_wire.ChildClosed:
        params = child_wire.ChildCloseParams(session_id=asked.session_id, mode=asked.mode)
        return await self._verbs.close(params)


def _lines(children: Sequence[child_wire.Child]) -> list[str]:
    top = min((child.depth for child in children), default=0)
    return [f"{'  ' * (child.depth - top)}{_line(child)}" for child in children]


def _line(child: child_wire.Child) -> str:
    asks = ", asks" if child.questions else ""
    return one_line(f"{child.agent} ({child.name}): {child.state}{asks} [{child.session_id}]")
