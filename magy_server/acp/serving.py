"""`run` puts an ACP door together with its connection."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from magy_server.acp.connection import Connection
from magy_server.acp.door import Compose, Door
from magy_server.jsonrpc import stdio
from magy_server.jsonrpc.outbox import Outbox, lined
from magy_server.jsonrpc.serving import served

if TYPE_CHECKING:
    from magy_server.api.doctor import Examine

__all__ = ["Compose", "run"]


def run(
    compose: Callable[[], Compose],
    scratch: Callable[[], str],
    examine: Callable[[], Examine],
    stdin: int,
    stdout: int,
) -> int:
    """Serves the descriptors until the client is gone; the process's exit code."""
    stdio.log_to_stderr()

    def begin(outbox: Outbox) -> tuple[Connection, Callable[[str], Awaitable[None]]]:
        connection = Connection(outbox)
        return connection, Door(connection, compose, scratch, examine).stop

    return asyncio.run(served(stdin, stdout, begin, framed=lined))
