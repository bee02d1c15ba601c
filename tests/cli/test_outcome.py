"""How a turn ended: sums, exit codes, the last line."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from magy_server.api.sessions.totals import Totals
from magy_server.api.sessions.totals import totals as totals_of
from magy_server.cli.exit_codes import EXIT_CODES
from magy_server.cli.screen import child_lines
from magy_server.cli.screen.text import UNICODE, cost_of, plain
from magy_server.cli.turn import outcome
from magy_server.core.agents.child import ChildInfo
from magy_server.core.events import Ended, Entry, Finished, Replied, Stop
from magy_server.core.state.spending import Spent
from magy_server.core.text.columns import width_of
from magy_server.core.text.markdown import STOPS
from magy_server.core.values import FileChange, Text, Usage
from magy_server.reviews.views import Summary


def totals(*events: Any) -> Totals:
    return totals_of(
        Entry(stream="session/s", seq=seq, at=0.0, event=event)
        for seq, event in enumerate(events, 1)
    )


def reply(text: str = "", cost: float | None = None, **usage: int) -> Replied:
    content = (Text(text=text),) if text else ()
    return Replied(request="1", model="m", content=content, stop="end_turn", usage=Usage(**usage),
                   cost=cost)  # fmt: skip


def changed(path: str, before: str | None, after: str | None) -> Finished:
    change = FileChange(path=path, before=before, after=after)
    return Finished(call="1.0", status="completed", for_model="", changes=(change,))


@pytest.mark.parametrize("stop", get_args(Stop))
def test_every_stop_has_words_and_an_exit_code(stop: Stop) -> None:
    assert STOPS[stop]
    code = outcome.exit_code(stop, unasked=False)
    assert code in dict(EXIT_CODES)
    assert (code == 0) is (stop == "end_turn")


def test_tokens_that_nobody_counted_are_unknown_and_not_none() -> None:
    none = plain(outcome.last_line(totals(reply(unreported=1)), "s", UNICODE))
    assert "1 request · tokens unknown · " in none
    some = plain(outcome.last_line(totals(reply(input=1200), reply(unreported=1)), "s", UNICODE))
    assert "1,200 tokens and 1 request of unknown size" in some


def reviewed(*sessions: str, pending: int = 1, proposed: bool = False) -> Summary:
    return Summary("/w", "/w/a", "modified", "1", pending, 1, 1, sessions, proposed)


def test_what_waits_for_a_decision_is_said() -> None:
    files = [reviewed("s1", pending=2), reviewed("s2", "s1"), reviewed("s2", pending=9)]
    assert plain(outcome.waiting(files, "s1", changed=True)) == (
        "3 hunks under review: a commit (or an editor) accepts them, magy sessions undo s1 undoes "
        "the turn\n"
    )
    one = plain(outcome.waiting([reviewed("s1")], "s1", changed=True))
    assert one.startswith("1 hunk under review: a commit (or an editor) accepts it, ")
    only = outcome.waiting([reviewed("s1", proposed=True)], "s1", changed=False)
    assert plain(only) == "1 hunk only proposed: accept them in an editor\n"
    assert outcome.waiting(files, "s3", changed=True) == []
    below = plain(outcome.waiting([reviewed("s1/a", pending=2)], "s1", changed=False))
    assert below == (
        "2 hunks of child agents under review: a commit (or an editor) accepts them, magy sessions "
        "undo s1/a undoes what that child did\n"
    )


def test_after_a_turn_without_changes_undoing_it_is_not_offered_for_those_of_before() -> None:
    said = plain(outcome.waiting([reviewed("s1")], "s1", changed=False))
    assert said == (
        "1 earlier hunk under review: a commit (or an editor) accepts it, magy sessions undo s1 "
        "--list shows the turns you can undo\n"
    )


def test_on_a_narrow_terminal_the_last_lines_break_between_words() -> None:
    found = totals(reply(input=1200), Ended(turn="t", stop="stray_call", message=""))
    assert plain(outcome.last_line(found, "s1", UNICODE, 70)) == (
        "stopped: a tool call came as text, and was not run · 1 request\n"
        "  1,200 tokens, 0 % of the prompt cached · cost unknown\n"
        "continue: magy run --resume s1\n"
    )
    waits = plain(outcome.waiting([reviewed("s1")], "s1", changed=True, width=70))
    assert waits == (
        "1 hunk under review: a commit (or an editor) accepts it, magy sessions\n"
        "undo s1 undoes the turn\n"
    )


def test_who_could_not_be_asked_is_no_success() -> None:
    assert outcome.exit_code("end_turn", unasked=True) == 3
    assert outcome.exit_code("cancelled", unasked=True) == 130
    assert outcome.exit_code(None, unasked=False) == 1


@pytest.mark.parametrize(
    ("costs", "said"),
    [
        ([], ""),
        ([None], "cost unknown"),
        ([0.01234, 0.00002], "$0.0124"),
        ([1234.5], "$1,234.50"),
        ([0.5, None, None], "$0.50 and 2 requests of unknown cost"),
        ([0.0], "free"),
        ([0.0, None], "$0.0000 and 1 request of unknown cost"),
    ],
)
def test_an_unknown_cost_is_said(costs: list[float | None], said: str) -> None:
    assert cost_of(totals(*(reply(cost=cost) for cost in costs)).spent) == said


def test_of_a_child_an_unknown_cost_is_said_too() -> None:
    """Also beside what is known: two models may have worked in it."""
    for spent, said in (
        (Spent(1, Usage(input=900), 0.0, 1), "cost unknown"),
        (Spent(3, Usage(input=900), 0.5, 1), "$0.50 and 1 request of unknown cost"),
    ):
        child = ChildInfo("s/a", "s", "Look", "explore", "m", "completed", 1, spent=spent)
        (*_, (text, _)) = child_lines.line(child, UNICODE, 0)
        assert text.endswith(f" {said}\n")


def test_a_child_takes_one_row_of_a_terminal() -> None:
    spent = Spent(1, Usage(input=900), 0.0, 1)
    child = ChildInfo("s/a", "s", "BALTHASAR, second vote", "magi-balthasar", "m", "completed", 1,
                      spent=spent)  # fmt: skip
    row = plain(child_lines.line(child, UNICODE, 0, 80))
    assert width_of(row.rstrip("\n")) == 80 and row.endswith("cost unknown\n")


def test_the_sums() -> None:
    found = totals(
        reply("first", input=10, output=5, cache_read=80, cache_write=10),
        reply("last", input=100),
        reply(),
        changed("a", None, "1"), changed("a", "1", "2"),
        changed("b", "1", "2"), changed("b", "2", "1"),
        changed("c", "1", None), changed("d", "1", "2"),
        Ended(turn="t", stop="end_turn"),
    )  # fmt: skip
    assert (found.text, found.spent.requests, found.cached) == ("last", 3, 40)
    result = outcome.result(found, "s1", 0, [])
    assert result["changes"] == [
        {"path": "a", "operation": "add"},
        {"path": "c", "operation": "delete"},
        {"path": "d", "operation": "modify"},
    ]
    assert plain(outcome.last_line(found, "s1", UNICODE)) == (
        "done · 3 requests · 205 tokens, 40 % of the prompt cached · cost unknown · "
        "3 files changed · continue: magy run --resume s1\n"
    )


def test_a_turn_without_a_request_has_no_sums() -> None:
    found = totals(Ended(turn="t", stop="error", message="no"))
    assert plain(outcome.last_line(found, "s1", UNICODE)) == (
        "failed · continue: magy run --resume s1\n"
    )


def test_the_id_to_copy_is_never_broken() -> None:
    found = totals(Ended(turn="t", stop="error", message="no"))
    whole = "failed · continue: magy run --resume s1\n"
    assert plain(outcome.last_line(found, "s1", UNICODE, len(whole) - 1)) == whole
    narrow = plain(outcome.last_line(found, "s1", UNICODE, len(whole) - 2))
    assert narrow == "failed\ncontinue: magy run --resume s1\n"


@pytest.mark.parametrize(
    ("counts", "said", "go_on"),
    [
        ({"completed": 8}, "done", "magy run"),
        ({"completed": 7, "failed": 1}, "1 of 8 tasks failed", "magy run"),
        ({"failed": 1}, "1 of 1 task failed", "magy run"),
        ({"completed": 5, "failed": 1, "skipped": 2}, "1 of 8 tasks failed, 2 skipped", "magy run"),
        ({"completed": 4, "failed": 1, "ready": 1, "waiting": 2},
         "1 of 8 tasks failed, 3 not done", "magy graph run"),
        ({"completed": 1, "running": 1}, "1 of 2 tasks not done", "magy graph run"),
        ({}, "no task began", "magy run"),
    ],
)  # fmt: skip
def test_of_a_graph_it_says_what_has_no_result_and_whether_it_goes_on(
    counts: dict[str, int], said: str, go_on: str
) -> None:
    found = totals(Ended(turn="t", stop="end_turn"))
    line = outcome.last_line(found, "s1", UNICODE, counts=counts)
    assert plain(line) == f"{said} · continue: {go_on} --resume s1\n"
    assert outcome.exit_code("end_turn", unasked=False, counts=counts) == (said != "done")
    stopped = outcome.last_line(
        totals(Ended(turn="t", stop="cancelled")), "s1", UNICODE, counts={"cancelled": 2}
    )
    assert plain(stopped).startswith("cancelled: 2 of 2 tasks not done · ")
