"""`next_step` tells what to do next: it is a pure and total function of the state.

Normal running, answering a question an hour later and resuming after a crash are one code path:
fold the log, ask `next_step`, perform. It names every call that may start now, and is asked again
after each append while others run; the loop does not start what it is already performing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from itertools import takewhile

from magy_server.core.agents.mail import Mailed
from magy_server.core.events import Prompted, Replied, Stop
from magy_server.core.prompting.compaction import due
from magy_server.core.prompting.repeats import repeats
from magy_server.core.state.queue import Arrival
from magy_server.core.state.state import State
from magy_server.core.state.turn import CallState, Turn
from magy_server.core.values import Limits
from magy_server.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Admit:
    """Admit waiting prompts to the conversation; with `opens`, as a new turn."""

    prompts: tuple[str, ...]
    turn: str
    opens: bool


@dataclass(frozen=True, slots=True)
class CallModel:
    """Make the request that the log so far calls for."""


@dataclass(frozen=True, slots=True)
class Compact:
    """Replace the older part of the conversation by a summary; or, `cancelled`, let it be."""

    cancelled: bool = False


@dataclass(frozen=True)
class OfCalls:
    calls: tuple[str, ...]


class Judge(OfCalls):
    pass


class RunTools(OfCalls):
    pass


class Refuse(OfCalls):
    """The person said no: tell the model, with the reason."""


class Recover(OfCalls):
    """Look at what happened: a process that is gone started the call."""


@dataclass(frozen=True, slots=True)
class Wait:
    """Wait for a running call, or for a person's answer."""


@dataclass(frozen=True, slots=True)
class End:
    """Stop what runs, close what is open, and end the turn, in one append."""

    stop: Stop
    message: str = ""


@dataclass(frozen=True, slots=True)
class Rest:
    """No turn, no prompt: nothing to do until something arrives."""


Step = Admit | CallModel | Compact | Judge | RunTools | Refuse | Recover | Wait | End | Rest


def next_step(state: State) -> Step:
    turn = state.turn
    if turn is None:
        if state.compact:
            return Compact(state.cancelling)
        if first := opener(state):
            return Admit(_together(state, first), turn=first.id, opens=True)
        return Rest()
    if turn.cancel:
        if turn.cancel.why == "max_time":
            return End("max_time", hand_back(state, turn, "the time limit for one turn"))
        return End("cancelled")
    if any(call.open for call in turn.calls.values()):
        return _calls(state, turn)
    return _talk(state, turn)


def opener(state: State) -> Arrival | None:
    """Returns what opens the next turn, of all that waits. What comes from below opens none where a
    person stopped the work or something else did: it waits for the next word of a person or a
    parent."""
    rests = (
        state.last_stop in (None, "end_turn") and not state.queue.halted and state.closed is None
    )

    def opens(arrival: Arrival) -> bool:
        return isinstance(arrival, Prompted) or arrival.tasks or (arrival.wakes and rests)

    return next(filter(opens, state.queue.waiting), None)


def _together(state: State, first: Arrival) -> tuple[str, ...]:
    """Returns the ids of all mail that has come, and then of the prompt."""
    mail = tuple(arrival.id for arrival in state.queue.waiting if isinstance(arrival, Mailed))
    return mail if first.id in mail else (*mail, first.id)


def _calls(state: State, turn: Turn) -> Step:
    """What the open calls of the latest reply need; nothing any more, once one has run that ends
    the turn."""
    if _ended_by(state, turn):
        return End("end_turn")
    open_calls = [call for call in turn.calls.values() if call.open]
    if orphans := _ids(call for call in open_calls if call.orphan):
        return Recover(orphans)
    if refused := _ids(call for call in open_calls if call.refused):
        return Refuse(refused)
    readers = state.conversation.briefing.readers if state.conversation.briefing else ()
    ready = [call for call in _in_line(open_calls, readers) if call.started is None]
    if unjudged := _ids(call for call in ready if call.judged is None):
        return Judge(unjudged)
    if runnable := _ids(call for call in ready if call.allowed):
        return RunTools(runnable)
    return Wait()


def _in_line(open_calls: list[CallState], readers: tuple[str, ...]) -> list[CallState]:
    """The open calls whose turn it is. A call with effects goes alone, in the model's order, so
    that each is judged and run on what those before it left; reads in between go side by side."""
    first = open_calls[0]
    if first.call.name not in readers:
        return [first]
    return list(takewhile(lambda call: call.call.name in readers, open_calls))


def _talk(state: State, turn: Turn) -> Step:
    """No call is open: let steering prompts in, ask the model, or end."""
    if end := _final(state, turn):
        return end
    steers = tuple(p.id for p in state.queue.steers)
    if turn.given and not steers:
        return End("end_turn")
    unanswered = turn.reply is None or bool(turn.calls)
    if turn.reply is not None and not unanswered and not steers:
        return _end(turn.reply)
    if limit := _limit(state, turn):
        return limit
    if state.compact or due(state):
        return Compact()
    if steers:
        return Admit(steers, turn=turn.id, opens=False)
    return CallModel()


def _final(state: State, turn: Turn) -> End | None:
    """A tool that ends the turn has run; or the reply that should have called it was cut short,
    which it would be again."""
    if _ended_by(state, turn):
        return End("end_turn")
    names = state.conversation.briefing.final if state.conversation.briefing else ()
    cut = bool(names) and turn.reply is not None and turn.reply.stop == "max_tokens"
    return End("max_tokens") if cut else None


def _ended_by(state: State, turn: Turn) -> bool:
    """Returns whether a call has run that ends the turn, however it went."""
    names = state.conversation.briefing.final if state.conversation.briefing else ()
    calls = [call for call in turn.calls.values() if call.call.name in names]
    return any(call.allowed and not call.open for call in calls)


STRAY = (
    "The model wrote a tool call as text. Magy did not run it: there is other text beside it, or "
    'the model has no such tool. Prompt again (for example: "Call one of your tools, and write '
    'nothing else"), or choose a model that supports tool calls.'
)


def _end(reply: Replied) -> End:
    if reply.stop == "stray_call":
        return End("stray_call", STRAY)
    stop: Stop = "end_turn" if reply.stop == "tool_use" else reply.stop
    return End(stop, "" if reply.text else "The model ended its turn without an answer.")


def _limit(state: State, turn: Turn) -> End | None:
    limits = state.conversation.briefing.limits if state.conversation.briefing else Limits()
    spent = turn.before + turn.spent
    tokens, cost = spent.usage.total, spent.cost
    if limits.requests and spent.requests >= limits.requests:
        why = f"the limit of {limits.requests} model requests for one turn"
        return End("max_requests", hand_back(state, turn, why))
    if limits.tokens and tokens >= limits.tokens:
        why = f"the limit of {limits.tokens} tokens for one turn ({tokens} used)"
        return End("max_turn_tokens", hand_back(state, turn, why))
    if limits.cost and cost >= limits.cost:
        why = f"the limit of ${limits.cost:g} for one turn (${cost:.4f} spent)"
        return End("max_cost", hand_back(state, turn, why))
    if limits.repeats and (count := repeats(turn.signatures)) >= limits.repeats:
        why = f"a loop: the same calls with the same outcome, {count} times"
        return End("loop", hand_back(state, turn, why))
    return None


def hand_back(state: State, turn: Turn, why: str) -> str:
    """Returns the partial work of a turn that was stopped, for the person (G024)."""
    lines = [f"Stopped at {why}. Nothing is lost: send another prompt to continue."]
    if done := Counter(turn.done):
        lines.append("Done in this turn:")
        for (title, status), count in list(done.items())[:20]:
            times = f" ({count} times)" if count > 1 else ""
            lines.append(f"- {title}: {status}{times}")
    plan = state.conversation.plan
    if left := [task.content for task in plan if task.status in ("pending", "in_progress")]:
        lines.append("Still to do in the plan:")
        lines.extend(f"- {content}" for content in left)
    return "\n".join(lines)


def _ids(calls: Iterable[CallState]) -> tuple[str, ...]:
    return tuple(call.call.id for call in calls)


def works(step: Step, waits: Callable[[str], bool]) -> bool:
    """Whether to perform this step is work, for which a child must have a slot. `waits`: whether a
    call only waits."""
    match step:
        case RunTools(calls) | Recover(calls):
            return not all(map(waits, calls))
        case Rest() | Wait() | End() | Compact(cancelled=True):
            return False
    return True
