"""What goes wrong on bare pygls, and does not here. Every test runs both servers: if pygls is
mended one day, the test says so, and a workaround can go."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.lsp.client import Client, uri_of
from tests.patience import PATIENCE

TOP = Path(__file__).parents[2]


@pytest.fixture
async def ours() -> AsyncIterator[Client]:
    async with Client.spawn([sys.executable, "-m", "tests.lsp.echo_server"], cwd=TOP) as client:
        await client.initialize()
        yield client


class Bare(Client):
    """bare pygls sends a second header."""

    header = rb"Content-Length: (\d+)\r\nContent-Type: [^\r]*\r\n\r\n"


@pytest.fixture
async def bare() -> AsyncIterator[Client]:
    async with Bare.spawn([sys.executable, "-m", "tests.lsp.bare_pygls"], cwd=TOP) as client:
        await client.initialize()
        yield client


async def answer_within(client: Client, seconds: float, params: Any) -> Any:
    """The echo, or None when no answer came."""
    try:
        return await client.request("magy/echo", params, timeout=seconds)
    except TimeoutError:
        return None


async def test_a_key_jsonrpc_inside_the_params(ours: Client, bare: Client) -> None:
    params = {"rawOutput": {"jsonrpc": "2.0", "id": 1, "result": {"jsonrpc": "2.0"}}}
    assert await answer_within(ours, PATIENCE, params) == params
    assert await answer_within(bare, 1, params) is None
    assert await answer_within(bare, PATIENCE, {"a": 1}) is not None


async def test_a_request_without_params(ours: Client, bare: Client) -> None:
    assert await answer_within(ours, PATIENCE, None) == {}
    assert await answer_within(bare, 1, None) is None


async def test_keys_that_are_no_python_names(ours: Client, bare: Client) -> None:
    params = {
        "_meta": {"a": 1},
        "env": {"FOO-BAR": "1", "class": "x", "": 0},
        "type_name": "T",
        "nested": [{"type_name": 1, "none": None, "yes": True, "float": 1.0}],
    }
    assert await answer_within(ours, PATIENCE, params) == params
    assert await answer_within(bare, PATIENCE, params) != params


@pytest.mark.req("F001")
async def test_a_client_that_does_not_read(ours: Client, bare: Client) -> None:
    async def stalled(client: Client, enough: Awaitable[None]) -> Any:
        ticks = client.start("magy/ticks", {"seconds": 8})[1]
        client.start("magy/stream", {"count": 20_000, "size": 100})
        await client.wait_for("magy/chunk")
        client.pause()
        await enough
        client.resume()
        return await asyncio.wait_for(ticks, PATIENCE)

    stalls = await asyncio.gather(
        stalled(ours, asyncio.sleep(1.5)), stalled(bare, _stands_still(bare.process.pid))
    )
    assert stalls[0] < 0.5 < stalls[1]


async def _stands_still(pid: int) -> None:
    """Until the process, which has work to do, has done nothing for a while."""
    process = psutil.Process(pid)
    async with asyncio.timeout(PATIENCE):
        while True:
            before = process.num_ctx_switches()
            await asyncio.sleep(0.7)
            if process.num_ctx_switches() == before:
                return


async def test_a_form_feed_in_a_document(ours: Client, bare: Client, tmp_path: Path) -> None:
    """LSP's lines end with LF, CRLF or CR; pygls also ends them at form feeds and the like."""
    path = tmp_path / "page.el"
    text = ";;; one\n\x0c\n;;; two\u2028still two\n;;; three\n"
    change = {
        "range": {"start": {"line": 3, "character": 4}, "end": {"line": 3, "character": 9}},
        "text": "3",
    }
    for client in (ours, bare):
        item = {"uri": uri_of(path), "languageId": "elisp", "version": 1, "text": text}
        client.notify("textDocument/didOpen", {"textDocument": item})
        name = {"uri": uri_of(path), "version": 2}
        client.notify("textDocument/didChange", {"textDocument": name, "contentChanges": [change]})
    right = text.replace("three", "3")
    assert (await ours.request("magy/buffer", {"path": str(path)}))["text"] == right
    assert await bare.request("magy/text", {"uri": uri_of(path)}) != right


async def test_an_unknown_capability_does_not_spoil_initialize() -> None:
    newer = {"workspace": {"workspaceEdit": {"resourceOperations": ["create", "copy"]}}}
    command = [sys.executable, "-m", "tests.lsp.echo_server"]
    async with Client.spawn(command, cwd=TOP) as client:
        result = await client.initialize(capabilities=newer)
        assert result["capabilities"]["experimental"] == {"magy": {"version": "0", "protocol": 1}}
        assert "resourceOperations" in client.log
    async with Bare.spawn([sys.executable, "-m", "tests.lsp.bare_pygls"], cwd=TOP) as bare:
        with pytest.raises(TimeoutError):
            await bare.request("initialize", {"capabilities": newer}, timeout=2)
