"""Sessions of these tests have the same tools everywhere."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from magy_server.core.mcp.mentions import Mentionable
from magy_server.core.mcp.status import ServerStatus
from magy_server.core.tool import Tool
from magy_server.core.values import Content, Hash


class FixedTools:
    """Implements `engine.toolbox.Toolbox`."""

    def __init__(self, tools: Iterable[Tool] = ()) -> None:
        self._tools = {tool.name: tool for tool in tools}

    def there(self, root: str | None) -> Mapping[str, Tool]:
        return self._tools

    async def gathered(self, root: str | None) -> Mapping[str, Tool]:
        return self._tools

    async def named(self, root: str | None, name: str) -> Tool | None:
        return self._tools.get(name)

    async def mentioned(
        self, root: str | None, content: Sequence[Content], denied: Callable[[str], bool]
    ) -> tuple[Sequence[Content], Mapping[Hash, bytes]]:
        return content, {}

    async def mentionable(
        self, root: str | None, opening: str, begun: str
    ) -> Sequence[Mentionable]:
        return ()

    def servers(self, root: str | None) -> Sequence[ServerStatus]:
        return ()

    async def tried(self, root: str | None, name: str) -> ServerStatus | None:
        return None
