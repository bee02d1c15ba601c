"""Things that happen at an awkward moment."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from tests.loopback import ChatServer, hang, text
from tests.patience import PATIENCE

from .harness import SESSION, Person, RpcError, person, served

SLOW = """
# Prompts that get no answer are one message with the next: the later one counts.
prompt: third
text: The third answer.
prompt: second
text: The second answer.
prompt: first
text: Thinking about it.
delay: 600
text: The first answer.
"""
GATE = """call: bash {"command": "while [ ! -e go ]; do sleep 0.02; done", "timeout": 600}
---"""
TOUCH = 'call: bash {"command": "touch made"}\n---\ntext: Made.\n'


@pytest.mark.req("G021")
async def test_a_steer_while_the_model_is_streaming_is_answered(root: Path, state: Path) -> None:
    steered = asyncio.Event()
    async with (
        ChatServer() as server,
        person(root, state, settings=served(server)) as one,
    ):
        server.reply(text("Thinking about it.\n"), hang(until=steered), text("The first answer."))
        server.reply(text("The second answer."))
        await one.new()
        await one.ask("first")
        await one.update("agent_message_chunk")
        assert (await one.ask("second", "p2"))["outcome"] == "steered"
        steered.set()
        await one.end()
        assert one.said() == "Thinking about it.\nThe first answer.\nThe second answer."


async def test_an_interrupt_stops_the_turn_and_goes_first(root: Path, state: Path) -> None:
    async with person(root, state, SLOW) as one:
        await one.new()
        await one.ask("first")
        await one.update("agent_message_chunk")
        await one.ask("third", "p3", delivery="queue")
        await one.ask("second", "p2", delivery="interrupt")
        assert (await one.end())["stopReason"] == "cancelled"
        await one.end()
        await one.end()
        assert one.said() == "Thinking about it.\nThe second answer.\nThe third answer."


async def test_a_cancel_right_after_the_prompt_is_not_too_early(root: Path, state: Path) -> None:
    async with person(root, state, SLOW) as one:
        await one.new()
        asked = one.ask("first")
        cancelled = one.request("session/cancel", turnId="p1")
        await asyncio.gather(asked, cancelled)
        await _resting(one)
        assert "The first answer." not in one.said()


async def test_closing_a_session_drops_what_waits(root: Path, state: Path) -> None:
    async with person(root, state, SLOW) as one:
        await one.new()
        await one.ask("first")
        await one.update("agent_message_chunk")
        await one.ask("second", "p2", delivery="queue")
        await one.request("session/close")
        await _resting(one)
        await asyncio.sleep(0.5)
        attached = await one.request("session/subscribe")
        assert attached["summary"]["session"]["state"] == "idle"
        assert attached["summary"]["session"]["turns"] == 1


async def _resting(one: Person) -> None:
    """Until no turn is open, and nothing waits for one."""
    async with asyncio.timeout(PATIENCE):
        while True:
            summary = (await one.request("session/subscribe"))["summary"]
            if summary["session"]["state"] == "idle" and not summary["waiting"]:
                return
            await asyncio.sleep(0.05)


async def test_a_fork_leaves_the_queue_to_its_source(root: Path, state: Path) -> None:
    async with person(root, state, SLOW) as one:
        await one.new()
        await one.ask("first")
        await one.update("agent_message_chunk")
        await one.ask("second", "p2", delivery="queue")
        await one.request("session/fork", newSessionId="s2")
        attached = await one.request("session/subscribe", sessionId="s2")
        assert attached["summary"]["waiting"] == []
        assert attached["summary"]["session"]["state"] == "idle"
        await one.request("session/cancel")
        await one.end()
        await one.end()
        assert "The second answer." in one.said()


async def test_a_running_session_can_be_deleted_and_stays_so(root: Path, state: Path) -> None:
    script = TOUCH.replace('touch made"', 'touch made; sleep 600", "timeout": 600')
    async with person(root, state, script) as one:
        await one.new()
        await one.ask("go")
        await one.answer()
        await one.update("tool_call_update", lambda u: u.get("status") == "in_progress")
        assert await one.request("session/delete") == {"deleted": True}
        await asyncio.sleep(0.5)
        listed = await one.request("session/list")
        assert listed["sessions"] == []


async def test_two_answers_for_the_same_project_at_once(root: Path, state: Path) -> None:
    async with person(root, state, TOUCH) as one:
        for session in ("a", "b"):
            await one.new(session)
            await one.ask("go", sessionId=session)
        questions = [
            await one.update("_magy_interaction", lambda u: "open" in u, session)
            for session in ("a", "b")
        ]
        answers = await asyncio.gather(
            *(
                one.respond(q["open"]["interactionId"], sessionId=session, scope="project")
                for q, session in zip(questions, ("a", "b"), strict=True)
            )
        )
        assert [answer["accepted"] for answer in answers] == [True, True]
        await one.end("a")
        await one.end("b")


async def test_a_turn_that_cannot_begin_says_why(root: Path, state: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    async with person(root, state, "text: hi\n") as one:
        await one.request("session/new", sessionId="s2", cwd=str(other))
        await one.request("session/subscribe", sessionId="s2")
    (other / "magy.toml").write_text("[modle]\n")
    async with person(root, state, "text: hi\n") as one:
        await one.request("session/subscribe", sessionId="s2")
        await one.ask("go", sessionId="s2")
        end = await one.end("s2")
        assert "did you mean 'model'" in end["_meta"]["magy"]["message"]


async def test_half_a_surrogate_pair_from_the_model(root: Path, state: Path) -> None:
    script = 'call: read_file {"path": "\\ud800"}\n---\ntext: Sorry.\n'
    async with person(root, state, script) as one:
        await one.new()
        assert (await one.turn("go"))["stopReason"] == "end_turn"
        assert one.said() == "Sorry."


async def test_trust_does_not_follow_a_link(root: Path, state: Path, tmp_path: Path) -> None:
    hidden = tmp_path / "hidden.toml"
    hidden.write_text("")
    os.symlink(hidden, root / "magy.toml")
    async with person(root, state, "text: hi\n") as one:
        with pytest.raises(RpcError, match="symbolic link") as refused:
            await one.request("workspace/trust", root=str(root), trusted=True)
        assert refused.value.reason == "not_trusted"


async def test_a_cancelled_prompt_request_leaves_no_prompt_that_nobody_runs(
    root: Path, state: Path
) -> None:
    async with person(root, state, "text: hi\n") as one:
        await one.new()
        prompt = [{"type": "text", "text": "go"}]
        params = {"sessionId": SESSION, "messageId": "p1", "prompt": prompt}
        id, answer = one.client.start("magy/session/prompt", params)
        one.client.cancel(id)
        await asyncio.gather(answer, return_exceptions=True)
        attached = await one.request("session/subscribe", **{"from": {"tail": 20}})
        taken = attached["summary"]["waiting"] or attached["headSeq"] > 1
        if taken:
            assert (await one.end())["stopReason"] == "end_turn"
        assert one.said() == ("hi" if taken else "")


async def test_nothing_depends_on_waiting_for_an_answer(root: Path, state: Path) -> None:
    async with person(root, state, "text: hi\n") as one:
        prompt = [{"type": "text", "text": "go"}]
        about = {"sessionId": SESSION}
        answers = [
            one.client.start(f"magy/session/{method}", {**about, **params})[1]
            for method, params in (
                ("new", {"cwd": str(root)}),
                ("subscribe", {}),
                ("prompt", {"messageId": "p1", "prompt": prompt}),
            )
        ]
        await asyncio.gather(*answers)
        assert (await one.end())["stopReason"] == "end_turn"


async def test_what_follows_an_attachment_follows_its_answer(root: Path, state: Path) -> None:
    """Two parts of a client attach at once, again and again, while a turn writes. An answer has all
    that was told before it; what is told after it is new."""
    script = 'call: read_file {"path": "a"}\n---\n' * 40 + "text: Done.\n"
    (root / "a").write_text("a")
    async with person(root, state, script) as one:
        await one.new()
        await one.ask("go")
        asked = set[int]()
        now = "running"
        while now != "idle":
            method = "magy/session/subscribe" if len(asked) % 4 else "magy/session/resume"
            params = {"sessionId": SESSION, "from": {"seq": 0}}
            begun = [one.client.start(method, params) for _ in range(2)]
            asked |= {id for id, _ in begun}
            _, last = await asyncio.gather(*(answer for _, answer in begun))
            now = last["summary"]["session"]["state"]
        told = answered = 0
        for message in one.client.received:
            if message.get("id") in asked and "result" in message:
                answered = message["result"]["headSeq"]
                assert told <= answered, "told before the answer, and not in it"
            elif message.get("method") == "magy/session/update":
                seq = message["params"]["update"].get("_meta", {}).get("magy", {}).get("seq")
                assert not seq or seq > answered, "told after the answer, and in it"
                told = max(seq or 0, told)
        assert len(asked) > 4, "also where one answer takes as long as ten rounds"


async def test_a_prompt_whose_process_died_before_its_turn_is_run_by_another(
    root: Path, state: Path
) -> None:
    script = SLOW.replace("delay: 600", GATE)
    async with person(root, state, script) as one, person(root, state, script) as two:
        await one.new()
        await one.request("session/set_config_option", configId="bypass", value="on")
        await one.ask("first")
        await one.update("agent_message_chunk")
        await two.request("session/subscribe")
        assert (await two.ask("second", "p2", delivery="queue"))["outcome"] == "queued"
        two.client.process.kill()
        await two.client.exit_code()
        (root / "go").touch()
        await one.end()
        await one.end()
        assert one.said().endswith("The second answer.")


async def test_a_queued_prompt_of_another_editor_is_run_there(root: Path, state: Path) -> None:
    script = SLOW.replace("delay: 600", GATE)
    async with person(root, state, script) as one, person(root, state, script) as two:
        await one.new()
        await one.request("session/set_config_option", configId="bypass", value="on")
        await one.ask("first")
        await one.update("agent_message_chunk")
        await two.request("session/subscribe")
        await two.ask("second", "p2", delivery="queue")
        (root / "go").touch()
        await two.client.wait_for("$/progress", lambda p: p["value"]["kind"] == "begin")
        for either in (one, two):
            await either.end()
            await either.end()
        assert one.said().endswith("The second answer.")
