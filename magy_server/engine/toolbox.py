"""Which tools there are depends on the workspace root: its MCP servers give some."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from magy_server.core.mcp.status import ServerStatus
from magy_server.core.tool import Tool


class Toolbox(Protocol):
    """The tools of each workspace root, by name; None is for sessions without a project."""

    def there(self, root: str | None) -> Mapping[str, Tool]:
        """Returns those that are known at this moment."""

    async def gathered(self, root: str | None) -> Mapping[str, Tool]:
        """Returns the same, after servers that give tools were started and had a moment, a second
        or two, to name them. Those of a server that is slower are there the next time."""

    async def named(self, root: str | None, name: str) -> Tool | None:
        """Returns one tool. Of a server that is gone it is one that says so."""

    def servers(self, root: str | None) -> Sequence[ServerStatus]:
        """Returns how the servers that give tools there are doing; starts none."""

    async def tried(self, root: str | None, name: str) -> ServerStatus | None:
        """Starts a server if need be, waits until it has named its tools or failed, and returns how
        it is doing then; None: there is none of that name."""
