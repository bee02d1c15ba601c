"""This module reads the `@@` line before a hunk, as unified diffs and V4A patches have it."""

from __future__ import annotations

from magy_server.dataclass import dataclass
from magy_server.edits.model import Hunk
from magy_server.regex import regex

_FULL = regex(r"@@\s*-(\d{1,9})(?:,(\d{1,9}))?\s+\+(\d{1,9})(?:,(\d{1,9}))?\s*@@ ?(.*)\Z")
_PARTIAL = regex(r"@@\s*-?(\d{1,9})\b[^@A-Za-z_]*(?:@@(.*))?\Z")
_NOTHING = regex(r"[-+.,?…\s]*\Z")


@dataclass(frozen=True, slots=True)
class Section:
    """What a `@@` line says. Counts are None unless it has all four numbers."""

    line: int | None = None
    """Of the old text, from 1; as written, so 0 is possible."""
    old: int | None = None
    new: int | None = None
    heading: str = ""


def is_section(line: str) -> bool:
    return line.startswith("@@")


def section(line: str) -> Section:
    if full := _FULL.match(line):
        counts = [int(text) if text else 1 for text in (full[2], full[4])]
        return Section(int(full[1]), counts[0], counts[1], full[5].strip())
    if partial := _PARTIAL.match(line):
        return Section(int(partial[1]), heading=_heading(partial[2] or ""))
    return Section(heading=_heading(line[2:]))


def _heading(text: str) -> str:
    text = text.rstrip().removesuffix("@@").rstrip().removeprefix(" ")
    return "" if _NOTHING.match(text) else text


def above(context: Hunk | None) -> tuple[str, ...]:
    """Returns the anchors that a hunk with only context lines gives the next hunk."""
    if context is None:
        return ()
    lines = [line for line in context.old.split("\n") if line.strip()]
    return (*context.anchors, *lines[-3:])
