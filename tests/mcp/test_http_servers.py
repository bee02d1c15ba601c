"""Servers that speak streamable HTTP, over loopback: one written with the SDK, and one that is no
such server."""

from __future__ import annotations

import asyncio
import gzip
import json
import os
import random
import re
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from magy_server.core.errors import ToolError
from magy_server.core.mcp.server_settings import McpServer
from tests.mcp.test_servers import KEY, Seen, house
from tests.nursery import ALSO, TOP, born
from tests.patience import PATIENCE

SAMPLE = ("sdk_server", "http")
SDK_SERVERS = (
    "mcp.server.mcpserver mcp.server.auth.settings mcp.server.streamable_http_manager uvicorn"
)
"""What these servers import, which costs more than what they then do in a test."""


def free_port() -> int:
    """None of those that the system gives to connections: between two servers on it, one might be
    taken."""
    for port in random.sample(range(20_000, 32_000), 1_000):
        with socket.socket() as one, suppress(OSError):
            one.bind(("127.0.0.1", port))
            return port
    raise AssertionError("no port is free")


@asynccontextmanager
async def running(port: int, *script: str) -> AsyncIterator[McpServer]:
    """The sample server, or that of another script, until the end of the block."""
    name, *words = script or SAMPLE
    command = [sys.executable, "-m", f"tests.mcp.{name}", *words, str(port)]
    process = await born(command, str(TOP), {**os.environ, ALSO: SDK_SERVERS})
    said = asyncio.gather(process.stdout.read(), process.stderr.read())
    try:
        async with asyncio.timeout(PATIENCE):
            while True:
                try:
                    _, writer = await asyncio.open_connection("127.0.0.1", port)
                except OSError:
                    await asyncio.sleep(0.05)
                    continue
                writer.close()
                break
        yield McpServer(url=f"http://127.0.0.1:{port}/mcp", start_timeout=PATIENCE)
    finally:
        process.kill()
        await process.wait()
        await said


@pytest.mark.timeout(300)
@pytest.mark.req("G040")
async def test_a_server_over_http_is_used_lost_and_connected_to_again(tmp_path: Path) -> None:
    port = free_port()
    async with running(port) as server, house(tmp_path, sample=server) as one:
        assert (await one.call("sample__echo", text="hé")).for_model == "It said: hé"
        shown = await one.call("sample__picture")
        assert shown.images[0].mime == "image/png"
        seen = Seen()
        slow = await one.call("sample__slow", seen, steps=2)
        assert slow.for_model == "done at last" and "1/2 step 1\n" in seen.shown
        assert not (await one.call("sample__fail")).ok
    async with house(tmp_path, sample=server.model_copy(update={"call_timeout": 5.0})) as one:
        async with running(port):
            assert (await one.call("sample__echo", text="a")).for_model == "It said: a"
        with pytest.raises(ToolError, match="The MCP server 'sample'"):
            await one.call("sample__echo", text="b")
        async with running(port):
            async with asyncio.timeout(PATIENCE):
                while True:
                    try:
                        answer = await one.call("sample__echo", text="c")
                        break
                    except ToolError:
                        await asyncio.sleep(0.1)
            assert answer.for_model == "It said: c"


@asynccontextmanager
async def answering(head: str, body: bytes = b"") -> AsyncIterator[tuple[str, list[str]]]:
    """A web server that gives one answer to everybody: (its address, the heads that it got)."""
    heads: list[str] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append((await reader.readuntil(b"\r\n\r\n")).decode())
        writer.write(f"HTTP/1.1 {head}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
        with suppress(OSError):
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/mcp", heads


@pytest.mark.parametrize(
    ("head", "body", "said"),
    [
        ("404 Not Found", b"", "cannot be reached"),
        ("401 Unauthorized", b"", "does not accept the Authorization header.*HTTP 401"),
        ("200 OK\r\nContent-Type: text/html", b"<html>", "cannot be reached"),
        ("200 OK\r\nContent-Type: application/json", b"{" * (33 << 20), "more than 32 MB"),
    ],
)
async def test_what_is_no_server_of_this_kind_is_said(
    tmp_path: Path, head: str, body: bytes, said: str
) -> None:
    async with answering(head, body) as (url, heads):
        server = McpServer(
            url=url, headers={"Authorization": f"Bearer {KEY}"}, start_timeout=PATIENCE
        )
        async with house(tmp_path, odd=server) as one:
            with pytest.raises(ToolError, match=said) as error:
                await one.call("odd__x")
            assert KEY not in str(error.value) + "".join(one.logs)
        assert f"authorization: bearer {KEY}".lower() in heads[0].lower()


@asynccontextmanager
async def flooding(what: bytes) -> AsyncIterator[str]:
    """A server over HTTP that connects as it should, and answers a call with `what`, for ever."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            await serve_one(reader, writer)
        writer.close()

    async def serve_one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        size = re.search(r"content-length: (\d+)", head.lower())
        asked = json.loads(await reader.readexactly(int(size[1]))) if size else {}
        match asked.get("method"):
            case "initialize":
                result: dict[str, Any] = {
                    "protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                    "serverInfo": {"name": "flood", "version": "1"},
                }  # fmt: skip
            case "tools/list":
                result = {"tools": [{"name": "flow", "inputSchema": {"type": "object"}}]}
            case "tools/call":
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
                while True:
                    writer.write(what * 100)
                    await writer.drain()
            case _:
                status = "202 Accepted" if "id" not in asked else "404 Not Found"
                writer.write(f"HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n".encode())
                await writer.drain()
                return
        body = json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}).encode()
        kind = "Content-Type: application/json"
        writer.write(f"HTTP/1.1 200 OK\r\n{kind}\r\nContent-Length: {len(body)}\r\n\r\n".encode())
        writer.write(body)
        await writer.drain()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/mcp"
    finally:
        server.close()


SAID = {"method": "notifications/message", "params": {"level": "info", "data": ""}}
NOTICE = f"data: {json.dumps({'jsonrpc': '2.0', **SAID})}\n\n".encode()


@pytest.mark.long
@pytest.mark.parametrize(
    ("what", "said"),
    [
        (NOTICE, "it flooded: more than 20,000 messages"),
        (b": nothing\n" * 100_000, "was lost during the call"),
    ],
    ids=["notifications", "comments"],
)
async def test_a_server_that_floods_over_http_is_cut_off(
    tmp_path: Path, what: bytes, said: str
) -> None:
    limits = {"start_timeout": PATIENCE, "call_timeout": PATIENCE}
    async with flooding(what) as url, house(tmp_path, odd=McpServer(url=url, **limits)) as one:
        with pytest.raises(ToolError, match=said):
            await one.call("odd__flow")


async def test_what_is_packed_is_not_unpacked(tmp_path: Path) -> None:
    """A small answer may be a large one that is packed."""
    head = "200 OK\r\nContent-Type: application/json\r\nContent-Encoding: gzip"
    packed = gzip.compress(b" " * (64 << 20))
    async with answering(head, packed) as (url, heads):
        server = McpServer(url=url, start_timeout=PATIENCE)
        async with house(tmp_path, odd=server) as one:
            with pytest.raises(ToolError, match="it packs its answers"):
                await one.call("odd__x")
    assert "accept-encoding: identity" in heads[0].lower()
