"""What a client should not send: hostile lines, batches, wrong ids, late and wrong answers."""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from typing import Any

import pytest

from magy_server.api.wire.methods import CLIENT_TO_SERVER
from tests.lsp.client import RpcError
from tests.lsp.fuzz import BASE, Hostile
from tests.thorough import one_of

from .harness import GONE, AcpClient, client
from .test_turn import EDIT

METHODS = [
    "initialize", "authenticate", "session/new", "session/load", "session/resume", "session/fork",
    "session/list", "session/close", "session/delete", "session/set_mode",
    "session/set_config_option", "session/prompt", "session/cancel", "$/cancel_request",
    "auth/login", "auth/logout", "tool_call/cancel",
    *(f"_{method.name}" for method in CLIENT_TO_SERVER),
]  # fmt: skip
LINES = 10_000
HEADER = re.compile(rb"\AContent-Length: \d+\r\n\r\n")


def line(frame: bytes) -> bytes:
    """A frame of the language server's suite as a line; an odd header is a line by itself."""
    return HEADER.sub(b"", frame).replace(b"\r\n", b"\n") + b"\n"


@pytest.mark.timeout(240)
@pytest.mark.parametrize(("seed", "version"), one_of([(2026, 1), (2027, 2)]))
async def test_ten_thousand_hostile_lines(root: Path, state: Path, seed: int, version: int) -> None:
    words = ("--acp-v2",) if version == 2 else ()
    async with client(root, state, "text: Still here.\n", words=words) as one:
        one._ids = itertools.count(BASE)
        about = {"name": "test", "version": "1"}
        answer = await one.request(
            "initialize", protocolVersion=version, info=about, clientInfo=about
        )
        assert answer["protocolVersion"] == version
        for n, frame in enumerate(Hostile(seed, METHODS).frames(LINES), 1):
            one.send_raw(line(frame))
            await one.process.stdin.drain()
            if n % 1000 == 0:
                with pytest.raises(RpcError, match="no method"):
                    await one.request("are/you/there")
        session = await one.new()
        await one.turn(session, "Hello?")
        await one.until(lambda: _answered(one, session))
        log = one.stderr.decode()
        assert "failed inside Magy" not in log and "Traceback" not in log, log


def _answered(one: AcpClient, session: str) -> bool:
    """In version 2 the whole message may come before all of its pieces have, which it replaces."""
    whole = [update["content"][0]["text"] for update in one.updates("agent_message", session)]
    return "Still here." in (one.said(session), *whole)


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        (b"not json\n", -32700),
        (b"\xff\xfe\n", -32700),
        (b"[]\n", -32600),
        (b"[[]]\n", -32600),
        (b'[{"jsonrpc":"2.0","id":1,"method":"session/list","params":[]}]\n', -32602),
        (b'{"jsonrpc":"2.0","id":1.5,"method":"session/list"}\n', -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":7}\n', -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":"session/list","params":[]}\n', -32602),
        (b'{"jsonrpc":"2.0","id":1,"method":"session/list"}\n', -32600),  # before initialize
    ],
)
async def test_what_is_no_request(root: Path, state: Path, sent: bytes, code: int) -> None:
    async with client(root, state, "text: Hi.\n") as one:
        if b"params" in sent:
            await one.initialize()
            one.received.clear()
        one.send_raw(sent)
        await one.until(lambda: one.received)
        assert one.received[0]["error"]["code"] == code
        assert one.received[0]["error"]["message"]


@pytest.mark.parametrize(
    ("method", "params", "said"),
    [
        ("session/new", {"cwd": "relative", "mcpServers": []}, "not an absolute path"),
        ("session/new", {"cwd": "/nowhere/at/all", "mcpServers": []}, "not a directory"),
        ("session/new", {"mcpServers": []}, "cwd"),
        ("session/new", {"cwd": "/", "mcpServers": [], "additionalDirectories": ["/tmp"]}, "one"),
        ("session/load", {"cwd": "/", "mcpServers": [], "sessionId": "nobody"}, "no session"),
        ("session/resume", {"cwd": "/", "sessionId": "no/body"}, "no session"),
        ("session/prompt", {"sessionId": "nobody", "prompt": []}, "load or resume it first"),
        ("session/prompt", {"sessionId": "nobody", "prompt": [{"type": "smell"}]}, "prompt"),
        ("session/set_mode", {"sessionId": "nobody", "modeId": "build"}, "load or resume"),
        ("_magy/session/prompt", {"sessionId": "nobody"}, "messageId"),
    ],
)
async def test_wrong_parameters_are_named(
    root: Path, state: Path, method: str, params: dict[str, Any], said: str
) -> None:
    async with client(root, state, "text: Hi.\n") as one:
        await one.initialize()
        with pytest.raises(RpcError) as refused:
            await one.request(method, **params)
        assert said in refused.value.message and "\n" not in refused.value.message
        assert refused.value.code in (-32602, -32002)
        assert (await one.turn(await one.new(), "Hello?"))["stopReason"] == "end_turn"


async def test_sloppy_capabilities_count_as_left_out(root: Path, state: Path) -> None:
    async with client(root, state, "text: Hi.\n") as one:
        answer = await one.request(
            "initialize", protocolVersion=1, clientCapabilities={"fs": "yes", "terminal": 7},
            clientInfo=[], later={"x": 1},
        )  # fmt: skip
        assert answer["protocolVersion"] == 1
        with pytest.raises(RpcError, match="initialized already"):
            await one.initialize()
        assert (await one.turn(await one.new(), "Hello?"))["stopReason"] == "end_turn"


async def test_an_answer_twice_and_late_changes_nothing(root: Path, state: Path) -> None:
    async with client(root, state, EDIT) as one:
        one.handlers["session/request_permission"] = lambda params: GONE
        await one.initialize()
        session = await one.new()
        prompt = one.ask(session, "be polite")
        (asked,) = await one.until(lambda: one.asked("session/request_permission"))
        for option in ("reject_once", "allow_once", "reject_once"):
            outcome = {"outcome": "selected", "optionId": option}
            one.send({"id": asked["id"], "result": {"outcome": outcome}})
        assert (await prompt)["stopReason"] == "end_turn"
        assert "hello" in (root / "app.py").read_text()
        one.send({"id": asked["id"], "error": {"code": 1, "message": "late"}})
        one.send({"id": "never-asked", "result": {}})
        assert await one.request("session/list")


@pytest.mark.parametrize(
    ("method", "params", "said"),
    [
        ("session/prompt", {"prompt": [{"type": "text"}]},
         "session/prompt: prompt.0.text is missing."),
        ("session/prompt", {"prompt": [{"type": "image"}]},
         "session/prompt: prompt.0.data is missing; prompt.0.mimeType is missing."),
        ("session/prompt", {"prompt": [{"type": "video"}]},
         'session/prompt: prompt.0.type must be "text", or be "image", or be "audio", or be '
         '"resource_link", or be "resource".'),
        ("session/prompt", {"prompt": []}, "session/prompt: prompt must not be empty."),
        ("_magy/session/cancel", {"sessionId": 5},
         "_magy/session/cancel: sessionId must be a string."),
    ],
)  # fmt: skip
async def test_an_error_names_what_is_wrong_and_the_method_that_was_asked(
    root: Path, state: Path, method: str, params: dict[str, Any], said: str
) -> None:
    async with client(root, state, "") as one:
        await one.initialize()
        asked = {"sessionId": await one.new(), **params}
        with pytest.raises(RpcError) as refused:
            await one.request(method, **asked)
        assert refused.value.message == said
