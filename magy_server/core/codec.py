"""This module turns events into bytes, and tells what a store must know of an event without
understanding it."""

from __future__ import annotations

from pydantic import ConfigDict, TypeAdapter

from magy_server.core.events import (
    Admitted,
    Asked,
    Briefed,
    Compacted,
    Consulted,
    Event,
    Exited,
    Finished,
    Judged,
    Prompted,
    Started,
)
from magy_server.core.reviews.review_events import Noted, Restored, Restoring, Reviewed
from magy_server.core.values import Content, Embedded, Facts, FileChange, Hash, Image, Selected

EVENT: TypeAdapter[Event] = TypeAdapter(Event, config=ConfigDict(defer_build=True))


def encode(event: Event) -> bytes:
    return event.model_dump_json().encode()


def decode(data: bytes | str) -> Event:
    """Returns the event. Raises pydantic.ValidationError for an unknown kind or field."""
    return EVENT.validate_json(data)


def blobs(event: Event) -> tuple[Hash, ...]:
    """Returns the blobs that an event refers to; they live as long as some event does."""
    match event:
        case Briefed():
            return (*(s.hash for s in event.sections + event.tools), event.rules)
        case Prompted():
            return tuple(hash for part in event.content if (hash := _named(part)))
        case Judged(facts=Facts(preview=str(preview))) | Asked(preview=str(preview)):
            return (preview,)
        case Consulted():
            return (event.request,)
        case Compacted():
            return tuple(hash for hash in (event.summary, event.request) if hash)
        case Started(evidence=evidence):
            return _changed(evidence.changes)
        case Finished():
            own = tuple(h for h in (event.diff, event.output, event.graph, event.deliberation) if h)
            own += tuple(image.hash for image in event.images) + _changed(event.changes)
            return own + tuple(seen.hash for seen in event.seen)
        case Exited(output=str(output)):
            return (output,)
        case Reviewed():
            made = event.decision.change if event.decision else None
            sides = tuple(v.hash for v in (event.base, event.agent) if v.hash)
            return sides + _changed((made,) if made else ())
        case Noted():
            return _changed(event.changes)
        case Restored() | Restoring():
            return _changed(event.changes)
    return ()


def opens_turn(event: Event) -> bool:
    """Returns whether the event opens a turn. The store marks such entries, and so finds the last N
    turns without reading the log."""
    return isinstance(event, Admitted) and event.opens


def _named(part: Content) -> Hash | None:
    match part:
        case Image(hash=hash) | Embedded(selected=Selected(base=hash)):
            return hash
    return None


def _changed(changes: tuple[FileChange, ...]) -> tuple[Hash, ...]:
    return tuple(h for c in changes for h in (c.before, c.after) if h)
