"""One suite for each port, run on every adapter; other processes are real ones."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from magy_server.core.ports import Store
from magy_server.store.faulty import FaultyStore
from magy_server.store.memory import MemoryStore
from magy_server.store.sqlite import SqliteStore
from tests.patience import PATIENCE

ROOT = Path(__file__).parents[2]


class Clock:
    """Seconds; each reading is one later, unless set."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        self.now += 1
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(params=["memory", "sqlite", "faulty"])
async def store(
    request: pytest.FixtureRequest, tmp_path: Path, clock: Clock
) -> AsyncIterator[Store]:
    opened: Store
    if request.param == "memory":
        opened = MemoryStore(clock)
    elif request.param == "faulty":
        opened = FaultyStore(MemoryStore(clock))
    else:
        opened = await SqliteStore.open(tmp_path / "state", clock=clock)
    yield opened
    await opened.close()


class Child:
    """A process of `children.py`. It prints one JSON value a line."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.pid = process.pid

    async def line(self) -> Any:
        assert self.process.stdout is not None
        line = await asyncio.wait_for(self.process.stdout.readline(), PATIENCE)
        assert line, "the child ended"
        return json.loads(line)

    async def tell(self, command: Any) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(command).encode() + b"\n")
        await self.process.stdin.drain()

    async def finish(self) -> list[Any]:
        """Ends its input; the rest of what it prints."""
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.close()
        rest = await asyncio.wait_for(self.process.stdout.read(), PATIENCE)
        assert await self.process.wait() == 0
        return [json.loads(line) for line in rest.splitlines()]

    async def kill(self) -> None:
        if self.process.returncode is None:
            os.kill(self.pid, signal.SIGKILL)
        await self.process.communicate()


Spawn = Callable[..., Awaitable[Child]]


@pytest.fixture
async def spawn() -> AsyncIterator[Spawn]:
    """Starts a role of `children.py` with arguments; what still lives at the end is killed."""
    children: list[Child] = []

    async def start(role: str, *arguments: str | Path) -> Child:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "tests.contracts.children", role, *map(str, arguments),
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, cwd=ROOT,
        )  # fmt: skip
        children.append(Child(process))
        return children[-1]

    yield start
    for child in children:
        await child.kill()


async def until(condition: Callable[[], bool]) -> None:
    """Waits for something another process brings about."""
    async with asyncio.timeout(PATIENCE):
        while not condition():
            await asyncio.sleep(0.005)


@pytest.fixture
def short_path() -> Iterator[Path]:
    """A directory whose name leaves room for socket names."""
    with tempfile.TemporaryDirectory(prefix="magy-", dir="/tmp") as path:
        yield Path(path)


@asynccontextmanager
async def sqlite(directory: Path, **options: Any) -> AsyncIterator[SqliteStore]:
    opened = await SqliteStore.open(directory, **options)
    try:
        yield opened
    finally:
        await opened.close()
