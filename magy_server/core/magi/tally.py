"""The tally says what three votes come to, by two rules that must agree: how many are aligned, and
the sum of weight times confidence. It is pure, and in whole numbers: a sum that lies on a bound
lies on it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from magy_server.core.magi.vote import SIDES, Side, Verdict
from magy_server.dataclass import dataclass

Final = Literal["APPROVED", "REJECTED", "DEADLOCK"]
Standing = Literal["decisive", "fragile", "provisional", "deadlock", "aborted"]
"""How firm it is. Provisional: of two votes that agree, where the third is missing; aborted: votes
are missing, and those that there are do not do."""
HALVES: Mapping[Verdict, int] = {"APPROVE": 2, "CAVEATED": 1, "REJECT": -2, "ABSTAIN": 0}
"""Weights, in halves: +1, +0.5, -1, 0."""
UNIT = 200
"""What one vote with weight 1 and full confidence counts: halves times percent."""
DECISIVE, FRAGILE = UNIT * 6 // 10, UNIT * 2 // 10
MAJORITY, ALL = 2, 3
_FINAL: Mapping[Side, Final] = {"yes": "APPROVED", "no": "REJECTED", "none": "DEADLOCK"}

Cast = tuple[Verdict, int]
"""A verdict, and the confidence in it in percent."""


@dataclass(frozen=True, slots=True)
class Tally:
    """`score`: the sum in `UNIT`s of one full vote. `aligned`: the places of the votes that agree,
    `confidence`: the lowest of theirs, 0 where no two do. `why`: a sentence."""

    final: Final
    standing: Standing
    score: int
    aligned: tuple[int, ...]
    confidence: int
    why: str

    @property
    def magnitude(self) -> float:
        return abs(self.score) / UNIT


def tally(votes: Sequence[Cast | None], *, high_risk: bool, critical: bool) -> Tally:
    """`votes`: of the three nodes; None: that of this one is missing. `high_risk`: all three must
    agree. `critical`: no ruling without all three votes."""
    cast = [vote for vote in votes if vote]
    side = _majority(cast)
    score = sum(HALVES[verdict] * confidence for verdict, confidence in cast)
    aligned = tuple(
        place for place, vote in enumerate(votes)
        if vote and side != "none" and SIDES[vote[0]] == side
    )  # fmt: skip
    standing, why = _standing(len(cast), side, score, len(aligned), high_risk, critical)
    final = "DEADLOCK" if standing in ("deadlock", "aborted") else _FINAL[side]
    confidence = min((vote[1] for place in aligned if (vote := votes[place])), default=0)
    return Tally(final, standing, score, aligned, confidence, why)


def _majority(cast: Sequence[Cast]) -> Side:
    sides = [SIDES[verdict] for verdict, _ in cast]
    some: tuple[Side, ...] = ("yes", "no")
    return next((side for side in some if sides.count(side) >= MAJORITY), "none")


def _standing(
    cast: int, side: Side, score: int, aligned: int, high_risk: bool, critical: bool
) -> tuple[Standing, str]:
    agrees = (score > 0) == (side == "yes") and (score < 0) == (side == "no")
    if cast < ALL:
        if side != "none" and agrees and abs(score) >= FRAGILE and not critical:
            return "provisional", "One vote is missing; the two that there are agree."
        if side != "none" and critical:
            return "aborted", "A vote is missing, and this question needs all three."
        return "aborted", "Votes are missing, and those that there are do not decide it."
    if side == "none":
        return "deadlock", "No two nodes agree."
    if abs(score) < FRAGILE:
        return "deadlock", "The votes nearly cancel each other out by weight and confidence."
    if not agrees:
        return "deadlock", "Most votes are for one side, weight and confidence for the other."
    if high_risk and aligned < ALL:
        return "deadlock", "In a domain of high risk all three nodes must agree, and they do not."
    if abs(score) < DECISIVE:
        return "fragile", "Two nodes or more agree, but with little weight or confidence."
    return "decisive", "Two nodes or more agree, with weight and confidence."
