"""Whole files in fences, and what tells one format from another."""

from __future__ import annotations

import pytest

from magy_server.edits.formats import detect, parse
from magy_server.edits.model import EditError, FileEdit

from .reading import one, refused


def wrote(path: str, content: str) -> FileEdit:
    return FileEdit(path, "write", content=content)


def test_files_in_fences() -> None:
    text = (
        "Sure!\n\na.py\n```python\nx = 1\n\n```\n\n"
        "**b/c.md**:\n````markdown\n```sh\nls\n```\n````\n"
        "Then run:\n\n```bash\nls\n```\n"
    )
    assert parse("whole", text) == [wrote("a.py", "x = 1\n\n"), wrote("b/c.md", "```sh\nls\n```\n")]


@pytest.mark.parametrize(
    "opening",
    [
        "```python a.py",
        "```python:a.py",
        '```python title="a.py"',
        "```python {file=a.py}",
        "```a.py",
        "# a.py\n```",
        "a.py\n<code>\n```",
    ],
)
def test_where_the_name_may_be(opening: str) -> None:
    assert parse("whole", f"{opening}\nx\n```\n") == [wrote("a.py", "x\n")]


def test_fences_inside_a_fence() -> None:
    text = "a.md\n```markdown\nRun:\n```sh\nls\n```\nDone.\n```\n"
    assert one("whole", text) == wrote("a.md", "Run:\n```sh\nls\n```\nDone.\n")


@pytest.mark.parametrize(
    ("text", "content"),
    [
        ("x = 1", "x = 1"),
        ("x = 1\r\n\r\n", "x = 1\n\n"),
        ("", ""),
        ("```python\nx = 1\n```\n", "x = 1\n"),
        ("\n```\nx = 1\n```", "x = 1\n"),
        ("a.py\n```\nx = 1\n```\n", "x = 1\n"),
        ("dir/a.py:\n\n```\nx = 1\n```\n", "x = 1\n"),
        ("b.py\n```\nx = 1\n```\n", "b.py\n```\nx = 1\n```\n"),
        ("```\nx\n```\nand\n```\ny\n```\n", "```\nx\n```\nand\n```\ny\n```\n"),
        ("```\nx = 1\n", "```\nx = 1\n"),
    ],
)
def test_the_content_of_a_file_that_is_known(text: str, content: str) -> None:
    assert one("whole", text, "a.py") == wrote("a.py", content)


def test_a_page_may_be_one_block_of_code() -> None:
    text = "```sh\nls\n```\n"
    assert one("whole", text, "a.md") == wrote("a.md", text)
    assert one("whole", text.replace("sh", "markdown"), "a.md") == wrote("a.md", "ls\n")
    assert one("whole", "a.md\n" + text, "a.md") == wrote("a.md", "ls\n")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "there is no file in it"),
        ("```bash\nls\n```\n", "there is no file in it"),
        ("a.py\n```\nx\n", "does not end"),
        ("```python\nx\n```\n", "no file is named before this block"),
        ("Like this:\n\n```\nx\n```\n", "no file is named before this block"),
    ],
)
def test_what_is_refused(text: str, said: str) -> None:
    assert said in refused("whole", text)


@pytest.mark.parametrize(
    ("text", "format"),
    [
        ('{"old_text": "a", "new_text": "b"}', "str_replace"),
        ('\ufeff\n```json\n[\n {"old_text": "*** Begin Patch"}]\n```', "str_replace"),
        ("Here:\n\n*** Begin Patch\n*** Update File: a\n", "v4a"),
        ("*** Add File: a\n+--- a\n", "v4a"),
        ("a.py\n```\n<<<<<<< SEARCH\n--- a/x\n+++ b/x\n", "aider"),
        ("a.py\n```\n<<<<<<< SEARCH\n:start_line:3\n", "roo"),
        ("------- SEARCH\na\n", "cline"),
        ("--- a/x\n+++ b/x\n@@ @@\n", "unified"),
        ("diff --git a/x b/x\nrename from x\n", "unified"),
        ("```diff\r\n@@ ... @@\r\n-a\r\n", "unified"),
        ("a.py\n```python\nx = 1\n```\n", "whole"),
    ],
)
def test_the_format_is_found_out(text: str, format: str) -> None:
    assert detect(text) == format


@pytest.mark.parametrize("text", ["", "Hello.", "[a link](x.md)\n", "{braces}", "x = 1\n"])
def test_no_format(text: str) -> None:
    with pytest.raises(EditError, match="not an edit in a known format") as caught:
        detect(text)
    assert caught.value.failures[0].code == "parse"
