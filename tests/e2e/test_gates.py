"""What writes is asked about in all that Magy runs, except where a person has said that it may."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from tests.e2e.harness import person
from tests.patience import PATIENCE

ASK = {"edit": "ask", "write": "ask", "bash": "ask"}
CHANGES = (
    ("write_file", {"path": "made.txt", "content": "made\n"}),
    ("edit_file", {"path": "app.py", "old_text": "hello", "new_text": "bye"}),
    ("bash", {"command": "touch touched"}),
)


def calls(*some: tuple[str, dict[str, str]]) -> str:
    return "---\n".join(f"call: {name} {json.dumps(arguments)}\n" for name, arguments in some)


def delegated(prompt: str) -> str:
    spawned = {"agent": "general", "prompt": prompt}
    return (
        f"call: spawn_agent {json.dumps(spawned)}\n---\ncall: wait_agent {{}}\n---\ntext: Done.\n"
    )


WORK = f"{calls(*CHANGES)}---\ntext: Done.\n"
DEEP = "\n".join([
    f"prompt: alone\n{WORK}",
    f"prompt: hand over\n{delegated('labour')}",
    f"prompt: labour\n{WORK}",
])  # fmt: skip
"""A session that works itself, and one that has a child work."""


@pytest.mark.req("C035", "C040")
@pytest.mark.parametrize("flow", ["alone", "hand over"])
async def test_what_writes_is_asked_about_whoever_does_it(
    root: Path, state: Path, flow: str
) -> None:
    (root / "app.py").write_text("print('hello')\n")
    settings = {"permission": ASK}
    async with person(root, state, DEEP, settings=settings) as one:
        await one.new()
        await one.ask(flow)
        refused: list[str] = []
        async with asyncio.timeout(PATIENCE):
            while len(refused) < len(CHANGES):
                for question in (await one.request("interaction/list"))["interactions"]:
                    spawns = question["title"].startswith("Spawn")
                    answer = {
                        "sessionId": question["sessionId"],
                        "interactionId": question["interactionId"],
                        "outcome": "allow" if spawns else "refuse",
                    }
                    await one.client.request("magy/interaction/respond", answer)
                    refused += [] if spawns else [question["title"]]
                await asyncio.sleep(0.02)
        assert refused == ["Write made.txt", "Edit app.py", "Run touch touched"]
        await one.end()
    assert (root / "app.py").read_text() == "print('hello')\n"
    assert not {"made.txt", "touched"} & {path.name for path in root.iterdir()}


@pytest.mark.req("C042")
async def test_where_a_person_lets_it_write_nothing_is_asked(root: Path, state: Path) -> None:
    rules = {"write": {"build/**": "allow", "*": "ask"}, "edit": {"build/**": "allow", "*": "ask"}}
    inside = ("write_file", {"path": "build/out.txt", "content": "made\n"})
    beside = ("write_file", {"path": "build/../out.txt", "content": "made\n"})
    told = f"{calls(inside, beside)}---\ntext: Done.\n"
    async with person(root, state, told, settings={"permission": rules}) as one:
        await one.new()
        await one.ask("Go")
        question = await one.question()
        assert "out.txt" in question["title"] and "build" not in question["title"]
        await one.respond(question["interactionId"], False)
        await one.end()
        assert len([u for u in one.updates("_magy_interaction") if "open" in u]) == 1
    assert (root / "build/out.txt").read_text() == "made\n" and not (root / "out.txt").exists()
