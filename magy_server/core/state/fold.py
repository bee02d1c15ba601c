"""The fold turns entries into a State. Nothing here does I/O.

It is total: an event that makes no sense where it stands (a second answer, a late cancel) changes
nothing. Each part of the state has its own fold; which event goes to which parts is said here, and
what becomes of the plain fields.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from magy_server.core.agents.mail import Closed, Mailed, TextPayload
from magy_server.core.events import (
    Admitted,
    Answered,
    Asked,
    Briefed,
    CancelAsked,
    CompactAsked,
    Compacted,
    Configured,
    Consulted,
    Ended,
    Entry,
    Event,
    Exited,
    Finished,
    Granted,
    Judged,
    Moved,
    Opened,
    Planned,
    Prompted,
    Replied,
    Requeued,
    Resumed,
    SkillRead,
    Started,
    Withdrawn,
)
from magy_server.core.policy import strangers
from magy_server.core.reviews.review_events import Noted, Restored, Restoring
from magy_server.core.skills.statement import brought
from magy_server.core.state import rewind
from magy_server.core.state.queue import Arrival, Queue
from magy_server.core.state.replacing import replace
from magy_server.core.state.spending import NO_SPENDING, Spent
from magy_server.core.state.state import Question, Reported, State
from magy_server.core.state.turn import Turn

_UNREAD = ("denied", "not_run")
"""What the model reads of such a call is Magy's."""
_TIMED = (Admitted, Asked)
"""What becomes of these depends on when they were appended."""


def fold(entries: Iterable[Entry], state: State) -> State:
    for entry in entries:
        state = apply(state, entry)
    return state


def ahead(state: State, events: Iterable[Event]) -> State:
    """The state as it will be when these are appended, which nobody knows the time of yet."""
    for event in events:
        state = apply(state, Entry.model_construct(
            stream=state.stream, seq=state.seq + 1, at=state.at, event=event))  # fmt: skip
    return state


def settled(state: State, foreseen: State, entries: Sequence[Entry]) -> State:
    """The state with entries of which it was foreseen (`ahead`) what becomes of it."""
    if not entries:
        return state
    if any(isinstance(entry.event, _TIMED) for entry in entries):
        return fold(entries, state)
    return replace(foreseen, at=entries[-1].at)


def apply(state: State, entry: Entry) -> State:
    """Returns the state one entry further. Raises ValueError on a gap: a fold must see every entry,
    in order."""
    if entry.seq != state.seq + 1:
        raise ValueError(f"{entry.stream}: entry {entry.seq} after {state.seq}")
    changed = _apply(state, entry.event, entry.seq, entry.at)
    return replace(changed, seq=entry.seq, at=entry.at)


def _apply(state: State, event: Event, seq: int, at: float) -> State:
    match event:
        case Opened():
            options = {"agent": event.agent, "model": event.model, "title": event.title}
            return replace(state, opened=event, options=options)
        case Configured():
            return replace(state, options={**state.options, event.option: event.value})
        case Briefed():
            return replace(state, conversation=state.conversation.briefed(event))
        case Prompted() | Mailed():
            return _arrive(state, event, seq)
        case Requeued():
            return replace(state, queue=state.queue.requeued(event))
        case Closed():
            return replace(state, closed=state.closed or event)
        case Admitted():
            return _admit(state, event, at)
        case CancelAsked():
            return _cancel(state, event)
        case Granted():
            return replace(state, grants=(*state.grants, event.grant))
        case Withdrawn():
            return replace(state, grants=tuple(g for g in state.grants if g.id != event.grant))
        case Planned():
            return replace(state, conversation=state.conversation.planned(event.tasks))
        case Exited():
            rest = {call: group for call, group in state.background.items() if call != event.call}
            return replace(state, background=rest)
        case Ended():
            return replace(state, turn=None, last_stop=event.stop, questions={}, compact=None)
        case Consulted():
            return replace(_entitle(state, event), spending=state.spending.took(event))
        case CompactAsked():
            return replace(state, compact=event)
        case Compacted():
            return _compact(state, event)
        case Noted():
            return replace(state, conversation=state.conversation.noted(event))
        case Restoring():
            return rewind.begin(state, event, seq)
        case Restored():
            return rewind.restore(state, event)
    return _in_turn(state, state.turn, event, at) if state.turn else state


def _in_turn(state: State, turn: Turn, event: Event, at: float) -> State:
    match event:
        case Replied():
            return _reply(state, turn, event)
        case Judged():
            return replace(state, turn=turn.judged(event))
        case Asked():
            questions = {**state.questions, event.id: Question(event, at)}
            asked = turn if event.form else turn.asked(event)
            return replace(state, turn=asked, questions=questions)
        case Answered():
            return _answer(state, turn, event)
        case Started():
            return replace(state, turn=turn.started(event.call, event.evidence))
        case Finished() if turn.is_open(event.call):
            return _finish(state, turn, event)
        case Resumed():
            return replace(state, turn=turn.resumed())
        case Moved():
            return replace(state, conversation=state.conversation.moved(event.cwd))
        case SkillRead():
            taught = state.conversation.taught((event.skill,))
            return replace(state, turn=turn.with_skills((event.skill,)), conversation=taught)
    return state


def _entitle(state: State, event: Consulted) -> State:
    """Sets the title, unless a person gave one."""
    if event.agent != "title" or state.options.get("title"):
        return state
    return replace(state, options={**state.options, "title": event.text})


def _arrive(state: State, event: Arrival, seq: int) -> State:
    if event.id in state.queue.seqs:
        return state
    queue, reports = state.queue.heard(event, seq), state.reports
    if isinstance(event, Mailed) and not isinstance(event.payload, TextPayload):
        return replace(state, queue=queue)
    if isinstance(event, Mailed):
        state = replace(state, conversation=state.conversation.heard(event.untrusted))
    if isinstance(event, Mailed) and event.report:
        reports = {**reports, event.sender: Reported(seq, event)}
    return replace(state, queue=queue.joined(event), reports=reports)


def _admit(state: State, event: Admitted, at: float) -> State:
    queue, admitted = state.queue.admitted(event.prompts)
    conversation = state.conversation.took(admitted)
    if not event.opens:
        turn = state.turn and state.turn.steered().with_skills(brought(admitted))
        return replace(state, queue=queue, conversation=conversation, turn=turn)
    history = state.history.began(event.turn, state.seq, state.conversation)
    state = replace(state, conversation=conversation, history=history)
    return _open(state, event.turn, queue, admitted, at)


def _open(state: State, id: str, queue: Queue, admitted: Sequence[Arrival], at: float) -> State:
    """A turn that only mail from below opens is still of the run that asked for it, and what was
    left of its caps is left to it: agents cannot keep each other going."""
    asked = any(isinstance(a, Prompted) or a.tasks for a in admitted)
    run = next((a.run for a in admitted if a.id == id), "") or id
    before = NO_SPENDING if asked else state.spending.of(run)
    grants = state.grants
    if run != state.spending.run:
        grants = tuple(grant for grant in grants if grant.scope != "run")
    return replace(
        state,
        turn=Turn(id=id, began=at, run=run, before=before, skills=brought(admitted)),
        turns=state.turns + 1,
        last_stop=None,
        queue=replace(queue, halted=False),
        spending=replace(state.spending, run=run),
        grants=grants,
    )


def _cancel(state: State, event: CancelAsked) -> State:
    turn = state.turn
    if turn is None:
        compacts = state.compact is not None
        halted = state.queue.halted or (event.turn is None and not compacts)
        return replace(state, cancelling=compacts, queue=replace(state.queue, halted=halted))
    if event.turn not in (None, turn.id):
        return state
    return replace(state, turn=turn.cancelled(event))


def _compact(state: State, event: Compacted) -> State:
    spending = state.spending.took(event)
    turn = state.turn and state.turn.took(_spent(state, event))
    after = replace(state, spending=spending, turn=turn, compact=None, cancelling=False)
    if event.problem:
        return after
    before, now = state.conversation, state.conversation.compacted(event)
    return replace(after, conversation=now, history=state.history.compacted(event, before, now))


def _reply(state: State, turn: Turn, event: Replied) -> State:
    return replace(
        state,
        turn=turn.replied(event).took(_spent(state, event)),
        conversation=state.conversation.replied(event),
        spending=state.spending.took(event),
    )


def _spent(state: State, event: Replied | Compacted) -> Spent:
    """What a turn's caps count of the request: money, if a model was asked, for a run."""
    if isinstance(event, Replied) and not event.model:  # a person made the call
        return NO_SPENDING
    paid = event.model and state.spending.run
    return Spent.on(event) if paid else Spent(1, event.usage)


def _answer(state: State, turn: Turn, event: Answered) -> State:
    question = state.questions.get(event.id)
    if question is None:
        return state
    questions = {id: q for id, q in state.questions.items() if id != event.id}
    if question.asked.form:  # the call runs already
        return replace(state, questions=questions)
    return replace(state, turn=turn.answered(question.asked.call, event), questions=questions)


def _finish(state: State, turn: Turn, event: Finished) -> State:
    background, conversation = state.background, state.conversation.finished(event)
    judged = turn.calls[event.call].judged
    if judged and event.status not in _UNREAD:
        conversation = conversation.heard(judged.facts.untrusted)
        conversation = conversation.heard(strangers.found(judged.facts, event.for_model))
    if event.background is not None:
        background = {**background, event.call: event.background}
    return replace(
        state,
        turn=turn.finished(event),
        conversation=conversation,
        questions={i: q for i, q in state.questions.items() if q.asked.call != event.call},
        background=background,
        history=state.history.changed(event.changes),
    )
