"""One trial: the server is started, killed and started again until the tree's work is done."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
import sys
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.lsp.client import Client
from tests.patience import PATIENCE

from .cast import ALL, GRAPH, Play
from .model import Model
from .person import Person
from .stage import Stage
from .verdict import verdict

SERVER = (sys.executable, "-m", "magy_server", "lsp")
DYING = (sys.executable, "-m", "tests.crash.dying", "lsp")
"""Dies by itself right before or after its n-th append to the log."""
LENGTH = 4.0
"""Seconds, about, that a run takes which nobody disturbs."""
LENGTHS = {"request": 30, "update": 45, "append": 120}
"""How many there are at least in such a run."""
LATER = 0.3
"""The share of a run after which a life ends that is not the first: most of the work is done."""
TWO = 0.3
"""The share of trials with a second server."""
GRAPHS = 0.3
"""The share of trials with a graph of tasks in worktrees."""
MOST_KILLS = 12
"""In one trial; its last life is not cut short."""


@dataclass(frozen=True)
class Kill:
    """When a life ends. `time`: after `delay` seconds. `request`, `update`: that long after the
    n-th request to the model has come, or the n-th entry of the log has reached the editor.
    `append`: by itself, just there."""

    kind: str
    number: int = 0
    delay: float = 0.0
    when: str = "after"

    @classmethod
    def drawn(cls, chance: random.Random, share: float) -> Kill:
        """Within that share of what an undisturbed run has."""
        kind = chance.choice(("time", "request", "update", "append"))
        soon = chance.choice((0.0, chance.uniform(0, 0.02)))
        if kind == "time":
            return cls(kind, delay=chance.uniform(0, share * LENGTH))
        number = chance.randint(1, int(share * LENGTHS[kind]))
        return cls(kind, number, soon, chance.choice(("before", "after")))


@dataclass
class Outcome:
    """What came of a trial. `kills` has the number of each kind, `problems` are sentences."""

    seed: int
    directory: Path
    kills: dict[str, int] = field(default_factory=dict)
    lives: int = 0
    seconds: float = 0.0
    problems: list[str] = field(default_factory=list)


async def trial(seed: int, directory: Path) -> Outcome:
    """`directory` is made, and stays."""
    chance = random.Random(seed)
    shares = [1.0, *[LATER] * chance.randint(0, MOST_KILLS - 1)]
    kills = [Kill.drawn(chance, share) for share in shares]
    two, graph = chance.random() < TWO, chance.random() < GRAPHS
    return await killed(kills, seed, directory, two=two, play=GRAPH if graph else ALL)


async def killed(
    kills: Sequence[Kill], seed: int, directory: Path, *, two: bool, play: Play = ALL
) -> Outcome:
    """A trial with these kills. `two`: a second server, which nobody kills, is there on the same
    store and root all the time; it may go on where the other died."""
    stage = Stage(directory, f"{seed}x{os.getpid()}", play)
    stage.build()
    async with Model(stage.tag, stage.play) as model, contextlib.AsyncExitStack() as beside:
        model.alone = not two
        if two:
            spawned = Client.spawn(SERVER, cwd=stage.root, env=stage.environment())
            client = await beside.enter_async_context(spawned)
            await Person(client, stage, model, None).look_on()
        return await lives(stage, model, kills, seed)


async def lives(stage: Stage, model: Model, kills: Sequence[Kill], seed: int = 0) -> Outcome:
    """One after the other as long as there are kills, and then one that comes to its end."""
    began, chance = time.monotonic(), random.Random(f"person {seed}")
    outcome = Outcome(seed, stage.directory)
    for kill in (*kills, None):
        model.life = outcome.lives = outcome.lives + 1
        if await _Life(stage, model, chance, kill).live(outcome):
            break
    outcome.problems += model.wrong
    outcome.problems += verdict(stage, model)
    outcome.seconds = time.monotonic() - began
    return outcome


class _Life:
    """One process of the server."""

    def __init__(
        self, stage: Stage, model: Model, chance: random.Random, kill: Kill | None
    ) -> None:
        self._stage = stage
        self._model = model
        self._chance = chance
        self._kill = kill

    async def live(self, outcome: Outcome) -> bool:
        """Whether it was the last: the work is done, or it cannot go on."""
        async with self._server() as client:
            person = Person(client, self._stage, self._model, self._chance)
            playing = asyncio.create_task(person.play())
            killing = asyncio.create_task(self._die(client))
            dying = asyncio.create_task(client.process.wait())
            tasks = (playing, killing, dying)
            try:
                await asyncio.wait(
                    (playing, dying), timeout=PATIENCE, return_when=asyncio.FIRST_COMPLETED
                )
                died = await self._died(dying, playing)
            finally:
                self._model.when_asked = lambda: None
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
            if died and self._kill:
                outcome.kills[self._kill.kind] = outcome.kills.get(self._kill.kind, 0) + 1
                return False
            outcome.problems += self._wrong(playing, client)
            return True

    async def _died(self, dying: asyncio.Task[int], playing: asyncio.Task[None]) -> bool:
        """A request may have failed a moment before the end is known."""
        if playing.done() and not playing.cancelled() and playing.exception():
            await asyncio.wait((dying,), timeout=2)
        return dying.done() and dying.result() == -signal.SIGKILL

    def _wrong(self, playing: asyncio.Task[None], client: Client) -> list[str]:
        if playing.cancelled():
            asked = dict(self._model.count)
            return [f"hangs: asked so far {asked}, ended {self._model.ended}. Log: {client.log}"]
        if error := playing.exception():
            return [f"{_first(error)!r}. Log: {client.log}"]
        return []

    @contextlib.asynccontextmanager
    async def _server(self) -> AsyncIterator[Client]:
        env: Mapping[str, str] = self._stage.environment()
        command = SERVER
        if self._kill and self._kill.kind == "append":
            command, env = DYING, {**env, "MAGY_DIE": f"{self._kill.when} {self._kill.number}"}
        try:
            async with Client.spawn(command, cwd=self._stage.root, env=env) as client:
                yield client
        except* (ConnectionError, BrokenPipeError):
            pass  # of writing to one that has just died

    async def _die(self, client: Client) -> None:
        kill = self._kill
        match kill:
            case Kill(kind="time"):
                await asyncio.sleep(kill.delay)
            case Kill(kind="request"):
                await self._asked(kill.number)
                await asyncio.sleep(kill.delay)
            case Kill(kind="update"):
                await client.wait_until(lambda: _entries(client) >= kill.number, timeout=600)
                await asyncio.sleep(kill.delay)
            case _:
                return
        client.process.kill()

    async def _asked(self, number: int) -> None:
        """Returns when the n-th request of this life has come."""
        came = asyncio.Event()
        left = number

        def count() -> None:
            nonlocal left
            left -= 1
            if left <= 0:
                came.set()

        self._model.when_asked = count
        await came.wait()


def _entries(client: Client) -> int:
    updates = client.notifications("magy/session/update")
    return sum("seq" in u["update"].get("_meta", {}).get("magy", {}) for u in updates)


def _first(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
