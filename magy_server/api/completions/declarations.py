"""This module finds the lines of open documents that declare something, by words that many
languages have: they tell a model what there is, at the price of a few lines."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from time import monotonic

from magy_server.api.connected import Document
from magy_server.core.text.surrogates import whole
from magy_server.regex import regex

LINES = 20_000
"""Lines of a document that are looked at."""
LONGEST = 160
"""Characters of a line; a longer one is cut."""
MOST = 1_500
"""Characters of one document's declarations."""
FRESH = 10.0
"""Seconds for which a document that changes is not looked through again."""
DOCUMENTS = 50
"""Whose declarations are kept."""
_BEFORE = (
    "export|default|declare|pub|public|private|protected|internal|static|async|abstract|final|"
    "sealed|inline|const|unsafe|extern|virtual|override|partial|data|open"
)
_DECLARES = (
    "def|class|function|func|fun|fn|struct|enum|interface|trait|impl|type|typedef|module|"
    "namespace|record|protocol|object|union|sub|proc|macro"
)
_DECLARATION = regex(
    rf"\s*(?:(?:(?:{_BEFORE})(?:\([^()\n]*\))?\s+)*(?:(?:{_DECLARES})\s+[\w$*&(\[<:]|impl<)"
    r"|\((?:cl-)?(?:def\w+|define)\s)"
)


class Declarations:
    """Those of each open document, kept until it changes."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[Hashable, float, str]] = {}

    def of(self, path: str, state: Hashable, document: Document) -> str:
        """`state`: another one after every change of the document."""
        known = self._known.pop(path, None)
        now = monotonic()
        if known is None or (known[0] != state and now - known[1] >= FRESH):
            known = (state, now, found(document.lines))
        self._known[path] = known
        if len(self._known) > DOCUMENTS:
            del self._known[next(iter(self._known))]
        return known[2]


def found(lines: Sequence[str]) -> str:
    """Returns the lines that declare something, with `\\n` between them."""
    declared: list[str] = []
    room = MOST
    for line in lines[:LINES]:
        if _DECLARATION.match(line[:LONGEST]):
            line = whole(line[:LONGEST].rstrip())
            room -= len(line) + 1
            if room < 0:
                break
            declared.append(line)
    return "\n".join(declared)
