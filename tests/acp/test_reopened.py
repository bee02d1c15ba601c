"""A session that is loaded, resumed, deleted or given up while a prompt of it runs; and answers to
questions that are none."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.lsp.client import RpcError
from tests.patience import PATIENCE

from .harness import GONE, client
from .test_editor import said_of_calls
from .test_turn import EDIT

LONG = "This is said slowly, so that there is time to come back before it ends."
SLOW = f"""prompt: slow
speed: 20
text: {LONG}
prompt: hello
text: Hello, you.
prompt: compact
delay: 1
text: Short.
"""


@pytest.mark.parametrize("method", ["session/load", "session/resume"])
async def test_a_prompt_is_answered_although_its_session_is_opened_again(
    root: Path, state: Path, method: str
) -> None:
    async with client(root, state, SLOW) as one:
        await one.initialize()
        session = await one.new()
        await one.turn(session, "hello")
        prompt = one.ask(session, "slow")
        await one.until(lambda: "This" in one.said(session))
        if method == "session/load":
            one.received.clear()
        await one.request(method, sessionId=session, cwd=str(root), mcpServers=[])
        async with asyncio.timeout(PATIENCE):
            assert (await prompt)["stopReason"] == "end_turn"
        assert one.said(session) == f"Hello, you.{LONG}", "nothing is said twice, or left out"
        asked = [u["content"]["text"] for u in one.updates("user_message_chunk", session)]
        assert asked == (["hello", "slow"] if method == "session/load" else [])


async def test_a_prompt_is_answered_when_its_session_is_deleted(root: Path, state: Path) -> None:
    async with client(root, state, SLOW) as one:
        await one.initialize()
        session = await one.new()
        prompt = one.ask(session, "slow")
        await one.until(lambda: one.said(session))
        await one.request("session/delete", sessionId=session)
        async with asyncio.timeout(PATIENCE):
            assert (await prompt)["stopReason"] == "cancelled"
        assert not (await one.request("session/list"))["sessions"]


async def test_two_compactions_are_both_answered(root: Path, state: Path) -> None:
    async with client(root, state, SLOW) as one:
        await one.initialize()
        session = await one.new()
        await one.turn(session, "hello")
        both = [one.ask(session, "/compact"), one.ask(session, "/compact the beans")]
        async with asyncio.timeout(PATIENCE):
            for answer in await asyncio.gather(*both):
                assert answer["stopReason"] == "end_turn"


async def test_nothing_happens_for_a_request_that_was_given_up(root: Path, state: Path) -> None:
    """The prompt is anywhere on its way then."""
    words = EDIT.replace("call:", "delay: 1\ncall:")
    async with client(root, state, words) as one:
        await one.initialize(_meta={"magy": {"settings": {"permission": {"edit": "allow"}}}})
        for after in (0.0, 0.005, 0.01, 0.02, 0.03, 0.05, 0.1):
            session = await one.new()
            prompt = one.ask(session, "be polite")
            await asyncio.sleep(after)
            one.notify("$/cancel_request", requestId=one.last)
            with pytest.raises(RpcError) as given_up:
                async with asyncio.timeout(PATIENCE):
                    await prompt
            assert given_up.value.code == -32800
            while (await one.request("_magy/session/list"))["sessions"][0]["state"] != "idle":
                await asyncio.sleep(0.05)
            assert "hello" in (root / "app.py").read_text()
        assert not one.updates("tool_call")


@pytest.mark.parametrize("method", ["session/load", "session/resume"])
async def test_a_client_that_comes_back_is_asked_again(
    root: Path, state: Path, method: str
) -> None:
    async with client(root, state, EDIT) as one:
        one.permission = lambda params: None
        await one.initialize()
        session = await one.new()
        prompt = one.ask(session, "be polite")
        (first,) = await one.until(lambda: one.asked("session/request_permission"))
        await one.request(method, sessionId=session, cwd=str(root), mcpServers=[])
        await one.until(lambda: len(one.asked("session/request_permission")) == 2)
        (withdrawn,) = await one.until(lambda: one.asked("$/cancel_request"))
        assert withdrawn["params"] == {"requestId": first["id"]}
        again = one.asked("session/request_permission")[1]
        assert again["params"] == first["params"]
        outcome = {"outcome": "selected", "optionId": "allow_once"}
        one.send({"id": again["id"], "result": {"outcome": outcome}})
        async with asyncio.timeout(PATIENCE):
            assert (await prompt)["stopReason"] == "end_turn"
        assert "good morning" in (root / "app.py").read_text()


def _given(answer: Any, params: dict[str, Any]) -> Any:
    return answer


def cannot(params: dict[str, Any]) -> Any:
    raise RpcError({"code": -32601, "message": "no such method"})


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        ([None, 7, {"outcome": None}, {"outcome": {"outcome": "selected"}}], "be understood"),
        ([{"outcome": {"outcome": "selected", "optionId": "everything"}}], "'everything'"),
        ([{"outcome": {"outcome": "cancelled"}}], "dismissed"),
        ([cannot], "no such method"),
    ],
    ids=["malformed", "unknown option", "dismissed", "no such method"],
)
async def test_an_answer_that_is_none_is_a_refusal_that_says_why(
    root: Path, state: Path, answers: list[Any], said: str
) -> None:
    async with client(root, state, EDIT) as one:
        await one.initialize()
        for answer in answers:
            one.handlers["session/request_permission"] = (
                answer if callable(answer) else partial(_given, answer)
            )
            assert (await one.turn(await one.new(), "be polite"))["stopReason"] == "end_turn"
            assert "hello" in (root / "app.py").read_text()
            assert said in said_of_calls(one)
            one.received.clear()
        async with asyncio.timeout(PATIENCE):
            while one.stderr.decode().count(said) < len(answers):
                await asyncio.sleep(0.01)


async def test_a_question_that_nobody_answers_stays_open(root: Path, state: Path) -> None:
    async with client(root, state, EDIT) as one:
        one.handlers["session/request_permission"] = lambda params: GONE
        await one.initialize()
        session = await one.new()
        prompt = one.ask(session, "be polite")
        await one.until(lambda: one.asked("session/request_permission"))
        listed = await one.request("_magy/interaction/list", sessionId=session)
        (question,) = listed["interactions"]
        await one.request(
            "_magy/interaction/respond", sessionId=session, outcome="allow",
            interactionId=question["interactionId"],
        )  # fmt: skip
        assert (await prompt)["stopReason"] == "end_turn"
        assert "good morning" in (root / "app.py").read_text()


@pytest.mark.parametrize("method", ["session/load", "session/resume"])
async def test_a_prompt_waits_while_its_session_is_opened(
    root: Path, state: Path, method: str
) -> None:
    async with client(root, state, SLOW) as one:
        await one.initialize()
        session = await one.new()
        await one.turn(session, "hello")
    async with client(root, state, SLOW) as one:
        await one.initialize()
        here = {"sessionId": session, "cwd": str(root), "mcpServers": []}
        opened = asyncio.create_task(one.request(method, **here))
        await asyncio.sleep(0)  # it is written before the prompt
        prompt = one.ask(session, "hello")
        async with asyncio.timeout(PATIENCE):
            await opened
            assert (await prompt)["stopReason"] == "end_turn"
        nowhere = {**here, "sessionId": "none"}
        opened = asyncio.create_task(one.request(method, **nowhere))
        await asyncio.sleep(0)
        with pytest.raises(RpcError, match="not open here"):
            async with asyncio.timeout(PATIENCE):
                await one.ask("none", "hello")
        with pytest.raises(RpcError):
            await opened
