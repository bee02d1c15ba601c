"""What one client is shown of one session, at the pace at which it reads.

The outbox asks for more when the client has read; nothing waits here. A client that sleeps through
ten thousand deltas gets, when it wakes, the event that replaced them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from magy_server.api.connected import Outbox
from magy_server.api.service import Service
from magy_server.api.sessions.follow import Follower
from magy_server.engine.session import Session

PACE = 0.016
"""Seconds between two rounds of deltas: an editor draws no faster, and they merge meanwhile."""


class Subscription:
    """An outbox `Source`. `cursor` is the seq of the last entry the client has."""

    def __init__(self, service: Service, session: Session, outbox: Outbox, cursor: int) -> None:
        self._outbox = outbox
        self._follower = Follower(service, session, cursor)
        self._id = session.id
        self._loop = asyncio.get_running_loop()
        self._last = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._unwatch = session.watch(lambda: outbox.wake(self))

    def close(self) -> None:
        self._unwatch()
        self._outbox.forget(self)
        if self._timer:
            self._timer.cancel()

    async def pull(self, budget: int) -> Sequence[Mapping[str, Any]]:
        news = await self._follower.news(budget)
        return [self._message(update) for update in news] if news else self._paced()

    def _paced(self) -> Sequence[Mapping[str, Any]]:
        """The deltas so far, unless the last ones went out a moment ago."""
        wait = self._last + PACE - self._loop.time()
        if wait > 0:
            if self._timer is None:
                self._timer = self._loop.call_later(wait, self._again)
            return []
        messages = [self._message(update) for update in self._follower.deltas()]
        if messages:
            self._last = self._loop.time()
        return messages

    def _again(self) -> None:
        self._timer = None
        self._outbox.wake(self)

    def _message(self, update: dict[str, Any]) -> dict[str, Any]:
        return {
            "jsonrpc": "2.0",
            "method": "magy/session/update",
            "params": {"sessionId": self._id, "update": update},
        }
