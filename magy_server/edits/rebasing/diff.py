"""This module finds line differences: the smallest changes that turn one text into another, and
unified diffs."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence

from magy_server.edits.model import TextChange
from magy_server.edits.text import BREAK, line_end, plain, split, usual_end

Block = tuple[int, int, int, int]
"""Lines [a, b) of the one text became lines [c, d) of the other."""
SPLIT = 4_000_000
"""Line pairs from which on a stretch is first split at lines that both texts have once."""
CELLS = 200_000_000
"""Line pairs compared at most (25 MB of bits); beyond, one block stands for the whole stretch."""
CONTEXT = 3
"""Unchanged lines around a change in a unified diff."""
DIFF_LIMIT = 200_000
"""Characters of a unified diff; the rest is left out and counted."""


def blocks(before: Sequence[str], after: Sequence[str]) -> list[Block]:
    """Returns the differing blocks, in order; the lines between them are equal."""
    head = _head(before, after)
    tail = _tail(before, after, head)
    old, new = before[head : len(before) - tail], after[head : len(after) - tail]
    return [(a + head, b + head, c + head, d + head) for a, b, c, d in _joining(_inner(old, new))]


def _head(one: Sequence[str], other: Sequence[str]) -> int:
    """How many items both begin with."""
    shorter = min(len(one), len(other))
    return next((n for n in range(shorter) if one[n] != other[n]), shorter)


def _tail(one: Sequence[str], other: Sequence[str], head: int) -> int:
    """How many of the items behind the first `head` both end with."""
    left = min(len(one), len(other)) - head
    return next((n for n in range(left) if one[-1 - n] != other[-1 - n]), left)


def _inner(old: Sequence[str], new: Sequence[str]) -> Iterator[Block]:
    if not old or not new:
        if old or new:
            yield (0, len(old), 0, len(new))
        return
    if len(old) * len(new) < SPLIT or not (shared := _shared(old, new)):
        yield from _compared(old, new)
        return
    a = c = 0
    for b, d in [*shared, (len(old), len(new))]:
        # from one line that is shared to the next
        part, other = old[a:b], new[c:d]
        if part != other:
            yield from ((a + w, a + x, c + y, c + z) for w, x, y, z in blocks(part, other))
        a, c = b + 1, d + 1


def _compared(old: Sequence[str], new: Sequence[str]) -> Iterator[Block]:
    from rapidfuzz.distance import LCSseq

    if len(old) * len(new) > CELLS:
        yield (0, len(old), 0, len(new))
        return
    for step in LCSseq.opcodes(old, new):
        if step.tag != "equal":
            yield (step.src_start, step.src_end, step.dest_start, step.dest_end)


def _joining(found: Iterable[Block]) -> Iterator[Block]:
    """Joins a deletion and an insertion that touch."""
    last: Block | None = None
    for block in found:
        if last and last[1] == block[0] and last[3] == block[2]:
            last = (last[0], block[1], last[2], block[3])
            continue
        if last:
            yield last
        last = block
    if last:
        yield last


def _shared(old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int]]:
    """The longest run, in order in both, of lines that each of the two has just once: where
    patience diff (Bram Cohen) takes the texts to be the same."""
    once = {line: at for line, at in _once(new).items() if at >= 0}
    ends: list[int] = []  # the smallest place in `new` at which a run of this length ends
    links: list[tuple[int, int, int]] = []
    newest: list[int] = []
    for line, at in _once(old).items():
        if at < 0 or (place := once.get(line)) is None:
            continue
        length = bisect_left(ends, place)
        links.append((at, place, newest[length - 1] if length else -1))
        ends[length : length + 1] = [place]
        newest[length : length + 1] = [len(links) - 1]
    run: list[tuple[int, int]] = []
    link = newest[-1] if newest else -1
    while link >= 0:
        at, place, link = links[link]
        run.append((at, place))
    return run[::-1]


def _once(lines: Sequence[str]) -> dict[str, int]:
    """Where each line is, in order of its first place; -1: more than once."""
    found: dict[str, int] = {}
    for at, line in enumerate(lines):
        found[line] = -1 if line in found else at
    return found


def changes(raw: str, new: str, start: int, end: int) -> list[TextChange]:
    """Returns the changes that make characters [start, end) of `raw` read `new` (plain text).

    Lines that stay keep their own line ends; a new line takes that of the line it replaces, else
    of its neighbour, in [start, end) if there is one. Offsets are into `raw`.
    """
    region = raw[start:end]
    usual = usual_end(region) or _end_nearby(raw, start, end) or "\n"
    old_lines, new_lines = split(region), split(new)
    ends = [line_end(line) for line in old_lines]
    offsets = [start]
    for line in old_lines:
        offsets.append(offsets[-1] + len(line))
    found = []
    for a, b, c, d in blocks([plain(line) for line in old_lines], new_lines):
        text = _joined(
            _with_end(new_lines[n], _pick(ends, a, b, n - c, usual)) for n in range(c, d)
        )
        found.append(trim(raw, TextChange(offsets[a], offsets[b], text)))
    return found


def _end_nearby(raw: str, start: int, end: int) -> str:
    """Returns the line end of the line that [start, end) ends in, else of the line before it."""
    if after := BREAK.search(raw, end):
        return after.group()
    last = max(raw.rfind("\n", 0, start), raw.rfind("\r", 0, start))
    return line_end(raw[: last + 1][-2:]) if last >= 0 else ""


def _pick(ends: Sequence[str], a: int, b: int, nth: int, usual: str) -> str:
    if a + nth < b and ends[a + nth]:
        return ends[a + nth]
    near = next((end for end in reversed(ends[:b]) if end), "")
    return near or next((end for end in ends[b:] if end), usual)


def _with_end(line: str, end: str) -> str:
    return line[:-1] + end if line.endswith("\n") else line


def _joined(lines: Iterable[str]) -> str:
    """An empty line behind a lone `\\r` does not end in `\\n`: the two would be one line end."""
    parts: list[str] = []
    for line in lines:
        lone = line == "\n" and parts and parts[-1].endswith("\r")
        parts.append("\r" if lone else line)
    return "".join(parts)


def trim(raw: str, change: TextChange) -> TextChange:
    """Leaves out equal characters at both ends, without splitting a `\\r\\n`."""
    old, new = raw[change.start : change.end], change.text
    head = _head(old, new)
    if head and old[head - 1] == "\r" and "\n" in (old[head : head + 1], new[head : head + 1]):
        head -= 1
    tail = _tail(old, new, head)
    if tail and old[-tail] == "\n" and "\r" in (old[-tail - 1 : -tail], new[-tail - 1 : -tail]):
        tail -= 1
    return TextChange(change.start + head, change.end - tail, new[head : len(new) - tail])


def apply(text: str, edits: Sequence[TextChange], start: int = 0, end: int | None = None) -> str:
    """Returns characters [start, end) of the text after `edits` of them, which are in order and do
    not overlap; all offsets are into `text`."""
    parts, at = [], start
    for edit in edits:
        parts += [text[at : edit.start], edit.text]
        at = edit.end
    return "".join([*parts, text[at:end]])


def counts(before: str, after: str) -> tuple[int, int]:
    """Returns how many lines were added and removed."""
    found = blocks(split(plain(before)), split(plain(after)))
    return sum(d - c for _, _, c, d in found), sum(b - a for a, b, _, _ in found)


def unified(
    before: str | None, after: str | None, name: str, limit: int = DIFF_LIMIT, *, old: str = ""
) -> str:
    """Returns a unified diff of the plain views with three lines of context; None for either means
    that there is no file. `old`: the name before, where that is another."""
    old_lines, new_lines = split(plain(before or "")), split(plain(after or ""))
    left = "/dev/null" if before is None else f"a/{old or name}"
    right = "/dev/null" if after is None else f"b/{name}"
    out = [f"--- {left}\n", f"+++ {right}\n"]
    size, cut = 0, 0
    for group in _groups(blocks(old_lines, new_lines)):
        for line in _hunk(old_lines, new_lines, group):
            size += len(line)
            if size > limit:
                cut += 1
            else:
                out.append(line)
    if cut:
        out.append(f"[{cut} more lines of this diff are left out]\n")
    return "".join(out) if len(out) > 2 else ""


def _groups(found: Sequence[Block]) -> Iterator[list[Block]]:
    group: list[Block] = []
    for block in found:
        if group and block[0] - group[-1][1] > 2 * CONTEXT:
            yield group
            group = []
        group.append(block)
    if group:
        yield group


def _hunk(old: Sequence[str], new: Sequence[str], group: Sequence[Block]) -> Iterator[str]:
    first, last = group[0], group[-1]
    lead = min(CONTEXT, first[0])
    trail = min(CONTEXT, len(old) - last[1])
    a, b = first[0] - lead, last[1] + trail
    c, d = first[2] - lead, last[3] + trail
    yield f"@@ -{_range(a, b)} +{_range(c, d)} @@\n"
    at = a
    for start, end, c0, d0 in group:
        yield from (_mark(" ", line) for line in old[at:start])
        yield from (_mark("-", line) for line in old[start:end])
        yield from (_mark("+", line) for line in new[c0:d0])
        at = end
    yield from (_mark(" ", line) for line in old[at:b])


def _range(start: int, end: int) -> str:
    """As diff(1) writes it: an empty range names the line before it."""
    count = end - start
    return f"{start + 1}" if count == 1 else f"{start + (1 if count else 0)},{count}"


def _mark(sign: str, line: str) -> str:
    return sign + line if line.endswith("\n") else f"{sign}{line}\n\\ No newline at end of file\n"
