"""Agents as people use them: the built-in ones, and files of one's own, through a real server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from .harness import Person, RpcError, person

TALK = "text: hi\n"


def agent(directory: Path, name: str, more: str = "") -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    file = directory / f"{name}.md"
    file.write_text(f"---\ndescription: Helps with {name}\n{more}\n---\nYou help.\n")
    return file


def calls(*lines: str) -> str:
    """A script whose first reply makes these calls."""
    return "".join(f"call: {line}\n" for line in lines) + "---\ntext: done\n"


async def listed(one: Person) -> dict[str, str]:
    """The agents by name, with their modes."""
    found = await one.client.request("magy/agent/list", {"cwd": str(one.root)})
    return {agent["name"]: agent["mode"] for agent in found["agents"]}


def option(result: dict[str, Any], id: str) -> dict[str, Any]:
    options: list[dict[str, Any]] = result["configOptions"]
    return next(option for option in options if option["configId"] == id)


# --- the built-in agents --------------------------------------------------------------------------


@pytest.mark.req("E001", "E090", "F002")
async def test_people_choose_among_primary_agents_and_build_is_the_default(
    root: Path, state: Path
) -> None:
    async with person(root, state, TALK) as one:
        found = await listed(one)
        assert [name for name, mode in found.items() if mode != "subagent"] == ["build", "plan"]
        assert {"explore", "general", "architect", "reviewer", "magi"} <= found.keys()
        made = await one.request("session/new", cwd=str(root))
        assert option(made, "agent")["currentValue"] == "build"
        assert option(made, "agent")["options"] == ["build", "plan"]


async def test_what_a_session_will_begin_with_is_said_before_there_is_one(
    root: Path, state: Path
) -> None:
    async with person(root, state, TALK) as one:
        before = await one.client.request("magy/session/options", {"cwd": str(root)})
        assert not (await one.request("session/list"))["sessions"], "to ask makes none"
        made = await one.request("session/new", cwd=str(root))
        assert before["configOptions"] == made["configOptions"]
        assert option(before, "model")["currentValue"] == "scripted/script"


@pytest.mark.req("E084")
async def test_plan_writes_its_plan_unasked_and_changes_nothing_else(
    root: Path, state: Path
) -> None:
    script = calls(
        'write_file {"path": ".magent/plan/greeting.md", "content": "# Greet better"}',
        'write_file {"path": "app.py", "content": "gone"}',
        'edit_file {"path": "app.py", "old_text": "hello", "new_text": "hi"}',
        'bash {"command": "rm app.py"}',
        'bash {"command": "echo x > app.py; cat $(touch made)"}',
        'bash {"command": "cat app.py"}',
    )
    before = (root / "app.py").read_text()
    async with person(root, state, script) as one:
        await one.new(agent="plan")
        await one.request("session/set_config_option", configId="bypass", value="on")
        assert (await one.turn("Plan it"))["stopReason"] == "end_turn"
        wrote, *refused, looked = one.outputs()
        assert not one.updates("_magy_interaction")
        assert (root / ".magent/plan/greeting.md").read_text() == "# Greet better"
        assert "Not allowed" not in wrote and "return 'hello'" in looked
        assert len(refused) == 4 and all("Not allowed: agent plan" in said for said in refused)
        assert (root / "app.py").read_text() == before and not (root / "made").exists()


@pytest.mark.req("E002", "E085")
async def test_explore_has_no_tool_that_changes_anything(root: Path, state: Path) -> None:
    script = calls(
        'edit_file {"path": "app.py", "old_text": "hello", "new_text": "hi"}',
        'write_file {"path": "a.md", "content": "x"}',
        'bash {"command": "git init ."}',
        'bash {"command": "ls"}',
        'read_file {"path": "app.py"}',
    )
    async with person(root, state, script) as one:
        await one.new(agent="explore")
        await one.turn("Where is the greeting?")
        edited, wrote, ran, listing, read = one.outputs()
        assert "The tool 'edit_file' is switched off here" in edited
        assert "The tool 'write_file' is switched off here" in wrote
        assert "agent explore: bash `*` -> deny" in ran
        assert "app.py" in listing and "2 of 2 lines" in read


@pytest.mark.req("E096", "E097")
async def test_no_agent_reads_a_secret_whatever_its_own_rules_say(root: Path, state: Path) -> None:
    agent(state / "agent", "open", "permissions: read allow, bash allow")
    (root / ".env").write_text("TOKEN=very-secret")
    script = calls('read_file {"path": ".env"}', 'bash {"command": "cat .env"}')
    async with person(root, state, script) as one:
        await one.new(agent="open")
        await one.turn("Show me")
        assert all("common rules: read `*.env` -> deny" in said for said in one.outputs())
        assert len(one.outputs()) == 2 and "very-secret" not in str(one.client.received)


# --- agents of one's own --------------------------------------------------------------------------


@pytest.mark.req("E003", "E106", "E095")
async def test_a_trusted_project_has_agents_of_its_own(root: Path, state: Path) -> None:
    more = (
        "mode: primary\nmodel: scripted/other\npermissions:\n  bash: {'echo *': allow, '*': deny}"
    )
    agent(root / ".magent" / "agent", "review", more)
    script = calls('bash {"command": "echo fine"}', 'bash {"command": "make"}')
    async with person(root, state, script) as one:
        await one.request("workspace/trust", root=str(root), trusted=True)
        assert (await listed(one))["review"] == "primary"
        made = await one.request("session/new", cwd=str(root), agent="review")
        assert option(made, "model")["currentValue"] == "scripted/other"
        assert option(made, "agent")["options"] == ["build", "plan", "review"]
        await one.request("session/subscribe")
        await one.turn("Look")
        ran, refused = one.outputs()
        assert "fine" in ran
        assert "agent review: bash `*` -> deny" in refused


@pytest.mark.req("E026")
async def test_agents_of_ones_own_can_be_turned_off(root: Path, state: Path) -> None:
    agent(state / "agent", "mine")
    async with person(root, state, TALK) as one:
        assert "mine" in await listed(one)
    async with person(root, state, TALK, settings={"custom_agents": False}) as one:
        assert "build" in await listed(one) and "mine" not in await listed(one)
        with pytest.raises(RpcError, match="There is no agent 'mine'"):
            await one.new(agent="mine")


async def test_a_wrong_file_is_said_and_stops_no_other(root: Path, state: Path) -> None:
    wrong = agent(state / "agent", "wrong", "modl: a/b")
    agent(state / "agent", "good")
    said = f"{wrong}:3: unknown setting 'modl'. Did you mean 'model'?"
    async with person(root, state, TALK) as one:
        await one.client.wait_for("window/showMessage", lambda p: said in p["message"])
        assert "good" in await listed(one) and "wrong" not in await listed(one)
        with pytest.raises(RpcError) as refused:
            await one.new(agent="wrong")
        assert refused.value.message == said and refused.value.reason == "invalid_config"
        await one.new(agent="good")
        assert (await one.turn("Hi"))["stopReason"] == "end_turn"


async def test_an_agent_that_changes_is_another_from_the_next_turn_on(
    root: Path, state: Path
) -> None:
    agent(state / "agent", "mine", "permissions: bash allow")
    script = """\
prompt: first
call: bash {"command": "echo one"}
---
text: ok
prompt: second
call: bash {"command": "echo two"}
---
text: ok
"""
    async with person(root, state, script) as one:
        await one.new(agent="mine")
        await one.turn("first")
        agent(state / "agent", "mine", "permissions: bash deny")
        await one.ask("second", "p2")
        await one.end()
        assert "one" in one.outputs()[0]
        assert "The tool 'bash' is switched off here" in one.outputs()[1]
