"""Child agents over ACP: a call that grows, their questions, slash commands that begin them."""

from __future__ import annotations

from pathlib import Path

from tests.e2e.test_child_tools import until
from tests.tools.repositories import git

from .harness import AcpClient, client

SCRIPT = """prompt: delegate
call: spawn_agent {"agent": "general", "prompt": "count the beans", "task_name": "Beans"}
---
call: wait_agent {}
---
text: There are seven.
prompt: count
text: I look for beans.
call: bash {"command": "touch beans && echo 7"}
---
text: Seven beans.
prompt: compact
text: Short.
"""


def child_calls(one: AcpClient) -> list[str]:
    """What the client was shown of children, in order."""
    told = [*one.updates("tool_call"), *one.updates("tool_call_update")]
    return [
        update["content"][0]["content"]["text"]
        for update in told
        if update["toolCallId"].startswith("child:") and update.get("content")
    ]


async def test_a_child_is_a_call_that_grows(root: Path, state: Path) -> None:
    async with client(root, state, SCRIPT) as one:
        await one.initialize()
        session = await one.new()
        assert (await one.turn(session, "delegate"))["stopReason"] == "end_turn"
        assert one.said(session) == "There are seven."
        begun = [u for u in one.updates("tool_call") if u["toolCallId"].startswith("child:")]
        assert [u["title"] for u in begun] == ["general: Beans"]
        await one.until(lambda: "Seven beans." in child_calls(one)[-1])
        last = child_calls(one)[-1]
        assert last.index("I look for beans.") < last.index("touch beans")
        assert last.index("touch beans") < last.index("Seven beans.")
        asked = [m["params"] for m in one.asked("session/request_permission")]
        (about,) = [p for p in asked if "touch beans" in p["toolCall"]["title"]]
        assert about["sessionId"] == session, "the client knows only the root"
        assert about["toolCall"]["title"].startswith("general (Beans), child of build")
        assert (root / "beans").exists()


async def test_commands_are_offered_and_carried_out(root: Path, state: Path) -> None:
    async with client(root, state, SCRIPT) as one:
        await one.initialize()
        session = await one.new()
        (told,) = await one.until(lambda: one.updates("available_commands_update", session))
        names = [command["name"] for command in told["availableCommands"]]
        assert {"init", "spawn-general", "compact"} <= {*names} and len(names) == len({*names})
        answer = await one.turn(session, "/spawn-general count the beans")
        assert answer["stopReason"] == "end_turn"
        await one.until(lambda: any("Seven beans." in said for said in child_calls(one)))
        await one.turn(session, "delegate")
        answer = await one.turn(session, "/compact the beans")
        assert answer["stopReason"] == "end_turn"


async def test_a_child_may_work_on_a_branch_of_its_own(root: Path, state: Path) -> None:
    git(root, "init", "-q", "-b", "main")
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "First")
    async with client(root, state, SCRIPT) as one:
        await one.initialize()
        session = await one.new()
        (told,) = await one.until(lambda: one.updates("available_commands_update", session))
        hints = {each["name"]: each["input"]["hint"] for each in told["availableCommands"]}
        assert hints["spawn-general"] == "[--worktree] the task"
        await one.turn(session, "/spawn-general --worktree count the beans")
        await until(lambda: git(root, "log", "--merges", "--format=%h", "main"))
    assert git(root, "show", "--name-only", "--format=", "main^2").split() == ["beans"]


async def test_a_skill_is_called_by_its_name(root: Path, state: Path) -> None:
    async with client(root, state, "text: As the skill says.\n") as one:
        await one.initialize()
        session = await one.new()
        await one.turn(session, "/init now")
        page = await one.request("_magy/session/events", sessionId=session, after=0)
        (words, skill) = page["events"][1]["update"]["content"]
        assert words["text"] == "@init now"
        assert skill["resource"]["uri"] == "magy:skill/init"
