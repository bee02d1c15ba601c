"""A snapshot gives back the very state it was made of, and nothing but a state."""

from __future__ import annotations

import os
import pickle
import threading
import zlib
from dataclasses import fields
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from magy_server.core.agents.mail import Closed, Mailed, Payload, Report, SignalPayload, TextPayload
from magy_server.core.events import (
    Admitted,
    Answered,
    Asked,
    CancelAsked,
    CompactAsked,
    Compacted,
    Configured,
    Consulted,
    Ended,
    Event,
    Exited,
    Granted,
    Judged,
    Moved,
    Planned,
    Replied,
    Requeued,
    Resumed,
    SkillRead,
    Started,
    Withdrawn,
)
from magy_server.core.reviews.review_events import Noted, Restored, Restoring
from magy_server.core.state.fold import ahead, fold, settled
from magy_server.core.state.queue import Queue
from magy_server.core.state.state import State
from magy_server.core.state.vector import Vector
from magy_server.core.values import (
    Decision,
    Evidence,
    Facts,
    FileChange,
    Grant,
    Part,
    Seen,
    SkillUse,
    Task,
    Text,
    Thinking,
    Usage,
)
from magy_server.engine.snapshot_format import dump, load
from tests.core.build import STREAM, Log, briefed, call, finished, prompted
from tests.thorough import examples


def mailed(id: str, payload: Payload, **fields: Any) -> Mailed:
    return Mailed(id=id, sender="s/1.0", agent="build", to="s", payload=payload, **fields)


def replied(*parts: Part) -> Replied:
    return Replied(request="4", model="scripted/x", content=parts, stop="end_turn")


ALLOWED, ASK = Decision(action="allow", rule="r"), Decision(action="ask", rule="r")
CHANGES = (FileChange(path="/w/a", before=None, after="h1"),)
WROTE = {"changes": CHANGES, "background": 77, "seen": (Seen(path="/w/b", hash="h4"),)}
EVENTS: list[Event] = [
    prompted("one", "p1"),
    prompted("two", "p2", delivery="steer"),
    prompted("three", "p3"),
    mailed("m1", TextPayload(text="done"), report=Report(turn="t", status="completed", stop="end")),
    mailed("m2", SignalPayload(signal="ping")),
    Requeued(order=("p2",), dropped=("p3",)),
    Admitted(turn="p1", prompts=("p1",), first=3, opens=True),
    Admitted(turn="p2", prompts=("p2", "m1"), first=3, opens=True),
    Admitted(turn="p1", prompts=("p2",), first=3, opens=False),
    replied(Thinking(text="hm", signature="s"), Text(text="I look."), call("4.0"), call("4.1")),
    Judged(call="4.0", facts=Facts(title="Read a", untrusted=("a page",)), decision=ALLOWED),
    SkillRead(call="4.0", skill=SkillUse(name="theirs", hash="h5", source="installed")),
    Started(call="4.0", evidence=Evidence()),
    Moved(call="4.0", cwd="/w/sub"),
    finished("4.0").model_copy(update=WROTE),
    Judged(call="4.1", facts=Facts(title="Read b"), decision=ASK),
    Asked(id="q1", call="4.1", title="May I?", rule="r"),
    Answered(id="q1", allow=True, by="p"),
    Asked(id="q1", call="4.1", title="May I?", rule="r"),
    Answered(id="q1", allow=False, by="p"),
    finished("4.1", status="denied"),
    replied(Text(text="Done.")),
    Exited(call="4.0", code=0),
    Granted(grant=Grant(id="g", key="read", pattern="*", scope="run")),
    Withdrawn(grant="g"),
    Planned(tasks=(Task(content="x"),)),
    Configured(option="model", value="other"),
    Consulted(agent="title", model="m", request="h3", text="A title", usage=Usage(input=3)),
    CancelAsked(),
    Ended(turn="p2", stop="cancelled"),
    Ended(turn="p1", stop="end_turn"),
    Restoring(id="r1", turn="p1", conversation=True, files=True),
    Restored(id="r1", turn="p1", conversation=True, files=True, changes=CHANGES),
    Restored(id="r2", turn="p1", undoes="r1", conversation=True, files=True),
    Noted(id="n", text="The person took a hunk."),
    CompactAsked(),
    CancelAsked(),
    Compacted(dropped=99, summary="h2", resting=True),
    Resumed(by="p"),
    briefed(model="other"),
    Closed(),
]
"""In an order in which most of them mean something."""


def lists(log: list[Event]) -> st.SearchStrategy[list[Event]]:
    """Parts of it in order, and anything in between."""
    pieces = st.lists(st.integers(0, len(log)), max_size=6).map(sorted)
    ordered = pieces.map(lambda at: [e for a, b in pairwise([0, *at]) for e in log[a:b]])
    return st.lists(ordered | st.lists(st.sampled_from(log), max_size=4), max_size=6).map(
        lambda parts: [event for part in parts for event in part]
    )


@settings(max_examples=examples(100))
@given(lists(EVENTS), lists(EVENTS))
def test_a_session_goes_on_from_it_as_if_folded_from_the_start(
    first: list[Event], then: list[Event]
) -> None:
    log = Log(*first)
    before = log.state
    again = load(dump(before))
    assert again == before
    log.add(*then)
    assert fold(log.entries[before.seq :], again) == log.state
    assert before == again, "nobody sees what came later"


@pytest.mark.parametrize("count", [0, 1, 2, 3])
def test_what_is_foreseen_of_an_append_is_what_comes_of_it(count: int) -> None:
    for start in range(len(EVENTS)):
        log, then = Log(*EVENTS[:start]), EVENTS[start : start + count]
        before = log.state
        foreseen = ahead(before, then)
        log.add(*then)
        assert settled(before, foreseen, log.entries[before.seq :]) == log.state


def test_every_part_of_a_state_comes_in_these_logs() -> None:
    seen: set[str] = set()
    log = Log()
    for event in EVENTS:
        log.add(event)
        state = log.state
        for part in (state, state.queue, state.conversation, state.history, state.turn):
            seen |= {f"{type(part).__name__}.{f.name}" for f in fields(part or Queue())
                     if part is not None and getattr(part, f.name)}  # fmt: skip
    parts = (State, Queue, type(log.state.conversation), type(log.state.history))
    missing = {f"{part.__name__}.{f.name}" for part in parts for f in fields(part)} - seen
    assert missing <= {"State.stream"}, missing


def test_versions_of_a_history_share_their_storage_again() -> None:
    log = Log()
    for n in range(50):
        log.begin(f"text {n}", f"p{n}").reply(Text(text="yes"))
        log.add(Ended(turn=f"p{n}", stop="end_turn"))
    again = load(dump(log.state))
    stores = {id(past.conversation.items.shared[0]) for past in again.history.pasts}
    assert stores == {id(again.conversation.items.shared[0])}


def test_it_can_be_made_while_the_session_goes_on() -> None:
    log = Log(*(prompted("text " * 20, f"p{n}") for n in range(3000)))
    log.add(Admitted(turn="p0", prompts=tuple(f"p{n}" for n in range(3000)), first=3, opens=True))
    made: list[bytes] = []
    state = log.state
    thread = threading.Thread(target=lambda: made.append(dump(state)))
    thread.start()
    more = state.conversation.items
    while thread.is_alive():
        more = more.append(prompted("meanwhile", "m"))
    assert load(made[0]) == state


@pytest.mark.parametrize("body", [b"", b"nonsense", zlib.compress(b"nonsense")], ids=len)
def test_what_is_no_snapshot_is_refused(body: bytes) -> None:
    with pytest.raises(ValueError, match="no snapshot"):
        load(body)


@given(st.data())
def test_damage_is_found(data: st.DataObject) -> None:
    state = Log().begin().reply(Text(text="yes")).state
    body = bytearray(dump(state))
    at = data.draw(st.integers(2, len(body) - 1))
    body[at] ^= data.draw(st.integers(1, 255))
    try:
        read = load(bytes(body))
    except ValueError as error:
        assert "no snapshot" in str(error)
    else:
        assert read == state, "some bits mean nothing: they only fill the last byte"


def test_what_is_said_of_damage_does_not_show_the_conversation() -> None:
    plain = zlib.decompress(dump(Log().begin().reply(Text(text="a secret plan")).state))
    body = zlib.compress(plain.replace(b"secret plan", b"secret \xffplan"[:11]))
    with pytest.raises(ValueError, match="UnicodeDecodeError") as raised:
        load(body)
    assert "secret" not in str(raised.value)


class Evil:
    def __reduce__(self) -> tuple[object, ...]:
        return os.system, ("false",)


@pytest.mark.parametrize(
    "value", [Evil(), os.getcwd, STREAM, [Queue()], Vector([1])], ids=lambda v: type(v).__name__
)
def test_nothing_but_a_state_comes_out(value: object) -> None:
    with pytest.raises(ValueError):
        load(zlib.compress(pickle.dumps(value)))
