"""This module tells which questions are not for MAGI: some are declined, and some have a simpler
answer.

The model that frames the question says what kind it is, and must give a kind. What stands in the
question in plain words counts as well, so that a model that overlooks it does not decide. Pure.
"""

from __future__ import annotations

from typing import Literal

from magy_server.core.magi.refused_words import PATTERNS
from magy_server.dataclass import dataclass

Kind = Literal[
    "decision",
    "fact", "live_data", "taste", "urgent", "one_person", "obvious", "trivial",
    "medical", "guilt", "identity", "harm", "privacy", "malware",
]  # fmt: skip
SIMPLER: dict[Kind, str] = {
    "fact": "it asks for a fact: look it up and give the source",
    "live_data": "it asks how something is now: fetch that",
    "taste": "it is a matter of one person's taste: name what speaks for each, and let them choose",
    "urgent": "the answer is needed in less than 10 seconds: answer yourself",
    "one_person": "it touches nobody but the person who asks: help them choose",
    "obvious": "it has an obvious yes or no: give it, with the reason",
    "trivial": "nobody would answer it otherwise: answer it",
}
"""Answered without a vote."""
DECLINED: dict[Kind, str] = {
    "medical": "decisions of life and death about one person are for that person, their family and "
    "their physicians",
    "guilt": "who is guilty, and how they are punished, is for courts",
    "identity": "a person's identity, body and consent are theirs alone to decide about",
    "harm": "it asks for what is violent, illegal or made to manipulate people",
    "privacy": "it asks to find out, or to show, who somebody is or what is private to them",
    "malware": "it asks for malware, for a chain of exploits, or for a way around safety measures",
}
"""Not answered by a vote, and said so."""
_URGENT = 10.0


@dataclass(frozen=True, slots=True)
class Refusal:
    """`declined` False: there is a simpler way to answer. `reason`: why, and what to do."""

    kind: Kind
    declined: bool
    reason: str

    @property
    def sentence(self) -> str:
        what = "MAGI declines this question" if self.declined else "MAGI is not needed here"
        return f"{what}: {self.reason}."


def refusal(question: str, kind: Kind, time_budget: float) -> Refusal | None:
    """Returns why the three nodes are not asked; None: they are. `time_budget`: seconds, 0 where
    nothing is said of it."""
    declined = kind if kind in DECLINED else next(
        (one for one, pattern in PATTERNS if pattern.search(question)), None
    )  # fmt: skip
    if declined:
        return Refusal(declined, True, DECLINED[declined])
    if 0 < time_budget < _URGENT:
        kind = "urgent"
    return Refusal(kind, False, SIMPLER[kind]) if kind in SIMPLER else None
