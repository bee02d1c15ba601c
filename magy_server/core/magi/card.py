"""A card shows a deliberation while it goes on and when it is over: three columns, who disagrees
with whom, and the ruling. It is plain JSON for clients, which all show the same words. Pure.

It holds what has been recorded, never what a node is about to say: who looks later gets the same.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any, Literal

from magy_server.core.agents import tree
from magy_server.core.magi.card_text import box, rows
from magy_server.core.magi.case import mode
from magy_server.core.magi.deliberation import Attempt, Ballot, Deliberation, Stage
from magy_server.core.magi.recorded import task_name
from magy_server.core.magi.reports import condition, crisis, minimum, minority, own, plain
from magy_server.core.magi.ruling import canonical, rule
from magy_server.core.magi.vote import NODES, TITLES, Node, Vote, tier
from magy_server.core.text.sanitizing import one_line
from magy_server.core.wire_values import cost

Card = dict[str, Any]
Tension = Literal["agree", "beside", "apart", "against"]
"""How two votes stand: the same, with the same tier of confidence; on one side; one of them on no
side; against each other."""
_QUOTES = str.maketrans("“”", '""')
"""Terminals do not agree how wide they are."""
_AT_WORK = ("is ", "has not begun")
"""How it begins what a node is doing that may still vote."""
QUESTION, SAID = 500, 600
"""Characters of the question, and of each other text, that are shown."""


def card(deliberation: Deliberation) -> Card:
    """Returns how it is by now; with the ruling, when it is complete."""
    over = canonical(rule(deliberation)) if deliberation.complete else None
    ballots = {one.node: one for one in deliberation.ballots}
    spent = [a.report for one in ballots.values() for a in _tries(one) if a.report]
    tokens, dollars = sum(one.usage.total for one in spent), sum(one.cost for one in spent)
    unpriced = sum(one.unpriced for one in spent)
    found: Card = {
        "deliberationId": deliberation.id,
        "question": _cut(deliberation.case.question, QUESTION),
        "mode": mode(deliberation.case)[0],
        "state": "DONE" if over else deliberation.state,
        "voted": sum(one.vote is not None for one in ballots.values()),
        "line": minimum(over) if over else _line(deliberation),
        "nodes": [_node(deliberation, ballots[node], over) for node in NODES],
        "tensions": list(_tensions(ballots)),
        "ruling": _ruling(over) if over else None,
        "tokens": tokens,
        "cost": cost(dollars, unpriced),
        "spent": _spent(tokens, dollars, unpriced) if spent else "",
    }
    return {**found, "rows": rows(found), "box": box(found)}


def as_text(shown: Mapping[str, Any]) -> str:
    """Returns it on one line, as JSON."""
    return json.dumps(shown, ensure_ascii=False, separators=(",", ":"))


def stopped(text: str) -> str:
    """Returns a card, as JSON, of what somebody stops: the votes that there are, and no ruling."""
    found: Card = json.loads(text)
    if found["ruling"] is None:
        found["line"] = "It was stopped, so there is no ruling."
        for one in found["nodes"]:
            if one["status"].startswith(_AT_WORK):
                one["status"] = "was stopped"
        found |= {"rows": rows(found), "box": box(found)}
    return as_text(found)


def _cut(text: str, most: int = SAID) -> str:
    text = one_line(text)
    return text if len(text) <= most else f"{text[: most - 3]}..."


def _line(deliberation: Deliberation) -> str:
    ballots = deliberation.ballots
    first, second = (sum(one is not None for one in votes) for votes in (
        [one.vote for one in ballots], [one.revised for one in ballots]
    ))  # fmt: skip
    match deliberation.state:
        case "STAGE2_DIGEST":
            return f"First votes: {first} of {len(NODES)}. A digest of them is made."
        case "STAGE2_COLLECTING":
            return f"Second votes: {second} of {first}."
        case _:
            return f"First votes: {first} of {len(NODES)}."


def _spent(tokens: int, dollars: float, unpriced: int) -> str:
    known = f"${dollars:.4f}" if dollars or not unpriced else "cost unknown"
    return f"{tokens:,} tokens, {known}"


# --- the columns ----------------------------------------------------------------------------------


def _tries(ballot: Ballot) -> Sequence[Attempt]:
    return (*ballot.first, *ballot.second)


def _node(deliberation: Deliberation, ballot: Ballot, over: Card | None) -> Card:
    name, _, role = TITLES[ballot.node].partition(" ")
    vote, first = ballot.counted, ballot.vote
    session, _, call = deliberation.id.rpartition("/")
    stage: Stage = 2 if ballot.second else 1
    number = len(ballot.second if ballot.second else ballot.first)
    key = tree.attempt(call, task_name(ballot.node, stage), number)
    brief = mode(deliberation.case)[0] == "FAST"
    return {
        "node": ballot.node,
        "name": name.partition("-")[0],
        "role": role.strip("()"),
        "status": _status(ballot),
        "verdict": vote.verdict if vote else None,
        "confidence": vote.confidence if vote else None,
        "tier": vote.tier if vote else None,
        "before": _before(first) if first and ballot.revised else "",
        "summary": _cut(vote.summary) if vote else "",
        "own": [] if brief or not vote else _own(ballot.node, vote),
        "flags": ["revised without new evidence"] if ballot.baseless else [],
        "dissents": over is not None and ballot.node in _dissenting(over),
        "model": _tries(ballot)[-1].model if _tries(ballot) else "",
        "sessionId": tree.child(session, key) if number else None,
    }


def _dissenting(over: Card) -> Sequence[Node]:
    """Where no two agree, nobody disagrees with them."""
    return over["minority"] if over["confidence"]["of"] else []


def _own(node: Node, vote: Vote) -> list[str]:
    lines = own(node, vote.model_dump(mode="json"), plain)
    return [_cut(line).translate(_QUOTES) for line in lines]


def _before(first: Vote) -> str:
    return f"{first.verdict}, {first.tier} ({first.confidence} %)"


def _status(ballot: Ballot) -> str:
    """What the node is doing; "" where there is nothing to be said besides its vote."""
    if not ballot.first:
        return "has not begun"
    last = _tries(ballot)[-1]
    if ballot.second:
        return {"live": "is voting again", "vote": ""}.get(last.outcome, "gave no second vote")
    if last.outcome == "live":
        return "is voting" if len(ballot.first) == 1 else f"is voting, try {len(ballot.first)}"
    if last.outcome == "vote":
        return ""
    ends = "no vote" if ballot.settled else "is asked again"
    return f"{ends}: {_cut(last.problem)}"


# --- who disagrees with whom ----------------------------------------------------------------------


def _tensions(ballots: Mapping[Node, Ballot]) -> Iterator[Card]:
    there = [(node, vote) for node in NODES if (vote := ballots[node].counted)]
    for (one, first), (other, second) in combinations(there, 2):
        kind, gap = _stand(first, second), abs(first.confidence - second.confidence)
        between = f"{one.upper()} and {other.upper()}"
        verdicts = dict.fromkeys((first.verdict, second.verdict))
        said = (" against " if kind == "against" else " beside ").join(verdicts)
        yield {
            "between": [one, other],
            "kind": kind,
            "gap": gap,
            "line": f"{between} {_STANDS[kind]}: {said}, confidence {gap} points apart",
            "said": [
                _cut(f"{node.upper()}: {text}")
                for node, vote in ((one, first), (other, second)) if kind != "agree"
                for text in vote.counter_arguments[:1]
            ],
        }  # fmt: skip


_STANDS: Mapping[Tension, str] = {
    "agree": "agree", "beside": "are on one side", "apart": "are apart",
    "against": "disagree",
}  # fmt: skip


def _stand(first: Vote, second: Vote) -> Tension:
    if first.verdict == second.verdict:
        return "agree" if first.tier == second.tier else "beside"
    if first.side == second.side:
        return "beside"
    return "apart" if "none" in (first.side, second.side) else "against"


# --- the ruling -----------------------------------------------------------------------------------


def _ruling(over: Card) -> Card:
    percent = over["confidence"]["percent"]
    return {
        "final": over["final"],
        "standing": over["standing"],
        "confidence": percent,
        "tier": tier(percent),
        "personNeeded": over["person_needed"],
        "why": over["why"],
        "dissent": [_cut(line) for line in minority(over, plain)] if _dissenting(over) else [],
        "conditions": [_cut(condition(one, plain)) for one in over["conditions"]],
        "options": list(crisis(over["crisis"])) if over["crisis"] else [],
        "mayFail": [_cut(line) for line in over["failure_modes"]],
        "nextStep": _cut(over["next_step"]),
        "safety": list(over["safety"]),
        "warnings": [_cut(line) for line in over["warnings"]],
    }
