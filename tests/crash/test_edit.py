"""`magy/edit/apply` whose process is killed at any point: what was done by then is under review,
nothing is lost, and the same request is not carried out twice. And an edit that was only to be
proposed, and whose process was killed before it was."""

from __future__ import annotations

import asyncio
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.harness import Person, person
from tests.patience import PATIENCE
from tests.thorough import seldom

POINTS = 10
"""Two for each of two appends and three files; `test_an_undisturbed_edit` holds it to that."""
INTENT = 2
"""The point from which on the intent is in the log."""
DYING = (sys.executable, "-m", "tests.crash.dying_edit", "lsp")
TOP = Path(__file__).parents[2]
FILES = {"a.txt": "one\ntwo\n", "old.txt": "1\n2\n3\n"}
PATCH = (
    "*** Begin Patch\n*** Update File: old.txt\n*** Move to: new.txt\n@@\n 1\n-2\n+TWO\n"
    "*** Update File: a.txt\n@@\n one\n+one more\n two\n*** End Patch\n"
)
EDITED = {"a.txt": "one\none more\ntwo\n", "new.txt": "1\nTWO\n3\n"}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    project = tmp_path.resolve() / "project"
    project.mkdir()
    for name, text in FILES.items():
        (project / name).write_text(text)
    return project


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "state"


def files(root: Path) -> dict[str, str]:
    return {file.name: file.read_text() for file in sorted(root.iterdir())}


async def apply(one: Person) -> Any:
    params = {"text": PATCH, "requestKey": "k"}
    return await one.client.request("magy/edit/apply", params)


async def listed(one: Person) -> list[Path]:
    return [Path(f["path"]) for f in (await one.client.request("magy/review/list", {}))["files"]]


def dying(root: Path, state: Path, where: str, script: str | None = None, **more: Any) -> Any:
    env = {"MAGY_DIE": where, "PYTHONPATH": str(TOP)}
    return person(root, state, script, env=env, command=DYING, **more)


async def died(one: Person) -> None:
    await asyncio.wait_for(one.client.process.wait(), PATIENCE)
    assert one.client.process.returncode == -9


async def test_an_undisturbed_edit(root: Path, state: Path) -> None:
    async with dying(root, state, str(POINTS + 1)) as one:
        assert (await apply(one))["applied"] is True
        assert files(root) == EDITED


@pytest.mark.parametrize("point", seldom(range(1, POINTS + 1)))
async def test_killed_in_the_middle(root: Path, state: Path, point: int) -> None:
    async with dying(root, state, str(point)) as one:
        with suppress(ConnectionError, AssertionError, BrokenPipeError):
            await apply(one)
        await died(one)
    left = files(root)
    assert "old.txt" in left or "new.txt" in left, "what is moved is never nowhere"
    async with person(root, state) as one:
        found = await listed(one)
        assert {path.name for path in found} == {
            name for name, text in left.items() if FILES.get(name) != text
        }
        again = await apply(one)
        if left == FILES:
            assert again["applied"] is True and files(root) == EDITED
            return
        assert files(root) == left, "it is not carried out twice"
        assert again["applied"] is (left == EDITED)
        assert again["applied"] or "Magy was stopped" in again["message"]
        for number, path in enumerate(found):
            about = {"uri": path.as_uri(), "decision": "reject", "all": True}
            done = await one.client.request(
                "magy/review/resolve", {**about, "requestKey": f"r{number}"}
            )
            assert done["message"] == "", done
        assert files(root) == FILES


async def test_who_has_looked_before_finds_what_another_process_left(
    root: Path, state: Path
) -> None:
    async with person(root, state) as witness:
        assert await listed(witness) == []
        async with dying(root, state, str(POINTS - 1)) as one:
            with suppress(ConnectionError, AssertionError, BrokenPipeError):
                await apply(one)
            await died(one)
        assert (
            {path.name for path in await listed(witness)}
            == {name for name, text in files(root).items() if FILES.get(name) != text}
            != set()
        )


PROPOSED = """\
call: edit_file {"path": "a.txt", "old_text": "two", "new_text": "TWO"}
---
text: {{last}}
"""


@pytest.mark.parametrize("mode", ["review", "auto"])
async def test_what_was_not_asked_for_is_only_proposed(root: Path, state: Path, mode: str) -> None:
    """The process dies between decision and run, and the next one is configured otherwise."""
    proposing, applying = ({"edits": {"review": review}} for review in ("propose", mode))
    async with dying(root, state, "judged", PROPOSED, settings=proposing) as one:
        await one.new()
        with suppress(ConnectionError, AssertionError, BrokenPipeError):
            await one.ask("Change it")
        await died(one)
    async with person(root, state, PROPOSED, settings=applying) as one:
        await one.request("session/subscribe")
        await one.end()
        assert files(root) == FILES, "nobody was asked"
        assert "Proposed a.txt" in one.said()
        found = (await one.client.request("magy/review/list", {}))["files"]
        assert [(Path(file["path"]).name, file["mode"]) for file in found] == [
            ("a.txt", "proposed")
        ]
