"""Every combination of votes, against a second way to work it out."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magy_server.core.magi.case import Case, Domain
from magy_server.core.magi.ruling import rule
from magy_server.core.magi.tally import Cast, tally
from magy_server.core.magi.vote import VERDICTS

from .build import deliberation, lost, said

CONFIDENCES = (0, 10, 20, 40, 60, 76, 100)
VOTES: list[Cast | None] = [None, *product(VERDICTS, CONFIDENCES)]
RISKS = ((False, False), (False, True), (True, True))


def naive(votes: tuple[Cast | None, ...], high_risk: bool, critical: bool) -> tuple[str, str, int]:
    """What the requirements say, word by word: D031 to D036, D040, and D098 to D100 as X11 has
    them."""
    weight = {"APPROVE": Fraction(1), "CAVEATED": Fraction(1, 2), "REJECT": Fraction(-1),
              "ABSTAIN": Fraction(0)}  # fmt: skip
    ups = [c for v, c in filter(None, votes) if v == "APPROVE" or v == "CAVEATED"]
    downs = [c for v, c in filter(None, votes) if v == "REJECT"]
    total = sum((weight[v] * Fraction(c, 100) for v, c in filter(None, votes)), Fraction(0))
    by_count = "APPROVED" if len(ups) > 1 else "REJECTED" if len(downs) > 1 else None
    by_weight = "APPROVED" if total > 0 else "REJECTED" if total < 0 else None
    winners = {"APPROVED": ups, "REJECTED": downs, None: []}[by_count]
    confidence = min(winners) if winners else 0
    passes = by_count is not None and by_count == by_weight and abs(total) >= Fraction(2, 10)
    if None in votes:  # so two at most, who then agree if they pass
        if passes and not critical:
            return str(by_count), "provisional", confidence
        return "DEADLOCK", "aborted", confidence
    if not passes or (high_risk and len(winners) != 3):
        return "DEADLOCK", "deadlock", confidence
    return str(by_count), "decisive" if abs(total) >= Fraction(6, 10) else "fragile", confidence


@pytest.mark.req("D031", "D035", "D098")
def test_every_combination_comes_to_what_the_requirements_say() -> None:
    for votes in product(VOTES, repeat=3):
        for high_risk, critical in RISKS:
            found = tally(votes, high_risk=high_risk, critical=critical)
            expected = naive(votes, high_risk, critical)
            assert (found.final, found.standing, found.confidence) == expected, votes


@pytest.mark.req("D036", "D101", "D054")
@pytest.mark.parametrize("domain", Domain.__args__)
@pytest.mark.parametrize("mode", ["FAST", "FAST+", "DEEP"])
def test_domains_of_high_risk_need_all_three_in_every_mode(domain: str, mode: str) -> None:
    risky = domain in ("legal", "medical", "financial", "security", "mental_health")
    for sure, votes in product((0.84, 0.85), product(("APPROVE", "CAVEATED", "REJECT"), repeat=3)):
        about = {"domain": domain, "domain_confidence": sure, "mode": mode}
        found = rule(deliberation([said(verdict, 90) for verdict in votes], **about))
        high = risky or sure < 0.85
        expected = naive(tuple((verdict, 90) for verdict in votes), high, high)
        assert (found.tally.final, found.tally.standing, found.tally.confidence) == expected
        assert found.person_needed is high


@given(st.lists(st.sampled_from(VOTES), min_size=3, max_size=3), st.permutations(range(3)))
def test_who_says_what_does_not_matter(votes: list[Cast | None], order: list[int]) -> None:
    one = tally(votes, high_risk=False, critical=False)
    other = tally([votes[n] for n in order], high_risk=False, critical=False)
    assert (one.final, one.standing, one.score) == (other.final, other.standing, other.score)


@given(st.lists(st.sampled_from(VOTES), min_size=3, max_size=3))
def test_what_is_at_stake_never_makes_a_ruling(votes: list[Cast | None]) -> None:
    easy = tally(votes, high_risk=False, critical=False)
    for high_risk, critical in RISKS[1:]:
        hard = tally(votes, high_risk=high_risk, critical=critical)
        assert hard.final in (easy.final, "DEADLOCK")


@given(st.lists(st.sampled_from(VOTES), min_size=3, max_size=3), st.integers(0, 2))
def test_a_yes_instead_of_a_no_never_turns_a_ruling_into_a_no(
    votes: list[Cast | None], place: int
) -> None:
    before = tally(votes, high_risk=False, critical=False)
    votes[place] = ("APPROVE", 100)
    after = tally(votes, high_risk=False, critical=False)
    assert after.score >= before.score
    assert before.final != "APPROVED" or after.final == "APPROVED"


def test_a_vote_that_is_missing_is_none() -> None:
    found = rule(deliberation([said("APPROVE", 90), said("APPROVE", 80), lost()]))
    assert (found.tally.standing, found.tally.final) == ("provisional", "APPROVED")
    about = Case(question="Is it?", high_stakes=True)
    found = rule(deliberation([said("APPROVE", 90), said("APPROVE", 80), lost()],
                              **about.model_dump()))  # fmt: skip
    assert (found.tally.standing, found.tally.final) == ("aborted", "DEADLOCK")


@pytest.mark.req("D033", "D034", "D052")
def test_a_no_counts_against_it_an_abstention_counts_nothing_and_the_lowest_is_believed() -> None:
    no: Cast = ("REJECT", 80)
    found = tally([no, ("REJECT", 60), ("ABSTAIN", 10)], high_risk=False, critical=False)
    assert (found.magnitude, found.score < 0, found.confidence) == (1.4, True, 60)
    assert tally([("ABSTAIN", 90)] * 3, high_risk=False, critical=False).score == 0
