"""The fold: entries -> State. Nothing here does I/O, and nobody changes a State.

`State` is what is needed to decide (`steps.py`) and to build a prompt (`prompt.py`). It is total:
an event that makes no sense where it stands (a second answer, a late cancel) changes nothing.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from magy_server.core.events import (
    Admitted,
    Answered,
    Asked,
    Briefed,
    Call,
    CancelAsked,
    Configured,
    Ended,
    Entry,
    Event,
    Evidence,
    Exited,
    Finished,
    Grant,
    Granted,
    Judged,
    Opened,
    Planned,
    Prompted,
    Replied,
    Requeued,
    Resumed,
    Started,
    Stop,
    Task,
    Text,
    Usage,
    Withdrawn,
)
from magy_server.core.vector import Vector

Item = Prompted | Replied | Finished | Briefed
"""What the conversation is made of, in the order in which the model sees it."""

NO_USAGE = Usage()
HISTORY = 30
"""How many finished calls are kept for loop detection: ten rounds of the longest cycle."""


@dataclass(frozen=True, slots=True)
class CallState:
    """How far one tool call has come."""

    call: Call
    judged: Judged | None = None
    asked: Asked | None = None
    answered: Answered | None = None
    started: Evidence | None = None
    orphan: bool = False
    """Started by a process that is gone."""
    finished: Finished | None = None

    @property
    def allowed(self) -> bool:
        if self.judged is None:
            return False
        if self.judged.decision.action == "ask":
            return self.answered is not None and self.answered.allow
        return self.judged.decision.action == "allow"

    @property
    def refused(self) -> bool:
        return self.answered is not None and not self.answered.allow

    @property
    def open(self) -> bool:
        return self.finished is None


@dataclass(frozen=True, slots=True)
class Turn:
    id: str
    began: float
    requests: int = 0
    usage: Usage = NO_USAGE
    reply: Replied | None = None
    """The latest reply; its calls are in `calls`."""
    calls: Mapping[str, CallState] = field(default_factory=dict)
    done: tuple[tuple[str, str], ...] = ()
    """(title, status) of each finished call, for handing back partial work."""
    history: tuple[str, ...] = ()
    cancel: CancelAsked | None = None

    @property
    def open_calls(self) -> list[CallState]:
        return [call for call in self.calls.values() if call.open]


@dataclass(frozen=True, slots=True)
class Question:
    """An open question, as folded."""

    asked: Asked
    at: float


@dataclass(frozen=True, slots=True)
class State:
    stream: str
    seq: int = 0
    at: float = 0.0
    opened: Opened | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    prefix: Briefed | None = None
    """The briefing the prompt's prefix is made of; a later one only adds after it."""
    briefing: Briefed | None = None
    conversation: Vector[Item] = field(default_factory=Vector)
    prompts: Mapping[str, int] = field(default_factory=dict)
    """Seq of every prompt ever received, by id."""
    waiting: tuple[Prompted, ...] = ()
    turn: Turn | None = None
    turns: int = 0
    last_stop: Stop | None = None
    questions: Mapping[str, Question] = field(default_factory=dict)
    grants: tuple[Grant, ...] = ()
    background: Mapping[str, int] = field(default_factory=dict)
    plan: tuple[Task, ...] = ()
    usage: Usage = NO_USAGE

    @property
    def agent(self) -> str:
        return self.options.get("agent", "")

    @property
    def model(self) -> str:
        return self.options.get("model", "")

    @property
    def bypass(self) -> bool:
        return self.options.get("bypass") == "on"

    @property
    def steers(self) -> tuple[Prompted, ...]:
        """Waiting prompts that want to join the running turn."""
        return tuple(p for p in self.waiting if p.delivery == "steer")


def fold(entries: Iterable[Entry], state: State) -> State:
    for entry in entries:
        state = apply(state, entry)
    return state


def apply(state: State, entry: Entry) -> State:
    """One entry further. Raises ValueError on a gap: a fold must see every entry, in order."""
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
        case Prompted() | Requeued():
            return _queue(state, event, seq)
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
            return replace(state, turn=None, last_stop=event.stop, questions={})
    return _in_turn(state, event, at)


def _in_turn(state: State, event: Event, at: float) -> State:
    turn = state.turn
    if turn is None:
        return state
    match event:
        case Replied():
            return _reply(state, turn, event)
        case Judged():
            return _call(state, event.call, judged=event)
        case Asked():
            asked = _call(state, event.call, asked=event)
            questions = {**state.questions, event.id: Question(event, at)}
            return replace(asked, questions=questions)
        case Answered():
            return _answer(state, event)
        case Started():
            return _call(state, event.call, started=event.evidence, orphan=False)
        case Finished():
            return _finish(state, turn, event)
        case Resumed():
            calls = {
                id: replace(call, orphan=call.started is not None and call.open)
                for id, call in turn.calls.items()
            }
            return replace(state, turn=replace(turn, calls=calls))
    return state


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


def _queue(state: State, event: Prompted | Requeued, seq: int) -> State:
    if isinstance(event, Prompted):
        if event.id in state.prompts:
            return state
        prompts = {**state.prompts, event.id: seq}
        return replace(state, prompts=prompts, waiting=(*state.waiting, event))
    kept = {p.id: p for p in state.waiting if p.id not in event.dropped}
    first = [kept.pop(id) for id in event.order if id in kept]
    return replace(state, waiting=(*first, *kept.values()))


def _admit(state: State, event: Admitted, at: float) -> State:
    waiting = {p.id: p for p in state.waiting}
    conversation = state.conversation
    for id in event.prompts:
        if prompt := waiting.pop(id, None):
            conversation = conversation.append(prompt)
    state = replace(state, conversation=conversation, waiting=tuple(waiting.values()))
    if event.opens:
        turn = Turn(id=event.turn, began=at)
        return replace(state, turn=turn, turns=state.turns + 1, last_stop=None)
    if state.turn is None:
        return state
    return replace(state, turn=replace(state.turn, reply=None, calls={}))


def _cancel(state: State, event: CancelAsked) -> State:
    turn = state.turn
    if turn is None or turn.cancel or event.turn not in (None, turn.id):
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
    return replace(state, turn=turn, conversation=conversation, usage=state.usage + event.usage)


def _answer(state: State, event: Answered) -> State:
    question = state.questions.get(event.id)
    if question is None:
        return state
    questions = {id: q for id, q in state.questions.items() if id != event.id}
    return replace(_call(state, question.asked.call, answered=event), questions=questions)


def _finish(state: State, turn: Turn, event: Finished) -> State:
    call = turn.calls.get(event.call)
    if call is None or not call.open:
        return state
    title = call.judged.facts.title if call.judged else ""
    turn = replace(
        turn,
        calls={**turn.calls, event.call: replace(call, finished=event)},
        done=(*turn.done, (title or call.call.name, event.status)),
        history=(*turn.history[-HISTORY:], signature(call.call, event)),
    )
    questions = {id: q for id, q in state.questions.items() if q.asked.call != event.call}
    background = dict(state.background)
    if event.background is not None:
        background[event.call] = event.background
    return replace(
        state,
        turn=turn,
        conversation=state.conversation.append(event),
        questions=questions,
        background=background,
    )


def _call(state: State, id: str, **changes: object) -> State:
    turn = state.turn
    if turn is None or id not in turn.calls:
        return state
    call = replace(turn.calls[id], **changes)  # type: ignore[arg-type]
    return replace(state, turn=replace(turn, calls={**turn.calls, id: call}))


def signature(call: Call, finished: Finished) -> str:
    """Equal for calls that asked the same and got the same."""
    asked = json.dumps([call.name, call.arguments, call.invalid], sort_keys=True)
    text = f"{asked}\0{finished.status}\0{finished.for_model}"
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def repeats(history: tuple[str, ...]) -> int:
    """How often the newest calls repeat: of one call, or of a cycle of two or three (A032)."""
    best = 1 if history else 0
    for period in (1, 2, 3):
        cycle = history[-period:]
        count = 0
        end = len(history)
        while end >= period and history[end - period : end] == cycle:
            count, end = count + 1, end - period
        best = max(best, count)
    return best


def spoken(reply: Replied | None) -> str:
    """The text of a reply, as a person reads it."""
    if reply is None:
        return ""
    return "\n\n".join(part.text for part in reply.content if isinstance(part, Text))
