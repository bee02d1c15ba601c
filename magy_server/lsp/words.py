"""What differs within lines that were changed, for editors that show it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from magy_server.lsp.documents import split_lines, units
from magy_server.lsp.review_wire import Word

MOST_LINES, LONGEST = 40, 2000
"""Lines of a hunk, and characters of a line, beyond which nobody looks at words any more."""
_PART = re.compile(r"\w+|\s+|.", re.DOTALL)


def words(old: str, new: str, encoding: str) -> list[Word]:
    """Line by line, where both sides have as many; at most one part a line and side: from the first
    word that differs to the last. Nothing for lines that have little in common."""
    before, after = _lines(old), _lines(new)
    if len(before) != len(after) or len(before) > MOST_LINES:
        return []
    pairs = enumerate(zip(before, after, strict=True))
    return [word for number, (a, b) in pairs for word in _differing(number, a, b, encoding)]


def _lines(text: str) -> list[str]:
    lines = [line.rstrip("\r\n") for line in split_lines(text)]
    return lines[:-1] if lines[-1] == "" else lines


def _differing(number: int, old: str, new: str, encoding: str) -> Iterator[Word]:
    if old == new or max(len(old), len(new)) > LONGEST:
        return
    before, after = _PART.findall(old), _PART.findall(new)
    shorter = min(len(before), len(after))
    head = next((n for n in range(shorter) if before[n] != after[n]), shorter)
    rest = shorter - head
    tail = next((n for n in range(rest) if before[-1 - n] != after[-1 - n]), rest)
    if not any(part.strip() for part in before[:head] + before[len(before) - tail :]):
        return
    for side, parts in (("old", before), ("new", after)):
        start = units("".join(parts[:head]), encoding)
        end = units("".join(parts[: len(parts) - tail]), encoding)
        if start < end:
            yield Word.model_validate({"side": side, "line": number, "start": start, "end": end})
