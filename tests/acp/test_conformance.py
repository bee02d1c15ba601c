"""The requirements of the protocol's conformance kit (agentclientprotocol/acp-tck, version 1), each
by its id, and one test each; ids that stand together are shown by one exchange."""

from __future__ import annotations

import asyncio
from base64 import b64encode
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from magy_server.tools.files.pictures import picture
from tests.lsp.client import RpcError

from .harness import AcpClient, client
from .schema import problems

SCRIPT = """prompt: hello
text: Hello, you.
prompt: slow
speed: 20
text: This is said slowly, so that there is time to stop it before it ends.
"""
PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de"
    "0000000c49444154789c63f8cfc000000301010018dd8db00000000049454e44ae426082"
)
ANSWERS = {
    "initialize": "InitializeResponse", "session/new": "NewSessionResponse",
    "session/load": "LoadSessionResponse", "session/resume": "ResumeSessionResponse",
    "session/list": "ListSessionsResponse", "session/prompt": "PromptResponse",
    "session/close": "CloseSessionResponse", "session/delete": "DeleteSessionResponse",
    "session/set_mode": "SetSessionModeResponse", "session/fork": "ForkSessionResponse",
    "session/set_config_option": "SetSessionConfigOptionResponse",
}  # fmt: skip
ASKED = {
    "session/update": "SessionNotification",
    "session/request_permission": "RequestPermissionRequest",
    "fs/read_text_file": "ReadTextFileRequest", "fs/write_text_file": "WriteTextFileRequest",
}  # fmt: skip


@pytest.fixture
async def one(root: Path, state: Path) -> AsyncIterator[AcpClient]:
    async with client(root, state, SCRIPT) as one:
        yield one


def wrong(one: AcpClient) -> list[str]:
    """What is wrong with what the server sent on its own."""
    return [
        problem
        for message in one.received
        if "method" in message and message["method"] in ASKED
        for problem in problems(message["params"], ASKED[message["method"]])
    ]


def nulls(value: Any, at: str = "") -> list[str]:
    """Where a value holds nothing. To clients in Lua and JavaScript that is something."""
    if isinstance(value, dict):
        return [found for key, part in value.items() for found in nulls(part, f"{at}.{key}")]
    if isinstance(value, list):
        return [found for n, part in enumerate(value) for found in nulls(part, f"{at}[{n}]")]
    return [at] if value is None else []


async def checked(one: AcpClient, method: str, **params: Any) -> Any:
    answer = await one.request(method, **params)
    assert problems(answer, ANSWERS[method]) == []
    return answer


def prompt(session: str, *blocks: Any) -> dict[str, Any]:
    return {"sessionId": session, "prompt": [{"type": "text", "text": "hello"}, *blocks]}


async def test_transport_001_002_jsonrpc_001_002(one: AcpClient) -> None:
    """Every line is one message, in UTF-8 (else the client fails); an answer has the id of its
    request, and a result or an error."""
    await one.initialize()
    one.send({"id": "a string", "method": "session/list", "params": {}})
    one.send({"id": 4711, "method": "session/nothing", "params": {}})
    found = await one.until(
        lambda: (
            {m["id"]: m for m in one.received if m.get("id") in ("a string", 4711)}.values()
            if sum(m.get("id") in ("a string", 4711) for m in one.received) == 2
            else None
        )
    )
    assert {m["id"] for m in found} == {"a string", 4711}
    for message in one.received:
        assert message["jsonrpc"] == "2.0"
        if "method" not in message:
            assert ("result" in message) != ("error" in message)
        if "error" in message:
            assert type(message["error"]["code"]) is int
            assert type(message["error"]["message"]) is str


async def test_jsonrpc_003_004_005_ext_001_error_001(one: AcpClient) -> None:
    """Notifications get no answer; unknown methods get -32601 in one line; all goes on after."""
    await one.initialize()
    one.notify("session/cancel", sessionId="nobody")
    one.notify("session/whatever")
    one.notify("_someone/elses")
    for method in ("session/nothing", "_someone/elses", "_magy/nothing"):
        with pytest.raises(RpcError) as refused:
            await one.request(method)
        assert refused.value.code == -32601
        assert refused.value.message and "\n" not in refused.value.message
    assert all("id" in m for m in one.received), "nothing but answers came"
    assert await one.new()


async def test_init_001_002_004_auth_001_002(one: AcpClient) -> None:
    answer = await one.initialize()
    assert problems(answer, "InitializeResponse") == []
    assert answer["protocolVersion"] == 1
    assert answer["agentInfo"]["name"] and answer["agentInfo"]["version"]
    methods = answer["authMethods"]
    assert len({m["id"] for m in methods}) == len(methods)
    assert not [m for m in methods if m.get("type") == "terminal"]


async def test_init_003(one: AcpClient) -> None:
    answer = await one.request(
        "initialize", protocolVersion=65535, clientCapabilities={}, capabilities={},
        info={"name": "future", "version": "9"},
    )  # fmt: skip
    assert answer["protocolVersion"] == 1


async def test_schema_001_002_session_001_002_auth_005(one: AcpClient) -> None:
    await one.initialize()
    made = [await checked(one, "session/new", cwd=str(one.root), mcpServers=[]) for _ in range(2)]
    assert all(answer["sessionId"] for answer in made)
    assert len({answer["sessionId"] for answer in made}) == 2
    await one.turn(made[0]["sessionId"], "hello")
    await checked(one, "session/list")
    assert wrong(one) == []
    assert [nulls(message) for message in one.received if nulls(message)] == []


async def test_prompt_001_002_meta_001(one: AcpClient) -> None:
    await one.initialize()
    session = await one.new()
    answer = await checked(
        one, "session/prompt", **prompt(session), _meta={"traceparent": "00-1-2-01"}
    )
    assert answer["stopReason"] == "end_turn"
    assert {m["params"]["sessionId"] for m in one.asked("session/update")} == {session}
    assert wrong(one) == []


async def test_prompt_003_promptcap_001_003(one: AcpClient) -> None:
    """Links, pictures and embedded texts and bytes."""
    assert picture(PIXEL, "")
    capabilities = (await one.initialize())["agentCapabilities"]["promptCapabilities"]
    assert capabilities == {"image": True, "audio": False, "embeddedContext": True}
    session = await one.new()
    data = b64encode(PIXEL).decode()
    uri = (one.root / "app.py").as_uri()
    for block in (
        {"type": "resource_link", "uri": uri, "name": "app.py"},
        {"type": "image", "mimeType": "image/png", "data": data},
        {"type": "resource", "resource": {"uri": uri, "text": "text", "mimeType": "text/plain"}},
        {"type": "resource", "resource": {"uri": uri, "blob": data, "mimeType": "image/png"}},
        {"type": "resource", "resource": {"uri": uri, "blob": data}},
    ):
        answer = await one.request("session/prompt", **prompt(session, block))
        assert answer["stopReason"] == "end_turn"


async def test_promptcap_002(one: AcpClient) -> None:
    """Sound is not announced, and refused with a sentence."""
    await one.initialize()
    session = await one.new()
    with pytest.raises(RpcError, match="no sound"):
        sound = {"type": "audio", "mimeType": "audio/wav", "data": "UklGRg=="}
        await one.request("session/prompt", **prompt(session, sound))


async def test_cancel_001_002_close_002(one: AcpClient) -> None:
    await one.initialize()
    for end in ("session/cancel", "session/close"):
        session = await one.new()
        asked = one.ask(session, "slow")
        await one.until(lambda: one.said(session))  # noqa: B023 - it is awaited right here
        if end == "session/cancel":
            one.notify(end, sessionId=session)
        else:
            await one.request(end, sessionId=session)
        assert (await asked)["stopReason"] == "cancelled"
        at = next(n for n, m in enumerate(one.received) if m.get("result", {}).get("stopReason"))
        await one.request("session/list")
        later = [m for m in one.received[at:] if m.get("method") == "session/update"]
        assert not [m for m in later if m["params"]["sessionId"] == session]
        one.received.clear()


async def test_load_001_002_003_resume_001_002(one: AcpClient) -> None:
    assert (await one.initialize())["agentCapabilities"]["loadSession"] is True
    session = await one.new()
    await one.turn(session, "hello")
    one.received.clear()
    await checked(one, "session/load", sessionId=session, cwd=str(one.root), mcpServers=[])
    answer = next(at for at, m in enumerate(one.received) if "result" in m)
    replayed = [at for at, m in enumerate(one.received) if _update(m).endswith("message_chunk")]
    # What is offered, and what the session is called, may be told at any time.
    assert replayed and max(replayed) < answer, "the replay came before the answer"
    assert one.said(session) == "Hello, you."
    one.received.clear()
    await checked(one, "session/resume", sessionId=session, cwd=str(one.root))
    assert not [m for m in one.received if _update(m).endswith("message_chunk")]
    assert wrong(one) == []


def _update(message: dict[str, Any]) -> str:
    """What kind of update of a session it is; "" of all else."""
    return str(message.get("params", {}).get("update", {}).get("sessionUpdate", ""))


async def test_list_001_002_delete_001_002(one: AcpClient) -> None:
    await one.initialize()
    session = await one.new()
    found = await checked(one, "session/list")
    assert [s["sessionId"] for s in found["sessions"]] == [session]
    elsewhere = await checked(one, "session/list", cwd=str(one.root.parent / "nobody"))
    assert elsewhere == {"sessions": []}
    assert await checked(one, "session/delete", sessionId=session) == {}
    assert await checked(one, "session/delete", sessionId=session) == {}
    assert await checked(one, "session/delete", sessionId="never-made") == {}
    assert (await one.request("session/list"))["sessions"] == []


async def test_close_001(one: AcpClient) -> None:
    await one.initialize()
    session = await one.new()
    assert await checked(one, "session/close", sessionId=session) == {}
    with pytest.raises(RpcError, match="load or resume it first"):
        await one.turn(session, "hello")


async def test_modes_001_002(one: AcpClient) -> None:
    await one.initialize()
    made = await one.request("session/new", cwd=str(one.root), mcpServers=[])
    modes = made["modes"]
    ids = [mode["id"] for mode in modes["availableModes"]]
    assert modes["currentModeId"] in ids
    other = next(id for id in ids if id != modes["currentModeId"])
    await checked(one, "session/set_mode", sessionId=made["sessionId"], modeId=other)
    await one.turn(made["sessionId"], "hello")
    assert {u["currentModeId"] for u in one.updates("current_mode_update")} <= {other}
    with pytest.raises(RpcError, match="nobody"):
        await one.request("session/set_mode", sessionId=made["sessionId"], modeId="nobody")


async def test_config_001_002_003(one: AcpClient) -> None:
    await one.initialize()
    made = await one.request("session/new", cwd=str(one.root), mcpServers=[])
    options = {o["id"]: o for o in made["configOptions"]}
    for option in options.values():
        assert option["type"] == "select"
        assert option["currentValue"] in [o["value"] for o in option["options"]]
    answer = await checked(
        one, "session/set_config_option", sessionId=made["sessionId"], configId="review",
        value="propose",
    )  # fmt: skip
    now = {o["id"]: o["currentValue"] for o in answer["configOptions"]}
    assert now.keys() == options.keys()
    assert now["review"] == "propose"


async def test_auth_003_004(one: AcpClient) -> None:
    """There is no way to authenticate, and no logout is announced."""
    answer = await one.initialize()
    assert answer["authMethods"] == [] and "auth" not in answer["agentCapabilities"]
    with pytest.raises(RpcError, match="magy doctor"):
        await one.request("authenticate", methodId="any")


async def test_clientcap_001_002_003(root: Path, state: Path) -> None:
    """Nothing is asked of a client that has announced nothing."""
    script = """prompt: hello
call: read_file {"path": "app.py"}
call: write_file {"path": "new.py", "content": "x = 1\\n"}
call: bash {"command": "echo hi"}
---
text: Done.
"""
    async with client(root, state, script) as one:
        await one.initialize()
        session = await one.new()
        await one.turn(session, "hello")
        asked = {m["method"] for m in one.received if "method" in m and "id" in m}
        assert asked == {"session/request_permission"}
        assert (root / "new.py").read_text() == "x = 1\n"
        assert wrong(one) == []


async def test_shutdown_001(one: AcpClient) -> None:
    await one.initialize()
    session = await one.new()
    asked = one.ask(session, "slow")
    await one.until(lambda: one.said(session))
    assert await one.leave() == 0
    await asyncio.wait({asked})
