"""How good agents are: folded from ratings, fading with time, and the same for the same."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magy_server.core.agents.reputation import (
    DECAY,
    MOST,
    Candidate,
    Evidence,
    Level,
    Rated,
    Reputation,
    best,
    level,
    named,
    of_summary,
    rate,
    score,
    summary,
)
from magy_server.core.errors import InvalidRequest

DAY = 86_400.0


def rated(good: float, capability: str = "", weight: float = 1.0) -> Rated:
    return Rated(
        agent="qa", score=good, capability=capability, weight=weight, session="s", why="rating"
    )


def known(*ratings: tuple[float, str, float]) -> Reputation:
    """(score, capability, day)"""
    found: Reputation = {}
    for good, capability, day in ratings:
        found = rate(found, rated(good, capability), day * DAY)
    return found


RATINGS = st.lists(st.tuples(st.floats(0, 1), st.sampled_from(["", "testing"]), st.floats(0, 99)),
                   max_size=20).map(lambda some: sorted(some, key=lambda one: one[2]))  # fmt: skip


@pytest.mark.req("A030", "A042")
@given(RATINGS, st.floats(100, 400))
def test_a_score_is_what_all_ratings_come_to_each_as_faded_as_it_is_old(
    ratings: list[tuple[float, str, float]], day: float
) -> None:
    left = [math.exp(-DECAY * (day - when) * DAY) for _, _, when in ratings]
    good = sum(one * weight for (one, _, _), weight in zip(ratings, left, strict=True))
    expected = (2 * 0.5 + good) / (2 + sum(left))
    found = known(*ratings)
    assert score(found, "testing", day * DAY) == pytest.approx(expected)
    assert score(of_summary(summary(found)), "testing", day * DAY) == pytest.approx(expected)


@given(RATINGS)
def test_what_is_long_ago_is_forgotten(ratings: list[tuple[float, str, float]]) -> None:
    assert score(known(*ratings), "testing", 3650 * DAY) == pytest.approx(0.5, abs=1e-3)


def test_a_month_halves_what_is_known_and_a_clock_that_goes_back_gains_nothing() -> None:
    one = Evidence(1.0, 1.0, 30 * DAY)
    assert one.faded(60 * DAY) == Evidence(pytest.approx(0.5), pytest.approx(0.5), 60 * DAY)
    assert one.faded(0) == one


@pytest.mark.req("A030")
def test_the_best_is_who_says_it_knows_until_work_shows_otherwise() -> None:
    def choose(**reputations: tuple[Level, Reputation]) -> str | None:
        found = best([Candidate(name, *one) for name, one in reputations.items()], "testing", DAY)
        return found.agent if found else None

    good, bad = known((1.0, "testing", 1)), known((0.0, "testing", 1), (0.0, "testing", 1))
    assert choose(a=("", {}), b=("primary", {}), c=("primary", {})) == "b"
    assert choose(b=("primary", bad), c=("secondary", {})) == "c"
    assert choose(b=("primary", {}), c=("", good)) == "c"
    assert choose(b=("primary", {}), c=("", known((1.0, "design", 1)))) == "b"
    assert choose(a=("", {}), c=("", known((1.0, "", 1)))) is None
    assert choose(b=("primary", known((0.0, "", 1), (0.0, "", 1))), c=("primary", {})) == "c"


def test_expertise_is_known_by_its_words() -> None:
    primary, secondary = ["Testing", "finding faults"], ["query plans"]
    assert level("testing", primary, secondary) == "primary"
    assert level("faults", primary, secondary) == "primary"
    assert level("query plans", primary, secondary) == "secondary"
    assert level("test", primary, secondary) == ""


def test_of_one_agent_only_so_much_is_kept_and_what_weighs_most() -> None:
    found = known((1.0, "", 0), *((1.0, f"c{n}", n) for n in range(MOST + 9)))
    assert len(found) == MOST and "" in found
    assert "c0" not in found and f"c{MOST + 8}" in found


def test_a_capability_has_one_name() -> None:
    assert named("  Query   Plans ") == "query plans"
    for wrong in ("", " ", "a\x00b", "x" * 61):
        with pytest.raises(InvalidRequest, match="1 to 60 characters"):
            named(wrong)
