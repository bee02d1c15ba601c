"""Read calls run ahead while the reply which makes them still streams.

A prefetch is no step of the loop: its result stays here until the reply is whole. It goes into the
log with `Replied` if that names the very same call and the rules, as they are then, allow it. A
broken stream discards all. Only calls before the first one that could change something are taken:
a read after a write must see what was written.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import takewhile

from magy_server.core.errors import MagyError
from magy_server.core.events import Event, Judged, Replied
from magy_server.core.ports import Delta
from magy_server.core.text.arguments import arguments_in
from magy_server.core.tool import Tool
from magy_server.core.values import Call, Decision, Facts, Hash
from magy_server.dataclass import dataclass
from magy_server.engine.calls import Outcome, supervised, timed
from magy_server.engine.context import RunContext
from magy_server.engine.feature_ports import Features
from magy_server.engine.judge import facts_of, offered
from magy_server.engine.log import Write
from magy_server.engine.rules import Law, law
from magy_server.engine.session import Session
from magy_server.engine.world import World

GRACE = 0.005
"""Seconds that a whole reply waits for reads that run ahead. Most end by then, and what is known is
made durable at once, instead of one after the other."""


class _QuietContext(RunContext):
    """Nobody knows of the call yet, so nobody is shown what it says."""

    def emit(self, text: str) -> None:
        pass


@dataclass(frozen=True, slots=True)
class _Found:
    """`law`: by which it was allowed, and by which it looks into files."""

    facts: Facts
    blobs: Mapping[Hash, bytes]
    law: Law
    decision: Decision


@dataclass(frozen=True, slots=True)
class Ran:
    """What came of a call that ran ahead. `duration` in seconds."""

    outcome: Outcome
    events: list[Event]
    duration: float


@dataclass(frozen=True, slots=True)
class _Ahead:
    call: Call
    looking: asyncio.Task[_Found | None]
    running: asyncio.Task[Ran | None]

    def is_(self, call: Call) -> bool:
        """Returns whether the reply names the very call that runs ahead."""
        same = (self.call.name, self.call.arguments) == (call.name, call.arguments)
        return same and call.invalid is None

    def cancel(self) -> None:
        self.looking.cancel()
        self.running.cancel()


def _only_reads(tool: Tool | None) -> bool:
    return tool is not None and tool.effect == "read"


class Early:
    """The prefetched calls of one reply at a time."""

    def __init__(self, session: Session, world: World, features: Features) -> None:
        self._session = session
        self._world = world
        self._features = features
        self._pieces: dict[str, list[str]] = {}
        self._ahead: dict[str, _Ahead] = {}
        self._group: asyncio.TaskGroup | None = None
        """Runs them, while a reply is asked for."""

    def begin(self, group: asyncio.TaskGroup) -> None:
        """A new reply is asked for; `group` runs what is called in it."""
        self.discard()
        self._group = group

    def take(self, id: str, delta: Delta, text: str) -> None:
        """More of the reply, of which `text` is what can be said by now. A call begins to run as
        soon as its arguments are complete."""
        if delta.kind != "call" or self._group is None:
            return
        tool = self._world.tools.there(self._session.state.root).get(delta.name)
        if tool is None or not _only_reads(tool):
            self._group = None  # what follows may depend on it
            return
        pieces = self._pieces.setdefault(id, [])
        pieces.append(text)
        if delta.done and id not in self._ahead:
            self._start(self._group, id, tool, "".join(pieces))

    def _start(self, group: asyncio.TaskGroup, id: str, tool: Tool, text: str) -> None:
        arguments = arguments_in(text)
        if arguments is not None and offered(self._session, tool.name):
            call = Call(id=id, name=tool.name, arguments=arguments)
            looking = group.create_task(self._look(call, tool), name=f"look ahead {id}")
            running = group.create_task(self._run(call, tool, looking), name=f"ahead {id}")
            self._ahead[id] = _Ahead(call, looking, running)

    async def _look(self, call: Call, tool: Tool) -> _Found | None:
        """None: it will be judged, and answered or asked about, in the ordinary way."""
        try:
            facts, blobs = await facts_of(self._session, self._world, self._features, tool, call)
            now = await law(self._session, self._world, known=True)
        except MagyError:
            return None
        decision = now.decide(tool, facts, call.arguments)
        return _Found(facts, blobs, now, decision) if decision.action == "allow" else None

    async def _run(
        self, call: Call, tool: Tool, looking: asyncio.Task[_Found | None]
    ) -> Ran | None:
        found = await looking
        if found is None:
            return None
        clock = self._world.clock
        began = clock.now()
        try:
            judged = Judged(call=call.id, facts=found.facts, decision=found.decision)
            context = _QuietContext(self._session, self._world, self._features, judged, found.law)
            outcome = await supervised(call, tool, context, self._world.results)
        except MagyError:
            return None
        return Ran(outcome, context.events, max(0.0, clock.now() - began))

    async def along(self, reply: Replied) -> Write:
        """Returns what to append with the whole reply: of its calls that run ahead, those that are
        allowed now, and the results of those that have ended within `GRACE`. The append conflicts
        if the workspace's grants are others by then."""
        self._keep_first(reply.calls)
        if not self._ahead:
            return Write([reply])
        await asyncio.wait([ahead.running for ahead in self._ahead.values()], timeout=GRACE)
        try:
            now = await law(self._session, self._world, known=True)
        except MagyError:  # one above is gone, say: the reply was paid for, and is kept
            return Write([reply])
        events: list[Event] = [reply]
        blobs: dict[Hash, bytes] = {}
        for call in reply.calls:
            ahead = self._ahead.get(call.id)
            if ahead and ahead.looking.done():
                write = self._allowed(ahead, call, ahead.looking.result(), now)
                events += write.events
                blobs |= write.blobs
        return Write(events, blobs, [now.project.stands])

    def _keep_first(self, calls: Sequence[Call]) -> None:
        """Forgets what ran ahead of a call that could change something: not every server sends the
        calls in the order in which the reply has them."""
        tools = self._world.tools.there(self._session.state.root)
        reads = takewhile(lambda call: _only_reads(tools.get(call.name)), calls)
        first = {call.id for call in reads}
        for id in self._ahead.keys() - first:
            self._ahead.pop(id).cancel()

    async def verdict(self, call: Call) -> Write | None:
        """Returns what to append for a call that was still looked at when the reply was appended;
        None: it is to be judged."""
        ahead = self._ahead.get(call.id)
        if ahead is None:
            return None
        found = await ahead.looking
        now = await law(self._session, self._world, known=True)
        write = self._allowed(ahead, call, found, now)
        return replace(write, others=[now.project.stands]) if write.events else None

    def _allowed(self, ahead: _Ahead, call: Call, found: _Found | None, now: Law) -> Write:
        """The verdict, and the result if there is one already; nothing if it is not allowed now."""
        if found is None or not ahead.is_(call) or now.identity != found.law.identity:
            self._ahead.pop(call.id, None)
            ahead.cancel()
            return Write([])
        events: list[Event] = [Judged(call=call.id, facts=found.facts, decision=found.decision)]
        blobs = dict(found.blobs)
        if ahead.running.done():
            self._ahead.pop(call.id, None)
            if ran := ahead.running.result():
                finished, kept = ran.outcome
                events += [timed(finished, ran.duration), *ran.events]
                blobs |= kept
        return Write(events, blobs)

    async def ran(self, call_id: str) -> Ran | None:
        """What became of a call that was allowed; None: it did not run ahead."""
        ahead = self._ahead.pop(call_id, None)
        return await ahead.running if ahead else None

    def discard(self) -> None:
        """What ran ahead counts no more."""
        for ahead in self._ahead.values():
            ahead.cancel()
        self._ahead.clear()
        self._pieces.clear()
