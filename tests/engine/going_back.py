"""A session on real files whose turns are written by hand: what its tools would have done is done
to the files, and said in the log as they say it."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from magy_server.api.service import Service
from magy_server.bus.local import LocalBus
from magy_server.core.events import (
    Admitted,
    Briefed,
    Ended,
    Event,
    Finished,
    Opened,
    Prompted,
    Replied,
    Started,
)
from magy_server.core.no_editor import NO_EDITOR
from magy_server.core.ports import Files, Store
from magy_server.core.settings import Settings
from magy_server.core.specs import Agents
from magy_server.core.values import Call, Evidence, FileChange, Kind, Seen, Text
from magy_server.engine.feature_ports import Features
from magy_server.engine.loaded_sessions import LoadedSessions
from magy_server.engine.log import Write
from magy_server.engine.runner import Runner
from magy_server.engine.session import Session
from magy_server.engine.world import Models, World
from magy_server.store.sqlite import SqliteStore
from magy_server.team.slots import LimitedSlots
from magy_server.tools.files.commits import Commits
from magy_server.tools.files.workspace import WorkspaceFiles
from magy_server.tools.shell.processes import Processes
from tests.engine.fixed_tools import FixedTools
from tests.engine.running import verbs

BRIEFED = Briefed(
    agent="build", model="scripted/x", sections=(), tools=(), readers=(), rules="r", max_tokens=100
)
RULES = b"r"


class Clock:
    def now(self) -> float:
        return time.time()


def no_agents(root: str | None) -> Agents:
    return Agents({})


def no_models(root: str | None) -> Models:
    raise AssertionError("no model is asked here")


class Place:
    """One process's engine on a directory of files."""

    def __init__(self, root: Path, store: Store, service: Service) -> None:
        self.root = root
        self.store = store
        self.service = service
        self.sessions = service.loaded
        self.checkpoints = service.checkpoints

    async def session(self, id: str = "s", **fields: object) -> Agent:
        session = self.sessions.watch(f"session/{id}")
        await session.load()
        about = {"root": str(self.root), "cwd": str(self.root), "agent": "build", "model": "m/x"}
        opened = Opened.model_validate({**about, **fields})
        await session.append(lambda now: None if now.opened else Write([opened, BRIEFED], NO_RULES))
        return Agent(self.root, session)

    def write(self, name: str, text: str) -> None:
        (self.root / name).write_text(text)

    def read(self, name: str) -> str | None:
        file = self.root / name
        return file.read_text() if file.exists() else None

    def files(self) -> dict[str, str]:
        return {
            str(file.relative_to(self.root)): file.read_text()
            for file in sorted(self.root.rglob("*"))
            if file.is_file()
        }


BRIEFED = BRIEFED.model_copy(update={"rules": hashlib.sha256(RULES).hexdigest()})
NO_RULES = {BRIEFED.rules: RULES}


class Agent:
    """What a session's turns do."""

    def __init__(self, root: Path, session: Session) -> None:
        self.root = root
        self.session = session
        self._calls = 0
        self.turns = 0

    async def turn(self, prompt: str = "", *, id: str = "", **files: str | None) -> str:
        """A turn that makes these files so; the id of it. `sub__name_py` is sub/name.py."""
        turn = await self.begin(prompt, id)
        for name, text in files.items():
            await self.call(name.replace("__", "/").replace("_", "."), text)
        await self.end(turn)
        return turn

    async def begin(self, prompt: str = "", id: str = "") -> str:
        self.turns += 1
        turn = id or f"p{self.turns}"
        content = (Text(text=prompt or f"Do {turn}"),)
        first = self.session.state.seq + 1
        await self.say(
            Prompted(id=turn, content=content), Admitted(turn=turn, prompts=(turn,), first=first)
        )
        return turn

    async def end(self, turn: str) -> None:
        done = Replied(request=str(self.session.state.seq), model="m/x", stop="end_turn",
                       content=(Text(text=f"Did {turn}"),))  # fmt: skip
        await self.say(done, Ended(turn=turn, stop="end_turn"))

    async def call(
        self, name: str, text: str | bytes | None, kind: Kind = "file", moved_from: str = ""
    ) -> None:
        path = self.root / name
        change = look(path)
        blobs: dict[str, bytes] = {}
        self._keep(path, blobs)
        put(path, text, kind)
        self._keep(path, blobs)
        now = look(path)
        made = FileChange(
            path=str(path), before=change[0], after=now[0], was=change[1], now=now[1],
            moved_from=str(self.root / moved_from) if moved_from else "",
        )  # fmt: skip
        await self.finish([made], blobs)

    async def move(self, old: str, new: str) -> None:
        text = (self.root / old).read_text()
        await self.call(new, text, moved_from=old)
        await self.call(old, None)

    async def finish(
        self, changes: Sequence[FileChange], blobs: dict[str, bytes], status: str = "completed"
    ) -> None:
        """With another status, only `Started` says what was going to happen: nothing did."""
        self._calls += 1
        request = str(self.session.state.seq)
        call = Call(id=f"{request}.0", name="edit_file", arguments={})
        replied = Replied(request=request, model="m/x", content=(call,), stop="tool_use")
        completed = status == "completed"
        seen = tuple(Seen(path=c.path, hash=c.after) for c in changes if c.after)
        finished = Finished.model_validate({
            "call": call.id, "status": status, "for_model": "Done.",
            "changes": [c.model_dump() for c in changes] if completed else [],
            "seen": [s.model_dump() for s in seen] if completed else [],
        })  # fmt: skip
        started = Started(call=call.id, evidence=Evidence(changes=tuple(changes)))
        await self.say(replied, started, blobs=blobs)
        await self.say(finished, blobs=blobs)

    async def say(self, *events: Event, blobs: dict[str, bytes] | None = None) -> None:
        await self.session.append(lambda now: Write(events, blobs or {}))

    @staticmethod
    def _keep(path: Path, blobs: dict[str, bytes]) -> None:
        if os.path.lexists(path):
            data = os.readlink(path).encode() if path.is_symlink() else path.read_bytes()
            blobs[hashlib.sha256(data).hexdigest()] = data


def look(path: Path) -> tuple[str | None, Kind]:
    if not os.path.lexists(path):
        return None, "file"
    if path.is_symlink():
        return hashlib.sha256(os.readlink(path).encode()).hexdigest(), "link"
    kind: Kind = "executable" if path.stat().st_mode & 0o111 else "file"
    return hashlib.sha256(path.read_bytes()).hexdigest(), kind


def put(path: Path, text: str | bytes | None, kind: Kind = "file") -> None:
    if os.path.lexists(path):
        path.unlink()
    if text is None:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    if kind == "link":
        path.symlink_to(os.fsdecode(text))
        return
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    path.chmod(0o755 if kind == "executable" else 0o644)


@asynccontextmanager
async def place(
    root: Path, state: Path, files: Files | None = None, store: Store | None = None
) -> AsyncIterator[Place]:
    """A process of its own, as far as store and bus can tell."""
    store = store or await SqliteStore.open(state)
    bus = LocalBus(state / "bus")
    await bus.start()
    world = World(
        me=bus.id, store=store, bus=bus, clock=Clock(), tools=FixedTools(), agents=no_agents,
        rules=lambda root: (), settings=lambda root: Settings(), models=no_models,
        files=files or WorkspaceFiles(NO_EDITOR, Commits(Processes())), peers=bus.peer_ids,
    )  # fmt: skip
    try:
        service = verbs(world, LoadedSessions(store, bus, world.clock, bus.id), LimitedSlots())
        async with Runner(world, service.loaded, Features(restores=service.checkpoints)):
            yield Place(root, store, service)
    finally:
        await bus.close()
        await store.close()
