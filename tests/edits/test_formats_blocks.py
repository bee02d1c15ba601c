"""Search/replace blocks of Aider, Cline and Roo Code."""

from __future__ import annotations

import pytest

from magy_server.edits.formats import parse

from .reading import hunks, one, refused

BLOCK = "<<<<<<< SEARCH\na\n=======\nb\n>>>>>>> REPLACE\n"


@pytest.mark.parametrize(
    "before",
    [
        "x/y.py\n",
        "x/y.py\n```python\n",
        "```python\nx/y.py\n",
        "````\nx/y.py\n",
        "```python\nx/y.py\n```\n```python\n",
        "`x/y.py`\n",
        "**x/y.py**:\n",
        "### x/y.py\n```\n",
        "# `x/y.py`\n",
        "File: x/y.py\n",
        "In the file `x/y.py`:\n",
        "```x/y.py\n",
        "<source>\nx/y.py\n",
        "x/y.py:\n<code>\n",
        "Some words.\n\nx/y.py\n",
        "\ufeffx/y.py\n",
    ],
)
def test_where_the_name_is(before: str) -> None:
    assert hunks("aider", before + BLOCK) == [("x/y.py", "a\n", "b\n")]


@pytest.mark.parametrize("name", ["Makefile", "LICENSE", ".gitignore", "a b.py", "C:\\x\\y.py"])
def test_other_names(name: str) -> None:
    assert one("aider", f"{name}\n{BLOCK}").path == name


def test_a_name_counts_for_the_blocks_after_it() -> None:
    text = f"x.py\n{BLOCK}\n...\n\n{BLOCK}Now, the next change:\n{BLOCK}\ny.py\n{BLOCK}"
    assert [path for path, *_ in hunks("aider", text)] == ["x.py", "x.py", "x.py", "y.py"]
    assert [edit.path for edit in parse("aider", text)] == ["x.py", "y.py"]


def test_a_file_that_the_tool_names() -> None:
    assert one("aider", BLOCK, "x.py").path == "x.py"
    assert one("aider", f"As you wish:\n{BLOCK}", "x.py").path == "x.py"
    assert one("aider", f"y.py\n{BLOCK}", "x.py").path == "y.py"
    for format in ("cline", "roo"):
        assert one(format, f"y.py\n{BLOCK}", "x.py").path == "x.py"
        assert one(format, f"y.py\n{BLOCK}").path == "y.py"


@pytest.mark.parametrize(
    ("head", "divider", "tail"),
    [
        ("<<<<<<< SEARCH", "=======", ">>>>>>> REPLACE"),
        ("<<< SEARCH", "===", ">>> REPLACE"),
        ("<<<<<<<<< SEARCH", "=========", ">>>>>>>>> REPLACE"),
        ("<<<<<<< SEARCH>", "=======", ">>>>>>> REPLACE>"),
        ("------- SEARCH", "=======", "+++++++ REPLACE"),
        ("----- SEARCH", "========", "+++++++ REPLACE"),
        ("----------- SEARCH>", "==========", "+++++++++ REPLACE>"),
        ("------- SEARCH", "=======", ">>>>>>> REPLACE"),
    ],
)
def test_markers(head: str, divider: str, tail: str) -> None:
    for format in ("aider", "cline", "roo"):
        text = f"{head}\na\n{divider}\nb\n{tail}\n"
        assert hunks(format, text, "x.py") == [("x.py", "a\n", "b\n")]
    for format in ("aider", "roo"):
        text = f"{head} \r\na\r\n{divider}  \r\nb\r\n{tail} "
        assert hunks(format, text, "x.py") == [("x.py", "a\n", "b\n")]


def test_a_divider_in_the_content() -> None:
    """The one as long as the first marker is meant; two of those are unclear."""
    head, tail = "<<<<<<< SEARCH\n", ">>>>>>> REPLACE\n"
    text = f"{head}Title\n=====\n=======\nOther\n=====\n{tail}"
    assert hunks("aider", text, "x") == [("x", "Title\n=====\n", "Other\n=====\n")]
    text = f"{head}Heading\n=======\n=======\nOther\n=====\n{tail}"
    assert "(lines 3, 4, 6 of the edit)" in refused("aider", text, "x")
    text = f"{head}Heading\n\\=======\n=======\nOther\n\\=======\n{tail}"
    assert hunks("aider", text, "x") == [("x", "Heading\n=======\n", "Other\n=======\n")]
    text = f"<<<<<<<< SEARCH\nHeading\n=======\n========\nOther\n=======\n{tail}"
    assert hunks("aider", text, "x") == [("x", "Heading\n=======\n", "Other\n=======\n")]


def test_escapes_of_roo() -> None:
    text = (
        "<<<<<<< SEARCH\n:start_line:7\n:end_line: 9\n-------\n\\<<<<<<< HEAD\na\n\\=======\n"
        "\\>>>>>>> main\n\\-------\n\\:start_line:3\n=======\n\\\\=======\n>>>>>>> REPLACE\n"
    )
    (hunk,) = one("roo", text, "x").hunks
    assert hunk.old == "<<<<<<< HEAD\na\n=======\n>>>>>>> main\n-------\n:start_line:3\n"
    assert (hunk.new, hunk.line) == ("\\=======\n", 7)
    assert one("aider", BLOCK.replace("a\n", "\\<<<<<<< HEAD\n"), "x").hunks[0].old == (
        "\\<<<<<<< HEAD\n")  # fmt: skip


def test_nothing_to_search_for() -> None:
    empty = "<<<<<<< SEARCH\n=======\nb\n>>>>>>> REPLACE\n"
    (hunk,) = one("aider", empty, "x").hunks
    assert (hunk.old, hunk.new, hunk.at_end) == ("", "b\n", True)
    (hunk,) = one("aider", empty.replace("=======", "\n\n======="), "x").hunks
    assert (hunk.old, hunk.at_end) == ("", True)
    (hunk,) = one("cline", empty, "x").hunks
    assert (hunk.old, hunk.at_end) == ("", False)
    assert "SEARCH part is empty" in refused("roo", empty, "x")


def test_the_last_block_of_cline_may_be_open() -> None:
    text = "------- SEARCH\na\n=======\nb\n"
    assert hunks("cline", text, "x") == [("x", "a\n", "b\n")]
    assert hunks("cline", text + "+++++++ REP", "x") == [("x", "a\n", "b\n")]
    assert "does not end" in refused("aider", text, "x")


def test_a_side_without_a_last_line_end() -> None:
    note = "\\ No newline at end of file\n"
    text = f"<<<<<<< SEARCH\na\n{note}=======\nb\n\\{note}>>>>>>> REPLACE\n"
    assert hunks("aider", text, "x") == [("x", "a", f"b\n{note}")]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "there is no block"),
        ("Just words.\n", "there is no block"),
        ("<<<<<<< SEARCH\na\n=======\nb\n", "`>>>>>>> REPLACE` is missing"),
        ("<<<<<<< SEARCH\na\n", "`=======` and `>>>>>>> REPLACE` is missing"),
        ("<<<<<<< SEARCH\na\n>>>>>>> REPLACE\n", "`=======` is missing"),
        ("a\n=======\nb\n>>>>>>> REPLACE\n", "misplaced or malformed"),
        ("<<-- SEARCH\na\n=======\nb\n>>>>>>> REPLACE\n", "misplaced or malformed"),
        ("<<<<<<<SEARCH\na\n=======\nb\n>>>>>>> REPLACE\n", "misplaced or malformed"),
        ("<<<<<<< search\na\n=======\nb\n>>>>>>> REPLACE\n", "misplaced or malformed"),
        ("  <<<<<<< SEARCH\n  a\n", "misplaced or malformed"),
        (f"<<<<<<< SEARCH\na\n=======\n{BLOCK}", "begins inside the one that begins at line 1"),
    ],
)
def test_what_is_refused(text: str, said: str) -> None:
    assert said in refused("aider", text, "x.py")


def test_a_block_without_a_name() -> None:
    assert "no file is named before this block" in refused("aider", f"Like this:\n\n{BLOCK}")
    assert "no file is named before this block" in refused("aider", f"```python\n{BLOCK}")


def test_the_divider_of_cline_is_exact() -> None:
    text = "------- SEARCH\na\n======= \nb\n+++++++ REPLACE\n"
    assert "`=======` is missing" in refused("cline", text, "x")
    assert "`=======` is missing" in refused(
        "cline", text.replace("======= ", "------- ====="), "x"
    )
