"""Tools see a live session through these contexts: `core.tool.ToolContext` and `FactContext`."""

from __future__ import annotations

import os
from collections.abc import Collection, Hashable, Mapping, Sequence
from contextlib import AsyncExitStack, suppress

from magy_server.core.errors import NotFound, ToolError
from magy_server.core.events import (
    OVER,
    Answered,
    Event,
    Exited,
    Finished,
    Judged,
    Prompted,
    Started,
)
from magy_server.core.ports import Editor, Files, ToolSchema
from magy_server.core.prompt import schema
from magy_server.core.state.state import State, question_id
from magy_server.core.state.turn import CallState
from magy_server.core.text.secrets import Secrets, Sieve
from magy_server.core.text.surrogates import whole
from magy_server.core.tool import Proposal, Selection, Team
from magy_server.core.values import Action, Embedded, Evidence, Facts, Form, Hash, Latest, Seen
from magy_server.engine.feature_ports import Features
from magy_server.engine.log import Write
from magy_server.engine.rules import Law
from magy_server.engine.session import Session
from magy_server.engine.world import World, put


class LookContext:
    """Enough to look at the world before a call is judged."""

    def __init__(self, session: Session, world: World, features: Features, review: str) -> None:
        self.session = session.id
        self.root = session.state.place
        self.editor: Editor = world.editor
        self.review = review
        self._live = session
        self._world = world
        self._features = features

    @property
    def cwd(self) -> str:
        """Raises ToolError where that is no more what it was: commands must not begin elsewhere."""
        own = self._live.state.cwd
        if own != self.root and not (os.path.isdir(own) and os.path.realpath(own) == own):
            raise ToolError(
                f"The directory {os.path.relpath(own, self.root)}, where commands begin, is gone, "
                "or leads elsewhere by now. Call switch_workspace to have them begin in another, "
                "such as `.`, the workspace root."
            )
        return own

    @property
    def plugin(self) -> str:
        return self._world.plugin(self._live.state)

    @property
    def team(self) -> Team:
        return self._features.team(self._live)

    async def seen(self, path: str) -> bytes | None:
        hash = self._live.state.conversation.seen.get(path)
        return await self._world.store.blob(hash) if hash else None

    async def selection(self) -> Selection | None:
        for item in reversed(self._live.state.conversation.items):
            if isinstance(item, Prompted):
                for part in item.content:
                    if isinstance(part, Embedded) and (about := part.selected):
                        seen = await self._world.store.blob(about.base)
                        return Selection(about.path, about.start, about.end, seen)
        return None

    async def proposal(self, path: str) -> Proposal | None:
        found = await self._features.changes.proposal(path)
        return None if found is None or self._others(found) else found

    async def proposer(self, path: str) -> str:
        found = await self._features.changes.proposal(path)
        return next(iter(self._others(found)), "") if found else ""

    def _others(self, found: Proposal) -> list[str]:
        return [session for session in found.sessions if session != self.session]


class RunContext(LookContext):
    """`events` are appended together with the call's `Finished`."""

    def __init__(
        self,
        session: Session,
        world: World,
        features: Features,
        judged: Judged,
        law: Law,
    ) -> None:
        super().__init__(session, world, features, law.review)
        if judged.decision.proposed:  # nobody was asked whether it may be done
            self.review = "propose"
        self.call = judged.call
        self.facts: Facts = judged.facts
        turn = session.state.turn
        self.given = turn is not None and turn.given
        self.events: list[Event] = []
        self._law = law
        self._asked = 0
        """How many forms the person was asked to fill in."""
        self._changing: set[str] = set()
        self._held = AsyncExitStack()
        self._sieve = Sieve(world.secrets)

    @property
    def secrets(self) -> Secrets:
        return self._world.secrets

    @property
    def basis(self) -> Hashable | None:
        if self._world.busy():
            return None
        buffers = (self.editor.buffer(path) for path in self.editor.open_paths())
        # A file that is closed and opened again may have another text under the same version.
        shown = tuple((one.path, one.version, hash(one.text)) for one in buffers if one)
        return self._law.identity, shown

    @property
    def state(self) -> CallState | None:
        """The call as it is in the log; None when its turn is over."""
        turn = self._live.state.turn
        return turn.calls.get(self.call) if turn else None

    @property
    def files(self) -> Files:
        return self._world.files

    def knows(self, text: Seen) -> bool:
        """Whether the log has it that the model saw this text of this file."""
        return self._live.state.conversation.seen.get(text.path) == text.hash

    def may_read(self, path: str, within: str = "") -> Action:
        return self._law.may_read(within or self.root, path)

    def may_open(self, url: str) -> Action:
        return self._law.may_open(url)

    def emit(self, text: str) -> None:
        if text := self._sieve(whole(text)):
            self._live.stream_delta("output", self.call, text)

    def show(self, what: Latest, latest: str) -> None:
        self._live.stream_delta(what, self.call, latest + "\n")

    async def ask(self, form: Form) -> Answered | None:
        from magy_server.core.mcp.forms import question

        self._asked += 1
        id = f"{question_id(self.session, self.call)}.{self._asked}"
        name = self.state.call.name if self.state else ""
        asked = question(id, self.call, name, form)

        def decide(now: State) -> Write | None:
            open_ = now.turn is not None and now.turn.is_open(self.call)
            return Write([asked]) if open_ else None

        after = self._live.state.seq
        if not await self._live.append(decide):
            return None
        async with self._live.moving() as moved:
            while id in self._live.state.questions:
                await moved.wait()
                moved.clear()
        for entry in await self._world.store.read(self._live.stream, after=after):
            if isinstance(entry.event, Answered) and entry.event.id == id:
                return entry.event if entry.event.by != OVER else None
        return None

    async def changing(self, paths: Collection[str]) -> None:
        if more := set(paths) - self._changing:
            await self._held.enter_async_context(self._features.changes.changing(more))
            self._changing |= more

    async def close(self) -> None:
        """The end of the call is in the log."""
        await self._held.aclose()

    async def started(
        self, evidence: Evidence | None = None, blobs: Mapping[Hash, bytes] | None = None
    ) -> None:
        event = Started(call=self.call, evidence=evidence or Evidence())
        await self._live.append(lambda now: Write([event], blobs or {}))

    async def seldom(self) -> Sequence[ToolSchema]:
        briefing = self._live.state.conversation.briefing
        if briefing is None:
            return []
        hashes = [tool.hash for tool in briefing.tools if tool.name in briefing.seldom]
        texts = await self._world.texts(set(hashes))
        return [schema(texts[hash]) for hash in hashes]

    async def blob(self, hash: Hash) -> bytes:
        return await self._world.store.blob(hash)

    async def output_of(self, call: str) -> bytes | None:
        request = call.partition(".")[0]
        after = int(request) if request.isdigit() else 0
        found: Hash | None = None
        for entry in await self._world.store.read(self._live.stream, after=after):
            event = entry.event
            if isinstance(event, Finished | Exited) and event.call == call:
                found = event.output or found
        return await self.blob(found) if found else None

    async def exited(self, call: str, code: int | None, output: bytes) -> None:
        blobs: dict[Hash, bytes] = {}
        said = self.secrets.clean_bytes(output)
        event = Exited(call=call, code=code, output=put(said, blobs))
        with suppress(NotFound):  # the session was deleted, and its commands ended for that
            await self._live.append(lambda now: Write([event], blobs))
