"""A turn over ACP: text, tool calls, permission, cancel, what comes back after a restart."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from pathlib import Path

import pytest

from tests.lsp.client import RpcError

from .harness import AcpClient, client

EDIT = """prompt: polite
text: I will greet politely.
call: edit_file {"path": "app.py", "old_text": "'hello'", "new_text": "'good morning'"}
---
text: Done.
"""
SLOW = """prompt: slow
speed: 20
text: This is said slowly, so that there is time to stop it before it ends.
"""


@pytest.mark.req("G002")
async def test_a_prompt_is_answered_when_its_turn_is_over(root: Path, state: Path) -> None:
    async with client(root, state, "prompt: hello\ntext: Hello, you.\n") as one:
        hello = await one.initialize()
        assert (hello["protocolVersion"], hello["agentInfo"]["name"]) == (1, "magy")
        session = await one.new()
        answer = await one.turn(session, "hello")
        assert answer["stopReason"] == "end_turn"
        assert answer["usage"]["totalTokens"] > 0
        assert one.said(session) == "Hello, you."
        assert not one.updates("user_message_chunk"), "the client shows its own prompts"
        last = one.received[-1]
        assert "result" in last, "all that the turn said came before its answer"


async def test_an_edit_is_shown_asked_about_and_made(root: Path, state: Path) -> None:
    async with client(root, state, EDIT) as one:
        await one.initialize()
        session = await one.new()
        assert (await one.turn(session, "be polite"))["stopReason"] == "end_turn"
        (asked,) = one.asked("session/request_permission")
        call = asked["params"]["toolCall"]
        diff = {"path": str(root / "app.py"), "oldText": "def greet():\n    return 'hello'\n",
                "newText": "def greet():\n    return 'good morning'\n"}  # fmt: skip
        assert call["content"][0].items() >= diff.items()
        assert call["locations"] == [{"path": str(root / "app.py"), "line": 1}]
        kinds = [option["kind"] for option in asked["params"]["options"]]
        assert kinds == ["allow_once", "allow_always", "allow_always", "reject_once"]
        (made,) = one.updates("tool_call", session)
        assert (made["toolCallId"], made["name"]) == (call["toolCallId"], "edit_file")
        assert statuses(one) == ["pending", "in_progress", "completed"]
        last = one.updates("tool_call_update")[-1]
        assert last["content"][0].items() >= diff.items()
        assert last["locations"] == [{"path": str(root / "app.py"), "line": 1}]
        assert "good morning" in (root / "app.py").read_text()


async def test_what_the_person_refuses_is_not_done(root: Path, state: Path) -> None:
    async with client(root, state, EDIT) as one:
        await one.initialize()
        session = await one.new()
        one.permission = lambda params: "reject_once"
        await one.turn(session, "be polite")
        assert statuses(one) == ["pending", "failed"]
        assert "hello" in (root / "app.py").read_text()


async def test_white_space_leads_nothing_of_a_command_out_of_sight(root: Path, state: Path) -> None:
    command = "echo ok" + " " * 300 + "\n" * 40 + "; rm -rf build"
    script = f"call: bash {json.dumps({'command': command})}\n---\ntext: Done.\n"
    async with client(root, state, script) as one:
        await one.initialize()
        session = await one.new()
        one.permission = lambda params: "reject_once"
        await one.turn(session, "go")
        (asked,) = one.asked("session/request_permission")
        call = asked["params"]["toolCall"]
        assert call["title"] == "Run echo ok ⟨300 spaces⟩  ⏎ ⟨39 empty lines⟩ ⏎ ; rm -rf build"
        (part,) = call["content"]
        assert "echo ok ⟨300 spaces⟩ \n⟨39 empty lines⟩\n; rm" in part["content"]["text"]


async def test_answers_are_those_that_editors_know(root: Path, state: Path) -> None:
    """avante takes every id for a refusal that is none of three, and like CodeCompanion gives the
    last of two answers of a kind: that is the narrower one."""
    async with client(root, state, EDIT) as one:
        await one.initialize()
        await one.turn(await one.new(), "be polite")
        (asked,) = one.asked("session/request_permission")
        offered = {o["optionId"]: o["name"] for o in asked["params"]["options"]}
        allowing = {o["optionId"] for o in asked["params"]["options"] if "allow" in o["kind"]}
        assert allowing == {"allow", "allow_once", "allow_always"}
        always = [o["name"] for o in asked["params"]["options"] if o["kind"] == "allow_always"]
        assert always[-1].endswith("in this session") and always[0].endswith("in this project")
        assert offered["allow_always"] == always[-1], "avante's next answers are those of the last"


async def test_an_answer_may_hold_for_the_session(root: Path, state: Path) -> None:
    again = EDIT + EDIT.replace("polite", "again").replace("hello", "good morning").replace(
        "'good morning'\"}", "'good evening'\"}"
    )
    async with client(root, state, again) as one:
        await one.initialize()
        session = await one.new()
        one.permission = lambda params: "allow_always"
        await one.turn(session, "be polite")
        await one.turn(session, "again")
        assert len(one.asked("session/request_permission")) == 1


@pytest.mark.req("G002")
async def test_a_cancelled_turn_ends_its_prompt_as_cancelled(root: Path, state: Path) -> None:
    async with client(root, state, SLOW) as one:
        await one.initialize()
        session = await one.new()
        prompt = one.ask(session, "slow")
        await one.until(lambda: one.said(session))
        one.notify("session/cancel", sessionId=session)
        async with asyncio.timeout(30):
            assert (await prompt)["stopReason"] == "cancelled"
        at = len(one.received)
        await one.request("session/set_mode", sessionId=session, modeId="plan")
        later = [m for m in one.received[at:] if m.get("method") == "session/update"]
        assert not later, "nothing more is said of a turn that is over"


async def test_a_cancel_right_after_its_prompt_is_not_lost(root: Path, state: Path) -> None:
    async with client(root, state, SLOW) as one:
        await one.initialize()
        session = await one.new()
        prompt = one.ask(session, "slow")
        one.notify("session/cancel", sessionId=session)
        async with asyncio.timeout(30):
            assert (await prompt)["stopReason"] == "cancelled"


@pytest.mark.req("G020")
async def test_a_question_outlives_the_process_that_asked(root: Path, state: Path) -> None:
    async with client(root, state, EDIT) as one:
        await one.initialize()
        session = await one.new()
        one.permission = lambda params: None
        prompt = one.ask(session, "be polite")
        await one.until(lambda: one.asked("session/request_permission"))
        one.process.kill()
        await one.process.wait()
        prompt.cancel()
    async with client(root, state, EDIT) as two:
        await two.initialize()
        await two.request(
            "session/load", sessionId=session, cwd=str(root), mcpServers=[]
        )  # fmt: skip
        (said,) = two.updates("user_message_chunk", session)
        assert said["content"]["text"] == "be polite"
        assert two.said(session).startswith("I will greet politely.")
        await two.until(lambda: "good morning" in (root / "app.py").read_text())
        await two.until(lambda: two.said(session).endswith("Done."))


async def test_replay_comes_before_the_answer_to_load(root: Path, state: Path) -> None:
    async with client(root, state, EDIT) as one:
        await one.initialize()
        session = await one.new()
        await one.turn(session, "be polite")
    async with client(root, state, EDIT) as two:
        await two.initialize()
        loaded = await two.request("session/load", sessionId=session, cwd=str(root), mcpServers=[])
        assert loaded["modes"]["currentModeId"] == "build"
        replayed = [u["params"]["update"]["sessionUpdate"] for u in two.asked("session/update")]
        assert replayed[0] == "user_message_chunk"
        assert {"agent_message_chunk", "tool_call", "tool_call_update"} <= {*replayed}
        assert two.said(session) == "I will greet politely.Done."
        assert "method" not in two.received[-1]
        await two.request("session/resume", sessionId=session, cwd=str(root))
        again = [u["params"]["update"]["sessionUpdate"] for u in two.asked("session/update")]
        aside = "available_commands_update"  # comes when it comes
        assert [kind for kind in again if kind != aside] == [
            kind for kind in replayed if kind != aside
        ], "to resume shows nothing twice"


async def test_a_failed_turn_is_an_error_with_a_sentence(root: Path, state: Path) -> None:
    async with client(root, state, "prompt: fail\nerror: no_key\n") as one:
        await one.initialize()
        session = await one.new()
        with pytest.raises(RpcError) as failed:
            await one.turn(session, "fail")
        assert failed.value.code == -32603 and failed.value.message


async def test_two_directories_have_two_engines(root: Path, state: Path, tmp_path: Path) -> None:
    other = (tmp_path / "other").resolve()
    other.mkdir()
    async with client(root, state, "prompt: hello\ntext: Hi.\n") as one:
        await one.initialize()
        first, made = (
            await one.new(),
            await one.request("session/new", cwd=str(other), mcpServers=[]),
        )
        for session in (first, made["sessionId"]):
            assert (await one.turn(session, "hello"))["stopReason"] == "end_turn"
        listed = await one.request("session/list", cwd=str(other))
        assert [(s["sessionId"], s["cwd"]) for s in listed["sessions"]] == [
            (made["sessionId"], str(other))
        ]
        with pytest.raises(RpcError, match=f"works in {root}"):
            await one.request("session/resume", sessionId=first, cwd=str(other))


def statuses(one: AcpClient) -> list[str]:
    """Those that the calls went through. A call may be told of while the model still writes it."""
    told = [*one.updates("tool_call"), *one.updates("tool_call_update")]
    return [*dict.fromkeys(update["status"] for update in told if "status" in update)]


async def test_what_a_client_asks_magy_itself_takes_no_answer_away_from_its_prompts(
    root: Path, state: Path
) -> None:
    """Magy's own subscriptions begin and end beside the conversation, also in the middle of it."""
    async with client(root, state, SLOW + "\nprompt: hello\ntext: Hello, you.\n") as one:
        await one.initialize(_meta={"magy": {"custom": True}})
        session = await one.new()
        await one.request("_magy/session/subscribe", sessionId=session)
        prompted = one.ask(session, "slow")
        await one.until(lambda: "This is" in one.said(session))
        again = await one.request("_magy/session/resume", sessionId=session)
        assert again["summary"]["session"]["state"] == "running"
        await one.request("_magy/session/unsubscribe", sessionId=session)
        assert (await prompted)["stopReason"] == "end_turn"
        assert one.said(session).count("This is said slowly") == 1
        assert (await one.turn(session, "hello"))["stopReason"] == "end_turn"
        own = [m["params"] for m in one.received if m.get("method") == "_magy/session/update"]
        assert own and all(params["sessionId"] == session for params in own)
        ended = [p for p in own if p["update"].get("state") == "idle"]
        assert not ended, "nobody was subscribed any more"


@pytest.mark.parametrize("verb", ["close", "delete"])
async def test_a_session_that_magy_is_asked_to_end_leaves_no_prompt_waiting(
    root: Path, state: Path, verb: str
) -> None:
    async with client(root, state, SLOW) as one:
        await one.initialize()
        session = await one.new()
        prompted = one.ask(session, "slow")
        await one.until(lambda: "This is" in one.said(session))
        await one.request(f"_magy/session/{verb}", sessionId=session)
        with suppress(RpcError):
            assert (await prompted)["stopReason"] == "cancelled"
        with pytest.raises(RpcError, match="is not open here: load or resume it first"):
            await one.turn(session, "slow")
