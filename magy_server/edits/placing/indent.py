"""This module learns how the indentation that a model wrote relates to that of the file, from lines
that are both in its text and in the file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence

from magy_server.edits.finding.normal_forms import indentation

Pair = tuple[str, str]
"""The indentation of a line: as the model wrote it, and as it is in the file."""
Rule = Callable[[str], str | None]
WIDTHS = (4, 2, 8, 3, 1)


def unit_of(lines: Iterable[str]) -> str:
    """Returns one level of indentation as these lines have it: a tab or some spaces; "" when none
    is indented."""
    steps: Counter[int] = Counter()
    tabs, before = 0, 0
    for line in lines:
        if not line.strip():
            continue
        indent = indentation(line)
        if "\t" in indent:
            tabs += 1
        elif len(indent) != before:
            steps[abs(len(indent) - before)] += 1
            before = len(indent)
    spaced = sum(steps.values())
    if tabs and tabs >= spaced:
        return "\t"
    # the least step that is usual: a jump back over two levels is not one level
    usual = [step for step, count in steps.items() if step > 1 and count * 5 >= spaced]
    return " " * min(usual, default=0)


def is_of_file(pairs: Sequence[Pair], new: Sequence[str]) -> bool:
    """Whether the new text is indented as the file is, though old is not: all of it stands at least
    where the file has what it replaces, and old does not. Numbers before the lines of old only, or
    a first line that was cut off its indentation, come to this."""
    filled = [line for line in new if line.strip()]
    if not pairs or not filled:
        return False
    theirs, mine = (min(side, key=len) for side in zip(*pairs, strict=True))
    return not theirs.startswith(mine) and all(line.startswith(mine) for line in filled)


class Indents:
    """The map from the model's indentation to the file's."""

    def __init__(
        self,
        pairs: Sequence[Pair],
        new: Sequence[str],
        unit: str,
        added: Sequence[str] = (),
        below: Pair | None = None,
    ) -> None:
        """`pairs` of the lines found, in order, that of the first line of the text first;
        `new`: the lines to be indented, `added`: those of them that are not in the old text;
        `unit`: one level in the file; `below`: of a line that opens a block, how the lines added
        there begin, and those that the file has there."""
        self.unit = unit
        self.theirs = unit_of(new)
        self.first = pairs[0] if pairs else ("", "")
        self.first_only = False
        rest = list(pairs)
        indents = {indentation(line) for line in added if line.strip()}
        rule = _rule(rest, self.theirs, unit)
        if len(pairs) == 1 and rule and _absolute(pairs[0], new):
            rule, rest, self.first_only = _same, [], True
        elif _lost_a_blank(pairs):
            rule = _same  # a line to the letter tells that those with a mark are
            if all(a != b for a, b in pairs):
                rule = _agreed([_as_written(pairs), _shifted], pairs, indents, unit, least=True)
            rest = []  # what a line that is quoted became says nothing of one that is added
        elif rule is None and len(pairs) > 1:
            others = _rule(rest[1:], self.theirs, unit)
            stepped = _stepped(pairs)
            if others and (others is _same or stepped is None):
                rule = others
            else:
                rule = _agreed(list(filter(None, [stepped, others])), pairs, indents, unit)
            if rule is not None and rule is others:
                rest = rest[1:]
                self.first_only = True
        if below and rule and not self.first_only and rule(below[0]) != below[1]:
            rule = _stepped([*pairs, below]) or _unknown
        self.rule = rule
        self.table = _table(rest)
        self.changed = any(a != b for a, b in pairs)
        """The model's indentation is not the file's."""

    def line(self, text: str, first: bool) -> str | None:
        """Returns `text` indented as the file would have it; None when that is not known. `first`:
        it is the first line of the new text."""
        indent = indentation(text)
        mapped = self.map(indent, first)
        return None if mapped is None else mapped + text[len(indent) :]

    def map(self, indent: str, first: bool = False) -> str | None:
        if first and self.first_only:
            a, b = self.first
            if a and self.table and self.table.get(indent) == indent:
                return indent
            return b if indent == a or not indent.startswith(a) else b + indent[len(a) :]
        if self.table is not None and indent in self.table:
            return self.table[indent]
        if self.rule is not None:
            return self.rule(indent)
        return self._extrapolated(indent)

    def _extrapolated(self, indent: str) -> str | None:
        """From the nearest indentation that is known, in whole levels."""
        for known in sorted(self.table or (), key=len, reverse=True):
            if self.table and indent.startswith(known):
                levels = _levels(indent[len(known) :], self.theirs)
                return None if levels is None else self.table[known] + self.unit * levels
        for known in sorted(self.table or (), key=len):
            if self.table and known.startswith(indent):
                levels = _levels(known[len(indent) :], self.theirs)
                less = None if levels is None else self.unit * levels
                if less is not None and self.table[known].endswith(less):
                    return self.table[known][: len(self.table[known]) - len(less)]
        return None


def _levels(extra: str, unit: str) -> int | None:
    if not extra:
        return 0
    if not unit or extra != unit * (len(extra) // len(unit)):
        return None
    return len(extra) // len(unit)


def _absolute(pair: Pair, new: Sequence[str]) -> bool:
    """Only one line was found, and it lost its indentation: whether the lines after it kept
    theirs. They did if they fit the file then, and not otherwise."""
    theirs, mine = pair
    if len(theirs) >= len(mine) or len(new) < 2:
        return False
    opens = new[0].rstrip().endswith((":", "{", "(", "[", ",", "=>", "->", " do", " then"))
    after = next((indentation(line) for line in new[1:] if line.strip()), None)
    if after is None:
        return False
    fits = len(after) > len(mine) if opens else mine.startswith(after)
    if opens and any(line.strip() and not line.startswith(mine) for line in new[1:]):
        return False  # what closes the block again stands at its beginning
    relative = len(after) > len(theirs) if opens else theirs.startswith(after)
    return fits and not (relative and len(after) < len(mine) + 1)


def _table(pairs: Sequence[Pair]) -> dict[str, str] | None:
    """What became of each indentation; None if one became several."""
    found: dict[str, str] = {}
    for theirs, mine in pairs:
        if found.setdefault(theirs, mine) != mine:
            return None
    return found


def _same(indent: str) -> str:
    return indent


def _rule(pairs: Sequence[Pair], theirs: str, unit: str) -> Rule | None:
    """Returns the first of the rules, simplest first, that explains all of `pairs`."""
    if not pairs:
        return None
    for rule in _rules(pairs, theirs, unit):
        if all(rule(a) == b for a, b in pairs):
            return rule
    return None


def _lost_a_blank(pairs: Sequence[Pair]) -> bool:
    """Lines of a patch without the blank that marks them have one too few; those that are added
    have their mark, and are as they should be. In a text that was moved by a blank, they are not.
    Of the first line alone that is another rule."""
    lost = [b == f" {a}" for a, b in pairs]
    return (
        any(lost)
        and all(a == b or b == f" {a}" for a, b in pairs)
        and not (lost[0] and len(lost) > 1 and not any(lost[1:]))
        and not any("\t" in b for _, b in pairs)
    )


def _as_written(pairs: Sequence[Pair]) -> Rule:
    """What the file has is meant as it is; what a line with a blank too few has lacks it."""
    there = {b for _, b in pairs}
    lost = {a for a, b in pairs if a != b}
    return lambda indent: f" {indent}" if indent in lost - there else indent


def _shifted(indent: str) -> str:
    """As if all lines lacked a blank."""
    return f" {indent}"


def _stepped(pairs: Sequence[Pair]) -> Rule | None:
    """Other steps from level to level than the file's: all lines known lie on one line."""
    widths = dict.fromkeys((len(a), len(b)) for a, b in pairs)
    if len(widths) < 2 or any("\t" in a + b for a, b in pairs):
        return None
    (low, base), (high, top) = min(widths), max(widths)
    if high == low or top <= base:
        return None
    rise, run = top - base, high - low
    if any((b - base) * run != (a - low) * rise for a, b in widths):
        return None

    def rule(indent: str) -> str | None:
        more, rest = divmod((len(indent) - low) * rise, run)
        return None if rest or base + more < 0 else " " * (base + more)

    return rule


def _agreed(
    rules: Sequence[Rule],
    pairs: Sequence[Pair],
    indents: Collection[str],
    unit: str,
    least: bool = False,
) -> Rule | None:
    """The first of the `rules` that put all of `indents` (or the `least` of them) at levels of the
    file, if all of those put them at the same; else one that knows none."""
    there = {_columns_of(b) for _, b in pairs}
    fit: dict[tuple[str, ...], Rule] = {}
    for rule in rules:
        found = [rule(indent) for indent in sorted(indents, key=len)]
        known = tuple(one for one in found if one is not None)
        if len(known) == len(found) and all(
            _columns_of(one) in there or (unit and _columns_of(one) % _columns_of(unit) == 0)
            for one in known[: 1 if least else None]
        ):
            fit.setdefault(known, rule)
    return next(iter(fit.values())) if len(fit) == 1 else _unknown


def _columns_of(indent: str) -> int:
    return len(indent.expandtabs(4))


def _unknown(_: str) -> None:
    return None


def _rules(pairs: Sequence[Pair], theirs: str, unit: str) -> Iterable[Rule]:
    flat = all(not a and not b for a, b in pairs)
    foreign = unit and theirs and ("\t" in unit) != ("\t" in theirs)
    if not (flat and foreign):
        yield _same
    a, b = pairs[0]
    if b.endswith(a):
        more = b[: len(b) - len(a)]
        yield lambda indent: more + indent
    if a.endswith(b):
        less = a[: len(a) - len(b)]
        yield lambda indent: indent[len(less) :] if indent.startswith(less) else None
    guess = len(unit) if "\t" not in unit else len(theirs)
    for width in _widths(guess or 4, pairs[0]):
        yield _columns(width, pairs[0], tabs=True)
        yield _columns(width, pairs[0], tabs=False)
    if "\t" not in unit + theirs and unit and theirs:
        yield lambda indent: _scaled(indent, theirs, unit)


def _widths(guess: int, first: Pair) -> Iterable[int]:
    """Of a tab, the likeliest first. A model leaves out levels, but adds none: with more columns
    than the file has, its tabs are narrower."""
    theirs, mine = (len(indent.expandtabs(guess)) for indent in first)
    fit = [w for w in WIDTHS if len(first[0].expandtabs(w)) == len(first[1].expandtabs(w))]
    return dict.fromkeys((*(fit if theirs > mine else ()), guess, *WIDTHS))


def _columns(width: int, first: Pair, tabs: bool) -> Rule:
    """Tabs of `width` columns written as spaces, or the reverse, shifted as `first` is."""
    shift = len(first[1].expandtabs(width)) - len(first[0].expandtabs(width))

    def rule(indent: str) -> str | None:
        columns = len(indent.expandtabs(width)) + shift
        if columns < 0:
            return None
        return "\t" * (columns // width) + " " * (columns % width) if tabs else " " * columns

    return rule


def _scaled(indent: str, theirs: str, unit: str) -> str | None:
    levels = _levels(indent, theirs)
    return None if levels is None else unit * levels
