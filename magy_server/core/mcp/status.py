"""`ServerStatus` says for people how an MCP server is doing. Pure."""

from __future__ import annotations

from typing import Literal

from magy_server.dataclass import dataclass

Condition = Literal["idle", "connecting", "ready", "failed"]
"""`idle`: nobody has needed it yet, or it was lost."""


@dataclass(frozen=True, slots=True)
class ServerStatus:
    """`starts`: what is started, or the address. `about`: the name and version that it gives
    itself; `problem`: why it failed, in a sentence; `tools`: (the name under which agents call it,
    what it is for)."""

    name: str
    starts: str
    condition: Condition = "idle"
    about: str = ""
    problem: str = ""
    tools: tuple[tuple[str, str], ...] = ()
