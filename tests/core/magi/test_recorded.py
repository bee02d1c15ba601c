"""Deliberations read from a log, who may review a ruling, and what one is expected to take."""

from __future__ import annotations

import json
from typing import Any, get_args

import pytest

from magy_server.core.agents.mail import Mailed, Report, TextPayload
from magy_server.core.agents.tree import stream_of
from magy_server.core.errors import InvalidRequest
from magy_server.core.events import Entry, Event, Finished, Replied
from magy_server.core.magi import case, panel, refusals
from magy_server.core.magi.case import Case, Review
from magy_server.core.magi.recorded import Record, records
from magy_server.core.magi.reviews import Begun, check, decision
from magy_server.core.magi.ruling import canonical, rule
from magy_server.core.magi.vote import NODES
from magy_server.core.values import Call
from magy_server.tools.agents import magi_tool

from .build import QUESTION, said

DAY = 86_400.0


def entries(*events: tuple[float, Event]) -> list[Entry]:
    return [
        Entry(stream=stream_of("s"), seq=seq, at=at, event=event)
        for seq, (at, event) in enumerate(events, 1)
    ]


def called(call: str, **more: Any) -> Replied:
    about = {"question": QUESTION, "kind": "decision", "mode": "FAST", **more}
    made = Call(id=call, name="deliberate", arguments=about)
    return Replied(request="1", model="here/m", content=(made,), stop="tool_use")


def voted(child: str, text: str, **report: Any) -> Mailed:
    about = {"turn": "t", "status": "completed", "stop": "end_turn", **report}
    return Mailed(
        id=child, sender=f"s/{child}", agent="magi", to="s", payload=TextPayload(text=text),
        report=Report(**about), metadata={"model": f"here/{child.split('.')[2]}"},
    )  # fmt: skip


def ended(call: str) -> Finished:
    return Finished(call=call, status="completed", for_model="")


def whole(call: str, verdict: str = "APPROVE", **more: Any) -> list[Event]:
    """A deliberation from its call to its end."""
    votes = [voted(f"{call}.{node}.1", said(verdict, 90, evidence=["It ran."])) for node in NODES]
    return [called(call, **more), *votes, ended(call)]


def log(*parts: tuple[float, list[Event]]) -> list[Record]:
    return list(records("s", entries(*((at, event) for at, part in parts for event in part))))


@pytest.mark.req("D011", "D015", "D020")
def test_what_the_log_has_of_each_attempt() -> None:
    (one,) = log((0, [
        called("1.0"),
        voted("1.0.melchior.1", said("APPROVE", 90)),
        voted("1.0.balthasar.1", "", status="failed", stop="max_time"),
        voted("1.0.balthasar.2", "", status="cancelled", stop="cancelled", seconds=46.0),
        voted("1.0.balthasar.3", "The server is down.\nMore.", status="failed", stop="error"),
        voted("1.0.casper.1", "", status="cancelled", stop="cancelled", seconds=3.0),
        voted("9.0.casper.1", said("REJECT", 90)),
        ended("1.0"),
    ]))  # fmt: skip
    found = {ballot.node: ballot for ballot in one.deliberation.ballots}
    assert [it.outcome for it in found["balthasar"].first] == ["timeout", "timeout", "failed"]
    assert found["balthasar"].first[1].warning and found["balthasar"].first[2].problem == (
        "The server is down."
    )
    assert [it.outcome for it in found["casper"].first] == ["cancelled"]
    assert one.deliberation.complete and one.ended
    assert canonical(rule(one.deliberation))["warnings"][-1].startswith("balthasar: it was still")


def test_nodes_with_one_model_are_warned_of() -> None:
    votes = [voted(f"1.0.{node}.1", said("APPROVE", 90)) for node in NODES]
    alike = [vote.model_copy(update={"metadata": {"model": "here/one"}}) for vote in votes]
    (one,) = log((0, [called("1.0"), *alike, ended("1.0")]))
    assert one.deliberation.warnings == (
        "melchior, balthasar and casper have the same model, here/one: they may err alike.",
    )
    (other,) = log((0, whole("1.0")))
    assert other.deliberation.warnings == ()


# --- reviews --------------------------------------------------------------------------------------


def reviewed(call: str, of: str, verdict: str = "REJECT") -> list[Event]:
    return whole(call, verdict, review_of=f"s/{of}", review_reason="It failed since.",
                 new_evidence=[f"It failed at night {call}."])  # fmt: skip


def again(of: str = "s/1.0", **more: Any) -> Review:
    about = {"of": of, "reason": "It failed.", "new_evidence": ["It failed at noon."], **more}
    return Review.model_validate(about)


@pytest.mark.req("D075", "D076")
def test_a_review_needs_a_reason_and_something_new() -> None:
    past = log((0, whole("1.0")))
    check(again(), past, (), 0)
    check(again(felt=True, new_evidence=["Three people on call fear it."]), past, (), 0)
    for wrong, problem in (
        (again(of="s/7.0"), "There is no ruling 's/7.0' in this session. Rulings here: s/1.0."),
        (again(reason=" "), "A review needs a reason"),
        (again(new_evidence=[]), "A review needs something new"),
        (again(new_evidence=["  it RAN "]), "A review needs something new"),
    ):
        with pytest.raises(InvalidRequest, match=problem):
            check(wrong, past, (), 0)


@pytest.mark.req("D077")
def test_there_are_two_reviews_of_a_ruling() -> None:
    """Those of before are in the log; one that is under way may be known elsewhere only."""
    first = [(0, whole("1.0")), (DAY, reviewed("2.0", "1.0"))]
    check(again(), log(*first), (), 2 * DAY)
    check(again(), log(*first), [Begun("s/2.0", "s/1.0", DAY)], 2 * DAY)
    for past, begun in (
        ([*first, (2 * DAY, reviewed("3.0", "1.0"))], []),
        (first, [Begun("s/3.0", "s/1.0", DAY)]),
    ):
        with pytest.raises(InvalidRequest, match="was reviewed 2 times"):
            check(again(), log(*past), begun, 90 * DAY)
    check(again(of="s/2.0"), log(*first), [Begun("s/3.0", "s/1.0", DAY)], 2 * DAY)


@pytest.mark.req("D078")
def test_there_are_three_reviews_of_a_decision_in_thirty_days_wherever_they_are() -> None:
    past = log((0, whole("1.0")))
    begun = [Begun(f"{n}/4.0", f"{n}/1.0", n * DAY) for n in (1, 2, 3)]
    check(again(), past, begun[:2], 3 * DAY)
    with pytest.raises(InvalidRequest, match=r"3 times in 30 days \(1/4.0, 2/4.0, 3/4.0\)"):
        check(again(), past, begun, 4 * DAY)
    check(again(), past, begun, 31 * DAY)
    with pytest.raises(InvalidRequest, match="3 times in 30 days"):
        check(again(), past, begun, 31 * DAY - 1)


def test_a_review_of_a_review_is_of_the_decision_that_it_began_with() -> None:
    past = log((0, whole("1.0")), (DAY, reviewed("2.0", "1.0")), (DAY, reviewed("3.0", "2.0")))
    asked = {decision(again(of=f"s/{n}.0"), past) for n in (1, 2, 3)}
    assert asked == {past[0].deliberation.case.question} != {""}
    assert decision(again(of="s/9.0"), past) == ""


def test_a_review_knows_what_the_ruling_was() -> None:
    _, second = log((0, whole("1.0")), (DAY, reviewed("2.0", "1.0")))
    assert second.deliberation.earlier == "APPROVED"
    assert canonical(rule(second.deliberation))["review"]["overturns"]


# --- the panel ------------------------------------------------------------------------------------


def test_each_node_gets_the_model_that_is_wanted_or_that_suits_it_or_the_sessions() -> None:
    offered = ["x/gpt-5-mini", "x/gpt-5", "y/claude-sonnet-4-5"]
    wanted = {"casper": "z/poet"}
    assert panel.models(wanted, offered, "here/own") == {  # type: ignore[arg-type]
        "melchior": "x/gpt-5", "balthasar": "y/claude-sonnet-4-5", "casper": "z/poet",
    }  # fmt: skip
    assert set(panel.models({}, ["x/a-mini"], "here/own").values()) == {"here/own"}
    assert set(panel.models({}, ["x/a-mini", "x/big"], "here/own-mini").values()) == {"x/big"}


@pytest.mark.req("D007")
def test_a_capable_model_is_named_where_there_is_one() -> None:
    assert panel.capable(["x/gpt-5-mini", "x/gpt-5", "y/claude-sonnet-4.6"]) == (
        "y/claude-sonnet-4.6"
    )
    assert panel.capable(["x/a-mini", "x/llama"]) == "x/llama"
    assert panel.capable(["x/a-mini"]) == ""


def test_what_is_expected_grows_with_the_mode_and_the_context() -> None:
    fast, deep = (panel.expected(Case(question="Is it?", mode=mode)) for mode in ("FAST", "DEEP"))
    assert (fast[0], deep[0]) == (3, 6) and fast[1].total < deep[1].total
    more = panel.expected(Case(question="Is it?", mode="FAST", context="x" * 4_000))
    assert more[1].input == fast[1].input + 1_000
    one = panel.Panel({}, 0.123)
    assert panel.said(Case(question="Is it?"), one).endswith("tokens, $0.12")


def test_the_tool_has_the_words_of_the_rules() -> None:
    """It is loaded at each start, and must not load them."""
    assert get_args(magi_tool.Kind) == get_args(refusals.Kind)
    assert get_args(magi_tool.Mode) == get_args(case.Mode)
    assert get_args(magi_tool.Domain) == get_args(case.Domain)
    json.dumps(magi_tool.deliberate.parameters)
