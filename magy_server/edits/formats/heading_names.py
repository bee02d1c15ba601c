"""This module finds the file name on a line before code, which models decorate in many ways."""

from __future__ import annotations

import re
from collections.abc import Sequence

from magy_server.edits.formats.stream import Fence
from magy_server.regex import regex

_EXTENSION = regex(r"\.\w{1,12}\Z")
_WRAPPED = regex(r"(?:.*[\s:])?(`+|\*\*|__)([^`*]+)\1[\s:]*\Z")
_LABEL = regex(r"(?:file ?(?:name|path)?|path)\s*[:=]\s*", re.IGNORECASE)
_BARE = regex(r"[A-Z][\w-]*\Z")
_SCHEME = regex(r"[a-z]+://")
MARKUP = regex(r"</?(?:source|code|pre|codeblock|sourcecode)>\s*\Z")
"""What some models write for a fence."""


def path_on(line: str, *, known: bool = False) -> str:
    """The file that this line names, "" when it seems to name none.

    With `known` another file may be meant already, and only a clear name counts: prose before a
    block must not be taken for one.
    """
    text = line.strip()
    wrapped = _WRAPPED.match(text)
    clear = wrapped is not None
    if wrapped:
        text = wrapped[2]
    else:
        text = text.lstrip("#").strip()
        label = _LABEL.match(text)
        clear = label is not None or line.lstrip().startswith("#")
        text = text[label.end() :] if label else text
        text = text.rstrip(":").strip()
    text = text.strip().strip("`*").removeprefix("<").removesuffix(">").strip()
    if not text or not text.strip(".…") or _SCHEME.match(text):
        return ""
    if " " not in text and "\t" not in text:
        dotted = any(char in text.rstrip(".") for char in "./\\")
        bare = _BARE.match(text) and not line.rstrip().endswith(":")
        return text if dotted or clear or bare or not known else ""
    if not _EXTENSION.search(text):
        return ""
    return text if not known or "/" in text.split()[0] or wrapped else ""


def path_before(lines: Sequence[str], *, known: bool = False) -> str:
    """The file named on the lines just before a block, the nearest first: alone, after the marks of
    a fence, or above one. As Aider looks: three lines back, on past fences only."""
    for line in reversed(lines[-3:]):
        fence = Fence.of(line)
        if fence is None and not MARKUP.match(line.strip()):
            return path_on(line, known=known)
        if fence and any(char in fence.language for char in "./"):
            return fence.language.rpartition(":")[2]
    return ""
