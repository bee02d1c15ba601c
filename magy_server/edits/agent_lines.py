"""A `Review` tells which lines of a text are agents' and not decided about, and what they replaced.

It knows no files: the room `reviews` builds on it. A review is the text as it is now and its
*parts*: the ranges of lines that agents' changes came to, each with the lines that it replaced.
Everything else is the same in the *base*, which is the text with all parts replaced back. So there
is nothing to keep in step: what a person changes outside the parts is in the base, too, by
definition, and to accept a part is to forget it.

Lines are strings with their own line ends; all numbers are of lines, from 0, ends exclusive.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TypeAlias

from magy_server.dataclass import dataclass
from magy_server.edits.placing.within_line import likeness
from magy_server.edits.rebasing.diff import Block, blocks
from magy_server.edits.text import usual_end

ALIKE = 0.5
"""Lines less alike than this are not what one another became."""
COMPARED = 20_000
"""Pairs of lines of one change that are compared, at most: of more lines, those that are as far
down, and a few more."""
FEWEST = 16
"""Lines that a line is compared with, where there are more; else the change stays one."""
PERSON = -1
"""In marks: the person's own lines, within a part."""


@dataclass(frozen=True, slots=True)
class Mark:
    """Lines [start, end) come from `by`: the number of an agent's change, or `PERSON`. Empty: `by`
    removed lines there. Marks that touch make one part, which replaced `removed` lines in all."""

    start: int
    end: int
    by: int
    removed: int = 0


@dataclass(frozen=True, slots=True)
class Part:
    """Lines [start, end) of the text, instead of `old`. `marks` say whose they are, without gaps,
    counted from `start`."""

    start: int
    end: int
    old: tuple[str, ...]
    marks: tuple[Mark, ...]

    @property
    def agents(self) -> tuple[int, ...]:
        """Returns the agents' changes, in order of appearance, each once."""
        return tuple(dict.fromkeys(mark.by for mark in self.marks if mark.by != PERSON))

    @property
    def amended(self) -> bool:
        return any(mark.by == PERSON for mark in self.marks)

    def moved(self, by: int) -> Part:
        return replace(self, start=self.start + by, end=self.end + by) if by else self


@dataclass(frozen=True, slots=True)
class Review:
    """`parts` are in order, and there is an unchanged line between any two."""

    text: Sequence[str]
    parts: tuple[Part, ...] = ()

    @property
    def base(self) -> list[str]:
        return put_back(self.text, self.parts)

    @property
    def marks(self) -> tuple[Mark, ...]:
        """What `compare` needs, with base and text, to make the same review again."""
        return tuple(
            Mark(
                part.start + mark.start,
                part.start + mark.end,
                mark.by,
                0 if number else len(part.old),
            )
            for part in self.parts
            for number, mark in enumerate(part.marks)
        )


def compare(base: Sequence[str], text: Sequence[str], marks: Iterable[Mark]) -> Review:
    """The review with this base. Marks that cannot be right for these texts are only taken as hints
    whose lines are whose."""
    marks = sorted(marks, key=lambda mark: (mark.start, mark.end))
    return _marked(base, text, marks) or _guessed(base, text, marks)


def _marked(base: Sequence[str], text: Sequence[str], marks: Sequence[Mark]) -> Review | None:
    parts: list[Part] = []
    at, based = 0, 0
    for run in _runs(marks):
        start, end = run[0].start, run[-1].end
        old = sum(mark.removed for mark in run)
        based += start - at
        own = tuple(Mark(m.start - start, m.end - start, m.by) for m in run)
        parts.append(Part(start, end, tuple(base[based : based + old]), own))
        at, based = end, based + old
    if at > len(text) or put_back(text, parts) != list(base):
        return None
    return Review(text, tuple(part for part in parts if _differs(text, part)))


def _runs(marks: Sequence[Mark]) -> list[list[Mark]]:
    """Marks that touch, together; what overlaps is cut off."""
    runs: list[list[Mark]] = []
    for mark in marks:
        if runs and mark.start <= runs[-1][-1].end:
            end = runs[-1][-1].end
            runs[-1].append(replace(mark, start=end, end=max(end, mark.end)))
        else:
            runs.append([mark])
    return runs


def _guessed(base: Sequence[str], text: Sequence[str], marks: Sequence[Mark]) -> Review:
    known = tuple(dict.fromkeys(mark.by for mark in marks if mark.by != PERSON)) or (0,)
    parts = []
    for a, b, c, d in blocks(base, text):
        near = [mark for mark in marks if mark.start <= d and c <= mark.end]
        agents = tuple(dict.fromkeys(mark.by for mark in near if mark.by != PERSON)) or known
        by = [agents[0]] * (d - c)
        for mark in near:
            for line in range(max(c, mark.start), min(d, mark.end)):
                by[line - c] = mark.by
        parts.append(_part(c, tuple(base[a:b]), by, agents))
    return Review(text, tuple(parts))


def _differs(text: Sequence[str], part: Part) -> bool:
    return list(text[part.start : part.end]) != list(part.old)


def put_back(text: Sequence[str], parts: Sequence[Part]) -> list[str]:
    """Returns the text with the parts replaced back. A line without an end, which was the last one
    somewhere, gets one where others follow."""
    lines: list[str] = []
    at = 0
    for part in parts:
        add(lines, text[at : part.start], text[max(0, at - 1) : at])
        add(lines, part.old)
        at = part.end
    add(lines, text[at:], text[max(0, at - 1) : at])
    return lines


def add(lines: list[str], more: Sequence[str], like: Sequence[str] = ()) -> None:
    """Puts more lines behind these. `like`: a line that has the end which the last one may need."""
    if more and lines and not ends(lines[-1]):
        lines[-1] += usual_end("".join((*more[:1], *like))) or "\n"
    lines += more


def ends(line: str) -> bool:
    return line.endswith(("\n", "\r"))


# --- changes of the text --------------------------------------------------------------------------


def carry(review: Review, text: Sequence[str], by: int = PERSON) -> Review:
    """The review once its text reads `text`. What an agent changed is a part from then on; what the
    person changed only within parts: elsewhere it is in the base, too."""
    parts, changes = review.parts, blocks(review.text, text)
    if by == PERSON and parts:
        changes = list(_by_line(review, text, changes))
    found: list[Part] = []
    i = j = delta = 0
    while i < len(parts) or j < len(changes):
        meet = i < len(parts) and j < len(changes) and _meet(parts[i], changes[j], text, by)
        if j == len(changes) or (i < len(parts) and not meet and parts[i].end <= changes[j][0]):
            found.append(parts[i].moved(delta))
            i += 1
            continue
        first = i, j
        i, j = _cluster(parts, changes, text, by, i, j)
        cluster = _Cluster(review.text, text, parts[first[0] : i], changes[first[1] : j], by)
        found += cluster.parts()
        delta = changes[j - 1][3] - changes[j - 1][1]
    return Review(text, joined(text, found))


def _by_line(review: Review, text: Sequence[str], changes: Sequence[Block]) -> Iterator[Block]:
    """Those that touch parts line by line."""
    ends = [part.end for part in review.parts]
    for change in changes:
        at = bisect_left(ends, change[0])
        touches = at < len(ends) and review.parts[at].start <= change[1]
        yield from _strokes(review.text, text, change) if touches else (change,)


def _strokes(before: Sequence[str], after: Sequence[str], change: Block) -> Iterator[Block]:
    """A change as those of single lines, where lines became lines like them: of all that a person
    typed since, only what is in a part's lines is in the part."""
    a, b, c, d = change
    most = COMPARED // max(1, b - a)
    if (b - a) * (d - c) <= 1 or most < min(FEWEST, d - c):
        yield change
        return
    for old, new in _likest(before[a:b], after[c:d], most):
        if (a, c) != (change[0] + old, change[2] + new):
            yield a, change[0] + old, c, change[2] + new
        a, c = change[0] + old + 1, change[2] + new + 1
        yield a - 1, a, c - 1, c
    if (a, c) != (b, d):
        yield a, b, c, d


def _likest(old: Sequence[str], new: Sequence[str], most: int) -> list[tuple[int, int]]:
    """Pairs of lines that are alike, in order, as like as can be; `most` are compared with one."""
    best: list[tuple[float, _Pairs]] = [(0.0, None)] * (len(new) + 1)
    for n, line in enumerate(old):
        low = max(0, min(n * len(new) // len(old) - most // 2, len(new) - most))
        row = best[: low + 1]
        for m in range(low, min(len(new), low + most)):
            like = likeness(line, new[m])
            score, pairs = best[m]
            found = max(best[m + 1], row[m], key=_score)
            if like >= ALIKE and score + like > found[0]:
                found = score + like, (n, m, pairs)
            row.append(found)
        last = row[-1]
        row += [max(one, last, key=_score) for one in best[len(row) :]]
        best = row
    found_pairs, left = [], best[-1][1]
    while left is not None:
        found_pairs.append(left[:2])
        left = left[2]
    return found_pairs[::-1]


_Pairs: TypeAlias = "tuple[int, int, _Pairs] | None"


def _score(one: tuple[float, _Pairs]) -> float:
    return one[0]


def _cluster(
    parts: Sequence[Part], changes: Sequence[Block], text: Sequence[str], by: int, i: int, j: int
) -> tuple[int, int]:
    """Where those end that change `j` meets, and the changes that those meet, and so on."""
    first, j = i, j + 1
    while True:
        if i < len(parts) and _meet(parts[i], changes[j - 1], text, by):
            i += 1
        elif i > first and j < len(changes) and _meet(parts[i - 1], changes[j], text, by):
            j += 1
        else:
            return i, j


def _meet(part: Part, change: Block, text: Sequence[str], by: int) -> bool:
    """What touches a part is in it when an agent wrote it; when the person did, only if that is
    what the part had replaced: they put it back."""
    a, b, c, d = change
    if b < part.start or part.end < a:
        return False
    if max(a, part.start) < min(b, part.end) or a < part.start == part.end < b:
        return True
    if part.start < a == b < part.end or by != PERSON:
        return True
    # to find a line again that only closes a block means nothing
    return any(line in part.old and any(map(str.isalnum, line)) for line in text[c:d])


class _Cluster:
    """Parts, and changes that meet them (an agent's may meet none). `before` became `after`."""

    def __init__(
        self,
        before: Sequence[str],
        after: Sequence[str],
        parts: Sequence[Part],
        changes: Sequence[Block],
        by: int,
    ) -> None:
        self._before, self._after = before, after
        self._parts, self._changes, self._by = parts, list(changes), by
        first, last = changes[0], changes[-1]
        self._low = min([first[0], *(part.start for part in parts)])
        self._high = max([last[1], *(part.end for part in parts)])
        if by == PERSON and parts:
            self._leave_out()

    def parts(self) -> list[Part]:
        """What is now, where something of an agent's is left in it."""
        if not self._parts and self._by == PERSON:
            return []
        first, last = self._changes[0], self._changes[-1]
        start = self._low + first[2] - first[0]
        end = self._high + last[3] - last[1]
        old, owners = self._replaced()
        whose = self._whose()
        found = []
        for a, b, c, d in blocks(old, self._after[start:end]):
            removers = [agent for line in owners[a:b] for agent in line]
            agents = dict.fromkeys([*whose[c:d], *removers])
            agents.pop(PERSON, None)
            if agents:
                found.append(_part(start + c, tuple(old[a:b]), whose[c:d], tuple(agents)))
        return found

    def _leave_out(self) -> None:
        """Lines of the person's beside the parts, which the same stroke changed, stay outside:
        line by line they are taken to have become the first, or the last, of what was written."""
        low, high = self._parts[0].start, self._parts[-1].end
        a, b, c, d = self._changes[0]
        if a < low:
            own = min(b, low) - a
            self._changes[0] = (a + own, b, min(d, c + own), d)
        a, b, c, d = self._changes[-1]
        if b > high:
            own = b - max(a, high)
            self._changes[-1] = (a, b - own, c, max(c, d - own))
        self._low, self._high = low, high

    def _replaced(self) -> tuple[list[str], list[tuple[int, ...]]]:
        """What all of it had replaced, and for each line which agents had."""
        old: list[str] = []
        owners: list[tuple[int, ...]] = []
        at = self._low
        by = () if self._by == PERSON else (self._by,)
        for part in self._parts:
            own, over = self._kept(at, part.start), self._written_over(part)
            for lines in (own, part.old, over):
                add(old, lines)
            owners += [by] * len(own) + [part.agents] * len(part.old) + [by] * len(over)
            at = part.end
        own = self._kept(at, self._high)
        add(old, own)
        return old, owners + [by] * len(own)

    def _written_over(self, part: Part) -> list[str]:
        """The person's own lines within a part that an agent now replaces: from then on they are in
        the base, so that no reject takes them back."""
        if self._by == PERSON:
            return []
        own = [mark for mark in part.marks if mark.by == PERSON]
        return [
            self._before[line]
            for mark in own
            for line in range(part.start + mark.start, part.start + mark.end)
            if any(a <= line < b for a, b, _, _ in self._changes)
            and self._before[line] not in part.old
        ]

    def _kept(self, start: int, end: int) -> list[str]:
        """The person's lines between parts; those that they merely deleted are gone for good."""
        lines: list[str] = []
        for line in range(start, end):
            gone = self._by == PERSON and any(
                a <= line < b and c == d for a, b, c, d in self._changes
            )
            if not gone:
                lines.append(self._before[line])
        return lines

    def _whose(self) -> list[int]:
        """For each line that is there now."""
        before = [PERSON] * (self._high - self._low)
        for part in self._parts:
            for mark in part.marks:
                for line in range(mark.start, mark.end):
                    before[part.start + line - self._low] = mark.by
        now: list[int] = []
        at = self._low
        for a, b, c, d in self._changes:
            now += before[at - self._low : a - self._low] + [self._by] * (d - c)
            at = b
        return now + before[at - self._low :]


def _part(start: int, old: tuple[str, ...], whose: Sequence[int], agents: Sequence[int]) -> Part:
    """An agent that only removed lines, or whose lines the person has all rewritten, has an empty
    mark."""
    marks = [Mark(0, 0, agent) for agent in agents if agent not in whose]
    for line, by in enumerate(whose):
        if line and marks[-1].by == by:
            marks[-1] = replace(marks[-1], end=line + 1)
        else:
            marks.append(Mark(line, line + 1, by))
    return Part(start, start + len(whose), old, tuple(marks))


def joined(text: Sequence[str], parts: Iterable[Part]) -> tuple[Part, ...]:
    """Joins parts that touch, and drops those that equal the base."""
    found: list[Part] = []
    for part in parts:
        if found and found[-1].end == part.start:
            last, shift = found[-1], part.start - found[-1].start
            marks = [replace(m, start=m.start + shift, end=m.end + shift) for m in part.marks]
            old = list(last.old)
            add(old, part.old)
            found[-1] = Part(last.start, part.end, tuple(old), (*last.marks, *marks))
        else:
            found.append(part)
    return tuple(part for part in _ended(text, found) if _differs(text, part))


def _ended(text: Sequence[str], parts: Sequence[Part]) -> Iterator[Part]:
    """With an end to what was the last line of the base, where lines now follow it there."""
    behind = len(text)
    free = True
    found = []
    for part in reversed(parts):
        free = free and part.end == behind
        if part.old:
            if not free and not ends(part.old[-1]):
                end = usual_end("".join(text[max(0, part.end - 1) : part.end + 1])) or "\n"
                part = replace(part, old=(*part.old[:-1], part.old[-1] + end))
            free = False
        behind = part.start
        found.append(part)
    return reversed(found)
