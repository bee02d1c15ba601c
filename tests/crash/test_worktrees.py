"""Children in worktrees whose server dies by SIGKILL: each lands once, and no worktree is left."""

from __future__ import annotations

import asyncio
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from magy_server.tools.worktrees import records
from tests.e2e.harness import Person, person
from tests.e2e.test_child_tools import bypass, call, script
from tests.e2e.test_graphs import graph, task
from tests.patience import PATIENCE
from tests.thorough import seldom
from tests.tools.repositories import git

from .test_graphs import told

DYING = (sys.executable, "-m", "tests.crash.dying", "lsp")
TOP = Path(__file__).parents[2]
FIRST, LAST = 4, 28
"""Appends from where the call is known until all is done."""
NAMES = ("a", "b")
WORK = script(
    "prompt: start",
    graph(*(task(name, f"do {name}", worktree=True) for name in NAMES)),
    "---\ntext: {{last}}\n",
    *(
        f"prompt: do {name}\n"
        + call("write_file", path=f"{name}.txt", content=f"{name}\n")
        + f"---\ntext: Did {name}.\n"
        for name in NAMES
    ),
)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    project = tmp_path.resolve() / "project"
    project.mkdir()
    git(project, "init", "-q", "-b", "main")
    git(project, "commit", "-q", "--allow-empty", "-m", "First")
    return project


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "state"


def dying(root: Path, state: Path, where: str) -> Any:
    env = {"MAGY_DIE": where, "PYTHONPATH": str(TOP)}
    return person(root, state, WORK, env=env, command=DYING)


@pytest.mark.parametrize("point", seldom(range(FIRST, LAST, 2)))
@pytest.mark.req("G045")
async def test_killed_between_appends(root: Path, state: Path, point: int) -> None:
    """Right after an append, or right before the next one, by turns."""
    when = "after" if point % 4 else "before"
    async with dying(root, state, f"{when} {point}") as one:
        with suppress(ConnectionError, AssertionError, BrokenPipeError):
            await bypass(one)
            await one.ask("start")
        await asyncio.wait_for(one.client.process.wait(), PATIENCE)
        assert one.client.process.returncode == -9
    async with person(root, state, WORK) as one:
        await whole(one)
    landed(root)


async def whole(one: Person) -> None:
    """Until the graph is done."""
    await one.request("session/subscribe")
    async with asyncio.timeout(PATIENCE):
        while (await told(one)).count("✓") < len(NAMES):
            await asyncio.sleep(0.05)


def landed(root: Path) -> None:
    for name in NAMES:
        assert (root / f"{name}.txt").read_text() == f"{name}\n"
    assert git(root, "rev-list", "--merges", "--count", "main") == f"{len(NAMES)}\n"
    assert git(root, "branch", "--format=%(refname:short)") == "main\n"
    assert git(root, "worktree", "list").count("\n") == 1
    assert not records.all_of(str(root / ".git")) and not (root / ".worktrees").exists()
    assert not git(root, "status", "--porcelain", "--untracked-files=all")
