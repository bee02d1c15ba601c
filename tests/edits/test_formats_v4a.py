"""V4A patches, also those that keep the grammar loosely."""

from __future__ import annotations

import pytest

from magy_server.edits.formats import parse
from magy_server.edits.model import FileEdit, Hunk

from .reading import hunks, one, refused

UPDATE = "*** Begin Patch\n*** Update File: a.py\n"
END = "*** End Patch\n"


def test_every_operation() -> None:
    text = (
        "*** Begin Patch\n*** Add File: new.py\n+a\n+\n+b\n*** Delete File: gone.py\n"
        "*** Update File: a.py\n*** Move to: b.py\n@@ class A:\n@@     def f(self):\n"
        " one\n-two\n+TWO\n@@\n-three\n*** End of File\n*** End Patch\n"
    )
    assert parse("v4a", text) == [
        FileEdit("new.py", "create", content="a\n\nb\n"),
        FileEdit("gone.py", "delete"),
        FileEdit("a.py", to="b.py", hunks=(
            Hunk("one\ntwo\n", "one\nTWO\n", lines=True, anchors=("class A:", "    def f(self):"),
                 source=9),
            Hunk("three\n", "", lines=True, at_end=True, source=14),
        )),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        "<<'EOF'\n{}EOF\n",
        "apply_patch <<EOF\n{}EOF\n",
        "```\n{}```\n",
        "```diff\n{}```\nThat is all.\n",
        "Here it is:\n\n{}\nThat is all.\n",
        "\n\n{}\n\n",
        "  *** Begin Patch  \n{}",
    ],
)
def test_what_is_around_it(text: str) -> None:
    body = UPDATE + "@@\n-a\n+b\n" + END
    assert hunks("v4a", text.format(body)) == [("a.py", "a\n", "b\n")]


@pytest.mark.parametrize(
    "text",
    [
        "*** Update File: a.py\n@@\n-a\n+b\n",
        UPDATE + "-a\n+b\n",
        UPDATE + "@@\n-a\n+b\n *** End Patch\n",
        UPDATE + "@@\n-a\n+b\n\n\n *** End Patch\n\n",
        "***Begin Patch\n***Update File: a.py\n@@\n-a\n+b\n",
        "*** begin patch\n*** update file: a.py\n@@\n-a\n+b\n*** end patch\n",
        "```\n" + UPDATE + "@@\n-a\n+b\n```\n",
        "```\n" + UPDATE + "@@\n-a\n+b\n *** End Patch\n```\n",
        "<<EOF\n" + UPDATE + "@@\n-a\n+b\nEOF\n",
        UPDATE + "@@ ... @@\n-a\n+b\n" + END,
        UPDATE + "@@\n\n@@\n-a\n+b\n\n" + END,
    ],
)
def test_what_may_be_missing(text: str) -> None:
    assert hunks("v4a", text) == [("a.py", "a\n", "b\n")]


def test_an_end_line_with_a_space_is_content_when_more_follows() -> None:
    text = UPDATE + "@@\n-a\n+b\n *** End Patch\n\n c\n" + END
    assert hunks("v4a", text) == [
        ("a.py", "a\n*** End Patch\n\nc\n", "b\n*** End Patch\n\nc\n")
    ]  # fmt: skip


def test_context_without_its_space() -> None:
    text = UPDATE + "@@\ndef f():\n\n-    a\n+    b\n" + END
    assert hunks("v4a", text) == [("a.py", "def f():\n\n    a\n", "def f():\n\n    b\n")]


def test_only_additions() -> None:
    """Without an anchor they are for the end of the file."""
    (hunk,) = one("v4a", UPDATE + "@@\n+a\n" + END).hunks
    assert (hunk.old, hunk.new, hunk.at_end) == ("", "a\n", True)
    (hunk,) = one("v4a", UPDATE + "@@ def f():\n+a\n" + END).hunks
    assert (hunk.old, hunk.anchors, hunk.at_end) == ("", ("def f():",), False)


def test_numbers_are_a_hint() -> None:
    (hunk,) = one("v4a", UPDATE + "@@ -7,2 +7,2 @@\n-a\n+b\n" + END).hunks
    assert (hunk.line, hunk.anchors) == (7, ())


def test_added_files() -> None:
    add = "*** Begin Patch\n*** Add File: a.py\n"
    assert one("v4a", add + END) == FileEdit("a.py", "create")
    assert one("v4a", add + "+a\n\n+b\n\n" + END).content == "a\n\nb\n"
    assert one("v4a", add + "a = 1\n\nb = 2\n" + END).content == "a = 1\n\nb = 2\n"
    note = "\\ No newline at end of file\n"
    assert one("v4a", add + "+a\n+b\n" + note + END).content == "a\nb"
    assert "not clear whether" in refused("v4a", add + "+a\nb\n" + END)
    assert "not clear whether" in refused("v4a", add + "a\n+b\n" + END)


def test_a_last_line_without_an_end() -> None:
    note = "\\ No newline at end of file\n"
    assert hunks("v4a", UPDATE + f"@@\n-a\n{note}+b\n" + END) == [("a.py", "a", "b\n")]
    assert "last one of its file" in refused("v4a", UPDATE + f"@@\n-a\n{note}-b\n" + END)


def test_a_name_that_the_tool_knows() -> None:
    assert hunks("v4a", "@@\n-a\n+b\n", "x.py") == [("x.py", "a\n", "b\n")]


def test_more_than_one_patch() -> None:
    text = UPDATE + "@@\n-a\n+b\n" + END + "*** Delete File: not.py\n" + (
        "*** Begin Patch\n*** Delete File: b.py\n" + END)  # fmt: skip
    assert [(edit.op, edit.path) for edit in parse("v4a", text)] == [
        ("update", "a.py"), ("delete", "b.py")]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "changes nothing"),
        ("*** Begin Patch\n*** End Patch\n", "changes nothing"),
        (UPDATE + END, "no change of a.py follows"),
        (UPDATE + "@@\n" + END, "no lines after it"),
        (UPDATE + "@@\n-a\n*** Frobnicate File: x\n", "not a header of a patch"),
        ("*** Begin Patch\n*** Update File:\n", "name of the file is missing"),
        ("*** Begin Patch\n*** Delete File: a\n-a\n", "nothing can follow"),
        ("*** Begin Patch\n*** Delete File: a\n*** Move to: b\n", "stands right after"),
        (UPDATE + "@@\n-a\n*** Move to: b\n", "stands right after"),
    ],
)
def test_what_is_refused(text: str, said: str) -> None:
    assert said in refused("v4a", text)
