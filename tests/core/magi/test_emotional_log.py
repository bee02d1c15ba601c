"""CASPER's emotional log: what it keeps, how that fades, and what of it reaches a deliberation."""

from __future__ import annotations

import json
from typing import Any

import pytest

from magy_server.core.magi.emotional_log import (
    Entry,
    Log,
    Unreadable,
    added,
    entry,
    kept,
    line,
    parsed,
    review_due,
    seconds,
    strength,
    surfaced,
    topic,
    without,
    written,
)
from magy_server.core.magi.vote import Memory
from magy_server.core.magi.vote_parsing import read
from magy_server.core.wire_values import stamp

from .build import QUESTION, said

DAY = 86_400.0
NOW = 1_790_000_000.0


def felt(days: float, valence: float = 0.3, lesson: str = "", question: str = "Other?") -> Entry:
    """An entry so many days old."""
    memory = Memory(valence=valence, primary_emotion="calm", lesson=lesson or f"After {days}.")
    return entry(question, memory, NOW - days * DAY)


def log(*entries: Entry, reviewed: str = "") -> Log:
    return Log(reviewed=reviewed, entries=entries)


@pytest.mark.req("D082")
def test_an_entry_has_five_fields_and_not_the_question() -> None:
    (one,) = json.loads(written(log(felt(0, question=QUESTION))))["entries"]
    assert set(one) == {"date", "topic_hash", "valence", "primary_emotion", "lesson_1_line"}
    assert QUESTION not in json.dumps(one)
    assert one["topic_hash"] == topic(f"  {QUESTION.upper()} ") != topic("Another?")


@pytest.mark.req("D083")
def test_what_is_older_than_ninety_days_is_gone() -> None:
    all_ = log(felt(91), felt(89.9), felt(0), felt(-2))
    assert [one.lesson_1_line for one in kept(all_, NOW).entries] == ["After 89.9.", "After 0."]
    assert len(added(all_, felt(1), NOW).entries) == 3, "and out of the file with the next one"
    assert surfaced(log(felt(91, 1.0)), QUESTION, NOW) == []


@pytest.mark.req("D084")
def test_after_sixty_days_it_counts_half() -> None:
    assert strength(felt(0, -0.8), NOW) == pytest.approx(0.8)
    assert strength(felt(60, -0.8), NOW) == pytest.approx(0.4)
    old, young = felt(60, 0.5), felt(1, 0.3)
    assert surfaced(log(old, young), QUESTION, NOW) == [young, old]


@pytest.mark.req("D085")
def test_two_reach_a_deliberation_those_of_the_same_question_first() -> None:
    same = felt(50, 0.1, question=QUESTION)
    strong, weak = felt(2, 0.5), felt(1, 0.2)
    assert surfaced(log(weak, strong, same), QUESTION, NOW) == [same, strong]


@pytest.mark.req("D087")
def test_four_strong_feelings_within_a_week_are_read_by_a_person_first() -> None:
    three = [felt(day, -0.9, f"Lesson {day}.") for day in (1, 2, 3)]
    assert not review_due(log(*three, felt(8.5, -0.9), felt(1, 0.5)), NOW)
    due = log(*three, felt(7.9, -0.9))
    assert review_due(due, NOW) and surfaced(due, QUESTION, NOW) == ()
    done = due.model_copy(update={"reviewed": stamp(NOW - DAY / 2)})
    assert not review_due(done, NOW) and len(surfaced(done, QUESTION, NOW)) == 2


def test_the_same_again_is_one_entry() -> None:
    once = added(Log(), felt(1, lesson="A."), NOW)
    again = added(once, felt(0, lesson="A."), NOW)
    assert len(again.entries) == 1 and seconds(again.entries[0].date) == NOW
    assert without(again, [again.entries[0].id]).entries == ()
    assert parsed(written(again)) == again


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b'{"entries": [\n  {"date": "2026', ":2 is not JSON: Unterminated string"),
        (b"\n\xff", ":2 is not UTF-8 text"),
        (b"[" * 100_000, " is nested too deeply"),
        (b" " * (1 << 21), " is larger than 1 MiB"),
        (b"[]", " is not such a log"),
        (b'{"entries": [{"date": "2026-01-01"}]}', "entries, entry 1, topic_hash: Field required"),
        *(
            (written(log(felt(0))).replace(b"0.3", wrong), "entry 1, valence: Input should be")
            for wrong in (b"NaN", b"1e999", b"-2", b'"so"')
        ),
        (written(log(felt(0))).replace(b"2026-", b"20-"), "entry 1, date: Value error"),
        (b'{"reviewed": "soon"}', "reviewed: Value error"),
        (b'{"entries": [' + b"9" * 5_000 + b"]}", " has too long a number"),
    ],
)
def test_what_is_no_such_log_is_said(data: bytes, problem: str) -> None:
    with pytest.raises(Unreadable) as found:
        parsed(data)
    assert problem in str(found.value)


def remembered(node: Any = "casper", **memory: Any) -> Memory | None:
    about = {"valence": -0.5, "primary_emotion": "fear", "lesson": "Ask them first.", **memory}
    found = read(node, said("REJECT", 50, memory=about))
    assert found.vote
    return found.vote.memory


def test_only_what_is_a_memory_is_one() -> None:
    assert remembered() and remembered("melchior") is None
    for wrong in (2, float("nan"), True, None, "x", -1.01):
        assert remembered(valence=wrong) is None
    assert remembered(lesson=" ") is None and remembered(primary_emotion=["fear"]) is None
    long = remembered(lesson="\x1b[31mred\x1b[0m\n" + "x" * 500)
    assert long and long.lesson.startswith("red x") and len(long.lesson) <= 160
    assert "\n" not in line(entry(QUESTION, long, NOW))
