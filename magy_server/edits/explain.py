"""This module writes what a model reads when a hunk cannot be applied: what is wrong, where, and
what to do next.

Tabs are shown as →, blanks at the end of a line as ·, so that what differs can be seen. Every text
is bounded.
"""

from __future__ import annotations

from collections.abc import Sequence

from magy_server.edits.finding.align import LINES, Aligned, alignments, similar_line, with_empty
from magy_server.edits.finding.choose import anchor_lines
from magy_server.edits.finding.normal_forms import depth
from magy_server.edits.finding.source import SITES, Source
from magy_server.edits.placing.decorations import Wanted, cleaned, is_elision
from magy_server.edits.placing.splice import Match
from magy_server.edits.placing.within_line import likeness

SHOWN = 30
"""Lines of the closest region that are shown."""
WIDTH = 160
"""Characters of a line that are shown."""
LISTED = 12
"""Places that are listed."""
NEAR = 0.35
"""A region less alike than this is not shown."""


def visible(line: str) -> str:
    """Returns the text with tabs and trailing blanks to be seen, and at most WIDTH characters."""
    bare = line.rstrip(" \t")
    blanks = line[len(bare) :].replace(" ", "·")
    shown = (bare + blanks).replace("\t", "→")
    return shown if len(shown) <= WIDTH else f"{shown[:WIDTH]}..."


def numbered(source: Source, first: int, last: int) -> str:
    """Returns lines [first, last) with their numbers."""
    shown = min(last, first + SHOWN)
    body = [f"{n + 1:6} | {visible(source.lines[n])}" for n in range(first, shown)]
    if last > shown:
        body.append(f"       | ({last - shown} more lines)")
    return "\n".join(body)


def _lines(first: int, last: int) -> str:
    """Returns lines [first, last), counted from 0, in words."""
    return f"line {first + 1}" if last - first <= 1 else f"lines {first + 1}-{last}"


def ambiguous(source: Source, spans: Sequence[tuple[int, int]]) -> str:
    count = f"{len(spans)} places" if len(spans) < SITES else "very many places"
    told = "\n".join(
        f"{_lines(*span):>14}{_distinction(source, span[0])}" for span in spans[:LISTED]
    )
    more = f"\n  and {len(spans) - LISTED} more" if len(spans) > LISTED else ""
    return (
        f"The old text is in {count}, and nothing tells which one is meant:\n{told}{more}\n"
        "Include more of the lines around the one you mean, so that the old text occurs only once."
    )


def several_alike(source: Source, matches: Sequence[Match]) -> str:
    """Returns the message for several places that have the lines which change, but not all of those
    around them."""
    first = matches[0]
    gone = [
        n
        for n, line in enumerate(first.old)
        if line.strip() and all(match.at[n] is None or n in match.weak for match in matches)
    ]
    told = "\n".join(_candidate(source, match, gone) for match in matches[:LISTED])
    more = f"\n  and {len(matches) - LISTED} more" if len(matches) > LISTED else ""
    if gone:
        line = visible(first.old[gone[0]].strip())
        what = f": no place has both `{line}` of old and the lines around it"
        have = "have the rest"
    else:
        what, have = " as it was written", "are nearly like it"
    return (
        f"The old text is not in the file{what}. "
        f"{len(matches)} places {have}, and nothing tells which one is meant:\n{told}{more}"
        "\nIf it is one of them, send the edit again with old copied from there; else read the "
        "file again."
    )


def _candidate(source: Source, match: Match, gone: Sequence[int]) -> str:
    at = next((match.at[n] for n in gone if match.at[n] is not None), None)
    if at is None:
        return f"{_lines(*match.span):>14}{_distinction(source, match.span[0])}"
    return f"{_lines(*match.span):>14}, with `{visible(source.lines[at].strip())}` (line {at + 1})"


def _distinction(source: Source, first: int) -> str:
    """Returns the line that begins the block around line `first`, else the line above it."""
    lines = source.lines
    if not lines or first >= len(lines):
        return ""
    level = depth(lines[first])
    above = [n for n in range(first - 1, max(-1, first - 300), -1) if lines[n].strip()]
    for n in above:
        if depth(lines[n]) < level and lines[n].strip()[0] not in ")]}":
            return f", in `{visible(lines[n].strip())}` (line {n + 1})"
    return f", after `{visible(lines[above[0]].strip())}`" if above else ", at the top"


def unsafe(source: Source, why: str, first: int, last: int) -> str:
    return (
        f"The old text belongs at {_lines(first, last)}, but {visible(why)}. The file has "
        f"there:\n{numbered(source, first, last)}\nSend the edit again with these lines as old."
    )


def collision(other: int, first: int, last: int) -> str:
    return (
        f"This edit changes {_lines(first, last)}, which edit {other + 1} of the same call "
        "changes in another way. Make one edit of the two."
    )


def placeholder(line: str, whole: bool = False) -> str:
    """`whole`: of a new text for all of a file."""
    shorter = "make old and new shorter, so that they hold only what changes."
    if whole:
        shorter = "send an edit with only the lines that change."
    return (
        f"The new text has a placeholder, `{visible(line)}`, which would replace the code that it "
        f"stands for. Write the new text in full, or {shorter}"
    )


def numbered_anew(line: str) -> str:
    return (
        f"The lines of the new text begin with line numbers, as in `{visible(line.strip())}`, and "
        "those of the file do not. Send the new text without the numbers and the sign behind them."
    )


def above_anchor(source: Source, spans: Sequence[tuple[int, int]], anchor: str) -> str:
    where = ", ".join(_lines(*span) for span in spans[:LISTED])
    return (
        f"The old text is at {where}, but not in what the anchor `{visible(anchor.strip())}` "
        "begins, nor directly below it. Name the line above it, or leave the anchor out."
    )


def anchor(source: Source, heads: Sequence[int], name: str) -> str:
    shown = visible(name.strip())
    if heads:
        where = ", ".join(str(head + 1) for head in heads[:LISTED])
        return (
            f"The anchor `{shown}` is at lines {where}; without old text the anchor must occur "
            "only once. Give some lines of old text."
        )
    near = similar_line(source, name)
    hint = f" The closest is line {near + 1}: `{visible(source.lines[near])}`." if near else ""
    return f"No line is like the anchor `{shown}`.{hint} Copy a line of the file as the anchor."


def no_anchor(source: Source, anchors: Sequence[str]) -> str:
    """The first of `anchors` that is not there, below those before it."""
    missing = next(
        (n for n in range(len(anchors)) if not anchor_lines(source, anchors[: n + 1])), 0
    )
    below = f" below `{visible(anchors[missing - 1].strip())}`" if missing else ""
    return f"No line{below} is like the anchor `{visible(anchors[missing].strip())}`."


def without_anchor(span: tuple[int, int]) -> str:
    return (
        f"The old text is at {_lines(*span)}. If that is the place you mean, name the line above "
        "it, or leave the anchor out; else read the file again."
    )


NOWHERE = (
    "The old text is empty, and nothing else says where the new text goes. Give the neighbouring "
    "lines as old, and the same lines with the new ones as new; or give a line number."
)
SAYS_NOTHING = (
    "Lines that only close blocks look the same everywhere: include a line above them that "
    "identifies the block."
)


def no_such_line(line: int, count: int) -> str:
    """`line` is the one that would follow. Formats name the one before."""
    lines = "1 line" if count == 1 else f"{count} lines"
    return (
        f"There is no line {line - 1} to insert after: the file has {lines}, so 0 to {count} are "
        "possible (0: at the beginning)."
    )


def applied(first: int) -> str:
    return (
        f"Nothing to do: the file already has the new text, at line {first + 1}. This edit is no "
        "longer needed."
    )


def not_found(source: Source, wanted: Wanted) -> tuple[str, list[int]]:
    """Returns the message, and the lines that it speaks of, from 1."""
    if not source.text:
        return "The old text was not found: the file is empty. Insert with an empty old text.", []
    plain = cleaned(wanted, source.alike)
    if not any(line.strip() for line in plain.old):
        return "The old text has only empty lines. Include a line that is not empty.", []
    head = "The old text is not in the file."
    if sum(map(is_elision, plain.old)) > sum(map(is_elision, plain.new)):
        head += ' A "..." in old stands for lines that stay, so new must have it too.'
    found = _closest(source, plain.old)
    if found is None:
        return f"{head} Nothing similar is there either: read the file again first.", []
    at, score = found
    first, last = min(at.values()), max(at.values()) + 1
    told = _difference(source, plain.old, at)
    text = (
        f"{head} The closest is {_lines(first, last)} ({score:.0%} alike); {told}\n"
        f"{numbered(source, first, last)}\n"
        "If these are the lines you mean, send the edit again with old copied from them; else read "
        "the file again."
    )
    return text, list(range(first + 1, min(last, first + SHOWN) + 1))


def _closest(source: Source, old: Sequence[str]) -> tuple[dict[int, int], float] | None:
    """Returns the lines of the file that the lines of `old` most likely are."""
    best: Aligned | None = next(iter(alignments(source, old)), None)
    at = dict(best.at) if best else {}
    if not at:
        n = max(range(len(old)), key=lambda n: len(old[n].strip()))
        near = similar_line(source, old[n])
        if near is None:
            near = next((at for at, one in enumerate(source.lines[:LINES]) if _cased(old[n], one)),
                        None)  # fmt: skip
            return None if near is None else ({n: near}, likeness(old[n], source.lines[near]))
        at = {n: near}
    at = _filled(source, old, at)
    pairs = [likeness(old[n], source.lines[line]) for n, line in at.items() if old[n].strip()]
    solid = sum(bool(line.strip()) for line in old)
    score = sum(pairs) / max(1, solid)
    return (at, score) if score >= NEAR else None


def _cased(old: str, there: str) -> bool:
    """Whether `old` is in that line but for upper and lower case: a short text in capitals has few
    letters in common with the same in small ones."""
    old = old.strip()
    return len(old) > 2 and old not in there and old.casefold() in there.casefold()


def _filled(source: Source, old: Sequence[str], at: dict[int, int]) -> dict[int, int]:
    """With the lines between and around, as if they stood in the same order."""
    found = {n: line for n, line in enumerate(with_empty(source, old, at)) if line is not None}
    taken = set(found.values())
    for step in (1, -1):
        for n in range(len(old))[::step]:
            line = found.get(n - step)
            if n in found or line is None or line + step in taken:
                continue
            if 0 <= line + step < len(source.lines):
                found[n] = line + step
                taken.add(line + step)
    return dict(sorted(found.items()))


def _difference(source: Source, old: Sequence[str], at: dict[int, int]) -> str:
    """Returns what differs, in words where a word fits."""
    pairs = [(n, line) for n, line in at.items() if old[n] != source.lines[line]]
    gone = [n for n in range(len(old)) if n not in at and old[n].strip()]
    between = sorted(set(range(min(at.values()), max(at.values()) + 1)) - set(at.values()))
    told = []
    if pairs and all(_cased(old[n], source.lines[line]) for n, line in pairs):
        told.append("upper and lower case differ")
    if pairs and all(old[n].split() == source.lines[line].split() for n, line in pairs):
        told.append("only white space differs")
    for n, line in pairs[:3]:
        told.append(
            f"line {line + 1} is `{visible(source.lines[line])}` where old has `{visible(old[n])}`"
        )
    if len(pairs) > 3:
        told.append(f"{len(pairs) - 3} more lines differ")
    if gone:
        told.append(f"`{visible(old[gone[0]].strip())}` is not there")
    if len(gone) > 1:
        told.append(f"nor are {len(gone) - 1} more lines of old")
    if between:
        told.append(f"old leaves out {_numbers(between)}")
    return ("; ".join(told) or "the same lines, but the change cannot be placed in them") + ":"


def _numbers(lines: Sequence[int]) -> str:
    shown = ", ".join(str(line + 1) for line in lines[:5])
    more = f" and {len(lines) - 5} more" if len(lines) > 5 else ""
    return f"line{'s' if len(lines) > 1 else ''} {shown}{more}"
