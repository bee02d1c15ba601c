"""What holds for every text and every hunk, and how the hunks of one call live together."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from magy_server.edits.model import Hunk, Resolved
from magy_server.edits.rebasing.diff import apply, blocks
from magy_server.edits.resolve import resolve
from magy_server.edits.text import line_end, plain, split
from tests.thorough import examples

ENDS = ["\n", "\r\n", "\r"]
WORDS = [
    "def f():",
    "    x = 1",
    "\ty = 2",
    "",
    "  ",
    "}",
    "end",
    "x = 1  ",
    "\u2028z\x0c",
    "é “q”",
]
lines = st.lists(st.sampled_from(WORDS), max_size=12)


@st.composite
def raws(draw: st.DrawFn) -> str:
    """A text with any mixture of line ends, with or without one at its end."""
    drawn = draw(lines)
    ends = draw(st.lists(st.sampled_from(ENDS), min_size=len(drawn), max_size=len(drawn)))
    if ends and draw(st.booleans()):
        ends[-1] = ""
    return "".join(line + end for line, end in zip(drawn, ends, strict=True))


texts = st.text(st.sampled_from("ab \t\n\r\"'\\.…“x1|:#/`{}\u2028\ufeff"), max_size=60)
hunks = st.builds(
    Hunk,
    old=texts,
    new=texts,
    lines=st.booleans(),
    anchors=st.lists(texts, max_size=2).map(tuple),
    line=st.none() | st.integers(-1, 9),
    at_end=st.booleans(),
    every=st.booleans(),
)


def done(raw: str, *wanted: Hunk) -> str:
    """`raw` with all of `wanted`, which must all have a place."""
    found = resolve(raw, wanted)
    assert not found.failures, [failure.message for failure in found.failures]
    return apply(raw, found.changes)


def code(raw: str, *wanted: Hunk) -> str:
    found = resolve(raw, wanted)
    assert len(found.failures) == 1
    return found.failures[0].code


def well_formed(raw: str, found: Resolved, count: int) -> None:
    at = 0
    for change in found.changes:
        assert at <= change.start <= change.end <= len(raw)
        at = change.end
    told = [placed.hunk for placed in found.placed] + [fail.hunk for fail in found.failures]
    assert sorted(told) == list(range(count))


@given(raws(), st.lists(hunks, max_size=4))
@settings(max_examples=examples(200))
def test_whatever_a_model_writes_is_placed_or_refused(raw: str, wanted: list[Hunk]) -> None:
    found = resolve(raw, wanted)
    well_formed(raw, found, len(wanted))
    for failure in found.failures:
        assert failure.message
        assert len(failure.message) < 20_000


@given(raws(), lines, st.booleans())
@settings(max_examples=examples(150))
def test_the_whole_difference_as_one_hunk_gives_the_new_text(
    raw: str, after: list[str], ended: bool
) -> None:
    before, new = plain(raw), "\n".join(after) + ("\n" if ended and after else "")
    if before == new or not before.strip():
        return
    found = resolve(raw, [Hunk(before, new, lines=True)])
    if found.failures:
        assert found.failures[0].code in ("already_applied", "placeholder")
    else:
        assert plain(apply(raw, found.changes)) == new


@example("x\r" + "x\n" * 9 + "\nx\n", "x\n\n\n")  # what two hunks leave between them
@example("def f():\n    x = 1\ndef f():\n}\n}\n", "def f():\ndef f():\n}\ndef f():\n}\ndef f():")
@given(raws(), raws())
@settings(max_examples=examples(150))
def test_exact_hunks_of_a_diff_give_the_other_text_or_are_refused(a: str, b: str) -> None:
    """Every changed block as one hunk with all lines up to the next change around it."""
    old, new = split(plain(a)), split(plain(b))
    found = blocks(old, new)
    wanted = []
    for n, (_, stop, _, last) in enumerate(found):
        start = found[n - 1][1] if n else 0
        first = found[n - 1][3] if n else 0
        end = len(old) if n == len(found) - 1 else stop
        end_new = len(new) if n == len(found) - 1 else last
        wanted.append(
            Hunk("".join(old[start:end]), "".join(new[first:end_new]), lines=True, line=start + 1)
        )
    result = resolve(a, wanted)
    if not result.failures:
        assert plain(apply(a, result.changes)) == plain(b)


@given(raws(), st.integers(0, 11), st.sampled_from(["new = 7", "", "}"]))
@settings(max_examples=examples(150))
def test_all_bytes_outside_the_changed_line_stay(raw: str, n: int, text: str) -> None:
    there = split(raw)
    if n >= len(there):
        return
    quoted = plain(raw)
    wanted = [plain(line) for line in there]
    wanted[n] = text + ("\n" if wanted[n].endswith("\n") else "")
    if not wanted[n] or "".join(wanted) == quoted:
        return
    found = resolve(raw, [Hunk(quoted, "".join(wanted), lines=True)])
    if found.failures:
        return
    expected = [*there[:n], text + line_end(there[n]), *there[n + 1 :]]
    if split("".join(expected)) == expected:  # a lone \r before an empty line with \n has no text
        assert apply(raw, found.changes) == "".join(expected)


@given(st.lists(st.integers(0, 99), min_size=3, max_size=20, unique=True), st.data())
def test_an_edit_is_not_made_twice(numbers: list[int], data: st.DataObject) -> None:
    there = [f"statement_number_{n} = {n}" for n in numbers]
    at = data.draw(st.integers(1, len(there) - 1))
    before = "\n".join(there) + "\n"
    old = "\n".join(there[at - 1 : at + 1]) + "\n"
    new = f"{there[at - 1]}\ninserted_between = True\n{there[at]}\n"
    once = done(before, Hunk(old, new, lines=True))
    assert code(once, Hunk(old, new, lines=True)) == "already_applied"


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("last", [True, False])
@pytest.mark.req("G012")
def test_line_ends_are_those_of_the_file(end: str, last: bool) -> None:
    raw = end.join(["one", "two", "three"]) + (end if last else "")
    after = done(raw, Hunk("two\nthree\n", "two\n2.5\nthree\nfour\n", lines=True))
    assert after == end.join(["one", "two", "2.5", "three", "four"]) + (end if last else "")


def test_each_line_keeps_its_own_line_end() -> None:
    raw = "a\r\nb\nc\rd\r\n"
    assert done(raw, Hunk("b\nc\n", "b\nC\n", lines=True)) == "a\r\nb\nC\rd\r\n"
    assert done(raw, Hunk("a\n", "a\nA\n", lines=True)) == "a\r\nA\r\nb\nc\rd\r\n"
    assert done(raw, Hunk("a\nb", "a\nB")) == "a\r\nB\nc\rd\r\n"


def test_form_feeds_and_line_separators_are_no_line_ends() -> None:
    raw = "a\x0cb\u2028c\nd\n"
    assert code(raw, Hunk("c\n", "C\n", lines=True)) == "not_found"
    assert done(raw, Hunk("c\nd", "c\nD")) == "a\x0cb\u2028c\nD\n"


@pytest.mark.parametrize(
    ("raw", "old", "new", "expected"),
    [
        ("a\nb", "b\n", "c\n", "a\nc"),
        ("a\nb", "b", "c\n", "a\nc\n"),
        ("a\nb\n", "b\n", "c", "a\nc"),
        ("a\nb\nd\n", "b\n", "c", "a\nc\nd\n"),
        ("a\nb\n", "b", "c", "a\nc\n"),
        ("a\nb", "b\n", "b\nc\n", "a\nb\nc"),
        ("a\nb", "b\n", "", "a\n"),
    ],
)
def test_the_end_of_a_file_changes_only_when_the_hunk_says_so(
    raw: str, old: str, new: str, expected: str
) -> None:
    assert done(raw, Hunk(old, new, lines=True)) == expected


def test_a_byte_order_mark_in_the_text_stays() -> None:
    raw = "\ufeffimport os\nx = 1\n"
    assert done(raw, Hunk("import os\nx = 1\n", "import re\nx = 1\n", lines=True)) == (
        "\ufeffimport re\nx = 1\n"
    )
    assert done("import os\n", Hunk("\ufeffimport os\n", "\ufeffimport re\n", lines=True)) == (
        "import re\n"
    )


@pytest.mark.parametrize(
    ("hunk", "expected"),
    [
        (Hunk("", "x\n", line=1), "x\na\nb\n"),
        (Hunk("", "x", line=2), "a\nx\nb\n"),
        (Hunk("", "x\n", line=3), "a\nb\nx\n"),
        (Hunk("", "x\n", at_end=True), "a\nb\nx\n"),
        (Hunk("", "x\n", anchors=("a",)), "a\nx\nb\n"),
    ],
)
def test_insertions_without_old_text(hunk: Hunk, expected: str) -> None:
    assert done("a\nb\n", hunk) == expected


def test_an_insertion_needs_a_place() -> None:
    assert code("a\nb\n", Hunk("", "x\n")) == "parse"
    assert code("a\nb\n", Hunk("", "x\n", line=9)) == "not_found"
    assert code("a\nb\n", Hunk("", "x\n", line=0)) == "not_found"
    assert code("a\nb\n", Hunk("", "x\n", anchors=("nowhere",))) == "not_found"
    assert code("a\na\n", Hunk("", "x\n", anchors=("a",))) == "ambiguous"
    assert code("a\n", Hunk("", "", line=1)) == "no_change"


@pytest.mark.parametrize("raw", ["", "\n", "  \n"])
def test_an_empty_file_becomes_the_new_text(raw: str) -> None:
    assert done(raw, Hunk("", "x = 1\n")) == "x = 1\n"


def test_appending_to_a_last_line_without_a_line_end() -> None:
    assert done("a\r\nb", Hunk("", "c\n", at_end=True)) == "a\r\nb\r\nc"


def test_every_occurrence() -> None:
    raw = "x = 1\r\ny = x + x\r\n"
    assert done(raw, Hunk("x", "zz", every=True)) == "zz = 1\r\ny = zz + zz\r\n"
    assert done("a\nb\na\na", Hunk("a\n", "A\n", lines=True, every=True)) == "A\nb\nA\nA"
    assert done("aaaa", Hunk("aa", "b", every=True)) == "bb"
    assert code(raw, Hunk("X", "y", every=True)) == "not_found"


def test_hunks_relate_to_the_text_before_the_call() -> None:
    raw = "one\ntwo\nthree\nfour\n"
    swap = [Hunk("three\n", "two\n", lines=True), Hunk("two\n", "three\n", lines=True)]
    assert done(raw, *swap) == "one\nthree\ntwo\nfour\n"


def test_a_hunk_may_be_written_for_what_earlier_ones_left() -> None:
    raw = "def a():\n    return 1\n\n\ndef b():\n    return 2\n"
    first = Hunk("    return 1\n", "    value = 1\n    return value\n", lines=True)
    second = Hunk("    value = 1\n    return value\n", "    value = 3\n    return value\n", True)
    found = resolve(raw, [first, second])
    assert not found.failures
    assert apply(raw, found.changes) == raw.replace("return 1", "value = 3\n    return value")
    assert "after the edits before it" in found.placed[1].note


def test_two_hunks_that_want_one_line_otherwise() -> None:
    raw = "a = 1\nb = 2\nc = 3\n"
    found = resolve(raw, [Hunk("b = 2\n", "b = 3\n", True), Hunk("b = 2\n", "b = 4\n", True)])
    assert [placed.hunk for placed in found.placed] == [0]
    assert (found.failures[0].hunk, found.failures[0].code) == (1, "conflict")
    assert "edit 1" in found.failures[0].message
    same = resolve(raw, [Hunk("b = 2\n", "b = 3\n", True), Hunk("b = 2\n", "b = 3\n", True)])
    assert same.failures[0].code == "already_applied"
    assert apply(raw, same.changes) == "a = 1\nb = 3\nc = 3\n"


def test_two_words_of_one_line() -> None:
    assert done("f(one, two)\n", Hunk("one", "1"), Hunk("two", "2")) == "f(1, 2)\n"


def test_context_that_another_hunk_changes_is_no_conflict() -> None:
    raw = "a\nb\nc\nd\n"
    assert done(
        raw, Hunk("a\nb\nc\n", "A\nb\nc\n", True), Hunk("a\nb\nc\nd\n", "a\nb\nc\nD\n", True)
    ) == ("A\nb\nc\nD\n")


def test_nothing_is_lost_when_one_of_several_fails() -> None:
    raw = "alpha = 1\nbeta = 2\ngamma = 3\n"
    found = resolve(
        raw,
        [
            Hunk("alpha = 1", "alpha = 9"),
            Hunk("delta = 4", "delta = 5"),
            Hunk("gamma = 3", "g = 3"),
        ],
    )
    assert [placed.hunk for placed in found.placed] == [0, 2]
    assert [(fail.hunk, fail.code) for fail in found.failures] == [(1, "not_found")]
    assert apply(raw, found.changes) == "alpha = 9\nbeta = 2\ng = 3\n"


COUNTED = "".join(f"{n}\n" for n in range(9_999))


@pytest.mark.parametrize(
    ("raw", "hunk"),
    [
        ("x = 1\n" * 50_000, Hunk("x = 1\n" * 5_000, "x = 2\n", lines=True)),
        ("x = 1\n" * 50_000, Hunk("x = 1\n" * 2_000 + "y\n" + "x = 1\n" * 2_000, "z\n", True)),
        ("a" * 1_000_000, Hunk("a" * 400_000, "b")),
        ("a" * 1_000_000, Hunk("a" * 400_000 + "b\n", "b\n", lines=True)),
        ("x " * 400_000, Hunk("x x x x x  y", "z")),
        ("\n" * 50_000, Hunk("\n" * 10_000, "z\n", lines=True)),
        (COUNTED, Hunk(COUNTED.replace("\n", "q\n"), "", True)),
        ("...\n" * 5_000, Hunk("a\n...\n" * 2_000, "b\n...\n" * 2_000, lines=True)),
    ],
)  # fmt: skip
def test_hostile_sizes_are_refused_within_bounds(raw: str, hunk: Hunk) -> None:
    found = resolve(raw, [hunk])
    assert found.failures[0].code in ("ambiguous", "not_found")
    assert len(found.failures[0].message) < 12_000


@pytest.mark.parametrize(
    ("raw", "old", "new", "after"),
    [
        ("a()\nb()\n", "  b()\n", "  b()\n  c()", "a()\nb()\nc()"),
        ("a()\nb()\n", "  a()\n  b()\n", "  c()\n  b()", "c()\nb()"),
        ("a()\nb()\n", "  a()\n  b()\n", "  a()", "a()"),
        ("a()\nb()", "  a()\n  b()", "  a()", "a()"),
        ("a()\nb()", "  b()", "  b()\n  c()\n", "a()\nb()\nc()\n"),
        ("a()\nb()", "  b()\n", "  c()\n", "a()\nc()"),
    ],
)
def test_a_hunk_says_whether_the_last_line_has_an_end_however_it_is_indented(
    raw: str, old: str, new: str, after: str
) -> None:
    found = resolve(raw, [Hunk(old, new, lines=True)])
    assert [one.tier for one in found.placed] == ["indentation"]
    assert apply(raw, found.changes) == after
