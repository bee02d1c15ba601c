"""Hunks of context only, which say where the next one is, and what is left of an end line."""

from __future__ import annotations

import pytest

from magy_server.edits.formats import parse
from magy_server.edits.plan import plan
from magy_server.edits.rebasing.diff import apply
from tests.edits.reading import hunks, refused

RAW = "def one():\n    go(1)\n    return 1\n\n\ndef two():\n    go(1)\n    return 1\n"
WANTED = RAW[:30] + RAW[30:].replace("    go(1)", "    go(2)")
HEADS = {
    "v4a": "*** Begin Patch\n*** Update File: a.py\n",
    "unified": "--- a/a.py\n+++ b/a.py\n",
}
CHANGE = "@@\n-    go(1)\n+    go(2)\n     return 1\n"
ENDS = {"v4a": "*** End Patch\n", "unified": ""}


def made(format: str, text: str) -> str:
    (edit,) = parse(format, text)
    resolved = plan(RAW, edit.hunks)
    assert not resolved.failures, resolved.failures[0].message
    return apply(RAW, resolved.changes)


@pytest.mark.parametrize("format", HEADS)
def test_context_alone_says_where_the_next_hunk_is(format: str) -> None:
    context = "@@\n def two():\n"
    assert made(format, HEADS[format] + context + CHANGE + ENDS[format]) == WANTED


@pytest.mark.parametrize("format", HEADS)
def test_context_alone_behind_the_last_hunk_says_nothing(format: str) -> None:
    change = "@@\n def two():\n" + CHANGE[3:]
    assert made(format, HEADS[format] + change + "@@\n     return 1\n" + ENDS[format]) == WANTED


def test_new_lines_below_context_of_its_own() -> None:
    text = HEADS["v4a"] + "@@\n def two():\n@@\n+    first()\n" + ENDS["v4a"]
    assert made("v4a", text) == RAW.replace("two():\n", "two():\n    first()\n")


@pytest.mark.parametrize("format", HEADS)
def test_nothing_but_context_changes_nothing(format: str) -> None:
    (edit,) = parse(format, HEADS[format] + "@@\n def two():\n" + ENDS[format])
    assert [failure.code for failure in plan(RAW, edit.hunks).failures] == ["no_change"]


@pytest.mark.parametrize("end", ["***\n", "*** End\n", "***\n\n", "*** End Patch ***\n", "****"])
def test_what_is_left_of_an_end_line(end: str) -> None:
    text = HEADS["v4a"] + "@@\n-a\n+b\n"
    assert hunks("v4a", text + end) == [("a.py", "a\n", "b\n")]
    assert "not a header of a patch" in refused("v4a", text + end + "\n c\n")


def test_the_end_line_of_a_patch_behind_a_diff() -> None:
    text = HEADS["unified"] + "@@\n-a\n+b\n*** End Patch\n"
    assert hunks("unified", text) == [("a.py", "a\n", "b\n")]
