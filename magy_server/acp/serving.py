"""`run` puts a door together with its connection, once the client has said which version of the
protocol it speaks. `greeting` has usually answered that before this module is imported."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from magy_server.acp.connection import Connection
from magy_server.acp.door import Compose, Door
from magy_server.acp.greeting import RESULTS, version_of
from magy_server.acp.options import Json
from magy_server.core.errors import InvalidRequest
from magy_server.jsonrpc import stdio
from magy_server.jsonrpc.greeting import Greeting
from magy_server.jsonrpc.messages import decode
from magy_server.jsonrpc.outbox import Outbox, lined
from magy_server.jsonrpc.serving import served

if TYPE_CHECKING:
    from magy_server.api.doctor import Examine

__all__ = ["Compose", "run"]


class Entrance:
    """`make` gives the door of a version. `draft`: that of version 2 is open, too."""

    def __init__(self, connection: Connection, make: Callable[[int], Door], *, draft: bool) -> None:
        self._connection = connection
        self._make = make
        self._draft = draft
        self._door: Door | None = None
        connection.methods["initialize"] = self._initialize

    def open(self, params: Json) -> Json:
        """Returns the answer to `initialize`. Raises InvalidRequest."""
        if self._door is not None:
            raise InvalidRequest("initialize: this connection is initialized already.")
        version = version_of(params, draft=self._draft)
        door = self._make(version)
        door.meet(params)
        self._door = door
        self._connection.open(door.methods(), door.custom)
        return {**RESULTS[version]}

    async def _initialize(self, params: Json) -> Json:
        return self.open(params)

    async def stop(self, why: str) -> None:
        if self._door is not None:
            await self._door.stop(why)


def run(
    compose: Callable[[], Compose],
    scratch: Callable[[], str],
    examine: Callable[[], Examine],
    stdin: int,
    stdout: int,
    greeting: Greeting,
    *,
    draft: bool,
) -> int:
    """Serves the descriptors until the client is gone; the process's exit code. `draft`: clients
    that speak version 2 are answered by its draft."""
    stdio.log_to_stderr()

    def begin(outbox: Outbox) -> tuple[Connection, Callable[[str], Awaitable[None]]]:
        connection = Connection(outbox)

        def door(version: int) -> Door:
            if version > 1:
                from magy_server.acp.draft import Draft

                return Draft(connection, compose, scratch, examine)
            return Door(connection, compose, scratch, examine)

        entrance = Entrance(connection, door, draft=draft)
        if greeting.answered:
            message: Any = decode(greeting.read[: greeting.first])
            entrance.open(message["params"])
        return connection, entrance.stop

    rest = greeting.read[greeting.first :]
    return asyncio.run(served(stdin, stdout, begin, framed=lined, already=rest))
