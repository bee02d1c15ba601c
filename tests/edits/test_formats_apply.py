"""The difference of two texts, written out in a format, read and applied, gives the second text."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from magy_server.edits.formats import detect, parse
from magy_server.edits.rebasing.diff import apply
from magy_server.edits.resolve import resolve
from magy_server.edits.text import plain

from .samples import CHANGED, pairs
from .writing import edit_of, write


@pytest.mark.parametrize("format", CHANGED)
@given(pairs(), st.sampled_from(["\n", "\r\n", "\r"]), st.sampled_from(["\n", "\r\n"]))
@example(("00\n\n\na\n", "00\n\n\na\n00\na\n"), "\n", "\n")
@example(("a0\n\n\n\n\nb\n", "a0\n\n\n\n\na0\nb\n"), "\n", "\n")
@example(("```\n```\n```", "```\n```\n```more\n"), "\n", "\n")
def test_the_difference_applies(format: str, pair: tuple[str, str], end: str, ours: str) -> None:
    before, after = pair
    edit = edit_of(before, after, "a.py")
    try:
        text = write(format, [edit])
    except ValueError:  # blocks have to search for something
        assert format in ("aider", "roo") and not all(hunk.old.strip() for hunk in edit.hunks)
        return
    (read,) = parse(format, text.replace("\n", ours))
    raw = before.replace("\n", end)
    resolved = resolve(raw, read.hunks)
    assert not resolved.failures
    assert plain(apply(raw, resolved.changes)) == after


@pytest.mark.parametrize("format", ["aider", "cline", "roo", "unified", "v4a", "str_replace"])
@given(pairs())
def test_the_format_is_found_out(format: str, pair: tuple[str, str]) -> None:
    edit = edit_of(*pair, "a.py")
    try:
        text = write(format, [edit])
    except ValueError:
        return
    (first, *_) = edit.hunks
    if format == "aider" and first.old.startswith((":start_line:", ":end_line:")):
        return  # this reads as a block of Roo's
    wanted = "aider" if format == "roo" and first.line is None else format
    assert detect(text) == wanted
