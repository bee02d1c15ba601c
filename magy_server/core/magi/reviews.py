"""This module says when a ruling may be looked at again: for a reason, with something new, a few
times. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from magy_server.core.errors import InvalidRequest
from magy_server.core.magi.case import Review
from magy_server.core.magi.recorded import Record
from magy_server.dataclass import dataclass

OF_A_RULING, OF_A_DECISION = 2, 3
DAYS = 30
_DAY = 86_400.0


@dataclass(frozen=True, slots=True)
class Begun:
    """A review, in whichever session of the workspace: it is under way, or has come to a ruling.
    `id`: of its ruling. `of`: the one under review. `at`: seconds since the epoch."""

    id: str
    of: str
    at: float


def check(review: Review, records: Sequence[Record], begun: Sequence[Begun], now: float) -> None:
    """Raises InvalidRequest for a review that may not begin. `records`: the deliberations of the
    session, the oldest first. `begun`: the reviews of this decision. `now`: seconds since the
    epoch."""
    there = _there(records)
    if review.of not in there:
        names = ", ".join(there) or "none"
        raise InvalidRequest(
            f"There is no ruling {review.of!r} in this session. Rulings here: {names}."
        )
    if not review.reason.strip():
        raise InvalidRequest("A review needs a reason: say in review_reason why it is asked for.")
    if not set(_known(review.new_evidence)) - set(_seen(there[review.of])):
        raise InvalidRequest(
            "A review needs something new: name in new_evidence the data, the change or the "
            "mistake that the votes did not have. What the ruling had is nothing new."
        )
    same = {id for id, one in there.items() if _of(one) == review.of}
    same |= {one.id for one in begun if one.of == review.of}
    if len(same) >= OF_A_RULING:
        raise InvalidRequest(
            f"The ruling {review.of} was reviewed {len(same)} times, and no more than "
            f"{OF_A_RULING} reviews of one ruling are made. People decide now."
        )
    recent = [one.id for one in begun if now - one.at < DAYS * _DAY]
    if len(recent) >= OF_A_DECISION:
        raise InvalidRequest(
            f"This decision was reviewed {len(recent)} times in {DAYS} days ({', '.join(recent)}), "
            f"and no more than {OF_A_DECISION} are made, whichever sessions of the workspace they "
            "are in. People decide now, or wait until there is more to go by."
        )


def decision(review: Review, records: Sequence[Record]) -> str:
    """Returns the question with which the decision began: a review of a review is of the same
    decision. "": there is no such ruling in the session."""
    there, id = _there(records), review.of
    while id in there and (of := _of(there[id])):
        id = of
    return there[id].deliberation.case.question if id in there else ""


def _there(records: Sequence[Record]) -> Mapping[str, Record]:
    return {one.deliberation.id: one for one in records if one.ended}


def _of(record: Record) -> str:
    review = record.deliberation.case.review
    return review.of if review else ""


def _seen(record: Record) -> Sequence[str]:
    votes = [one.counted for one in record.deliberation.ballots]
    had = [text for vote in votes if vote for text in (*vote.evidence, *vote.new_evidence)]
    review = record.deliberation.case.review
    return _known([*had, *(review.new_evidence if review else ())])


def _known(texts: Sequence[str]) -> Sequence[str]:
    found = (" ".join(text.casefold().split()).strip(" .") for text in texts)
    return [text for text in found if text]
