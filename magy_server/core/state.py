"""What a session is at one moment, folded from its log by `fold.py`. Nobody changes a State.

It holds what is needed to decide (`steps.py`) and to build a prompt (`prompt.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from magy_server.core.events import (
    Answered,
    Asked,
    Briefed,
    Call,
    CancelAsked,
    Closed,
    CompactAsked,
    Compacted,
    Evidence,
    Finished,
    Grant,
    Hash,
    Judged,
    Mailed,
    Noted,
    Opened,
    Prompted,
    Replied,
    Restored,
    Restoring,
    Stop,
    Task,
    Usage,
)
from magy_server.core.vector import Vector

Item = Prompted | Mailed | Replied | Finished | Briefed | Compacted | Noted
"""The conversation is made of these, in the order in which the model sees them."""

Arrival = Prompted | Mailed
"""What waits to enter the conversation."""

NO_USAGE = Usage()
INHERITED = "inherited"
"""The run of what a child was given of its parent's conversation: nothing in it was its own."""
RUNS = 8
"""The state keeps what the latest runs took, this many of them."""
MAIL = 100
"""Messages for machines that are kept, the newest."""


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
class Spent:
    """What model requests took. `cost` is in US dollars, of those whose price is known."""

    requests: int = 0
    usage: Usage = NO_USAGE
    cost: float = 0.0
    unpriced: int = 0

    def plus(self, usage: Usage, cost: float | None, *, priced: bool) -> Spent:
        return Spent(
            self.requests + 1,
            self.usage + usage,
            self.cost + (cost or 0.0),
            self.unpriced + (priced and cost is None),
        )


NOTHING = Spent()


@dataclass(frozen=True, slots=True)
class Turn:
    """`run` is the turn of a person's prompt that led to this one: this itself, that of the parent
    whose task it does, or the one whose children's results opened it. `before`: what that run had
    taken when this began; NOTHING, if somebody asked for this turn. What is counted here is its
    own; its caps are for both."""

    id: str
    began: float
    run: str = ""
    before: Spent = NOTHING
    requests: int = 0
    usage: Usage = NO_USAGE
    cost: float = 0.0
    unpriced: int = 0
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
class Reported:
    """A child's result, and where it stands in the log of who got it: the cursor of a wait."""

    seq: int
    mail: Mailed


@dataclass(frozen=True, slots=True)
class Past:
    """What a State was when turn `turn` began: as far as a person can go back to it. `length`: so
    many items the conversation had; None: they were compacted, it cannot go back there."""

    turn: str
    seq: int
    length: int | None
    prefix: Briefed | None
    briefing: Briefed | None
    plan: tuple[Task, ...]
    context: int
    told: tuple[str, ...]
    refused: tuple[str, ...]
    decided: tuple[str, ...]
    files: Mapping[str, str]
    seen: Mapping[str, Hash]


@dataclass(frozen=True, slots=True)
class Kept:
    """What a restore took away, so that it can be undone: the state before. `place` and `length`
    say where it left the conversation: after which turn, and with how many items."""

    restored: Restored
    state: State
    place: str
    length: int


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
    waiting: tuple[Arrival, ...] = ()
    mail: tuple[Mailed, ...] = ()
    """Data and signals that came, the newest `MAIL`."""
    reports: Mapping[str, Reported] = field(default_factory=dict)
    """The latest result of each child, by its session id."""
    closed: Closed | None = None
    turn: Turn | None = None
    turns: int = 0
    last_stop: Stop | None = None
    halted: bool = False
    """A person stopped what was about to begin, or took something back: what comes from below waits
    for their word."""
    questions: Mapping[str, Question] = field(default_factory=dict)
    grants: tuple[Grant, ...] = ()
    background: Mapping[str, int] = field(default_factory=dict)
    plan: tuple[Task, ...] = ()
    usage: Usage = NO_USAGE
    cost: float = 0.0
    """US dollars, of the requests whose price is known."""
    unpriced: int = 0
    """Requests whose price is not known."""
    requests: int = 0
    """To models, so far."""
    run: str = ""
    """Of the latest turn."""
    runs: Mapping[str, Spent] = field(default_factory=dict)
    """What the latest `RUNS` runs took in this session."""
    context: int = 0
    """Tokens that the next request will have, roughly: those of the latest one, which the provider
    counted, and what came since."""
    compact: CompactAsked | None = None
    cancelling: bool = False
    """The compaction that runs between turns shall stop."""
    withdrawn: str = ""
    """What the person asked first of what was taken back before a turn took it in."""
    told: tuple[str, ...] = ()
    """What the person said in the parts of the conversation that were compacted."""
    refused: tuple[str, ...] = ()
    """What the person refused in those parts, as the model was told."""
    decided: tuple[str, ...] = ()
    """What the model was told there of the person's decisions about its changes."""
    files: Mapping[str, str] = field(default_factory=dict)
    """created | changed | deleted, by path: what this session did to each file, on the whole."""
    seen: Mapping[str, Hash] = field(default_factory=dict)
    """The text of each file that the model knows, by path: as it was read or written last."""
    pasts: Vector[Past] = field(default_factory=Vector)
    """The beginnings of the turns that are in the conversation, or were until it was compacted."""
    kept: tuple[Kept, ...] = ()
    """By the restores since the last turn or compaction, oldest first."""
    restoring: Restoring | None = None
    """A restore that was begun and not finished."""

    @property
    def agent(self) -> str:
        return self.options.get("agent", "")

    @property
    def model(self) -> str:
        return self.options.get("model", "")

    @property
    def review(self) -> str:
        """review | propose | auto; "": as configured."""
        return self.options.get("review", "")

    @property
    def bypass(self) -> bool:
        return self.options.get("bypass") == "on"

    @property
    def steers(self) -> tuple[Arrival, ...]:
        """What waits and wants to join the running turn."""
        return tuple(p for p in self.waiting if p.delivery == "steer")
