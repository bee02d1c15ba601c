"""These plain values and Protocols say what servers offer and answer. Only `sdk_link.py` and what
it imports know the SDK, which is imported when the first server is connected to."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import field
from typing import Any, Protocol

from magy_server.core.events import Answered
from magy_server.core.mcp.mentions import OfferedPrompt, OfferedResource
from magy_server.core.values import Form
from magy_server.dataclass import dataclass
from magy_server.mcp.kept_logins import Kept, KeptInMemory


@dataclass(frozen=True, slots=True)
class OfferedTool:
    """A tool as its server describes it. `hint`: what the server says of its effects, for people;
    nothing is decided by it. `version` is another as soon as the server says anything else of the
    tool."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    version: str
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a call gave. `pictures`: the bytes, and a name for people."""

    text: str
    pictures: Sequence[tuple[bytes, str]] = ()
    failed: bool = False


@dataclass(frozen=True, slots=True)
class Notices:
    """What a server may say unasked. `log` gets one line; `tools_changed` nothing."""

    log: Callable[[str], None]
    tools_changed: Callable[[], None]


Progress = Callable[[float, float | None, str], Awaitable[None]]
"""(how far, of what, in words)."""
Ask = Callable[[Form], Awaitable[Answered | None]]
"""Has the person asked; None: nobody has answered before the call was over."""


class Link(Protocol):
    """An open connection. All raise `LinkError`."""

    @property
    def about(self) -> str:
        """Returns the name and version that the server gives itself."""

    async def tools(self) -> Sequence[OfferedTool]: ...

    async def call(
        self, tool: str, arguments: Mapping[str, Any], progress: Progress, ask: Ask, /
    ) -> Answer: ...

    async def resources(self) -> Sequence[OfferedResource]: ...

    async def read(self, uri: str, /) -> Answer: ...

    async def prompts(self) -> Sequence[OfferedPrompt]: ...

    async def prompt(self, name: str, arguments: Mapping[str, str], /) -> Answer: ...

    async def follow(self) -> None:
        """Hears of changes for as long as the connection lasts, where one must ask to hear."""

    async def lost(self) -> str:
        """Waits until the connection is over, and returns why, in a sentence."""


@dataclass(frozen=True, slots=True)
class Reach:
    """Where a connection leads: the values of `core.mcp.server_settings.McpServer`, with the
    directory made absolute. `login`: what a login at `url` gave. `place` is where sessions of the
    workspace root `root` work: it, or a directory of Magy's where there is none."""

    argv: Sequence[str] = ()
    directory: str = ""
    env: Mapping[str, str] = field(default_factory=dict)
    url: str = ""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    login: Kept = field(default_factory=KeptInMemory, repr=False)
    root: str | None = None
    place: str = ""


class LinkError(Exception):
    """A server could not do what it was asked, in a sentence for people. `over`: the connection is
    no more."""

    def __init__(self, message: str, *, over: bool = False) -> None:
        super().__init__(message)
        self.message = message
        self.over = over
