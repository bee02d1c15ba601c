"""An undo whose process is killed at any point: asked for again it comes to the same end, and so
does the next turn, if nobody asks."""

from __future__ import annotations

import asyncio
import json
import shutil
import sqlite3
import sys
from collections.abc import Mapping
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.harness import SESSION, Person, person
from tests.patience import PATIENCE
from tests.thorough import seldom

POINTS = 10
"""Two for each of two appends and three files; `test_an_undisturbed_undo` holds it to that."""
DYING = (sys.executable, "-m", "tests.crash.dying_restore", "lsp")
TOP = Path(__file__).parents[2]
SCRIPT = """
prompt: change
call: write_file {"path": "a.py", "content": "1\\n2\\nthree\\n"}
---
call: write_file {"path": "b.py", "content": "new\\n"}
---
call: edit_file {"path": "c.py", "old_text": "one", "new_text": "ONE"}
---
text: Changed.
prompt: further
text: Went on.
"""
FILES = {"a.py": "1\n2\n3\n", "c.py": "one\n"}
EDITED = {"a.py": "one\n2\nthree\n", "b.py": "new\n", "c.py": "ONE\n"}
"""With a line that the person changed after the turn."""
UNDONE = {"a.py": "one\n2\n3\n", "c.py": "one\n"}


def files(root: Path) -> dict[str, str]:
    return {file.name: file.read_text() for file in sorted(root.iterdir())}


def write(root: Path, texts: Mapping[str, str]) -> None:
    for file in root.iterdir():
        file.unlink()
    for name, text in texts.items():
        (root / name).write_text(text)


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A project and the state of a session that has changed it."""
    home = tmp_path_factory.mktemp("undo").resolve()
    root, state = home / "project", home / "state"
    root.mkdir()

    async def run() -> None:
        async with person(root, state, SCRIPT) as one:
            await one.new()
            await one.request("session/set_config_option", configId="bypass", value="on")
            await one.turn("change", "turn")

    write(root, FILES)
    asyncio.run(run())
    return root, state


@pytest.fixture
def place(session: tuple[Path, Path], tmp_path: Path) -> tuple[Path, Path]:
    root, state = session
    write(root, EDITED)
    shutil.copytree(state, tmp_path / "state", ignore=shutil.ignore_patterns("bus", "*.sock"))
    return root, tmp_path / "state"


async def undo(one: Person) -> Any:
    return await one.request("checkpoint/restore", turnId="turn", requestKey="undo")


async def die(root: Path, state: Path, point: int) -> None:
    env = {"MAGY_DIE": str(point), "PYTHONPATH": str(TOP)}
    async with person(root, state, SCRIPT, env=env, command=DYING) as one:
        with suppress(ConnectionError, AssertionError, BrokenPipeError):
            await undo(one)
        await asyncio.wait_for(one.client.process.wait(), PATIENCE)
        assert one.client.process.returncode == -9


def log_of(state: Path, kind: str) -> list[dict[str, Any]]:
    with closing(sqlite3.connect(state / "magy.db")) as db:
        rows = db.execute("select body from entries where stream = ? order by seq",
                          (f"session/{SESSION}",)).fetchall()  # fmt: skip
    events = [json.loads(body) for (body,) in rows]
    return [event for event in events if event["type"] == kind]


async def test_an_undisturbed_undo(place: tuple[Path, Path]) -> None:
    root, state = place
    env = {"MAGY_DIE": str(POINTS + 1), "PYTHONPATH": str(TOP)}
    async with person(root, state, SCRIPT, env=env, command=DYING) as one:
        assert (await undo(one))["prompt"] == "change"
        assert files(root) == UNDONE


@pytest.mark.req("G014", "G020")
@pytest.mark.parametrize("point", seldom(range(1, POINTS + 1)))
async def test_killed_and_asked_again(place: tuple[Path, Path], point: int) -> None:
    root, state = place
    await die(root, state, point)
    async with person(root, state, SCRIPT) as one:
        done = await undo(one)
        assert files(root) == UNDONE
        assert done["prompt"] == "change" and done["conversation"]
        assert [file["action"] for file in done["files"]] == ["change", "remove", "change"]
        assert not any(file["conflict"] for file in done["files"])
        assert len(log_of(state, "restored")) == 1 == len(log_of(state, "restoring"))
        await one.request("checkpoint/restore", undoes="undo", requestKey="redo")
        assert files(root) == EDITED


@pytest.mark.parametrize("point", seldom(range(2, POINTS + 1)))
async def test_killed_and_not_asked_again(place: tuple[Path, Path], point: int) -> None:
    """What was begun is finished before the next turn."""
    root, state = place
    await die(root, state, point)
    if not log_of(state, "restoring"):
        pytest.fail("the intent was not in the log")
    async with person(root, state, SCRIPT) as one:
        await one.request("session/subscribe")
        await one.turn("further", "p2")
        assert files(root) == UNDONE
        assert [event["id"] for event in log_of(state, "restored")] == ["undo"]
