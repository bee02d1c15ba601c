"""A deliberation whose server dies by SIGKILL comes to the ruling that it would have come to."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.crash.test_graphs import DYING, TOP, told
from tests.e2e.harness import person
from tests.e2e.test_child_tools import bypass, script
from tests.e2e.test_magi import ALL, asked, panel, put
from tests.patience import PATIENCE
from tests.thorough import rotating

FIRST, LAST = 4, 44
"""Appends from where the call is known until the ruling is in the log; a few more or less, as votes
that come together share them or not."""
TOLD = script(asked(put()), *ALL)
NODES = ("balthasar", "casper", "melchior")


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


@pytest.mark.parametrize("point", rotating(range(FIRST, LAST)))
@pytest.mark.req("D014", "D024")
async def test_killed_between_appends(root: Path, state: Path, point: int) -> None:
    """Right after an append, or right before the next one, by turns."""
    when = "after" if point % 2 else "before"
    async with dying(root, state, f"{when} {point}") as one:
        with suppress(ConnectionError, AssertionError, BrokenPipeError):
            await bypass(one)
            await one.ask("decide")
        await asyncio.wait_for(one.client.process.wait(), PATIENCE)
        assert one.client.process.returncode == -9
    async with person(root, state, TOLD) as one:
        await one.request("session/subscribe")
        async with asyncio.timeout(PATIENCE):
            while "FINAL RULING" not in (said := await told(one)):
                await asyncio.sleep(0.02)
        assert said.startswith("# MAGI: APPROVED\n\nAPPROVED (decisive), confidence Medium 50 %")
        assert "Incident" not in said
        assert sorted(await panel(one)) == sorted(
            f"{node}{second}.1" for node in NODES for second in ("", "-2")
        )
        assert not (await one.request("session/resume"))["summary"]["waiting"], "all was read"
