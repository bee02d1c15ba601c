"""A model may quote plain signs of a file as typographic ones. This module then writes them plainly
in the lines that the model adds, too."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable

from magy_server.edits.finding.normal_forms import fold

Rewrite = Callable[[str], str]


def rewriting(pairs: Iterable[tuple[str, str]], text: str) -> Rewrite | None:
    """How to write the lines of a hunk as the file would, learned from `pairs` of lines: as quoted,
    and as they are in `text`. None: as they are.

    A sign that was quoted for a plain one is a plain one; so is another of its kind that the text
    has nowhere: who writes “ for " writes ‘ for '.
    """
    signs: set[str] = set()
    for quoted, there in pairs:
        if not quoted.isascii():
            signs |= {sign for sign in quoted if fold(sign) != sign and sign not in there}
    if not signs:
        return None
    kinds = {_kind(sign) for sign in signs}
    known: dict[str, str] = {}

    def plain(sign: str) -> str:
        if sign not in known:
            folded = fold(sign)
            alike = sign in signs or (_kind(sign) in kinds and sign not in text)
            known[sign] = folded if folded != sign and alike else sign
        return known[sign]

    return lambda line: line if line.isascii() else "".join(map(plain, line))


def _kind(sign: str) -> str:
    folded = fold(sign)
    if folded in ("'", '"'):
        return "quote"
    if folded in ("-", " ", ""):
        return folded
    return unicodedata.east_asian_width(sign) if "!" <= folded <= "~" else sign
