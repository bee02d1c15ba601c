"""What a tool gets to work with: `core.tool.ToolContext` and `FactContext`, on a live session."""

from __future__ import annotations

from collections.abc import Mapping

from magy_server.core.events import Event, Evidence, Exited, Facts, Finished, Hash, Started
from magy_server.core.ports import Editor
from magy_server.engine.session import Session, Write
from magy_server.engine.world import World, put


class LookContext:
    """Enough to look at the world before a call is judged."""

    def __init__(self, session: Session, world: World) -> None:
        opened = session.state.opened
        self.session = session.stream.removeprefix("session/")
        self.root = (opened.root or opened.cwd) if opened else ""
        self.editor: Editor | None = world.editor


class RunContext(LookContext):
    """`events` are appended together with the call's `Finished`."""

    def __init__(self, session: Session, world: World, call: str, facts: Facts) -> None:
        super().__init__(session, world)
        self.call = call
        self.facts = facts
        self.events: list[Event] = []
        self._live = session
        self._world = world

    def emit(self, text: str) -> None:
        self._live.stream_delta("output", self.call, text)

    async def started(
        self, evidence: Evidence | None = None, blobs: Mapping[Hash, bytes] | None = None
    ) -> None:
        event = Started(call=self.call, evidence=evidence or Evidence())
        await self._live.append(lambda now: Write([event], blobs or {}))

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
        event = Exited(call=call, code=code, output=put(output, blobs))
        await self._live.append(lambda now: Write([event], blobs))
