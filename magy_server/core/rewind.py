"""Going back, in the fold: what a session was when each of its turns began, what a restore takes
from it, and how that comes back. Money that was spent and tokens that were used stay so."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import takewhile

from magy_server.core import family
from magy_server.core.events import (
    Briefed,
    FileChange,
    Hash,
    Mailed,
    Noted,
    Prompted,
    Restored,
    Restoring,
)
from magy_server.core.sizes import decisions, refusals, size, words
from magy_server.core.state import Arrival, Item, Kept, Past, State
from magy_server.core.vector import Vector


def remember(state: State, turn: str) -> State:
    """A turn begins. What was undone before it is gone for the conversation: it goes on from
    here."""
    past = Past(
        turn=turn,
        seq=state.seq,
        length=len(state.conversation),
        prefix=state.prefix,
        briefing=state.briefing,
        plan=state.plan,
        context=state.context,
        told=state.told,
        refused=state.refused,
        decided=state.decided,
        files=state.files,
        seen=state.seen,
    )
    return replace(state, pasts=state.pasts.append(past), kept=(), restoring=None)


def compact(state: State, dropped: int) -> State:
    """Prepares the state for the moment when one item replaces the first `dropped` items of the
    conversation."""
    gone = state.conversation[:dropped]
    told = tuple(words(item) for item in gone if isinstance(item, Prompted))
    refused, decided = refusals(gone), decisions(gone)

    def shortened(past: Past) -> Past:
        if past.length is None or past.length < dropped:
            return replace(past, length=None)
        stays = _without_briefings(state.conversation[dropped : past.length])
        return replace(
            past,
            length=1 + len(stays),
            prefix=state.briefing,
            briefing=state.briefing,
            context=sum(map(size, stays)) // 4,
            told=past.told + told,
            refused=past.refused + refused,
            decided=past.decided + decided,
        )

    return replace(state, pasts=Vector(map(shortened, state.pasts)), kept=())


def _without_briefings(items: Iterable[Item]) -> list[Item]:
    return [item for item in items if not isinstance(item, Briefed)]


# --- what is possible ---------------------------------------------------------------------------


def past_of(state: State, turn: str) -> Past | None:
    return next((past for past in state.pasts if past.turn == turn), None)


def kept_by(state: State, restore: str) -> Kept | None:
    return next((kept for kept in state.kept if kept.restored.id == restore), None)


def cannot_go_back(state: State, turn: str) -> str:
    """Returns why the conversation cannot go back to where `turn` began; "" when it can."""
    past = past_of(state, turn)
    if past is None:
        return "The conversation has gone back to before this turn already."
    if past.length is None:
        return "The conversation was compacted since: a summary stands for where this turn began."
    return ""


def cannot_return(state: State, restore: str) -> str:
    """Returns why the conversation that restore `restore` took away cannot come back; "" when it
    can."""
    kept = kept_by(state, restore)
    if kept is None:
        return "The conversation has gone on since: what was undone of it is not kept any more."
    if not kept.restored.conversation:
        return "That left the conversation as it was."
    if kept.place != _place(state):
        return "The conversation was taken back further since: undo that first."
    return ""


def _place(state: State) -> str:
    """Returns the turn that the conversation ends with; no two places between turns have the
    same."""
    return state.pasts[-1].turn if state.pasts else ""


# --- the events ---------------------------------------------------------------------------------


def begin(state: State, event: Restoring, seq: int) -> State:
    """In a copy of a session, what was begun in the original is none of its business."""
    source = state.opened.forked_from if state.opened else None
    if state.turn or (source and seq <= source[1]):
        return state
    return replace(state, restoring=event)


def restore(state: State, event: Restored) -> State:
    """Between turns only; in a turn it makes no sense."""
    before = replace(state, restoring=None)
    if state.turn:
        return before
    taken = kept_by(before, event.undoes) if event.undoes else None
    past = past_of(before, event.turn)
    after = _with_files(before, event, past, taken)
    if event.conversation:
        after = _returned(after, event, taken) if event.undoes else _cut(after, past)
    elif past_of(after, event.turn):
        after = replace(after, seen=_still_known(after.seen, event, past, taken))
    over = taken and (_came_back(before, event) or not taken.restored.conversation)
    rest = tuple(kept for kept in before.kept if not over or kept is not taken)
    own = Kept(event, replace(before, kept=()), _place(after), len(after.conversation))
    return replace(after, kept=(*rest, own), halted=True)


def _came_back(state: State, event: Restored) -> bool:
    return event.conversation and not cannot_return(state, event.undoes)


def _cut(state: State, past: Past | None) -> State:
    if past is None or past.length is None:
        return state
    earlier = takewhile(lambda one: one.turn != past.turn, state.pasts)
    return replace(
        state,
        conversation=Vector(state.conversation[: past.length]),
        waiting=(*_again(state, past, past.length), *state.waiting),
        pasts=Vector(earlier),
        prefix=past.prefix,
        briefing=past.briefing,
        plan=past.plan,
        context=past.context,
        told=past.told,
        refused=past.refused,
        decided=past.decided,
        seen=past.seen,
    )


def _again(state: State, past: Past, length: int) -> list[Mailed]:
    """The results that the turns since `past` were given, in the conversation or by a wait, as if
    these had never been; but for those of children that they had spawned themselves."""
    given = [item for item in state.conversation[length:] if isinstance(item, Mailed)]
    given += [one.mail for one in state.reports.values() if one.seq > past.seq]
    waiting = {arrival.id for arrival in state.waiting}
    found = {mail.id: mail for mail in given if mail.report and mail.id not in waiting}

    def stays(mail: Mailed) -> bool:
        return min(state.prompts[mail.id], family.asked_at(mail.sender)) <= past.seq

    return sorted(filter(stays, found.values()), key=lambda mail: state.prompts[mail.id])


def _returned(state: State, event: Restored, taken: Kept | None) -> State:
    """What was noted meanwhile stays said."""
    if taken is None or not _came_back(state, event):
        return state
    old = taken.state
    noted = [i for i in state.conversation[taken.length :] if isinstance(i, Noted)]
    conversation = Vector([*old.conversation, *noted]) if noted else old.conversation
    undone = {change.path for change in taken.restored.changes}
    if event.files:  # else they may have come back before, or not
        undone &= set(event.conflicts)
    return replace(
        state,
        conversation=conversation,
        waiting=_results_of(state, old),
        pasts=old.pasts,
        prefix=old.prefix,
        briefing=old.briefing,
        plan=old.plan,
        context=old.context + sum(map(size, noted)) // 4,
        told=old.told,
        refused=old.refused,
        decided=old.decided,
        seen={path: hash for path, hash in old.seen.items() if path not in undone},
    )


def _results_of(state: State, old: State) -> tuple[Arrival, ...]:
    """Returns what waits when it is `old` again: the results that waited then or have come
    since."""

    def result(arrival: Arrival) -> bool:
        return isinstance(arrival, Mailed) and arrival.report is not None

    def stays(arrival: Arrival) -> bool:
        return not result(arrival) or state.prompts[arrival.id] > old.seq

    return (*filter(result, old.waiting), *filter(stays, state.waiting))


def _with_files(state: State, event: Restored, past: Past | None, taken: Kept | None) -> State:
    """What the session did to each file, on the whole: of files that went back, what it had done
    by then."""
    then = (taken and taken.state) if event.undoes else past
    known = then.files if then else None
    files = dict(state.files)
    for change in event.changes:
        was = known.get(change.path) if known is not None else _did(change)
        files.pop(change.path, None)
        if was:
            files[change.path] = was
    return replace(state, files=files)


def _did(change: FileChange) -> str:
    if change.before is None:
        return "created"
    return "deleted" if change.after is None else "changed"


def _still_known(
    seen: Mapping[str, Hash], event: Restored, past: Past | None, taken: Kept | None
) -> Mapping[str, Hash]:
    """The files changed under a conversation that goes on: the model knows such a file only if it
    holds again exactly what the model had seen by then."""
    then = taken.state.seen if taken else past.seen if past and not event.undoes else {}
    seen = dict(seen)
    for change in event.changes:
        seen.pop(change.path, None)
        if change.after and then.get(change.path) == change.after:
            seen[change.path] = change.after
    return seen
