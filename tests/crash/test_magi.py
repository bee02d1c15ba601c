"""A deliberation whose server dies by SIGKILL comes to the ruling that it would have come to."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.crash.test_graphs import DYING, TOP, told
from tests.e2e.harness import SESSION, person
from tests.e2e.test_child_tools import bypass, script
from tests.e2e.test_magi import ALL, asked, panel, put
from tests.patience import PATIENCE
from tests.thorough import seldom

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


@pytest.mark.parametrize("point", seldom(range(FIRST, LAST)))
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


def review(of: str, new: str) -> str:
    return put(complexity="simple", review_of=f"{SESSION}/{of}", review_reason="It failed.",
               new_evidence=[new])  # fmt: skip


OFTEN = script(
    *(
        f"prompt: {prompt}\n{call}---\ntext: {{{{last}}}}\n"
        for prompt, call in (
            ("decide", put(complexity="simple")),
            ("first review", review("5.0", "It failed once.")),
            ("second review", review("5.0", "It failed twice.")),
            ("last review", review("LAST", "It failed again.")),
            ("one more", review("LAST", "It failed still.")),
        )
    ),
    *ALL,
)
REVIEWS = 24
"""Appends from the prompt until the ruling is in the log, about."""


@pytest.mark.parametrize("point", seldom(range(1, REVIEWS)))
@pytest.mark.req("D078")
async def test_killed_in_the_last_review_there_is_no_fourth(
    root: Path, state: Path, point: int
) -> None:
    async with person(root, state, OFTEN) as one:
        await bypass(one)
        for prompt in ("decide", "first review", "second review"):
            await one.turn(prompt, prompt[:5])
        newest = (await one.request("magi/list"))["rulings"][0]["id"]
    script_ = OFTEN.replace(f"{SESSION}/LAST", newest)
    when = "after" if point % 2 else "before"
    env = {"MAGY_DIE": f"{when} {point}", "PYTHONPATH": str(TOP)}
    async with person(root, state, script_, env=env, command=DYING) as one:
        with suppress(ConnectionError, AssertionError, BrokenPipeError):
            await one.request("session/subscribe")
            await one.turn("last review", "last")
        if one.client.process.returncode is None:
            one.client.process.kill()
        await asyncio.wait_for(one.client.process.wait(), PATIENCE)
    async with person(root, state, script_) as one:
        await one.request("session/subscribe")
        await one.ask("last review", "last")  # the same id: it is only begun if it was not
        async with asyncio.timeout(PATIENCE):
            while len(rulings := (await one.request("magi/list"))["rulings"]) < 4:
                await asyncio.sleep(0.02)
        assert all(each["same"] for each in rulings)
        await one.ask("one more", "more")
        async with asyncio.timeout(PATIENCE):
            while "This decision was reviewed 3 times in 30 days" not in await told(one):
                await asyncio.sleep(0.02)
        assert len((await one.request("magi/list"))["rulings"]) == 4
