"""Every store judges an append with `place`, which needs no database, so all stores judge alike.

The values here are named tuples, not frozen dataclasses: they are made for every entry written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from itertools import chain
from typing import NamedTuple, Protocol

import orjson

from magy_server.core.agents.tree import Stream
from magy_server.core.codec import blobs, encode, opens_turn
from magy_server.core.errors import Conflict, InvalidRequest
from magy_server.core.events import Entry, Event, Opened
from magy_server.core.ports import Batch, Lease, StreamInfo
from magy_server.core.reviews.review_events import Reviewed
from magy_server.core.values import Hash, digest
from magy_server.dataclass import dataclass


class Line(NamedTuple):
    """An entry as it is stored. `opens`: it opens a turn. `body` is the event as JSON."""

    stream: Stream
    seq: int
    at: float
    opens: bool
    body: bytes


class Standing(NamedTuple):
    """What a store knows of a stream besides its entries; `summary` is JSON."""

    root: str | None
    head: int
    created: float
    updated: float
    summary: bytes

    def info(self, stream: Stream) -> StreamInfo:
        return StreamInfo(
            stream, self.root, self.head, self.created, self.updated, orjson.loads(self.summary)
        )


class View(Protocol):
    """The store as it stands when an append is judged."""

    def standing(self, stream: Stream) -> Standing | None: ...

    def epoch(self, root: str) -> int:
        """Returns the current epoch of the root's lease, or 0 when nobody ever held it."""

    def holds(self, hash: Hash) -> bool: ...


class Draft(NamedTuple):
    """One append with its events encoded: what can be done before the store is asked."""

    batches: tuple[DraftBatch, ...]
    lease: Lease | None


class DraftBatch(NamedTuple):
    stream: Stream
    after: int
    events: tuple[Event, ...]
    bodies: tuple[bytes, ...]
    needs: frozenset[Hash]
    blobs: Mapping[Hash, bytes]
    summary: bytes | None

    @property
    def empty(self) -> bool:
        """Whether it only says where the stream must stand."""
        return not self.events and not self.blobs and self.summary is None


@dataclass(slots=True)
class Placement:
    """What an accepted append changes. `refs` are (stream, hash): who keeps which blob alive."""

    entries: list[Entry] = field(default_factory=list)
    lines: list[Line] = field(default_factory=list)
    standings: dict[Stream, Standing] = field(default_factory=dict)
    blobs: dict[Hash, bytes] = field(default_factory=dict)
    refs: set[tuple[str, Hash]] = field(default_factory=set)


def draft(batches: Sequence[Batch], lease: Lease | None) -> Draft:
    """Encodes the events of an append. Raises TypeError for a summary that is not JSON, ValueError
    for text that is not Unicode."""
    return Draft(tuple(_draft(batch) for batch in batches), lease)


def _draft(batch: Batch) -> DraftBatch:
    events = tuple(batch.events)
    return DraftBatch(
        stream=batch.stream,
        after=batch.after,
        events=events,
        bodies=tuple(encode(event) for event in events),
        needs=frozenset(chain.from_iterable(map(blobs, events))),
        blobs=batch.blobs,
        summary=None if batch.summary is None else orjson.dumps(batch.summary),
    )


def place(draft: Draft, view: View, now: float) -> Placement:
    """Judges one append. Raises Conflict, or ValueError where the caller broke the contract: a
    blob under a wrong hash, an event naming a blob that is nowhere, a new stream without events.
    """
    _check_lease(draft.lease, view)
    placed = Placement()
    for batch in draft.batches:
        _check_hashes(batch)
        placed.blobs.update(batch.blobs)
    for batch in draft.batches:
        before = placed.standings.get(batch.stream) or view.standing(batch.stream)
        _check_place(batch, before)
        if batch.empty:
            continue
        for hash in batch.needs:
            if hash not in placed.blobs and not view.holds(hash):
                raise ValueError(
                    f"{batch.stream}: an event names blob {hash}, which does not exist."
                )
        _place(batch, before, now, placed)
    return placed


def _place(batch: DraftBatch, before: Standing | None, now: float, placed: Placement) -> None:
    # The clock of a machine may be set back; the times of a log may not go back.
    at = max(now, before.updated) if before else now
    stream, first = batch.stream, batch.after + 1
    for seq, (event, body) in enumerate(zip(batch.events, batch.bodies, strict=True), first):
        placed.entries.append(Entry(stream=stream, seq=seq, at=at, event=event))
        placed.lines.append(Line(stream, seq, at, opens_turn(event), body))
    root = before.root if before else None
    if root is None:
        root = next((e.root for e in batch.events if isinstance(e, Opened | Reviewed)), None)
    placed.standings[stream] = Standing(
        root=root,
        head=batch.after + len(batch.events),
        created=before.created if before else at,
        updated=at if batch.events or before is None else before.updated,
        summary=batch.summary or (before.summary if before else b"{}"),
    )
    if batch.needs or batch.blobs:
        placed.refs.update((stream, hash) for hash in batch.needs.union(batch.blobs))


def _check_lease(lease: Lease | None, view: View) -> None:
    if lease is not None and (epoch := view.epoch(lease.root)) != lease.epoch:
        raise lost(lease, epoch)


def lost(lease: Lease, epoch: int | None = None) -> Conflict:
    """Returns the error for a caller that appends under a lease which it no longer holds."""
    now = "released" if epoch is None else f"at epoch {epoch}"
    return Conflict(
        f"The lease of {lease.root} was taken at epoch {lease.epoch} and is now {now}: "
        "take it again, read the log and decide again."
    )


def _check_place(batch: DraftBatch, before: Standing | None) -> None:
    head = before.head if before else 0
    if head != batch.after:
        raise Conflict(
            f"{batch.stream} stands at entry {head}, not at {batch.after}: "
            f"read what came after {min(head, batch.after)} and decide again."
        )
    if before is None and not batch.events and not batch.empty:
        raise ValueError(f"{batch.stream}: a new stream must begin with an event.")


def _check_hashes(batch: DraftBatch) -> None:
    for hash, data in batch.blobs.items():
        if (found := digest(data)) != hash:
            raise ValueError(f"{batch.stream}: a blob given as {hash} has the hash {found}.")


class Position(NamedTuple):
    """A place in the listing of streams: those of the first root are group 0, all others 1; in a
    group the newest `updated` comes first, equal times go by name."""

    group: int
    updated: float
    stream: Stream

    def cursor(self) -> str:
        return f"{self.group}:{self.updated!r}:{self.stream}"


def position(cursor: str | None) -> Position | None:
    """Returns the position that a cursor stands for. Raises InvalidRequest."""
    if cursor is None:
        return None
    try:
        group, updated, stream = cursor.split(":", 2)
        return Position(int(group), float(updated), Stream(stream))
    except ValueError:
        raise InvalidRequest(
            f"{cursor!r} is not a cursor of this list: use the one that came with the previous "
            "page, or none to start over."
        ) from None
