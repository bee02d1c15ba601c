"""A part of the state is replaced as `dataclasses.replace` would do it."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magy_server.core.agents.tree import stream_of
from magy_server.core.state.conversation import Conversation
from magy_server.core.state.queue import Queue
from magy_server.core.state.replacing import replace
from magy_server.core.state.spending import Spending, Spent
from magy_server.core.state.state import State
from magy_server.core.state.turn import CallState, Turn
from magy_server.core.state.turn_starts import History, Past
from magy_server.core.state.vector import Vector
from magy_server.core.values import Call

PARTS = [
    State(stream_of("s")), Conversation(), Queue(), Spending(), Spent(), Turn("t", 0.0), History(),
    CallState(Call(id="1.0", name="read", arguments={})), Past("t", 1, Conversation(), {}),
]  # fmt: skip


@given(st.data())
def test_it_gives_what_the_standard_one_gives_and_leaves_the_first_alone(
    data: st.DataObject,
) -> None:
    part = data.draw(st.sampled_from(PARTS))
    names = [field.name for field in dataclasses.fields(part)]
    changes = data.draw(st.dictionaries(st.sampled_from(names), st.integers()))
    before = dataclasses.replace(part)
    now = replace(part, **changes)
    assert now == dataclasses.replace(part, **changes) and type(now) is type(part)
    assert part == before


@pytest.mark.parametrize("part", PARTS, ids=lambda part: type(part).__name__)
def test_every_part_has_slots_and_works_nothing_out_when_it_is_made(part: object) -> None:
    assert not hasattr(part, "__dict__") and not hasattr(part, "__post_init__")


def test_an_unknown_field_is_refused() -> None:
    with pytest.raises(KeyError):
        replace(Queue(), wating=())  # type: ignore[call-arg]


def test_what_a_turn_has_done_is_not_copied_for_each_call() -> None:
    turn = Turn("t", 0.0)
    assert turn.done.append(("Read a", "completed"))._items is turn.done._items
    assert isinstance(turn.done, Vector)
