"""A tree of agents whose server dies by SIGKILL goes on where it was. What became of it is judged
by what the model was asked and by the marks that commands left: see `tests/chaos`."""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from tests.chaos.cast import ALL, TWO, Play, Told
from tests.chaos.model import Model
from tests.chaos.person import Person
from tests.chaos.stage import Stage
from tests.chaos.trial import SERVER, Kill, lives
from tests.chaos.verdict import verdict
from tests.loopback import Part, hang, text
from tests.lsp.client import Client
from tests.patience import PATIENCE
from tests.thorough import seldom

APPENDS = 34
"""Of `TWO` undisturbed, or a few less: two agents at once now share an append and now do not."""

pytestmark = pytest.mark.needs("flock")


def staged(directory: Path, play: Play) -> Stage:
    stage = Stage(directory, f"crash-{os.getpid()}", play)
    stage.build()
    return stage


@pytest.mark.parametrize("between", seldom(range(0, APPENDS, 2)))
async def test_killed_between_appends_and_again_while_it_recovers(
    tmp_path: Path, between: int
) -> None:
    """Right after an append, or right before the next one, by turns."""
    stage = staged(tmp_path / "stage", TWO)
    again = 1 + between // 2 % 7
    if between % 4:
        kills = [Kill("append", between, when="after"), Kill("append", again, when="before")]
    else:
        kills = [Kill("append", between + 1, when="before"), Kill("append", again, when="after")]
    async with Model(stage.tag, stage.play) as model:
        outcome = await lives(stage, model, kills)
    assert outcome.problems == []
    assert outcome.kills or between > APPENDS - 4


async def test_an_undisturbed_tree(tmp_path: Path) -> None:
    stage = staged(tmp_path / "stage", TWO)
    async with Model(stage.tag, stage.play) as model:
        outcome = await lives(stage, model, [Kill("append", APPENDS + 1, when="before")])
    assert (outcome.problems, outcome.lives, outcome.kills) == ([], 1, {})


class Stuck(Model):
    """Says half of delta's last word, and no more, to the first server that asks."""

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage.tag, stage.play)
        self.stuck = False

    def next(self, told: Told) -> Sequence[Part]:
        if self.life == 1 and told.role == "delta" and self.play.is_last(told, self.tag):
            self.stuck = True
            return [text("I am "), hang()]
        return super().next(told)


@asynccontextmanager
async def life(stage: Stage, model: Model) -> AsyncIterator[Client]:
    model.life += 1
    with suppress(ConnectionError):
        async with Client.spawn(SERVER, cwd=stage.root, env=stage.environment()) as client:
            yield client


async def until(holds: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not await holds():
            await asyncio.sleep(0.05)


async def children(person: Person, stage: Stage) -> dict[str, Any]:
    """All below the root, by name."""
    found = await person.ask("child/list", parentSessionId=stage.session)
    return {child["name"]: child for child in found["children"]}


async def in_the_middle(person: Person, stage: Stage, model: Stuck) -> bool:
    states = {name: child["state"] for name, child in (await children(person, stage)).items()}
    working = any(line[:2] == ["start", "gamma"] for line in stage.log())
    waiting = model.calls.get("root") == model.calls.get("alpha") == ["wait_agent"]
    return model.stuck and working and waiting and states["beta"] == "waiting"


@pytest.mark.req("G020")
async def test_a_tree_in_the_middle_of_everything(tmp_path: Path) -> None:
    """beta waits for a permission, gamma runs a command, delta streams; the root, alpha and the
    person each wait for somebody."""
    stage = staged(tmp_path / "stage", ALL)
    stage.hold("gamma").touch()
    async with Stuck(stage) as model:
        async with life(stage, model) as client:
            person = Person(client, stage, model, None)
            await person.start()
            await until(lambda: in_the_middle(person, stage, model))
            beta = (await children(person, stage))["beta"]["sessionId"]
            waiting = asyncio.create_task(person.ask("child/wait", sessionIds=[beta]))
            await person.ask("child/list")
            client.process.kill()
            with pytest.raises(ConnectionError):
                await waiting
        stage.hold("gamma").unlink()
        async with life(stage, model) as client:
            person = Person(client, stage, model, random.Random(1))
            await person.start()
            open_ = await person.ask("interaction/list", sessionId=stage.session)
            (question,) = open_["interactions"]
            assert question["parentSessionId"] == stage.session
            path = [(step["sessionId"], step["name"]) for step in question["path"]]
            assert path == [(stage.session, "TASK root"), (beta, "beta")]
            waiting = asyncio.create_task(person.ask("child/wait", sessionIds=[beta]))
            await person.go_on()
            assert (await waiting)["results"][0]["child"]["state"] == "completed"
    assert model.wrong == []
    assert verdict(stage, model) == []
    begun = [line for line in stage.log() if line[:2] == ["start", "gamma"]]
    assert len(begun) == 2, "nobody knows what the first came to: the model asked again"
