"""This module copies a session's history for a fork, or for a child that is to know its
parent's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from magy_server.core.agents.mail import Closed, Mailed
from magy_server.core.agents.tree import Stream
from magy_server.core.errors import InvalidRequest
from magy_server.core.events import (
    Compacted,
    Configured,
    Consulted,
    Ended,
    Entry,
    Event,
    Finished,
    Granted,
    Moved,
    Opened,
    Planned,
    Prompted,
    Replied,
    Requeued,
    Withdrawn,
)
from magy_server.core.ports import Batch
from magy_server.core.state.fold import ahead, fold
from magy_server.core.state.spending import INHERITED
from magy_server.core.state.state import State
from magy_server.core.state.turn import CallState
from magy_server.core.summary import summarise, title
from magy_server.core.values import CallId, Hash, Usage
from magy_server.engine.calls import closed
from magy_server.engine.world import put

ALL = -1
"""Turns: every one."""
FORK = "Fork of "
NO_GRANT = Withdrawn(grant="")
"""Stands where an event is left out: the numbers of the others stay as they are."""
LEFT_OUT = (
    "[This conversation is your parent agent's. Its earlier part is left out: you see the latest "
    "{turns}.]"
)
YOURS = (
    "[You are the agent that this call spawned. The conversation up to here is your parent's, for "
    "your information; your own task comes next.]"
)
PARENTS = "[Your parent agent's call, which had not ended when you were spawned.]"


def copied(entries: Sequence[Entry], stream: Stream, source: tuple[str, int]) -> Batch:
    """Returns the new stream: the `entries`, and at the end what brings it to rest. `source` is the
    session they are from, and the seq of the last of them; blobs are shared. The new session has no
    parent, and its title says of which session it is a fork."""
    copies = [entry.model_copy(update={"stream": stream}) for entry in entries]
    state = fold(copies, State(stream))
    events: list[Event] = [_open(entry.event) for entry in copies]
    opened = events[0]
    assert isinstance(opened, Opened)
    free = {
        "forked_from": source, "parent": None, "call": "", "rules": None, "limits": None,
        "place": "", "worktree": None, "title": _title(state),
    }  # fmt: skip
    if opened.place:  # the worktree is the child's
        free["cwd"] = opened.root
    events[0] = opened.model_copy(update=free)
    events += _rest(state, "Forked here.", _unknown)
    return Batch(stream, 0, events, {}, summarise(ahead(State(stream, at=state.at), events)))


def context(
    entries: Sequence[Entry], stream: Stream, opened: Opened, turns: int
) -> tuple[list[Event], dict[Hash, bytes]]:
    """The beginning of a child that knows the parent's latest `turns`: the parent's log under the
    same numbers, so that no call of its own is named like one there, without what the parent paid,
    was allowed and chose; and the new blobs of it."""
    upto = entries[-1].seq
    source = opened.parent or ""
    begin = opened.model_copy(update={"forked_from": (source, upto)})
    events: list[Event] = [begin, *(_theirs(entry.event) for entry in entries[1:])]
    state = ahead(State(stream, at=entries[-1].at), events)
    if state.history.restoring:
        raise InvalidRequest(
            f"Session {source!r} is being restored; spawn again in a moment.", reason="busy"
        )
    events += _rest(state, "Spawned here.", lambda call: _not_theirs(call, opened.call))
    blobs: dict[Hash, bytes] = {}
    if dropped := _before(state, turns):
        said = LEFT_OUT.format(turns="turn" if turns == 1 else f"{turns} turns")
        events.append(Compacted(dropped=dropped, summary=put(said, blobs), written=False))
    return events, blobs


def _rest(state: State, why: str, close: Callable[[CallState], Finished]) -> list[Event]:
    """What makes a log that ends in the middle a conversation that rests: what waits is left to the
    source, and so is what runs."""
    events: list[Event] = []
    if state.queue.waiting:
        events.append(Requeued(dropped=tuple(arrival.id for arrival in state.queue.waiting)))
    if state.turn:
        events += map(close, state.turn.open_calls)
        events.append(Ended(turn=state.turn.id, stop="cancelled", message=why))
    elif state.compact:
        events.append(Compacted(problem=why, resting=True))
    return events


def _unknown(call: CallState) -> Finished:
    """Its outcome is not known here."""
    return closed(replace(call, orphan=call.started is not None))


def _title(state: State) -> str:
    """Lists of sessions tell it from its source by this."""
    of = title(state)
    return of if not of or of.startswith(FORK) else f"{FORK}{of}"


def _open(event: Event) -> Event:
    """Who forks a closed child wants to go on; a title that was given was the source's."""
    if isinstance(event, Configured) and event.option == "title":
        return NO_GRANT
    return NO_GRANT if isinstance(event, Closed) else event


def _theirs(event: Event) -> Event:
    """What a child is given of an event of its parent's."""
    match event:
        case Prompted() | Mailed():
            return event.model_copy(update={"run": INHERITED})
        case Replied() | Compacted():
            free = {"usage": Usage(), "cost": 0.0}
            return event.model_copy(update=free)
        case Finished(background=int()):
            return event.model_copy(update={"background": None})
        case Granted() | Configured() | Consulted() | Planned() | Moved():
            return NO_GRANT
    return event


def _not_theirs(call: CallState, spawning: CallId) -> Finished:
    if call.call.id == spawning:
        return Finished(call=spawning, status="completed", for_model=YOURS)
    if call.started is None:
        return closed(call)
    return Finished(call=call.call.id, status="unknown", for_model=PARENTS)


def _before(state: State, turns: int) -> int:
    """How many items of the conversation come before the latest `turns`. 0 also where compaction
    has left no more than these."""
    if turns == ALL or turns >= len(state.history.pasts):
        return 0
    return state.history.pasts[-turns].length or 0
