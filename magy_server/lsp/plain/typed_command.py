"""A command of `workspace/executeCommand`, made of a shape and a verb."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from magy_server.api.wire.shapes import Wire, parsed
from magy_server.core.errors import InvalidRequest

Command = Callable[[list[Any]], Awaitable[Any]]
P = TypeVar("P", bound=Wire)


def command(name: str, model: type[P], verb: Callable[[P], Awaitable[Wire]]) -> Command:
    """`verb` gets the one argument, checked."""

    async def run(given: list[Any]) -> Any:
        argument = given[0] if given else {}
        if len(given) > 1 or type(argument) is not dict:
            raise InvalidRequest(f"{name} takes one argument, an object. See docs/protocol.md.")
        found = await verb(parsed(model, argument, name))
        return found.model_dump(mode="json", by_alias=True)

    return run
