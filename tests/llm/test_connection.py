"""What comes over a connection of the direct transport, however odd it is."""

from __future__ import annotations

import asyncio
import gzip
import select
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import httpx2
import pytest
from hypothesis import given, strategies

from magy_server.llm.anthropic import AnthropicProvider
from magy_server.llm.transports.connection import Answer, Connection
from magy_server.llm.transports.direct_transport import DirectTransport, is_direct
from magy_server.llm.transports.httpx_transport import HttpxTransport
from magy_server.llm.transports.transport import (
    Broken,
    Cut,
    Endpoint,
    Refused,
    TimedOut,
    Unusable,
)

from .conversations import failure

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
CHUNKED = HEAD + b"transfer-encoding: chunked\r\n\r\n"
DONE = b"0\r\n\r\n"
Serve = Callable[["Side"], Awaitable[None]]


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


def sized(body: bytes, *headers: bytes) -> bytes:
    more = b"".join(header + b"\r\n" for header in headers)
    return HEAD + more + b"content-length: %d\r\n\r\n%s" % (len(body), body)


@dataclass
class Side:
    """The server's side of one connection."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def request(self) -> bytes:
        """Reads one, body and all; returns its head."""
        head = await self.reader.readuntil(b"\r\n\r\n")
        for line in head.lower().split(b"\r\n"):
            if line.startswith(b"content-length:"):
                await self.reader.readexactly(int(line.partition(b":")[2]))
        return head

    async def say(self, *parts: bytes) -> None:
        for part in parts:
            self.writer.write(part)
            await self.writer.drain()
            await asyncio.sleep(0)

    async def gone(self) -> None:
        """Waits until the other side has closed the connection."""
        try:
            while await self.reader.read(1 << 16):
                pass
        except ConnectionError:
            pass


@dataclass
class Server:
    url: str = ""
    sides: list[Side] = field(default_factory=list)
    transport: DirectTransport | HttpxTransport = field(init=False)


@asynccontextmanager
async def serving(serve: Serve, connect: float = 5.0) -> AsyncIterator[Server]:
    server = Server()

    async def one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        side = Side(reader, writer)
        server.sides.append(side)
        try:
            await serve(side)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async with await asyncio.start_server(one, "127.0.0.1", 0) as listening:
        server.url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
        endpoint = Endpoint(AnthropicProvider.vendor, server.url, "k", False, connect, 5.0)
        server.transport = DirectTransport(endpoint)
        yield server
        await server.transport.close()


def answering(*answers: bytes) -> Serve:
    """One after the other, each to a request; then it closes the connection."""

    async def serve(side: Side) -> None:
        for answer in answers:
            await side.request()
            await side.say(answer)

    return serve


async def body(server: Server) -> bytes:
    answer = await server.transport.post("/v1", b"{}")
    try:
        return await answer.whole()
    finally:
        await answer.close()


# --- where a body ends ----------------------------------------------------------------------------

BODIES = {
    "sized": sized(b"abc"),
    "sized, empty": sized(b""),
    "no content": b"HTTP/1.1 204 No Content\r\n\r\n",
    "chunked": CHUNKED + chunk(b"ab") + chunk(b"c") + DONE,
    "chunked, with a trailer": CHUNKED + chunk(b"abc") + b"0\r\nx-sum: 1\r\n\r\n",
    "chunked, with extensions": CHUNKED + b"3;name=value\r\nabc\r\n" + DONE,
    "chunked, with a length besides": HEAD
    + b"content-length: 9\r\ntransfer-encoding: chunked\r\n\r\n"
    + chunk(b"abc")
    + DONE,
    "chunked, with a trailer that would matter": CHUNKED
    + chunk(b"abc")
    + b"0\r\ncontent-encoding: gzip\r\n\r\n",
    "chunked, with padded sizes": CHUNKED + b"3  \r\nabc\r\n" + DONE,
    "after bare line feeds": b"HTTP/1.1 200 OK\ncontent-length: 3\n\nabc",
    "after interim answers": b"HTTP/1.1 100 Continue\r\n\r\n"
    b"HTTP/1.1 103 Early Hints\r\nlink: x\r\ncontent-length: 9\r\n\r\n" + sized(b"abc"),
    "until the end": HEAD + b"connection: close\r\n\r\nabc",
    "until the end, of HTTP/1.0": b"HTTP/1.0 200 OK\r\n\r\nabc",
    "gzip": sized(gzip.compress(b"abc"), b"content-encoding: gzip"),
    "gzip, in two archives": sized(
        gzip.compress(b"a") + gzip.compress(b"bc") + b"\0" * 9, b"content-encoding: gzip"
    ),
    "gzip, empty": sized(b"", b"content-encoding: gzip"),
    "deflate": sized(zlib.compress(b"abc"), b"Content-Encoding: Deflate"),
}
EMPTY = ("sized, empty", "no content", "gzip, empty")


@pytest.mark.parametrize("kind", BODIES)
async def test_a_body_is_read_to_its_end(kind: str) -> None:
    async with serving(answering(BODIES[kind])) as server:
        assert await body(server) == (b"" if kind in EMPTY else b"abc")


@given(strategies.sampled_from(sorted(BODIES)), strategies.data())
def test_it_does_not_matter_where_the_network_cuts(kind: str, data: strategies.DataObject) -> None:
    """The parts of an answer are handed over as asyncio does, without a network."""
    whole = BODIES[kind]
    cuts = sorted(data.draw(strategies.sets(strategies.integers(1, len(whole) - 1), max_size=8)))
    parts = [whole[a:b] for a, b in zip([0, *cuts], [*cuts, len(whole)], strict=True)]
    want = b"" if kind in EMPTY else b"abc"
    assert asyncio.run(_read(parts)) == want


async def _read(parts: Sequence[bytes]) -> bytes:
    connection = Connection()
    answer = Answer(connection)
    for part in parts:
        answer.take(part)
    answer.lost(None)
    await answer.begun()
    return await answer.whole()


TORN = {
    "sized": HEAD + b"content-length: 9\r\n\r\nabc",
    "chunked": CHUNKED + chunk(b"abc"),
    "in a chunk": CHUNKED + b"9\r\nabc",
    "packed": sized(gzip.compress(b"abc" * 99)[:-9], b"content-encoding: gzip"),
    "packed, in the second archive": sized(
        gzip.compress(b"abc") + gzip.compress(b"abc" * 99)[:-9], b"content-encoding: gzip"
    ),
    "packed, until the end": HEAD
    + b"content-encoding: gzip\r\n\r\n"
    + gzip.compress(b"abc" * 99)[:-9],
    "no gzip at all": sized(b"abc", b"content-encoding: gzip"),
    "no chunk": CHUNKED + b"xyz\r\n",
    "an endless trailer": CHUNKED + chunk(b"abc") + b"0\r\n" + b"a: b\r\n" * 20_000,
    "an endless extension": CHUNKED + chunk(b"abc") + b"3;x=" + b"y" * 100_000,
}


@pytest.mark.parametrize("kind", TORN)
async def test_half_a_body_is_never_taken_for_a_whole_one(kind: str) -> None:
    async with serving(answering(TORN[kind])) as server:
        answer = await server.transport.post("/v1", b"{}")
        with pytest.raises(Cut):
            await answer.whole()
        await answer.close()


BROKEN = {
    "nothing": (b"", "disconnected without"),
    "half a head": (b"HTTP/1.1 200 OK\r\ncontent-", "disconnected without"),
    "no HTTP": (b"SSH-2.0-OpenSSH_9.2\r\n", "not HTTP"),
    "another protocol": (
        b"HTTP/1.1 101 Switching\r\nconnection: upgrade\r\nupgrade: x\r\n\r\nzz",
        "not HTTP",
    ),
    "an endless head": (b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 20_000, "head of the answer"),
    "two lengths": (
        HEAD + b"content-length: 3\r\ncontent-length: 4\r\n\r\nabcd",
        "not HTTP",
    ),
    "packed as nobody asked": (sized(b"abc", b"content-encoding: br"), "'br'"),
}


@pytest.mark.parametrize("kind", BROKEN)
async def test_what_is_no_answer_is_said(kind: str) -> None:
    said, words = BROKEN[kind]
    async with serving(answering(said)) as server:
        with pytest.raises(Broken) as failed:
            await body(server)
    assert words in str(failed.value.__cause__)


async def test_a_refusal_is_read_whole() -> None:
    said = b'HTTP/1.1 429 No\r\nRetry-After: 3\r\ncontent-length: 13\r\n\r\n{"error": {}}'
    async with serving(answering(said, sized(b"abc"))) as server:
        with pytest.raises(Refused) as refused:
            await body(server)
        assert refused.value.status == 429 and refused.value.body == {"error": {}}
        assert refused.value.headers.get("retry-after") == "3"
        assert await body(server) == b"abc"
        assert len(server.sides) == 1, "the connection is used again"


REFUSED = b"HTTP/1.1 401 No\r\ncontent-type: application/json\r\n"
UNREADABLE = {
    "cut": REFUSED + b"content-length: 99\r\n\r\nthe key sk-12",
    "cut in a chunk": REFUSED + b"transfer-encoding: chunked\r\n\r\n9\r\nabc",
    "empty gzip": REFUSED + b"content-encoding: gzip\r\ncontent-length: 0\r\n\r\n",
    "half of gzip": REFUSED + b"content-encoding: gzip\r\n\r\n" + gzip.compress(b"{}" * 99)[:-9],
    "packed as nobody asked": REFUSED + b"content-encoding: br\r\ncontent-length: 2\r\n\r\nxx",
}


@pytest.mark.parametrize("kind", UNREADABLE)
async def test_a_refusal_counts_whatever_becomes_of_its_body(kind: str) -> None:
    """Who has a wrong key shall not look for a fault of the network; and half a key is no word."""
    async with serving(answering(UNREADABLE[kind])) as server:
        with pytest.raises(Refused) as refused:
            await body(server)
    assert (refused.value.status, refused.value.body) == (401, "")


async def test_a_refusal_without_end_is_not_read_to_its_end() -> None:
    gone = asyncio.Event()

    async def serve(side: Side) -> None:
        await side.request()
        await side.say(REFUSED + b"transfer-encoding: chunked\r\n\r\n")
        try:
            while True:
                await side.say(chunk(b"x" * 100_000))
        except ConnectionError:
            gone.set()

    async with serving(serve) as server:
        with pytest.raises(Refused) as refused:
            await body(server)
        assert refused.value.status == 401 and len(refused.value.body) < 4_000_000
        await gone.wait()


async def test_an_event_without_end_is_not_read_for_ever() -> None:
    """As long as something comes at once, no limit of time passes."""
    gone = asyncio.Event()

    async def serve(side: Side) -> None:
        await side.request()
        await side.say(CHUNKED + chunk(b"data: "))
        try:
            while True:
                await side.say(chunk(b"x" * 1_000_000))
        except ConnectionError:
            gone.set()

    async with serving(serve) as server:
        provider = AnthropicProvider("k", server.url)
        failed = await failure(provider)
        assert failed.fault == "malformed" and "is over 64 MB" in failed.message
        await gone.wait()
        await provider.close()


@pytest.mark.parametrize("transport", [DirectTransport, HttpxTransport])
async def test_a_list_without_end_is_not_read_for_ever(
    transport: type[DirectTransport | HttpxTransport],
) -> None:
    async def serve(side: Side) -> None:
        await side.request()
        await side.say(CHUNKED)
        while True:
            await side.say(chunk(b"x" * 1_000_000))

    async with serving(serve) as server:
        server.transport = transport(server.transport.endpoint)
        with pytest.raises(Broken):
            await server.transport.get("/v1/models", {})


@pytest.mark.parametrize("size", [100, 20_000_000])
async def test_who_refuses_a_large_request_need_not_read_it(size: int) -> None:
    """The rest of the request would stand before the next one."""
    done = asyncio.Event()

    async def serve(side: Side) -> None:
        while len(server.sides) == 1:
            await side.reader.readuntil(b"\r\n\r\n")
            if size < 1000:
                await side.reader.readexactly(size)
            await side.say(b"HTTP/1.1 413 No\r\ncontent-length: 5\r\n\r\nlarge")
            if size > 1000:
                await done.wait()
        await side.request()
        await side.say(sized(b"abc"))

    async with serving(serve) as server:
        for _ in range(2 if size < 1000 else 1):
            with pytest.raises(Refused) as refused:
                await server.transport.post("/v1", b"x" * size)
            assert (refused.value.status, refused.value.body) == (413, "large")
            assert len(server.sides) == 1
        if size > 1000:
            assert await body(server) == b"abc"
        done.set()


async def test_a_small_part_is_not_unpacked_into_a_large_one() -> None:
    large = 64 << 20
    packed = sized(gzip.compress(b"\0" * large), b"content-encoding: gzip")
    async with serving(answering(packed)) as server:
        answer = await server.transport.post("/v1", b"{}")
        sizes = []
        while part := await answer.read(5.0):
            sizes.append(len(part))
    assert sum(sizes) == large and max(sizes) <= 1 << 20


async def test_a_server_is_held_up_also_where_little_data_are_much() -> None:
    packed = gzip.compress(b"\0" * (8 << 20)) * 16
    sent = 0

    async def serve(side: Side) -> None:
        nonlocal sent
        await side.request()
        await side.say(HEAD + b"content-encoding: gzip\r\n\r\n")
        for _ in range(400):
            await side.say(packed)
            sent += len(packed)

    async with serving(serve) as server:
        answer = await server.transport.post("/v1", b"{}")
        for _ in range(200):
            assert await answer.read(5.0)
            await asyncio.sleep(0.002)
        assert 0 < sent < 20_000_000 < 400 * len(packed)
        await answer.close()


async def test_what_unpacks_to_nothing_is_no_sign_of_life() -> None:
    packing = zlib.compressobj(wbits=31)

    async def serve(side: Side) -> None:
        await side.request()
        await side.say(HEAD + b"content-encoding: gzip\r\n\r\n", packing.compress(b""))
        await side.say(packing.flush(zlib.Z_SYNC_FLUSH))
        while True:
            await side.say(b"\0\0\0\xff\xff")
            await asyncio.sleep(0.02)

    async with serving(serve) as server:
        answer = await server.transport.post("/v1", b"{}")
        with pytest.raises(TimeoutError):
            await answer.read(0.3)
        await answer.close()


# --- connections ----------------------------------------------------------------------------------


async def test_one_connection_serves_one_request_after_the_other() -> None:
    async with serving(answering(*[BODIES["chunked"]] * 5)) as server:
        assert [await body(server) for _ in range(5)] == [b"abc"] * 5
        assert len(server.sides) == 1


async def test_requests_at_once_have_connections_of_their_own() -> None:
    together = asyncio.Barrier(4)

    async def serve(side: Side) -> None:
        while True:
            await side.request()
            await together.wait()
            await side.say(BODIES["sized"])

    async with serving(serve) as server:
        for _ in range(3):
            assert await asyncio.gather(*(body(server) for _ in range(4))) == [b"abc"] * 4
        assert len(server.sides) == 4


@pytest.mark.parametrize(
    "answer",
    [
        sized(b"abc", b"connection: close"),
        b"HTTP/1.0 200 OK\r\ncontent-length: 3\r\n\r\nabc",
        BODIES["chunked, with a length besides"],
        sized(b"abc") + b"HTTP/1.1 200 OK\r\n",
        sized(b"abc") + b"more than was said",
    ],
)
async def test_a_connection_that_is_not_to_be_trusted_serves_once(answer: bytes) -> None:
    """An answer to nobody's question would be taken for that to the next one."""

    async def serve(side: Side) -> None:
        await side.request()
        await side.say(answer)
        await side.gone()

    async with serving(serve) as server:
        assert [await body(server) for _ in range(3)] == [b"abc"] * 3
        assert len(server.sides) == 3


async def test_what_comes_unasked_ends_the_connection() -> None:
    asked = asyncio.Event()

    async def serve(side: Side) -> None:
        await side.request()
        await side.say(sized(b"abc"))
        await asked.wait()
        await side.say(sized(b"poison"))
        await side.gone()
        closed.set()

    closed = asyncio.Event()
    async with serving(serve) as server:
        assert await body(server) == b"abc"
        asked.set()
        await closed.wait()
        asked.clear()
        assert await body(server) == b"abc"
        asked.set()


async def test_a_connection_that_the_server_closed_is_not_used() -> None:
    async with serving(answering(BODIES["sized"])) as server:
        for _ in range(3):
            assert await body(server) == b"abc"
            await server.sides[-1].writer.wait_closed()
            await server.sides[-1].gone()
            await _settled(server)
        assert len(server.sides) == 3


async def _settled(server: Server) -> None:
    """Waits until our side has noticed, too."""
    client = await server.transport.ready()
    while any(connection.open for connection in client.connections):
        await asyncio.sleep(0.001)


async def test_a_connection_is_not_used_that_was_closed_while_nobody_listened() -> None:
    """The loop was busy: what the server did is known to the system only."""
    async with serving(answering(BODIES["sized"])) as server:
        assert await body(server) == b"abc"
        (connection,) = (await server.transport.ready()).connections
        await server.sides[0].writer.wait_closed()
        assert connection._transport is not None
        ours = connection._transport.get_extra_info("socket")
        if connection.open:
            select.select([ours], [], [])
        assert await body(server) == b"abc"


@pytest.mark.parametrize("passed", [31.0, -60.0])
async def test_a_connection_that_waited_long_is_not_used(passed: float) -> None:
    """Somebody on the way may have forgotten it. The clock may also have been put back."""

    async def serve(side: Side) -> None:
        while True:
            await side.request()
            await side.say(sized(b"abc"))

    async with serving(serve) as server:
        for _ in range(2):
            assert await body(server) == b"abc"
        assert len(server.sides) == 1
        (connection,) = (await server.transport.ready()).connections
        connection.since -= passed
        assert await body(server) == b"abc"
        assert len(server.sides) == 2


async def test_a_closed_transport_keeps_no_connection_that_was_at_work() -> None:
    closed, gone = asyncio.Event(), asyncio.Event()

    async def serve(side: Side) -> None:
        await side.request()
        await side.say(CHUNKED, chunk(b"a"))
        await closed.wait()
        await side.say(chunk(b"bc"), DONE)
        await side.gone()
        gone.set()

    async with serving(serve) as server:
        answer = await server.transport.post("/v1", b"{}")
        assert await answer.read(5.0) == b"a"
        await server.transport.close()
        closed.set()
        assert await answer.whole() == b"bc"
        await answer.close()
        await gone.wait()
        assert await body(server) == b"abc"


async def test_who_gives_up_closes_the_connection() -> None:
    ended: list[str] = []
    asked, done = asyncio.Event(), asyncio.Event()

    async def serve(side: Side) -> None:
        await side.request()
        asked.set()
        if len(server.sides) > 1:
            await side.say(CHUNKED, chunk(b"abc"))
        await side.gone()
        ended.append("gone")
        done.set()

    async with serving(serve) as server:
        asking = asyncio.create_task(server.transport.post("/v1", b"{}"))
        await asked.wait()
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        await done.wait()
        done.clear()
        answer = await server.transport.post("/v1", b"{}")
        assert await answer.read(5.0) == b"abc"
        with pytest.raises(TimeoutError):
            await answer.read(0.01)
        await answer.close()
        await done.wait()
    assert len(ended) == 2


async def test_a_server_that_is_not_read_is_held_up() -> None:
    """Nobody reads for a while: only what the system's buffers take goes out."""
    sent = 0

    async def serve(side: Side) -> None:
        nonlocal sent
        await side.request()
        await side.say(CHUNKED)
        for _ in range(400):
            await side.say(chunk(b"x" * 100_000))
            sent += 100_000
        await side.say(DONE)

    async with serving(serve) as server:
        answer = await server.transport.post("/v1", b"{}")
        before = -1
        while before != sent:
            before = sent
            await asyncio.sleep(0.1)
        assert sent < 20_000_000
        assert len(await answer.whole()) == 40_000_000


async def test_who_leaves_an_answer_unread_holds_up_nobody_else() -> None:
    large = sized(b"x" * 600_000)
    async with serving(answering(large, large, large)) as server:
        for _ in range(2):
            answer = await server.transport.post("/v1", b"{}")
            client = await server.transport.ready()
            while not client.connections[0].free:
                assert await answer.read()
            await answer.close()
        assert len(await body(server)) == 600_000
        assert len(server.sides) == 1


async def test_nobody_answers_the_connection() -> None:
    """The port takes connections, and speaks no TLS to them."""

    async def serve(side: Side) -> None:
        await side.gone()

    async with serving(serve) as server:
        endpoint = Endpoint(
            AnthropicProvider.vendor, server.url.replace("http:", "https:"), "k", False, 0.05, 5.0
        )
        with pytest.raises(TimedOut):
            await DirectTransport(endpoint).post("/v1", b"{}")


async def test_a_name_with_several_addresses_says_why_none_of_them_answers() -> None:
    async with serving(answering()) as server:
        port = server.url.rpartition(":")[2]
    vendor = AnthropicProvider.vendor
    endpoint = Endpoint(vendor, f"http://localhost:{port}", "k", False, 5.0, 5.0)
    with pytest.raises(Broken) as failed:
        await DirectTransport(endpoint).post("/v1", b"{}")
    assert isinstance(failed.value.__cause__, ConnectionRefusedError)


@pytest.mark.parametrize("transport", [DirectTransport, HttpxTransport])
@pytest.mark.parametrize("value", ["secret\rx-evil: c", "secret\x0b&", "secret\udc80"])
async def test_a_header_of_the_environment_cannot_smuggle_another_one(
    value: str, transport: type[DirectTransport | HttpxTransport], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_CUSTOM_HEADERS", f"x-a: {value}")
    endpoint = Endpoint(AnthropicProvider.vendor, "http://127.0.0.1:9", "k", True, 5.0, 5.0)
    with pytest.raises(Unusable) as failed:
        await transport(endpoint).post("/v1", b"{}")
    assert "'x-a' is no header" in str(failed.value.__cause__)
    assert "secret" not in repr(failed.value.__cause__)


async def test_a_request_says_once_what_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    more = "Content-Type: text/x\nContent-Length: 1\nTransfer-Encoding: chunked\nx-a: b"
    monkeypatch.setenv("ANTHROPIC_CUSTOM_HEADERS", more)
    heads: list[bytes] = []

    async def serve(side: Side) -> None:
        heads.append(await side.request())
        await side.say(sized(b"abc"))

    async with serving(serve) as server:
        endpoint = Endpoint(AnthropicProvider.vendor, server.url, "k", True, 5.0, 5.0)
        server.transport = DirectTransport(endpoint)
        assert await body(server) == b"abc"
    lines = heads[0].lower().split(b"\r\n")
    assert b"x-a: b" in lines and not any(line.startswith(b"transfer-") for line in lines)
    said = sorted(line for line in lines if line.startswith(b"content-"))
    assert said == [b"content-length: 2", b"content-type: application/json"]


@pytest.mark.parametrize(
    "url, host",
    [
        ("https://API.example.org:443/v1", "api.example.org"),
        ("http://example.org:80", "example.org"),
        ("http://example.org:443", "example.org:443"),
        ("http://[::80]", "[::80]"),
    ],
)
async def test_the_host_is_named_as_every_client_does(url: str, host: str) -> None:
    """Some gateways know no name with a port that goes without saying."""
    endpoint = Endpoint(AnthropicProvider.vendor, url, "k", False, 5.0, 5.0)
    client = await DirectTransport(endpoint).ready()
    assert f"host: {host}\r\n".encode() in client.headers


# --- for which addresses --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "url",
    [
        "https://api.anthropic.com",
        "https://api.openai.com/v1",
        "http://localhost:11434/v1/",
        "http://[::1]:8080",
        "https://generativelanguage.googleapis.com/v1beta/openai",
        "https://x.openai.azure.com/openai/deployments/a-b/x?api-version=2025-01-01",
        "http://my_server.local:1/a.b/c%20d",
    ],
)
def test_plain_addresses_are_asked_directly(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.delenv(name, raising=False)
    assert is_direct(url)
    monkeypatch.setenv("HTTPS_proxy", "http://127.0.0.1:9")
    assert not is_direct(url)


@pytest.mark.parametrize(
    "url",
    [
        "https://user:secret@example.org",
        "https://example.org@evil.example",
        "https://bücher.example",
        "https://example.org/ä",
        "https://example.org/a b",
        "https://example.org/../x",
        "https://example.org/a/./x",
        "https://example.org/a\r\nx-evil: 1",
        "https://example.org/a?b c",
        "https://example.org/#part",
        "http://[fe80::1%eth0]:80",
        "http://[:::]",
        "http://example.org:65536",
        "http://example.org:0",
        "http://example.org:080",
        "http://0177.0.0.1",
        "http://127.1",
        "http://300.1.1.1",
        "http://2130706433",
        "https://example.org/%zz",
        "https://example.org/a?<",
        "ftp://example.org",
        "example.org",
        "",
    ],
)
def test_other_addresses_are_for_the_library(url: str) -> None:
    assert not is_direct(url)


PIECES = 'a b.c Z _ ~ ! : :80 :080 / // /. /.. /%2e %41 %e9 %zz % ? # @ [ ] [::1] < > " \\ ^ \t ä'
PIECES += " | 0177.0.0.1 1.2.3.4 127.1 xn--bcher-kva &=1 + ;,' {} `"


@given(strategies.lists(strategies.sampled_from([*PIECES.split(" "), " ", "\r\n"]), max_size=6))
def test_nothing_that_could_be_read_in_two_ways_is_plain(pieces: list[str]) -> None:
    """The library reads an address as the direct transport does, or gets it."""
    url = f"http://{''.join(pieces)}"
    if is_direct(url):
        here, there = urlsplit(url), httpx2.URL(url)
        name = there.raw_host.decode().strip("[]")
        assert (here.hostname, here.port or 80) == (name, there.port or 80)
        assert here._replace(scheme="", netloc="", path=here.path or "/").geturl() in (
            there.raw_path.decode(),
            there.raw_path.decode().removesuffix("?"),
        )
