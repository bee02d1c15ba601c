"""A process with agents that have children: the real composition on a real store, with a scripted
model. Children are made by hand, as spawning makes them, so that a test says exactly what is
there."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from magy_server.api.service import Service
from magy_server.app import compose
from magy_server.core.agents import tree
from magy_server.core.agents.mail import Mailed, TextPayload
from magy_server.core.events import Admitted, Event, Finished, Opened, Prompted
from magy_server.core.ports import Store
from magy_server.core.prompt import begun, build, needed
from magy_server.core.state.state import State
from magy_server.core.values import Limits, Text
from magy_server.engine.log import Write
from magy_server.engine.session import Listener, Session
from magy_server.engine.world import World
from magy_server.store.faulty import Fault, FaultyStore
from magy_server.store.sqlite import SqliteStore
from magy_server.team.mailing import Mailing
from tests.patience import PATIENCE

OWN = f"MAGY_CALL_{os.getpid()}"
"""The variable by which the processes of a call are known. What is left running is looked for on
the whole machine, and here all sessions are called "s": of two workers with the same variable one
would end the other's commands."""


class Home:
    """One process. `root` is the workspace root; sessions are named by their ids."""

    def __init__(self, service: Service, root: Path) -> None:
        self.service, self.root = service, root
        self.sessions = service.loaded
        self.world: World = service.world

    @property
    def mailing(self) -> Mailing:
        return self.service.mailing

    async def new(self, id: str = "s") -> Session:
        return await self.service.open(id, str(self.root), str(self.root), "build", "")

    async def live(self, id: str) -> Session:
        return await self.sessions.session(f"session/{id}")

    async def state(self, id: str) -> State:
        session = await self.live(id)
        await session.refresh()
        return session.state

    async def child(
        self,
        id: str,
        text: str = "work",
        *,
        run: str = "",
        limits: Limits | None = None,
        wake: bool = True,
    ) -> Session:
        """Makes the child and lets it begin; made before, it is only looked up."""
        key = id.rpartition("/")[2]
        opened = Opened(
            root=str(self.root), cwd=str(self.root), agent="general", model="", title=f"task {key}",
            parent=tree.parent(id), call=key if tree.is_call(key) else "", limits=limits,
        )  # fmt: skip
        task = Prompted(id=f"{id}:task", content=(Text(text=text),), run=run)
        session = self.sessions.watch(f"session/{id}")
        await session.load()
        await session.append(lambda now: None if now.opened else Write([opened, task]))
        if wake:
            self.sessions.wake(session)
        return session

    async def prompt(self, id: str, text: str, key: str = "p1") -> None:
        await self.service.prompt(id, key, [Text(text=text)], "steer")

    async def until(self, id: str, right: Callable[[State], Any]) -> State:
        """Waits until the session is so."""
        session = await self.live(id)
        moved = asyncio.Event()
        end = session.watch(moved.set)
        try:
            async with asyncio.timeout(PATIENCE):
                while not right(session.state):
                    await moved.wait()
                    moved.clear()
        finally:
            end()
        return session.state

    async def rested(self, id: str, turns: int = 1) -> State:
        return await self.until(id, lambda s: s.turns >= turns and s.turn is None)

    async def events(self, id: str) -> list[Event]:
        return [entry.event for entry in await self.world.store.read(f"session/{id}")]

    async def seen(self, id: str) -> str:
        """What its model would read with the next request."""
        state = await self.state(id)
        texts = await self.world.texts(needed(begun(state, None), state))
        request = build(state, texts)
        return repr((request.system, request.messages))

    def after(self, seconds: float) -> float:
        """A deadline."""
        return self.world.clock.now() + seconds


@asynccontextmanager
async def home(
    directory: Path,
    script: str,
    *,
    settings: Mapping[str, Any] | None = None,
    about: Mapping[str, Any] | None = None,
    listeners: Sequence[Listener] = (),
    store: Store | None = None,
) -> AsyncIterator[Home]:
    """In the same `directory` it is the same store, if no other is given. `about`: the settings of
    models, by name."""
    root, state = directory / "project", directory / "state"
    root.mkdir(parents=True, exist_ok=True)
    state.mkdir(parents=True, exist_ok=True)
    file = state / "model.script"
    file.write_text(script, encoding="utf-8")
    given = dict(settings or {})
    model = {"default": "scripted/script", **given.pop("model", {})}
    provider = {"name": "scripted", "kind": "scripted", "script": str(file), "about": about or {}}
    options = {"titles": False, "provider": [provider], "model": model, **given}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MAGY_STATE_DIR", str(state))
        patch.setenv("MAGY_CONFIG_DIR", str(state))
        for module in ("shell.process_groups", "shell.environment", "git.repository"):
            patch.setattr(f"magy_server.tools.{module}.VARIABLE", OWN)
        async with compose([str(root)], options, None, listeners, store) as (service, _):
            yield Home(service, root)


async def faulty(directory: Path, *script: Fault) -> FaultyStore:
    """The store of a home in this directory, with these faults."""
    return FaultyStore(await SqliteStore.open(directory / "state"), *script)


def mailed(events: Sequence[Event]) -> list[Mailed]:
    return [event for event in events if isinstance(event, Mailed)]


def texts(events: Sequence[Event]) -> list[str]:
    return [m.payload.text for m in mailed(events) if isinstance(m.payload, TextPayload)]


def delivered(events: Sequence[Event], id: str) -> int:
    """How often a message got to the model of who has this log: into a turn, or as the result of a
    wait."""
    admitted = sum(id in e.prompts for e in events if isinstance(e, Admitted))
    waited = sum(getattr(e, "dropped", ()).count(id) for e in events if e.type == "requeued")
    return admitted + waited


__all__ = ["Finished", "Home", "delivered", "faulty", "home", "mailed", "texts"]
