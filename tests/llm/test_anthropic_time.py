"""The Anthropic adapter in time: limits, cancelling, connections, cost."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from magy_server.core.events import Replied
from magy_server.core.ports import Delta
from magy_server.core.values import Text
from magy_server.llm.anthropic import AnthropicProvider
from tests.loopback import (
    AnthropicServer,
    Part,
    hang,
    pause,
    ping,
    raw,
    text,
)
from tests.patience import PATIENCE

from .conversations import ask, event, failure, request

TOP = Path(__file__).parents[2]


# --- time ---------------------------------------------------------------------------------------


@pytest.fixture
async def hasty(server: AnthropicServer) -> AsyncIterator[AnthropicProvider]:
    provider = AnthropicProvider("test-key", server.base_url, connect=5, first_byte=1.5, stall=1.5)
    yield provider
    await provider.close()


async def test_no_answer_at_all(server: AnthropicServer, hasty: AnthropicProvider) -> None:
    server.fault("silence")
    failed = await failure(hasty)
    assert failed.fault == "timeout" and failed.retryable
    assert "no answer started within 1.5 s" in failed.message
    await asyncio.wait_for(server.requests[0].disconnected.wait(), PATIENCE)


async def test_the_time_for_a_connection_is_none_for_an_answer(server: AnthropicServer) -> None:
    server.fault("silence")
    provider = AnthropicProvider("test-key", server.base_url, connect=2 * PATIENCE, first_byte=0.5)
    failed = await asyncio.wait_for(failure(provider), PATIENCE)
    assert "no answer started within 0.5 s" in failed.message
    await provider.close()


async def test_an_answer_that_stops_coming(
    server: AnthropicServer, hasty: AnthropicProvider
) -> None:
    server.reply(text("so far"), hang())
    failed = await failure(hasty)
    assert failed.fault == "timeout" and failed.retryable
    assert "nothing arrived for 1.5 s" in failed.message
    await asyncio.wait_for(server.requests[0].disconnected.wait(), PATIENCE)


async def test_pings_show_that_the_other_side_is_alive(
    server: AnthropicServer, hasty: AnthropicProvider
) -> None:
    server.reply(*(part for _ in range(4) for part in (pause(0.5), ping())), text("at last"))
    _, replied = await ask(hasty, request())
    assert replied.content == (Text(text="at last"),)


async def test_a_slow_reader_is_not_taken_for_a_stalled_provider(
    server: AnthropicServer, hasty: AnthropicProvider
) -> None:
    server.reply(text("one two"))
    seen = []
    async for item in hasty.stream(request()):
        await asyncio.sleep(1.7)
        seen.append(item)
    assert isinstance(seen[-1], Replied)


async def test_a_body_that_does_not_end_does_not_hold_up_the_reply(
    server: AnthropicServer, provider: AnthropicProvider
) -> None:
    closing = event("message_delta", delta={"stop_reason": "end_turn"}, usage={})
    server.reply(text("whole"), raw(closing + event("message_stop")), hang())
    async with asyncio.timeout(PATIENCE):
        _, replied = await ask(provider, request())
    assert replied.content == (Text(text="whole"),)


# --- cancelling, connections, cost --------------------------------------------------------------


async def test_closing_the_iterator_ends_the_request(
    server: AnthropicServer, provider: AnthropicProvider
) -> None:
    server.reply(text("on and on"), hang())
    stream = provider.stream(request())
    await anext(stream)
    await stream.aclose()  # type: ignore[attr-defined]
    await asyncio.wait_for(server.requests[0].disconnected.wait(), PATIENCE)


@pytest.mark.parametrize("parts", [None, (text("some"), hang())])
async def test_cancelling_the_reader_ends_the_request(
    server: AnthropicServer, provider: AnthropicProvider, parts: tuple[Part, ...] | None
) -> None:
    """While it waits for the answer to begin, and in the middle of it."""
    if parts is None:
        server.fault("silence")
    else:
        server.reply(*parts)
    reading = asyncio.create_task(ask(provider, request()))
    await server.wait_for(1)
    await asyncio.sleep(0.05)
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    await asyncio.wait_for(server.requests[0].disconnected.wait(), PATIENCE)


async def test_one_connection_serves_many_requests(
    server: AnthropicServer, provider: AnthropicProvider
) -> None:
    server.answer(lambda sent: [text("hi")])
    for _ in range(5):
        await ask(provider, request())
    assert server.connections == 1


async def test_replies_stream_side_by_side(
    server: AnthropicServer, provider: AnthropicProvider
) -> None:
    """Each has begun while none has ended."""
    server.answer(lambda sent: [text("slow", pieces=("slow",)), hang()])
    async with asyncio.timeout(PATIENCE), AsyncExitStack() as open_:
        for _ in range(5):
            stream = provider.stream(request())
            open_.push_async_callback(stream.aclose)  # type: ignore[attr-defined]
            assert await anext(stream) == Delta("text", "slow")
    assert len(server.requests) == 5
