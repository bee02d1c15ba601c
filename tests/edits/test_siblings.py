"""What must not decide or be written: a line that only resembles, a blank that was lost, a space
within a string. And that hostile texts take no time to speak of."""

from __future__ import annotations

import itertools

import pytest

from magy_server.edits.model import Failure, Hunk
from magy_server.edits.placing.within_line import slip
from magy_server.edits.rebasing.diff import apply
from magy_server.edits.resolve import resolve


def after(raw: str, old: str, new: str, **more: object) -> str:
    found = resolve(raw, [Hunk(old, new, **{"lines": True, **more})])  # type: ignore[arg-type]
    assert not found.failures, found.failures[0].message
    return apply(raw, found.changes)


def refused(raw: str, old: str, new: str, **more: object) -> Failure:
    found = resolve(raw, [Hunk(old, new, **{"lines": True, **more})])  # type: ignore[arg-type]
    assert found.failures, apply(raw, found.changes)
    return found.failures[0]


LOAD = "def load_{}(id):\n    row = fetch(db, id)\n    return row\n"
HEADS = [
    ("for dep in part.deps:", "for dep in part_first.deps:", "for dep in second_part.deps:"),
    ("value = environ['PATH']", "value = environ['PATH_other']", "value = environ['PATH_line']"),
    ("class A(metaclass=type):", "class A(metaclass=type_load):", "class A(metaclass=type_gone):"),
    ("fn len_words(&self) -> u8 {", "fn len_bytes(&self) -> u8 {", "fn len_chars(&self) -> u8 {"),
]  # fmt: skip
BODY = "    total = weigh(dep)\n    return count(total)\n"


@pytest.mark.parametrize("heads", HEADS)
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize(
    "by", ["    return count(total + 1)\n", "    trace()\n    return count(total)\n"]
)
def test_of_two_siblings_none_is_taken_by_its_likeness(
    heads: tuple[str, str, str], turned: bool, by: str
) -> None:
    meant, *others = heads
    raw = "\n".join(f"{head}\n{BODY}" for head in (others[::-1] if turned else others))
    old = f"{meant}\n{BODY}"
    refused(raw, old, old.replace("    return count(total)\n", by))
    refused(raw, old, old.replace("    return count(total)\n", by), line=1)


def test_new_lines_above_a_block_that_is_gone_go_nowhere() -> None:
    raw = f"{LOAD.format('admin')}\n\n{LOAD.format('group')}"
    old = LOAD.format("user")
    refused(raw, old, f"@cached\n{old}")
    refused(LOAD.format("admin"), old, f"@cached\n{old}")


def test_a_sibling_that_is_the_only_one_left_is_left_alone() -> None:
    old = LOAD.format("user")
    assert (
        refused(LOAD.format("admin"), old, old.replace("row\n", "row.user\n")).code == "not_found"
    )


def test_one_of_two_siblings_is_meant_by_a_line_that_is_there() -> None:
    raw = f"# first\n{LOAD.format('admin')}\n\n# the second of them\n{LOAD.format('group')}"
    old = "# the second of them\n" + LOAD.format("gruop")
    assert after(raw, old, old.replace("return row", "return row.id")) == (
        raw[: raw.rindex("row")] + "row.id\n"
    )


def test_what_is_told_of_siblings() -> None:
    body = "total = weigh(dep)\ncount(total)\n"
    raw = f"value = first_thing()\n{body}\nvalue = other_thing()\n{body}"
    old = f"value = third_thing()\n{body}"
    failure = refused(raw, old, old.replace("count(total)", "count(total, 1)"))
    assert failure.code == "ambiguous"
    assert "both `value = third_thing()` of old" in failure.message
    assert "lines 5-7, with `value = other_thing()` (line 5)" in failure.message
    assert failure.lines == (1, 5)


def test_slips() -> None:
    assert slip("slef", "self")
    assert slip("deprecatted", "deprecated")
    assert slip("func", "fun")
    for a, b in [
        ("user", "users"),
        ("get_x", "set_x"),
        ("step1", "step2"),
        ("row1", "row"),
        ("a", "ab"),
    ]:
        assert not slip(a, b)


MATCH = "match self {\n    A(m) => m.shortest(h, at),\n    C(m) => m.shortest(h, at),\n}\n"


@pytest.mark.parametrize("lost", [("C",), ("A",), ("A", "C")])
def test_lines_of_a_patch_that_lost_a_blank_move_no_new_line(lost: tuple[str, ...]) -> None:
    old = MATCH.split("\n", 1)[1].removesuffix("}\n")
    for name in lost:
        old = old.replace(f"    {name}(", f"   {name}(")
    first, second = old.splitlines(keepends=True)
    put = "    B(m) => m.shortest(h, at),\n"
    assert after(MATCH, old, first + put + second) == MATCH.replace("    C(", f"{put}    C(")


def test_a_blank_within_a_string_is_no_white_space() -> None:
    raw = "msg = 'all() requirescallback functions but got'\n"
    old = "msg = 'all() requires callback functions but got'\n"
    new = "msg = 'all() requires a callback function but got'\n"
    assert after(raw, old, new) == new
    assert after(raw, old.rstrip(), new.rstrip(), lines=False) == new


def test_words_that_are_one_in_the_file_are_other_words() -> None:
    assert refused("if notx:\n    go\n", "if not x:\n", "if x:\n").code == "not_found"


def test_a_deleted_empty_line_goes_though_a_line_beside_it_is_made_up() -> None:
    raw = "intro of args.\n\n  Adheres to it\n  https://example.org\n\n  Expands all.\n"
    old = "intro of args.\n\n  Adheres to it\n  https://example.org\n\n;; made up\n  Expands all.\n"
    new = "intro of args.\n\n;; made up\n  Expands all.\n"
    assert after(raw, old, new) == "intro of args.\n\n  Expands all.\n"


@pytest.mark.parametrize("around", ["\ndef b():\n    two()\n\n", "\ndef b():\n    two()\n"])
def test_new_lines_beside_a_changed_line_share_the_empty_line_that_was_left_out(
    around: str,
) -> None:
    raw = "def a():\n    return 1\n\ndef c():\n    three()\n"
    old = "    return 1\ndef c():\n"
    assert after(raw, old, f"    return 2\n{around}def c():\n") == (
        "def a():\n    return 2\n\ndef b():\n    two()\n\ndef c():\n    three()\n"
    )


def test_new_lines_above_a_changed_line_share_it_too() -> None:
    raw = "import a\n\ndef c(x):\n    three()\n"
    old = "import a\ndef c(x):\n"
    assert after(raw, old, "import a\n\ndef b():\n    two()\n\ndef c(y):\n") == (
        "import a\n\ndef b():\n    two()\n\ndef c(y):\n    three()\n"
    )


def test_what_closes_a_changed_line_stays_with_it() -> None:
    raw = "x: T[\n    int\n] = value_of_x\n\n# about y\ny = 2\n"
    old = "x: T[\n    int\n] = value_of_x\n# about y\n"
    assert after(raw, old, "x: T[int] = (\n    value_of_x\n)\n# about y\n") == (
        "x: T[int] = (\n    value_of_x\n)\n\n# about y\ny = 2\n"
    )


def test_no_break_spaces_are_indentation() -> None:
    raw = "def a():\n\u00a0\u00a0one(1)\n\u00a0\u00a0return 1\n"
    old = "def a():\n  one(1)\n  return 1\n"
    assert after(raw, old, old.replace("one(1)", "one(2)")) == raw.replace("one(1)", "one(2)")


def test_two_tabs_for_a_level() -> None:
    raw = "a:\n    b:\n        c: 1\n        d: 2\n"
    old = "\t\t\t\tc: 1\n\t\t\t\td: 2\n"
    assert after(raw, old, f"{old}\t\t\t\te: 3\n") == f"{raw}        e: 3\n"


def test_a_short_line_that_is_there_already() -> None:
    assert refused("y = 3\nx = 1\n", "x = 0", "x = 1", lines=False).code == "already_applied"
    assert refused("x = 10\n", "x = 0", "x = 1", lines=False).code == "not_found"


def test_an_anchor_that_is_nowhere_is_named() -> None:
    raw = f"{LOAD.format('a')}\n{LOAD.format('b')}"
    failure = refused(raw, "    return row\n", "    return 1\n", anchors=("class Nowhere:",))
    assert failure.code == "ambiguous"
    assert "No line is like the anchor `class Nowhere:`" in failure.message


def test_a_differing_line_is_named_not_counted() -> None:
    raw = (
        "def total(items, tax=0):\n    value = sum(item.price for item in them)\n    return value\n"
    )
    old = raw.replace(", tax=0", "")
    found = resolve(raw, [Hunk(old, old.replace("return value", "return -value"), lines=True)])
    assert found.placed[0].note == "line 1 around the change differs from old"


HOSTILE = [
    ("x\n" * 100_000, "x\n...\nx\n"),
    ("    call(x)\n" * 100_000, "  call(x)\n" * 500),
    ("begin\n" + "y\n" * 99_000 + "end\nend\n", "begin\n...\nend\n"),
]


@pytest.mark.parametrize(("raw", "old"), HOSTILE)
def test_equal_lines_without_end_are_refused(raw: str, old: str) -> None:
    assert refused(raw, old, f"{old}z\n").code in ("not_found", "ambiguous")


def test_hundreds_of_hunks_of_another_file_are_refused() -> None:
    raw = "".join(f"def f{n}(a):\n    return g{n % 97}(a) + {n}\n" for n in range(5_000))
    hunks = [Hunk(f"return g{n}(b, {n}) - {n}", f"pass_{n}") for n in range(300)]
    found = resolve(raw, hunks)
    assert [failure.hunk for failure in found.failures] == list(range(300))
    assert all(a.message for a, _ in itertools.pairwise(found.failures))


LOCK = "".join(f'[[package]]\nname = "{name}"\nversion = "1.{n}"\n\n' for n, name in
               enumerate(["anstyle", "dirs", "fnv", "glob"]))  # fmt: skip


def test_a_line_that_may_be_one_of_those_deleted_must_be_there() -> None:
    old = LOCK.split("\n", 1)[1]
    new = LOCK.replace('[[package]]\nname = "dirs"\nversion = "1.1"\n\n', "").split("\n", 1)[1]
    assert after(LOCK, old, new) == LOCK.split("\n", 1)[0] + "\n" + new
    raw = LOCK.replace('[[package]]\nname = "dirs"', '[[patch]]\nname = "dirs"')
    refused(raw, old, new)


def test_a_place_that_a_rare_line_names_is_not_hidden_by_one_nearby() -> None:
    raw = 'source = "registry of crates"\n\n[[package]]\n' * 70 + (
        'name = "typenum"\nversion = "1.12.0"\nsource = "registry of crates"\n\n[[package]]\n'
        'name = "ucd-trie"\nversion = "0.1.3"\nsource = "registry of crates"\n\n[[walrus]]\n'
    )
    old = 'version = "0.1.3"\nsource = "registry of crates"\n\n[[package]]\n'
    new = old.replace('crates"\n', 'crates"\nchecksum = 1\n')
    refused(raw, old, new)
