"""Sessions that are run: a real store and a real bus, a scripted model, and tools that wait until
they are told. Several of them on one directory are as several processes are."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from magy_server.api.service import Service
from magy_server.bus.local import LocalBus
from magy_server.core.events import Admitted, Entry, Event, Opened, Prompted, Replied
from magy_server.core.no_editor import NO_EDITOR
from magy_server.core.permit import Rule, Ruleset
from magy_server.core.ports import Batch, Bus, ModelFacts, ModelList, Provider, Store
from magy_server.core.settings import ModelSettings, Settings
from magy_server.core.specs import Agents, AgentSpec
from magy_server.core.state.state import State
from magy_server.core.steps import Rest, next_step
from magy_server.core.tool import Result, Tool, ToolContext, tool
from magy_server.core.values import Text
from magy_server.engine.feature_ports import Features
from magy_server.engine.loaded_sessions import LoadedSessions
from magy_server.engine.runner import Runner
from magy_server.engine.session import Session
from magy_server.engine.trees import DELETED
from magy_server.engine.world import World
from magy_server.llm.scripted import ScriptedProvider
from magy_server.reviews.checkpoints import Checkpoints
from magy_server.reviews.reviews import Reviews
from magy_server.store.sqlite import SqliteStore
from magy_server.team.budget import Purse
from magy_server.team.children import Children
from magy_server.team.delivery import report
from magy_server.team.mailing import Mailing
from magy_server.team.slots import LimitedSlots
from magy_server.team.supervision import Supervisor
from magy_server.team.worktrees import Worktrees
from magy_server.tools.files.commits import Commits
from magy_server.tools.files.workspace import WorkspaceFiles
from magy_server.tools.shell.processes import Processes
from magy_server.tools.web.github_tool import open_pull
from tests.engine.fixed_tools import FixedTools
from tests.patience import PATIENCE


class Clock:
    """`ahead`: seconds that it goes ahead of the time."""

    def __init__(self, ahead: float = 0.0) -> None:
        self.ahead = ahead

    def now(self) -> float:
        return time.time() + self.ahead


class Models:
    """One model, of which there are many providers: `p1/x`, `p2/x` and so on."""

    def __init__(self, provider: Provider) -> None:
        self._provider = provider

    def named(self, full: str) -> tuple[Provider, str]:
        return self._provider, full.partition("/")[2]

    def facts(self, full: str) -> ModelFacts:
        return ModelFacts()

    async def measured(self, full: str) -> ModelFacts:
        return self.facts(full)

    async def default(self) -> str:
        return "p1/x"

    def models(self) -> Sequence[str]:
        return ["p1/x"]

    async def listed(self) -> list[ModelList]:
        return []


class Gates:
    """The tools `wait`, which only waits, and `hold`, which is at work: until `open(name)`. The
    tool `ask` is as `hold`, but the person is asked first."""

    def __init__(self) -> None:
        self._gates: dict[str, asyncio.Event] = {}
        self.inside: list[str] = []
        """Which calls are under way, by the name of what they wait for."""
        self.tools = {name: self._tool(name) for name in ("wait", "hold", "ask")}

    def open(self, name: str) -> None:
        self._gate(name).set()

    def _gate(self, name: str) -> asyncio.Event:
        return self._gates.setdefault(name, asyncio.Event())

    def _tool(self, kind: str) -> Tool:
        async def run(ctx: ToolContext, name: Annotated[str, "The gate"]) -> Result:
            """Waits."""
            await ctx.started()
            self.inside.append(name)
            try:
                await self._gate(name).wait()
            finally:
                self.inside.remove(name)
            return Result(f"{name} is open")

        run.__name__ = kind
        return tool(effect="exec", key=kind, waits=kind == "wait")(run)


class Place:
    """One process's engine. `entries` are those that were appended here, in order."""

    def __init__(self, service: Service, gates: Gates, entries: list[Entry]) -> None:
        self.service = service
        self.sessions = service.loaded
        self.world = service.world
        self.slots = service.slots
        self.gates = gates
        self.entries = entries

    async def root(self, id: str = "s", model: str = "p1/x") -> Session:
        return await self.service.open(id, None, "/", "build", model)

    async def child(self, id: str, prompt: str, model: str = "p1/x", by: str = "") -> None:
        """As a spawn makes it; nobody is told."""
        await spawn(self.world.store, id, prompt, model, by)

    async def run(self, id: str) -> None:
        await self.sessions.resume(f"session/{id}")

    async def prompt(self, id: str, text: str, key: str, delivery: str = "queue") -> None:
        await self.service.prompt(id, key, [Text(text=text)], delivery)

    async def state(self, id: str) -> State:
        session = await self.sessions.session(f"session/{id}")
        await session.refresh()
        return session.state

    def by_me(self, id: str, kind: type[Event]) -> int:
        """How many such events of the session were appended here."""
        mine = [e for e in self.entries if e.stream == f"session/{id}"]
        return sum(isinstance(entry.event, kind) for entry in mine)

    async def rests(self, *ids: str) -> None:
        """Until none of them has anything to do."""
        for id in ids:
            await until(partial(self._resting, id))

    def _resting(self, id: str) -> bool:
        found = [s for s in self.sessions.tree(f"session/{id}") if s.stream == f"session/{id}"]
        return bool(found) and isinstance(next_step(found[0].state), Rest)

    def turns(self, id: str) -> int:
        return self.by_me(id, Admitted)

    def replies(self, id: str) -> int:
        return self.by_me(id, Replied)


async def spawn(store: Store, id: str, prompt: str, model: str = "p1/x", by: str = "") -> None:
    parent = id.rpartition("/")[0]
    opened = Opened(root=None, cwd="/", agent="build", model=model, parent=parent)
    prompted = Prompted(id=f"{id}:task", content=(Text(text=prompt),), by=by)
    summary = {"state": "running"}
    await store.append([Batch(f"session/{id}", 0, [opened, prompted], {}, summary)])


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not condition():
            await asyncio.sleep(0.002)


async def quiet() -> None:
    """Whatever can happen by itself has happened."""
    for _ in range(30):
        await asyncio.sleep(0.005)


def agents(root: str | None) -> Agents:
    allowed = (Rule(pattern="*", action="allow"),)
    keys = {"hold": allowed, "wait": allowed}
    rules = Ruleset(source="agent build", keys=keys)
    return Agents({"build": AgentSpec(name="build", description="", rules=rules, prompt="Go.")})


@asynccontextmanager
async def place(
    state: Path,
    script: str | Provider,
    *,
    clock: Clock | None = None,
    retries: int = 0,
    listener: Callable[[Entry], object] = lambda entry: None,
    store: Store | None = None,
) -> AsyncIterator[Place]:
    """`listener` is called with each entry that is appended here. `store` is another one than the
    one in `state`."""
    async with AsyncExitStack() as closing:
        clock = clock or Clock()
        store = store or await SqliteStore.open(state, clock=clock.now)
        closing.push_async_callback(store.close)
        bus = LocalBus(state / "bus")
        closing.push_async_callback(bus.close)
        await bus.start()
        models = Models(ScriptedProvider(script) if isinstance(script, str) else script)
        gates, entries = Gates(), list[Entry]()
        settings = Settings(model=ModelSettings(retries=retries, retry_delay=0.01))
        slots, sessions = LimitedSlots(), LoadedSessions(store, bus, clock, bus.id)
        world = World(
            me=bus.id, store=store, bus=bus, clock=clock, agents=agents,
            tools=FixedTools(gates.tools.values()),
            rules=lambda root: [], models=lambda root: models, peers=bus.peer_ids,
            settings=lambda root: settings,
            slots=slots, end_group=end_group, files=WorkspaceFiles(NO_EDITOR, Commits(Processes())),
        )  # fmt: skip

        def heard(state: State, new: Sequence[Entry]) -> None:
            entries.extend(new)
            for entry in new:
                listener(entry)

        sessions.companions.append(partial(report, sessions))
        sessions.news.appended.add(heard)
        await closing.enter_async_context(Runner(world, sessions, Features()))
        yield Place(verbs(world, sessions, slots), gates, entries)


def verbs(world: World, sessions: LoadedSessions, slots: LimitedSlots) -> Service:
    """What front doors ask, on sessions whose loop asks no feature."""
    trees = worktrees(world)
    children, reviews = Children(world, sessions, slots, trees), Reviews(world, sessions)
    return Service(
        world, sessions, slots, reviews=reviews, children=children,
        checkpoints=Checkpoints(world, sessions, reviews, children),
        mailing=Mailing(world, sessions, children), purse=Purse(world, sessions),
        supervisor=Supervisor(world, sessions),
    )  # fmt: skip


def worktrees(world: World) -> Worktrees:
    """Nobody answers where pull requests are opened."""
    return Worktrees(world, Processes().environment, "", partial(open_pull, "http://127.0.0.1:9"))


def deafen(bus: Bus) -> None:
    """Nobody on it is told any more which trees are free, and which sessions are deleted."""
    assert isinstance(bus, LocalBus)
    real = bus.deliver

    def deliver(topic: str, message: Mapping[str, Any]) -> None:
        if topic not in ("runner", DELETED):
            real(topic, message)

    bus.deliver = deliver


async def end_group(group: int, marker: str) -> None:
    """No call here starts a process."""
    raise AssertionError(f"{marker} started none")
