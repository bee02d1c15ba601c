"""Each review has a stream: this module knows its name, what stands in it, what was decided."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any, cast
from urllib.parse import quote

from pydantic import ValidationError

from magy_server.core.agents.tree import Stream
from magy_server.core.agents.tree import stream_of as stream_of_session
from magy_server.core.errors import StoreError
from magy_server.core.events import Ended, Entry
from magy_server.core.ports import Batch, Store, StreamInfo
from magy_server.core.reviews.review_events import Decision, Reviewed
from magy_server.core.values import Hash
from magy_server.dataclass import dataclass

LOG = logging.getLogger(__name__)
APPLIED, PROPOSED = "review/", "proposal/"


@dataclass(frozen=True, slots=True)
class Standing:
    """The newest entry of a review's stream; `event` None: there is none. `pending`: something was,
    when it was written."""

    stream: Stream
    seq: int = 0
    event: Reviewed | None = None
    pending: bool = False


def stream_of(path: str, proposed: bool) -> Stream:
    """One for each file, whatever the workspace root is in which it is looked at."""
    return Stream((PROPOSED if proposed else APPLIED) + _name(path))


def _name(path: str) -> str:
    return quote(path, errors="surrogateescape").strip("/")


async def standing_of(store: Store, info: StreamInfo) -> Standing:
    """Where its summary cannot be read, the newest entry says how it stands, or why nobody can
    know. Raises StoreError."""
    pending = bool(info.summary.get("pending"))
    try:
        event = Reviewed.model_validate(info.summary.get("reviewed"))
    except ValidationError:
        (entry,) = await store.read(info.stream, after=info.head - 1, limit=1)
        event, pending = cast(Reviewed, entry.event), True
    return Standing(info.stream, info.head, event, pending)


def prefix_of(kind: str, root: str) -> str:
    """What the names of the reviews of all files below a root begin with."""
    return kind + (f"{name}/" if (name := _name(root)) else "")


async def standings(
    store: Store, prefix: str, kept: Mapping[Stream, Standing] | None = None
) -> list[Standing]:
    """How all files stand that ever were under review, of the streams that begin with `prefix`, the
    newest first. One that cannot be read is left out: the others are as they were. `kept`: how some
    stood before, which is how they stand if they have not come further."""
    found: list[Standing] = []
    kept = kept or {}
    for info in await below(store, prefix):
        at = kept.get(info.stream)
        if at is not None and at.seq == info.head:
            found.append(at)
            continue
        try:
            found.append(await standing_of(store, info))
        except StoreError as error:
            LOG.warning("%s", error)
    return found


async def all_decided(store: Store, root: str | None, session: str) -> bool:
    """Whether the last turn of this session proposed changes of files below `root`, and a person
    has decided all that it ever proposed. Raises StoreError."""
    entries = await store.read(stream_of_session(session))
    ends = (entry.event for entry in reversed(entries) if isinstance(entry.event, Ended))
    if (last := next(ends, None)) is None or not last.changes:
        return False
    found = await standings(store, prefix_of(PROPOSED, root or ""))
    return not any(at.pending and of_session(at, session) for at in found)


def of_session(at: Standing, session: str) -> bool:
    return at.event is not None and session in [one.session for one in at.event.origins]


def begun(at: Standing) -> bool:
    """Whether a decision is on its way, or was interrupted."""
    return bool(at.event and at.event.decision and at.event.decision.intent)


async def below(store: Store, prefix: str) -> list[StreamInfo]:
    """Returns all streams whose names begin with `prefix`, the newest first."""
    found: list[StreamInfo] = []
    cursor: str | None = None
    while True:
        page = await store.streams(prefix, cursor=cursor, limit=200)
        found += page.items
        cursor = page.cursor
        if cursor is None:
            return found


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
    """Returns a decision that was made; one that was only begun, if there is no other."""
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


def decisions(entries: Sequence[Entry]) -> list[Decision]:
    """Returns the decisions that were made, the newest last."""
    events = (entry.event for entry in entries)
    found = (event.decision for event in events if isinstance(event, Reviewed))
    return [decision for decision in found if decision and not decision.intent]


def taken_back(entries: Sequence[Entry]) -> set[str]:
    """The ids of the decisions that a later one has taken back, which is itself not."""
    back: set[str] = set()
    for decision in reversed(decisions(entries)):
        if decision.undoes and decision.id not in back:
            back.add(decision.undoes)
    return back
