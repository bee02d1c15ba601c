"""Requests in both directions: errors, cancelling, starting, and what LSP has for the person."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.lsp.client import GONE, Client, RpcError, frame, uri_of

TOP = Path(__file__).parents[2]
ECHO = [sys.executable, "-m", "tests.lsp.echo_server"]


@pytest.fixture
async def echo() -> AsyncIterator[Client]:
    async with Client.spawn(ECHO, cwd=TOP) as client:
        await client.initialize()
        yield client


@pytest.mark.parametrize(
    ("how", "code", "reason"),
    [
        ("invalid", -32602, "invalid_request"),
        ("not_found", -32803, "not_found"),
        ("conflict", -32801, "conflict"),
        ("failed", -32803, "mood"),
        ("bug", -32603, None),
    ],
)
async def test_errors(echo: Client, how: str, code: int, reason: str | None) -> None:
    with pytest.raises(RpcError) as error:
        await echo.request("magy/fail", {"how": how})
    assert (error.value.code, error.value.reason) == (code, reason)
    assert ("ZeroDivisionError" in echo.log) == (how == "bug")
    assert "a bug" not in error.value.message


async def answers(client: Client, id: Any, count: int) -> list[dict[str, Any]]:
    def found() -> list[dict[str, Any]]:
        return [m for m in client.received if m.get("id") == id]

    await client.wait_until(lambda: len(found()) == count)
    return found()


async def test_ids_in_flight_are_not_used_twice(echo: Client) -> None:
    for id in (77, "seventy-seven"):
        call = {"jsonrpc": "2.0", "id": id, "method": "magy/sleep", "params": {"seconds": 0.3}}
        echo.send(call)
        echo.send(call)
        refused, served = await answers(echo, id, 2)
        assert refused["error"]["code"] == -32600
        assert served["result"] == "slept"
        echo.send(call)
        assert (await answers(echo, id, 3))[2]["result"] == "slept"


async def test_cancel_reaches_the_handler(echo: Client) -> None:
    id, answer = echo.start("magy/sleep", {"seconds": 60, "name": "long"})
    await echo.request("magy/echo")
    echo.cancel(id)
    with pytest.raises(RpcError) as error:
        await answer
    assert error.value.code == -32800
    assert await echo.request("magy/cancelled") == ["long"]


async def test_cancel_in_the_same_breath_as_the_request(echo: Client) -> None:
    call = {"id": "now", "method": "magy/sleep", "params": {"seconds": 60}}
    stop = {"method": "$/cancelRequest", "params": {"id": "now"}}
    await echo.request("magy/echo")
    echo.send_raw(frame(json.dumps(call).encode()) + frame(json.dumps(stop).encode()))
    await echo.wait_until(lambda: echo.received[-1].get("id") == "now")
    assert echo.received[-1]["error"]["code"] == -32800


async def test_requests_wait_for_the_start() -> None:
    async with Client.spawn(ECHO, cwd=TOP, env={"TOY_DELAY": "0.5"}) as client:
        await client.request("initialize", {"capabilities": {}})
        answers = [client.start("magy/echo", {"n": n})[1] for n in range(3)]
        assert [await answer for answer in answers] == [{"n": 0}, {"n": 1}, {"n": 2}]


async def test_a_start_that_fails_is_what_every_request_says() -> None:
    async with Client.spawn(ECHO, cwd=TOP, env={"TOY_START": "fail"}) as client:
        await client.initialize()
        for method in ("magy/echo", "magy/unheard_of"):
            with pytest.raises(RpcError, match=r"magy\.toml, line 3") as error:
                await client.request(method)
            assert (error.value.code, error.value.reason) == (-32803, "config")
        with pytest.raises(RpcError, match=r"magy\.toml, line 3"):
            await client.request("workspace/executeCommand", {"command": "toy.echo"})


async def test_what_helps_when_the_start_fails_can_be_asked_before_it() -> None:
    async with Client.spawn(ECHO, cwd=TOP, env={"TOY_START": "fail"}) as client:
        await client.request("initialize", {"capabilities": {}})
        assert await client.request("magy/anyway", {"n": 1}) == {"n": 1}


async def test_a_task_that_fails_ends_alone_and_is_told(echo: Client) -> None:
    await echo.request("magy/spawned_bug")
    told = await echo.wait_for("window/showMessage")
    assert told["type"] == 1 and "failed inside Magy (ZeroDivisionError)" in told["message"]
    assert await echo.request("magy/echo", {"n": 1}) == {"n": 1}
    assert "ZeroDivisionError: nobody foresaw this" in await echo.ended()


async def test_a_server_that_cannot_be_closed_ends_all_the_same() -> None:
    async with Client.spawn(ECHO, cwd=TOP, env={"TOY_STOP": "never"}) as client:
        await client.initialize()
        await client.request("magy/echo")
        assert "Not all of Magy could be closed in time" in await client.ended()
        assert client.process.returncode == 0


async def test_a_thread_that_does_not_end_keeps_no_server_alive(echo: Client) -> None:
    await echo.request("magy/endless_thread")
    assert "closed in time" not in await echo.ended()
    assert echo.process.returncode == 0


# --- our own requests ----------------------------------------------------------------------------


async def test_requests_to_the_client(echo: Client) -> None:
    echo.handlers["editor/add"] = lambda params: params["a"] + 1
    assert await echo.request("magy/ask", {"method": "editor/add", "params": {"a": 1}}) == 2
    with pytest.raises(RpcError, match="no editor/other here") as unknown:
        await echo.request("magy/ask", {"method": "editor/other"})
    assert (unknown.value.code, unknown.value.reason) == (-32803, "editor")


@pytest.mark.parametrize("error", ["text", {}, {"code": "x", "message": 5}, [], False])
async def test_errors_of_the_client_that_are_no_errors(echo: Client, error: Any) -> None:
    asking = echo.start("magy/ask", {"method": "editor/odd"})[1]
    echo.handlers["editor/odd"] = lambda params: GONE
    await echo.wait_for("editor/odd")
    ours = echo.received[-1]["id"]
    assert isinstance(ours, str)
    echo.send({"jsonrpc": "2.0", "id": ours, "error": error})
    with pytest.raises(RpcError) as answered:
        await asking
    assert answered.value.reason == "editor"


async def test_a_client_that_does_not_answer(echo: Client) -> None:
    echo.handlers["editor/never"] = lambda params: GONE
    with pytest.raises(RpcError, match=r"within 0\.2 seconds") as error:
        await echo.request("magy/ask", {"method": "editor/never", "timeout": 0.2})
    assert error.value.reason == "timeout"
    await echo.wait_for("editor/never")
    asked = next(m for m in echo.received if m.get("method") == "editor/never")
    assert await echo.wait_for("$/cancelRequest") == {"id": asked["id"]}
    echo.send({"jsonrpc": "2.0", "id": asked["id"], "result": "too late"})
    id, asking = echo.start("magy/ask", {"method": "editor/never"})
    await echo.wait_for("editor/never")
    echo.cancel(id)
    with pytest.raises(RpcError):
        await asking
    await echo.wait_for("$/cancelRequest")


@pytest.mark.req("G001")
async def test_a_question_for_the_person_blocks_nobody(echo: Client) -> None:
    decided = asyncio.Event()

    async def person(params: Any) -> Any:
        await decided.wait()
        return params["actions"][1]

    echo.handlers["window/showMessageRequest"] = person
    question = {"message": "May I?", "actions": ["Yes", "No"]}
    asking = echo.start("magy/choose", question)[1]
    shown = await echo.wait_for("window/showMessageRequest")
    assert shown["actions"] == [{"title": "Yes"}, {"title": "No"}]
    assert await echo.request("magy/echo", {"meanwhile": 1}) == {"meanwhile": 1}
    decided.set()
    assert await asking == "No"
    echo.handlers["window/showMessageRequest"] = lambda params: None
    assert await echo.request("magy/choose", question) is None


# --- progress and commands -----------------------------------------------------------------------


@pytest.mark.req("G001")
async def test_progress_that_can_be_cancelled(echo: Client) -> None:
    working = echo.start("magy/progress", {"wait": True})[1]
    created = await echo.wait_for("window/workDoneProgress/create")
    begun = await echo.wait_for("$/progress")
    assert begun == {
        "token": created["token"],
        "value": {"kind": "begin", "title": "Working", "cancellable": True},
    }
    assert (await echo.wait_for("$/progress"))["value"]["message"] == "half"
    echo.notify("window/workDoneProgress/cancel", {"token": "unknown"})
    echo.notify("window/workDoneProgress/cancel", {"token": created["token"]})
    assert await working == "clicked"
    assert (await echo.wait_for("$/progress"))["value"] == {"kind": "end", "message": "done"}
    assert len(echo.notifications("$/progress")) == 3


async def test_no_progress_for_a_client_without() -> None:
    async with Client.spawn(ECHO, cwd=TOP) as client:
        await client.initialize(capabilities={"window": {"workDoneProgress": False}})
        assert await client.request("magy/progress") == "no progress"
        assert client.notifications("window/workDoneProgress/create") == []


@pytest.mark.req("G001")
async def test_commands(echo: Client) -> None:
    arguments = [{"jsonrpc": "2.0", "_meta": 1, "class": "x"}, [None, 1.5], "text"]
    command = {"command": "toy.echo", "arguments": arguments}
    assert await echo.request("workspace/executeCommand", command) == arguments
    assert await echo.request("workspace/executeCommand", {"command": "toy.echo"}) == []
    with pytest.raises(RpcError) as failed:
        await echo.request("workspace/executeCommand", {"command": "toy.fail"})
    assert (failed.value.code, failed.value.reason) == (-32803, "not_found")
    for wrong in ({}, {"command": "none"}, {"command": "toy.echo", "arguments": 5}):
        with pytest.raises(RpcError) as refused:
            await echo.request("workspace/executeCommand", wrong)
        assert refused.value.code == -32602
    id, snoozing = echo.start("workspace/executeCommand", {"command": "toy.sleep"})
    await echo.request("magy/echo")
    echo.cancel(id)
    with pytest.raises(RpcError):
        await snoozing
    assert await echo.request("magy/cancelled") == ["command"]


async def test_workspace_folders(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "one")
    async with Client.spawn(ECHO, cwd=TOP) as client:
        await client.initialize(root=tmp_path / "link")
        assert await client.request("magy/folders") == [str(tmp_path / "one")]
        event = {"added": [{"uri": uri_of(tmp_path / "two"), "name": "two"}], "removed": []}
        client.notify("workspace/didChangeWorkspaceFolders", {"event": event})
        both = [str(tmp_path / name) for name in ("one", "two")]
        assert await client.request("magy/folders") == both


async def test_standard_methods_with_wrong_parameters(echo: Client) -> None:
    with pytest.raises(RpcError) as error:
        await echo.request("workspace/executeCommand", [])
    assert error.value.code == -32602
    echo.notify("textDocument/didOpen", {"textDocument": {"uri": 5}})
    echo.notify("textDocument/didChange", {"textDocument": None, "contentChanges": 1})
    name = {"uri": "file:///never/opened", "version": 2}
    echo.notify("textDocument/didChange", {"textDocument": name, "contentChanges": [{"text": ""}]})
    odd = {"uri": "file://[", "languageId": "x", "version": 1, "text": ""}
    echo.notify("textDocument/didOpen", {"textDocument": odd})
    assert await echo.request("magy/open") == []
    assert echo.notifications("window/showMessage") == []


async def test_initialize_with_wrong_parameters() -> None:
    async with Client.spawn(ECHO, cwd=TOP) as client:
        sections: list[Any] = [[], {"capabilities": 5}, {"workspaceFolders": "x"}]
        for wrong in sections:
            with pytest.raises(RpcError) as error:
                await client.request("initialize", wrong)
            assert error.value.code == -32602
        result = await client.request("initialize")
        assert result["capabilities"]["positionEncoding"] == "utf-16"
