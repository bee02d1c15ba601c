"""How the indentation a model wrote relates to that of the file, learned from lines that are both
in its text and in the file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from magy_server.edits.keys import indentation

Pair = tuple[str, str]
"""The indentation of a line: as the model wrote it, and as it is in the file."""
Rule = Callable[[str], str | None]
WIDTHS = (4, 2, 8, 3, 1)
SAMPLE = 2000
"""Lines of a file from which its own unit is learned."""


def unit_of(lines: Iterable[str]) -> str:
    """One level of indentation as these lines have it: a tab or some spaces; "" when none is
    indented."""
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


class Indents:
    """The map from the model's indentation to the file's."""

    def __init__(self, pairs: Sequence[Pair], new: Sequence[str], unit: str) -> None:
        """`pairs` of the lines found, in order, that of the first line of the text first;
        `new`: the lines to be indented; `unit`: one level in the file."""
        self.unit = unit
        self.theirs = unit_of(new)
        self.first = pairs[0] if pairs else ("", "")
        self.first_only = False
        rest = list(pairs)
        rule = _rule(rest, self.theirs, unit)
        if rule is None and (written := _as_written(pairs, unit)):
            rule = written
            rest = [(a, b) for a, b in pairs if a == b]
        elif rule is None and len(pairs) > 1:
            rule = _rule(rest[1:], self.theirs, unit)
            if rule is not None:
                rest = rest[1:]
                self.first_only = True
        elif len(pairs) == 1 and _absolute(pairs[0], new):
            rule, rest, self.first_only = _same, [], True
        self.rule = rule
        self.table = _table(rest)
        self.changed = any(a != b for a, b in pairs)
        """The model's indentation is not the file's."""

    def line(self, text: str, first: bool) -> str | None:
        """`text` indented as the file would have it; None when that is not known. `first`: it is
        the first line of the new text."""
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
    """The first of the rules, simplest first, that explains all of `pairs`."""
    if not pairs:
        return None
    for rule in _rules(pairs, theirs, unit):
        if all(rule(a) == b for a, b in pairs):
            return rule
    return None


def _as_written(pairs: Sequence[Pair], unit: str) -> Rule | None:
    """Lines that are there to the letter say more than others, which lost a blank at their start
    as the lines of a patch do. Of the first line alone that is another rule."""
    exact = {a for a, b in pairs if a == b and a}
    if not exact or (pairs[0][0] != pairs[0][1] and len({b == a for a, b in pairs[1:]}) < 2):
        return None
    tabs = "\t" in unit or any("\t" in a + b for a, b in pairs)
    return lambda indent: indent if indent in exact or not tabs else None


def _on_grid(unit: str) -> Rule:
    """One blank more, but not for what is a whole number of levels as it is."""
    return lambda indent: indent if len(indent) % len(unit) == 0 else f" {indent}"


def _rules(pairs: Sequence[Pair], theirs: str, unit: str) -> Iterable[Rule]:
    flat = all(not a and not b for a, b in pairs)
    foreign = unit and theirs and ("\t" in unit) != ("\t" in theirs)
    if not (flat and foreign):
        yield _same
    a, b = pairs[0]
    if b == f" {a}" and len(unit) > 1 and all(len(b) % len(unit) == 0 for _, b in pairs):
        yield _on_grid(unit)
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
