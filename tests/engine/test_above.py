"""What a person sets on a session holds for those below it at once, also before its next turn."""

from __future__ import annotations

from pathlib import Path

import pytest

from magy_server.core.agents.child import Spawn
from magy_server.core.events import Finished
from magy_server.core.values import Text

from .home import Home, home

SCRIPT = """
prompt: start
text: Started.

prompt: write
call: write_file {"path": "made.txt", "content": "x"}
---
text: done
"""


async def started(here: Home) -> None:
    await here.new()
    await here.prompt("s", "start")
    await here.rested("s")


async def child(here: Home) -> str:
    """Spawned while `s` is as it is; it does not begin yet."""
    wanted = Spawn(key="mine", agent="general", prompt=(Text(text="write"),), by="another process")
    return (await here.service.children.spawn("s", wanted))[0].session


async def written(here: Home, id: str) -> Finished:
    await here.rested(id)
    (finished,) = [e for e in await here.events(id) if isinstance(e, Finished)]
    return finished


async def test_an_agent_that_was_chosen_and_has_not_worked_yet_binds_those_below(
    tmp_path: Path,
) -> None:
    async with home(tmp_path, SCRIPT) as here:
        await started(here)
        await here.service.configure("s", "agent", "plan")
        finished = await written(here, await child(here))
        assert finished.status == "denied" and "agent plan (of s)" in finished.for_model
        assert not (here.root / "made.txt").exists()


@pytest.mark.parametrize(
    ("above", "own", "proposed", "stands"),
    [
        ("propose", "", True, True),
        ("propose", "auto", True, True),
        ("auto", "propose", True, True),
        ("review", "auto", False, True),
        ("auto", "review", False, True),
        ("auto", "", False, False),
        ("auto", "auto", False, False),
        ("", "auto", False, True),
    ],
)
async def test_the_strictest_review_of_the_chain_counts(
    tmp_path: Path, above: str, own: str, proposed: bool, stands: bool
) -> None:
    async with home(tmp_path, SCRIPT) as here:
        await started(here)
        await here.child("s/mine", "write", wake=False)
        for id, value in (("s", above), ("s/mine", own)):
            if value:
                await here.service.configure(id, "review", value)
        here.sessions.wake(await here.live("s/mine"))
        finished = await written(here, "s/mine")
        assert finished.status == "completed"
        assert (here.root / "made.txt").exists() is not proposed
        standing = await here.service.reviews.list(str(here.root))
        assert bool(standing) is stands
