"""The requirements of the conformance kit for version 2 that `test_draft` does not go through, each
by its id; ids that stand together are shown by one exchange."""

from __future__ import annotations

import asyncio
import os
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.lsp.client import RpcError

from .harness import AcpClient
from .schema import problems
from .test_conformance import PIXEL
from .test_draft import ask, end, greet, new, one

__all__ = ["one"]
METHODS = {"session/update", "session/request_permission", "$/cancel_request"}
KINDS = {
    "read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode", "other",
}  # fmt: skip
STATUSES = {"pending", "in_progress", "paused", "completed", "failed", "cancelled"}
WHOLE = ("user_message", "agent_message", "agent_thought")


def metas(value: Any) -> Iterator[Any]:
    """All that stands under `_meta`."""
    if isinstance(value, dict):
        for key, part in value.items():
            if key == "_meta":
                yield part
            yield from metas(part)
    elif isinstance(value, list):
        for part in value:
            yield from metas(part)


async def quiet(one: AcpClient) -> list[dict[str, Any]]:
    """What comes until the server has answered one request more."""
    before = len(one.received)
    await one.request("session/list")
    return one.received[before:-1]


async def test_transport_201_002_203_jsonrpc_001_002_003_004_005_ext_001_201_error_001(
    one: AcpClient,
) -> None:
    await greet(one)
    one.send({"id": "a string", "method": "session/list", "params": {}})
    await one.until(lambda: [m for m in one.received if m.get("id") == "a string"])
    one.notify("_someone/elses")
    one.notify("session/cancel", sessionId="nobody")
    for method in ("session/nothing", "_someone/elses"):
        with pytest.raises(RpcError) as refused:
            await one.request(method)
        assert refused.value.code == -32601
        assert refused.value.message and "\n" not in refused.value.message
    for message in one.received:
        assert ("result" in message) != ("error" in message), message


async def test_batch_201_202_203(one: AcpClient) -> None:
    await greet(one)
    one.received.clear()
    one.send_raw(b"[]\n")
    await one.until(lambda: one.received)
    assert one.received[0]["id"] is None and one.received[0]["error"]["code"] == -32600
    one.received.clear()
    one.send_raw(b'[{"jsonrpc":"2.0","method":"_a"},{"jsonrpc":"2.0","method":"_b"}]\n')
    assert await quiet(one) == []
    one.received.clear()
    one.send_raw(b'[1,{"jsonrpc":"2.0","id":"x","method":"session/list"},2]\n')
    await one.until(lambda: len(one.received) == 3)
    assert sorted(str(m["id"]) for m in one.received) == ["None", "None", "x"]
    assert {m["error"]["code"] for m in one.received if m["id"] is None} == {-32600}
    assert next(m for m in one.received if m["id"] == "x")["result"]["sessions"] == []


async def test_session_001_002_203_config_201_204_auth_201_202_205_206(one: AcpClient) -> None:
    assert (await greet(one))["authMethods"] == []
    first = await one.request("session/new", cwd=str(one.root))
    second = await one.request("session/new", cwd=str(one.root), mcpServers=[])
    assert problems(first, "NewSessionResponse", 2) == []
    assert first["sessionId"] != second["sessionId"]
    for option in first["configOptions"]:
        assert option["currentValue"] in [value["value"] for value in option["options"]]


async def test_promptcap_001_003_prompt_003_meta_001(one: AcpClient) -> None:
    await greet(one)
    session = await new(one)
    blocks = (
        {"type": "image", "mimeType": "image/png", "data": b64encode(PIXEL).decode()},
        {"type": "resource", "resource": {"uri": "file:///x.py", "text": "x = 1"}},
        {"type": "resource_link", "uri": "file:///x.py", "name": "x.py"},
    )
    for block in blocks:
        prompt = [{"type": "text", "text": "hello"}, block]
        about = {"_meta": {"traceparent": "00-0-0-00"}}
        answer = await one.request("session/prompt", sessionId=session, prompt=prompt, **about)
        assert problems(answer, "PromptResponse", 2) == []
        await end(one, session)
        one.received.clear()


async def test_perm_201_patch_201_203_204_208_209_enum_201_202_clientcap_201_202_meta_201(
    one: AcpClient,
) -> None:
    await greet(one)
    session = await new(one)
    first = await ask(one, session, "be polite")
    await end(one, session)
    (asked,) = one.asked("session/request_permission")
    assert asked["params"]["title"] and asked["params"]["options"]
    states = [u["state"] for u in one.updates("state_update", session)]
    assert states == ["running", "requires_action", "running", "idle"]
    calls: dict[str, dict[str, Any]] = {}
    for update in one.updates("tool_call_update", session):
        known = calls.setdefault(update["toolCallId"], update)
        assert known["title"] and update.get("name", known.get("name")) == known.get("name")
        assert update.get("kind", "other") in KINDS
        assert update.get("status", "pending") in STATUSES
    assert calls
    for kind in ("user_message", "agent_message", "agent_message_chunk"):
        assert all(update["messageId"] for update in one.updates(kind, session)), kind
    assert {m["method"] for m in one.received if "method" in m} <= METHODS
    assert all(isinstance(meta, dict) for meta in metas(one.received))
    assert await ask(one, session, "hello") != first


async def test_enum_203(one: AcpClient) -> None:
    await greet(one)
    one.handlers["session/request_permission"] = lambda params: {"outcome": {"outcome": "_later"}}
    session = await new(one)
    await ask(one, session, "be polite")
    assert (await end(one, session))["stopReason"]


async def test_cancel_201_202_203_205_206_207(one: AcpClient) -> None:
    await greet(one)
    for about in ({}, {"_meta": {"why": "test"}}):
        session = await new(one)
        await ask(one, session, "slow")
        await one.until(lambda: one.said(session))  # noqa: B023 - it is awaited right here
        one.notify("session/cancel", sessionId=session, **about)
        assert (await end(one, session))["stopReason"] == "cancelled"
        after = [m["params"]["update"] for m in await quiet(one) if "method" in m]
        assert "state_update" not in [update["sessionUpdate"] for update in after]


async def test_resume_201_202_203_204_205_config_203(one: AcpClient) -> None:
    await greet(one)
    session = await new(one)
    message = await ask(one, session, "hello")
    await end(one, session)
    here = {"sessionId": session, "cwd": str(one.root)}
    one.received.clear()
    for more in ({}, {"replayFrom": None}):
        answer = await one.request("session/resume", **here, **more)
        assert problems(answer, "ResumeSessionResponse", 2) == [] and answer["configOptions"]
        assert not [m for m in one.received if "method" in m]
    await one.request("session/resume", **here, replayFrom={"type": "start"})
    kinds = [m["params"]["update"]["sessionUpdate"] for m in one.received if "method" in m]
    assert not [kind for kind in kinds if kind.endswith("_chunk")]
    assert [kind for kind in kinds if kind in WHOLE] == ["user_message", "agent_message"]
    assert one.updates("user_message", session)[0]["messageId"] == message
    assert await quiet(one) == []


async def test_list_201_202_203_204_delete_201_202_203_close_201(
    one: AcpClient, tmp_path: Path
) -> None:
    await greet(one)
    session = await new(one)
    await ask(one, session, "hello")
    await end(one, session)
    for where in ({}, {"cwd": str(one.root)}):
        found = await one.request("session/list", **where)
        assert problems(found, "ListSessionsResponse", 2) == []
        assert [each["sessionId"] for each in found["sessions"]] == [session]
        assert all(os.path.isabs(each["cwd"]) for each in found["sessions"])
        assert all(each["cwd"] == str(one.root) for each in found["sessions"])
    assert (await one.request("session/list", cwd=str(tmp_path / "none")))["sessions"] == []
    assert await one.request("session/close", sessionId=session) == {}
    for _ in range(2):
        assert await one.request("session/delete", sessionId=session) == {}
        assert (await one.request("session/list"))["sessions"] == []


async def test_close_202_cancel_208(one: AcpClient) -> None:
    await greet(one)
    session = await new(one)
    await ask(one, session, "slow")
    await one.until(lambda: one.said(session))
    closing = asyncio.ensure_future(one.request("session/close", sessionId=session))
    assert (await end(one, session))["stopReason"] == "cancelled"
    assert await closing == {}


async def test_config_202_206(one: AcpClient) -> None:
    await greet(one)
    made = await one.request("session/new", cwd=str(one.root))
    session, names = made["sessionId"], {each["configId"] for each in made["configOptions"]}
    about = {"sessionId": session, "type": "id"}
    answer = await one.request("session/set_config_option", **about, configId="agent", value="plan")
    assert {each["configId"] for each in answer["configOptions"]} >= names
    await one.request(
        "_magy/session/set_config_option", sessionId=session, configId="agent", value="build"
    )
    (told,) = await one.until(lambda: one.updates("config_option_update", session))
    assert {each["configId"] for each in told["configOptions"]} >= names


async def test_ext_202_init_204(one: AcpClient) -> None:
    assert set((await greet(one))["capabilities"]) <= {"session", "auth", "providers", "_meta"}


async def test_shutdown_001(one: AcpClient) -> None:
    await greet(one)
    assert await one.leave() == 0
