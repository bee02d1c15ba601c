"""Slots limit how many turns of children go on at once, and permits how many requests to models.

Both are first come, first served and can be resized at any time. What only waits (for a person, for
another agent, to try again) holds neither, so nobody can wait for somebody who waits for them.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from magy_server.core.agents.tree import Stream
from magy_server.core.spawn_settings import SpawnSettings, clamped
from magy_server.engine.feature_ports import FreeSlot, Slot
from magy_server.engine.trees import is_child

PER_PROVIDER = 10
"""Requests to one provider at once."""
REQUESTS = 20
"""Requests at once, in all."""


class Permits:
    """At most `size` are held at a time; who comes first is served first. `async with` holds one.
    All methods are to be called on the loop."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.used = 0
        """Above `size` for a while after that was made smaller: nothing is taken away."""
        self._line: OrderedDict[asyncio.Future[None], None] = OrderedDict()

    @property
    def waiting(self) -> int:
        return sum(not turn.done() for turn in self._line)

    async def acquire(self) -> None:
        """Cancelled, it has taken none."""
        if self.used < self.size:  # then nobody waits: see `_serve`
            self.used += 1
            return
        turn = asyncio.get_running_loop().create_future()
        self._line[turn] = None
        taken = False
        try:
            await turn
            taken = True
        finally:
            self._line.pop(turn, None)
            if not taken and turn.done() and not turn.cancelled():  # given at the last moment
                self.release()

    def release(self) -> None:
        self.used -= 1
        self._serve()

    def resize(self, size: int) -> None:
        """`size` is at least 1."""
        self.size = size
        self._serve()

    def _serve(self) -> None:
        while self._line and self.used < self.size:
            turn, _ = self._line.popitem(last=False)
            if not turn.done():  # else who waited has been cancelled
                self.used += 1
                turn.set_result(None)

    async def __aenter__(self) -> None:
        await self.acquire()

    async def __aexit__(self, *exc: object) -> None:
        self.release()


class LimitedSlots:
    """One for a process."""

    def __init__(self, moved: Callable[[Stream], None] = lambda stream: None) -> None:
        """`moved` is called when a session has got in line, and when it has left it."""
        self.limits = SpawnSettings()
        self.children = Permits(self.limits.max_concurrent)
        self._all = Permits(REQUESTS)
        self._providers: dict[str, Permits] = {}
        self._working: set[str] = set()
        self._queued: set[str] = set()
        self._moved = moved

    def configure(self, asked: SpawnSettings) -> tuple[str, ...]:
        """Holds from now on, for what is running too; a limit below what is in use takes nothing
        away. The answer: a sentence for each value that was clamped."""
        self.limits, said = clamped(asked)
        self.children.resize(self.limits.max_concurrent)
        return said

    @asynccontextmanager
    async def requests(self, provider: str) -> AsyncIterator[None]:
        own = self._providers.get(provider) or self._providers.setdefault(
            provider, Permits(PER_PROVIDER)
        )
        async with own, self._all:
            yield

    # --- children -------------------------------------------------------------------------------

    def begin(self, stream: Stream) -> None:
        if is_child(stream):
            self._working.add(stream)

    def end(self, stream: Stream) -> None:
        self._working.discard(stream)

    def working(self) -> int:
        """Working children in this process, those that wait too."""
        return len(self._working)

    def waiting(self) -> int:
        """How many of them wait for a slot."""
        return len(self._queued)

    def queued(self, stream: Stream) -> bool:
        return stream in self._queued

    def slot(self, stream: Stream) -> Slot:
        """A root needs none and always has it: its turns are serial by themselves."""
        return _ChildSlot(self, stream) if is_child(stream) else FreeSlot()

    async def _take(self, stream: Stream) -> None:
        waits = self.children.used >= self.children.size
        self._queued.add(stream)
        if waits:
            self._moved(stream)
        try:
            await self.children.acquire()
        finally:
            self._queued.discard(stream)
            if waits:
                self._moved(stream)


class _ChildSlot(Slot):
    """The place of a child's turn among those of the children that work."""

    def __init__(self, slots: LimitedSlots, stream: Stream) -> None:
        self._slots = slots
        self._stream = stream
        self.taken = False

    async def take(self) -> None:
        if not self.taken:
            await self._slots._take(self._stream)
            self.taken = True

    def give_back(self) -> None:
        if self.taken:
            self.taken = False
            self._slots.children.release()
