"""What a model is sent for an agent: its tools, its prompt and its settings, on the real wire."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from magy_server.tools.kit import make_tools
from magy_server.tools.shell.processes import Processes
from tests.loopback import ChatServer, call, text

from .harness import SESSION, Person, findable, person
from .test_agents import agent, listed, option

LOOKS = {"read_file", "grep", "glob", "bash"}
OF_AN_EDITOR = {"editor", "emacs_eval"}
"""Keys of the tools that only an editor which announced them has."""
DELEGATES = {
    "spawn_agent", "send_agent_message", "wait_agent", "list_agents", "close_agent", "run_graph",
    "deliberate", "rate_agent",
}  # fmt: skip


@pytest.fixture
async def server() -> AsyncIterator[ChatServer]:
    async with ChatServer() as server:
        server.answer(lambda body: [text("Yes.")])
        yield server


def settings(server: ChatServer, **more: Any) -> dict[str, Any]:
    provider = {"name": "mine", "kind": "openai-chat", "base_url": server.base_url}
    return {"provider": [provider], "model": {"default": "mine/one"}, **more}


def offered(request: Any) -> set[str]:
    """Those that it describes, and those that the model can find."""
    described = {tool["function"]["name"] for tool in request.body.get("tools", ())}
    return described | findable(system(request))


def system(request: Any) -> str:
    return "\n".join(m["content"] for m in request.body["messages"] if m["role"] == "system")


async def tools_of(one: Person, server: ChatServer, name: str) -> set[str]:
    """What the agent is offered: one for people in a session, one for agents as a child."""
    if (await listed(one))[name] == "primary":
        await one.new(f"s-{name}", agent=name)
        await one.ask("Hello", f"p-{name}", sessionId=f"s-{name}")
        await one.end(f"s-{name}")
    else:
        prompt = [{"type": "text", "text": "Hello"}]
        spawned = await one.client.request(
            "magy/child/spawn",
            {"parentSessionId": "s-build", "requestKey": name, "prompt": prompt, "agent": name},
        )
        waited = {"sessionIds": [spawned["child"]["sessionId"]]}
        await one.client.request("magy/child/wait", waited)
    return offered(next(r for r in reversed(server.asked) if "tools" in r.body))


@pytest.mark.req("E083", "E085", "E086")
async def test_each_built_in_agent_is_offered_its_tools(
    root: Path, state: Path, server: ChatServer
) -> None:
    async with person(root, state, settings=settings(server)) as one:
        build = await tools_of(one, server, "build")
        kit = {tool.name for tool in make_tools(Processes()) if tool.key not in OF_AN_EDITOR}
        assert build >= kit - {"replace_selection", "apply_patch"} and build >= DELEGATES
        assert await tools_of(one, server, "explore") == LOOKS
        assert await tools_of(one, server, "general") == build - DELEGATES


@pytest.mark.req("A115", "E020", "E101")
async def test_a_denied_tool_is_not_offered_and_not_run(
    root: Path, state: Path, server: ChatServer
) -> None:
    async with person(
        root, state, settings=settings(server, permission={"bash": "deny", "edit": "ask"})
    ) as one:
        await one.new()
        server.reply(call("bash", {"command": "touch made"}))
        server.reply(text("Yes."))
        await one.request("session/set_config_option", configId="bypass", value="on")
        await one.turn("Run it")
        tools = offered(server.asked[0])
        assert "bash" not in tools and {"read_file", "edit_file"} <= tools
        assert "The tool 'bash' is switched off here" in one.outputs()[0]
        assert not (root / "made").exists()


@pytest.mark.req("E102", "E105", "E108")
async def test_what_an_agents_file_says_is_what_people_and_the_model_get(
    root: Path, state: Path, server: ChatServer
) -> None:
    agent(state / "agent", "poet", "temperature: 0.25\nmodel: mine/two\ntools: read_file, glob")
    async with person(root, state, settings=settings(server)) as one:
        found = await one.client.request("magy/agent/list", {"cwd": str(root)})
        (poet,) = [one for one in found["agents"] if one["name"] == "poet"]
        assert poet["description"] == "Helps with poet"
        await one.new(agent="poet")
        await one.turn("Hello")
        body = server.asked[-1].body
        assert (body["model"], body["temperature"]) == ("two", 0.25)
        assert offered(server.asked[-1]) == {"read_file", "glob"}
        assert system(server.asked[-1]).startswith("You help.")


@pytest.mark.req("E090", "E103", "E104")
async def test_modes_say_who_may_choose_an_agent(root: Path, state: Path) -> None:
    for mode in ("primary", "subagent", "all"):
        agent(state / "agent", mode, f"mode: {mode}")
    agent(state / "agent", "secret", "mode: all\nhidden: true")
    script = """
prompt: delegate
call: spawn_agent {"agent": "primary", "task_name": "x", "prompt": "Hello"}
---
text: done

prompt: Hello
text: hi
"""
    async with person(root, state, script) as one:
        assert {"primary", "subagent", "all"} <= (await listed(one)).keys()
        assert "secret" not in await listed(one)
        await one.new()
        made = await one.request("session/new", cwd=str(root))
        assert option(made, "agent")["options"] == ["build", "plan", "all", "primary"]
        prompt = [{"type": "text", "text": "Hello"}]
        spawn: dict[str, Any] = {"parentSessionId": SESSION, "prompt": prompt}
        for name in ("all", "subagent"):
            ask = {**spawn, "requestKey": name, "agent": name}
            assert await one.client.request("magy/child/spawn", ask)
        await one.turn("delegate")
        assert "'primary' is for people" in one.outputs()[0]
        assert one.outputs()[0].endswith("qa, reviewer, all, subagent.")


async def test_an_agent_learns_which_agents_there_are_when_it_asks(root: Path, state: Path) -> None:
    agent(state / "agent", "poet", "mode: all")
    agent(state / "agent", "hermit", "mode: primary")
    script = "prompt: who\ncall: list_agents {}\n---\ntext: {{last}}\n"
    async with person(root, state, script) as one:
        await one.new()
        await one.turn("who")
        lines = one.said().splitlines()
        assert lines[:3] == ["You have no agents.", "", "Agents to spawn:"]
        assert [line.partition(":")[0] for line in lines[3:]] == [
            "- explore", "- general", "- architect", "- coder", "- developer", "- devops",
            "- engineering-lead", "- magi-balthasar", "- magi-casper", "- magi-melchior", "- magi",
            "- orchestrator", "- project-manager", "- qa", "- reviewer",
            "- poet",
        ]  # fmt: skip
        assert "- poet: Helps with poet" in lines


@pytest.mark.req("E013")
def test_nothing_delegates_in_one_shot() -> None:
    """Child agents last: they are spawned, waited for and closed."""
    names = {tool.name for tool in make_tools(Processes())}
    assert names and not {name for name in names if "delegate" in name}
