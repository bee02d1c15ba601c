"""One model request, with retries: nothing that was half streamed ever reaches the log."""

from __future__ import annotations

import asyncio
import random
from contextlib import aclosing
from dataclasses import replace
from typing import Any

from pydantic_core import PydanticSerializationError

from magy_server.core import prompt
from magy_server.core.errors import ProviderError
from magy_server.core.events import Ended, Replied, encode
from magy_server.core.ports import Delta, ModelRequest, Provider
from magy_server.core.state import State
from magy_server.engine.session import Session, Write
from magy_server.engine.world import World

LONGEST_WAIT = 60.0
"""Seconds. A provider that asks for more is not waited for: the person decides."""


async def call_model(session: Session, world: World) -> None:
    state = session.state
    turn = state.turn
    if turn is None:
        return
    request = prompt.build(state, await world.texts(prompt.needed(state)))
    try:
        provider, own_name = world.provider(request.model)
        reply = await _ask(session, world, provider, replace(request, model=own_name))
    except ProviderError as error:
        ended = Ended(turn=turn.id, stop="error", message=error.message)
        await session.append(lambda now: Write([ended]) if _awaits(now, state) else None)
        return
    reply = _storable(reply).model_copy(update={"model": request.model})
    await session.append(lambda now: Write([reply]) if _awaits(now, state) else None)


async def _ask(
    session: Session, world: World, provider: Provider, request: ModelRequest
) -> Replied:
    """Retries what may succeed later: no tool has run yet, so asking again is always safe."""
    retries = world.settings.retries
    for attempt in range(retries + 1):
        try:
            return await _stream(session, provider, request)
        except ProviderError as error:
            session.restart(request.id)
            wait = _wait(error, attempt, world.settings.retry_delay)
            if not error.retryable or attempt == retries or wait > LONGEST_WAIT:
                raise
            session.notice(f"{error.message} Trying again in {wait:.0f} s ({attempt + 1}).\n")
            await asyncio.sleep(wait)
    raise AssertionError("unreachable")


def _wait(error: ProviderError, attempt: int, first: float) -> float:
    if error.retry_after is not None:
        return error.retry_after
    spread: float = random.uniform(0.75, 1.25)
    return min(first * 2.0**attempt * spread, LONGEST_WAIT)


async def _stream(session: Session, provider: Provider, request: ModelRequest) -> Replied:
    reply: Replied | None = None
    async with aclosing(provider.stream(request)) as stream:
        async for item in stream:
            if isinstance(item, Delta):
                id = f"{request.id}.{item.index}" if item.kind == "call" else request.id
                session.stream_delta(item.kind, id, item.text, item.name)
            else:
                reply = item
    if reply is None:
        raise ProviderError("The model ended its stream without a reply.", fault="malformed",
                            retryable=True)  # fmt: skip
    return reply


def _storable(reply: Replied) -> Replied:
    """A model can write half a surrogate pair, as an escape in JSON; UTF-8 cannot hold it."""
    try:
        encode(reply)
    except PydanticSerializationError:
        return Replied.model_validate(_whole(reply.model_dump()))
    return reply


def _whole(value: Any) -> Any:
    match value:
        case str():
            return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        case dict():
            return {_whole(key): _whole(item) for key, item in value.items()}
        case list() | tuple():
            return [_whole(item) for item in value]
    return value


def _awaits(now: State, then: State) -> bool:
    """The turn still stands where the request was made; only its inbox may have grown."""
    return (
        now.turn is not None
        and then.turn is not None
        and now.turn.id == then.turn.id
        and now.turn.requests == then.turn.requests
    )
