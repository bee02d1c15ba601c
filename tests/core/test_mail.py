"""Messages between agents, as folded: what waits, what opens a turn, whose run it belongs to."""

from __future__ import annotations

from typing import Any

import pytest

from magy_server.core import prompt
from magy_server.core.agents.mail import (
    Closed,
    DataPayload,
    Mailed,
    Report,
    SignalPayload,
    TextPayload,
    ulid,
)
from magy_server.core.events import Admitted, CancelAsked, Ended, Granted, Requeued
from magy_server.core.state.spending import NO_SPENDING, Spent
from magy_server.core.steps import Admit, CallModel, End, Rest, next_step
from magy_server.core.values import Grant, Limits, Text, Usage

from .build import Log, call, finished, judged, prompted

DONE = Text(text="done")


def result(id: str = "m1", sender: str = "s/3.0", run: str = "p1", **fields: Any) -> Mailed:
    report = Report(turn=f"{sender}:task", status="completed", stop="end_turn")
    about = {"agent": "general", "to": "s", "payload": TextPayload(text=f"{sender} is done")}
    return Mailed(**{"id": id, "sender": sender, "run": run, "report": report, **about, **fields})


def message(id: str = "m1", **fields: Any) -> Mailed:
    return result(id, report=None, **fields)


def rested(stop: Any = "end_turn") -> Log:
    return Log().begin().reply(DONE).add(Ended(turn="p1", stop=stop))


def test_a_result_opens_a_turn_of_the_run_that_asked_for_it() -> None:
    log = rested().add(result())
    assert next_step(log.state) == Admit(("m1",), turn="m1", opens=True)
    turn = log.add(Admitted(turn="m1", prompts=("m1",))).state.turn
    assert turn and (turn.id, turn.run) == ("m1", "p1")


def test_the_same_message_again_is_ignored() -> None:
    log = rested().add(result(), result())
    assert [mail.id for mail in log.state.queue.waiting] == ["m1"]
    log.add(Admitted(turn="m1", prompts=("m1",)), result())
    assert log.state.queue.waiting == ()


def test_a_result_waits_while_a_turn_goes_on_and_may_be_taken_out_meanwhile() -> None:
    log = Log().begin().add(result())
    assert next_step(log.state) == CallModel()
    log.reply(DONE)
    assert next_step(log.state) == End("end_turn")
    assert next_step(log.add(Requeued(dropped=("m1",)), Ended(turn="p1", stop="end_turn")).state) \
        == Rest()  # fmt: skip


@pytest.mark.parametrize("stop", ["cancelled", "error", "max_requests", "max_run"])
def test_after_a_stop_results_wait_for_the_person_and_come_before_what_they_say(stop: Any) -> None:
    log = rested(stop).add(result())
    assert next_step(log.state) == Rest()
    log.add(prompted("Well?", "p2"))
    assert next_step(log.state) == Admit(("m1", "p2"), turn="p2", opens=True)
    turn = log.add(Admitted(turn="p2", prompts=("m1", "p2"))).state.turn
    assert turn and turn.run == "p2"


def test_what_wakes_nobody_waits() -> None:
    assert next_step(rested().add(result(wakes=False)).state) == Rest()


def test_all_that_has_come_is_delivered_together() -> None:
    log = rested().add(result("m1"), result("m2", "s/3.1"))
    assert next_step(log.state) == Admit(("m1", "m2"), turn="m1", opens=True)


def test_a_message_steers_a_running_turn() -> None:
    log = Log().begin().add(message(delivery="steer", sender="s/9.0"))
    assert next_step(log.reply(DONE).state) == Admit(("m1",), turn="p1", opens=False)


def test_what_is_left_of_a_cap_is_left_to_the_turns_that_results_open() -> None:
    log = Log(limits=Limits(requests=2))
    log.begin().reply(call("2.0")).add(judged("2.0"), finished("2.0")).reply(DONE)
    log.add(Ended(turn="p1", stop="end_turn"), result(), Admitted(turn="m1", prompts=("m1",)))
    step = next_step(log.state)
    assert isinstance(step, End) and step.stop == "max_requests"
    log.add(Ended(turn="m1", stop="max_requests"))
    log.begin("More.", "p2")
    assert next_step(log.state) == CallModel()


@pytest.mark.parametrize(("caps", "stop"), [
    (Limits(tokens=20), "max_turn_tokens"),
    (Limits(cost=0.5), "max_cost"),
])  # fmt: skip
def test_so_are_tokens_and_money(caps: Limits, stop: str) -> None:
    log = Log(limits=caps).begin()
    reply = log.reply(DONE).entries.pop().event
    log.add(reply.model_copy(update={"cost": 0.5}), Ended(turn="p1", stop="end_turn"))
    log.add(result(), Admitted(turn="m1", prompts=("m1",)))
    step, turn = next_step(log.state), log.state.turn
    assert isinstance(step, End) and step.stop == stop
    assert turn and turn.spent == NO_SPENDING  # its own
    log.add(Ended(turn="m1", stop="end_turn")).begin("More.", "p2")
    assert next_step(log.state) == CallModel()


def test_a_run_counts_what_it_took_in_all_its_turns() -> None:
    log = rested().add(result(), Admitted(turn="m1", prompts=("m1",))).reply(DONE)
    took = Spent(2, Usage(input=20, output=20), 0.0, 2)
    assert log.state.spending.runs == {"p1": took}
    log.add(Ended(turn="m1", stop="end_turn")).begin("Else.", "p2").reply(DONE)
    assert log.state.spending.runs == {
        "p1": took,
        "p2": Spent(1, Usage(input=10, output=10), 0.0, 1),
    }


def test_a_grant_for_a_run_ends_with_it() -> None:
    granted = [Granted(grant=Grant(id=s, key="agent", pattern="spawn *", scope=s))
               for s in ("run", "session")]  # fmt: skip
    log = Log().begin().add(*granted).reply(DONE).add(Ended(turn="p1", stop="end_turn"))
    log.add(result(), Admitted(turn="m1", prompts=("m1",)))
    assert [g.id for g in log.state.grants] == ["run", "session"]
    log.reply(DONE).add(Ended(turn="m1", stop="end_turn")).begin("Else.", "p2")
    assert [g.id for g in log.state.grants] == ["session"]


@pytest.mark.parametrize("payload", [DataPayload(data={"key": 1}), SignalPayload(signal="ping")])
def test_what_is_for_machines_opens_nothing_and_is_never_for_a_model(payload: Any) -> None:
    log = rested().add(mail := message(payload=payload))
    assert next_step(log.state) == Rest()
    assert not log.state.queue.waiting
    with pytest.raises(ValueError, match="not for a model"):
        _ = mail.content


def test_the_model_is_told_who_says_what() -> None:
    log = rested().add(result(name="look"), Admitted(turn="m1", prompts=("m1",)))
    request = prompt.build(log.state, {"h1": "You are the agent."})
    assert request.messages[-1].parts == (
        Text(text='<message from="s/3.0" agent="general" task="look" status="completed">\n'
                  "s/3.0 is done\n</message>"),
    )  # fmt: skip


def test_a_closed_agent_is_opened_by_no_mail() -> None:
    assert next_step(rested().add(Closed(), result()).state) == Rest()


def test_a_turn_that_costs_too_much_is_over() -> None:
    log = Log(limits=Limits(cost=0.5)).begin()
    event = log.reply(call("2.0")).entries[-1].event
    log.entries[-1] = log.entries[-1].model_copy(
        update={"event": event.model_copy(update={"cost": 0.6})}
    )
    step = next_step(log.add(judged("2.0"), finished("2.0")).state)
    assert isinstance(step, End) and step.stop == "max_cost"
    assert "$0.5 for one turn ($0.6000 spent)" in step.message


def test_cancelling_a_turn_leaves_the_mail_to_the_next() -> None:
    log = Log().begin().add(result(), CancelAsked(turn="p1"))
    assert next_step(log.state) == End("cancelled")
    assert next_step(log.add(Ended(turn="p1", stop="cancelled")).state) == Rest()


def test_what_a_person_stops_before_it_begins_waits_for_their_word() -> None:
    log = rested().add(result(), CancelAsked())
    assert next_step(log.state) == Rest() and [m.id for m in log.state.queue.waiting] == ["m1"]
    assert next_step(log.add(result("m2", "s/3.1")).state) == Rest()
    log.add(prompted("Go on.", "p2"))
    assert next_step(log.state) == Admit(("m1", "m2", "p2"), turn="p2", opens=True)
    log.add(Admitted(turn="p2", prompts=("m1", "m2", "p2"))).reply(DONE)
    log.add(Ended(turn="p2", stop="end_turn"), result("m3"))
    assert next_step(log.state) == Admit(("m3",), turn="m3", opens=True)


def test_an_id_is_a_ulid_and_the_same_for_the_same() -> None:
    one = ulid(1_700_000_000.123, "s/3.0:turn")
    assert one == ulid(1_700_000_000.123, "s/3.0:turn") != ulid(1_700_000_000.123, "s/3.1:turn")
    assert len(one) == 26 and one.startswith("01HF7YAT3V")
    assert sorted([ulid(2.0, "b"), ulid(1.0, "c"), ulid(3.0, "a")]) == [
        ulid(1.0, "c"), ulid(2.0, "b"), ulid(3.0, "a"),
    ]  # fmt: skip


def test_the_lower_of_two_caps_holds() -> None:
    assert Limits(requests=25, tokens=0, cost=2).within(Limits(requests=0, tokens=9, cost=3)) \
        == Limits(requests=25, tokens=9, cost=2)  # fmt: skip
    assert Limits(seconds=5).within(None) == Limits(seconds=5)
