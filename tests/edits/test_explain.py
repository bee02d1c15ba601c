"""What a model reads when a hunk cannot be applied: enough to get it right the next time."""

from __future__ import annotations

import re

import pytest

from magy_server.edits.model import Failure, Hunk
from magy_server.edits.rebasing.diff import apply
from magy_server.edits.resolve import resolve

SHOP = """\
class Shop:
    def price(self, item):
        value = self.prices[item]
        return value * 2

    def total(self, items):
        return sum(self.price(item) for item in items)
"""


def refused(raw: str, old: str, new: str = "something_else()\n", **more: object) -> Failure:
    found = resolve(raw, [Hunk(old, new, **{"lines": True, **more})])  # type: ignore[arg-type]
    assert len(found.failures) == 1, apply(raw, found.changes)
    return found.failures[0]


@pytest.mark.req("G013")
def test_the_closest_region_is_shown_with_what_differs() -> None:
    failure = refused(SHOP, "        value = self.prices[item]\n        return value * 3\n")
    assert failure.code == "not_found"
    assert failure.lines == (3, 4)
    assert "closest is lines 3-4" in failure.message
    assert "line 4 is `        return value * 2` where old has `        return value * 3`" in (
        failure.message
    )
    assert "     4 |         return value * 2" in failure.message
    assert "% alike" in failure.message


def test_a_model_that_copies_what_is_shown_gets_it_right() -> None:
    failure = refused(SHOP, "    def price(self, thing):\n        return thing.value * 3\n")
    shown = re.findall(r"^ *\d+ \| (.*)$", failure.message, re.MULTILINE)
    again = "".join(f"{line}\n" for line in shown)
    assert again
    found = resolve(SHOP, [Hunk(again, "    pass\n", lines=True)])
    assert not found.failures


def test_tabs_and_trailing_blanks_are_made_visible() -> None:
    raw = "if x:\n\tcall(1)  \n\tcall(2)\nend\n"
    failure = refused(raw, "if x:\n\tcall(1)\n\tcall(3)\nend\n")
    assert "→call(1)··" in failure.message
    assert "\t" not in failure.message


def test_lines_that_old_leaves_out_are_named() -> None:
    raw = "first_call()\nsecond_call()\nthird_call()\nfourth_call()\n"
    failure = refused(raw, "first_call()\nthird_call()\nfourth_cull()\n")
    assert "old leaves out line 2" in failure.message


def test_lines_that_are_not_there_are_named() -> None:
    failure = refused(SHOP, SHOP.replace("        return value * 2\n", "") + "made_up_line()\n")
    assert "`made_up_line()` is not there" in failure.message


def test_nothing_like_it() -> None:
    failure = refused(SHOP, "import antigravity\n")
    assert "Nothing similar" in failure.message
    assert failure.lines == ()


def test_an_empty_file_and_an_empty_text() -> None:
    assert "file is empty" in refused("", "x = 1\n").message
    assert "only empty lines" in refused("x\n", "\n\n").message


@pytest.mark.req("G013")
def test_every_place_is_told_with_what_is_around_it() -> None:
    raw = "def a():\n    log()\n\ndef b():\n    log()\n"
    failure = refused(raw, "    log()\n")
    assert failure.code == "ambiguous"
    assert failure.lines == (2, 5)
    assert "line 2, in `def a():` (line 1)" in failure.message
    assert "line 5, in `def b():` (line 4)" in failure.message
    assert "Include more of the lines" in failure.message


def test_an_elision_that_new_lacks_is_explained() -> None:
    failure = refused(SHOP, "class Shop:\n...\n        return value * 2\n", "class Shop:\n")
    assert '"..." in old' in failure.message


def test_an_anchor_that_is_not_there() -> None:
    failure = refused(SHOP, "", "        pass\n", anchors=("    def prices(self, item):",))
    assert "closest is line 2" in failure.message


def test_what_is_left_out_is_named() -> None:
    failure = refused(SHOP, SHOP, "class Shop:\n    # ... rest of the code\n")
    assert failure.code == "placeholder"
    assert "`# ... rest of the code`" in failure.message


def test_already_applied_says_where() -> None:
    failure = refused(SHOP, "        return value * 9\n", "        return value * 2\n")
    assert failure.code == "already_applied"
    assert "line 4" in failure.message
    assert failure.lines == (4,)


LONG = "".join(f"{'long ' * 200}{n}\n" for n in range(300))


@pytest.mark.parametrize(
    ("raw", "old"),
    [
        ("x" * 1_000_000, "y\n"),
        ("x y\n" * 100_000, "x y\n"),
        (LONG, LONG.replace("\n", "q\n")),
    ],
)
def test_messages_are_bounded(raw: str, old: str) -> None:
    failure = refused(raw, old)
    assert len(failure.message) < 8_000
    assert len(failure.lines) <= 40
