"""What one client is shown of one session: a cursor into the log and one into what streams.

The outbox asks for more when the client has read; nothing waits here. A client that sleeps through
ten thousand deltas gets, when it wakes, the event that replaced them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from magy_server.core import updates
from magy_server.core.events import Entry
from magy_server.engine.engine import Engine
from magy_server.engine.session import Partial, Session
from magy_server.lsp.outbox import Outbox

PAGE = 64
"""Entries read from the store at once."""
PACE = 0.016
"""Seconds between two rounds of deltas: an editor draws no faster, and they merge meanwhile."""


class Subscription:
    """An outbox `Source`. `cursor` is the seq of the last entry the client has."""

    def __init__(self, engine: Engine, session: Session, outbox: Outbox, cursor: int) -> None:
        self.cursor = cursor
        self._engine = engine
        self._session = session
        self._outbox = outbox
        self._id = session.stream.removeprefix("session/")
        self._sent: dict[tuple[str, str], tuple[Partial, int]] = {}
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
        entries = await self._entries()
        if not entries:
            return self._paced()
        texts = await self._engine.texts_of(entries)
        messages: list[Mapping[str, Any]] = []
        size = 0
        for entry in entries:
            if not self._session.loaded:
                self._session.settle(entry.event)
            for page_item in page([entry], texts):
                messages.append(self._message(stamped(page_item)))
                size += len(str(page_item["update"]))
            self.cursor = entry.seq
            if size > budget:
                break
        return messages

    def _paced(self) -> Sequence[Mapping[str, Any]]:
        """The deltas so far, unless the last ones went out a moment ago."""
        wait = self._last + PACE - self._loop.time()
        if wait > 0:
            if self._timer is None:
                self._timer = self._loop.call_later(wait, self._again)
            return []
        messages = [self._message(update) for update in self._deltas()]
        if messages:
            self._last = self._loop.time()
        return messages

    def _again(self) -> None:
        self._timer = None
        self._outbox.wake(self)

    async def _entries(self) -> Sequence[Entry]:
        known = self._session.entries_after(self.cursor)
        if known is not None:
            return known[:PAGE]
        store = self._engine.world.store
        return await store.read(self._session.stream, after=self.cursor, limit=PAGE)

    def _deltas(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        partials = self._session.partials
        self._sent = {key: sent for key, sent in self._sent.items() if key in partials}
        for key, partial in partials.items():
            before, offset = self._sent.get(key, (partial, 0))
            if before is not partial:  # a reply that is tried again begins anew
                if partial.kind in ("text", "thinking"):
                    found.append(_emptied(partial))
                offset = 0
            if partial.size > offset:
                found.extend(_chunk(partial, offset))
            self._sent[key] = (partial, partial.size)
        return found

    def _message(self, update: dict[str, Any]) -> dict[str, Any]:
        return {
            "jsonrpc": "2.0",
            "method": "magy/session/update",
            "params": {"sessionId": self._id, "update": update},
        }


def page(entries: Sequence[Entry], texts: Mapping[str, str]) -> list[dict[str, Any]]:
    """Entries as `wire.Update`s: {seq, at, update}."""
    return [
        {"seq": entry.seq, "at": entry.at, "update": update}
        for entry in entries
        for update in updates.updates(entry, texts)
    ]


def stamped(item: dict[str, Any]) -> dict[str, Any]:
    """An update of the log carries its place in `_meta.magy`; a delta has none."""
    update: dict[str, Any] = item["update"]
    meta = {**update.get("_meta", {}).get("magy", {}), "seq": item["seq"], "at": item["at"]}
    return {**update, "_meta": {"magy": meta}}


def _emptied(partial: Partial) -> dict[str, Any]:
    if partial.kind == "thinking":
        return {"sessionUpdate": "agent_thought", "messageId": f"{partial.id}.thought",
                "content": []}  # fmt: skip
    return {"sessionUpdate": "agent_message", "messageId": partial.id, "content": []}


def _chunk(partial: Partial, offset: int) -> list[dict[str, Any]]:
    text = {"type": "text", "text": partial.since(offset)}
    match partial.kind:
        case "text":
            return [{"sessionUpdate": "agent_message_chunk", "messageId": partial.id,
                     "content": text}]  # fmt: skip
        case "thinking":
            return [{"sessionUpdate": "agent_thought_chunk", "messageId": f"{partial.id}.thought",
                     "content": text}]  # fmt: skip
        case "output":
            return [{"sessionUpdate": "tool_call_content_chunk", "toolCallId": partial.id,
                     "content": {"type": "content", "content": text}}]  # fmt: skip
        case "call" if offset == 0:
            return [updates.tool_call(partial.id, name=partial.name, title=partial.name,
                                      status="pending")]  # fmt: skip
        case "notice":
            return [updates.notice("warning", "Model", str(text["text"]).strip())]
    return []
