"""A session with another one's history."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from magy_server.core.events import Compacted, Ended, Entry, Event, Opened, Requeued
from magy_server.core.fold import fold
from magy_server.core.ports import Batch
from magy_server.core.state import State
from magy_server.engine.calls import closed
from magy_server.engine.summary import summarise


def copied(entries: Sequence[Entry], stream: str, source: tuple[str, int]) -> Batch:
    """The new stream, with what `entries` say and a rest at the end. `source` is the session they
    are from, and the last of them; blobs are shared."""
    copies = [entry.model_copy(update={"stream": stream}) for entry in entries]
    state = fold(copies, State(stream))
    events: list[Event] = [entry.event for entry in copies]
    opened = events[0]
    assert isinstance(opened, Opened)
    events[0] = opened.model_copy(update={"forked_from": source})
    events += _closing(state)
    return Batch(stream, 0, events, {}, summarise(_fold_events(stream, events, state.at)))


def _closing(state: State) -> list[Event]:
    """What makes a log that ends in the middle a conversation that rests: what waits is left to the
    source, and so is what runs, whose outcome is not known here."""
    events: list[Event] = []
    if state.waiting:
        events.append(Requeued(dropped=tuple(prompt.id for prompt in state.waiting)))
    if state.compact and state.turn is None:
        events.append(Compacted(problem="Forked here.", resting=True))
    if state.turn is None:
        return events
    for call in state.turn.open_calls:
        events.append(closed(replace(call, orphan=call.started is not None)))
    return [*events, Ended(turn=state.turn.id, stop="cancelled", message="Forked here.")]


def _fold_events(stream: str, events: Sequence[Event], at: float) -> State:
    entries = (
        Entry.model_construct(stream=stream, seq=seq, at=at, event=event)
        for seq, event in enumerate(events, 1)
    )
    return fold(entries, State(stream))
