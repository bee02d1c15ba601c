"""Many hunks in one text, and hunks for what the ones before them wrote."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from magy_server.edits.finding import source
from magy_server.edits.finding.source import Source
from magy_server.edits.model import Hunk, TextChange
from magy_server.edits.rebasing.diff import apply
from magy_server.edits.rebasing.earlier_hunks import Earlier
from magy_server.edits.resolve import resolve
from tests.edits.test_resolve import ENDS, done
from tests.thorough import examples, rotating

NIL = "---@type string\nM.mapleader = nil\n\nfunction M.headless()\nend\n"
COPY = Hunk(
    "function M.headless()",
    "---@type string\nM.maplocalleader = nil\n\nfunction M.headless()",
)


@pytest.mark.parametrize("trailing", ["", " "], ids=["exact", "white space"])
def test_what_an_earlier_hunk_wrote_comes_before_its_like_in_the_text(trailing: str) -> None:
    old = f"---@type string{trailing}\nM.maplocalleader = nil\n\nfunction M.headless()"
    change = Hunk(old, old.replace("string", "number"))
    assert done(NIL, COPY, change) == (
        "---@type string\nM.mapleader = nil\n\n"
        "---@type number\nM.maplocalleader = nil\n\nfunction M.headless()\nend\n"
    )


def test_what_is_in_the_text_as_written_comes_before_what_an_earlier_hunk_wrote() -> None:
    raw = "def one(x):\n    return x + 1\n"
    copy = Hunk("def one(x):\n", "def two(x):\n    return x + 1\n\n\ndef one(x):\n", True)
    change = Hunk("    return x + 1\n", "    return x + 2\n", True)
    assert done(raw, copy, change) == (
        "def two(x):\n    return x + 1\n\n\ndef one(x):\n    return x + 2\n"
    )


def test_two_places_that_earlier_hunks_wrote_are_ambiguous() -> None:
    raw = "alpha()\nbeta()\n"
    wanted = [
        Hunk("alpha()\n", "alpha()\nlog(value, 1)\n", True),
        Hunk("beta()\n", "beta()\nlog(value, 1)\n", True),
        Hunk("log(value, 1)\n", "log(value, 2)\n", True),
    ]
    found = resolve(raw, wanted)
    assert [(fail.hunk, fail.code) for fail in found.failures] == [(2, "ambiguous")]
    assert "the edits before this one" in found.failures[0].message


def test_lines_that_a_deletion_brought_together() -> None:
    raw = "first = 1\nsecond = 2\nthird = 3\n"
    gone = Hunk("second = 2\n", "", True)
    joined = Hunk("first = 1\nthird = 3\n", "third = 3\nfirst = 1\n", True)
    assert done(raw, gone, joined) == "third = 3\nfirst = 1\n"


@given(
    st.lists(st.sampled_from(["one(1)", "two(2)", "", "}"]), min_size=1, max_size=8),
    st.sampled_from(ENDS),
    st.data(),
)
@settings(max_examples=examples(200))
def test_a_chain_of_hunks_each_for_the_text_before_it(
    there: list[str], end: str, data: st.DataObject
) -> None:
    """Each inserts a line of its own, then the next changes that line."""
    raw = "start\n" + "".join(f"{line}\n" for line in there)
    text, wanted = raw, []
    old = "start\n"
    for n in range(data.draw(st.integers(1, 6))):
        new = f"number_{n} = call_{n}()\n" + data.draw(st.sampled_from(["", "\n", "}\n"])) + old
        wanted.append(Hunk(old, new, True))
        text = text.replace(old, new, 1)
        old = f"number_{n} = call_{n}()\n"
    found = resolve(raw.replace("\n", end), wanted)
    assert not found.failures, [failure.message for failure in found.failures]
    assert apply(raw.replace("\n", end), found.changes) == text.replace("\n", end)


@given(st.integers(0, 2**32))
@settings(max_examples=examples(400))
def test_no_lines_that_changes_brought_about_are_overlooked(seed: int) -> None:
    rng = random.Random(seed)
    raw = "".join(rng.choice(["aa\n", "b b\n", "\n", "}\n", "  c1\n"]) for _ in range(9))
    cuts = sorted(rng.sample(range(len(raw)), 6))
    earlier = Earlier(raw)
    for owner, (start, end) in enumerate(zip(cuts[::2], cuts[1::2], strict=True)):
        new = rng.choice(["", "x1\n", "aa\n", "\n", "q", "b b\n}\n"])
        earlier.add(owner, [TextChange(start, end, new)])
    after = _solid(apply(raw, [change for change, _ in earlier.owned]))
    before = "\n".join(["", *_solid(raw), ""])
    for first, last in itertools.combinations(range(len(after) + 1), 2):
        if "\n".join(["", *after[first:last], ""]) not in before:
            assert earlier.may_hold(after[first:last])


def _solid(text: str) -> list[str]:
    return [line.strip() for line in text.split("\n") if line.strip()]


MANY = [f"    value_{n} = compute_{n}(alpha, beta)" for n in range(20_000)]
BIG = "\n".join(MANY) + "\n"


@pytest.mark.parametrize(
    ("count", "made"),
    [(5_000, str), (1_000, str.strip)],
    ids=["exact", "indented"],
)
def test_thousands_of_hunks_in_a_long_file(count: int, made: Callable[[str], str]) -> None:
    """Each once took as long as all that were placed before it, or as a look at the whole file."""
    step = len(MANY) // count
    wanted = [
        Hunk(f"{made(MANY[n])} \n".replace(" \n", "\n"), f"{made(MANY[n])}  # seen\n", True)
        for n in range(0, len(MANY), step)
    ]
    after = [f"{line}  # seen" if n % step == 0 else line for n, line in enumerate(MANY)]
    assert done(BIG, *wanted) == "\n".join(after) + "\n"


@pytest.mark.parametrize("spoil", rotating(["slip", "indentation", "stale"]))
def test_thousands_of_hunks_that_are_not_exact_are_all_found(spoil: str) -> None:
    """Some were once said not to be there, as each took a look at all that came before it."""
    wanted = []
    for n in range(2, len(MANY) - 8, 10):
        block = MANY[n : n + 5]
        if spoil == "slip":
            block[0] = block[0].replace("compute", "cmopute")
        elif spoil == "stale":
            block[4] = block[4].replace("alpha, beta", "gamma")
        else:
            block = [line.strip() for line in block]
        new = [*block[:2], f"{block[2]}  # seen", *block[3:]]
        wanted.append(Hunk("\n".join(block) + "\n", "\n".join(new) + "\n", True))
    found = resolve(BIG, wanted)
    assert not found.failures, found.failures[0].message
    assert apply(BIG, found.changes).count("  # seen\n") == len(wanted) == 1_999


def test_pieces_of_lines_that_earlier_hunks_wrote() -> None:
    raw = "".join(f"value_{n} = one(alpha)\n" for n in range(20))
    first = [
        Hunk(f"value_{n} = one(alpha)\n", f"value_{n} = two(beta)\nmore_{n}()\n", True)
        for n in range(20)
    ]
    second = [Hunk(f"= two(beta)\nmore_{n}(", f"= two(b)\nless_{n}(") for n in range(20)]
    after = done(raw, *first, *second)
    assert after == "".join(f"value_{n} = two(b)\nless_{n}()\n" for n in range(20))


def test_places_next_to_each_other_share_what_is_learned_of_the_text(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[int] = []

    def counted(lines: Sequence[str]) -> str:
        seen.append(len(lines))
        return "    "

    monkeypatch.setattr(source, "unit_of", counted)
    text = Source(BIG)
    assert {text.unit(n, n + 3) for n in range(0, 19_990, 10)} == {"    "}
    assert sum(seen) < 6 * len(MANY)


def test_as_many_equal_hunks_as_equal_lines_take_all_of_them() -> None:
    assert done("x = 1\n" * 1_000, *[Hunk("x = 1\n", "x = 2\n", True)] * 1_000) == (
        "x = 2\n" * 1_000
    )


def test_no_more_places_than_are_looked_at_are_taken_for_all_there_are() -> None:
    for count in (999, 1_000, 1_001):
        found = resolve("    x = 1\n" * 5_000, [Hunk("x = 1 \n", "x = 2\n", True)] * count)
        assert {fail.code for fail in found.failures} == {"ambiguous"}
        assert not found.placed


def test_hunks_that_are_in_very_many_places_are_not_all_looked_for() -> None:
    wanted = [Hunk("  x = 1\n", f"  x = {n}\n", True) for n in range(2, 502)]
    found = resolve("    x = 1\n" * 5_000, [*wanted, Hunk("y\n", "z\n", True)])
    assert len(found.failures) == 501
    assert found.failures[0].code == "ambiguous"
    assert "another call" in found.failures[499].message
