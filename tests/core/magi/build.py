"""Votes and deliberations for tests."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from magy_server.core.magi.case import Case
from magy_server.core.magi.deliberation import Attempt, Ballot, Deliberation, attempt
from magy_server.core.magi.vote import NODES, Node

QUESTION = "Should the store move to Postgres?"


def said(verdict: str, confidence: object, **more: Any) -> str:
    """The answer of a node."""
    caveats = {"caveats": {"preconditions": ["A backup exists."]}} if verdict == "CAVEATED" else {}
    about = {"verdict": verdict, "confidence": confidence, "summary": f"Because {verdict}."}
    return json.dumps({**about, **caveats, **more})


def cast(node: Node, *answers: str | Attempt) -> tuple[Attempt, ...]:
    return tuple(
        attempt(node, f"here/{node}", one) if isinstance(one, str) else one for one in answers
    )


def deliberation(
    first: Sequence[str | Attempt], second: Sequence[str] = (), id: str = "s/3.0", **case: Any
) -> Deliberation:
    """One answer of each node, and one more."""
    about = Case.model_validate({"question": QUESTION, "mode": "FAST", **case})
    ballots = [
        Ballot(node, cast(node, answer), cast(node, *second[place : place + 1]))
        for place, (node, answer) in enumerate(zip(NODES, first, strict=True))
    ]
    return Deliberation(id, about, tuple(ballots))


def lost() -> Attempt:
    return Attempt("here/model", "timeout", problem="It took too long.")
