"""This module keeps changes from putting a lone CR before a lone LF: the two would be one line
end."""

from __future__ import annotations

from collections.abc import Sequence

from magy_server.edits.model import TextChange


def unjoined(raw: str, changes: Sequence[TextChange]) -> tuple[TextChange, ...]:
    """`changes` (in order) of `raw`, with a `\\r` for a `\\n` that they would put behind a lone
    `\\r`: only texts with both kinds of line end have that."""
    if "\r" not in raw:
        return tuple(changes)
    found: list[TextChange] = []
    for n, change in enumerate(changes):
        start, end, text = change.start, change.end, change.text
        before = raw[start - 1 : start]
        if found and found[-1].end == start:
            before = found[-1].text[-1:] or before
        if before == "\r":
            empty = len(text) - len(text.lstrip("\n"))
            text = "\r" * empty + text[empty:]
        if (text[-1:] or before) == "\r":
            # what comes next may be empty lines: their ends were not halves of pairs before
            stop = changes[n + 1].start if n + 1 < len(changes) else len(raw)
            last = end
            while last < stop and raw[last] == "\n":
                last += 1
            end, text = last, text + "\r" * (last - end)
        found.append(TextChange(start, end, text))
    return tuple(found)
