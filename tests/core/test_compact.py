"""Compaction: what goes, what stays, and that the rest is a valid conversation."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from magy_server.core import prompt
from magy_server.core.events import CompactAsked, Compacted, Ended, Finished, Planned, Replied
from magy_server.core.ports import ToolOutput
from magy_server.core.prompting import compaction as compact
from magy_server.core.state.state import State
from magy_server.core.steps import CallModel, Compact, Rest, next_step
from magy_server.core.values import Call, FileChange, Task, Text, Thinking, Usage
from tests.core.build import Log, briefed, call, finished, judged

TEXTS: Mapping[str, str] = {"h1": "You are the agent.", "h2": "You are renewed.", "sum": "SUMMARY"}


def rounds(log: Log, count: int, size: int) -> Log:
    """A turn of `count` tool calls whose results have `size` characters."""
    for number in range(count):
        id = f"{len(log.entries)}.0"
        log.reply(call(id, path=f"file{number}.py"), tokens=0)
        log.add(judged(id), finished(id, f"<{number}>" + "x" * size))
    return log


def compacted(log: Log) -> Log:
    return log.add(Compacted(dropped=compact.cut(log.state), summary="sum"))


def test_the_newest_part_stays_and_the_rest_is_one_text() -> None:
    log = rounds(Log(briefed(window=10_000)).begin("Fix the parser."), 6, 3_000)
    before = prompt.build(log.state, TEXTS)
    after = prompt.build(compacted(log).state, TEXTS)
    assert after.messages[0].parts == (Text(text="SUMMARY"),)
    kept = len(after.messages) - 1
    assert after.messages[1:] == before.messages[-kept:]
    assert 0 < kept < len(before.messages) - 1


def test_a_compaction_starts_a_prefix_from_the_latest_briefing() -> None:
    log = rounds(Log(briefed(window=1_000)).begin(), 3, 2_000)
    renewed = briefed(window=1_000, sections=(briefed().sections[0].model_copy(
        update={"hash": "h2"}),))  # fmt: skip
    log.add(renewed)
    assert prompt.build(log.state, TEXTS).system == ("You are the agent.",)
    request = prompt.build(compacted(log).state, TEXTS)
    assert request.system == ("You are renewed.",)
    assert "<updated" not in str(request.messages)


def test_it_is_due_when_the_window_is_full_enough() -> None:
    log = Log(briefed(window=4_000, compact_at=3_000)).begin()
    rounds(log, 2, 2_000)
    assert isinstance(next_step(log.state), CallModel)
    rounds(log, 4, 2_500)
    assert isinstance(next_step(log.state), Compact)
    assert isinstance(next_step(compacted(log).state), CallModel)


def test_what_the_provider_counted_is_what_counts() -> None:
    log = Log(briefed(window=4_000, compact_at=3_000)).begin()
    rounds(log, 2, 4_000)
    log.reply(call("99.0"), tokens=2_000)
    log.add(judged("99.0"), finished("99.0", "small"))
    assert log.state.conversation.context == 4_000 + len("small") // 4
    assert isinstance(next_step(log.state), Compact)


def test_it_is_not_due_when_dropping_would_not_help() -> None:
    """Agent and tools alone fill the window."""
    log = Log(briefed(window=4_000, compact_at=3_000)).begin()
    log.reply(call("3.0"), tokens=2_500)
    log.add(judged("3.0"), finished("3.0", "tiny"))
    assert isinstance(next_step(log.state), CallModel)


@pytest.mark.parametrize("why", ["user", "too_long"])
def test_it_may_be_asked_for_between_turns_and_within(why: str) -> None:
    log = rounds(Log().begin(), 1, 10)
    log.add(CompactAsked(why=why))  # type: ignore[arg-type]
    assert isinstance(next_step(log.state), Compact)
    log.add(Compacted(dropped=len(log.state.conversation.items), summary="sum"))
    assert isinstance(next_step(log.state), CallModel)
    rested = Log().begin().reply(Text(text="Done.")).add(Ended(turn="p1", stop="end_turn"))
    rested.add(CompactAsked())
    assert isinstance(next_step(rested.state), Compact)
    rested.add(Compacted(dropped=2, summary="sum"))
    assert isinstance(next_step(rested.state), Rest)


def test_what_the_log_knows_is_carried_over() -> None:
    log = Log().begin("Never touch vendor/.\nUse tabs.")
    log.reply(call("3.0", "edit_file"), call("3.1", "bash"))
    change = FileChange(path="/w/app.py", before="a" * 64, after="b" * 64)
    new = FileChange(path="/w/new.py", before=None, after="c" * 64)
    log.add(judged("3.0"), finished("3.0").model_copy(update={"changes": (change, new)}))
    refusal = "The user refused this call. Reason: not on Fridays"
    log.add(judged("3.1", "ask"), finished("3.1", refusal, "denied"))
    log.add(Planned(tasks=(Task(content="write tests", status="in_progress"),)))
    log.reply(Text(text="Done."))
    text = compact.digest(log.state, len(log.state.conversation.items))
    for known in (
        "Never touch vendor/.", "Use tabs.", "/w/app.py: changed", "/w/new.py: created",
        "not on Fridays", "[>] write tests",
    ):  # fmt: skip
        assert known in text


def test_a_second_compaction_still_knows_what_the_first_one_knew() -> None:
    log = Log().begin("First wish.").reply(call("3.0", "bash"))
    log.add(judged("3.0", "ask"), finished("3.0", "Refused. Reason: too slow", "denied"))
    log.add(Compacted(dropped=len(log.state.conversation.items), summary="sum"))
    rounds(log, 2, 10)
    text = compact.digest(log.state, len(log.state.conversation.items))
    assert "First wish." in text
    assert "too slow" in text


def test_a_flood_of_prompts_keeps_the_first_and_the_newest() -> None:
    log = Log()
    for number in range(20):
        log.begin(f"wish {number} " + "w" * 2_000, id=f"p{number}").reply(Text(text="ok"))
    text = compact.digest(log.state, len(log.state.conversation.items))
    assert "wish 0 " in text
    assert "wish 19 " in text
    assert "prompts left out here" in text
    assert len(text) < compact.WORDS + 3_000


def test_the_thinking_of_another_model_is_left_out() -> None:
    log = Log().begin()
    own = Replied(request="3", model="scripted/x", content=(Thinking(text="own", signature="s"),
                  Text(text="a")), stop="end_turn")  # fmt: skip
    other = (Thinking(text="foreign", data="d"), Text(text="b"))
    foreign = own.model_copy(update={"model": "other/y", "content": other})
    log.add(own, foreign)
    parts = [part for m in prompt.build(log.state, TEXTS).messages for part in m.parts]
    assert [p.text for p in parts if isinstance(p, Thinking)] == ["own"]


def test_cost_is_added_up_and_unknown_prices_are_counted() -> None:
    log = Log().begin()
    usage = Usage(input=10, output=1)
    log.add(Replied(request="3", model="scripted/x", content=(), stop="end_turn", usage=usage,
                    cost=0.25))  # fmt: skip
    log.add(Compacted(dropped=0, summary="sum", model="scripted/x", usage=usage, cost=0.5))
    log.add(Replied(request="4", model="scripted/x", content=(), stop="end_turn", usage=usage))
    assert (log.state.spending.cost, log.state.spending.unpriced) == (0.75, 1)
    assert log.state.spending.usage.total == 33


shapes = st.lists(
    st.tuples(st.sampled_from("prv"), st.integers(0, 3), st.integers(0, 9_000)), max_size=12
)


@settings(deadline=None)
@given(shapes, st.sampled_from([0, 2_000, 30_000]))
def test_what_is_left_is_always_a_valid_conversation(
    shape: list[tuple[str, int, int]], window: int
) -> None:
    log = Log(briefed(window=window))
    called = 0
    for number, (kind, calls, size) in enumerate(shape):
        if kind == "p":
            log.begin("p" * (size + 1), id=f"p{number}")  # an empty one is refused at the door
            called = 1
            continue
        if not called:  # a reply without calls was the end of that turn
            log.begin(id=f"p{number}")
        called = calls
        ids = [f"{len(log.entries)}.{n}" for n in range(calls)]
        log.reply(Text(text="t" * (size // 9 + 1)), *(call(id) for id in ids))
        for id in ids:
            log.add(judged(id), finished(id, "f" * size))
        if kind == "v" and compact.possible(log.state):
            dropped = compact.cut(log.state) or len(log.state.conversation.items)
            log.add(Compacted(dropped=dropped, summary="sum"))
            valid(log.state)
    if log.state.conversation.items:
        valid(log.state)


def valid(state: State) -> None:
    """Roles alternate, the user begins, and each call is answered right after it, once."""
    messages = prompt.build(state, TEXTS).messages
    roles = [message.role for message in messages]
    assert roles == [("user", "assistant")[n % 2] for n in range(len(roles))]
    asked: list[str] = []
    for message in messages:
        answered = [part.call for part in message.parts if isinstance(part, ToolOutput)]
        assert answered == (asked if message.role == "user" else [])
        asked = [part.id for part in message.parts if isinstance(part, Call)]
    items = state.conversation.items
    assert not any(isinstance(item, Compacted) for item in items[1:])
    assert not (items and isinstance(items[0], Finished))
