"""What inline completion takes is in a stream of its own for each day (`completion/2026-11-26`),
which all processes on one store share: it counts after a restart, too."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import date, timedelta
from typing import Any

from magy_server.core.agents.tree import Stream
from magy_server.core.errors import Conflict
from magy_server.core.events import Suggested
from magy_server.core.ports import Batch, Clock, Store
from magy_server.dataclass import dataclass

PREFIX = "completion/"
KEPT = 90
"""Days after which a day's stream is removed."""


@dataclass(frozen=True, slots=True)
class Day:
    """`cost` in US dollars, where prices are known; `estimated`: requests whose provider did not
    say what they took. `fault`: why the latest request failed; "" if it did not."""

    requests: int = 0
    tokens: int = 0
    cost: float = 0.0
    estimated: int = 0
    fault: str = ""

    def __add__(self, event: Suggested) -> Day:
        return Day(
            self.requests + 1,
            self.tokens + event.usage.total,
            self.cost + (event.cost or 0.0),
            self.estimated + event.usage.unreported,
            # What was cancelled says nothing about the model.
            self.fault if event.outcome == "cancelled" else event.why,
        )

    @classmethod
    def of(cls, summary: Mapping[str, Any]) -> Day:
        """From the summary of the stream; what is missing there counts as nothing."""
        return cls(**{name: summary[name] for name in cls.__slots__ if name in summary})


def stream_of_day(now: float) -> Stream:
    """`now`: seconds since the epoch; days are those of this machine's time zone."""
    return Stream(f"{PREFIX}{date.fromtimestamp(now).isoformat()}")


class Spending:
    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._recording = asyncio.Lock()

    async def today(self) -> Day:
        """Returns the day with all whose recording has begun here. Raises StoreError."""
        async with self._recording:
            info = await self._store.info(stream_of_day(self._clock.now()))
        return Day.of(info.summary) if info else Day()

    async def record(self, event: Suggested) -> Day:
        """Returns the day with it. Raises StoreError."""
        async with self._recording:
            return await self._recorded(event)

    async def _recorded(self, event: Suggested) -> Day:
        while True:
            stream = stream_of_day(self._clock.now())
            info = await self._store.info(stream)
            day = (Day.of(info.summary) if info else Day()) + event
            summary = {name: getattr(day, name) for name in Day.__slots__}
            batch = Batch(stream, info.head if info else 0, [event], summary=summary)
            try:
                await self._store.append([batch])
            except Conflict:  # another process has asked meanwhile
                continue
            if info is None:
                await self._tidy()
            return day

    async def _tidy(self) -> None:
        """Removes what is older than anybody asks for."""
        oldest = date.fromtimestamp(self._clock.now()) - timedelta(days=KEPT)
        for head in await self._store.heads(PREFIX):
            if head.stream < f"{PREFIX}{oldest.isoformat()}":
                await self._store.delete(head.stream)
