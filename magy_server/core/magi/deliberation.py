"""A deliberation is its case and the attempts of the three nodes to vote, as the log has them; what
is to be done next, and in which state it is, are functions of that. Pure.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal

from magy_server.core.agents.mail import Report
from magy_server.core.magi.case import TIMES, Case, mode
from magy_server.core.magi.vote import NODES, Node, Vote
from magy_server.core.magi.vote_parsing import read
from magy_server.dataclass import dataclass

TRIES = 3
"""The first try of a node, one more, and one by its replacement."""
ENOUGH = 2
"""So many votes there must be before others are told of them."""
Outcome = Literal["live", "vote", "invalid", "timeout", "failed", "cancelled"]
State = Literal[
    "INIT", "STAGE1_SPAWNING", "STAGE1_COLLECTING", "VALIDATING", "STAGE2_DIGEST",
    "STAGE2_COLLECTING", "TALLYING", "CRISIS", "REPORTING", "DONE",
]  # fmt: skip
Stage = Literal[1, 2]


@dataclass(frozen=True, slots=True)
class Attempt:
    """`problem`: why there is no vote, a sentence. `original`: what a vote was read from, where
    something in it was mended. `warning`: of the watchdog. `report`: what it took, once it has
    ended; no ruling depends on it."""

    model: str
    outcome: Outcome
    vote: Vote | None = None
    repairs: tuple[str, ...] = ()
    problem: str = ""
    original: str = ""
    warning: str = ""
    report: Report | None = None


GONE = Attempt("", "cancelled", problem="It was stopped.")
"""Of a node that was stopped or closed: the same whether it could still say so or not."""


def attempt(node: Node, model: str, text: str, warning: str = "") -> Attempt:
    """Returns the attempt that came to this text."""
    found = read(node, text)
    if found.vote is None:
        problem = found.problem
        return Attempt(model, "invalid", problem=problem, original=text, warning=warning)
    original = text if found.repairs else ""
    return Attempt(model, "vote", found.vote, found.repairs, "", original, warning)


@dataclass(frozen=True, slots=True)
class Ballot:
    """What one node has done: its attempts at the first vote, and at the second."""

    node: Node
    first: tuple[Attempt, ...] = ()
    second: tuple[Attempt, ...] = ()

    @property
    def vote(self) -> Vote | None:
        """Returns the first vote; None: there is none (yet)."""
        return self.first[-1].vote if self.first else None

    @property
    def revised(self) -> Vote | None:
        return self.second[-1].vote if self.second else None

    @property
    def counted(self) -> Vote | None:
        """Returns the vote that counts."""
        return self.revised or self.vote

    @property
    def settled(self) -> bool:
        """Nothing more comes of the first stage."""
        if not self.first or self.first[-1].outcome == "live":
            return False
        return self.first[-1].outcome in ("vote", "cancelled") or len(self.first) >= TRIES

    @property
    def baseless(self) -> bool:
        """The node has changed its vote without anything new that would speak for that."""
        first, second = self.vote, self.revised
        if first is None or second is None:
            return False
        changed = (first.verdict, first.confidence) != (second.verdict, second.confidence)
        known = {*first.evidence, *first.new_evidence}
        return changed and not set(second.new_evidence) - known


@dataclass(frozen=True, slots=True)
class Deliberation:
    """`id`: the session, a slash, and the call that began it. `models`: which each node is asked
    with, and `warnings` about that. `earlier`: what the ruling under review was. `unmet`: numbers
    of conditions that are not met. `reminded`: what CASPER was told of its emotional log."""

    id: str
    case: Case
    ballots: tuple[Ballot, ...]
    warnings: tuple[str, ...] = ()
    earlier: str = ""
    unmet: frozenset[int] = frozenset()
    reminded: tuple[str, ...] = ()

    @property
    def twice(self) -> bool:
        """The nodes vote again after a digest."""
        votes = sum(one.vote is not None for one in self.ballots)
        return TIMES[mode(self.case)[0]].second > 0 and votes >= ENOUGH

    @property
    def order(self) -> tuple[Node, ...]:
        """Returns the nodes in the order of the digest: drawn by lot, the same for the same id."""
        return tuple(sorted(NODES, key=lambda node: _lot(f"{self.id} {node}")))

    @property
    def begins(self) -> Sequence[tuple[Node, Stage, int]]:
        """Returns the attempts that may begin now: the node, first or second vote, and the number
        of the attempt from 1."""
        if not all(one.settled for one in self.ballots):
            return [
                (one.node, 1, len(one.first) + 1) for one in self.ballots
                if not one.settled and not (one.first and one.first[-1].outcome == "live")
            ]  # fmt: skip
        if not self.twice:
            return []
        return [(one.node, 2, 1) for one in self.ballots if one.vote and not one.second]

    @property
    def complete(self) -> bool:
        """No more votes come."""
        live = any(a.outcome == "live" for one in self.ballots for a in (*one.first, *one.second))
        return not live and not self.begins

    @property
    def state(self) -> State:
        """Returns where it stands, until all votes are there; then it is to be tallied."""
        if not all(one.settled for one in self.ballots):
            begun = sum(bool(one.first) for one in self.ballots)
            if begun == len(NODES):
                return "STAGE1_COLLECTING"
            return "STAGE1_SPAWNING" if begun else "INIT"
        if self.complete:
            return "TALLYING"
        begun = sum(bool(one.second) for one in self.ballots)
        return "STAGE2_COLLECTING" if begun else "STAGE2_DIGEST"


def over(deliberation: Deliberation) -> Deliberation:
    """Returns a deliberation to which no more votes come: who has said nothing was closed."""
    first = tuple(
        one if one.settled else replace(one, first=(*one.first, GONE))
        for one in deliberation.ballots
    )
    now = replace(deliberation, ballots=first)
    if not now.twice:
        return now
    second = (one if one.second or not one.vote else replace(one, second=(GONE,)) for one in first)
    return replace(now, ballots=tuple(second))


def passed(deliberation: Deliberation, *, crisis: bool) -> tuple[State, ...]:
    """Returns the states that a deliberation which is over has gone through."""
    found: list[State] = ["INIT", "STAGE1_SPAWNING", "STAGE1_COLLECTING", "VALIDATING"]
    if deliberation.twice:
        found += ["STAGE2_DIGEST", "STAGE2_COLLECTING"]
    found.append("TALLYING")
    if crisis:
        found.append("CRISIS")
    return (*found, "REPORTING", "DONE")


def empty() -> tuple[Ballot, ...]:
    return tuple(Ballot(node) for node in NODES)


def by_node(ballots: Sequence[Ballot]) -> Mapping[Node, Ballot]:
    return {one.node: one for one in ballots}


def _lot(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
