"""LSP's base protocol, read tolerantly: in memory for every way of cutting the input, and through a
real process for what the client is answered."""

from __future__ import annotations

import asyncio
import itertools
import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magy_server.jsonrpc.messages import Malformed, decode, encode
from magy_server.lsp.frames import FrameDecoder
from tests.lsp.client import Client, RpcError, frame
from tests.nursery import Born
from tests.patience import PATIENCE

TOP = Path(__file__).parents[2]
ECHO = [sys.executable, "-m", "tests.lsp.echo_server"]


def message(n: int) -> bytes:
    return frame(b'{"n":%d}' % n)


def decoded(*pieces: bytes, limit: int = 10_000) -> list[Any]:
    decoder = FrameDecoder(max_body=limit)
    return [found for piece in pieces for found in decoder.feed(piece)]


def numbers(found: list[Any]) -> list[Any]:
    return [f["n"] for f in found if isinstance(f, dict)]


@given(cuts=st.lists(st.integers(0, 400), max_size=20), bodies=st.lists(st.text(), max_size=6))
def test_any_cutting_of_the_input_gives_the_same_messages(
    cuts: list[int], bodies: list[str]
) -> None:
    data = b"".join(frame(json.dumps(body).encode()) for body in bodies)
    edges = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    pieces = [data[a:b] for a, b in itertools.pairwise(edges)]
    assert decoded(*pieces) == bodies


@pytest.mark.parametrize(
    "header",
    [
        b"content-length: 7\r\n\r\n",
        b"CONTENT-LENGTH:7\r\n\r\n",
        b"Content-Length: 7\n\n",
        b"Content-Length:\t 7 \r\n\r\n",
        b"Content-Type: application/vscode-jsonrpc; charset=utf-8\r\nContent-Length: 7\r\n\r\n",
        b"Content-Length: 7\r\nX-Anything: at all\r\n\r\n",
        b"Content-Length: 0000000000000000000007\r\n\r\n",
        b"\r\n\r\nContent-Length: 7\r\n\r\n",
        b"Content-Length: 99\r\nContent-Length: 7\r\n\r\n",
    ],
)
def test_headers_of_every_sort(header: bytes) -> None:
    assert numbers(decoded(header + b'{"n":1}' + message(2))) == [1, 2]


@pytest.mark.parametrize(
    "garbage",
    [
        b"hello\n",
        b"no line end",
        b'{"jsonrpc":"2.0","method":"without a header"}',
        b"\x00\xff\xfe" * 50,
        b"Content-Length: many\r\n\r\n",
        b"Content-Length: -5\r\n\r\n",
        b"x" * 100_000,
        b"x: y\r\n" * 1000,
    ],
)
def test_reading_goes_on_after_garbage(garbage: bytes) -> None:
    found = decoded(message(1), garbage, message(2) + message(3))
    assert numbers(found) == [1, 2, 3]


def test_a_length_that_is_too_short_loses_one_message() -> None:
    found = decoded(b'Content-Length: 4\r\n\r\n{"n":1}' + message(2))
    assert isinstance(found[0], Malformed)
    assert found[0].code == -32700
    assert numbers(found) == [2]


@pytest.mark.parametrize("announced", [9, 30, 40, 9_999])
def test_a_length_that_is_too_long_loses_one_message(announced: int) -> None:
    found = decoded(b'Content-Length: %d\r\n\r\n{"n":1}' % announced, message(2), message(3))
    assert isinstance(found[0], Malformed)
    assert numbers(found) == [2, 3]


def test_a_header_as_text_inside_a_message_is_text() -> None:
    text = "Content-Length: 5\r\n\r\nabcde"
    body = json.dumps({"n": text}).encode()
    data = frame(body)
    assert numbers(decoded(*(data[i : i + 1] for i in range(len(data))))) == [text]


@pytest.mark.parametrize("piece", [1, 7, 4096])
def test_a_body_over_the_limit_is_skipped_and_its_request_answered(piece: int) -> None:
    body = b'{"jsonrpc":"2.0","method":"magy/x","id":"a1","params":"%b"}' % (b"x" * 20_000)
    data = message(1) + frame(body) + message(2)
    found = decoded(*(data[i : i + piece] for i in range(0, len(data), piece)))
    assert numbers(found) == [1, 2]
    refused = found[1]
    assert isinstance(refused, Malformed)
    assert (refused.code, refused.id) == (-32600, "a1")
    assert "10000 bytes" in refused.message


def test_the_id_of_a_nested_object_is_not_the_request_s() -> None:
    body = b'{"params":{"id":7,"text":"%b"},"id":3}' % (b"x" * 20_000)
    found = decoded(frame(body))
    assert isinstance(found[0], Malformed)
    assert found[0].id is None


@pytest.mark.parametrize("digits", [b"20001", b"9" * 18, b"9" * 5000])
def test_a_lie_about_a_huge_body_does_not_make_the_server_deaf(digits: bytes) -> None:
    found = decoded(b"Content-Length: %b\r\n\r\n{" % digits, message(1), message(2))
    assert numbers(found) == [1, 2]


def test_a_message_cut_off_at_the_end_is_noticed() -> None:
    decoder = FrameDecoder()
    assert list(decoder.feed(message(1)))
    assert decoder.idle
    assert not list(decoder.feed(message(2)[:-1]))
    assert not decoder.idle


def test_lone_surrogates_become_replacement_characters() -> None:
    assert decode(rb'{"a":"x\ud83dy","b":"\ud83d\ude0b","c":"\uDC00"}') == {
        "a": "x\ufffdy",
        "b": "😋",
        "c": "\ufffd",
    }


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b'{"a":NaN}',
        b'{"a":"\\ud800",}',
        b'{"a":"\\ud800","b":NaN}',
        b'"\xff"',
        b"[" * 100_000,
        b'["\\ud800",' + b"[" * 100_000,
        b"1e",
        b"\xef\xbb\xbf{}",
    ],
)
def test_what_is_not_json_is_said_to_be_so(body: bytes) -> None:
    found = decode(body)
    assert isinstance(found, Malformed)
    assert found.code == -32700


def test_what_json_can_hold_leaves_even_when_it_is_odd() -> None:
    assert json.loads(encode({"big": 2**70, "name": "\udcff"})) == {"big": 2**70, "name": "?"}
    with pytest.raises(TypeError):
        encode({"a": {1, 2}})


# --- through a process ---------------------------------------------------------------------------


@pytest.fixture
async def raw() -> AsyncIterator[Client]:
    async with Client.spawn(ECHO, cwd=TOP) as client:
        yield client


@pytest.fixture
async def echo(raw: Client) -> Client:
    await raw.initialize()
    return raw


async def errors(client: Client, count: int) -> list[tuple[Any, int]]:
    """(id, code) of the first `count` error responses."""

    def found() -> list[tuple[Any, int]]:
        return [(m["id"], m["error"]["code"]) for m in client.received if "error" in m]

    await client.wait_until(lambda: len(found()) >= count, why=f"{count} errors")
    return found()


@pytest.mark.req("F001")
async def test_messages_that_are_none_are_answered_and_survived(echo: Client) -> None:
    echo.send_raw(frame(b"{nonsense"))
    echo.send_raw(frame(b'{"jsonrpc":"2.0","id":1,"method":"\xff"}'))
    for odd in ([], [{"id": 1, "method": "magy/echo"}], 5, None, "text"):
        echo.send(odd)
    echo.send({"id": 901, "method": 5})
    echo.send({"id": 902})
    echo.send({"method": {}})
    for id in (True, 1.5, [1], {"a": 1}, None):
        echo.send({"id": id, "method": "magy/echo"})
    echo.send({"id": 903, "method": "magy/echo", "params": [1]})
    echo.send({"id": 904, "method": "magy/echo", "params": "text"})
    echo.send({"id": 905, "method": "magy/unknown"})
    echo.send({"id": "x", "method": "unknown/unknown"})
    expected = [
        *[(None, -32700)] * 2,
        *[(None, -32600)] * 11,
        *[(901, -32600), (902, -32600), (903, -32602), (904, -32602)],
        *[(905, -32601), ("x", -32601)],
    ]
    # Requests that are served answer in their own time.
    assert sorted(map(str, await errors(echo, 19))) == sorted(map(str, expected))
    assert await echo.request("magy/echo", {"still": "here"}) == {"still": "here"}


async def test_wrong_parameters_have_their_reason_wherever_that_is_found(echo: Client) -> None:
    for id, method in ((903, "magy/echo"), (904, "workspace/executeCommand")):
        echo.send({"id": id, "method": method, "params": [1]})
    await errors(echo, 2)
    found = [(m["id"], m["error"]["data"]) for m in echo.received if "error" in m]
    assert sorted(found) == [(id, {"reason": "invalid_request"}) for id in (903, 904)]


async def test_a_message_over_the_limit_is_answered_by_name(echo: Client) -> None:
    start = b'{"jsonrpc":"2.0","id":77,"method":"magy/echo","params":{"text":"' + b"x" * 5000
    echo.send_raw(b"Content-Length: 300000000\r\n\r\n" + start)
    assert await errors(echo, 1) == [(77, -32600)]
    assert "268435456 bytes" in echo.received[-1]["error"]["message"]
    assert await echo.request("magy/echo") == {}


async def test_unknown_notifications_and_responses_are_ignored(echo: Client) -> None:
    echo.notify("magy/unknown", {})
    echo.notify("unknown/unknown", {})
    echo.notify("magy/echo", [1])
    echo.notify("$/cancelRequest", {"id": 12345})
    echo.notify("$/cancelRequest", {"id": [1]})
    echo.notify("$/cancelRequest")
    echo.send({"id": "nobody asked", "result": 1})
    echo.send({"id": "magy-1", "error": "not an object"})
    echo.send({"id": None, "error": {"code": -32700, "message": "?"}})
    assert await echo.request("magy/echo") == {}
    assert [m for m in echo.received if "error" in m] == []


async def test_requests_before_initialize_and_after_shutdown(raw: Client) -> None:
    for method in ("magy/echo", "textDocument/hover", "shutdown"):
        with pytest.raises(RpcError) as early:
            await raw.request(method, {})
        assert early.value.code == -32002
    raw.notify("textDocument/didOpen", {})
    raw.notify("magy/echo", {})
    await raw.initialize()
    with pytest.raises(RpcError, match="initialized already") as twice:
        await raw.initialize()
    assert twice.value.code == -32600
    assert await raw.request("shutdown") is None
    with pytest.raises(RpcError) as late:
        await raw.request("magy/echo", {})
    assert late.value.code == -32600
    raw.notify("exit")
    assert await raw.exit_code() == 0


@pytest.mark.req("F001")
@pytest.mark.parametrize(
    ("ending", "code", "why"),
    [("exit", 1, "asked Magy to exit"), ("end", 1, "disconnected"), ("term", 1, "SIGTERM")],
)
async def test_ways_to_end(echo: Client, ending: str, code: int, why: str) -> None:
    sleeping = echo.start("magy/sleep", {"seconds": 60})[1]
    assert await echo.request("magy/echo", {}) == {}
    if ending == "exit":
        echo.notify("exit")
    elif ending == "end":
        echo.close_input()
    else:
        echo.process.terminate()
    assert await echo.exit_code() == code
    assert (f"stopped because {why}") in echo.log.replace("the editor ", "").replace(
        "the signal ", ""
    )
    assert "Traceback" not in echo.log
    with pytest.raises((RpcError, ConnectionError)):
        await sleeping


async def test_input_that_ends_right_after_a_request_is_still_answered(echo: Client) -> None:
    answer = echo.start("magy/sleep", {"seconds": 0.1})[1]
    echo.send_raw(b"Content-Length: 100\r\n\r\n{cut")
    echo.close_input()
    assert await answer == "slept"
    assert await echo.exit_code() == 1
    assert echo.log.count("cut off") == 1


async def test_an_editor_that_closes_both_pipes_is_noticed(echo: Client) -> None:
    echo.start("magy/stream", {"count": 10**9, "size": 100})
    await echo.wait_for("magy/chunk")
    assert isinstance(echo.process, Born)
    echo.process.close_output()
    assert await echo.exit_code() == 1
    assert "disconnected" in echo.log
    assert "Traceback" not in echo.log


async def test_files_instead_of_pipes(tmp_path: Path) -> None:
    calls = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"capabilities": {}}},
        {"jsonrpc": "2.0", "id": 2, "method": "magy/echo", "params": {"a": 1}},
        {"jsonrpc": "2.0", "id": 3, "method": "shutdown"},
        {"jsonrpc": "2.0", "method": "exit"},
    ]
    (tmp_path / "in").write_bytes(b"".join(frame(json.dumps(c).encode()) for c in calls[:2]))
    with (tmp_path / "in").open("rb") as stdin, (tmp_path / "out").open("wb") as stdout:
        process = await asyncio.create_subprocess_exec(
            *ECHO, stdin=stdin, stdout=stdout, stderr=asyncio.subprocess.DEVNULL, cwd=TOP
        )
        assert await asyncio.wait_for(process.wait(), PATIENCE) == 1
    found = decoded((tmp_path / "out").read_bytes())
    assert [f["id"] for f in found] == [1, 2]
    assert found[1]["result"] == {"a": 1}
