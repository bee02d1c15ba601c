"""A graph of tasks whose server dies by SIGKILL goes on where it was: no task is lost, and none is
begun twice."""

from __future__ import annotations

import asyncio
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.harness import SESSION, Person, person
from tests.e2e.test_child_tools import bypass, script
from tests.e2e.test_graphs import graph, task, tasks_of
from tests.patience import PATIENCE
from tests.thorough import seldom

DYING = (sys.executable, "-m", "tests.crash.dying", "lsp")
TOP = Path(__file__).parents[2]
FIRST, LAST = 4, 22
"""Appends from where the call is known until all is done; a few more or less, as agents that work
at once share them or not."""
TOLD = script(
    "prompt: start",
    graph(task("a", "look left"), task("b", "look right"), task("c", "sum up", "a", "b")),
    "---\ntext: {{last}}\n",
    "prompt: look left\ntext: Left.\n",
    "prompt: look right\ntext: Right.\n",
    "prompt: sum up\ntext: Both.\n",
)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    project = tmp_path.resolve() / "project"
    project.mkdir()
    return project


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "state"


def dying(root: Path, state: Path, where: str) -> Any:
    env = {"MAGY_DIE": where, "PYTHONPATH": str(TOP)}
    return person(root, state, TOLD, env=env, command=DYING)


@pytest.mark.parametrize("point", seldom(range(FIRST, LAST, 2)))
@pytest.mark.req("C026")
async def test_killed_between_appends(root: Path, state: Path, point: int) -> None:
    """Right after an append, or right before the next one, by turns."""
    when = "after" if point % 4 else "before"
    async with dying(root, state, f"{when} {point}") as one:
        with suppress(ConnectionError, AssertionError, BrokenPipeError):
            await bypass(one)
            await one.ask("start")
        await asyncio.wait_for(one.client.process.wait(), PATIENCE)
        assert one.client.process.returncode == -9
    async with person(root, state, TOLD) as one:
        await one.request("session/subscribe")
        async with asyncio.timeout(PATIENCE):
            while not (said := await told(one)).endswith("Both."):
                await asyncio.sleep(0.02)
        assert said.count("✓") == 3
        assert not (await one.request("session/resume"))["summary"]["waiting"], "all was read"
        assert sorted(await tasks_of(one)) == ["a.1", "b.1", "c.1"]


async def told(one: Person) -> str:
    page = await one.client.request(
        "magy/session/subscribe", {"sessionId": SESSION, "from": {"seq": 0}}
    )
    updates = [event["update"] for event in page["events"]]
    said = [u["content"] for u in updates if u["sessionUpdate"] == "agent_message"]
    return "".join(part.get("text", "") for content in said for part in content)
