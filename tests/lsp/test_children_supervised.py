"""What the supervisor promises, with real commands in real processes: it knows how agents are,
starts those again whose process was killed, and ends those that are shut down."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.lsp.family import Parent, parent
from tests.patience import PATIENCE

WORK = 'while [ ! -e go ]; do sleep 0.02; done; echo went", "timeout": 600}'
SCRIPT = f"""
prompt: first
call: bash {{"command": "echo $$ >> first; {WORK}
---
text: The first is done: {{{{last}}}}

prompt: second
call: bash {{"command": "echo $$ >> second; {WORK}
---
text: The second is done: {{{{last}}}}
"""


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not holds():
            await asyncio.sleep(0.02)


def pids(root: Path, name: str) -> list[int]:
    """The processes that this command was, one for each time that it ran."""
    file = root / name
    return [int(line) for line in file.read_text().split()] if file.exists() else []


def lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def health(one: Parent) -> dict[str, str]:
    found = (await one.client.request("magy/agent/health", {}))["agents"]
    return {agent["sessionId"]: agent["state"] for agent in found}


async def two_at_work(one: Parent, root: Path) -> tuple[str, str]:
    await one.bypass()
    first, second = await one.spawn("first", "first"), await one.spawn("second", "second")
    await until(lambda: bool(pids(root, "first") and pids(root, "second")))
    there = await health(one)
    assert (there[first], there[second]) == ("running", "running")
    return first, second


@pytest.mark.req("A182")
async def test_a_shutdown_ends_a_running_command_and_leaves_the_other_agent_alone(
    root: Path, state: Path
) -> None:
    async with parent(root, state, script=SCRIPT) as one:
        first, second = await two_at_work(one, root)
        ((stopped,), (other,)) = pids(root, "first"), pids(root, "second")
        await one.child("send", sessionId=first, requestKey="s1", signal="shutdown")
        await one.state(first, "closed")
        await until(lambda: not lives(stopped))
        assert lives(other)
        there = await health(one)
        assert there[second] == "running"
        assert there.get(first, "closed") == "closed"
        await one.go()
        (result,) = (await one.wait(second))["results"]
        assert "went" in result["text"]


@pytest.mark.req("A182")
async def test_agents_of_a_killed_server_go_on_in_the_next(root: Path, state: Path) -> None:
    """Nothing runs on without an agent, and no command runs twice by itself."""
    async with parent(root, state, script=SCRIPT) as one:
        children = await two_at_work(one, root)
        orphans = [*pids(root, "first"), *pids(root, "second")]
        one.client.process.kill()
    async with parent(root, state, script=SCRIPT, new=False) as one:
        results = (await one.wait(*children, until="all"))["results"]
        assert [r["child"]["state"] for r in results] == ["completed", "completed"]
        assert [r["text"][:17] for r in results] == ["The first is done", "The second is don"]
        await until(lambda: not any(map(lives, orphans)))
        assert [*pids(root, "first"), *pids(root, "second")] == orphans
        there = await health(one)
        assert [there[child] for child in children] == ["completed", "completed"]
