"""Many cases, a few of them at a time, at one server."""

from __future__ import annotations

import asyncio
import random
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.e2e.harness import MAGY
from tests.lsp.client import uri_of

from . import command as command_of
from .actor import Actor, Wrong, script
from .command import Quiet
from .editor import Editor, Wire
from .person import Person
from .text import TARGETS, Sheet

COMMANDS = 0.2
"""In how many cases a command of an agent changes the file, too."""
TOGETHER = 4
"""Cases at a time, each in a file of its own."""


@dataclass(slots=True)
class Outcome:
    seed: int
    problems: list[str] = field(default_factory=list)
    did: list[str] = field(default_factory=list)
    keys: int = 0
    refused: int = 0
    trace: list[str] = field(default_factory=list)
    """Where something is wrong: all that happened, in order."""


@asynccontextmanager
async def served(place: Path, seeds: list[int]) -> AsyncIterator[tuple[Wire, Editor]]:
    root, state = place / "root", place / "state"
    root.mkdir(parents=True)
    state.mkdir()
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    for seed in seeds:  # before any command could have made them
        (root / _name(seed)).write_text(Sheet.new().text)
    file = state / "model.script"
    file.write_text(script([root / _name(seed) for seed in seeds], TARGETS), encoding="utf-8")
    places = {"MAGY_STATE_DIR": str(state), "MAGY_CONFIG_DIR": str(state)}
    env = {**places, "MAGY_SCRIPT": str(file)}
    async with Wire.spawn(MAGY, cwd=root, env=env) as wire:
        assert isinstance(wire, Wire)
        offers = {"interactions": True, "editor": {"save": True}}
        settings = {"titles": False, "permission": {"edit": "allow", "bash": "allow"}}
        magy = {"client": {"name": "test"}, "capabilities": offers, "settings": settings}
        await wire.initialize(root=root, options={"magy": magy})
        yield wire, Editor(wire)


async def run(seed: int, root: Path, wire: Wire, editor: Editor, commands: float) -> Outcome:
    """One case. The same seed asks for the same things; when they happen, the machine decides.
    `commands`: in how many a command runs, of 1."""
    rng, sheet, path = random.Random(seed), Sheet.new(), root / _name(seed)
    uri = editor.open(path)
    assert uri == uri_of(path)
    editor.disk[uri] = sheet.text
    quiet = Quiet()
    person = Person(random.Random(rng.random()), editor, uri, sheet, quiet)
    targets = range(rng.choice((1, 1, 2, 3, TARGETS)))
    actors = [
        Actor(random.Random(rng.random()), wire, editor, path, sheet, n, quiet) for n in targets
    ]
    times = rng.choice((1, 2, 2, 3, 5))
    command = None
    if rng.random() < commands:
        actors = actors[: command_of.TARGET]
        command = command_of.Command(rng, wire, editor, path, sheet, quiet)
    outcome = Outcome(seed)
    typing = asyncio.create_task(person.type())
    try:
        async with asyncio.TaskGroup() as group:
            for actor in actors:
                group.create_task(actor.act(times))
            if command:
                group.create_task(command.run())
    except* Wrong as wrong:
        outcome.problems += [str(error) for error in wrong.exceptions]
    finally:
        typing.cancel()
        with suppress(asyncio.CancelledError):
            await typing
    if not outcome.problems:
        file: Any = (await wire.request("magy/review/get", {"uri": uri}))["file"]
        outcome.problems += sheet.problems(editor.texts[uri], file)
    if outcome.problems:
        outcome.trace = [*editor.traces[uri], editor.texts[uri]]
    editor.traces.pop(uri, None)
    editor.moments.pop(uri, None)
    editor.close(path)
    outcome.did = [step for actor in actors for step in actor.did] + ["command"] * bool(command)
    outcome.keys = len(sheet.keys) + len(sheet.gone)
    outcome.refused = sum(actor.refused for actor in actors)
    return outcome


async def run_all(place: Path, seeds: list[int], commands: float = COMMANDS) -> list[Outcome]:
    async with served(place, seeds) as (wire, editor):
        left, done = list(reversed(seeds)), []

        async def lane() -> None:
            while left:
                done.append(await run(left.pop(), place / "root", wire, editor, commands))

        await asyncio.gather(*(lane() for _ in range(TOGETHER)))
        return done


def _name(seed: int) -> str:
    return f"case{seed}.txt"
