"""When a person goes back, the fold takes a part of the session away; another restore brings it
back. Spent money and used tokens stay counted."""

from __future__ import annotations

from collections.abc import Mapping

from magy_server.core.agents import tree
from magy_server.core.agents.mail import Mailed
from magy_server.core.reviews.review_events import Noted, Restored, Restoring
from magy_server.core.state.queue import Arrival
from magy_server.core.state.replacing import replace
from magy_server.core.state.state import State
from magy_server.core.state.turn_starts import Kept, Past
from magy_server.core.values import FileChange, Hash

# --- what is possible ---------------------------------------------------------------------------


def cannot_go_back(state: State, turn: str) -> str:
    """Returns why the conversation cannot go back to where `turn` began; "" when it can."""
    past = state.history.past(turn)
    if past is None:
        return "The conversation has gone back to before this turn already."
    if past.lost:
        return "The conversation was compacted since: a summary stands for where this turn began."
    return ""


def cannot_return(state: State, restore: str) -> str:
    """Returns why the conversation that restore `restore` took away cannot come back; "" when it
    can."""
    kept = state.history.kept_by(restore)
    if kept is None:
        return "The conversation has gone on since: what was undone of it is not kept any more."
    if not kept.restored.conversation:
        return "That left the conversation as it was."
    if kept.place != state.history.place:
        return "The conversation was undone further since: redo that first."
    return ""


# --- the events ---------------------------------------------------------------------------------


def begin(state: State, event: Restoring, seq: int) -> State:
    """Notes that a restore has begun. A copy of a session ignores what was begun in the
    original."""
    source = state.opened.forked_from if state.opened else None
    if state.turn or (source and seq <= source[1]):
        return state
    return replace(state, history=replace(state.history, restoring=event))


def restore(state: State, event: Restored) -> State:
    """Goes back, or undoes that, between turns; within a turn the event changes nothing."""
    before = replace(state, history=replace(state.history, restoring=None))
    if state.turn:
        return before
    taken = before.history.kept_by(event.undoes) if event.undoes else None
    past = before.history.past(event.turn)
    after = _with_files(before, event, past, taken)
    if event.conversation:
        after = _returned(after, event, taken) if event.undoes else _cut(after, past)
    elif after.history.past(event.turn):
        seen = _still_known(after.conversation.seen, event, past, taken)
        after = replace(after, conversation=replace(after.conversation, seen=seen))
    over = taken and (_came_back(before, event) or not taken.restored.conversation)
    rest = tuple(kept for kept in before.history.kept if not over or kept is not taken)
    own = _kept(event, before, after)
    return replace(
        after,
        history=replace(after.history, kept=(*rest, own)),
        queue=replace(after.queue, halted=True),
    )


def _kept(event: Restored, before: State, after: State) -> Kept:
    return Kept(
        restored=event,
        seq=before.seq,
        conversation=before.conversation,
        waiting=before.queue.waiting,
        pasts=before.history.pasts,
        files=before.history.files,
        place=after.history.place,
        length=len(after.conversation.items),
    )


def _came_back(state: State, event: Restored) -> bool:
    return event.conversation and not cannot_return(state, event.undoes)


def _cut(state: State, past: Past | None) -> State:
    if past is None or past.lost:
        return state
    history, conversation = state.history.cut(past)
    waiting = (*_again(state, past), *state.queue.waiting)
    return replace(
        state,
        conversation=conversation,
        queue=replace(state.queue, waiting=waiting),
        history=history,
    )


def _again(state: State, past: Past) -> list[Mailed]:
    """The results that the turns since `past` were given, in the conversation or by a wait, as if
    these had never been; but for those of children that they had spawned themselves."""
    given = [item for item in state.conversation.items[past.length :] if isinstance(item, Mailed)]
    given += [one.mail for one in state.reports.values() if one.seq > past.seq]
    waiting = {arrival.id for arrival in state.queue.waiting}
    found = {mail.id: mail for mail in given if mail.report and mail.id not in waiting}
    seqs = state.queue.seqs

    def stays(mail: Mailed) -> bool:
        return min(seqs[mail.id], tree.asked_at(mail.sender)) <= past.seq

    return sorted(filter(stays, found.values()), key=lambda mail: seqs[mail.id])


def _returned(state: State, event: Restored, taken: Kept | None) -> State:
    if taken is None or not _came_back(state, event):
        return state
    items = state.conversation.items[taken.length :]
    old = taken.conversation.going_on([item for item in items if isinstance(item, Noted)])
    undone = {change.path for change in taken.restored.changes}
    if event.files:  # else they may have come back before, or not
        undone &= set(event.conflicts)
    seen = {path: hash for path, hash in old.seen.items() if path not in undone}
    return replace(
        state,
        conversation=replace(old, seen=seen),
        queue=replace(state.queue, waiting=_results_of(state, taken)),
        history=replace(state.history, pasts=taken.pasts),
    )


def _results_of(state: State, old: Kept) -> tuple[Arrival, ...]:
    """Returns what waits when it is `old` again: the results that waited then or have come
    since."""

    def result(arrival: Arrival) -> bool:
        return isinstance(arrival, Mailed) and arrival.report is not None

    def stays(arrival: Arrival) -> bool:
        return not result(arrival) or state.queue.seqs[arrival.id] > old.seq

    return (*filter(result, old.waiting), *filter(stays, state.queue.waiting))


def _with_files(state: State, event: Restored, past: Past | None, taken: Kept | None) -> State:
    """What the session did to each file, on the whole: of files that went back, what it had done
    by then."""
    then = taken if event.undoes else past
    known = then.files if then else None
    files = dict(state.history.files)
    for change in event.changes:
        was = known.get(change.path) if known is not None else _did(change)
        files.pop(change.path, None)
        if was:
            files[change.path] = was
    return replace(state, history=replace(state.history, files=files))


def _did(change: FileChange) -> str:
    if change.before is None:
        return "created"
    return "deleted" if change.after is None else "changed"


def _still_known(
    seen: Mapping[str, Hash], event: Restored, past: Past | None, taken: Kept | None
) -> Mapping[str, Hash]:
    """The files changed under a conversation that goes on: the model knows such a file only if it
    holds again exactly what the model had seen by then."""
    then = taken if taken else past if not event.undoes else None
    known = then.conversation.seen if then else {}
    seen = dict(seen)
    for change in event.changes:
        seen.pop(change.path, None)
        if change.after and known.get(change.path) == change.after:
            seen[change.path] = change.after
    return seen
