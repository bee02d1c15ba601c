"""The fold: entries -> State. Nothing here does I/O.

It is total: an event that makes no sense where it stands (a second answer, a late cancel) changes
nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from magy_server.core import rewind
from magy_server.core.events import (
    Admitted,
    Answered,
    Asked,
    Briefed,
    Call,
    CancelAsked,
    Closed,
    CompactAsked,
    Compacted,
    Configured,
    Consulted,
    Ended,
    Entry,
    Event,
    Exited,
    FileChange,
    Finished,
    Granted,
    Hash,
    Judged,
    Mailed,
    Noted,
    Opened,
    Planned,
    Prompted,
    Replied,
    Requeued,
    Restored,
    Restoring,
    Resumed,
    Started,
    Withdrawn,
)
from magy_server.core.loops import HISTORY, signature, waited
from magy_server.core.mail import TextPayload
from magy_server.core.sizes import decisions, refusals, size, words
from magy_server.core.state import (
    INHERITED,
    MAIL,
    NOTHING,
    RUNS,
    CallState,
    Question,
    Reported,
    State,
    Turn,
)
from magy_server.core.vector import Vector


def fold(entries: Iterable[Entry], state: State) -> State:
    for entry in entries:
        state = apply(state, entry)
    return state


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
            return _brief(state, event)
        case Prompted() | Mailed():
            return _arrive(state, event, seq)
        case Requeued():
            return _requeue(state, event)
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
            return replace(state, plan=event.tasks)
        case Exited():
            rest = {call: group for call, group in state.background.items() if call != event.call}
            return replace(state, background=rest)
        case Ended():
            return replace(state, turn=None, last_stop=event.stop, questions={}, compact=None)
        case Consulted():
            return _spent(_entitle(state, event), event)
        case CompactAsked():
            return replace(state, compact=event)
        case Compacted():
            return _spent(_compact(state, event), event)
        case Noted():
            return _note(state, event)
        case Restoring():
            return rewind.begin(state, event, seq)
        case Restored():
            return rewind.restore(state, event)
    return _in_turn(state, event, at)


def _in_turn(state: State, event: Event, at: float) -> State:
    turn = state.turn
    if turn is None:
        return state
    match event:
        case Replied():
            return _reply(state, turn, event)
        case Judged():
            return _call(state, event.call, lambda call: replace(call, judged=event))
        case Asked():
            asked = _call(state, event.call, lambda call: replace(call, asked=event))
            questions = {**state.questions, event.id: Question(event, at)}
            return replace(asked, questions=questions)
        case Answered():
            return _answer(state, event)
        case Started():
            began = event.evidence
            return _call(state, event.call, lambda c: replace(c, started=began, orphan=False))
        case Finished():
            return _finish(state, turn, event)
        case Resumed():
            calls = {
                id: replace(call, orphan=call.started is not None and call.open)
                for id, call in turn.calls.items()
            }
            return replace(state, turn=replace(turn, calls=calls))
    return state


def _spent(state: State, event: Replied | Consulted | Compacted) -> State:
    """Counts what a request took for the session, for the run, and for the turn if one is open."""
    priced = bool(event.model)
    own = priced and state.run != INHERITED
    state = replace(state, usage=state.usage + event.usage, requests=state.requests + own)
    if event.cost is not None:
        state = replace(state, cost=state.cost + event.cost)
    elif priced:
        state = replace(state, unpriced=state.unpriced + 1)
    if not state.run or not priced:
        return state
    spent = state.runs.get(state.run, NOTHING).plus(event.usage, event.cost, priced=priced)
    others = [(run, took) for run, took in state.runs.items() if run != state.run]
    state = replace(state, runs=dict([*others[1 - RUNS :], (state.run, spent)]))
    if state.turn is None or isinstance(event, Consulted):
        return state
    turn = state.turn
    cost, unpriced = turn.cost + (event.cost or 0.0), turn.unpriced + (event.cost is None)
    return replace(state, turn=replace(turn, cost=cost, unpriced=unpriced))


def _note(state: State, event: Noted) -> State:
    if any(isinstance(item, Noted) and item.id == event.id for item in state.conversation):
        return state
    context = state.context + size(event) // 4
    return replace(state, conversation=state.conversation.append(event), context=context)


def _entitle(state: State, event: Consulted) -> State:
    """Sets the title, unless a person gave one."""
    if event.agent != "title" or state.options.get("title"):
        return state
    return replace(state, options={**state.options, "title": event.text})


def _compact(state: State, event: Compacted) -> State:
    """What the prompt was told of the briefing is in the new prefix, so that goes from the rest."""
    if state.turn:
        turn = state.turn
        spent = replace(turn, requests=turn.requests + 1, usage=turn.usage + event.usage)
        state = replace(state, turn=spent)
    if event.problem:
        return replace(state, compact=None, cancelling=False)
    gone = state.conversation[: event.dropped]
    kept = [i for i in state.conversation[event.dropped :] if not isinstance(i, Briefed)]
    said = tuple(words(item) for item in gone if isinstance(item, Prompted))
    return replace(
        rewind.compact(state, event.dropped),
        prefix=state.briefing,
        conversation=Vector([event, *kept]),
        compact=None,
        cancelling=False,
        context=sum(map(size, kept)) // 4,
        told=state.told + said,
        refused=state.refused + refusals(gone),
        decided=state.decided + decisions(gone),
    )


def _brief(state: State, event: Briefed) -> State:
    prefix = state.prefix
    same = prefix and (prefix.agent, prefix.model, prefix.tools) == (
        event.agent,
        event.model,
        event.tools,
    )
    if not same:
        return replace(state, prefix=event, briefing=event)
    return replace(state, briefing=event, conversation=state.conversation.append(event))


def _arrive(state: State, event: Prompted | Mailed, seq: int) -> State:
    if event.id in state.prompts:
        return state
    state = replace(state, prompts={**state.prompts, event.id: seq})
    if isinstance(event, Mailed) and not isinstance(event.payload, TextPayload):
        return replace(state, mail=(*state.mail, event)[-MAIL:])
    if isinstance(event, Mailed) and event.report:
        reports = {**state.reports, event.sender: Reported(seq, event)}
        state = replace(state, reports=reports)
    return replace(state, waiting=(*state.waiting, event))


def _requeue(state: State, event: Requeued) -> State:
    kept = {p.id: p for p in state.waiting if p.id not in event.dropped}
    first = [kept.pop(id) for id in event.order if id in kept]
    gone = (p for p in state.waiting if p.id in event.dropped and isinstance(p, Prompted))
    withdrawn = state.withdrawn or next((words(prompt) for prompt in gone), "")
    return replace(state, waiting=(*first, *kept.values()), withdrawn=withdrawn)


def _admit(state: State, event: Admitted, at: float) -> State:
    if event.opens:
        state = rewind.remember(state, event.turn)
    waiting = {p.id: p for p in state.waiting}
    admitted = [waiting.pop(id) for id in event.prompts if id in waiting]
    conversation = state.conversation
    for arrival in admitted:
        conversation = conversation.append(arrival)
        state = replace(state, context=state.context + size(arrival) // 4)
    state = replace(state, conversation=conversation, waiting=tuple(waiting.values()))
    if event.opens:
        return _open(state, event.turn, admitted, at)
    if state.turn is None:
        return state
    return replace(state, turn=replace(state.turn, reply=None, calls={}))


def _open(state: State, id: str, admitted: Sequence[Prompted | Mailed], at: float) -> State:
    """A turn that only mail from below opens is still of the run that asked for it, and what was
    left of its caps is left to it: agents cannot keep each other going."""
    asked = any(isinstance(a, Prompted) or a.tasks for a in admitted)
    run = next((a.run for a in admitted if a.id == id), "") or id
    before = state.runs.get(run, NOTHING)
    grants = state.grants
    if run != state.run:
        grants = tuple(grant for grant in grants if grant.scope != "run")
    turn = Turn(id=id, began=at, run=run, before=NOTHING if asked else before)
    return replace(
        state,
        turn=turn,
        turns=state.turns + 1,
        last_stop=None,
        halted=False,
        run=run,
        grants=grants,
    )


def _cancel(state: State, event: CancelAsked) -> State:
    turn = state.turn
    if turn is None:
        compacts = state.compact is not None
        halted = state.halted or (event.turn is None and not compacts)
        return replace(state, cancelling=compacts, halted=halted)
    if turn.cancel or event.turn not in (None, turn.id):
        return state
    return replace(state, turn=replace(turn, cancel=event))


def _reply(state: State, turn: Turn, event: Replied) -> State:
    calls = {part.id: CallState(part) for part in event.content if isinstance(part, Call)}
    turn = replace(
        turn,
        requests=turn.requests + 1,
        usage=turn.usage + event.usage,
        reply=event,
        calls=calls,
    )
    conversation = state.conversation.append(event)
    context = event.usage.total or state.context + size(event) // 4
    return _spent(replace(state, turn=turn, conversation=conversation, context=context), event)


def _answer(state: State, event: Answered) -> State:
    question = state.questions.get(event.id)
    if question is None:
        return state
    questions = {id: q for id, q in state.questions.items() if id != event.id}
    told = _call(state, question.asked.call, lambda call: replace(call, answered=event))
    return replace(told, questions=questions)


def _finish(state: State, turn: Turn, event: Finished) -> State:
    call = turn.calls.get(event.call)
    if call is None or not call.open:
        return state
    title = call.judged.facts.title if call.judged else ""
    again = (*turn.history[-HISTORY:], signature(call.call, event))
    turn = replace(
        turn,
        calls={**turn.calls, event.call: replace(call, finished=event)},
        done=(*turn.done, (title or call.call.name, event.status)),
        history=() if waited(call.started, event) else again,
    )
    questions = {id: q for id, q in state.questions.items() if q.asked.call != event.call}
    background = dict(state.background)
    if event.background is not None:
        background[event.call] = event.background
    return replace(
        state,
        turn=turn,
        conversation=state.conversation.append(event),
        context=state.context + size(event) // 4,
        questions=questions,
        background=background,
        files=_changed(state.files, event.changes),
        seen=_known(state.seen, event),
    )


def _changed(files: Mapping[str, str], changes: Iterable[FileChange]) -> Mapping[str, str]:
    for change in changes:
        if change.via == "proposed":
            continue
        new = files.get(change.path) == "created" or change.before is None
        what = "deleted" if change.after is None else "created" if new else "changed"
        files = {**files, change.path: what}
    return files


def _known(seen: Mapping[str, Hash], event: Finished) -> Mapping[str, Hash]:
    """A call that did not complete may still have written; what it wrote is then not known."""
    for change in event.changes:
        if change.via == "command":
            continue  # the model did not see what a command wrote
        seen = {path: hash for path, hash in seen.items() if path != change.path}
        if change.after and change.now != "link":
            seen[change.path] = change.after
    return {**seen, **{shown.path: shown.hash for shown in event.seen}}


def _call(state: State, id: str, change: Callable[[CallState], CallState]) -> State:
    turn = state.turn
    if turn is None or id not in turn.calls:
        return state
    calls = {**turn.calls, id: change(turn.calls[id])}
    return replace(state, turn=replace(turn, calls=calls))
