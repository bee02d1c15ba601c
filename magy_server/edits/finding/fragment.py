"""A model may write a piece of a line with other white space or punctuation; this module finds
it."""

from __future__ import annotations

import re
from itertools import islice

from magy_server.edits.finding.choose import Site
from magy_server.edits.finding.normal_forms import fold
from magy_server.edits.finding.source import Source, places
from magy_server.edits.model import Hunk
from magy_server.edits.placing.within_line import same_signs
from magy_server.regex import regex

SHORTEST, LONGEST = 6, 500
"""Letters, signs and blanks of a piece that is looked for so."""
LINES = 500
"""How often its longest word may be in the text."""
SHOWN = 20
"""Places beyond which it does not matter how many there are."""
_SIGNS = {
    "'": "['\u2018\u2019\u201a\u201b\u2032\u00b4]",
    '"': '["\u201c\u201d\u201e\u201f\u2033]',
    "-": "[-\u2010\u2011\u2012\u2013\u2014\u2212]",
}
_TOKEN = regex(r"\w+|\s+|.")


def fragments(source: Source, hunk: Hunk) -> list[Site]:
    """Returns where the one line `old` of a `str_replace` is, blanks and typography aside."""
    old, new = fold(hunk.old.strip()), hunk.new
    if "\n" in hunk.old or "\n" in new or not SHORTEST <= len(old) <= LONGEST:
        return []
    pattern = re.compile(_pattern(old))
    longest = max(re.findall(r"\w+", old), key=len, default="")
    if not longest:
        return []
    begun = list(islice(places(source.text, longest), LINES + 1))
    if len(begun) > LINES:
        return []
    sites = []
    for line in sorted({source.row(at) for at in begun}):
        start, end = source.starts[line], source.starts[line] + len(source.lines[line])
        for one in islice(pattern.finditer(source.text, start, end), SHOWN):
            if same_signs(old, one[0]):
                sites.append(Site(line, line + 1, span=one.span()))
    return sites[:SHOWN]


def _pattern(old: str) -> str:
    parts: list[str] = []
    before = ""
    for token in _TOKEN.findall(old):
        if token.isspace():
            before = token
            continue
        if parts:
            both_words = parts[-1][-1:].isalnum() and token[0].isalnum()
            parts.append(r"[^\S\n]+" if both_words and before else r"[^\S\n]*")
        parts.append(_SIGNS.get(token, re.escape(token)))
        before = ""
    edge = r"\b" if re.match(r"\w", old[0]) else ""
    end = r"\b" if re.match(r"\w", old[-1]) else ""
    return f"{edge}{''.join(parts)}{end}"
