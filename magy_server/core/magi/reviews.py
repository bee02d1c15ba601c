"""When a ruling may be looked at again: for a reason, with something new, a few times. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from magy_server.core.errors import InvalidRequest
from magy_server.core.magi.case import Review
from magy_server.core.magi.recorded import Record

OF_A_RULING, OF_A_DECISION = 2, 3
DAYS = 30
_DAY = 86_400.0


def check(review: Review, records: Sequence[Record], now: float) -> None:
    """Raises InvalidRequest for a review that may not begin. `records`: the deliberations of the
    session, the oldest first. `now`: seconds since the epoch."""
    there = {one.deliberation.id: one for one in records if one.ended}
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
    same = [one for one in there.values() if _of(one) == review.of]
    if len(same) >= OF_A_RULING:
        raise InvalidRequest(
            f"The ruling {review.of} was reviewed {len(same)} times, and no more than "
            f"{OF_A_RULING} reviews of one ruling are made. People decide now."
        )
    top = _decision(review.of, there)
    recent = [
        one for one in there.values()
        if _of(one) and _decision(one.deliberation.id, there) == top
        and now - one.at < DAYS * _DAY
    ]  # fmt: skip
    if len(recent) >= OF_A_DECISION:
        raise InvalidRequest(
            f"This decision was reviewed {len(recent)} times in {DAYS} days, and no more than "
            f"{OF_A_DECISION} are made. People decide now, or wait until there is more to go by."
        )


def _of(record: Record) -> str:
    review = record.deliberation.case.review
    return review.of if review else ""


def _decision(id: str, there: Mapping[str, Record]) -> str:
    """Returns the ruling at which it began: a review of a review is of the same decision."""
    while id in there and (of := _of(there[id])):
        id = of
    return id


def _seen(record: Record) -> Sequence[str]:
    votes = [one.counted for one in record.deliberation.ballots]
    had = [text for vote in votes if vote for text in (*vote.evidence, *vote.new_evidence)]
    review = record.deliberation.case.review
    return _known([*had, *(review.new_evidence if review else ())])


def _known(texts: Sequence[str]) -> Sequence[str]:
    found = (" ".join(text.casefold().split()).strip(" .") for text in texts)
    return [text for text in found if text]
