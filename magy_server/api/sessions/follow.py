"""What somebody who watches one session has not seen yet, as session updates.

A cursor into the log and one into what streams. Whoever sleeps through ten thousand deltas gets,
on waking, the event that replaced them.
"""

from __future__ import annotations

from magy_server.api.service import Service
from magy_server.api.sessions.pages import newer, page, stamped, texts_of
from magy_server.core import updates
from magy_server.core.updates import Update
from magy_server.engine.session import Session
from magy_server.engine.streaming import Partial


class Follower:
    """`cursor` is the seq of the last entry that was seen."""

    def __init__(self, service: Service, session: Session, cursor: int) -> None:
        self.cursor = cursor
        self._service = service
        self._session = session
        self._sent: dict[tuple[str, str], tuple[Partial, int]] = {}

    async def news(self, budget: int) -> list[Update]:
        """What the log has after the cursor: of about `budget` characters, at least one entry's,
        at most a page's. Nothing when the log was seen to its end."""
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
        """What has streamed since the last call. Call it when there is no news: an event replaces
        what was streamed before it."""
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
