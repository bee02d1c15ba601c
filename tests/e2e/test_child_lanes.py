"""Children of a real server that work side by side, wait in line, and belong to one process. What
happens is seen in files that their commands write."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.patience import PATIENCE

from .harness import SESSION, Person, person

WORK = """
prompt: work as NAME
call: bash {"command": "echo begin NAME $PPID >> log; until [ -e go-NAME ]; do sleep 0.02; done; echo end NAME >> log", "timeout": 600}
---
text: Worked.
"""  # noqa: E501
SCRIPT = "".join(WORK.replace("NAME", name) for name in "abcd")


async def start(one: Person) -> None:
    await one.new()
    await one.request("session/set_config_option", configId="bypass", value="on")


async def child(one: Person, method: str, **params: Any) -> Any:
    return await one.client.request(f"magy/child/{method}", params)


async def spawn(one: Person, name: str, says: str = "") -> str:
    prompt = [{"type": "text", "text": f"work as {says or name}"}]
    made = await child(one, "spawn", parentSessionId=SESSION, requestKey=name, prompt=prompt)
    id: str = made["child"]["sessionId"]
    return id


async def send(one: Person, id: str, key: str, name: str) -> str:
    prompt = [{"type": "text", "text": f"work as {name}"}]
    sent = await child(one, "send", sessionId=id, requestKey=key, prompt=prompt, delivery="queue")
    outcome: str = sent["outcome"]
    return outcome


async def states(one: Person) -> str:
    found = (await child(one, "list", parentSessionId=SESSION))["children"]
    return " ".join(about["state"] for about in found)


def log(root: Path) -> list[list[str]]:
    file = root / "log"
    return [line.split() for line in file.read_text().splitlines()] if file.exists() else []


def begun(root: Path) -> str:
    return "".join(name for verb, name, *_ in log(root) if verb == "begin")


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not condition():
            await asyncio.sleep(0.02)


async def wait(one: Person, *ids: str) -> None:
    about = {"sessionIds": list(ids), "until": "all", "timeoutMs": int(PATIENCE * 1000)}
    assert not (await child(one, "wait", **about))["timedOut"]


@pytest.mark.req("C047", "C048")
async def test_children_wait_for_slots_whose_number_changes_meanwhile(
    root: Path, state: Path
) -> None:
    async with person(root, state, SCRIPT) as one:
        await start(one)
        limits = await child(one, "limits", maxConcurrent=1)
        assert (limits["maxConcurrent"], limits["clamped"]) == (1, [])
        ids = [await spawn(one, name) for name in "abcd"]
        await until(lambda: begun(root) == "a")
        assert await states(one) == "running queued queued queued"
        limits = await child(one, "limits")
        assert (limits["working"], limits["queued"]) == (4, 3)
        await child(one, "limits", maxConcurrent=2)
        await until(lambda: begun(root) == "ab")
        assert await states(one) == "running running queued queued"
        (root / "go-b").touch()
        await until(lambda: begun(root) == "abc")
        cancelled = await one.client.request("magy/session/cancel", {"sessionId": ids[3]})
        assert cancelled and await states(one) == "running completed running cancelled"
        for name in "acd":
            (root / f"go-{name}").touch()
        await wait(one, *ids[:3])
        assert begun(root) == "abc"  # the last was cancelled before it began


@pytest.mark.req("C044")
async def test_one_agent_does_one_thing_after_the_other(root: Path, state: Path) -> None:
    """Others work beside it."""
    async with person(root, state, SCRIPT) as one:
        await start(one)
        first = await spawn(one, "first", "a")
        await until(lambda: begun(root) == "a")
        assert await send(one, first, "m2", "b") == "queued"
        second = await spawn(one, "second", "c")
        await until(lambda: begun(root) == "ac")
        (root / "go-a").touch()
        await until(lambda: "b" in begun(root))
        (root / "go-b").touch()
        (root / "go-c").touch()
        await wait(one, first, second)
        about = [" ".join(line[:2]) for line in log(root) if line[1] != "c"]
        assert about == ["begin a", "end a", "begin b", "end b"]


@pytest.mark.req("G020")
async def test_a_tree_runs_in_one_process_and_moves_when_that_is_killed(
    root: Path, state: Path
) -> None:
    """A child that is spawned from a second editor runs where its tree runs; after SIGKILL the
    other process goes on with all of it."""
    async with person(root, state, SCRIPT) as one, person(root, state, SCRIPT) as two:
        await start(one)
        first = await spawn(one, "first", "a")
        await until(lambda: begun(root) == "a")
        second = await spawn(two, "second", "b")
        await until(lambda: begun(root) == "ab")
        mine, other = str(one.client.process.pid), str(two.client.process.pid)
        assert [pid for _, _, pid in log(root)] == [mine, mine]
        assert await send(two, first, "m2", "c") == "queued"
        one.client.process.kill()
        await until(lambda: "c" in begun(root))
        (root / "go-c").touch()
        await wait(two, first, second)
        assert log(root)[2] == ["begin", "c", other]
        assert begun(root) == "abc"  # what was cut off is not run twice by itself
