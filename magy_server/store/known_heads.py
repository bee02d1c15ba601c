"""This module keeps lists of heads: every turn asks several times how far hundreds of reviews have
come, and in most turns none has moved."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import NamedTuple

from magy_server.core.agents.tree import Stream
from magy_server.core.ports import Head
from magy_server.store import sql
from magy_server.store.database import Database


class _List(NamedTuple):
    version: int
    heads: Sequence[Head]


class KnownHeads:
    """`writer`: the connection of all writes of this process. Its data version tells of commits
    of others; `moved` and `forget` tell of its own."""

    def __init__(self, writer: Database) -> None:
        self._writer = writer
        self._lists: dict[str, _List] = {}
        self._moves = 0

    async def below(self, prefix: str) -> Sequence[Head]:
        """The same list as long as none of its streams may have moved. Raises StoreError."""
        known, moves = self._lists.get(prefix), self._moves
        # An append empties the page cache of every connection but its own; this reads many pages.
        work = partial(sql.heads, prefix=prefix, known=known and known.version)
        version, heads = await self._writer.run(work)
        if heads is None:
            assert known is not None
            return known.heads
        if moves == self._moves:
            self._lists[prefix] = _List(version, heads)
        return heads

    def moved(self, streams: Iterable[Stream]) -> None:
        """Called before this process writes to these streams."""
        self._moves += 1
        for prefix in [p for p in self._lists if any(s.startswith(p) for s in streams)]:
            del self._lists[prefix]

    def forget(self) -> None:
        """Called before this process deletes streams."""
        self._moves += 1
        self._lists.clear()
