"""Line differences: the smallest changes that turn one text into another, and unified diffs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from magy_server.core.ports import TextChange
from magy_server.tools.text import BREAK, line_end, plain, split, usual_end

Block = tuple[int, int, int, int]
"""Lines [a, b) of the one text became lines [c, d) of the other."""
CELLS = 200_000_000
"""Line pairs compared at most (25 MB of bits); beyond, one block stands for the whole middle."""
DIFF_LIMIT = 200_000
"""Characters of a unified diff; the rest is left out and counted."""


def blocks(before: Sequence[str], after: Sequence[str]) -> list[Block]:
    """The differing blocks, in order; equal lines between them."""
    head = 0
    shorter = min(len(before), len(after))
    while head < shorter and before[head] == after[head]:
        head += 1
    tail = 0
    while tail < shorter - head and before[-1 - tail] == after[-1 - tail]:
        tail += 1
    old, new = before[head : len(before) - tail], after[head : len(after) - tail]
    if not old and not new:
        return []
    if not old or not new or len(old) * len(new) > CELLS:
        return [(head, head + len(old), head, head + len(new))]
    return [(a + head, b + head, c + head, d + head) for a, b, c, d in _inner(old, new)]


def _inner(old: Sequence[str], new: Sequence[str]) -> Iterator[Block]:
    from rapidfuzz.distance import LCSseq

    last: Block | None = None
    for step in LCSseq.opcodes(old, new):
        if step.tag == "equal":
            continue
        a, b, c, d = step.src_start, step.src_end, step.dest_start, step.dest_end
        if last and last[1] == a and last[3] == c:  # a deletion and an insertion that touch
            last = (last[0], b, last[2], d)
            continue
        if last:
            yield last
        last = (a, b, c, d)
    if last:
        yield last


def changes(raw: str, new: str, start: int, end: int) -> list[TextChange]:
    """The changes that make characters [start, end) of `raw` read `new` (plain text).

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
        text = "".join(
            _with_end(new_lines[n], _pick(ends, a, b, n - c, usual)) for n in range(c, d)
        )
        found.append(_trim(raw, TextChange(offsets[a], offsets[b], text)))
    return found


def _end_nearby(raw: str, start: int, end: int) -> str:
    """The line end of the line that [start, end) ends in, else of the line before it."""
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


def _trim(raw: str, change: TextChange) -> TextChange:
    """Leaves equal characters at both ends out, without splitting a `\\r\\n`: that
    can happen at the end only, as first lines differ before their line ends do."""
    old, new = raw[change.start : change.end], change.text
    shorter = min(len(old), len(new))
    head = 0
    while head < shorter and old[head] == new[head]:
        head += 1
    tail = 0
    while tail < shorter - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    if tail and old[-tail] == "\n" and "\r" in (old[-tail - 1 : -tail], new[-tail - 1 : -tail]):
        tail -= 1
    return TextChange(change.start + head, change.end - tail, new[head : len(new) - tail])


def apply(text: str, edits: Sequence[TextChange]) -> str:
    """`edits` in order, not overlapping, all offsets into `text`."""
    parts, at = [], 0
    for edit in edits:
        parts += [text[at : edit.start], edit.text]
        at = edit.end
    return "".join([*parts, text[at:]])


def counts(before: str, after: str) -> tuple[int, int]:
    """Lines added and removed."""
    found = blocks(split(plain(before)), split(plain(after)))
    return sum(d - c for _, _, c, d in found), sum(b - a for a, b, _, _ in found)


def unified(before: str | None, after: str | None, name: str, limit: int = DIFF_LIMIT) -> str:
    """A unified diff of the plain views with three lines of context; None: there is no file."""
    old, new = split(plain(before or "")), split(plain(after or ""))
    left = "/dev/null" if before is None else f"a/{name}"
    right = "/dev/null" if after is None else f"b/{name}"
    out = [f"--- {left}\n", f"+++ {right}\n"]
    size, cut = 0, 0
    for group in _groups(blocks(old, new)):
        for line in _hunk(old, new, group):
            size += len(line)
            if size > limit:
                cut += 1
            else:
                out.append(line)
    if cut:
        out.append(f"[{cut} more lines of this diff are left out]\n")
    return "".join(out) if len(out) > 2 else ""


def _groups(found: Sequence[Block], context: int = 3) -> Iterator[list[Block]]:
    group: list[Block] = []
    for block in found:
        if group and block[0] - group[-1][1] > 2 * context:
            yield group
            group = []
        group.append(block)
    if group:
        yield group


def _hunk(
    old: Sequence[str], new: Sequence[str], group: Sequence[Block], context: int = 3
) -> Iterator[str]:
    first, last = group[0], group[-1]
    lead = min(context, first[0])
    trail = min(context, len(old) - last[1])
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
