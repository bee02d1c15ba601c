"""Which tools there are depends on the workspace root: its MCP servers give some."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from magy_server.core.mcp.status import ServerStatus
from magy_server.core.tool import Tool
from magy_server.core.values import Content, Hash

if TYPE_CHECKING:  # most projects have no servers
    from magy_server.core.mcp.mentions import Mentionable


class Toolbox(Protocol):
    """The tools of each workspace root, by name; None is for sessions without a project."""

    def there(self, root: str | None) -> Mapping[str, Tool]:
        """Returns those that are known at this moment."""

    async def gathered(self, root: str | None) -> Mapping[str, Tool]:
        """Returns the same, after servers that give tools were started and had a moment, a second
        or two, to name them. Those of a server that is slower are there the next time."""

    async def named(self, root: str | None, name: str) -> Tool | None:
        """Returns one tool. Of a server that is gone it is one that says so."""

    async def mentioned(
        self, root: str | None, content: Sequence[Content], denied: Callable[[str], bool]
    ) -> tuple[Sequence[Content], Mapping[Hash, bytes]]:
        """Returns a prompt with what it names of servers beside its words, and the bytes of
        pictures among that. `denied`: whether nothing of the server of this name may be used.
        Raises InvalidRequest."""

    async def mentionable(
        self, root: str | None, opening: str, begun: str
    ) -> Sequence[Mentionable]:
        """Returns what `begun` may become of what servers offer; `opening`: the `@` or `/` before
        it. A server that does not answer soon offers nothing."""

    def servers(self, root: str | None) -> Sequence[ServerStatus]:
        """Returns how the servers that give tools there are doing; starts none."""

    async def tried(self, root: str | None, name: str) -> ServerStatus | None:
        """Starts a server if need be, waits until it has named its tools or failed, and returns how
        it is doing then; None: there is none of that name."""
