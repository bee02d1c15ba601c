"""However the stream of an edit is cut, the result is the same; and nothing given is taken back."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magy_server.edits.formats import FORMATS, Parser, parse
from magy_server.edits.model import EditError, FileEdit, Hunk

from .samples import written
from .writing import edit_of, write

Outcome = list[FileEdit] | tuple[object, ...]


def whole(format: str, text: str, path: str) -> Outcome:
    try:
        return parse(format, text, path)
    except EditError as error:
        return error.failures


def goes_on(before: Sequence[FileEdit], after: Sequence[FileEdit]) -> bool:
    """Whether `after` begins with `before`; only the last file may have got more hunks."""
    if not before:
        return True
    *firm, last = before
    if len(after) < len(before) or list(after[: len(firm)]) != firm:
        return False
    now = after[len(firm)]
    same = replace(now, hunks=()) == replace(last, hunks=())
    return same and now.hunks[: len(last.hunks)] == last.hunks


def streamed(format: str, chunks: Iterable[str], path: str) -> Outcome:
    parser, known = Parser(format, path), list[FileEdit]()
    for chunk in chunks:
        now = parser.feed(chunk)
        assert goes_on(known, now)
        known = now
    try:
        now = parser.finish()
    except EditError as error:
        assert error.failures[0].code == "parse" and all(
            failure.lines for failure in error.failures
        )
        return error.failures
    assert goes_on(known, now)
    return now


def cut(text: str, places: Sequence[int]) -> list[str]:
    at = [0, *sorted(place % (len(text) + 1) for place in places), len(text)]
    return [text[start:end] for start, end in pairwise(at)]


@given(written(), st.lists(st.integers(0), max_size=8), st.sampled_from(["", "a.py"]))
def test_any_cut_gives_the_same(made: tuple[str, str], places: list[int], path: str) -> None:
    format, text = made
    expected = whole(format, text, path)
    assert streamed(format, cut(text, places), path) == expected
    assert streamed(format, text, path) == expected


@given(st.text(max_size=200), st.sampled_from(FORMATS), st.sampled_from(["", "a.py"]))
def test_any_text_is_read_or_refused(text: str, format: str, path: str) -> None:
    assert streamed(format, text, path) == whole(format, text, path)


STREAMS = {
    "str_replace": (
        '{"path": "a.py", "edits": [{"old_text": "a", "new_text": "b"}, '
        '{"old_text": "c", "new_text": "d"}'
    ),
    "aider": (
        "a.py\n<<<<<<< SEARCH\na\n=======\nb\n>>>>>>> REPLACE\n"
        "<<<<<<< SEARCH\nc\n=======\nd\n>>>>>>> REPLACE\n"
    ),
    "unified": "--- a.py\n+++ a.py\n@@ -1 +1 @@\n-a\n+b\n@@ -9 +9 @@\n-c\n+d\n@@ -20 +20 @@\n",
    "v4a": "*** Begin Patch\n*** Update File: a.py\n@@\n-a\n+b\n@@\n-c\n+d\n@@\n",
}


@pytest.mark.parametrize("format", STREAMS)
def test_hunks_are_given_as_soon_as_they_are_whole(format: str) -> None:
    parser, seen = Parser(format), []
    for char in STREAMS[format]:
        known = parser.feed(char)
        seen.append([hunk.new.strip() for edit in known for hunk in edit.hunks])
    steps = [step for n, step in enumerate(seen) if n == 0 or seen[n - 1] != step]
    assert steps == [[], ["b"], ["b", "d"]]


def test_edits_wait_for_the_name_of_their_file() -> None:
    parser = Parser("str_replace", "default.py")
    one = json.dumps({"old_text": "a", "new_text": "b"})
    assert parser.feed(f'{{"edits": [{one}, {one}], ') == []
    assert [edit.path for edit in parser.feed('"path": "late.py"')] == ["late.py"]
    assert len(parser.feed("}")[0].hunks) == 2
    assert [edit.path for edit in parser.finish()] == ["late.py"]


def test_an_edit_that_names_its_file_does_not_wait() -> None:
    one = json.dumps({"path": "own.py", "old_text": "a", "new_text": "b"})
    assert Parser("str_replace").feed(f'{{"edits": [{one}')[0].path == "own.py"


def test_nothing_can_follow_the_end() -> None:
    parser = Parser("v4a")
    with pytest.raises(EditError):
        parser.finish()
    with pytest.raises(EditError):
        parser.finish()
    with pytest.raises(ValueError, match="finished"):
        parser.feed("*** Begin Patch\n")


def test_a_format_that_does_not_exist() -> None:
    with pytest.raises(ValueError, match="there is no format 'ed'; known are str_replace, aider"):
        Parser("ed")


def test_what_was_whole_before_a_fault_stays_known() -> None:
    text = "*** Begin Patch\n*** Delete File: a.py\n*** Update File: b.py\n*** Nonsense\n"
    parser = Parser("v4a")
    known = parser.feed(text)
    assert known == [FileEdit("a.py", "delete")]
    assert parser.feed("*** Delete File: c.py\n") == known
    with pytest.raises(EditError, match=r"^Line 4 of the edit, `\*\*\* Nonsense`: "):
        parser.finish()


@pytest.mark.parametrize("format", ["str_replace", "aider", "cline", "roo", "unified", "v4a"])
def test_many_hunks_in_small_chunks(format: str) -> None:
    hunks = tuple(Hunk(f"old {n}\n", f"new {n}\n", lines=True, line=n) for n in range(1, 2000))
    text = write(format, [FileEdit("a.py", hunks=hunks)])
    (edit,) = streamed(format, [text[at : at + 20] for at in range(0, len(text), 20)], "")
    assert isinstance(edit, FileEdit)
    assert [(h.old, h.new) for h in edit.hunks] == [(h.old, h.new) for h in hunks]


def test_a_long_line_in_small_chunks() -> None:
    line = "x" * 300_000
    edit = edit_of("a\n", line + "\n", "a.py")
    for format in ("str_replace", "aider", "unified", "v4a"):
        text = write(format, [edit])
        parser = Parser(format)
        for at in range(0, len(text), 20):
            parser.feed(text[at : at + 20])
        assert parser.finish()[0].hunks[0].new == line + "\n"
