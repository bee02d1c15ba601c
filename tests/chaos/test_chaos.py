"""About 200 kills, the same every time, chosen so that together they cover a run. More of them:
`make chaos`.

The first kill of a trial may be anywhere in the run; those after it come soon after a start, since
most of the work is done by then. Where the work is done before, the last ones do not happen.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tests.chaos.trial import LATER, LENGTH, LENGTHS, Kill, killed

TRIALS, PLANNED = 32, 320


def _spread(kind: str, upto: int, count: int) -> list[Kill]:
    """So many, evenly over the first `upto` of their kind; by turns before and after it, and at
    once or a moment later."""
    numbers = [1 + n * upto // count for n in range(count)]
    turns = itertools.cycle([("before", 0.0), ("after", 0.0), ("after", 0.01)])
    return [Kill(kind, n, wait, when) for n, (when, wait) in zip(numbers, turns, strict=False)]


def _cases() -> Sequence[Sequence[Kill]]:
    anywhere = [
        *_spread("append", LENGTHS["append"], 16),
        *_spread("request", LENGTHS["request"], 8),
        *_spread("update", LENGTHS["update"], 8),
    ]
    soon = [
        *_spread("append", int(LATER * LENGTHS["append"]), 164),
        *_spread("request", int(LATER * LENGTHS["request"]), 46),
        *_spread("update", int(LATER * LENGTHS["update"]), 60),
        *(Kill("time", delay=n / 18 * LATER * LENGTH) for n in range(18)),
    ]
    random.Random(0).shuffle(soon)
    # Where another server is there, it does a part of the work.
    firsts = [
        replace(kill, number=1 + kill.number // 2) if _two(n) else kill
        for n, kill in enumerate(anywhere)
    ]
    return [[first, *soon[n::TRIALS]] for n, first in enumerate(firsts)]


def _two(number: int) -> bool:
    """Every fourth trial has a second server on the same store."""
    return number % 4 == 3


CASES = _cases()


def test_the_kills_are_of_all_kinds_and_places() -> None:
    assert len(CASES) == TRIALS and sum(map(len, CASES)) == PLANNED
    appends = {(k.number, k.when) for kills in CASES for k in kills if k.kind == "append"}
    assert len(appends) > 60


@pytest.mark.needs("flock")
@pytest.mark.timeout(300)
@pytest.mark.req("G020", "G027", "A170")
@pytest.mark.parametrize("number", range(TRIALS))
async def test_nothing_is_lost_and_nothing_is_done_twice(tmp_path: Path, number: int) -> None:
    outcome = await killed(CASES[number], number, tmp_path / "trial", two=_two(number))
    assert outcome.problems == []
    assert outcome.kills
