"""This module writes a session's transcript as paragraphs of Markdown, from the store alone."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from magy_server.api.sessions.pages import blob_texts, whole
from magy_server.core.events import Entry
from magy_server.core.ports import Store, StreamInfo
from magy_server.core.text.markdown import Markdown, shown_blobs
from magy_server.core.text.sanitizing import harmless
from magy_server.core.values import Hash

KEPT = 50
"""Diffs that are kept from one look at a session to the next."""


class Paragraphs:
    """Grows with its session; only what is new is read. Nothing in it controls a terminal."""

    def __init__(self, store: Store, info: StreamInfo) -> None:
        self._store = store
        self._stream = info.stream
        self._markdown = Markdown(str(info.summary.get("title") or ""))
        self._cursor = 0
        self._texts: dict[Hash, str] = {}

    async def more(self) -> AsyncIterator[str]:
        """What has come since the last call. Not to be called twice at once."""
        async for entries in whole(self._store, self._stream, self._cursor):
            await self._learn(entries)
            for text in self._markdown.paragraphs(entries, self._texts):
                yield harmless(text)
            self._cursor = entries[-1].seq

    async def _learn(self, entries: Sequence[Entry]) -> None:
        """The diffs that they show. One may be shown a little later than it is known."""
        while len(self._texts) > KEPT:
            del self._texts[next(iter(self._texts))]
        hashes = {hash for entry in entries for hash in shown_blobs(entry.event)}
        self._texts |= await blob_texts(self._store, hashes - self._texts.keys())
