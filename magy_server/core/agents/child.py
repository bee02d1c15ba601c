"""This module tells how children are, and whether one more may be spawned. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from magy_server.core.agents import tree
from magy_server.core.agents.mail import Mailed, Report, Status
from magy_server.core.permit import Ruleset
from magy_server.core.spawn_settings import SpawnSettings
from magy_server.core.state.spending import NO_SPENDING, Spent
from magy_server.core.state.state import State
from magy_server.core.state.turn import Turn
from magy_server.core.steps import opener
from magy_server.core.values import Content, Limits
from magy_server.dataclass import dataclass

ENDED: Mapping[str, Status] = {"end_turn": "completed", "cancelled": "cancelled"}
"""How a turn ended, by its stop reason; with all others it failed."""
LIVE: tuple[Status, ...] = ("queued", "running", "waiting")


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
    it knows, -1 all. `rules` may only narrow. `cwd`: absolute; "": where the parent works now.
    `by`: which process asked, or "" for a model. `letters`: messages that it gets together with its
    task. `worktree`: it works in one of its own, also if its agent's file does not say so.
    `plugin`: the only one of which it has anything; "": its agent's, else its parent's."""

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
    letters: tuple[Mailed, ...] = ()
    worktree: bool = False
    plugin: str = ""


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
    """How a wait ended. `cursor`: pass it to the next wait, so that nothing is missed. `why`: the
    results have come, the time was up, the person (or another agent) wrote to the session that
    waits, or others of them ask than asked before. `deleted`: the ids of those that are not there
    any more. `asking`: of those that wait for an answer themselves."""

    results: tuple[Result, ...]
    cursor: int
    why: Literal["done", "timed_out", "interrupted", "asking"]
    deleted: tuple[str, ...] = ()
    asking: frozenset[str] = frozenset()


def refusal(
    parent: str, limits: SpawnSettings, siblings: Sequence[str], working: int, queued: int
) -> str:
    """Returns why `parent` may not spawn another child; "" when it may. `siblings`: its children
    that are not closed, each in words. `working`, `queued`: children at work in this process, and
    those of them that wait."""
    if tree.depth(parent) >= limits.max_depth:
        return (
            f"There can be no child here: agents may be {limits.max_depth} levels deep "
            "(spawn.max_depth), and this is the deepest. The task has to be done without one."
        )
    if len(siblings) >= limits.max_children:
        return (
            f"No more than {limits.max_children} children at once (spawn.max_children). There are: "
            f"{', '.join(siblings)}. Close one, or send it the task."
        )
    if working >= limits.max_total:
        return (
            f"{working} children are at work in this process, which is the limit "
            f"(spawn.max_total: {limits.max_total}). Wait for one of yours, or close one."
        )
    if queued >= limits.max_queue:
        return (
            f"{queued} children wait for a slot, and no more than {limits.max_queue} may "
            f"(spawn.max_queue). Wait until one has begun."
        )
    return ""
