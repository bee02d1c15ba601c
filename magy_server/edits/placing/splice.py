"""This module makes the model's change, not its text: diff(old, new), in the lines that are there.

Lines that the diff does not touch keep their bytes, however the model wrote them. A line that
changes is indented as the file has it, and changes only in the words the model changed.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from magy_server.dataclass import dataclass
from magy_server.edits.finding.normal_forms import indentation, only_closers, squeeze, weight
from magy_server.edits.finding.source import Source
from magy_server.edits.model import TextChange
from magy_server.edits.placing import within_line
from magy_server.edits.placing.decorations import Wanted
from magy_server.edits.placing.empty_lines import reconciled
from magy_server.edits.placing.indent import Indents, Pair, is_of_file
from magy_server.edits.placing.typography import rewriting
from magy_server.edits.rebasing.diff import Block, blocks, changes


class Unsafe(Exception):
    """The place is known, but what the change comes to there is not."""


@dataclass(frozen=True, slots=True)
class Match:
    """Where the lines of a hunk are. `at`: the line of the file for each line of `old`; None for
    one that the file does not have there."""

    tier: str
    wanted: Wanted
    at: Sequence[int | None]
    weak: frozenset[int] = frozenset()
    """Lines of `old` that only resemble theirs: they may stand around a change, not in it."""
    elided: frozenset[int] = frozenset()
    """Lines of `old` that stand for any number of lines."""

    @property
    def old(self) -> Sequence[str]:
        return self.wanted.old

    @property
    def new(self) -> Sequence[str]:
        return self.wanted.new

    @property
    def known(self) -> list[int]:
        return [at for at in self.at if at is not None]

    @property
    def span(self) -> tuple[int, int]:
        """The lines [first, last) that it covers."""
        first = next(at for at in self.at if at is not None)
        return first, next(at for at in reversed(self.at) if at is not None) + 1


Op = tuple[int, int, list[str]]
"""Lines [first, last) become these."""


def splice(source: Source, match: Match) -> tuple[TextChange, ...]:
    """The changes in `source.raw`. Raises Unsafe."""
    ended = _ended(source, match)
    ops = _to_the_end(source, _Splice(source, match).ops(), ended)
    return tuple(change for op in ops for change in _change(source, op, ended))


def _ended(source: Source, match: Match) -> bool:
    """Whether the text has a line end at its end afterwards: as it is now, unless the hunk shows
    that end, and says otherwise."""
    shown = match.span[1] == len(source.lines) and match.wanted.old_ended is source.ended
    return match.wanted.new_ended if shown else source.ended


def _to_the_end(source: Source, ops: list[Op], ended: bool) -> list[Op]:
    """The same, with the last line of all among those that are replaced if its end changes."""
    lines, count = source.lines, len(source.lines)
    if not ops or ops[-1][1] < count:
        return ops if ended is source.ended else [*ops, (count - 1, count, [lines[-1]])]
    *before, (first, _, texts) = ops
    if ended or texts or not first or (before and before[-1][1] == first):
        return ops
    return [*before, (first - 1, count, [lines[first - 1]])]


def reindented(source: Source, match: Match) -> bool:
    """Whether the model's indentation is not that of the file."""
    return any(
        at is not None and indentation(source.lines[at]) != indentation(line)
        for line, at in zip(match.old, match.at, strict=True)
        if line.strip()
    )


def _change(source: Source, op: Op, ended: bool) -> list[TextChange]:
    first, last, texts = op
    count = len(source.lines)
    if first == last == count and not source.ended and count:
        first -= 1  # what follows a last line without a line end begins with one
        texts = [source.lines[first], *texts]
    text = "".join(f"{line}\n" for line in texts)
    if last == count and not ended:
        text = text.removesuffix("\n")
    return changes(source.raw, text, source.offset(first), source.offset(last))


class _Splice:
    def __init__(self, source: Source, match: Match) -> None:
        self.lines = source.lines
        self.match = match
        self.at = match.at
        self.old, self.new = match.old, match.new
        if rewrite := rewriting(self._known(), source.text):
            self.old, self.new = tuple(map(rewrite, match.old)), tuple(map(rewrite, match.new))
        known = self._known()
        if is_of_file(_indents(known), self.new) and not self._keeps_its_own(known):
            self.old = self._as_in_file()  # only so are the lines the same that are
            known = self._known()
        added = [line for line in self.new if line not in self.old]
        unit = source.unit(*match.span)
        self.indents = Indents(_indents(known), [*self.new], unit, added, self._opened())
        self.noisy = any(a != a.rstrip() and b == b.rstrip() for a, b in known)
        """The model writes blanks at the ends of lines where the file has none."""
        told = [
            weight(squeeze(a)) for a, b in known if within_line.same_signs(a.strip(), b.strip())
        ]
        self.certain = sum(told) >= 1 or sum(weight(squeeze(a)) for a, _ in known) >= 3
        """That these are the lines which were meant does not hang on the blanks between words."""
        self.blocks = self._blocks()

    def _known(self) -> list[tuple[str, str]]:
        """Lines of old that say something, and what the file has there."""
        return [
            (line, self.lines[at])
            for n, (line, at) in enumerate(zip(self.old, self.at, strict=True))
            if at is not None and line.strip() and n not in self.match.weak
        ]

    def _keeps_its_own(self, known: Sequence[tuple[str, str]]) -> bool:
        """Whether lines of old stay in new as they are quoted, and not as the file has them. Raises
        Unsafe: some lines say the one, some the other."""
        differing = [(a, b) for a, b in known if a != b]
        apart = [(a, b) for a, b in differing if not only_closers([a])]
        if not apart:
            return False
        own, of_file = (sum(line in self.new for line in side) for side in zip(*apart, strict=True))
        if own <= of_file:
            return False
        edges = [line for line in self.new if line.strip()]
        if differing[0][1] == edges[0] or differing[-1][1] == edges[-1]:
            raise Unsafe(
                "some lines of new are indented like old, some like the file; quote the lines "
                "of old with the indentation that they have in the file"
            )
        return True

    def _blocks(self) -> Sequence[Block]:
        """What changes. Blanks in an empty line do not, where they are not quoted as they are."""
        found = blocks(self.old, self.new)
        empty = [
            self.lines[at] == line
            for line, at in zip(self.old, self.at, strict=True)
            if at is not None and not line.strip()
        ]
        if all(empty):
            return found
        return blocks(*([line if line.strip() else "" for line in side]
                        for side in (self.old, self.new))) or found  # fmt: skip

    def _as_in_file(self) -> tuple[str, ...]:
        return tuple(
            indentation(self.lines[at]) + line.lstrip() if at is not None and line.strip() else line
            for line, at in zip(self.old, self.at, strict=True)
        )

    def _opened(self) -> Pair | None:
        """Of the first line that opens a block which lines are added to: how they are indented,
        and how those of the file are."""
        for a, b, c, d in blocks(self.old, self.new):
            at = self.at[a - 1] if a else None
            if a != b or c == d or at is None or not self.old[a - 1].rstrip().endswith((":", "{")):
                continue
            theirs, mine = indentation(self.new[c]), indentation(self.lines[at])
            below = next((line for line in self.lines[at + 1 : at + 5] if line.strip()), "")
            deeper = len(theirs) > len(indentation(self.old[a - 1])) and self.new[c].strip()
            if deeper and len(indentation(below)) > len(mine):
                return theirs, indentation(below)
        return None

    def ops(self) -> list[Op]:
        gaps = self._gaps(self.blocks)
        ops: list[Op] = []
        for block in self.blocks:
            gap = next((g for g in gaps if g[0] < block[0] and block[1] <= g[1]), None)
            if gap is None:
                ops += self._block(block)
        return sorted(ops + [self._gap(*gap) for gap in gaps], key=lambda op: op[:2])

    def _gaps(self, found: Sequence[Block]) -> list[tuple[int, int, int, int]]:
        """The gaps between two lines that stay, with a change in them, where the file has another
        number of empty lines than the model thinks: (old line before, after, new line before,
        after)."""
        kept = _kept(found, len(self.old))
        solid = [n for n, line in enumerate(self.old) if line.strip()]
        gaps = []
        for a, b in itertools.pairwise(solid):
            before, after = self.at[a], self.at[b]
            if before is None or after is None or a not in kept or b not in kept:
                continue
            if after - before == b - a or any(
                line.strip() for line in self.lines[before + 1 : after]
            ):
                continue
            if self.new[kept[a] + 1 : kept[b]] != self.old[a + 1 : b]:
                gaps.append((a, b, kept[a], kept[b]))
        return gaps

    def _gap(self, a: int, b: int, first: int, last: int) -> Op:
        before, after = self.at[a], self.at[b]
        if before is None or after is None:
            raise Unsafe("a line next to the change is not in the file")
        texts = [self._fresh(n) for n in range(first + 1, last)]
        blanks = self.lines[before + 1 : after]
        found = reconciled(self.lines[before], blanks, self.lines[after], texts, b - a - 1)
        if found is None:
            raise Unsafe(
                f"the file has {len(blanks)} empty lines between lines {before + 1} and "
                f"{after + 1}, old has {b - a - 1}: it is not clear on which side of them the new "
                "lines go"
            )
        return before + 1, after, found

    def _block(self, block: Block) -> list[Op]:
        a, b, c, d = block
        for n in range(a, b):
            self._check(n)
        there = [at for at in self.at[a:b] if at is not None]
        if not there:
            where = self._between(a, b)
            texts = [self._fresh(n) for n in range(c, d)]
            return [(where, where, texts)] if texts else []
        first, last = there[0], there[-1] + 1
        known = set(there)
        for n in range(first, last):
            if n not in known and self.lines[n].strip():
                raise Unsafe(
                    f"line {n + 1} is between lines that the edit replaces, but not in old"
                )
        return [self._replaced(block, first, last)]

    def _check(self, n: int) -> None:
        if n in self.match.elided:
            raise Unsafe('the edit would delete what its "..." stands for')
        if not self.old[n].strip():
            return
        at = self.at[n]
        if at is None or n in self.match.weak:
            raise Unsafe(f"the line that the edit replaces is not there: {self.old[n].strip()}")
        if self._closes_another(n, at):
            raise Unsafe(
                f"line {at + 1} closes a different block than the line that the edit replaces"
            )
        if not self.certain and not within_line.same_signs(
            self.old[n].strip(), self.lines[at].strip()
        ):
            raise Unsafe(f"the words of line {at + 1} are spaced differently than in old")

    def _closes_another(self, n: int, at: int) -> bool:
        """Old line `n` only closes a block, and is not as deep as line `at`, though all other lines
        are as deep as in old."""
        quoted, there = self.old[n], self.lines[at]
        if not only_closers([quoted]) or indentation(quoted) == indentation(there):
            return False
        told = _indents([(a, b) for a, b in self._known() if not only_closers([a])])
        return bool(told) and all(a == b for a, b in told)

    def _between(self, a: int, b: int) -> int:
        """The line before which new lines go that stand between old lines a - 1 and b."""
        before, before_at = self._near(range(a - 1, -1, -1))
        after, after_at = self._near(range(b, len(self.old)))
        if not any(
            at is not None and n not in self.match.weak
            for n, at in ((before, before_at), (after, after_at))
        ):
            raise Unsafe("neither of the lines around the new ones is there")
        if before_at is None or (before in self.match.weak and after_at is not None):
            if after_at is None:
                raise Unsafe("the line after the new ones is not there")
            if before_at is not None and self._solid(before_at + 1, after_at):
                raise Unsafe("there are other lines where the new ones would go")
            return after_at
        if after_at is None:
            return before_at + 1
        if self._solid(before_at + 1, after_at):
            raise Unsafe("there are other lines where the new ones would go")
        return before_at + 1 if b - a or not self.lines[before_at + 1 : after_at] else after_at

    def _solid(self, first: int, last: int) -> bool:
        return any(line.strip() for line in self.lines[first:last])

    def _near(self, old: range) -> tuple[int, int | None]:
        """The next of these old lines that is not empty, and where it is."""
        for n in old:
            if n in self.match.elided:
                return n, None
            if self.at[n] is not None or self.old[n].strip():
                return n, self.at[n]
        return -1, None

    def _replaced(self, block: Block, first: int, last: int) -> Op:
        a, b, c, d = block
        pairs = within_line.pairs(self.old[a:b], self.new[c:d])
        back = {new: old for old, new in pairs.items()}
        texts: list[str] = []
        done: int | None = None
        for n in range(d - c):
            at = self.at[a + back[n]] if n in back else None
            if at is None:
                texts.append(self._fresh(c + n))
                continue
            if done is not None:
                texts += self._kept_blanks(done, at, a, b)
            texts.append(self._merged(a + back[n], at, c + n))
            done = at
        return first, last, self._beside_blanks(a, b, texts)

    def _beside_blanks(self, a: int, b: int, texts: list[str]) -> list[str]:
        """`texts` in the place of old lines [a, b). The empty lines of the file around them, where
        old has none, stay: those at the edges of the new text are the same ones."""
        if not any(line.strip() for line in texts):
            return texts
        above, below = len(self._left_out(a)), len(self._left_out(b))
        low, high = 0, len(texts)
        while low < above and not texts[low].strip():
            low += 1
        while len(texts) - high < below and not texts[high - 1].strip():
            high -= 1
        return texts[low:high]

    def _left_out(self, edge: int) -> list[str]:
        """The empty lines of the file before old line `edge`, where old has none."""
        if not 0 < edge < len(self.old):
            return []
        before, after = self.at[edge - 1], self.at[edge]
        if before is None or after is None:
            return []
        beside = (self.old[edge - 1], self.old[edge])
        blanks = self.lines[before + 1 : after]
        if any(line.strip() for line in blanks) or not all(line.strip() for line in beside):
            return []
        return blanks

    def _kept_blanks(self, done: int, at: int, a: int, b: int) -> list[str]:
        """The empty lines between two lines that were changed, which the model left out."""
        known = {where for where in self.at[a:b] if where is not None}
        between = range(done + 1, at)
        return [] if known & set(between) else [self.lines[n] for n in between]

    def _fresh(self, n: int) -> str:
        line = self.new[n]
        if not line.strip():
            return "" if self.noisy or not line else self.indents.map(line) or ""
        text = self.indents.line(line, first=n == 0)
        if text is None:
            raise Unsafe(f"it is not clear how far to indent this line: {line.strip()}")
        return text.rstrip() if self.noisy else text

    def _merged(self, old: int, at: int, new: int) -> str:
        """Line `at` of the file with the change from old line `old` to new line `new`."""
        quoted, wanted, there = self.old[old], self.new[new], self.lines[at]
        if indentation(quoted) == indentation(wanted):
            lead = indentation(there)
        else:
            indented = self.indents.map(indentation(wanted), first=new == 0)
            if indented is None:
                raise Unsafe(f"it is not clear how far to indent this line: {wanted.strip()}")
            lead = indented
        # blanks at the end go with the line that changes, unless the model quoted other ones
        tail = _tail(there) if _tail(wanted) and _tail(quoted) == _tail(wanted) else _tail(wanted)
        if self.noisy and not _tail(there):
            tail = ""
        return lead + within_line.merge(quoted.strip(), wanted.strip(), there.strip()) + tail


def _indents(known: Sequence[tuple[str, str]]) -> list[Pair]:
    return [(indentation(a), indentation(b)) for a, b in known]


def _tail(line: str) -> str:
    return line[len(line.rstrip()) :]


def _kept(found: Sequence[Block], count: int) -> dict[int, int]:
    """The lines of old that stay, and their numbers in new."""
    kept: dict[int, int] = {}
    at, shift = 0, 0
    for a, b, _, d in found:
        kept.update((n, n + shift) for n in range(at, a))
        at, shift = b, d - b
    kept.update((n, n + shift) for n in range(at, count))
    return kept
