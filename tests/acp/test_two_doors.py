"""One session, open in a language client and in an ACP client at once."""

from __future__ import annotations

import asyncio
import os
import shutil
from pathlib import Path

import pytest

from tests.clients.driven import Driven, emacs, installed, lisp
from tests.clients.test_emacs import missing
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


TWICE = f"""{EDIT}prompt: back
call: edit_file {{"path": "app.py", "old_text": "'good morning'", "new_text": "'hello'"}}
---
text: As before.
"""


@pytest.mark.req("G003")
async def test_a_session_in_emacs_and_in_another_editor(root: Path, state: Path) -> None:
    """Each answers what the other's turn asks, and the other's question goes away."""
    if shutil.which("emacs") is None:
        missing("emacs is not installed (Debian: apt install emacs-lucid)")
    init = installed(Path(os.environ["HOME"]), TWICE)
    (root / ".git").mkdir()
    state.mkdir()
    (state / "magy.toml").write_text('titles = false\npermission.edit = "ask"\n')
    async with client(root, state, TWICE) as one:
        one.permission = lambda params: None
        await one.initialize()
        session = await one.new()
        prompt = one.ask(session, "be polite")
        (asked,) = await one.until(lambda: one.asked("session/request_permission"))
        places = {"MAGY_STATE_DIR": str(state), "MAGY_CONFIG_DIR": str(state)}
        script = {"MAGY_SCRIPT": str(state / "model.script")}
        with emacs("batch", init, root, env={**os.environ, **places, **script}) as other:
            play = asyncio.to_thread(_resumed_and_answered, other, root)
            shown, _ = await asyncio.gather(play, prompt)
            (withdrawn,) = await one.until(lambda: one.asked("$/cancel_request"))
            assert withdrawn["params"] == {"requestId": asked["id"]}
            assert one.said(session) == "I will greet politely.Done."
            assert "I will greet politely." in shown and "Done." in shown
            await asyncio.to_thread(_asked_from_emacs, other)
            await one.until(lambda: len(one.asked("session/request_permission")) == 2)
            second = one.asked("session/request_permission")[1]
            chosen = {"outcome": {"outcome": "selected", "optionId": "allow_once"}}
            one.send({"id": second["id"], "result": chosen})
            await asyncio.to_thread(_over, other)
            await one.until(lambda: one.said(session).endswith("As before."))


def _resumed_and_answered(one: Driven, root: Path) -> str:
    one.ask(f"(find-file {lisp(str(root / 'app.py'))}) t")
    one.keys("C-c m R", "RET")
    one.until("(magy-permission--all)")
    one.keys("C-c m y", "y")
    one.until("(null (magy-permission--all))")
    one.until('(string-search "Done." (magy-driven-transcript))')
    return str(one.ask("(magy-driven-transcript)"))


def _asked_from_emacs(one: Driven) -> None:
    one.keys("C-c m m", "b a c k", "RET")
    one.until("(magy-permission--all)")


def _over(one: Driven) -> None:
    one.until("(null (magy-permission--all))")
    one.until('(string-search "As before." (magy-driven-transcript))')
