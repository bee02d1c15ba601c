"""The draft of version 2, behind `--acp-v2`; ids are those of the conformance kit for it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.lsp.client import RpcError

from .harness import ASKING, AcpClient, client
from .schema import problems
from .test_turn import EDIT

SCRIPT = (
    EDIT
    + """prompt: hello
text: Hello, you.
prompt: fail
error: no_key times=9
prompt: slow
speed: 20
text: This is said slowly, so that there is time to stop it before it ends.
"""
)
ASKED = {
    "session/update": "UpdateSessionNotification",
    "session/request_permission": "RequestPermissionRequest",
}


@pytest.fixture
async def one(root: Path, state: Path) -> AsyncIterator[AcpClient]:
    async with client(root, state, SCRIPT, words=("--acp-v2",)) as one:
        yield one
        for message in one.received:
            if "method" in message and not message["method"].startswith("$/"):
                assert problems(message["params"], ASKED[message["method"]], 2) == []


async def greet(one: AcpClient, version: int = 2) -> Any:
    return await one.request(
        "initialize", protocolVersion=version, info={"name": "test", "version": "1"},
        capabilities={"_meta": {"magy": {"settings": ASKING}}},
    )  # fmt: skip


async def new(one: AcpClient) -> str:
    made = await one.request("session/new", cwd=str(one.root))
    assert problems(made, "NewSessionResponse", 2) == []
    return str(made["sessionId"])


async def ask(one: AcpClient, session: str, text: str) -> str:
    answer = await one.turn(session, text)
    assert problems(answer, "PromptResponse", 2) == []
    return str(answer["messageId"])


async def end(one: AcpClient, session: str) -> dict[str, Any]:
    """The update that ends the turn."""
    found: dict[str, Any] = await one.until(
        lambda: next((u for u in one.updates("state_update", session) if "stopReason" in u), None)
    )
    return found


async def test_init_001_201_203_204_schema_001(one: AcpClient) -> None:
    answer = await greet(one)
    assert answer["protocolVersion"] == 2
    assert problems(answer, "InitializeResponse", 2) == []
    assert answer["info"]["name"] and answer["info"]["version"]
    assert not [v for v in answer["capabilities"]["session"].values() if type(v) is bool]


async def test_init_003(one: AcpClient) -> None:
    assert (await greet(one, 65535))["protocolVersion"] == 2


@pytest.mark.parametrize("words", [("--acp-v2",), ()])
async def test_init_202(root: Path, state: Path, words: tuple[str, ...]) -> None:
    """Who speaks version 1 gets it, and without the flag everybody does."""
    async with client(root, state, SCRIPT, words=words) as one:
        version = 1 if words else 2
        answer = await one.request(
            "initialize", protocolVersion=version, info={"name": "t", "version": "1"}
        )
        assert answer["protocolVersion"] == 1
        assert (await one.turn(await one.new(), "hello"))["stopReason"] == "end_turn"


@pytest.mark.req("G002")
async def test_prompt_201_203_205_state_201_202_203(one: AcpClient) -> None:
    await greet(one)
    session = await new(one)
    message = await ask(one, session, "be polite")
    assert (await end(one, session))["stopReason"] == "end_turn"
    states = [u["state"] for u in one.updates("state_update", session)]
    assert states == ["running", "requires_action", "running", "idle"]
    (said,) = one.updates("user_message", session)
    assert said["messageId"] == message
    (asked,) = one.asked("session/request_permission")
    call = asked["params"]["subject"]["toolCall"]
    assert asked["params"]["title"] == call["title"]
    assert call["content"][0]["patch"]["format"] == "git_patch"
    assert "good morning" in (one.root / "app.py").read_text()


async def test_the_client_is_told_that_files_are_on_disk(one: AcpClient) -> None:
    await greet(one)
    await new(one)
    (told,) = await one.until(lambda: one.updates("notice"))
    assert "disk" in told["description"]


async def test_cancel_and_close(one: AcpClient) -> None:
    await greet(one)
    for end_by in ("session/cancel", "session/close"):
        session = await new(one)
        await ask(one, session, "slow")
        await one.until(lambda: one.said(session))  # noqa: B023 - it is awaited right here
        if end_by == "session/cancel":
            one.notify(end_by, sessionId=session)
        else:
            assert await one.request(end_by, sessionId=session) == {}
        assert (await end(one, session))["stopReason"] == "cancelled"


async def test_a_prompt_that_had_no_turn_ends_all_the_same(one: AcpClient) -> None:
    await greet(one)
    session = await new(one)
    answer = one.ask(session, "slow")
    one.notify("session/cancel", sessionId=session)
    assert (await end(one, session))["stopReason"] == "cancelled"
    await answer
    told = len(one.updates("state_update", session))
    await ask(one, session, "/spawn-general hello")
    (first, *_) = await one.until(lambda: one.updates("state_update", session)[told:])
    assert first["stopReason"] == "end_turn"


async def test_a_turn_that_fails(one: AcpClient) -> None:
    await greet(one)
    session = await new(one)
    await ask(one, session, "fail")
    ended = await end(one, session)
    assert ended["stopReason"] == "error" and ended["error"]["message"]


async def test_resume_with_and_without_replay(one: AcpClient) -> None:
    await greet(one)
    session = await new(one)
    await ask(one, session, "hello")
    await end(one, session)
    one.received.clear()
    here = {"sessionId": session, "cwd": str(one.root)}
    answer = await one.request("session/resume", **here)
    assert problems(answer, "ResumeSessionResponse", 2) == []
    assert not one.received[:-1]
    await one.request("session/resume", **here, replayFrom={"type": "start"})
    (said,) = one.updates("agent_message", session)
    assert said["content"] == [{"type": "text", "text": "Hello, you."}]
    assert "result" in one.received[-1]


async def test_options_and_what_version_2_does_not_have(one: AcpClient) -> None:
    await greet(one)
    session = await new(one)
    answer = await one.request(
        "session/set_config_option", sessionId=session, configId="agent", type="id", value="plan"
    )
    assert problems(answer, "SetSessionConfigOptionResponse", 2) == []
    now = {o["configId"]: o["currentValue"] for o in answer["configOptions"]}
    assert now["agent"] == "plan"
    with pytest.raises(RpcError, match=r"no option 'title'\. The options are agent, model"):
        await one.request(
            "session/set_config_option", sessionId=session, configId="title", value="mine"
        )
    for method in ("session/load", "session/set_mode", "authenticate"):
        with pytest.raises(RpcError, match="no method"):
            await one.request(method, sessionId=session)
    with pytest.raises(RpcError, match="no content of type 'smell'"):
        prompt = [{"type": "smell", "data": "?"}]
        await one.request("session/prompt", sessionId=session, prompt=prompt)
