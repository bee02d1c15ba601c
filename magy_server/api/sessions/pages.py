"""This module reads a session's log from the store in bounded pages, for clients."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from magy_server.core import updates
from magy_server.core.agents.tree import Stream
from magy_server.core.events import Admitted, Entry
from magy_server.core.ports import Store, StreamInfo
from magy_server.core.updates import Update, shown
from magy_server.core.values import Hash
from magy_server.dataclass import dataclass

if TYPE_CHECKING:  # who only reads does not wait for it
    from magy_server.engine.session import Session

MOST_ENTRIES = 500
PAGE = 64
"""Entries of a live log that are read at once."""
AT_ONCE = 200
"""Entries of a whole log, or streams of a whole list, that are read at once."""


@dataclass(frozen=True, slots=True)
class Attached:
    """What a newly attached client is shown: a summary and a page of the log. `texts` has the
    diffs, by hash, that the entries show."""

    head: int
    info: StreamInfo
    entries: Sequence[Entry]
    texts: dict[str, str]


async def attach(store: Store, info: StreamInfo, after: int | None, tail: int) -> Attached:
    """The last `tail` turns, or what came after an entry the client has; in either case no more
    than the newest `MOST_ENTRIES`, and nothing that has come after `info`, which says how the
    session is."""
    if after is None:
        after = await _before_turns(store, info.stream, tail, info.head)
    first = max(after, info.head - MOST_ENTRIES)
    entries = await store.read(info.stream, after=first, before=info.head + 1)
    return Attached(info.head, info, entries, await texts_of(store, entries))


async def events(
    store: Store, info: StreamInfo, after: int | None, before: int | None, limit: int
) -> Attached:
    if after is None:
        entries = await store.read(info.stream, before=before or info.head + 1, limit=limit)
    else:
        entries = await store.read(info.stream, after=after, before=before, limit=limit)
    return Attached(info.head, info, entries, await texts_of(store, entries))


async def whole(store: Store, stream: Stream, after: int = 0) -> AsyncIterator[Sequence[Entry]]:
    """Gives the log after an entry, to its end, in parts."""
    while entries := await store.read(stream, after=after, limit=AT_ONCE):
        yield entries
        after = entries[-1].seq


async def newer(store: Store, session: Session, seq: int) -> Sequence[Entry]:
    """Returns at most a page of what the log has after an entry, from memory if that goes back so
    far."""
    known = session.log.entries_after(seq)
    if known is None:
        return await store.read(session.stream, after=seq, limit=PAGE)
    return known[:PAGE]


async def every(
    store: Store, prefix: str, cursor: str | None = None, **which: Any
) -> AsyncIterator[Sequence[StreamInfo]]:
    """A list of streams (see `Store.streams`) to its end, a page at a time."""
    while True:
        page = await store.streams(prefix, cursor=cursor, limit=AT_ONCE, **which)
        yield page.items
        if (cursor := page.cursor) is None:
            return


async def texts_of(store: Store, entries: Sequence[Entry]) -> dict[Hash, str]:
    """Returns the diffs that the entries show, by hash."""
    return await blob_texts(store, {hash for entry in entries for hash in shown(entry.event)})


async def blob_texts(store: Store, hashes: Collection[Hash]) -> dict[Hash, str]:
    found = await store.blobs(list(hashes)) if hashes else {}
    return {hash: data.decode("utf-8", "replace") for hash, data in found.items()}


def page(entries: Sequence[Entry], texts: Mapping[str, str]) -> list[dict[str, Any]]:
    """Entries as items of a page of the log: {seq, at, update}."""
    return [
        {"seq": entry.seq, "at": entry.at, "update": update}
        for entry in entries
        for update in updates.updates(entry, texts)
    ]


def stamped(item: dict[str, Any]) -> Update:
    """An update of the log carries its place in `_meta.magy`; a delta has none."""
    update: Update = item["update"]
    meta = {**update.get("_meta", {}).get("magy", {}), "seq": item["seq"], "at": item["at"]}
    return {**update, "_meta": {"magy": meta}}


async def _before_turns(store: Store, stream: Stream, tail: int, head: int) -> int:
    """The seq before the last `tail` turns, the prompt that opened the first of them included."""
    if tail == 0:
        return head
    starts = await store.turn_starts(stream, tail)
    if len(starts) < tail:
        return 0
    opening = (await store.read(stream, after=starts[0] - 1, limit=1))[0].event
    first = opening.first if isinstance(opening, Admitted) else 0
    return min(starts[0], first or starts[0]) - 1
