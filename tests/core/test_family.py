"""Who is whose child, how a child is, and whether there may be one more."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magy_server.core.agents import tree
from magy_server.core.agents.child import refusal, status
from magy_server.core.agents.mail import Closed
from magy_server.core.events import Admitted, Asked, CancelAsked, Ended, Requeued
from magy_server.core.spawn_settings import RANGES, SpawnSettings, clamped
from magy_server.core.values import Text

from .build import Log, call, judged, prompted

KEYS = st.text("abc0123456789.-_", min_size=1, max_size=8)


@given(st.lists(KEYS, min_size=1, max_size=4))
def test_an_id_says_who_its_ancestors_are(keys: list[str]) -> None:
    session = keys[0]
    above: list[str] = []
    for key in keys[1:]:
        above.insert(0, session)
        session = tree.child(session, key)
    assert tree.ancestors(session) == above
    assert tree.parent(session) == (above[0] if above else None)
    assert (tree.root(session), tree.depth(session)) == (keys[0], len(above))
    assert all(tree.is_below(session, one) for one in above)
    assert not tree.is_below(session, session)


def test_only_the_ids_of_calls_are_those_of_calls() -> None:
    assert tree.is_call("12.0")
    assert not any(map(tree.is_call, ("12", "12.0.1", "a.0", "12.0x", "", ".0")))
    assert [tree.asked_at(id) for id in ("s/12.1", "s/12.0/mine", "s/3.0/40.2")] == [12, 0, 40]


@given(st.builds(SpawnSettings, **dict.fromkeys(RANGES, st.integers(-10, 2000))))
def test_limits_are_clamped_and_it_is_said(asked: SpawnSettings) -> None:
    held, said = clamped(asked)
    for name, (low, high) in RANGES.items():
        value = getattr(held, name)
        assert low <= value <= high
        assert any(name in line for line in said) == (value != getattr(asked, name))
    assert clamped(held) == (held, ())


def test_a_depth_of_999_becomes_3() -> None:
    held, said = clamped(SpawnSettings(max_depth=999))
    assert held.max_depth == 3
    assert said == ("spawn.max_depth: 999 becomes 3 (1 to 3).",)


@pytest.mark.parametrize(
    ("parent", "there", "working", "queued", "said"),
    [
        ("s", 0, 0, 0, ""),
        ("s/1.0", 0, 0, 0, ""),
        ("s/1.0/2.0", 0, 0, 0, "2 levels deep (spawn.max_depth)"),
        ("s", 4, 0, 0, "s/1.0 (look): completed, s/1.1 (look): completed"),
        ("s", 3, 24, 0, "24 children are at work"),
        ("s", 3, 23, 200, "200 children wait for a slot"),
    ],
)
def test_a_refusal_says_which_limit_and_what_there_is(
    parent: str, there: int, working: int, queued: int, said: str
) -> None:
    siblings = [f"s/1.{n} (look): completed" for n in range(there)]
    found = refusal(parent, SpawnSettings(), siblings, working, queued)
    assert said in found and bool(found) == bool(said)
    assert "close_agent" not in found and "You" not in found  # a person may read it, or a model


STOPPED = CancelAsked(turn="p1")


def ran(stop: Any) -> Log:
    return Log().begin().reply(Text(text="x")).add(Ended(turn="p1", stop=stop))


@pytest.mark.parametrize(
    ("log", "expected"),
    [
        (Log(), "queued"),
        (Log(prompted("x", "p1")), "queued"),
        (Log(prompted("x", "p1"), Requeued(dropped=("p1",))), "cancelled"),
        (Log(prompted("x", "p1"), Admitted(turn="p1", prompts=("p1",))), "running"),
        (Log().begin().reply(call("4.0")).add(judged("4.0", "ask"),
                                             Asked(id="s/4.0", call="4.0", title="t", rule="r")),
         "waiting"),
        (ran("end_turn"), "completed"),
        (ran("cancelled"), "cancelled"),
        (ran("error"), "failed"),
        (ran("max_requests"), "failed"),
        (ran("end_turn").add(prompted("more", "p2")), "queued"),
        (ran("end_turn").add(Closed()), "closed"),
        (ran("end_turn").add(Closed(mode="cancel")), "closed"),
        (Log().begin().add(Closed()), "running"),
        (Log().begin().add(Closed(mode="cancel"), STOPPED, Ended(turn="p1", stop="cancelled")),
         "closed"),
    ],
)  # fmt: skip
def test_how_a_child_is(log: Log, expected: str) -> None:
    assert status(log.state) == expected


def test_a_turn_that_has_no_slot_yet_is_queued() -> None:
    begun = Log().begin()
    assert status(begun.state, queued=True) == "queued"
    assert status(begun.reply(call("4.0")).state, queued=True) == "running"
