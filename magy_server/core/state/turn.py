"""`Turn` tells how far a turn has come: its calls, and what it took."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field

from magy_server.core.events import Answered, Asked, CancelAsked, Finished, Judged, Replied
from magy_server.core.prompting.repeats import HISTORY, signature, waited
from magy_server.core.skills.statement import joined
from magy_server.core.state.replacing import replace
from magy_server.core.state.spending import NO_SPENDING, Spent
from magy_server.core.state.vector import Vector
from magy_server.core.values import Call, Evidence, SkillUse
from magy_server.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class CallState:
    """How far one tool call has come."""

    call: Call
    judged: Judged | None = None
    asked: Asked | None = None
    answered: Answered | None = None
    started: Evidence | None = None
    orphan: bool = False
    """A process that is gone started it."""
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
    """`run` is the turn of a person's prompt that led to this one: this itself, that of the parent
    whose task it does, or the one whose children's results opened it. `before`: what that run had
    taken when this began; NO_SPENDING, if somebody asked for this turn. What is counted here is its
    own; its caps are for both."""

    id: str
    began: float
    run: str = ""
    before: Spent = NO_SPENDING
    spent: Spent = NO_SPENDING
    reply: Replied | None = None
    """The latest reply; its calls are in `calls`."""
    calls: Mapping[str, CallState] = field(default_factory=dict)
    done: Vector[tuple[str, str]] = field(default_factory=Vector)
    """(title, status) of each finished call, for handing back partial work."""
    signatures: tuple[str, ...] = ()
    cancel: CancelAsked | None = None
    skills: tuple[SkillUse, ...] = ()
    """Those at work."""

    @property
    def open_calls(self) -> list[CallState]:
        return [call for call in self.calls.values() if call.open]

    @property
    def given(self) -> bool:
        """Returns whether it has come no further than a call that the person made."""
        return self.reply is not None and not self.reply.model

    def took(self, spent: Spent) -> Turn:
        return replace(self, spent=self.spent + spent)

    def replied(self, event: Replied) -> Turn:
        """Returns the turn with this reply, whose calls replace those of the reply before."""
        return replace(
            self,
            reply=event,
            calls={part.id: CallState(part) for part in event.content if isinstance(part, Call)},
        )

    def steered(self) -> Turn:
        """Returns the turn after a prompt has joined it, which the latest reply does not answer."""
        return replace(self, reply=None, calls={})

    def with_skills(self, brought: tuple[SkillUse, ...]) -> Turn:
        return replace(self, skills=joined(self.skills, brought)) if brought else self

    def cancelled(self, event: CancelAsked) -> Turn:
        return self if self.cancel else replace(self, cancel=event)

    def judged(self, event: Judged) -> Turn:
        return self._call(event.call, lambda call: replace(call, judged=event))

    def asked(self, event: Asked) -> Turn:
        return self._call(event.call, lambda call: replace(call, asked=event))

    def answered(self, call: str, event: Answered) -> Turn:
        return self._call(call, lambda call: replace(call, answered=event))

    def started(self, call: str, evidence: Evidence) -> Turn:
        return self._call(call, lambda call: replace(call, started=evidence, orphan=False))

    def resumed(self) -> Turn:
        """Returns the turn as another process continues it: calls that had started are orphans."""
        calls = {
            id: replace(call, orphan=call.started is not None and call.open)
            for id, call in self.calls.items()
        }
        return replace(self, calls=calls)

    def finished(self, event: Finished) -> Turn:
        """Returns the turn with an open call finished."""
        call = self.calls[event.call]
        title = call.judged.facts.title if call.judged else ""
        again = (*self.signatures[-HISTORY:], signature(call.call, event))
        return replace(
            self,
            calls={**self.calls, event.call: replace(call, finished=event)},
            done=self.done.append((title or call.call.name, event.status)),
            signatures=() if waited(call.started, event) else again,
        )

    def is_open(self, call: str) -> bool:
        return call in self.calls and self.calls[call].open

    def _call(self, id: str, change: Callable[[CallState], CallState]) -> Turn:
        if id not in self.calls:
            return self
        return replace(self, calls={**self.calls, id: change(self.calls[id])})
