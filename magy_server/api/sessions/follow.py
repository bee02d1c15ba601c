"""A follower turns what a watcher of one session has not seen yet into session updates.

A cursor into the log and one into what streams. Whoever sleeps through ten thousand deltas gets,
on waking, the event that replaced them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from magy_server.api.connected import Outbox, notification
from magy_server.api.service import Service
from magy_server.api.sessions.pages import newer, page, stamped, texts_of
from magy_server.core import updates
from magy_server.core.updates import Update
from magy_server.engine.session import Session
from magy_server.engine.streaming import Partial

PACE = 0.016
"""Seconds between two rounds of deltas: an editor draws no faster, and they merge meanwhile."""


class Follower:
    """`cursor` is the seq of the last entry that was seen."""

    def __init__(self, service: Service, session: Session, cursor: int) -> None:
        self.cursor = cursor
        self._service = service
        self._session = session
        self._sent: dict[tuple[str, str], tuple[Partial, int]] = {}

    @property
    def behind(self) -> bool:
        """Whether there may be news."""
        log = self._session.log
        return not log.loaded or log.state.seq > self.cursor

    async def news(self, budget: int) -> list[Update]:
        """Returns what the log has after the cursor: about `budget` characters, at least one
        entry's, at most a page's. Returns nothing at the end of the log."""
        if not self.behind:
            return []
        store = self._service.world.store
        entries = await newer(store, self._session, self.cursor)
        texts = await texts_of(store, entries)
        found: list[Update] = []
        size = 0
        for entry in entries:
            if not self._session.log.loaded:
                self._session.streaming.settle(entry.event)
            for item in page([entry], texts):
                found.append(stamped(item))
                size += len(str(item["update"]))
            self.cursor = entry.seq
            if size > budget:
                break
        return found

    def deltas(self) -> list[Update]:
        """Returns what has streamed since the last call. Call it when there is no news: an event
        replaces what was streamed before it. Nothing is shown before the entries that came before
        it in another process, which may have to be read first."""
        if self._session.reading_on:
            return []
        found: list[Update] = []
        partials = self._session.streaming.partials
        self._sent = {key: sent for key, sent in self._sent.items() if key in partials}
        for key, partial in partials.items():
            before, offset = self._sent.get(key, (partial, 0))
            if before is not partial:  # a reply that is tried again begins anew
                if partial.kind in ("text", "thinking"):
                    found.append(updates.emptied(partial.kind, partial.id))
                offset = 0
            if partial.size > offset:
                found.extend(_chunk(partial, offset))
            self._sent[key] = (partial, partial.size)
        return found


def _chunk(partial: Partial, offset: int) -> list[Update]:
    if partial.kind == "call" and offset:  # its arguments are shown when they are whole
        return []
    found = updates.chunk(partial.kind, partial.id, partial.since(offset), partial.name)
    return [found] if found else []


class Subscription:
    """What one client is shown of one session, at the pace at which it reads: an outbox `Source`,
    asked for more when the client has read. Nothing waits here. `cursor` is the seq of the last
    entry the client has."""

    def __init__(self, service: Service, session: Session, outbox: Outbox, cursor: int) -> None:
        self._outbox = outbox
        self._follower = Follower(service, session, cursor)
        self._id = session.id
        self._loop = asyncio.get_running_loop()
        self._last = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._unwatch = session.watch(self._grown)

    @property
    def cursor(self) -> int:
        return self._follower.cursor

    def close(self) -> None:
        self._unwatch()
        self._outbox.forget(self)
        if self._timer:
            self._timer.cancel()

    def _grown(self) -> None:
        """Deltas alone wait for the timer, if it runs."""
        if self._timer is None or self._follower.behind:
            self._outbox.wake(self)

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

    def _message(self, update: Update) -> Mapping[str, Any]:
        return notification("magy/session/update", {"sessionId": self._id, "update": update})
