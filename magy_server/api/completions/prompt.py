"""This module writes what a model is told of a place where it is to complete the text. Pure.

What comes after the cursor stands before what precedes it: while one types, a prompt grows at its
end only, and a model server that keeps the last one need not read it again.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from magy_server.api.completions.surroundings import Surroundings
from magy_server.regex import regex

_MARK = regex(r"<\s*+/?+\s*+(?:before|after|insert|declarations)(?:-(\d{1,9}))?\b", re.IGNORECASE)


class Declared(NamedTuple):
    """Lines of another open file that declare something."""

    name: str
    lines: str


def told(place: Surroundings, name: str, language: str, others: Sequence[Declared]) -> str:
    """`name`: of the file, on one line; `language`: as the editor calls it, "" if it says none."""
    number = _free("\n".join([place.before, place.after, *(one.lines for one in others)]))
    before, after, declarations = (f"{tag}{number}" for tag in ("before", "after", "declarations"))
    parts = [f"File: {name}" + (f" ({language})" if language else "")]
    for one in others:
        parts.append(f"<{declarations}>\nIn {one.name}:\n{one.lines}\n</{declarations}>")
    parts.append(f"<{after}>{place.after}</{after}>")
    parts.append(f"<{before}>{place.before}</{before}>")
    what = "the rest of this line, up to what follows" if place.within_line else "what comes next"
    parts.append(f"Write {what}, in <insert{number}> tags.")
    return "\n".join(parts)


def _free(text: str) -> str:
    """A number for tags, of which the text has none: what looks like a tag in a file must not end
    ours."""
    taken = {int(found[1] or 0) for found in _MARK.finditer(text)}
    if not taken:
        return ""
    return f"-{min(set(range(1, len(taken) + 2)) - taken)}"
