"""The streams of reviews: their names, what stands in them, and what was decided."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from magy_server.core.agents.tree import Stream
from magy_server.core.events import Entry
from magy_server.core.ports import Batch, Store, StreamInfo
from magy_server.core.reviews.review_events import Decision, Reviewed
from magy_server.core.values import Hash
from magy_server.reviews.file_review import Decode, FileReview, held_of
from magy_server.reviews.views import Done

APPLIED, PROPOSED = "review/", "proposal/"
JOURNAL = 50
"""Decisions shown of a file; older ones can still be taken back."""


@dataclass(frozen=True, slots=True)
class Standing:
    """The newest entry of a review's stream; `event` None: there is none. `pending`: something was,
    when it was written."""

    stream: Stream
    seq: int = 0
    event: Reviewed | None = None
    pending: bool = False
    at: float = 0.0


def stream_of(path: str, proposed: bool) -> Stream:
    """One for each file, whatever the workspace root is in which it is looked at."""
    return Stream((PROPOSED if proposed else APPLIED) + _name(path))


def _name(path: str) -> str:
    return quote(path, errors="surrogateescape").strip("/")


async def standing(store: Store, stream: Stream) -> Standing:
    info = await store.info(stream)
    return Standing(stream) if info is None else standing_of(info)


def standing_of(info: StreamInfo) -> Standing:
    event = Reviewed.model_validate(info.summary["reviewed"])
    pending = bool(info.summary.get("pending"))
    return Standing(info.stream, info.head, event, pending, info.updated)


async def standings(store: Store, kind: str, root: str) -> list[Standing]:
    """How all files below a root stand that ever were under review, the newest first."""
    found: list[Standing] = []
    prefix = kind + (f"{name}/" if (name := _name(root)) else "")
    cursor: str | None = None
    while True:
        page = await store.streams(prefix, cursor=cursor, limit=200)
        found += [standing_of(info) for info in page.items]
        cursor = page.cursor
        if cursor is None:
            return found


async def held(store: Store, at: Standing, decode: Decode) -> FileReview:
    assert at.event is not None
    hashes = [v.hash for v in (at.event.base, at.event.agent) if v.hash]
    blobs = await store.blobs(hashes)
    return await asyncio.to_thread(held_of, at.event, blobs, decode)


def batch(
    at: Standing, events: Sequence[Reviewed], blobs: dict[Hash, bytes], pending: bool
) -> Batch:
    """What leads on from `at`. `pending`: something still is, afterwards."""
    summary: dict[str, Any] = {
        "root": events[-1].root,
        "pending": pending,
        "reviewed": events[-1].model_dump(mode="json"),
    }
    return Batch(at.stream, at.seq, events, blobs, summary)


# --- the journal ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Decided:
    """A decision with the review before and after it; `after` None: it was interrupted."""

    decision: Decision
    before: Reviewed
    after: Reviewed | None


def find(entries: Sequence[Entry], id: str) -> Decided | None:
    """A decision that was made; one that was only begun if there is no other."""
    before: Reviewed | None = None
    for entry in entries:
        event = entry.event
        if isinstance(event, Reviewed) and event.decision and event.decision.id == id:
            if not event.decision.intent:
                return Decided(event.decision, before or event, event)
            before = event
    if before is None or before.decision is None:
        return None
    return Decided(before.decision, before, None)


def journal(entries: Sequence[Entry]) -> tuple[Done, ...]:
    """The decisions that were made, the newest last."""
    made: list[tuple[Decision, float]] = []
    for entry in entries:
        event = entry.event
        if isinstance(event, Reviewed) and event.decision and not event.decision.intent:
            made.append((event.decision, entry.at))
    back: set[str] = set()
    for decision, _ in reversed(made):
        if decision.undoes and decision.id not in back:
            back.add(decision.undoes)
    return tuple(
        Done(
            id=decision.id,
            verb=decision.verb,
            hunks=decision.hunks,
            reason=decision.reason,
            by=decision.by,
            at=at,
            undoes=decision.undoes,
            taken_back=decision.id in back,
        )
        for decision, at in made[-JOURNAL:]
    )
