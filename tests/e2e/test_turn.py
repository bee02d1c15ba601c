"""A whole turn through the wire: prompt, stream, tools, permission, edit, cancel, steer, queue."""

from __future__ import annotations

import asyncio
from pathlib import Path

import psutil
import pytest

from .harness import SESSION, RpcError, person

READ = """
text: Let me look.
call: read_file {"path": "app.py"}
---
text: It greets: {{last}}
"""
EDIT = """
call: edit_file {"path": "app.py", "old_text": "'hello'", "new_text": "'goodbye'"}
---
text: Changed.
"""


def alive(pid: int) -> bool:
    """A zombie whose parent is gone is dead."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@pytest.mark.req("F002", "E110")
async def test_a_prompt_streams_reads_and_ends(root: Path, state: Path) -> None:
    async with person(root, state, READ) as one:
        await one.new()
        end = await one.turn("What does it do?")
        assert end["stopReason"] == "end_turn"
        assert "2 of 2 lines" in one.outputs()[0]
        assert one.said().startswith("Let me look.\nIt greets:")
        assert "return 'hello'" in one.said()
        chunks = one.updates("agent_message_chunk")
        assert all("_meta" not in chunk for chunk in chunks)


@pytest.mark.req("G006", "A024")
async def test_an_edit_is_asked_for_and_lands_in_the_live_unsaved_buffer(
    root: Path, state: Path
) -> None:
    async with person(root, state, EDIT) as one:
        await one.new()
        path = root / "app.py"
        one.editor.open(path, "# unsaved\n" + path.read_text())
        await one.ask("Change it")
        question = await one.question()
        assert "app.py" in question["title"] and "edit" in question["rule"]
        assert "hello" in one.editor.text(path)
        await one.respond(question["interactionId"])
        assert (await one.end())["stopReason"] == "end_turn"
        assert one.editor.text(path) == "# unsaved\ndef greet():\n    return 'goodbye'\n"
        assert "hello" in path.read_text()
        assert one.editor.edits[0]["edit"]["documentChanges"][0]["textDocument"]["version"] == 1


async def test_a_closed_file_is_written_by_the_server(root: Path, state: Path) -> None:
    async with person(root, state, EDIT) as one:
        await one.new()
        await one.ask("Change it")
        await one.answer()
        await one.end()
        assert (root / "app.py").read_text() == "def greet():\n    return 'goodbye'\n"


@pytest.mark.req("G022", "C043")
async def test_a_refusal_with_its_reason_reaches_the_model(root: Path, state: Path) -> None:
    script = EDIT.replace("Changed.", "{{last}}")
    async with person(root, state, script) as one:
        await one.new()
        await one.ask("Change it")
        await one.answer(False, reason="It must stay polite.")
        await one.end()
        assert "It must stay polite." in one.said()
        assert "hello" in (root / "app.py").read_text()


@pytest.mark.req("A247", "E098", "C040")
async def test_shell_output_streams_while_the_command_runs(root: Path, state: Path) -> None:
    script = 'call: bash {"command": "touch a; echo one; sleep 1; echo two"}\n---\ntext: done\n'
    async with person(root, state, script) as one:
        await one.new()
        await one.ask("Run it")
        await one.answer()
        chunk = await one.update("tool_call_content_chunk")
        assert chunk["content"]["content"]["text"].strip() == "one"
        await one.end()
        assert "one\ntwo" in one.outputs()[0]


async def test_cancel_ends_a_running_command_and_its_children(root: Path, state: Path) -> None:
    command = '{"command": "sleep 600 & echo $! > pid; wait", "timeout": 600}'
    script = f"call: bash {command}\n---\ntext: never\n"
    async with person(root, state, script) as one:
        await one.new()
        await one.ask("Wait")
        await one.answer()
        pid = root / "pid"
        while not (pid.exists() and pid.read_text().strip()):
            await asyncio.sleep(0.05)
        assert (await one.request("session/cancel"))["cancelled"] is True
        assert (await one.end())["stopReason"] == "cancelled"
        assert not alive(int(pid.read_text()))
        assert "never" not in one.said()


@pytest.mark.req("E125")
async def test_the_next_prompt_after_a_cancel_is_a_valid_conversation(
    root: Path, state: Path
) -> None:
    script = (
        'prompt: wait\ncall: bash {"command": "touch a; sleep 600", "timeout": 600}\n'
        "prompt: again\ntext: Here.\n"
    )
    async with person(root, state, script) as one:
        await one.new()
        await one.ask("wait")
        await one.question()
        await one.request("session/cancel")
        assert (await one.end())["stopReason"] == "cancelled"
        await one.turn("again", "p2")
        assert one.said() == "Here."
        assert (await one.request("interaction/list"))["interactions"] == []


@pytest.mark.req("G021", "E007")
async def test_steer_and_queue(root: Path, state: Path) -> None:
    script = """
prompt: go
call: bash {"command": "touch a"}
---
text: unsteered
prompt: rather
text: steered
prompt: third
text: third done
prompt: second
text: second done
"""
    async with person(root, state, script) as one:
        await one.new()
        await one.ask("go")
        question = await one.question()
        assert (await one.ask("rather this", "p2"))["outcome"] == "steered"
        assert (await one.ask("second", "q1", delivery="queue"))["outcome"] == "queued"
        assert (await one.ask("third", "q2", delivery="queue"))["outcome"] == "queued"
        assert (await one.ask("fourth", "q3", delivery="queue"))["outcome"] == "queued"
        assert (await one.ask("third", "q2", delivery="queue"))["outcome"] == "known"
        waiting = await one.request("queue/reorder", order=["q2", "q1"])
        assert [w["messageId"] for w in waiting["waiting"]] == ["q2", "q1", "p2", "q3"]
        waiting = await one.request("queue/drop", messageIds=["q3"])
        assert len(waiting["waiting"]) == 3
        with pytest.raises(RpcError, match="q3"):
            await one.request("queue/drop", messageIds=["q3"])
        await one.respond(question["interactionId"])
        for _ in range(3):
            await one.end()
        assert one.said() == "steered\nthird done\nsecond done"


@pytest.mark.req("E024", "G024")
async def test_a_cap_on_requests_hands_back_the_partial_work(root: Path, state: Path) -> None:
    script = "".join(f'call: read_file {{"path": "app.py", "offset": {n}}}\n---\n' for n in (1, 2))
    async with person(root, state, script + "text: end\n", settings={"limits": {"requests": 2}}
                      ) as one:  # fmt: skip
        await one.new()
        end = await one.turn("Go")
        assert end["stopReason"] == "max_turn_requests"
        message = end["_meta"]["magy"]["message"]
        assert "limit of 2 model requests" in message and "app.py" in message


@pytest.mark.req("E024")
async def test_a_cap_of_0_is_none(root: Path, state: Path) -> None:
    """More requests than the default allows."""
    script = "".join(f'call: glob {{"pattern": "{n}"}}\n---\n' for n in range(30)) + "text: end\n"
    for requests, stop in ((0, "end_turn"), (None, "max_turn_requests")):
        settings = {} if requests is None else {"limits": {"requests": requests}}
        async with person(root, state / f"{requests}", script, settings=settings) as one:
            await one.new()
            assert (await one.turn("Go"))["stopReason"] == stop
            assert len(one.outputs()) == (25 if requests is None else 30)


@pytest.mark.req("A032")
@pytest.mark.parametrize(
    ("limits", "cycle", "reads"), [({}, 1, 5), ({"repeats": 3}, 1, 3), ({"repeats": 2}, 2, 4)]
)
async def test_a_loop_is_broken(
    root: Path, state: Path, limits: dict[str, int], cycle: int, reads: int
) -> None:
    """After as many rounds of the same calls as the settings say."""
    script = "".join(
        f'call: read_file {{"path": "app.py", "limit": {n % cycle + 1}}}\n---\n' for n in range(9)
    )
    async with person(root, state, script + "text: end\n", settings={"limits": limits}) as one:
        await one.new()
        end = await one.turn("Go")
        assert end["_meta"]["magy"]["stop"] == "loop"
        assert len(one.outputs()) == reads


@pytest.mark.req("G024")
async def test_a_time_limit(root: Path, state: Path) -> None:
    async with person(root, state, "delay: 30\ntext: late\n", settings={"limits": {"seconds": 0.5}}
                      ) as one:  # fmt: skip
        await one.new()
        end = await one.turn("Go")
        assert end["_meta"]["magy"]["stop"] == "max_time"


@pytest.mark.req("G028")
async def test_the_plan_is_shown(root: Path, state: Path) -> None:
    script = 'call: update_plan {"tasks": [{"content": "Think", "status": "in_progress"}]}\n'
    async with person(root, state, script + "---\ntext: ok\n") as one:
        await one.new()
        await one.turn("Go")
        (plan,) = one.updates("plan_update")
        assert plan["plan"]["entries"] == [
            {"content": "Think", "status": "in_progress", "priority": "medium"}
        ]
        summary = (await one.request("session/subscribe"))["summary"]
        assert summary["plan"] == plan["plan"]["entries"]


async def test_wrong_calls_get_errors_from_which_the_model_can_correct_itself(
    root: Path, state: Path
) -> None:
    script = """
call: read_fiel {"path": "app.py"}
call: read_file {"pth": "app.py"}
call: read_file {"path": "../../etc/passwd"}
---
text: sorry
"""
    async with person(root, state, script) as one:
        await one.new()
        assert (await one.turn("Go"))["stopReason"] == "end_turn"
        unknown, wrong, outside = one.outputs()
        assert "no tool 'read_fiel'" in unknown and "read_file" in unknown
        assert "path" in wrong and "pth" in wrong
        assert "outside the workspace" in outside


async def test_a_failing_model_ends_the_turn_with_a_sentence_and_the_session_goes_on(
    root: Path, state: Path
) -> None:
    script = "prompt: first\nerror: auth\ntext: fine\n"
    async with person(root, state, script) as one:
        await one.new()
        end = await one.turn("first")
        assert end["stopReason"] == "error" and end["_meta"]["magy"]["message"]
        await one.turn("go on", "p2")
        assert one.said() == "fine"


async def test_a_stream_that_breaks_is_tried_again_and_leaves_nothing_half(
    root: Path, state: Path
) -> None:
    script = "text: half of\nerror: connection times=2\ntext: whole\n"
    settings = {"model": {"retry_delay": 0.05}}
    async with person(root, state, script, settings=settings) as one:
        await one.new()
        assert (await one.turn("Go"))["stopReason"] == "end_turn"
        assert one.said() == "half of\nwhole"
        assert len(one.updates("notice")) >= 1
        assert len(one.updates("usage_update")) == 1


async def test_without_any_model_one_sentence_says_what_to_set(root: Path, state: Path) -> None:
    async with person(root, state) as one:
        await one.new()
        end = await one.turn("Go")
        assert "ANTHROPIC_API_KEY" in end["_meta"]["magy"]["message"]


async def test_progress_is_shown_and_cancels_the_turn(root: Path, state: Path) -> None:
    script = 'call: bash {"command": "touch a; sleep 600", "timeout": 600}\n---\ntext: x\n'
    async with person(root, state, script) as one:
        await one.new()
        await one.ask("Go")
        begin = await one.client.wait_for("$/progress", lambda p: p["value"]["kind"] == "begin")
        assert begin["value"]["cancellable"] is True
        one.client.notify("window/workDoneProgress/cancel", {"token": begin["token"]})
        assert (await one.end())["stopReason"] == "cancelled"
        await one.client.wait_for("$/progress", lambda p: p["value"]["kind"] == "end")


@pytest.mark.req("G001")
async def test_a_plain_client_is_asked_by_a_standard_message(root: Path, state: Path) -> None:
    async with person(root, state, EDIT, knows_magy=False) as one:
        shown = []

        def choose(params: dict) -> dict:  # type: ignore[type-arg]
            shown.append(params)
            return {"title": "Allow once"}

        one.client.handlers["window/showMessageRequest"] = choose
        await one.new()
        assert (await one.turn("Change it"))["stopReason"] == "end_turn"
        assert "app.py" in shown[0]["message"]
        assert "goodbye" in (root / "app.py").read_text()
        assert one.client.notifications("magy/interaction/changed") == []


async def test_the_agents_are_listed(root: Path, state: Path) -> None:
    async with person(root, state, READ) as one:
        agents = (await one.client.request("magy/agent/list", {}))["agents"]
        assert "build" in [agent["name"] for agent in agents]
        with pytest.raises(RpcError, match="no agent 'biuld'"):
            await one.new(agent="biuld")


async def test_unknown_sessions_and_wrong_parameters_say_so(root: Path, state: Path) -> None:
    async with person(root, state, READ) as one:
        with pytest.raises(RpcError) as unknown:
            await one.ask("hello?")
        assert (unknown.value.code, unknown.value.reason) == (-32803, "not_found")
        with pytest.raises(RpcError) as wrong:
            await one.client.request("magy/session/prompt", {"sessionId": SESSION})
        assert wrong.value.code == -32602 and "messageId" in wrong.value.message
        with pytest.raises(RpcError) as missing:
            await one.client.request("magy/no/such", {})
        assert missing.value.code == -32601
