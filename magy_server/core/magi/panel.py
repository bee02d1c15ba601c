"""The panel says which model each of the three nodes has, and what a deliberation is expected to
take. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from magy_server.core.magi.case import TIMES, Case, is_small, mode, preferred
from magy_server.core.magi.vote import NODES, Node
from magy_server.core.values import Usage
from magy_server.dataclass import dataclass

_FIXED = 1_200
"""Tokens of a node's instructions."""
_DIGEST = 700
_ANSWER = {"FAST": 400, "FAST+": 700, "DEEP": 1_200}
"""Tokens of a vote."""
_CHARACTERS = 4
"""Of one token, about."""


@dataclass(frozen=True, slots=True)
class Panel:
    """`models`: what each node is asked with, `provider/model`. `dollars`: what it may cost; None:
    a price is not known."""

    models: Mapping[Node, str]
    dollars: float | None = None


def models(wanted: Mapping[Node, str], offered: Sequence[str], session: str) -> Mapping[Node, str]:
    """Returns a model for each node: the one that the person wants it to have; else the one of
    those offered that suits it best; else the session's, if that is not a small one."""
    large = [model for model in offered if not is_small(model)]
    last = session if session and not is_small(session) else next(iter(large), session)
    return {
        node: wanted.get(node) or preferred(node, large) or last for node in NODES
    }  # fmt: skip


def capable(offered: Sequence[str]) -> str:
    """Returns which of the models should lead where the session's is a small one; "": none of them
    can."""
    found = (preferred(node, list(offered)) for node in ("balthasar", "casper", "melchior"))
    large = (model for model in offered if not is_small(model))
    return next(filter(None, (*found, *large)), "")


def expected(case: Case) -> tuple[int, Usage]:
    """Returns the requests of a deliberation without incidents in which no node reads a file, and
    about what one node takes for all of its own."""
    name, _ = mode(case)
    rounds = 2 if TIMES[name].second else 1
    asked = _FIXED + (len(case.question) + len(case.context)) // _CHARACTERS
    answer = _ANSWER[name]
    more = asked + answer + _DIGEST if rounds == 2 else 0
    return len(NODES) * rounds, Usage(input=asked + more, output=answer * rounds)


def said(case: Case, panel: Panel) -> str:
    """Returns what it is expected to take, for people."""
    requests, usage = expected(case)
    tokens = round(usage.total * len(NODES), -3)
    cost = "cost unknown" if panel.dollars is None else f"${panel.dollars:.2f}"
    return f"{requests} requests or more, about {tokens:,} tokens, {cost}"
