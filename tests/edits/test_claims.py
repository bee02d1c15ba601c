"""Which place is meant: a sibling, a line number, an anchor and a closing brace decide nothing that
the text does not."""

from __future__ import annotations

import pytest

from magy_server.edits.model import Hunk
from tests.edits.test_resolve import done
from tests.edits.test_siblings import after, refused

RUN = "def run(args):\n    subjects = load_subjects(args){}\n    result = compute(subjects)\n\n\n"
OTHER = "def other(args):\n    subjects = load_subjects(args)\n{}    result = compute(subjects)\n"
OLD = "    subjects = load_subjects(args)\n    result = compute(subjects)\n"
COMMENT = "  # all of them"


@pytest.mark.parametrize("between", ["    check(subjects)\n", "\n", "    check(subjects)\n\n"])
@pytest.mark.parametrize(
    "new",
    [
        OLD.replace("compute(subjects)", "compute(subjects, fast=True)"),
        OLD.replace("load_subjects", "load"),
        OLD + "    return result\n",
    ],
)
def test_one_difference_is_no_better_than_another(between: str, new: str) -> None:
    raw = RUN.format(COMMENT) + OTHER.format(between)
    assert refused(raw, OLD, new).code in ("ambiguous", "not_found")
    turned = OTHER.format(between) + "\n\n" + RUN.format(COMMENT)
    assert refused(turned, OLD, new).code in ("ambiguous", "not_found")


def test_a_block_that_is_only_moved_to_the_right_is_no_better_than_one_to_the_letter() -> None:
    deeper = "class A:\n" + "".join(
        f"    {line}\n" for line in OTHER.format("").splitlines()
    )  # fmt: skip
    new = OLD.replace("compute(subjects)", "compute(subjects, fast=True)")
    assert refused(RUN.format(COMMENT) + deeper, OLD, new).code == "ambiguous"
    assert "fast" in after(deeper, OLD, new)


def test_a_place_that_a_number_names_is_not_passed_over() -> None:
    near = "def near():\n    alpha = first(1)\n    beta = second(2)\n    return alpha\n"
    far = near.replace("near", "far")
    far = "\n" * 134 + far.replace("    return", "\n    return")
    raw = near.replace("alpha = first(1)", "alpha = first(10)") + far
    old = "    alpha = first(1)\n    beta = second(2)\n    return alpha\n"
    new = old.replace("second(2)", "third(3)")
    assert refused(raw, old, new, line=2).code == "ambiguous"
    assert refused(raw, old, new).code == "ambiguous"
    raw = near.replace("alpha = first(1)", "for each in these:") + far
    assert after(raw, old, new) == raw[::-1].replace(")2(dnoces", ")3(driht", 1)[::-1]


ANCHORED = "def found():\n    one()\n    return 1\n\n\ndef other():\n    two()\n    return 2\n"
TWO = "    two()\n    return 2\n"
THREE = "    two()\n    return 3\n"


@pytest.mark.parametrize("anchor", ["def missing():", "missing", "class Missing", "Other.missing"])
def test_an_anchor_that_is_not_there_is_not_ignored(anchor: str) -> None:
    failure = refused(ANCHORED, TWO, THREE, anchors=(anchor,))
    assert failure.code == "not_found"
    assert f"No line is like the anchor `{anchor}`. The old text is at lines 7-8" in failure.message


def test_below_an_anchor_is_not_in_another_definition() -> None:
    failure = refused(ANCHORED, TWO, THREE, anchors=("def found():",))
    assert "not in what the anchor `def found():` begins" in failure.message
    shown = "def other():\n" + TWO
    assert "return 3" in after(ANCHORED, shown, shown.replace("2", "3"), anchors=("def found():",))


@pytest.mark.parametrize("anchor", ["def other():", "def other(x, y):", "def otehr():", "other()"])
def test_an_anchor_that_is_nearly_there(anchor: str) -> None:
    assert "return 3" in after(ANCHORED, TWO, THREE, anchors=(anchor,))


def test_words_about_a_place_are_no_anchor() -> None:
    assert "return 3" in after(ANCHORED, TWO, THREE, anchors=("the end of the file",))


def test_an_anchor_that_an_earlier_edit_wrote() -> None:
    rename = Hunk("def other():\n", "def another():\n", True)
    change = Hunk(TWO, THREE, True, anchors=("def another():",))
    assert done(ANCHORED, rename, change) == ANCHORED.replace("other", "another").replace("2", "3")


SHALLOW = "a {\n  b {\n    c {\n      x\n    }\n  }\n}\n"
DEEP = "d {\n    e {\n        f {\n            y\n        }\n    }\n}\n"
END = "    if a\n        b\n    end\nend\n"


@pytest.mark.parametrize("lines", [True, False])
@pytest.mark.parametrize(
    ("raw", "old"),
    [
        (f"{SHALLOW}\n{DEEP}", "        }\n    }\n}\n"),
        (f"{SHALLOW}\n{DEEP}", "    }\n  }\n}\n"),
        (f"def f\n{END}\n{END}", "    end\nend\n"),
        ("<a>\n  <b>\n  </b>\n</a>\n<i>\n    <b>\n    </b>\n</i>\n", "  </b>\n"),
        ("f(a, {\n  x\n});\nif (b) {\n  g(a, {\n    y\n  });\n}\n", "});\n"),
    ],
)
def test_of_lines_that_only_close_blocks_none_is_meant_by_its_indentation(
    raw: str, old: str, lines: bool
) -> None:
    assert refused(raw, old, f"{old}// more\n", lines=lines).code == "ambiguous"


def test_lines_that_only_close_blocks_are_meant_where_a_number_or_an_anchor_says() -> None:
    raw = f"{SHALLOW}\n{DEEP}"
    old = "        }\n    }\n}\n"
    new = old.replace("    }\n}", "    }\n    z\n}")
    wanted = f"{SHALLOW}\n{DEEP}".replace("    }\n}\n", "    }\n    z\n}\n")
    assert after(raw, old, new, line=13) == wanted
    assert after(raw, old, new, anchors=("e {",)) == wanted
    assert after(DEEP, old, new) == DEEP.replace("    }\n}\n", "    }\n    z\n}\n")
    assert "the same everywhere" in refused(SHALLOW, old, new).message
