"""About 60 kills, the same every time, which lie evenly over a run and are of each kind: a third of
them, or all in a thorough run. More of them, and by chance: `make chaos`.

The first kill of a trial may be anywhere in the run; those after it come soon after a start, since
most of the work is done by then. Where the work is done before, the last ones do not happen.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tests.chaos.cast import ALL, GRAPH
from tests.chaos.trial import LATER, LENGTH, LENGTHS, Kill, killed
from tests.thorough import seldom

TRIALS, PLANNED = 12, 72


def _spread(kind: str, upto: int, count: int) -> list[Kill]:
    """So many, evenly over the first `upto` of their kind; by turns before and after an append, and
    at once or a moment after the others."""
    turns = itertools.cycle([("before", 0.0), ("after", 0.01)])
    numbers = (1 + n * upto // count for n in range(count))
    return [Kill(kind, n, wait, when) for n, (when, wait) in zip(numbers, turns, strict=False)]


def _cases() -> Sequence[Sequence[Kill]]:
    anywhere = [
        *_spread("append", LENGTHS["append"], 6),
        *_spread("request", LENGTHS["request"], 3),
        *_spread("update", LENGTHS["update"], 3),
    ]
    soon = [
        *_spread("append", int(LATER * LENGTHS["append"]), 36),
        *_spread("request", int(LATER * LENGTHS["request"]), 9),
        *_spread("update", int(LATER * LENGTHS["update"]), 9),
        *(Kill("time", delay=n / 6 * LATER * LENGTH) for n in range(6)),
    ]
    # Where another server is there, it does a part of the work; a graph takes less.
    firsts = [
        replace(kill, number=1 + kill.number // (3 if _graph(n) else 2))
        if _two(n) or _graph(n)
        else kill
        for n, kill in enumerate(anywhere)
    ]
    return [[first, *_turned(soon[n::TRIALS], n)] for n, first in enumerate(firsts)]


def _turned(kills: list[Kill], by: int) -> list[Kill]:
    """Of each trial another kind comes first, so that it is not always the same which do not
    happen."""
    first = by % len(kills)
    return [*kills[first:], *kills[:first]]


def _two(number: int) -> bool:
    """Every fourth trial has a second server on the same store."""
    return number % 4 == 3


def _graph(number: int) -> bool:
    """Every sixth trial has a graph of tasks in worktrees; one of them has two servers."""
    return number % 6 == 5


CASES = _cases()


def test_the_kills_are_of_all_kinds_and_places() -> None:
    assert len(CASES) == TRIALS and sum(map(len, CASES)) == PLANNED
    assert {kill.kind for kills in CASES for kill in kills} == {*LENGTHS, "time"}
    soon = [kill for kills in CASES for kill in kills[1:] if kill.kind == "append"]
    assert {kill.number for kill in soon} == set(range(1, int(LATER * LENGTHS["append"]) + 1))
    assert Counter(kill.when for kill in soon) == {"before": 18, "after": 18}


@pytest.mark.needs("flock")
@pytest.mark.timeout(300)
@pytest.mark.req("G020", "G027", "A170")
@pytest.mark.parametrize("number", seldom(range(TRIALS)))
async def test_nothing_is_lost_and_nothing_is_done_twice(tmp_path: Path, number: int) -> None:
    play = GRAPH if _graph(number) else ALL
    place = tmp_path / "trial"
    outcome = await killed(CASES[number], number, place, two=_two(number), play=play)
    assert outcome.problems == []
    assert outcome.kills
