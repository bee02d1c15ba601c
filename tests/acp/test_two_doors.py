"""One session, open in a language client and in an ACP client at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.harness import person

from .harness import client
from .test_turn import EDIT


@pytest.mark.req("G003")
async def test_both_show_the_same_and_either_answers(root: Path, state: Path) -> None:
    async with client(root, state, EDIT) as one, person(root, state, EDIT) as two:
        one.permission = lambda params: None
        await one.initialize()
        session = await one.new()
        await two.request("session/subscribe", sessionId=session)
        prompt = one.ask(session, "be polite")
        question = await two.update("_magy_interaction", lambda u: "open" in u, session)
        (asked,) = await one.until(lambda: one.asked("session/request_permission"))
        assert asked["params"]["toolCall"]["title"] == question["open"]["title"]
        await two.respond(question["open"]["interactionId"], sessionId=session)
        assert (await prompt)["stopReason"] == "end_turn"
        (withdrawn,) = await one.until(lambda: one.asked("$/cancel_request"))
        assert withdrawn["params"] == {"requestId": asked["id"]}
        await two.end(session)
        assert two.said(session).replace("\n", "") == one.said(session)
        assert [u["title"] for u in one.updates("tool_call_update") if "title" in u][-1] == [
            u["title"] for u in two.updates("tool_call_update", session) if "title" in u
        ][-1]


async def test_a_prompt_of_the_other_is_shown(root: Path, state: Path) -> None:
    script = "prompt: hello\ntext: Hello, you.\n"
    async with client(root, state, script) as one, person(root, state, script) as two:
        await one.initialize()
        session = await one.new()
        await two.request("session/subscribe", sessionId=session)
        await two.ask("hello", sessionId=session)
        await two.end(session)
        await one.until(lambda: one.said(session) == "Hello, you.")
        (said,) = one.updates("user_message_chunk", session)
        assert said["content"] == {"type": "text", "text": "hello"}
