"""Short ways to say what an edit should be read as."""

from __future__ import annotations

import re

import pytest

from magy_server.edits.formats import parse
from magy_server.edits.model import EditError, FileEdit

Read = tuple[str, str, str]
"""(path, old, new) of a hunk."""


def hunks(format: str, text: str, path: str = "") -> list[Read]:
    return [
        (edit.path, hunk.old, hunk.new) for edit in parse(format, text, path) for hunk in edit.hunks
    ]


def one(format: str, text: str, path: str = "") -> FileEdit:
    (edit,) = parse(format, text, path)
    return edit


def refused(format: str, text: str, path: str = "") -> str:
    """The message."""
    with pytest.raises(EditError) as caught:
        parse(format, text, path)
    (failure,) = caught.value.failures
    at = re.match(r"Line (\d+) of the edit", failure.message)
    assert failure.code == "parse" and at and failure.lines == (int(at[1]),)
    return failure.message
