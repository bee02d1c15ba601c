"""From a request to its verb, and back."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from magy_server.api.wire.methods import CLIENT_TO_SERVER, Method, Verbs, verb_of
from magy_server.api.wire.shapes import Empty, Wire, parsed

Handler = Callable[[dict[str, Any]], Awaitable[Any]]
"""async (the params, as sent) -> the result as JSON. Raises InvalidRequest for wrong params."""


def handlers(verbs: Verbs, made: Callable[[str], Awaitable[None]]) -> Mapping[str, Handler]:
    """By method. `made` waits while the session with this id is being made: requests about it may
    follow `session/new` without waiting for the answer."""
    return {
        method.name: handler(method, verb_of(verbs, method), made) for method in CLIENT_TO_SERVER
    }


def handler(
    method: Method,
    verb: Callable[[Any], Awaitable[Wire | None]],
    made: Callable[[str], Awaitable[None]],
) -> Handler:
    async def handle(params: dict[str, Any]) -> Any:
        asked = parsed(method.params, params, method.name)
        await made(getattr(asked, "session_id", None) or "")
        result = await verb(asked)
        return (result or Empty()).model_dump(mode="json", by_alias=True)

    return handle
