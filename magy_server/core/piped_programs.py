"""Through this port Magy starts programs that it speaks with for as long as they live: servers of
the Model Context Protocol."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol


class Program(Protocol):
    """A running program, in a process group of its own."""

    async def read(self) -> bytes:
        """Returns what it has written, as it comes; empty at the end."""

    async def complaints(self) -> bytes:
        """Returns what it has written to standard error; empty at the end."""

    async def write(self, data: bytes) -> None:
        """Raises OSError when it does not read any more."""

    async def end(self) -> int | None:
        """Closes its input, and ends it and all that it has started unless it ends by itself in a
        moment. Returns its exit code; None if it cannot be ended."""


class Programs(Protocol):
    async def start(
        self,
        name: str,
        argv: Sequence[str],
        directory: str,
        variables: Mapping[str, str],
        root: str,
    ) -> Program:
        """Starts a program for a workspace root, in the sandbox that is wanted there; `name` is
        what its processes are known by. It gets what the processes of commands get of the
        environment, and `variables`. Raises ToolError: it cannot be started."""
