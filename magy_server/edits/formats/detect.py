"""This module tells the format of an edit by the first line that gives it away."""

from __future__ import annotations

import re

from magy_server.edits.formats.heading_names import path_before
from magy_server.edits.formats.stream import BOM, Fence, refusal
from magy_server.edits.text import plain
from magy_server.regex import regex

_JSON = regex(r"\s*(?:(?:`{3,}|~{3,})[^`\n]*\n\s*)?[\[{]\s*[\"{}\[\]]")
_V4A = re.compile(
    r"\s*\*\*\*\s*(?:Begin Patch\s*\Z|(?:Add|Update|Delete) File:\s*\S)", re.IGNORECASE
)
_SEARCH = regex(r"(<{3,}|-{3,}) SEARCH>?\s*\Z")
_ROO = regex(r":(?:start|end)_line:\s*\d")
_GIT = regex(r"diff --git \S")
_HUNK = regex(r"@@(?: -\d|\s|\Z)")


def detect(text: str) -> str:
    """The name of the format. Raises EditError when it looks like none."""
    text = plain(text.removeprefix(BOM))
    if _JSON.match(text):
        return "str_replace"
    lines = text.split("\n")
    whole = False
    for at, line in enumerate(lines):
        following = lines[at + 1] if at + 1 < len(lines) else ""
        if _V4A.match(line):
            return "v4a"
        if head := _SEARCH.match(line):
            if head[1][0] == "-":
                return "cline"
            return "roo" if _ROO.match(following) else "aider"
        named = line.startswith("--- ") and following.startswith("+++ ")
        if named or _GIT.match(line) or _HUNK.match(line):
            return "unified"
        if Fence.of(line) and path_before(lines[max(0, at - 2) : at + 1]):
            whole = True
    if whole:
        return "whole"
    raise refusal(
        1, lines[0],
        "this is not an edit in a known format: JSON with old_text and new_text; `<<<<<<< SEARCH` "
        "blocks; a unified diff (`--- `, `+++ `, `@@`); `*** Begin Patch`; or a file's name with "
        "its content in a fence.",
    )  # fmt: skip
