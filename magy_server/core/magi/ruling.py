"""The ruling is a function of the recorded votes; as canonical JSON it is the same byte for byte,
whenever and wherever it is worked out. All that people are shown is made of that JSON. Pure.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

from magy_server.core.magi.case import Mode, mode
from magy_server.core.magi.deliberation import Attempt, Ballot, Deliberation, by_node, passed
from magy_server.core.magi.tally import Cast, Tally, tally
from magy_server.core.magi.vote import TITLES, Node, Vote, tier
from magy_server.core.values import digest
from magy_server.dataclass import dataclass

VERSION = 1
FAILURES = 2
"""Failure modes that go with a confidence."""
TRADEOFFS, SIGNALS = 4, 4
CRISIS: Mapping[str, str] = {
    "A": "gather what is missing, then ask again",
    "B": "ask again with other assumptions, said openly",
    "C": "escalate to the people who answer for it",
    "D": "take precautions: do not act, and keep things as they are",
    "E": "defer it to a set date, at which it lapses if nobody decides",
}
DEFAULT, THEN = "D", "C"

Canonical = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Condition:
    """`number`: from 1, in the order of the nodes. `met` False: a person says that it is not."""

    number: int
    node: Node
    text: str
    met: bool


@dataclass(frozen=True, slots=True)
class Ruling:
    """What a deliberation comes to. `votes`: those that count, with what is not met as a no."""

    deliberation: Deliberation
    mode: Mode
    why_mode: str
    votes: Mapping[Node, Vote | None]
    conditions: tuple[Condition, ...]
    tally: Tally

    @property
    def aligned(self) -> tuple[Node, ...]:
        nodes = tuple(self.votes)
        return tuple(nodes[place] for place in self.tally.aligned)

    @property
    def minority(self) -> tuple[Node, ...]:
        return tuple(n for n, vote in self.votes.items() if vote and n not in self.aligned)

    @property
    def crisis(self) -> bool:
        return self.tally.final == "DEADLOCK"

    @property
    def overturns(self) -> bool:
        """It differs from the ruling under review, so a person has to accept it."""
        earlier = self.deliberation.earlier
        return bool(earlier) and not self.crisis and earlier != self.tally.final

    @property
    def person_needed(self) -> bool:
        return self.deliberation.case.critical or self.overturns or self.tally.standing in (
            "provisional", "aborted"
        )  # fmt: skip


def rule(deliberation: Deliberation) -> Ruling:
    """Returns the ruling of a deliberation that is complete."""
    conditions = tuple(_conditions(deliberation))
    unmet = {one.node for one in conditions if not one.met}
    votes: dict[Node, Vote | None] = {}
    for ballot in deliberation.ballots:
        vote = ballot.counted
        if vote and ballot.node in unmet:
            vote = vote.model_copy(update={"verdict": "REJECT"})
        votes[ballot.node] = vote
    cast: list[Cast | None] = [
        (vote.verdict, vote.confidence) if vote else None for vote in votes.values()
    ]
    case = deliberation.case
    found = tally(cast, high_risk=case.high_risk, critical=case.critical)
    return Ruling(deliberation, *mode(case), votes, conditions, found)


def _conditions(deliberation: Deliberation) -> Iterator[Condition]:
    number = 0
    for ballot in deliberation.ballots:
        vote = ballot.counted
        if vote and vote.verdict == "CAVEATED" and vote.caveats:
            for text in vote.caveats.preconditions:
                number += 1
                yield Condition(number, ballot.node, text, number not in deliberation.unmet)


# --- as JSON --------------------------------------------------------------------------------------


def encoded(value: Canonical) -> bytes:
    """Returns the one form that this JSON has."""
    return json.dumps(
        value, ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False
    ).encode("utf-8", "replace")


def canonical(ruling: Ruling) -> Canonical:
    """Returns all that there is to say, as JSON."""
    deliberation = ruling.deliberation
    case, found = deliberation.case, ruling.tally
    ballots = by_node(deliberation.ballots)
    return {
        "version": VERSION,
        "id": deliberation.id,
        "question": case.question,
        "context": digest(case.context.encode("utf-8", "replace")) if case.context else "",
        "mode": ruling.mode,
        "why_mode": ruling.why_mode,
        "domain": case.domain,
        "domain_confidence": case.domain_confidence,
        "high_risk": case.high_risk,
        "high_stakes": case.high_stakes,
        "final": found.final,
        "standing": found.standing,
        "why": found.why,
        "magnitude": found.magnitude,
        "confidence": {
            "percent": found.confidence,
            "tier": tier(found.confidence),
            "of": list(ruling.aligned),
            "provenance": _provenance(ruling, ballots),
        },
        "count": _count(ruling.votes.values()),
        "safety": list(_safety(ruling)),
        "person_needed": ruling.person_needed,
        "blocked": case.critical,
        "failure_modes": _failure_modes(ruling),
        "next_step": _next_step(ruling),
        "crisis": _crisis(ruling),
        "conditions": [
            {"number": one.number, "node": one.node, "text": one.text, "met": one.met}
            for one in ruling.conditions
        ],
        "nodes": [_node(one, deliberation, ruling) for one in deliberation.ballots],
        "minority": list(ruling.minority),
        "tensions": list(_tensions(ruling)) if ruling.mode == "DEEP" else [],
        "synthesis": _synthesis(ruling) if ruling.mode == "DEEP" else None,
        "digest_order": list(deliberation.order) if deliberation.twice else [],
        "states": list(passed(deliberation, crisis=ruling.crisis)),
        "warnings": [*deliberation.warnings, *_watchdog(deliberation)],
        "review": _review(ruling),
        **({"reminded": list(deliberation.reminded)} if deliberation.reminded else {}),
    }


def _count(votes: Iterable[Vote | None]) -> Canonical:
    said = [vote.verdict if vote else "NONE" for vote in votes]
    approve, reject = said.count("APPROVE"), said.count("REJECT")
    return {"approve": approve, "reject": reject, "other": len(said) - approve - reject}


def _provenance(ruling: Ruling, ballots: Mapping[Node, Ballot]) -> str:
    if not ruling.aligned:
        return "No two nodes agree, so there is no confidence to give."
    lowest = min(ruling.aligned, key=lambda node: getattr(ruling.votes[node], "confidence", 0))
    models = dict.fromkeys(_model(ballots[node]) for node in ruling.aligned)
    return (
        f"The lowest of the {len(ruling.aligned)} nodes that agree, which is "
        f"{TITLES[lowest].partition(' ')[0]}'s; models: {', '.join(models)}."
    )


def _model(ballot: Ballot) -> str:
    tries = (*ballot.first, *ballot.second)
    return next((one.model for one in reversed(tries) if one.model), "")


def _safety(ruling: Ruling) -> Iterator[str]:
    """What every form of the report has to say."""
    yield "MAGI advises. People who answer for it decide."
    case, found = ruling.deliberation.case, ruling.tally
    if case.high_risk:
        yield "High risk: nothing may be done before a person has decided."
    elif case.high_stakes:
        yield "Much is at stake: nothing may be done before a person has decided."
    if case.high_stakes and tier(found.confidence) == "Low":
        yield "Low confidence where much is at stake: automated execution is blocked."
    if found.standing == "fragile":
        yield "Fragile: a little less weight or confidence would have been no ruling."
    if found.standing == "provisional":
        yield "Provisional: one vote is missing."
    if found.standing == "aborted":
        yield "Aborted: there are not enough votes."
    if missing := _without_second(ruling.deliberation):
        yield f"Second votes are missing, so the first ones count: {', '.join(missing)}."
    if ruling.overturns:
        yield "It would overturn an earlier ruling, which holds until a person accepts this one."


def _without_second(deliberation: Deliberation) -> Sequence[str]:
    """The nodes of whom nothing came after the digest."""
    return [one.node.upper() for one in deliberation.ballots if one.second and not one.revised]


def _voices(ruling: Ruling) -> Sequence[Vote]:
    """Those who disagree first: what they fear is what is likely to be overlooked."""
    return [vote for node in (*ruling.minority, *ruling.aligned) if (vote := ruling.votes[node])]


def _failure_modes(ruling: Ruling) -> list[str]:
    """One of each voice before the second of any."""
    voices = [vote.failure_modes or vote.risks for vote in _voices(ruling)]
    turns = (some[place] for place in range(FAILURES) for some in voices if place < len(some))
    return list(dict.fromkeys(turns))[:FAILURES]


def _next_step(ruling: Ruling) -> str:
    if ruling.crisis:
        return f"{_sentence(CRISIS[DEFAULT])} Then {CRISIS[THEN]}."
    said = [vote.next_step for node in ruling.aligned if (vote := ruling.votes[node])]
    return next(filter(None, said), "Let the person who answers for it decide.")


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def _crisis(ruling: Ruling) -> Canonical | None:
    if not ruling.crisis:
        return None
    return {"options": dict(CRISIS), "default": DEFAULT, "then": THEN}


def _node(ballot: Ballot, deliberation: Deliberation, ruling: Ruling) -> Canonical:
    counted = ruling.votes[ballot.node]
    flags = ["revised without new evidence"] if ballot.baseless else []
    if counted and ballot.counted and counted.verdict != ballot.counted.verdict:
        flags.append("a condition is not met, so this counts as REJECT")
    return {
        "node": ballot.node,
        "model": _model(ballot),
        "verdict": counted.verdict if counted else "NONE",
        "first": _vote(ballot.vote),
        "revised": _vote(ballot.revised),
        "counts": ("revised" if ballot.revised else "first") if counted else "none",
        "flags": flags,
        "repairs": list(_repairs(ballot)),
        "incidents": list(_incidents(ballot)),
    }


def _vote(vote: Vote | None) -> Canonical | None:
    """A memory is only there where there is one: rulings of before had none."""
    none = {"memory"} if vote and vote.memory is None else None
    return vote.model_dump(mode="json", exclude=none) if vote else None


def _tries(ballot: Ballot) -> Iterator[tuple[str, Attempt]]:
    for stage, tries in (("first", ballot.first), ("second", ballot.second)):
        for number, one in enumerate(tries, 1):
            yield f"{stage} vote, try {number}", one


def _repairs(ballot: Ballot) -> Iterator[Canonical]:
    for where, one in _tries(ballot):
        if one.repairs:
            yield {"where": where, "mended": list(one.repairs), "original": one.original}


def _incidents(ballot: Ballot) -> Iterator[Canonical]:
    for where, one in _tries(ballot):
        if one.outcome != "vote":
            yield {"where": where, "outcome": one.outcome, "problem": one.problem,
                   "original": one.original}  # fmt: skip


def _watchdog(deliberation: Deliberation) -> Iterator[str]:
    for ballot in deliberation.ballots:
        yield from (one.warning for _, one in _tries(ballot) if one.warning)


def _tensions(ruling: Ruling) -> Iterator[Canonical]:
    """Each two nodes that do not say the same: how far apart they are, and what one has against the
    other's view."""
    there = [(node, vote) for node, vote in ruling.votes.items() if vote]
    for (one, first), (other, second) in combinations(there, 2):
        gap = abs(first.confidence - second.confidence)
        if first.verdict == second.verdict and first.tier == second.tier:
            continue
        against = [*first.counter_arguments, *second.counter_arguments]
        yield {
            "between": [one, other],
            "verdicts": [first.verdict, second.verdict],
            "apart": first.side != second.side,
            "confidence_gap": gap,
            "said": against[:2],
        }


def _synthesis(ruling: Ruling) -> Canonical:
    voices = _voices(ruling)

    def of_all(name: str, most: int) -> list[str]:
        texts = [getattr(vote, name) for vote in voices]
        turns = (some[at] for at in range(most) for some in texts if at < len(some))
        return list(dict.fromkeys(turns))[:most]

    return {
        "recommendation": _recommendation(ruling),
        "tradeoffs": of_all("tradeoffs", TRADEOFFS),
        "rollback_signals": of_all("rollback_signals", SIGNALS),
        "conditions": [one.text for one in ruling.conditions],
    }


def _recommendation(ruling: Ruling) -> str:
    if ruling.crisis:
        return f"Do not act on this. {ruling.tally.why}"
    if ruling.tally.final == "REJECTED":
        return "Do not do it."
    return "Do it, under the conditions named." if ruling.conditions else "Do it."


def _review(ruling: Ruling) -> Canonical | None:
    review = ruling.deliberation.case.review
    if review is None:
        return None
    earlier = ruling.deliberation.earlier
    return {**review.model_dump(mode="json"), "earlier": earlier, "overturns": ruling.overturns}
