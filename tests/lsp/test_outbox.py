"""The writer: in order, fair, never blocking, never growing; and the only one there is."""

from __future__ import annotations

import asyncio
import itertools
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from magy_server.jsonrpc.outbox import BUDGET, PRESSURE, ROOM, Outbox
from tests.lsp.client import Client, RpcError
from tests.patience import PATIENCE

TOP = Path(__file__).parents[2]


@pytest.fixture
async def echo() -> AsyncIterator[Client]:
    command = [sys.executable, "-m", "tests.lsp.echo_server"]
    async with Client.spawn(command, cwd=TOP) as client:
        await client.initialize()
        await client.request("magy/echo")
        yield client


class End:
    """A write end that keeps what it is given; `room` is how many bytes it takes at once."""

    def __init__(self, room: int) -> None:
        self.writes: list[bytes] = []
        self.room = room
        self.held = 0

    def write(self, data: bytes) -> None:
        self.writes.append(data)
        self.held += max(0, len(data) - self.room)

    def get_write_buffer_size(self) -> int:
        return self.held

    def abort(self) -> None:
        self.held = 0


class Endless:
    """Always has more to say, and counts how much it was made to say."""

    def __init__(self) -> None:
        self.pulled = 0

    async def pull(self, budget: int) -> Sequence[Mapping[str, Any] | bytes]:
        self.pulled += budget
        return [b"x" * budget]


async def test_small_frames_leave_in_one_write() -> None:
    outbox, end = Outbox(), End(room=10**6)
    outbox.attach(end)
    for n in range(100):
        outbox.send({"n": n})
    await asyncio.sleep(0.01)
    assert len(end.writes) == 1
    assert end.writes[0].startswith(b'Content-Length: 7\r\n\r\n{"n":0}Content-Length: 7\r\n\r\n')


async def test_what_a_source_says_at_once_leaves_in_one_write() -> None:
    outbox, end = Outbox(), End(room=10**6)
    outbox.attach(end)

    class Talk:
        said = 0

        async def pull(self, budget: int) -> Sequence[Mapping[str, Any] | bytes]:
            self.said += 1
            return [b"x" * 4000] * (budget // 4000) if self.said == 1 else []

    outbox.wake(Talk())
    job = asyncio.create_task(outbox.run())
    async with asyncio.timeout(PATIENCE):
        while not end.writes:
            await asyncio.sleep(0)
    assert len(end.writes) == 1 and end.writes[0].count(b"Content-Length") == BUDGET // 4000
    outbox.close()
    await asyncio.wait_for(job, PATIENCE)


async def test_draining_ends_once_all_is_written_or_the_client_is_gone() -> None:
    outbox, end = Outbox(), End(room=0)
    outbox.attach(end)
    assert await outbox.drain(PATIENCE)
    outbox.send({}, now=True)
    assert not await outbox.drain(0.01)
    draining = asyncio.ensure_future(outbox.drain(PATIENCE))
    end.held = 0
    outbox.resume_writing()
    assert await asyncio.wait_for(draining, PATIENCE)
    outbox.send({}, now=True)
    draining = asyncio.ensure_future(outbox.drain(PATIENCE))
    await asyncio.sleep(0)
    outbox.connection_lost(None)
    assert await asyncio.wait_for(draining, PATIENCE) and outbox.lost


async def test_sources_are_asked_only_while_there_is_room() -> None:
    outbox, end, source = Outbox(), End(room=0), Endless()
    outbox.attach(end)
    outbox.wake(source)
    job = asyncio.create_task(outbox.run())
    await _full(outbox)
    assert source.pulled <= ROOM + BUDGET
    before, end.held = source.pulled, 0
    outbox.resume_writing()
    await _full(outbox)
    assert before < source.pulled <= 2 * (ROOM + BUDGET)
    outbox.close()
    await asyncio.wait_for(job, PATIENCE)


async def _full(outbox: Outbox) -> None:
    """As much waits as may, and some turns of the loop later nothing more does."""
    async with asyncio.timeout(PATIENCE):
        while outbox.waiting < ROOM:
            await asyncio.sleep(0)
    for _ in range(100):
        await asyncio.sleep(0)


async def test_a_forgotten_source_says_nothing_more() -> None:
    outbox, end = Outbox(), End(room=10**9)
    outbox.attach(end)
    asked, ready = asyncio.Event(), asyncio.Event()

    class Slow(Endless):
        async def pull(self, budget: int) -> Sequence[Mapping[str, Any] | bytes]:
            asked.set()
            await ready.wait()
            return await super().pull(budget)

    source = Slow()
    outbox.wake(source)
    job = asyncio.create_task(outbox.run())
    await asyncio.wait_for(asked.wait(), PATIENCE)
    outbox.forget(source)
    ready.set()
    for _ in range(100):
        await asyncio.sleep(0)
    assert end.writes == []
    assert source.pulled == BUDGET
    outbox.close()
    await asyncio.wait_for(job, PATIENCE)


@pytest.mark.req("F001")
async def test_only_the_outbox_reaches_standard_output(echo: Client) -> None:
    """The client refuses everything that is not a frame, and the child had no input to steal."""
    assert await echo.request("magy/noise") == 0
    assert await echo.request("magy/echo", {"a": 1}) == {"a": 1}
    echo.close_input()
    await echo.exit_code()
    for text in ("a stray print", "a C library", "a child process"):
        assert text in echo.log


async def test_a_response_leaves_before_what_its_handler_woke(echo: Client) -> None:
    await echo.request("magy/stream", {"count": 10, "size": 10})
    await echo.wait_for("magy/chunk", lambda p: p["n"] == 9)
    tail = [m.get("method") or m["result"] for m in echo.received[-11:]]
    assert tail == ["started", *["magy/chunk"] * 10]


async def test_streams_take_turns(echo: Client) -> None:
    await echo.request("magy/stream", {"count": 2000, "size": 1000, "names": ["a", "b", "c"]})
    for name in "abc":
        last = {"source": name, "n": 1999, "text": "x" * 1000}
        await echo.wait_for("magy/chunk", last.__eq__)
    chunks = echo.notifications("magy/chunk")
    for name in "abc":
        assert [c["n"] for c in chunks if c["source"] == name] == list(range(2000))
    runs = [len(list(run)) for _, run in itertools.groupby(c["source"] for c in chunks)]
    assert max(runs) <= BUDGET // 1000


async def test_a_request_is_answered_in_the_middle_of_a_long_stream(echo: Client) -> None:
    await echo.request("magy/stream", {"count": 50_000, "size": 1000})
    await echo.wait_for("magy/chunk")
    assert await echo.request("magy/echo", {"a": 1}) == {"a": 1}
    assert len(echo.notifications("magy/chunk")) < 50_000


@pytest.mark.req("F001")
async def test_a_client_that_does_not_read_for_a_while_costs_no_memory(echo: Client) -> None:
    before = await echo.request("magy/memory")
    echo.pause()
    echo.start("magy/stream", {"count": 100_000, "size": 1000})
    ticks = echo.start("magy/ticks", {"seconds": 1.5})[1]
    async with asyncio.timeout(PATIENCE):
        while "worst stall" not in echo.log:  # it goes on, though nobody reads
            await asyncio.sleep(0.05)
    assert not ticks.done()
    echo.resume()
    assert await ticks < 0.5
    after = await echo.request("magy/memory")
    assert after["waiting"] <= ROOM + 2 * BUDGET
    assert after["rss"] - before["rss"] < 10_000  # KiB; the stream is 100 MB


async def test_a_client_that_asks_and_does_not_read_is_slowed_down(echo: Client) -> None:
    before = await echo.request("magy/memory")
    size, count = 1024 * 1024, 150
    echo.pause()
    answers = [echo.start("magy/large", {"size": size})[1] for _ in range(count)]
    padding = {"padding": "x" * 10_000}
    answers += [echo.start("magy/echo", padding)[1] for _ in range(300)]
    await asyncio.sleep(1)
    echo.resume()
    results = await asyncio.wait_for(asyncio.gather(*answers), PATIENCE)
    assert [len(result) for result in results[:count]] == [size] * count
    assert results[count:] == [padding] * 300
    after = await echo.request("magy/memory")
    # Held, joined and written: not the 150 MB that it asked for.
    assert (after["rss"] - before["rss"]) * 1024 < 4 * PRESSURE


async def test_a_broken_stream_takes_no_other_with_it(echo: Client) -> None:
    await echo.request("magy/broken_stream")
    await echo.request("magy/stream", {"count": 5, "size": 1})
    await echo.wait_for("magy/chunk", lambda p: p["n"] == 4)
    assert "this stream is broken" in echo.log


async def test_results_that_json_cannot_hold(echo: Client) -> None:
    with pytest.raises(RpcError) as refused:
        await echo.request("magy/unserializable")
    assert refused.value.code == -32603
    assert await echo.request("magy/undecodable") == f"a name with ? and {2**70}"
