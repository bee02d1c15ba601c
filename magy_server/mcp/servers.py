"""`Servers` are the connections to all MCP servers of this process; with the tools that Magy has
itself, they are what sessions find in their toolbox."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from types import TracebackType
from typing import TYPE_CHECKING, Protocol

from magy_server.core.errors import ToolError
from magy_server.core.mcp.names import server_of
from magy_server.core.mcp.server_settings import McpServer
from magy_server.core.mcp.status import ServerStatus
from magy_server.core.piped_programs import Programs
from magy_server.core.tool import Tool
from magy_server.core.values import Content, Hash
from magy_server.dataclass import dataclass
from magy_server.tasks import Tasks

if TYPE_CHECKING:  # most projects have no servers
    from magy_server.core.mcp.mentions import Mentionable
    from magy_server.mcp.connection import Connection
    from magy_server.mcp.kept_logins import Kept
    from magy_server.mcp.tool_making import Picture

PATIENCE = 1.5
"""Seconds that a prompt waits for a server that has just been started, and no other does again."""
Configured = Callable[[str | None], Mapping[str, McpServer]]
"""The servers that hold for a workspace root at this moment."""


@dataclass(frozen=True, slots=True)
class Means:
    """What connections are made of. `directory`: where a session without a project works. `log`:
    makes the log of a server. `login`: where the login to that of this name and address is kept."""

    programs: Programs
    picture: Picture
    directory: Callable[[], str]
    log: Callable[[str], Callable[[str], None]]
    login: Callable[[str, str], Kept]


class Changing(Protocol):
    """Tools that may be others at the next prompt."""

    @property
    def tools(self) -> Sequence[Tool]:
        """Returns those at this moment."""

    async def fresh(self) -> None:
        """Looks whether they have changed."""


class _Unchanging:
    tools: Sequence[Tool] = ()

    async def fresh(self) -> None:
        return


UNCHANGING = _Unchanging()


class Servers:
    """Implements `engine.toolbox.Toolbox`. At the end of its context all servers are ended."""

    def __init__(
        self,
        own: Callable[[], Iterable[Tool]],
        configured: Configured,
        means: Means,
        changing: Changing = UNCHANGING,
    ) -> None:
        """`own`: makes Magy's own tools, when one is first wanted."""
        self._make = own
        self._changing = changing
        self._configured = configured
        self._means = means
        self._known: dict[tuple[str | None, str], Connection] = {}
        self._owners: dict[tuple[str | None, str], asyncio.Task[None]] = {}
        self._tasks = Tasks()

    async def __aenter__(self) -> Servers:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._tasks.cancel()

    @cached_property
    def _shipped(self) -> Mapping[str, Tool]:
        return {tool.name: tool for tool in self._make()}

    @property
    def _own(self) -> Mapping[str, Tool]:
        more = self._changing.tools
        return {**self._shipped, **{tool.name: tool for tool in more}} if more else self._shipped

    # --- the toolbox ----------------------------------------------------------------------------

    def there(self, root: str | None) -> Mapping[str, Tool]:
        own = self._own
        if not any(where == root for where, _ in self._known):
            return own
        tools = dict(own)
        for (where, _), known in self._known.items():
            if where == root:
                tools |= {name: made.tool for name, made in known.tools.items()}
        return tools

    async def gathered(self, root: str | None) -> Mapping[str, Tool]:
        await self._changing.fresh()
        connections = self._of(root)
        for one in connections:
            one.want()
        before = time.monotonic()
        if connections:
            from magy_server.mcp.connection import sdk

            await sdk()
        now = time.monotonic()
        for one in connections:
            # What the import took is no fault of the server.
            begun = one.began + now - before if one.condition == "connecting" else now
            await one.settled(begun + PATIENCE)
        return self.there(root)

    async def named(self, root: str | None, name: str) -> Tool | None:
        own = self._own.get(name)
        if own or not (server := server_of(name)):
            return own
        from magy_server.mcp.tool_making import gone

        self._of(root)
        known = self._known.get((root, server))
        if known is None:
            return gone(name, f"There is no MCP server {server!r} here any more. Tell the user.")
        if name not in known.tools:
            try:
                await known.link()
            except ToolError as error:
                return gone(name, error.message)
        made = known.tools.get(name)
        return made.tool if made else gone(name, f"The MCP server {server!r} has no such tool now.")

    async def mentioned(
        self, root: str | None, content: Sequence[Content], denied: Callable[[str], bool]
    ) -> tuple[Sequence[Content], Mapping[Hash, bytes]]:
        usable = [name for name in self._configured(root) if not denied(name)]
        if not usable:
            return content, {}
        from magy_server.mcp.attaching import attached

        servers = {one.name: one for one in self._of(root) if one.name in usable}
        return await attached(content, servers, self._means.picture)

    async def mentionable(
        self, root: str | None, opening: str, begun: str
    ) -> Sequence[Mentionable]:
        names = self._configured(root)
        if not names:
            return []
        from magy_server.mcp.attaching import begun_with

        return await begun_with(names, lambda: self._of(root), opening, begun)

    def servers(self, root: str | None) -> Sequence[ServerStatus]:
        return [
            connection.status
            if (connection := self._known.get((root, name))) and connection.server == server
            else ServerStatus(name, server.starts)
            for name, server in self._configured(root).items()
        ]

    async def tried(self, root: str | None, name: str) -> ServerStatus | None:
        found = next((one for one in self._of(root) if one.name == name), None)
        if found is None:
            return None
        try:
            await found.link()
        except ToolError as error:
            status = found.status
            return status if status.problem else replace(status, problem=error.message)
        return found.status

    # --- connections ----------------------------------------------------------------------------

    def _of(self, root: str | None) -> list[Connection]:
        """The connections of a workspace root, as it is configured now: others are ended."""
        wanted = self._configured(root)
        for key in [key for key in self._known if key[0] == root]:
            if wanted.get(key[1]) != self._known[key].server:
                del self._known[key]
                self._owners.pop(key).cancel()
        return [self._begun(root, name, server) for name, server in wanted.items()]

    def _begun(self, root: str | None, name: str, server: McpServer) -> Connection:
        key = (root, name)
        if (known := self._known.get(key)) is not None:
            return known
        from magy_server.mcp import connection as connections

        means = self._means
        login = means.login(name, server.url)
        opened = connections.opening(name, server, root, means.directory, means.programs, login)
        connection = connections.Connection(name, server, opened, means.log(name), means.picture)
        self._known[key] = connection
        self._owners[key] = self._tasks.begin(connection.run(), f"MCP server {name}")
        return connection
