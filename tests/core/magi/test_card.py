"""The card of a deliberation: the same words while it goes on and when it is over, drawn in columns
that no text breaks."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

import pytest
from syrupy.assertion import SnapshotAssertion

from magy_server.api.wire import magi as wire
from magy_server.core.agents.mail import Report
from magy_server.core.magi import card as cards
from magy_server.core.magi import deliberation as deliberations
from magy_server.core.magi import tally, vote
from magy_server.core.magi.card import card
from magy_server.core.magi.deliberation import Attempt, Ballot, Deliberation
from magy_server.core.text.columns import width_of
from magy_server.core.values import Usage

from .build import deliberation, lost, said

TOOK = Report(turn="t", status="completed", stop="end_turn", cost=0.01, usage=Usage(input=1200))


def apart() -> Deliberation:
    """Two of three approve in the end, with a condition; each of them took 1,200 tokens."""
    first = [
        said("APPROVE", 90, summary="It ran for a week at three times the peak. Nothing was lost."),
        said("CAVEATED", 60, risks=["Rows are lost."]),
        said("REJECT", 55),
    ]
    second = [
        said("APPROVE", 85, counter_arguments=["The night shift had the training in June."]),
        said("CAVEATED", 70, risks=["Rows are lost during the move."], protection="Keep a copy."),
        said("REJECT", 50, summary="大家都累了。The people are tired.", feeling="foggy",
             stakes="The trust of the night shift.", last_words="Wait until they have slept.",
             counter_arguments=["A week without people is no test."], new_evidence=["It is May."]),
    ]  # fmt: skip
    found = deliberation(first, second, mode="DEEP", high_stakes=True)
    ballots = [
        replace(one, second=tuple(replace(a, report=TOOK) for a in one.second))
        for one in found.ballots
    ]
    return replace(found, ballots=tuple(ballots))


def under_way() -> Deliberation:
    """One has voted, one votes, and one is asked for the third time."""
    voted = apart().ballots[0].first
    live = Attempt("here/m", "live")
    ballots = (
        Ballot("melchior", voted), Ballot("balthasar", (live,)),
        Ballot("casper", (lost(), lost(), live)),
    )  # fmt: skip
    return replace(apart(), ballots=ballots)


def deadlock() -> Deliberation:
    return deliberation([said("APPROVE", 90), said("REJECT", 60), said("ABSTAIN", 40)])


@pytest.mark.parametrize("of", [apart, under_way, deadlock])
def test_it_is_drawn_in_columns_and_said_in_rows(of, snapshot: SnapshotAssertion) -> None:  # type: ignore[no-untyped-def]
    shown = card(of())
    assert {width_of(line) for line in shown["box"]} == {73}
    assert "\n".join([*shown["box"], "", *shown["rows"]]) == snapshot


@pytest.mark.req("D064", "D103")
def test_nothing_about_safety_and_no_minority_is_left_out() -> None:
    about = apart()
    long = said("REJECT", 50, summary="Nobody knows what becomes of the copies. " * 40)
    first = deliberation([long] * 3).ballots[2].first
    shown = card(replace(about, ballots=(*about.ballots[:2], Ballot("casper", first, first))))
    for text in ("\n".join(shown["rows"]), " ".join("".join(shown["box"]).split())):
        assert "Nobody knows what becomes of the copies." in text.replace("| ", "")
        assert "Safety: MAGI advises." in text and "Safety: Much is at stake" in text
        assert "DISSENTS" in text and "A backup exists." in text


def test_the_words_of_the_wire_are_those_of_the_rules() -> None:
    same = [
        (wire.Node, vote.Node), (wire.Verdict, vote.Verdict), (wire.Tier, vote.Tier),
        (wire.Tension, cards.Tension), (wire.Final, tally.Final),
        (wire.Standing, tally.Standing), (wire.State, deliberations.State),
    ]  # fmt: skip
    assert [a for a, b in same if get_args(a) != get_args(b)] == []
    for about in (apart(), under_way(), deadlock()):
        wire.Deliberation.model_validate(card(about))
