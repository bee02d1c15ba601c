"""What agents cost that have done something and wait for more, without a front door or a model.

    python -m bench.idle agents|tasks COUNT DIRECTORY

Tells, in bytes and seconds, what so many take: `agents` are children of one session whose logs are
there, loaded and held by the engine's runner; `tasks` are asyncio tasks that have run and wait at a
queue.
"""

from __future__ import annotations

import asyncio
import gc
import os
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any

import orjson

from bench.measure import resident
from magy_server.bus.local import LocalBus
from magy_server.core.events import Admitted, Ended, Event, Opened, Prompted, Replied
from magy_server.core.no_editor import NO_EDITOR
from magy_server.core.ports import Batch
from magy_server.core.settings import Settings
from magy_server.core.specs import Agents
from magy_server.core.values import Text
from magy_server.engine.feature_ports import Features
from magy_server.engine.loaded_sessions import LoadedSessions
from magy_server.engine.runner import Runner
from magy_server.engine.world import World
from magy_server.store.memory import MemoryStore
from magy_server.tools.files.commits import Commits
from magy_server.tools.files.workspace import WorkspaceFiles
from magy_server.tools.shell.processes import Processes

Work = Callable[[], Awaitable[None]]


class Clock:
    def now(self) -> float:
        return time.time()


async def agents(
    count: int, directory: str, measure: Callable[[Work], Awaitable[dict[str, float]]]
) -> dict[str, float]:
    """`measure` does the work, and tells what it took."""
    store, bus = MemoryStore(), LocalBus(directory + "/bus")
    await bus.start()
    world = World(
        me=bus.id, store=store, bus=bus, clock=Clock(), tools={}, agents=lambda root: Agents({}),
        rules=lambda root: [], settings=lambda root: Settings(), models=_no_models,
        files=WorkspaceFiles(NO_EDITOR, Commits(Processes())),
    )  # fmt: skip
    streams = [f"session/root/agent-{number}" for number in range(count)]
    for stream in ("session/root", *streams):
        await store.append([Batch(stream, 0, _log(stream))])

    async def load() -> None:
        for stream in streams:
            await sessions.session(stream)

    sessions = LoadedSessions(store, bus, world.clock, bus.id)
    async with Runner(world, sessions, Features()):
        await sessions.session("session/root")
        told = await measure(load)
    await bus.close()
    return told


def _log(stream: str) -> list[Event]:
    """A turn that is over."""
    parent = "root" if stream != "session/root" else None
    return [
        Opened(root=None, cwd="/", agent="build", model="test", parent=parent),
        Prompted(id="t1", content=(Text(text="Look at it and say what you see."),)),
        Admitted(turn="t1", prompts=("t1",), first=2),
        Replied(request="3", model="test", content=(Text(text="I see. " * 40),), stop="end_turn"),
        Ended(turn="t1", stop="end_turn"),
    ]


def _no_models(root: str | None) -> Any:
    raise AssertionError("no model is asked here")


async def tasks(
    count: int, directory: str, measure: Callable[[Work], Awaitable[dict[str, float]]]
) -> dict[str, float]:
    made: list[asyncio.Task[None]] = []

    async def actor(inbox: asyncio.Queue[str]) -> None:
        while await inbox.get():
            pass

    async def start() -> None:
        made.extend(asyncio.create_task(actor(asyncio.Queue())) for _ in range(count))
        await asyncio.sleep(0)

    told = await measure(start)
    for task in made:
        task.cancel()
    await asyncio.gather(*made, return_exceptions=True)
    return told


async def measured(work: Work) -> dict[str, float]:
    gc.collect()
    held, began = resident(os.getpid()), time.perf_counter()
    await work()
    seconds = time.perf_counter() - began
    gc.collect()
    return {"seconds": seconds, "bytes": resident(os.getpid()) - held}


if __name__ == "__main__":
    kind, number, directory = sys.argv[1:]
    work = {"agents": agents, "tasks": tasks}[kind]
    print(orjson.dumps(asyncio.run(work(int(number), directory, measured))).decode())
