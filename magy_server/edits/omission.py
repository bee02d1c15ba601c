"""New text that leaves something out in words: "// ... rest of the code"."""

from __future__ import annotations

import re
from collections.abc import Sequence

from magy_server.edits.keys import squeeze

LONGEST = 120
"""Characters of a line that says so: longer ones say something else."""
_COMMENT = re.compile(r"(?:#+|//+|--(?=[\s.…])|;+|%|/\*+|<!--|\{/\*|\[|\()?\s*(.*?)\W*")
_DOTS = re.compile(r"\.{3,}|…")
_SPACED = re.compile(r"[\[(]?\s*(?:\.{3,}|…)\s+\w")
"""Without a comment around it; `...rest` is a spread operator."""
_THINGS = (
    r"(?:code|file|class|function|method|implementation|module|component|import|content|logic|test"
    r"|field|prop|propertie|line|item|case|definition|body|option|route|handler|style|part)s?"
)
_REST = r"(?:rest|remaining|remainder|existing|other|previous|unchanged|same|omitted)"
_AFTER = re.compile(rf"\b{_REST}\b|\bas before\b")
_BEFORE = re.compile(
    rf"(?:the |your )?{_REST}\b|(?:\w+ ){{0,3}}{_THINGS} (?:unchanged|omitted|here)\b"
)
_STAY = r"(?:here|goes here|unchanged|as before|as is|(?:remains?|stays?)(?: the same| unchanged)?)"
_PHRASE = re.compile(
    rf"(?:the |your )?(?:rest of (?:the |your |this ){_THINGS}(?: {_STAY})?"
    rf"|(?:existing|remaining|other|previous) {_THINGS} {_STAY})"
)


def omission(old: Sequence[str], new: Sequence[str], there: Sequence[str]) -> str | None:
    """The line of `new` that stands for text which it leaves out; None if there is none. A line
    that `old` or the text `there` has too is a line like any other."""
    kept = {squeeze(line) for line in old}
    shorter = len(new) < len(old)
    found = [
        line.strip()
        for line in new
        if len(line) <= LONGEST and _leaves_out(line.strip(), shorter) and squeeze(line) not in kept
    ]
    if not found:
        return None
    known = {line.strip() for line in there}
    return next((line for line in found if line not in known), None)


def _leaves_out(line: str, shorter: bool) -> bool:
    """Dots alone say so only in a comment of a text that became `shorter`: they have other uses."""
    found = _COMMENT.fullmatch(line)
    if found is None or not (_marked(line) or _SPACED.match(line)):
        return False
    said = found[1].lower().strip("()[] ")
    dots = list(_DOTS.finditer(line))
    if not dots:
        return _PHRASE.fullmatch(said) is not None
    words = _DOTS.sub(" ", said).strip(" ()[]")
    if not words:
        return shorter and _marked(line)
    if _DOTS.match(said):
        return len(words.split()) <= 8 and _AFTER.search(words) is not None
    return not re.search(r"\w", line[dots[-1].end() :]) and _BEFORE.match(words) is not None


def _marked(line: str) -> bool:
    return line.startswith(("#", "//", "-- ", "--.", ";", "%", "/*", "<!--", "{/*"))
