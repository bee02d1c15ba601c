"""Children as seen from outside: how they are, and whether one more may be spawned. Pure.

Limits are clamped to what holds on any machine, whatever is asked for (C049 to C054); `clamped`
says what became of a value, so that nobody wonders.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Literal

from magy_server.core.agents import tree
from magy_server.core.agents.mail import Report, Status
from magy_server.core.permit import Ruleset
from magy_server.core.state.spending import NO_SPENDING, Spent
from magy_server.core.state.state import State
from magy_server.core.state.turn import Turn
from magy_server.core.steps import opener
from magy_server.core.values import Content, Limits

ENDED: Mapping[str, Status] = {"end_turn": "completed", "cancelled": "cancelled"}
"""How a turn ended, by its stop reason; with all others it failed."""
LIVE: tuple[Status, ...] = ("queued", "running", "waiting")
MAX_QUEUE = 200


@dataclass(frozen=True, slots=True)
class SpawnLimits:
    """`depth`: how far below a root children may be. `children`: that one session may have and not
    closed. `total`: that may be at work in this process. `concurrent`: turns of children that go on
    at once; the others wait, at most `queue` of them."""

    depth: int = 2
    children: int = 4
    total: int = 24
    concurrent: int = 8
    queue: int = MAX_QUEUE


CLAMPS: Mapping[str, tuple[int, int]] = {
    "depth": (1, 3),
    "children": (1, 4),
    "total": (1, 256),
    "concurrent": (1, 10),
    "queue": (1, MAX_QUEUE),
}


def clamped(asked: SpawnLimits) -> tuple[SpawnLimits, tuple[str, ...]]:
    """Returns the limits that hold, and a sentence for each that differs from what was asked."""
    said = []
    for field in fields(asked):
        low, high = CLAMPS[field.name]
        value = getattr(asked, field.name)
        held = min(max(value, low), high)
        if held != value:
            said.append(f"spawn.max_{field.name}: {value} becomes {held} ({low} to {high}).")
            asked = replace(asked, **{field.name: held})
    return asked, tuple(said)


def status(state: State, *, queued: bool = False) -> Status:
    """Returns how a child is. `queued`: its turn waits for a free slot."""
    if state.questions:
        return "waiting"
    if state.turn is not None:
        return "queued" if queued and not state.turn.spent.requests else "running"
    if opener(state):
        return "queued"
    if state.closed is not None:
        return "closed"  # how its last turn ended, its stop reason says
    if state.last_stop is None:  # nothing was said to it yet, or that was taken back
        return "cancelled" if state.queue.seqs else "queued"
    return ended(state.last_stop)


def ended(stop: str) -> Status:
    return ENDED.get(stop, "failed")


def report(turn: Turn, stop: str, now: float) -> Report:
    return Report(
        turn=turn.id,
        status=ended(stop),
        stop=stop,
        requests=turn.spent.requests,
        usage=turn.spent.usage,
        cost=turn.spent.cost,
        unpriced=turn.spent.unpriced,
        seconds=max(0.0, now - turn.began),
    )


@dataclass(frozen=True, slots=True)
class Spawn:
    """What is wanted of a new child. `key` names it below its parent: the call's id, or that of the
    request; spawning twice under one key is once. `context`: how many of the parent's latest turns
    it knows, -1 all. `rules` may only narrow. `cwd`: absolute; "": the parent's. `by`: which
    process asked, or "" for a model."""

    key: str
    agent: str
    prompt: tuple[Content, ...]
    name: str = ""
    context: int = 0
    model: str = ""
    rules: Ruleset | None = None
    limits: Limits | None = None
    cwd: str = ""
    by: str = ""


@dataclass(frozen=True, slots=True)
class ChildInfo:
    """A child at a glance. `spent` is its own; `tree` with all below it. `said`: the beginning of
    its latest result, or of its task. `questions`: open ones, its own and below."""

    session: str
    parent: str
    name: str
    agent: str
    model: str
    status: Status
    depth: int
    turns: int = 0
    waiting: int = 0
    questions: int = 0
    spent: Spent = NO_SPENDING
    tree: Spent = NO_SPENDING
    said: str = ""
    stop: str = ""
    created: float = 0.0
    updated: float = 0.0


@dataclass(frozen=True, slots=True)
class Result:
    """What a wait says of one child. `text`: its latest result; `seq`: where that stands in the
    parent's log, 0: there is none."""

    child: ChildInfo
    text: str = ""
    report: Report | None = None
    seq: int = 0
    mail: str = ""
    """The id of the message that has the result, while that waits; "" when it was delivered."""

    @property
    def had(self) -> bool:
        """The parent got it before."""
        return self.seq > 0 and not self.mail


@dataclass(frozen=True, slots=True)
class Waited:
    """`cursor`: to be passed on, so that nothing is missed. `why` the wait ended: what was waited
    for has come; its time; the person (or another agent) spoke to the one who waits. `deleted`: the
    ids of those that are not there any more."""

    results: tuple[Result, ...]
    cursor: int
    why: Literal["done", "timed_out", "interrupted"]
    deleted: tuple[str, ...] = ()


def refusal(
    parent: str, limits: SpawnLimits, siblings: Sequence[str], working: int, queued: int
) -> str:
    """Returns why `parent` may not spawn another child; "" when it may. `siblings`: its children
    that are not closed, each in words. `working`, `queued`: children at work in this process, and
    those of them that wait."""
    if tree.depth(parent) >= limits.depth:
        return (
            f"There can be no child here: agents may be {limits.depth} levels deep "
            "(spawn.max_depth), and this is the deepest. The task has to be done without one."
        )
    if len(siblings) >= limits.children:
        return (
            f"No more than {limits.children} children at once (spawn.max_children). There are: "
            f"{', '.join(siblings)}. Close one, or send it the task."
        )
    if working >= limits.total:
        return (
            f"{working} children are at work in this process, which is the limit "
            f"(spawn.max_total: {limits.total}). Wait for one of yours, or close one."
        )
    if queued >= limits.queue:
        return (
            f"{queued} children wait for a slot, and no more than {limits.queue} may "
            f"(spawn.max_queue). Wait until one has begun."
        )
    return ""
