"""`next_step`: the whole life of a turn, as decisions over hand-written logs."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magy_server.core.events import (
    Answered,
    Asked,
    CancelAsked,
    Ended,
    Finished,
    Planned,
    Requeued,
    Resumed,
    Started,
)
from magy_server.core.prompting.repeats import repeats
from magy_server.core.state.fold import fold
from magy_server.core.state.state import State
from magy_server.core.steps import (
    Admit,
    CallModel,
    End,
    Judge,
    Recover,
    Refuse,
    Rest,
    RunTools,
    Wait,
    next_step,
)
from magy_server.core.values import Evidence, Limits, Part, Section, Task, Text

from .build import Log, briefed, call, finished, judged, prompted, started

TEXT = Text(text="hello")


def test_rests_until_a_prompt_comes_then_opens_a_turn_named_after_it() -> None:
    assert next_step(Log().state) == Rest()
    assert next_step(Log(prompted("hi", "p1")).state) == Admit(("p1",), turn="p1", opens=True)


@pytest.mark.req("E126")
def test_a_turn_asks_the_model_and_ends_with_its_answer() -> None:
    log = Log().begin()
    assert next_step(log.state) == CallModel()
    assert next_step(log.reply(TEXT).state) == End("end_turn")


@pytest.mark.parametrize("stop", ["max_tokens", "refusal"])
def test_a_turn_ends_as_the_model_stopped(stop: Any) -> None:
    assert next_step(Log().begin().reply(TEXT, stop=stop).state) == End(stop)


def test_reads_go_side_by_side_and_a_call_with_effects_goes_alone_in_order() -> None:
    log = Log().begin().reply(call("1.0"), call("1.1"), call("1.2", "bash"), call("1.3"))
    assert next_step(log.state) == Judge(("1.0", "1.1"))
    log.add(judged("1.0"), judged("1.1"))
    assert next_step(log.state) == RunTools(("1.0", "1.1"))
    log.add(finished("1.1"))
    assert next_step(log.state) == RunTools(("1.0",))
    log.add(finished("1.0"))
    assert next_step(log.state) == Judge(("1.2",))
    log.add(judged("1.2", kind="exec"), started("1.2"))
    assert next_step(log.state) == Wait()
    log.add(finished("1.2"))
    assert next_step(log.state) == Judge(("1.3",))
    log.add(judged("1.3"), finished("1.3"))
    assert next_step(log.state) == CallModel()


def asked() -> Log:
    log = Log().begin().reply(call("1.0", "bash"))
    return log.add(judged("1.0", "ask", "exec"), Asked(id="q", call="1.0", title="t", rule="r"))


def test_a_question_waits_and_the_first_answer_counts() -> None:
    log = asked()
    assert next_step(log.state) == Wait()
    log.add(Answered(id="q", allow=True), Answered(id="q", allow=False, reason="late"))
    assert next_step(log.state) == RunTools(("1.0",))


def test_a_refusal_reaches_the_model_and_the_turn_goes_on() -> None:
    log = asked().add(Answered(id="q", allow=False, reason="not on Fridays"))
    assert next_step(log.state) == Refuse(("1.0",))
    assert next_step(log.add(finished("1.0", status="denied")).state) == CallModel()


def test_cancel_ends_whatever_is_going_on() -> None:
    log = asked().add(CancelAsked())
    assert next_step(log.state) == End("cancelled")


def test_a_cancel_for_another_turn_is_too_late() -> None:
    log = Log().begin().add(CancelAsked(turn="p0"))
    assert next_step(log.state) == CallModel()


def test_after_a_crash_started_calls_are_looked_at_and_others_simply_run() -> None:
    log = Log().begin().reply(call("1.0", "bash"))
    log.add(judged("1.0", kind="exec"), started("1.0"), Resumed(by="me"))
    assert next_step(log.state) == Recover(("1.0",))
    log.add(started("1.0"))
    assert next_step(log.state) == Wait()


def test_a_steering_prompt_joins_the_turn_at_the_next_step() -> None:
    log = Log().begin().reply(call("1.0"))
    log.add(prompted("rather this", "p2"), prompted("later", "p3", delivery="queue"))
    log.add(judged("1.0"), finished("1.0"))
    step = next_step(log.state)
    assert step == Admit(("p2",), turn="p1", opens=False)


def test_a_steering_prompt_keeps_a_finished_turn_going() -> None:
    from magy_server.core.events import Admitted

    log = Log().begin().reply(TEXT).add(prompted("and this", "p2"))
    assert next_step(log.state) == Admit(("p2",), turn="p1", opens=False)
    log.add(Admitted(turn="p1", prompts=("p2",), opens=False))
    assert next_step(log.state) == CallModel()


def last(*parts: Part, **fields: Any) -> Log:
    """A reply in a turn that the tool `put` ends."""
    return Log(briefed(tools=(Section(name="put", hash="h2"),), final=("put",))).begin().reply(
        *parts, **fields
    )  # fmt: skip


def test_a_tool_that_ends_the_turn_ends_it_once_it_has_run() -> None:
    for status in ("completed", "failed"):
        log = last(call("1.0", "put")).add(judged("1.0"), started("1.0"))
        assert next_step(log.state) == Wait()
        assert next_step(log.add(finished("1.0", status=status)).state) == End("end_turn")


def test_once_a_call_has_ended_the_turn_the_others_of_its_reply_are_not_run() -> None:
    for status in ("completed", "failed"):
        log = last(call("1.0", "put"), call("1.1", "put"), call("1.2", "bash"))
        assert next_step(log.state) == Judge(("1.0",))
        log.add(judged("1.0"), started("1.0"))
        assert next_step(log.state) == Wait()
        assert next_step(log.add(finished("1.0", status=status)).state) == End("end_turn")


def test_a_call_that_could_not_run_leaves_the_end_of_the_turn_to_the_next() -> None:
    log = last(call("1.0", "put"), call("1.1", "put"))
    log.add(judged("1.0", "deny"), finished("1.0", status="failed"))
    assert next_step(log.state) == Judge(("1.1",))


def test_a_tool_that_ends_the_turn_may_be_called_again_when_it_could_not_run() -> None:
    log = last(call("1.0", "put")).add(judged("1.0", "deny"), finished("1.0", status="failed"))
    assert next_step(log.state) == CallModel()


def test_a_reply_cut_short_is_not_asked_for_again_where_one_call_was_wanted() -> None:
    log = last(call("1.0", "put"), stop="max_tokens")
    log.add(judged("1.0", "deny"), finished("1.0", status="failed"))
    assert next_step(log.state) == End("max_tokens")


def test_the_queue_is_reordered_and_dropped() -> None:
    log = Log().add(*(prompted("x", f"p{n}", delivery="queue") for n in range(4)))
    log.add(Requeued(order=("p2", "p0"), dropped=("p1",)))
    assert [p.id for p in log.state.queue.waiting] == ["p2", "p0", "p3"]


def test_a_prompt_id_seen_before_changes_nothing() -> None:
    log = Log().begin().reply(TEXT).add(Ended(turn="p1", stop="end_turn"), prompted("again", "p1"))
    assert next_step(log.state) == Rest()


def test_limits_end_the_turn_and_hand_back_what_was_done() -> None:
    log = Log(limits=Limits(requests=1)).begin().reply(call("1.0"))
    log.add(Planned(tasks=(Task(content="write tests"),)))
    log.add(judged("1.0"), finished("1.0"))
    step = next_step(log.state)
    assert isinstance(step, End) and step.stop == "max_requests"
    assert "limit of 1 model requests" in step.message
    assert "- Do 1.0: completed" in step.message
    assert "- write tests" in step.message


def test_token_limit() -> None:
    log = Log(limits=Limits(tokens=20)).begin().reply(call("1.0"))
    log.add(judged("1.0"), finished("1.0"))
    step = next_step(log.state)
    assert isinstance(step, End) and step.stop == "max_turn_tokens"


def test_a_time_limit_asks_like_a_cancel_and_hands_back() -> None:
    log = Log().begin().add(CancelAsked(turn="p1", why="max_time"))
    step = next_step(log.state)
    assert isinstance(step, End) and step.stop == "max_time" and "time limit" in step.message


@pytest.mark.parametrize("cycle", [1, 2, 3])
def test_the_same_calls_with_the_same_outcome_are_a_loop(cycle: int) -> None:
    log = Log(limits=Limits(requests=0, repeats=4)).begin()
    rounds = 0
    while not isinstance(step := next_step(log.state), End):
        id = f"{len(log.entries)}.0"
        log.reply(call(id, path=f"f{rounds % cycle}"))
        log.add(judged(id), finished(id, f"text {rounds % cycle}"))
        rounds += 1
        assert rounds < 50
    assert step.stop == "loop"
    assert rounds == 4 * cycle


def test_progress_is_no_loop() -> None:
    log = Log(limits=Limits(requests=0, repeats=3)).begin()
    for n in range(20):
        id = f"{len(log.entries)}.0"
        log.reply(call(id, path="a")).add(judged(id), finished(id, f"line {n}"))
    assert next_step(log.state) == CallModel()


def waits(log: Log, seconds: float, deadline: float | None) -> None:
    id = f"{len(log.entries)}.0"
    log.reply(call(id, "wait_agent")).add(judged(id))
    log.add(Started(call=id, evidence=Evidence(deadline=deadline)))
    log.add(finished(id, "The time is up.").model_copy(update={"duration": seconds}))


def test_waiting_again_is_no_loop() -> None:
    """Nor is what is looked at between two waits."""
    log = Log(limits=Limits(requests=0, repeats=3)).begin()
    for _ in range(10):
        waits(log, seconds=1.0, deadline=100.0)
        id = f"{len(log.entries)}.0"
        log.reply(call(id, "list_agents")).add(judged(id), finished(id, "one: running"))
    assert next_step(log.state) == CallModel()


@pytest.mark.parametrize(("seconds", "deadline"), [(0.01, 100.0), (1.0, None)])
def test_what_waits_for_nothing_or_works_again_and_again_is_a_loop(
    seconds: float, deadline: float | None
) -> None:
    log = Log(limits=Limits(requests=0, repeats=3)).begin()
    for _ in range(3):
        waits(log, seconds, deadline)
    step = next_step(log.state)
    assert isinstance(step, End) and step.stop == "loop"


@given(st.lists(st.sampled_from("abc"), max_size=30))
def test_repeats_never_exceeds_the_history(history: list[str]) -> None:
    count = repeats(tuple(history))
    assert 0 <= count <= len(history)
    assert (count == 0) == (not history)


@given(st.data())
def test_folding_in_pieces_is_folding_at_once(data: st.DataObject) -> None:
    log = asked().add(Answered(id="q", allow=True), started("1.0"), finished("1.0")).reply(TEXT)
    cut = data.draw(st.integers(0, len(log.entries)))
    first = fold(log.entries[:cut], State("session/s"))
    assert fold(log.entries[cut:], first) == log.state


def test_an_event_out_of_place_changes_nothing_but_the_position() -> None:
    log = Log()
    before = log.state
    log.add(finished("9.9"), Answered(id="no", allow=True), CancelAsked(), started("9.9"))
    after = log.state
    assert (after.conversation.items, after.turn, after.queue.waiting) == (
        before.conversation.items,
        before.turn,
        before.queue.waiting,
    )


def test_a_second_end_of_a_call_is_ignored() -> None:
    log = Log().begin().reply(call("1.0")).add(judged("1.0"), finished("1.0", "first"))
    log.add(finished("1.0", "second"))
    ends = [item for item in log.state.conversation.items if isinstance(item, Finished)]
    assert [end.for_model for end in ends] == ["first"]
