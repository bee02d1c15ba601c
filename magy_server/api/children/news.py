"""This module tells a client when children change, in every tree of which it watches a session.

Whoever appends to a child says so on the bus, whichever process that is. What comes in a burst is
looked up once, in the summaries beside the logs; a client hears only of what looks different.
"""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from magy_server.api.connected import Connected
from magy_server.core.agents import tree
from magy_server.core.agents.child import ChildInfo
from magy_server.core.errors import NotFound
from magy_server.core.summary import Row
from magy_server.engine.trees import DELETED, hear

TOGETHER = 0.05
"""Seconds in which changes are gathered."""
KEPT = 512
"""Children of which it is known what was said last."""


class ChildNews:
    """Tells one client about child agents. One instance per connection."""

    def __init__(self, at: Connected) -> None:
        self._service = at.service
        self._children = at.service.children
        self._notify = at.notify
        self._spawn = at.spawn
        self._watched: Counter[str] = Counter()
        """By root: how many sessions of its tree the client is subscribed to."""
        self._stops: dict[str, Callable[[], None]] = {}
        self._changed: dict[str, None] = {}
        self._said: OrderedDict[str, Mapping[str, Any]] = OrderedDict()
        """By child, but for the time."""
        self._telling: asyncio.Task[None] | None = None
        self._deletions = 0
        self._stop_hearing = at.service.world.bus.subscribe(DELETED, self._hear_deleted)

    def follow(self, session_id: str) -> None:
        root = tree.root(session_id)
        self._watched[root] += 1
        if root not in self._stops:
            self._stops[root] = hear(self._service.world.bus, root, self._hear)

    def leave(self, session_id: str) -> None:
        root = tree.root(session_id)
        self._watched[root] -= 1
        if self._watched[root] < 1:
            del self._watched[root]
            self._stops.pop(root)()

    def close(self) -> None:
        self._stop_hearing()
        for stop in self._stops.values():
            stop()
        self._stops.clear()
        self._watched.clear()
        self._changed.clear()

    def _hear(self, session: str) -> None:
        self._look_at((session, *tree.ancestors(session)))  # they count what is below them

    def _hear_deleted(self, message: Mapping[str, Any]) -> None:
        """The last that is said of a child is that it is closed: nobody can ask how it is."""
        session = str(message["session"])
        self._deletions += 1
        if tree.root(session) not in self._watched:
            return
        self._changed.pop(session, None)
        if message["child"]:
            row = Row(session, message["child"], 0, message["created"], message["updated"])
            info = replace(row.info((), queued=False), status="closed", waiting=0)
            self._say(info, deleted=True)
        self._said.pop(session, None)
        self._look_at(tree.ancestors(session))

    def _look_at(self, sessions: Iterable[str]) -> None:
        for one in sessions:
            if tree.parent(one) is not None:
                self._changed[one] = None
        if self._changed and (self._telling is None or self._telling.done()):
            self._telling = self._spawn(self._gathered())

    async def _gathered(self) -> None:
        while self._changed:
            await asyncio.sleep(TOGETHER)
            changed, self._changed = self._changed, {}
            for session in changed:
                await self._tell(session)

    async def _tell(self, session: str) -> None:
        if tree.root(session) not in self._watched:
            return
        deletions = self._deletions
        try:
            info = await self._children.info(session)
        except NotFound:  # deleted since, and that was said
            return
        if deletions == self._deletions:
            self._say(info)
        else:  # it may have been deleted while it was looked up
            self._look_at([session])

    def _say(self, info: ChildInfo, *, deleted: bool = False) -> None:
        from magy_server.api.children.present import changed

        change = changed(info, deleted=deleted)
        params = change.model_dump(mode="json", by_alias=True)
        seen = {**params, "child": {**params["child"], "updatedAt": ""}}
        if self._said.get(info.session) == seen:
            return
        self._said[info.session] = seen
        self._said.move_to_end(info.session)
        if len(self._said) > KEPT:
            self._said.popitem(last=False)
        self._notify("magy/child/changed", params)
