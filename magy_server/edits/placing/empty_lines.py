"""This module decides where new lines go when a model miscounted the empty lines around them."""

from __future__ import annotations

from collections.abc import Sequence

from magy_server.edits.finding.normal_forms import depth, indentation
from magy_server.regex import regex

_LEADS = regex(
    r"\s*(#(?!\s*(?:define|undef|include|import|end|else|elif))|//"
    r"|/\*|\*|--|;|@|\"\"\"|'''|template\b|\[\[?\w(?![^\]]*\]\())"
)
"""Comments, decorators and attributes (no links) belong to what follows."""
_CLOSES = regex(r"\s*(?:[\])}]|end\b)")
_TURNS_BACK = regex(
    r"\W*(?:(?:[\w-]+:?\s+)?(?:on|pop|enable|end|endregion)\W*|\w+-(?:enable|ignore-end)\b.*)"
)
"""A remark to a tool that ends what one above it began: `# fmt: on`, `// #endregion`."""
_REMARK = regex(r"\s*(?:#(?![!\[])|//(?![/!])|/\*(?!\*)|--|;)")
"""A comment that may be of what is above it as well."""


def reconciled(
    before: str, blanks: Sequence[str], after: str, texts: Sequence[str], thought: int
) -> list[str] | None:
    """What stands between the lines `before` and `after`, where the file has `blanks`, the model
    thought of `thought` empty lines, and wants `texts`. None when nothing tells."""
    lead, tail = _edges(texts)
    content = list(texts[lead : len(texts) - tail])
    missing = len(blanks) - thought
    if not content:
        return _some(blanks, max(0, len(texts) + missing))
    if missing < 0:
        on_lead = lead >= tail
        lead, tail = (max(0, lead + missing), tail) if on_lead else (lead, max(0, tail + missing))
    else:
        shares = _shares(before, after, content, (lead, tail), (thought, missing))
        if shares is None:
            return None
        lead, tail = lead + shares[0], tail + shares[1]
    return [*_some(blanks[:lead], lead), *content, *_some(blanks[lead:], tail)]


def _some(blanks: Sequence[str], count: int) -> list[str]:
    """Returns `count` empty lines, those of the file as far as there are enough."""
    return [*blanks[:count], *[""] * (count - len(blanks))]


def _edges(texts: Sequence[str]) -> tuple[int, int]:
    solid = [n for n, line in enumerate(texts) if line.strip()]
    if not solid:
        return 0, len(texts)
    return solid[0], len(texts) - 1 - solid[-1]


def _shares(
    before: str,
    after: str,
    content: Sequence[str],
    around: tuple[int, int],
    counts: tuple[int, int],
) -> tuple[int, int] | None:
    """How many of the empty lines that the model left out go before and after the content."""
    lead, tail = around
    thought, missing = counts
    if thought and (lead or tail):
        if tail < thought:
            return missing, 0  # its own empty lines stand before the content
        if lead < thought:
            return 0, missing
        return (missing, 0) if lead <= tail else (0, missing)
    if lead and tail:
        return max(0, missing - lead), max(0, missing - tail)
    if lead:
        return 0, missing
    if tail:
        return missing, 0
    if belongs := _belongs(before, content, after):
        return (0, missing) if belongs == "before" else (missing, 0)
    return None


def _belongs(before: str, content: Sequence[str], after: str) -> str:
    """Returns to which of its neighbours the content is nearer; "" when neither is plainly."""
    above, first, last, below = map(depth, (before, content[0], content[-1], after))
    if _CLOSES.match(content[0]):
        return "before"
    leads = _LEADS.match(content[-1]) and not _LEADS.match(before)
    if leads and _TURNS_BACK.fullmatch(content[-1]):
        return "before"
    if leads and len(content) == 1 and _REMARK.match(content[0]) and _CLOSES.match(before):
        return ""
    if leads and len(indentation(content[-1])) == len(indentation(after)):
        return "after"
    if _opens(before) and first > above and last != below:
        return "before"
    if first == above and min(first, last) > below and not _CLOSES.match(after):
        return "before"  # the block ends below it; but no empty line stands before what closes it
    return ""


def _opens(line: str) -> bool:
    return line.rstrip().endswith((":", "{", "(", "[", "=>", "->", " do", " then"))
