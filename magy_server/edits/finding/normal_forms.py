"""This module puts lines into normal forms, from strict to loose, by which the engine compares
them."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable

from magy_server.regex import regex

LEAD = regex(r"\s*")
"""The indentation of a line: what `str.strip` takes off, no-break spaces too."""
_LOOKS = {
    **dict.fromkeys("\u2018\u2019\u201a\u201b\u2032\u00b4\u02bc", "'"),
    **dict.fromkeys("\u201c\u201d\u201e\u201f\u2033\u00ab\u00bb", '"'),
    **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212\u00ad", "-"),
    **dict.fromkeys("\u200b\u200c\u200d\u2060\ufeff", ""),
    "\u2026": "...",
}
_FOLDED = str.maketrans(_LOOKS)
"""What editors, word processors and models put in the place of ASCII punctuation."""


def fold(text: str) -> str:
    """Returns the text with plain characters for typographic quotes, dashes, spaces and
    compatibility forms."""
    if text.isascii():
        return text
    return unicodedata.normalize("NFKC", text.translate(_FOLDED))


def _same(line: str) -> str:
    return line


def _folded(line: str) -> str:
    return fold(line).rstrip()


def squeeze(line: str) -> str:
    """Returns the text without any white space, folded: the loosest form in which lines still count
    as equal."""
    return "".join(fold(line).split())


Form = Callable[[str], str]
FORMS: dict[str, Form] = {
    "exact": _same,
    "trailing": str.rstrip,
    "unicode": _folded,
    "indentation": str.strip,
    "spacing": squeeze,
}
"""By the name of the tier that compares lines so."""
ASCII_FORMS: dict[str, Form] = {
    **FORMS,
    "unicode": str.rstrip,
    "spacing": lambda line: "".join(line.split()),
}
"""The same for lines of a text that is all ASCII, where nothing needs to be folded."""


def indentation(line: str) -> str:
    found = LEAD.match(line)
    return found.group() if found else ""


def depth(line: str) -> int:
    """Returns how many columns a line is indented by."""
    return len(indentation(line).expandtabs(4))


_CLOSES = regex(r"(?:[\])}>;,*/`'\"]*|(?:end|fi|done|esac|od)[\])};,]*|</[\w.:-]*>)")


def only_closers(lines: Iterable[str]) -> bool:
    """Returns whether these lines do nothing but close blocks: such lines are alike everywhere."""
    return all(_CLOSES.fullmatch(squeeze(line)) for line in lines)


def weight(key: str) -> float:
    """Returns how much a line (its `squeeze`) tells about where it is: a brace tells next to
    nothing."""
    if not key:
        return 0.0
    letters = sum(map(str.isalnum, key[:60]))
    return 0.2 if letters < 2 else min(4.0, 0.5 + letters / 8)
