"""Of the plugins that a person has switched on, an agent may have one alone: its tools, its skills
and its words in the prompt, and nothing of any other. So with each agent of a graph."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.harness import SESSION, Person, person, served
from tests.e2e.test_child_tools import bypass
from tests.loopback import ChatServer, Part, call, text
from tests.lsp.client import RpcError

from .conftest import Magy
from .packing import Environment, package

PLUGINS = ("north", "south")
CODE = """
from magy_server.plugins import Plugin, Result, ToolContext, Where, tool

@tool(effect="read")
async def look_{name}(ctx: ToolContext) -> Result:
    "Look {name}."
    return Result(for_model="{name} is there")

async def words(where: Where) -> str:
    return "Words of {name}."

plugin = Plugin(tools=[look_{name}], contexts=[words])
"""
SKILL = "---\nname: go-{name}\ndescription: Goes {name}\n---\nThe way {name}.\n"
AGENT = "---\ndescription: Looks {name}\nplugin: {name}\npermissions: {{'*': allow}}\n---\nLook.\n"


def files(name: str) -> dict[str, str]:
    """A plugin of all three parts: a package, as only that can bring skills."""
    module = f"magy_{name}"
    made = package(name, CODE.format(name=name))
    return {
        "pyproject.toml": made["pyproject.toml"],
        f"{module}/__init__.py": made[f"{module}.py"],
        f"{module}/skills/go-{name}/SKILL.md": SKILL.format(name=name),
    }


@pytest.fixture
def two(environment: Environment, magy: Magy) -> Magy:
    for name in PLUGINS:
        environment.install(files(name))
        assert magy("plugins", "enable", name, "--yes").returncode == 0
    return magy


def task_of(body: Mapping[str, Any]) -> str:
    """The prompt that the conversation began with."""
    users = [str(one["content"]) for one in body["messages"] if one["role"] == "user"]
    return users[0]


class Asked:
    """What the model was asked, and what its calls came to. Each agent tries what is of either
    plugin; the root, what `first` says."""

    def __init__(self, server: ChatServer, first: Sequence[Part]) -> None:
        self._server = server
        self._first = first
        server.answer(self._next)

    def _next(self, body: Any) -> Sequence[Part]:
        if any(one["role"] == "assistant" for one in body["messages"]):
            return [text("Done.")]
        return self._first if task_of(body).startswith("start") else list(_tries())

    def by(self, prompt: str) -> list[Any]:
        """The requests of whose task begins so."""
        bodies = [request.body for request in self._server.asked]
        return [body for body in bodies if task_of(body).startswith(prompt)]

    def check(self, prompt: str, own: str) -> None:
        """Whose task that is has this plugin and no other."""
        (other,) = set(PLUGINS) - {own}
        first, *_, last = self.by(prompt)
        system = json.dumps([one for one in first["messages"] if one["role"] != "user"])
        assert f"Words of {own}." in system and f"Words of {other}." not in system
        assert f"go-{own}" in system and f"go-{other}" not in system
        tools = {tool["function"]["name"] for tool in first["tools"]}
        assert f"look_{own}" in tools and f"look_{other}" not in tools and "read_file" in tools
        said = {m["tool_call_id"]: m["content"] for m in last["messages"] if m["role"] == "tool"}
        assert said[f"look-{own}"] == f"{own} is there"
        assert said[f"look-{other}"].startswith(f"There is no tool 'look_{other}'.")
        assert f"The way {own}." in said[f"skill-{own}"]
        assert said[f"skill-{other}"].startswith(f"There is no skill 'go-{other}'.")


def _tries() -> Iterator[Part]:
    for name in PLUGINS:
        yield call(f"look_{name}", {}, id=f"look-{name}")
        yield call("skill_invoke", {"name": f"go-{name}"}, id=f"skill-{name}")


@asynccontextmanager
async def working(magy: Magy, *first: Part) -> AsyncIterator[tuple[Person, Asked]]:
    state = Path(magy.env["MAGY_STATE_DIR"])
    async with ChatServer() as server:
        asked = Asked(server, first)
        home = {"HOME": str(state)}
        settings, command = served(server), (*magy.command, "lsp")
        async with person(magy.root, state, settings=settings, command=command, env=home) as one:
            yield one, asked


GRAPH = [{"id": name, "prompt": f"go {name}", "plugin": name} for name in PLUGINS]


@pytest.mark.req("C022", "C020")
async def test_each_agent_of_a_graph_has_the_plugin_of_its_task_and_no_other(two: Magy) -> None:
    async with working(two, call("run_graph", {"tasks": GRAPH}, id="c1")) as (one, asked):
        await bypass(one)
        await one.turn("start")
        for name in PLUGINS:
            asked.check(f"go {name}", name)
        root = {tool["function"]["name"] for tool in asked.by("start")[0]["tools"]}
        assert {"look_north", "look_south"} <= root  # who has no plugin of its own has all


async def test_a_person_who_is_asked_reads_which_plugin_each_task_has(two: Magy) -> None:
    async with working(two) as (one, _):
        await one.new()
        about = {"sessionId": SESSION, "requestKey": "g1", "tasks": GRAPH}
        await one.client.request("magy/graph/run", about)
        question = await one.question()
        shown = json.dumps(question["content"])
        assert "plugin: north" in shown and "plugin: south" in shown


@pytest.mark.req("C016")
async def test_an_agent_file_names_the_plugin_and_all_below_have_it(two: Magy) -> None:
    agents = Path(two.env["MAGY_CONFIG_DIR"]) / "agent"
    agents.mkdir()
    (agents / "looker.md").write_text(AGENT.format(name="north"))
    async with working(two) as (one, asked):
        await bypass(one)
        await one.request("session/set_config_option", configId="agent", value="looker")
        await one.turn("look")
        asked.check("look", "north")

        async def spawn(key: str, **more: Any) -> Any:
            about = {"parentSessionId": SESSION, "requestKey": key, "agent": "general", **more}
            return await one.client.request(
                "magy/child/spawn", {"prompt": [{"type": "text", "text": f"below {key}"}], **about}
            )

        await spawn("a")
        await one.client.request("magy/child/wait", {"sessionIds": [f"{SESSION}/a"]})
        asked.check("below a", "north")
        with pytest.raises(RpcError, match="the session above it has only 'north'"):
            await spawn("b", plugin="south")


async def test_a_plugin_that_is_not_in_use_is_said_before_anything_begins(two: Magy) -> None:
    tasks = [{"id": "east", "prompt": "go east", "plugin": "east"}]
    async with working(two, call("run_graph", {"tasks": tasks}, id="c1")) as (one, asked):
        await bypass(one)
        await one.turn("start")
        said = asked.by("start")[-1]["messages"][-1]["content"]
        assert (
            "is to have the plugin 'east' alone, which is not in use. In use are: north, south."
            in said
        )
        assert not asked.by("go east")
