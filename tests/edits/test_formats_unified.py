"""Unified diffs, as git, diff(1), Mercurial, Subversion and models write them."""

from __future__ import annotations

import pytest

from magy_server.edits.formats import parse
from magy_server.edits.model import FileEdit, Hunk

from .reading import hunks, one, refused

HEAD = "--- a/a.py\n+++ b/a.py\n"


def test_a_diff_of_git() -> None:
    text = (
        "diff --git a/a.py b/a.py\nindex 0123456..89abcde 100644\n" + HEAD
        + "@@ -3,3 +3,4 @@ def greet():\n one\n-two\n+TWO\n+more\n three\n"
        "diff --git a/b.py b/b.py\nindex 0123456..89abcde 100644\n--- a/b.py\n+++ b/b.py\n"
        "@@ -1 +1 @@\n-x\n+y\n"
    )  # fmt: skip
    first, second = parse("unified", text)
    assert first == FileEdit("a.py", hunks=(
        Hunk("one\ntwo\nthree\n", "one\nTWO\nmore\nthree\n", lines=True, line=3, source=5),
    ))  # fmt: skip
    assert second.path == "b.py" and second.hunks[0].line == 1


def test_a_number_is_a_hint_and_a_heading_is_not_needed_beside_it() -> None:
    (hunk,) = one("unified", HEAD + "@@ -90,9 +90,2 @@ def greet():\n a\n-b\n+c\n").hunks
    assert (hunk.old, hunk.new, hunk.line, hunk.anchors) == ("a\nb\n", "a\nc\n", 90, ())


@pytest.mark.parametrize(
    ("section", "line", "anchors"),
    [
        ("@@", None, ()),
        ("@@ @@", None, ()),
        ("@@ ... @@", None, ()),
        ("@@ -,+ @@", None, ()),
        ("@@ def greet():", None, ("def greet():",)),
        ("@@ def greet(): @@", None, ("def greet():",)),
        ("@@ ... @@ def greet():", None, ("... @@ def greet():",)),
        ("@@ -12 @@", 12, ()),
        ("@@ -12,5 @@ def greet():", 12, ()),
        ("@@ -12,? +12,? @@", 12, ()),
        ("@@-12,5 +12,6@@", 12, ()),
        ("@@ -99999999999 +1 @@", None, ("-99999999999 +1",)),
    ],
)
def test_sections(section: str, line: int | None, anchors: tuple[str, ...]) -> None:
    (hunk,) = one("unified", f"{HEAD}{section}\n a\n-b\n+c\n").hunks
    assert (hunk.line, hunk.old) == (line, "a\nb\n")
    if section != "@@ ... @@ def greet():":
        assert hunk.anchors == anchors


def test_lines_that_look_like_the_names_of_the_next_file() -> None:
    text = HEAD + "@@ -1,3 +1,3 @@\n a\n--- x\n+++ y\n b\n@@ -9,2 +9,2 @@\n c\n--- z\n+++ w\n"
    assert hunks("unified", text) == [
        ("a.py", "a\n-- x\nb\n", "a\n++ y\nb\n"), ("a.py", "c\n-- z\n", "c\n++ w\n"),
    ]  # fmt: skip
    text = HEAD + "@@ -1,9 +1,9 @@\n a\n-b\n--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n-c\n+d\n"
    assert hunks("unified", text) == [("a.py", "a\nb\n", "a\n"), ("x.py", "c\n", "d\n")]


def test_a_diff_without_sections() -> None:
    text = "--- a.py\n+++ a.py\n-a\n+b\n--- b.py\n+++ b.py\n c\n-d\n"
    assert hunks("unified", text) == [("a.py", "a\n", "b\n"), ("b.py", "c\nd\n", "c\n")]


def test_empty_lines() -> None:
    """Context that lost its space, where it is followed by more or counted; else nothing."""
    text = HEAD + "@@ -1,3 +1,3 @@\n a\n\n-b\n+c\n"
    assert hunks("unified", text) == [("a.py", "a\n\nb\n", "a\n\nc\n")]
    assert hunks("unified", text + "\n\n") == [("a.py", "a\n\nb\n", "a\n\nc\n")]
    text = HEAD + "@@ -1,3 +1,3 @@\n a\n-b\n+c\n\n"
    assert hunks("unified", text) == [("a.py", "a\nb\n\n", "a\nc\n\n")]
    assert hunks("unified", HEAD + "@@ @@\n-b\n+c\n\n") == [("a.py", "b\n", "c\n")]


def test_context_that_lost_its_space() -> None:
    text = HEAD + "@@ -1,3 +1,3 @@\ndef greet():\n-b\n+c\n d\n"
    assert hunks("unified", text) == [("a.py", "def greet():\nb\nd\n", "def greet():\nc\nd\n")]


def test_no_newline_at_the_end() -> None:
    note = "\\ No newline at end of file\n"
    text = f"{HEAD}@@ -1,2 +1,2 @@\n a\n-b\n{note}+c\n"
    assert hunks("unified", text) == [("a.py", "a\nb", "a\nc\n")]
    text = f"{HEAD}@@ -1,2 +1,2 @@\n-a\n+c\n b\n{note}"
    assert hunks("unified", text) == [("a.py", "a\nb", "c\nb")]
    assert "last one of its file" in refused("unified", f"{HEAD}@@ @@\n-a\n{note}-b\n")


def test_created_deleted_renamed() -> None:
    assert one("unified", "--- /dev/null\n+++ b/x.py\n@@ -0,0 +1,2 @@\n+a\n+b\n") == FileEdit(
        "x.py", "create", content="a\nb\n")  # fmt: skip
    assert one("unified", "diff --git a/x b/x\nnew file mode 100644\nindex 000..e69\n") == FileEdit(
        "x", "create")  # fmt: skip
    gone = one("unified", "--- a/x.py\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-a\n-b\n")
    assert (gone.path, gone.op, gone.hunks[0].old) == ("x.py", "delete", "a\nb\n")
    assert one("unified", "diff --git a/x b/x\ndeleted file mode 100644\n") == FileEdit(
        "x", "delete"
    )
    moved = "diff --git a/x y b/y z\nsimilarity index 100%\nrename from x y\nrename to y z\n"
    assert one("unified", moved) == FileEdit("x y", to="y z")
    both = one("unified", moved + "--- a/x y\n+++ b/y z\n@@ -1 +1 @@\n-a\n+b\n")
    assert (both.path, both.to, both.hunks[0].new) == ("x y", "y z", "b\n")


def test_modes_are_not_edited() -> None:
    modes = "diff --git a/x b/x\nold mode 100644\nnew mode 100755\n"
    assert "only its mode" in refused("unified", modes)
    assert hunks("unified", modes + "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n") == [
        ("x", "a\n", "b\n")]  # fmt: skip


@pytest.mark.parametrize(
    ("left", "right", "path"),
    [
        ("a/x.py", "b/x.py", "x.py"),
        ("x.py", "x.py", "x.py"),
        ("b/x.py", "b/x.py", "b/x.py"),
        ("i/x.py", "w/x.py", "x.py"),
        ("x.py", "b/x.py", "x.py"),
        ("a/x.py", "x.py", "x.py"),
        ("x.py.orig", "x.py", "x.py"),
        ("before/src/x.py", "after/src/x.py", "src/x.py"),
        ("a/x.py\t2024-01-02 03:04:05.000 +0000", "b/x.py\t2024-01-02", "x.py"),
        ("x.py  2024-01-02 03:04:05", "x.py  2024-01-02 03:04:06", "x.py"),
        ("x.py\t(revision 12)", "x.py\t(working copy)", "x.py"),
        ('"a/\\303\\251 \\"q\\".py"', '"b/\\303\\251 \\"q\\".py"', 'é "q".py'),
        ("a/with space.py", "b/with space.py", "with space.py"),
    ],
)
def test_names(left: str, right: str, path: str) -> None:
    assert one("unified", f"--- {left}\n+++ {right}\n@@ -1 +1 @@\n-a\n+b\n").path == path


def test_prose_fences_and_other_programs_around_it() -> None:
    text = (
        "From 0123 Mon Sep 17\nSubject: [PATCH]\n---\n a.py | 2 +-\n\nIndex: a.py\n" + "=" * 67
        + f"\n{HEAD}@@ -1 +1 @@\n-a\n+b\n-- \n2.43.0\n\nNow the other:\n\n```diff\n"
        "--- b.py\n+++ b.py\n@@ ... @@\n-c\n+d\n```\nThat is all - really.\n"
        "```diff\n@@ ... @@\n-e\n+f\n```\n"
    )  # fmt: skip
    assert hunks("unified", text) == [
        ("a.py", "a\n", "b\n"), ("b.py", "c\n", "d\n"), ("b.py", "e\n", "f\n"),
    ]  # fmt: skip


def test_a_file_that_the_tool_names() -> None:
    assert hunks("unified", "@@ -1 +1 @@\n-a\n+b\n", "x.py") == [("x.py", "a\n", "b\n")]
    assert "no file is named" in refused("unified", "@@ -1 +1 @@\n-a\n+b\n")


def test_insertions() -> None:
    """Only exact numbers say where a line without context goes."""
    assert one("unified", HEAD + "@@ -5,0 +6 @@\n+a\n").hunks[0].line == 6
    assert one("unified", HEAD + "@@ -0,0 +1,2 @@\n+a\n+b\n").hunks[0].line == 1
    assert one("unified", HEAD + "@@ -5,3 +5,4 @@\n+a\n").hunks[0].line is None
    assert one("unified", HEAD + "@@ -5,0 +6,7 @@\n+a\n").hunks[0].line is None


def test_two_files_of_diff() -> None:
    """diff(1) writes times; whose edit it is may be known already."""
    head = "--- n\t2026-11-21 15:00:00.1 +0000\n+++ n2\t2026-11-21 15:00:01.2 +0000\n"
    (edit,) = parse("unified", head + "@@ -1 +1 @@\n-a\n+b\n@@ -9 +9 @@\n-c\n+d\n")
    assert (edit.path, edit.other, edit.to, len(edit.hunks)) == ("n", "n2", None, 2)
    (edit,) = parse("unified", "--- n\n+++ n2\n@@ -1 +1 @@\n-a\n+b\n", "n.txt")
    assert (edit.path, edit.other) == ("n.txt", "")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "there is no diff"),
        ("Hello!\n", "there is no diff"),
        (HEAD, "changes nothing"),
        (HEAD + "@@ -1 +1 @@\n", "the hunk is empty"),
        ("diff --git a/x b/x\n", "changes nothing"),
        ("--- /dev/null\n+++ /dev/null\n@@ -1 +1 @@\n+a\n", "both names are /dev/null"),
        ("--- /dev/null\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n", "says that the file is new"),
        ("--- a/x\n+++ /dev/null\n@@ -1 +1 @@\n-a\n+b\n", "says that the file is deleted"),
        ("--- a/x.py\n+++ b/y.py\n@@ -1 +1 @@\n-a\n+b\n", "are two files"),
        ("@@@ -1 -1 +1 @@@\n  a\n", "combined diff"),
        ("diff --git a/x b/x\nGIT binary patch\n", "does not edit binary files"),
        ("Binary files a/x and b/x differ\n", "does not edit binary files"),
        ("diff --git a/x b/y\ncopy from x\ncopy to y\n", "an edit cannot copy a file"),
    ],
)
def test_what_is_refused(text: str, said: str) -> None:
    assert said in refused("unified", text)
