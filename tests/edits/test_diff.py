"""Line differences: they turn the one text into the other, whichever way they are found."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magy_server.edits.rebasing import diff

LINES = st.lists(st.sampled_from([f"{letter}\n" for letter in "abcdefgh"]), max_size=25)


def applied(old: Sequence[str], new: Sequence[str], found: Sequence[diff.Block]) -> list[str]:
    out: list[str] = []
    at = 0
    for a, b, c, d in found:
        out += [*old[at:a], *new[c:d]]
        at = b
    return [*out, *old[at:]]


@given(LINES, LINES, st.sampled_from([1, 9, 100, 10**9]))
def test_blocks_turn_one_into_the_other(old: list[str], new: list[str], split: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(diff, "SPLIT", split)
        found = diff.blocks(old, new)
    assert applied(old, new, found) == new
    for (_, b, _, d), (a, _, c, _) in itertools.pairwise(found):
        assert b < a and d < c, "equal lines lie between two blocks"
    assert all((a, c) != (b, d) for a, b, c, d in found)


@pytest.mark.parametrize("size", [1_000, 20_000, 60_000])
def test_scattered_changes_stay_apart_however_long_the_text(size: int) -> None:
    rng = random.Random(size)
    old = [f"    value_{n} = {n % 97}\n" if n % 3 else "    return\n" for n in range(size)]
    new = list(old)
    places = rng.sample(range(1, size, 10), 40)
    for at in places:
        new[at] = "changed\n"
    assert diff.blocks(old, new) == [(at, at + 1, at, at + 1) for at in sorted(places)]


def test_a_text_of_equal_lines_has_one_block() -> None:
    old = ["same\n"] * 40_000
    new = [*old[:20_000], "other\n", *old[20_000:]]
    assert diff.blocks(old, new) == [(20_000, 20_000, 20_000, 20_001)]
