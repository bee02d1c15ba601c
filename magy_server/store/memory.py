"""`MemoryStore` keeps everything in memory, and behaves like the store on disk in all other
respects."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from magy_server.core.agents.tree import Stream
from magy_server.core.errors import NotFound, StoreUnavailable
from magy_server.core.events import Entry
from magy_server.core.ports import Batch, Head, Lease, Page, Snapshot, StreamInfo
from magy_server.core.values import Hash
from magy_server.store.append_rules import Line, Position, Standing, draft, lost, place, position
from magy_server.store.decoding import entry_of


class MemoryStore:
    """Keeps encoded lines, as the store on disk does, so that what is read back is a new value.

    `clock` gives seconds since the epoch, UTC.
    """

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._lines: dict[str, list[Line]] = {}
        self._standings: dict[Stream, Standing] = {}
        self._blobs: dict[Hash, bytes] = {}
        self._refs: dict[Hash, set[str]] = {}
        self._snapshots: dict[str, Snapshot] = {}
        self._epochs: dict[str, int] = {}
        self._held: dict[str, Lease] = {}
        self._closed = False

    async def append(self, batches: Sequence[Batch], lease: Lease | None = None) -> list[Entry]:
        self._check_open()
        drafted = draft(batches, lease)
        if lease is not None and self._held.get(lease.root) != lease:
            raise lost(lease)
        placed = place(drafted, self, self._clock())
        for line in placed.lines:
            self._lines.setdefault(line.stream, []).append(line)
        self._standings.update(placed.standings)
        self._blobs.update(placed.blobs)
        for stream, hash in placed.refs:
            self._refs.setdefault(hash, set()).add(stream)
        return placed.entries

    async def read(
        self, stream: Stream, *, after: int = 0, before: int | None = None, limit: int | None = None
    ) -> list[Entry]:
        self._check_open()
        lines = self._lines.get(stream, [])
        end = len(lines) if before is None else max(0, before - 1)
        chosen = lines[max(0, after) : end]
        if limit is not None:
            limit = max(0, limit)
            last = before is not None and after <= 0
            chosen = chosen[max(0, len(chosen) - limit) :] if last else chosen[:limit]
        return [entry_of(line.stream, line.seq, line.at, line.body) for line in chosen]

    async def turn_starts(self, stream: Stream, last: int, before: int | None = None) -> list[int]:
        self._check_open()
        starts = [
            line.seq
            for line in self._lines.get(stream, [])
            if line.opens and (before is None or line.seq < before)
        ]
        return starts[-last:] if last > 0 else []

    async def head(self, stream: Stream) -> int:
        self._check_open()
        standing = self._standings.get(stream)
        return standing.head if standing else 0

    async def info(self, stream: Stream) -> StreamInfo | None:
        self._check_open()
        standing = self._standings.get(stream)
        return standing.info(stream) if standing else None

    async def streams(
        self,
        prefix: str,
        *,
        first_root: str | None = None,
        root: str | None = None,
        flat: bool = False,
        cursor: str | None = None,
        limit: int = 50,
    ) -> Page:
        self._check_open()
        start, limit = position(cursor), max(1, limit)
        places = [
            Position(0 if first_root is None or s.root == first_root else 1, s.updated, name)
            for name, s in self._standings.items()
            if name.startswith(prefix) and (root is None or s.root == root)
            if not flat or "/" not in name[len(prefix) :]
        ]
        places.sort(key=_order)
        if start is not None:
            places = [place for place in places if _order(place) > _order(start)]
        items = [self._standings[p.stream].info(p.stream) for p in places[:limit]]
        more = len(places) > limit
        return Page(items, places[limit - 1].cursor() if more else None)

    async def below(self, stream: Stream) -> list[StreamInfo]:
        self._check_open()
        names = sorted(name for name in self._standings if name.startswith(f"{stream}/"))
        return [self._standings[name].info(name) for name in names]

    async def heads(self, prefix: str) -> Sequence[Head]:
        self._check_open()
        found = [(name, s) for name, s in self._standings.items() if name.startswith(prefix)]
        found.sort(key=lambda one: (-one[1].updated, one[0]))
        return [Head(name, standing.head, standing.created) for name, standing in found]

    async def blob(self, hash: Hash) -> bytes:
        return (await self.blobs([hash]))[hash]

    async def blobs(self, hashes: Sequence[Hash]) -> dict[Hash, bytes]:
        self._check_open()
        for hash in hashes:
            if hash not in self._blobs:
                raise NotFound(f"There is no blob {hash}: its session may have been deleted.")
        return {hash: self._blobs[hash] for hash in hashes}

    async def keep(self, stream: Stream, snapshot: Snapshot) -> None:
        if await self.head(stream) >= snapshot.seq:
            self._snapshots[stream] = snapshot

    async def snapshot(self, stream: Stream) -> Snapshot | None:
        self._check_open()
        return self._snapshots.get(stream)

    async def delete(self, stream: Stream, *, before: float | None = None) -> bool:
        self._check_open()
        gone = {n for n in self._standings if n == stream or n.startswith(f"{stream}/")}
        if before is not None and any(self._standings[n].updated >= before for n in gone):
            return False
        for name in gone:
            del self._standings[name], self._lines[name]
            self._snapshots.pop(name, None)
        for hash, streams in tuple(self._refs.items()):
            streams -= gone
            if not streams:
                del self._refs[hash], self._blobs[hash]
        return bool(gone)

    async def weigh(self, streams: Sequence[Stream]) -> int:
        self._check_open()
        gone = set[str](streams)
        lines = sum(len(line.body) for name in gone for line in self._lines.get(name, ()))
        kept = sum(len(self._snapshots[name].body) for name in gone if name in self._snapshots)
        only = (hash for hash, named in self._refs.items() if named and named <= gone)
        return lines + kept + sum(len(self._blobs[hash]) for hash in only)

    async def lease(self, root: str) -> Lease | None:
        self._check_open()
        if root in self._held:
            return None
        self._epochs[root] = self.epoch(root) + 1
        self._held[root] = Lease(root, self._epochs[root])
        return self._held[root]

    async def release(self, lease: Lease) -> None:
        if self._held.get(lease.root) == lease:
            del self._held[lease.root]

    async def changed(self) -> bool:
        """Returns False: no other process can see this store."""
        self._check_open()
        return False

    async def close(self) -> None:
        self._closed = True
        self._held.clear()

    def _check_open(self) -> None:
        if self._closed:
            raise StoreUnavailable("The store in memory is closed; open a new one.")

    # --- what `place` asks ----------------------------------------------------------------------

    def standing(self, stream: Stream) -> Standing | None:
        return self._standings.get(stream)

    def epoch(self, root: str) -> int:
        return self._epochs.get(root, 0)

    def holds(self, hash: Hash) -> bool:
        return hash in self._blobs


def _order(place: Position) -> tuple[int, float, str]:
    return place.group, -place.updated, place.stream
