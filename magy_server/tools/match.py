"""Where an exact text is in a file, and what to tell a model whose text is not there."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from magy_server.core.errors import ToolError
from magy_server.tools.text import Plain

SHOWN = 30
"""Lines of the closest region that are shown."""
_NUMBERED = re.compile(r"\s*\d+\t")


def find_once(view: Plain, old: str, new: str, name: str) -> int:
    """The plain offset of `old` (plain), which must be there exactly once. Raises ToolError."""
    found = _all(view.text, old)
    if len(found) == 1:
        return found[0]
    if found:
        lines = ", ".join(str(view.line(at)) for at in found[:20])
        more = f" and {len(found) - 20} more places" if len(found) > 20 else ""
        raise ToolError(
            f"old_text is in {name} {len(found)} times, at lines {lines}{more}; nothing was "
            "changed. Include more of the lines around the one you mean, so that it is there once."
        )
    raise ToolError(f"old_text is not in {name}; nothing was changed. {_why(view, old, new)}")


def _all(text: str, old: str) -> list[int]:
    """Overlapping places count too: either could be meant."""
    found: list[int] = []
    at = text.find(old)
    while at >= 0 and len(found) < 1000:
        found.append(at)
        at = text.find(old, at + 1)
    return found


def _why(view: Plain, old: str, new: str) -> str:
    lines, wanted = view.text.split("\n"), old.strip("\n").split("\n")
    if all(_NUMBERED.match(line) for line in wanted):
        return "Its lines begin with the numbers that read_file prints; leave those out."
    if view.text == "":
        return "The file is empty; use write_file."
    if len(new.strip()) >= 10 and (there := _all(view.text, new)):
        line = view.line(there[0])
        return f"But new_text is there, at line {line}: the edit seems to be done already."
    start = _closest(lines, wanted)
    if start is None:
        return "Nothing like it is there: read the file again before the next edit."
    region = lines[start : start + len(wanted)]
    at = f"lines {start + 1}-{start + len(region)}" if len(region) > 1 else f"line {start + 1}"
    body = "\n".join(f"{n:6}\t{line}" for n, line in enumerate(region[:SHOWN], start + 1))
    more = f"\n       ({len(region) - SHOWN} more lines)" if len(region) > SHOWN else ""
    return f"The closest is {at}; {_difference(region, wanted, start)}\n{body}{more}"


def _difference(region: Sequence[str], wanted: Sequence[str], start: int) -> str:
    """What differs, in words where a word fits."""
    if list(region) == list(wanted):
        return "the same lines, but old_text has other empty lines or line ends around them:"
    if [line.rstrip() for line in region] == [line.rstrip() for line in wanted]:
        return "they differ from old_text only in white space at the ends of lines:"
    if [line.strip() for line in region] == [line.strip() for line in wanted]:
        return (
            f"they differ only in indentation (the file: {_indent(region, wanted)}); "
            "copy it exactly:"
        )
    pairs = [(n, a, b) for n, (a, b) in enumerate(zip(region, wanted, strict=False)) if a != b]
    told = [
        f"line {start + n + 1} is {_visible(a)} where old_text has {_visible(b)}"
        for n, a, b in pairs[:3]
    ]
    if len(pairs) > 3:
        told.append(f"{len(pairs) - 3} more lines differ")
    if len(region) < len(wanted):
        told.append(f"the file ends {len(wanted) - len(region)} lines too early")
    return "; ".join(told) + ":"


def _indent(region: Sequence[str], wanted: Sequence[str]) -> str:
    a, b = next((a, b) for a, b in zip(region, wanted, strict=True) if a != b)
    mine, theirs = a[: len(a) - len(a.lstrip())], b[: len(b) - len(b.lstrip())]
    return f"{_visible(mine)}, old_text: {_visible(theirs)}"


def _visible(text: str, limit: int = 160) -> str:
    """In quotes, at most `limit` characters, with tabs and trailing blanks made visible."""
    bare = text.rstrip(" \t")
    blanks = text[len(bare) :].replace(" ", "·")
    shown = (bare + blanks).replace("\t", "→")
    return f"`{shown[:limit]}{'...' if len(shown) > limit else ''}`"


def _closest(lines: Sequence[str], wanted: Sequence[str]) -> int | None:
    """The index of the first line of the region most like `wanted`; None when none is like it.

    Lines that equal (blanks aside) or resemble a line of `wanted` vote for where it would begin;
    only the best few places are compared whole, so a large file takes well under a second.
    """
    from rapidfuzz import fuzz, process

    votes: Counter[int] = Counter()
    place: dict[str, int] = {}
    for n, line in enumerate(wanted[:200]):
        if line.strip():
            place.setdefault(line.strip(), n)
    for at, line in enumerate(lines):
        if (known := place.get(line.strip())) is not None:
            votes[max(0, at - known)] += 1
    longest = sorted(enumerate(wanted[:200]), key=lambda item: -len(item[1]))[:3]
    for n, line in longest:
        near = process.extract(line[:500], lines, scorer=fuzz.ratio, score_cutoff=65, limit=5)
        for _, _, at in near:
            votes[max(0, at - n)] += 1
    text = "\n".join(wanted)[:20_000]
    best, score = None, 55.0
    for start, _ in votes.most_common(10):
        region = "\n".join(lines[start : start + len(wanted)])[:20_000]
        ratio = fuzz.ratio(text, region)
        if ratio > score:
            best, score = start, ratio
    return best
