"""What a child's turn came to, as its parent is told; and what a message from above or below may
begin."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magy_server.core.agents.mail import Mailed, TextPayload, known, ulid
from magy_server.core.agents.reports import MOST, result
from magy_server.core.events import Admitted, Ended, Entry, Event, Opened, Prompted, Replied, Stop
from magy_server.core.ports import Message, ModelRequest, ToolOutput, ToolSchema
from magy_server.core.prompting.sizes import bound
from magy_server.core.state.fold import fold
from magy_server.core.state.state import State
from magy_server.core.steps import Admit, CallModel, End, Rest, next_step
from magy_server.core.values import Limits, Text, Usage

from .build import Log, call, finished, judged

CHILD = "session/s/3.0"


def child(*said: str, call: str = "3.0", parent: str | None = "s") -> State:
    events: list[Event] = [
        Opened(root="/w", cwd="/w", agent="general", model="m/x", title="look", parent=parent,
               call=call),
        Prompted(id="s/3.0:task", content=(Text(text="Look."),), run="p1"),
        Admitted(turn="s/3.0:task", prompts=("s/3.0:task",)),
    ]  # fmt: skip
    for number, text in enumerate(said, 3):
        events.append(Replied(request=str(number), model="m/x", content=(Text(text=text),),
                              stop="end_turn", usage=Usage(input=5, output=2)))  # fmt: skip
    entries = [Entry(stream=CHILD, seq=n, at=float(n), event=e) for n, e in enumerate(events, 1)]
    return fold(entries, State(CHILD))


def ended(stop: Stop = "end_turn", message: str = "") -> Ended:
    return Ended(turn="s/3.0:task", stop=stop, message=message)


def text_of(mail: Mailed | None) -> str:
    assert mail and isinstance(mail.payload, TextPayload)
    return mail.payload.text


def test_a_result_says_who_what_for_and_what_it_took() -> None:
    mail = result(child("First.", "Found it."), ended(), 10.0)
    assert mail and mail.report
    assert (mail.sender, mail.to, mail.agent, mail.name) == ("s/3.0", "s", "general", "look")
    assert (mail.run, mail.correlation, mail.wakes) == ("p1", "s/3.0:task", True)
    assert mail.id == ulid(3.0, "s/3.0:s/3.0:task")
    assert text_of(mail) == "Found it."
    assert (mail.report.requests, mail.report.usage.total, mail.report.seconds) == (2, 14, 7.0)


@pytest.mark.parametrize(
    ("said", "end", "text"),
    [
        (("Half.",), ended("max_requests", "Stopped at 2."), "Half.\n\nStopped at 2."),
        ((), ended("error", "No key."), "No key."),
        ((), ended("cancelled"), "(the turn ended before anything was said: cancelled)"),
        (("x" * 25_000,), ended(), None),
    ],
)
def test_what_it_says(said: tuple[str, ...], end: Ended, text: str | None) -> None:
    found = text_of(result(child(*said), end, 10.0))
    if text is None:
        assert found.startswith("x" * MOST + "\n[These are the first 20000 of 25000")
    else:
        assert found == text


def test_whom_it_wakes() -> None:
    spawned, asked = child("Done."), child("Done.", call="")
    woken = [result(state, end, 9.0) for state in (spawned, asked)
             for end in (ended(), ended("error"), ended("cancelled"))]  # fmt: skip
    assert [mail and mail.wakes for mail in woken] == [True, True, False, False, False, False]
    assert result(child("Done.", parent=None), ended(), 9.0) is None


def below(id: str = "m1", **fields: Any) -> Mailed:
    about = {"agent": "general", "to": "s", "payload": TextPayload(text="well?")}
    return Mailed(**{"id": id, "sender": "s/3.0", "run": "p1", **about, **fields})


def above(id: str = "m1", **fields: Any) -> Mailed:
    return below(id, sender="r", to="r/s", **fields)


@pytest.mark.parametrize("stop", ["cancelled", "error", "max_requests", "max_run"])
def test_a_parents_word_begins_a_turn_whatever_ended_the_last(stop: Any) -> None:
    log = Log().begin().reply(Text(text="x")).add(Ended(turn="p1", stop=stop))
    assert next_step(log.add(below()).state) == Rest()
    assert next_step(log.add(above("m2")).state) == Admit(("m1", "m2"), turn="m2", opens=True)


def test_what_comes_from_below_gives_no_new_requests() -> None:
    """Else two agents could keep each other going for ever."""
    log = Log(limits=Limits(requests=2)).begin().reply(call("2.0"))
    log.add(judged("2.0"), finished("2.0")).reply(Text(text="x"))
    log.add(Ended(turn="p1", stop="end_turn"), below(), Admitted(turn="m1", prompts=("m1",)))
    step = next_step(log.state)
    assert isinstance(step, End) and step.stop == "max_requests"
    log.add(Ended(turn="m1", stop="max_requests"))
    log.add(above("m2", run="p9"), Admitted(turn="m2", prompts=("m2",)))
    assert next_step(log.state) == CallModel()


@given(st.floats(0, 4e9), st.floats(0, 4e9), st.text(), st.text())
def test_a_message_is_known_by_its_key_whenever_it_was_made(
    one: float, other: float, key: str, different: str
) -> None:
    had = [ulid(one, key), "p1"]
    assert known(had, ulid(other, key)) and known(had, "p1")
    assert not known(had, "p2")
    assert known(had, ulid(other, different)) is (key == different)


@given(st.text(max_size=300), st.dictionaries(st.text(max_size=9), st.text(max_size=99)))
def test_the_most_that_a_prompt_can_have_counts_all_its_texts(
    text: str, parameters: dict[str, str]
) -> None:
    parts = (Text(text=text), ToolOutput("1.0", "", text), Text(text="x"))
    request = ModelRequest(
        id="1", session="s", model="m", system=(text,),
        tools=(ToolSchema("t", "d", parameters),), messages=(Message("user", parts),),
        max_tokens=0,
    )  # fmt: skip
    assert bound(request) * 3 >= 3 * len(text.encode())
