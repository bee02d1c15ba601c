"""Rebasing changes, and merging, over what a user typed meanwhile."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from magy_server.edits.model import TextChange
from magy_server.edits.rebasing.diff import apply, changes
from magy_server.edits.rebasing.rebase import merge3, rebase
from magy_server.edits.text import plain
from tests.edits.perturbed.judge import merge_file
from tests.thorough import examples

TEN = "".join(f"line {n}\n" for n in range(10))


def change(base: str, old: str, new: str) -> TextChange:
    """`old`, which is in `base` once, becomes `new`."""
    assert base.count(old) == 1
    start = base.index(old)
    return TextChange(start, start + len(old), new)


def merged(base: str, live: str, *wanted: TextChange) -> str:
    found = rebase(base, live, wanted)
    assert not found.conflicts
    return apply(live, found.changes)


# --- what goes together -------------------------------------------------------------------------


def test_a_change_moves_with_its_line() -> None:
    live = TEN.replace("line 2\n", "").replace("line 4\n", "line 4\nnew\nnewer\n")
    assert merged(TEN, live, change(TEN, "6", "six")) == live.replace("6", "six")


def test_touching_lines_merge() -> None:
    live = TEN.replace("line 4\n", "LINE 4\nand more\n")
    wanted = [change(TEN, "line 5", "line five"), change(TEN, "line 8", "line eight")]
    found = rebase(TEN, live, wanted)
    assert apply(live, found.changes) == live.replace("5", "five").replace("8", "eight")


def test_an_insertion_stays_with_the_neighbour_that_is_left() -> None:
    below_four = TextChange(TEN.index("line 5"), TEN.index("line 5"), "mine\n")
    gone = TEN.replace("line 5\nline 6\n", "")
    assert merged(TEN, gone, below_four) == gone.replace("line 4\n", "line 4\nmine\n")
    gone = TEN.replace("line 3\nline 4\n", "")
    assert merged(TEN, gone, below_four) == gone.replace("line 5\n", "mine\nline 5\n")


@pytest.mark.parametrize(
    ("live", "wanted"),
    [
        (TEN.replace("line 5", "line V"), change(TEN, "5", "five")),
        (TEN.replace("line 5\n", ""), change(TEN, "5", "five")),
        (TEN.replace("line 4\nline 5\nline 6\n", ""), change(TEN, "line 5\n", "line 5\nmore\n")),
        (TEN.replace("line 5", "yours\nline 5"), change(TEN, "line 5", "mine\nline 5")),
        (TEN.replace("line 5", "yours\nline 5"), change(TEN, "line 4\nline 5", "one")),
        (TEN.replace("line 9\n", ""), TextChange(len(TEN), len(TEN), "more\n")),
    ],
    ids=["same line", "line gone", "around it gone", "one point", "inside", "last neighbour gone"],
)
def test_the_same_lines_conflict_with_both_versions(live: str, wanted: TextChange) -> None:
    found = rebase(TEN, live, [wanted])
    assert not found.changes
    (conflict,) = found.conflicts
    assert conflict.base != conflict.live
    assert conflict.live != conflict.wanted
    first = sum(len(line) for line in TEN.splitlines(keepends=True)[: conflict.base_line - 1])
    assert TEN.startswith(conflict.base, first)
    assert apply(TEN, [TextChange(first, first + len(conflict.base), conflict.wanted)]) == apply(
        TEN, [wanted]
    )
    first = sum(len(line) for line in live.splitlines(keepends=True)[: conflict.live_line - 1])
    assert live.startswith(conflict.live, first)


def test_one_conflict_does_not_stop_the_others() -> None:
    live = TEN.replace("line 2", "yours")
    wanted = [change(TEN, "line 2", "mine"), change(TEN, "line 7", "seven")]
    found = rebase(TEN, live, wanted)
    assert [moved.conflict is None for moved in found.moved] == [False, True]
    assert apply(live, found.changes) == live.replace("line 7", "seven")


def test_what_the_user_did_too_is_one_change() -> None:
    wanted = [change(TEN, "line 2\n", ""), change(TEN, "line 5\n", "line 5\nx\n\n")]
    live = "above\n" + apply(TEN, wanted)
    found = rebase(TEN, live, wanted)
    assert [moved.same for moved in found.moved] == [True, True]
    assert apply(live, found.changes) == live


def test_the_same_insertion_is_one_wherever_a_diff_puts_it() -> None:
    base = "a {\n}\n\nz {\n}\n"
    live = "a {\n}\n\nm {\n}\n\nz {\n}\n"
    inside = TextChange(base.index("}"), base.index("}"), "}\n\nm {\n")  # as another diff would
    assert apply(base, [inside]) == live
    assert merged(base, live, inside) == live
    assert merge3(base, live, live).text == live


def test_a_line_added_to_one_function_and_another_function_below_go_together() -> None:
    base = "a {\n  1\n}\n\nz {\n}\n"
    live = base.replace("  1\n", "  1\n  2\n")
    at = base.index("z {")
    below = TextChange(at, at, "m {\n}\n\n")  # it could as well begin above the `}` of a
    assert merged(base, live, below) == live.replace("z {", "m {\n}\n\nz {")


def test_which_of_two_like_blocks_was_deleted_cannot_be_told() -> None:
    base = "top\nf:\n  x = 1\nf:\n  x = 1\nend\n"
    live = base.replace("f:\n  x = 1\n", "", 1)
    for at in (base.index("1"), base.rindex("1")):
        assert rebase(base, live, [TextChange(at, at + 1, "2")]).conflicts


def test_changes_of_one_line_are_one() -> None:
    wanted = [TextChange(0, 1, "L"), TextChange(5, 6, "zero")]
    assert merged(TEN, f"top\n{TEN}", *wanted) == f"top\n{TEN}".replace("line 0", "Line zero")
    found = rebase(TEN, TEN.replace("line 0", "line null"), wanted)
    assert all(moved.conflict for moved in found.moved)
    assert len(found.conflicts) == 1


def test_a_long_replacement_is_judged_by_the_lines_it_changes() -> None:
    wanted = TextChange(0, len(TEN), TEN.replace("line 2", "two").replace("line 8", "eight"))
    live = TEN.replace("line 5", "five")
    assert merged(TEN, live, wanted) == live.replace("line 2", "two").replace("line 8", "eight")


# --- line ends ----------------------------------------------------------------------------------


def test_lines_take_the_ends_that_the_user_gave_the_file() -> None:
    live = TEN.replace("\n", "\r\n")
    wanted = [change(TEN, "line 3\n", "three\nand a half\n"), TextChange(70, 70, "end\n")]
    assert merged(TEN, live, *wanted) == apply(TEN, wanted).replace("\n", "\r\n")


def test_a_last_line_end_is_the_users_or_the_models() -> None:
    for base, live, wanted, text in [
        ("a\nb", "a\nb\n", TextChange(3, 3, "\nc"), "a\nb\nc\n"),
        ("a\nb\n", "a\nb", TextChange(4, 4, "c\n"), "a\nb\nc"),
        ("a\nb\n", "a\nb", TextChange(2, 4, "B\n"), "a\nB"),
        ("a\nb\n", "x\na\nb\n", TextChange(3, 4, ""), "x\na\nb"),
        ("a\nb", "x\na\nb", TextChange(3, 3, "\n"), "x\na\nb\n"),
        ("a\nb", "a\nb\n", TextChange(3, 3, "\n"), "a\nb\n"),
        ("a\nb\n", "x\na\nb\n", TextChange(1, 4, ""), "x\na"),
        ("a\nb\nc", "a\nb\nc\n", TextChange(4, 5, ""), "a\nb\n"),
        ("a\nb", "A\nb", TextChange(3, 3, "\nc\n"), "A\nb\nc\n"),
    ]:
        assert merged(base, live, wanted) == text, (base, live, wanted)


def test_an_undo_brings_back_line_ends_and_keeps_later_edits() -> None:
    before = "a\r\nb\r\nc\r\nd\r\n"
    after = "a\nB\nc\nd\n"
    live = "a\nB\nc\nd and more\n"
    undone = merge3(after, live, before)
    assert undone.text == "a\r\nb\r\nc\r\nd and more\r\n"
    assert not undone.conflicts


def test_an_undo_keeps_what_conflicts() -> None:
    after = TEN.replace("line 3", "agent").replace("line 6", "AGENT")
    live = after.replace("agent", "agent and user")
    undone = merge3(after, live, TEN)
    assert undone.text == live.replace("AGENT", "line 6")
    (conflict,) = undone.conflicts
    assert (conflict.base, conflict.live, conflict.wanted) == (
        "agent\n", "agent and user\n", "line 3\n",
    )  # fmt: skip


# --- laws ---------------------------------------------------------------------------------------

LAW = settings(deadline=None)
LINES = st.lists(st.sampled_from(["a", "b", "c", "", "}"]), max_size=8)
END = st.sampled_from(["\n", "\r\n", "\r"])


@st.composite
def texts(draw: st.DrawFn) -> str:
    lines = draw(LINES)
    mixed = "".join(line + draw(st.sampled_from(["\n", "\r\n"])) for line in lines)
    return mixed + draw(st.sampled_from(["", "last"]))


@LAW
@given(texts(), texts())
def test_who_changed_nothing_has_no_say(base: str, other: str) -> None:
    assert merge3(base, base, other).text == other
    assert merge3(base, other, base).text == other
    assert plain(merge3(base, other, other).text) == plain(other)


@LAW
@given(texts(), texts(), texts())
def test_a_conflict_is_one_from_both_sides(base: str, mine: str, theirs: str) -> None:
    """And so is the text, but for the end of the last line: one side's may be of a line that the
    other put more below."""
    one, other = merge3(base, mine, theirs), merge3(base, theirs, mine)
    assert bool(one.conflicts) == bool(other.conflicts)
    assert apply(mine, one.changes) == one.text
    if not one.conflicts:
        assert plain(one.text).rstrip("\n") == plain(other.text).rstrip("\n")


@LAW
@given(texts(), st.lists(st.tuples(st.integers(0, 30), st.integers(0, 9), LINES), max_size=4))
def test_changes_of_any_characters_move_whole(
    base: str, wanted: list[tuple[int, int, list[str]]]
) -> None:
    """They need not be of whole lines, nor of different ones."""
    changes_, at = [], 0
    for skip, size, lines in wanted:
        start = min(len(base), at + skip)
        at = min(len(base), start + size)
        changes_.append(TextChange(start, at, "\n".join(lines)))
    if any("\r" in base[edge - 1 : edge] for one in changes_ for edge in (one.start, one.end)):
        return  # between the halves of a line end
    before = "unlike all\nothers: 1\n"
    found = rebase(base, before + base, changes_)
    if found.conflicts:  # only where both insert at the top, or nothing is left of the base
        assert {conflict.base_line for conflict in found.conflicts} == {1}
    else:
        assert plain(apply(before + base, found.changes)) == before + plain(apply(base, changes_))


@st.composite
def rewritten(draw: st.DrawFn) -> tuple[str, list[TextChange], list[TextChange]]:
    """A text of unlike lines, and two lists of changes that share no line and do not touch."""
    end = draw(END)
    lines = [f"{n} is line {n}{end}" for n in range(draw(st.integers(1, 20)))]
    base = "".join(lines)
    sides: tuple[list[TextChange], list[TextChange]] = ([], [])
    at = offset = 0
    while at < len(lines):
        size = draw(st.integers(1, 3))
        part = "".join(lines[at : at + size])
        new = "".join(f"new {draw(st.integers(0, 99))}.{at}.{n}{end}"
                      for n in range(draw(st.integers(0, 3))))  # fmt: skip
        sides[draw(st.integers(0, 1))].append(TextChange(offset, offset + len(part), new))
        kept = "".join(lines[at + size : at + size + 1])
        offset += len(part) + len(kept)
        at += size + 1
    return base, *sides


@LAW
@given(rewritten())
def test_disjoint_changes_come_to_the_same_in_either_order(
    given_: tuple[str, list[TextChange], list[TextChange]],
) -> None:
    base, ours, users = given_
    both = apply(base, sorted(ours + users, key=lambda change: change.start))
    assert merged(base, apply(base, users), *ours) == both
    assert merged(base, apply(base, ours), *users) == both
    assert merge3(base, apply(base, users), apply(base, ours)).text == both


@settings(max_examples=examples(30), deadline=None)
@given(st.randoms(use_true_random=False))
def test_never_merges_a_line_that_git_says_both_changed(rng: random.Random) -> None:
    """And where git merges, so do we, to the same text."""
    base = [f"{n} {n * n}" for n in range(12)]
    mine, theirs = _typed(base, "mine", rng), _typed(base, "theirs", rng)
    texts_ = ["".join(f"{line}\n" for line in lines) for lines in (base, mine, theirs)]
    found = merge3(*texts_)
    conflicts, text = merge_file(*texts_)
    if not conflicts:
        assert not found.conflicts
        assert found.text == text
    both = [line for line in base if line not in mine and line not in theirs]
    if any(f"{line} mine" in mine or f"{line} theirs" in theirs for line in both):
        assert conflicts
        assert found.conflicts


def _typed(base: Sequence[str], side: str, rng: random.Random) -> list[str]:
    lines = list(base)
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(lines))
        what = rng.randrange(3)
        if what == 0:
            lines[at] += f" {side}"
        elif what == 1 and len(lines) > 4:
            del lines[at]
        else:
            lines.insert(at, f"{side} {rng.randint(0, 999)}")
    return lines


def test_changes_of_a_text_are_those_that_a_rebase_over_nothing_gives() -> None:
    new = TEN.replace("line 4", "four")
    wanted = changes(TEN, new, 0, len(TEN))
    assert rebase(TEN, TEN, wanted).changes == tuple(wanted)
