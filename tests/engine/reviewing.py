"""A desk to review at: a real store, a real bus, real files and an editor with live buffers, and
agents that change files as the engine's tools do."""

from __future__ import annotations

import hashlib
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from magy_server.bus.local import LocalBus
from magy_server.core.events import Admitted, Entry, Finished, Opened, Prompted, Replied, Started
from magy_server.core.reviews.review_events import Decision, Noted
from magy_server.core.settings import EditSettings, Settings
from magy_server.core.specs import Agents
from magy_server.core.values import Call, FileChange, Text
from magy_server.engine.loaded_sessions import LoadedSessions
from magy_server.engine.log import Write
from magy_server.engine.session import Session
from magy_server.engine.world import World
from magy_server.reviews.reviews import Reviews
from magy_server.reviews.views import Outcome, Which, Wish
from magy_server.store.sqlite import SqliteStore
from magy_server.tools.files.commits import Commits
from magy_server.tools.files.workspace import WorkspaceFiles
from magy_server.tools.shell.processes import Processes
from tests.engine.fixed_tools import FixedTools
from tests.tools.conftest import FakeEditor


class Clock:
    def now(self) -> float:
        return time.time()


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@dataclass
class Agent:
    """A session that changes files, one turn for ever."""

    session: Session
    reviews: Reviews
    root: Path

    @property
    def id(self) -> str:
        return self.session.stream.removeprefix("session/")

    async def changes(
        self, *changes: FileChange, blobs: Mapping[str, bytes], command: str = ""
    ) -> None:
        """What a call changed enters the log, as `Performer` writes it."""
        call = await self._begin(command)
        finished = Finished(call=call, status="completed", for_model="done", changes=changes)
        await self._ended(finished, blobs)

    async def _ended(self, finished: Finished, blobs: Mapping[str, bytes]) -> None:
        await self.session.append(lambda now: Write([finished], blobs))

    async def called(self, name: str, text: str) -> tuple[str, Finished, Mapping[str, bytes]]:
        """A call that has written, and whose end is not in the log yet."""
        path = self.root / name
        before, after = path.read_bytes(), text.encode()
        path.write_bytes(after)
        change = FileChange(path=str(path), before=digest(before), after=digest(after))
        call = await self._begin("")
        finished = Finished(call=call, status="completed", for_model="done", changes=(change,))
        return call, finished, {digest(data): data for data in (before, after)}

    async def _begin(self, command: str) -> str:
        id = f"{self.session.state.seq}.0"
        arguments = {"command": command} if command else {}
        call = Call(id=id, name="edit_file", arguments=arguments)
        reply = Replied(request=str(self.session.state.seq), model="m", content=(call,),
                        stop="tool_use")  # fmt: skip
        await self.session.append(lambda now: Write([reply, Started(call=id)]))
        return id

    async def write(self, name: str, text: str | bytes | None, **fields: Any) -> None:
        """Makes the file so, on disk."""
        path = self.root / name
        before = path.read_bytes() if path.exists() else None
        after = text.encode() if isinstance(text, str) else text
        if after is None:
            path.unlink()
        elif fields.get("via") != "proposed":
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(after)
        await self.wrote(name, before, after, **fields)

    async def wrote(
        self, name: str, before: bytes | None, after: bytes | None, command: str = "", **fields: Any
    ) -> None:
        sides = [data for data in (before, after) if data is not None]
        change = FileChange(
            path=str(self.root / name),
            before=digest(before) if before is not None else None,
            after=digest(after) if after is not None else None,
            **fields,
        )
        await self.changes(change, blobs={digest(d): d for d in sides}, command=command)

    async def propose(self, name: str, text: str | None) -> None:
        path = self.root / name
        before = path.read_bytes() if path.exists() else None
        after = text.encode() if text is not None else None
        await self.wrote(name, before, after, via="proposed")

    async def told(self) -> list[str]:
        await self.session.refresh()
        return [i.text for i in self.session.state.conversation.items if isinstance(i, Noted)]


class Place:
    """One process, as far as reviews go."""

    def __init__(self, root: Path, world: World, sessions: LoadedSessions, reviews: Reviews,
                 editor: FakeEditor) -> None:  # fmt: skip
        self.root, self.world, self.sessions = root, world, sessions
        self.reviews, self.editor = reviews, editor

    async def agent(self, id: str = "s1", **options: str) -> Agent:
        session = self.sessions.watch(f"session/{id}")
        await session.load()
        if session.state.opened is None:
            opened = Opened(root=str(self.root), cwd=str(self.root), agent="build", model="m")
            prompted = Prompted(id="p1", content=(Text(text="go"),))
            admitted = Admitted(turn="p1", prompts=("p1",), first=2)
            await session.append(lambda now: Write([opened, prompted, admitted]))
        return Agent(session, self.reviews, self.root)

    def path(self, name: str) -> str:
        return str(self.root / name)

    def text(self, name: str) -> str:
        return (self.root / name).read_bytes().decode()

    def type(self, name: str, text: str) -> None:
        """The person changes the file, in the editor if it is open there."""
        if self.editor.buffer(self.path(name)):
            self.editor.type(self.path(name), text)
        else:
            (self.root / name).write_bytes(text.encode())

    async def hunks(self, name: str, proposed: bool = False) -> list[tuple[str, str]]:
        file = await self.reviews.get(self.path(name), proposed)
        return [(hunk.old, hunk.new) for hunk in file.hunks]

    async def decide(self, verb: Any, name: str, *numbers: int, proposed: bool = False,
                     **fields: Any) -> Outcome:  # fmt: skip
        """About hunks by number; none: all."""
        ids = await self.ids(name, proposed) if numbers else ()
        which = Which(ids=tuple(ids[number] for number in numbers)) if numbers else Which(all=True)
        return await self.wish(verb, name, which, proposed=proposed, **fields)

    async def ids(self, name: str, proposed: bool = False) -> list[str]:
        file = await self.reviews.get(self.path(name), proposed)
        return [hunk.id for hunk in file.hunks]

    async def wish(self, verb: Any, name: str, which: Which, *, proposed: bool = False,
                   **fields: Any) -> Outcome:  # fmt: skip
        return await self.reviews.resolve(self.path(name), Wish(verb, which, **fields), proposed)

    async def journal(self, name: str, proposed: bool = False) -> list[Entry]:
        from magy_server.reviews.streams import stream_of

        return await self.world.store.read(stream_of(self.path(name), proposed))

    async def decisions(self, name: str, proposed: bool = False) -> list[Decision]:
        from magy_server.reviews.streams import decisions

        return decisions(await self.journal(name, proposed))


@asynccontextmanager
async def process(root: Path, state: Path, review: str = "review") -> AsyncIterator[Place]:
    async with AsyncExitStack() as closing:
        store = await SqliteStore.open(state)
        closing.push_async_callback(store.close)
        bus = LocalBus(state / "bus")
        closing.push_async_callback(bus.close)
        await bus.start()
        editor = FakeEditor()
        processes = Processes(set())
        closing.push_async_callback(processes.close)
        world = World(
            me=bus.id, store=store, bus=bus, clock=Clock(), tools=FixedTools(),
            agents=lambda root: Agents({}), rules=lambda root: [],
            settings=lambda root: Settings(edits=EditSettings(review=review)), models=no_models,
            editor=editor, files=WorkspaceFiles(editor, Commits(processes)), peers=bus.peer_ids,
        )  # fmt: skip
        sessions = LoadedSessions(store, bus, world.clock, bus.id)
        reviews = Reviews(world, sessions)
        sessions.companions.append(reviews.along)
        closing.callback(reviews.close)
        closing.push_async_callback(_closed, sessions)
        yield Place(root, world, sessions, reviews, editor)


async def _closed(sessions: LoadedSessions) -> None:
    for kept in sessions:
        await kept.session.close()


def no_models(root: str | None) -> Any:
    raise AssertionError("no model is asked here")
