"""Where two places have a claim, or none has, and how new lines are written where they go."""

from __future__ import annotations

import random
import re
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace

from tests.edits.perturbed.applicable import Perturb
from tests.edits.perturbed.case import (
    OTHERS,
    Case,
    Frame,
    context_lines,
    exactly,
    frame,
    make,
    places,
    refused,
    strong,
    swapped,
    without_margin,
)
from tests.edits.perturbed.history import File, Site

_CLOSER = re.compile(r"\s*(?:[\])}]+[;,]?|end|fi|done)")
_SPACED = re.compile(r", | = | \+ |: ")


def _letters(lines: Sequence[str]) -> Hashable:
    return tuple("".join(filter(str.isalnum, line)) for line in lines)


# --- what an engine should see through ------------------------------------------------------------


def typographic_throughout(site: Site, rng: random.Random) -> Case | None:
    """Typographic quotes for plain ones in all lines of the edit, those that it adds too."""
    shown = frame(site, rng, _letters)
    if shown is None or not "".join((*shown.old, *shown.new)).isascii():
        return None
    if not site.file.text.isascii() or not site.put:
        return None
    marks = {mark: other for mark, other in (("'", "’"), ('"', "”")) if mark in "".join(shown.old)}
    if not any(mark in line for mark in marks for line in site.put):
        return None
    old, new = (
        ["".join(marks.get(sign, sign) for sign in line) for line in part]
        for part in (shown.old, shown.new)
    )
    return make("typographic_throughout", shown, rng, old=old, new=new)


def other_steps(site: Site, rng: random.Random) -> Case | None:
    """The first line is spaced otherwise, and the steps from level to level are others."""
    shown = frame(site, rng, _letters)
    if shown is None or not shown.head or len(shown.head) < 1 or not shown.head[0].strip():
        return None
    first = _SPACED.sub(lambda found: found[0].rstrip(), shown.head[0], count=1)
    steps = {_width(line) for line in site.file.lines if line.startswith(" ") and line.strip()}
    unit = min(steps, default=0)
    base = _width(shown.head[0])
    lines = [line for line in (*shown.old, *shown.new) if line.strip()]
    if first == shown.head[0] or unit not in (2, 4) or any("\t" in line for line in lines):
        return None
    if any(_width(line) < base or (_width(line) - base) % unit for line in lines):
        return None
    known = {_width(line) for line in shown.old if line.strip()}
    if len(known) < 2 or not {_width(line) for line in site.put if line.strip()} <= known:
        return None
    margin = base if rng.random() < 0.5 else 0
    old, new = (
        [_stepped(line, base, margin, unit) for line in (first, *part[1:])]
        for part in (shown.old, shown.new)
    )
    return make("other_steps", shown, rng, old=old, new=new)


def _width(line: str) -> int:
    return len(line) - len(line.lstrip())


def _stepped(line: str, base: int, margin: int, unit: int) -> str:
    if not line.strip():
        return line
    level = (_width(line) - base) // unit
    return " " * (margin + level * (6 - unit)) + line.lstrip()


def lost_blank(site: Site, rng: random.Random) -> Case | None:
    """Context lines of a patch without the blank that marks them; what is added has its mark."""
    shown = frame(site, rng, without_margin)
    if shown is None or not site.put:
        return None
    context = [at for at in context_lines(shown) if shown.old[at].strip()]
    if not context or any(not shown.old[at].startswith(" ") for at in context):
        return None
    if any(
        not shown.distinct(shown.old[at]) or "\t" in shown.old[at] for at in context
    ):  # fmt: skip
        return None
    changed = shown
    for at in context:
        changed = swapped(changed, at, shown.old[at][1:])
    case = make("lost_blank", shown, rng, old=changed.old, new=changed.new)
    return case and replace(case, unclear=True)


def blank_dropped_beside(site: Site, rng: random.Random) -> Case | None:
    """An empty line right beside what is changed: on which side of new lines it stays may not be
    clear."""
    shown = frame(site, rng)
    if shown is None:
        return None
    first, after = len(shown.head), len(shown.head) + len(site.cut)
    beside = [at for at in (first - 1, after) if 0 < at < len(shown.old) - 1]
    blank = [at for at in beside if not shown.old[at].strip()]
    if not blank:
        return None
    at = rng.choice(blank)
    later = at + len(site.put) - len(site.cut) if at >= first else at
    old = [line for n, line in enumerate(shown.old) if n != at]
    new = [line for n, line in enumerate(shown.new) if n != later]
    solid = [line for line in old if line.strip()]
    filled = File([line for line in site.file.lines if line.strip()])
    if "\n".join(old) in site.file.text or len(places(filled, solid)) != 1:
        return None
    if not all(line.strip() for line in (*site.cut, *site.put[:1], *site.put[-1:])):
        return None
    if not (old[at - 1].strip() and old[at].strip()):
        return None  # one of several empty lines
    case = make("blank_dropped_beside", shown, rng, old=old, new=new)
    return case and replace(case, unclear=True)


def number_decides(site: Site, rng: random.Random) -> Case | None:
    """The block is there twice, and a line number names one of them."""
    shown = frame(site, rng)
    if shown is None or shown.bottom == len(site.file.lines) or not any(map(strong, shown.old)):
        return None
    text = [*site.file.lines, *shown.old]
    if len(places(File(text), shown.old)) != 2:
        return None
    expected = [*shown.lines(shown.new), *shown.old]
    case = refused("number_decides", site, rng, text, shown)
    if shown.old == shown.new:
        return None
    return replace(case, expected=File(expected).text, line=shown.top + 1, lines=True)


def one_difference_each(site: Site, rng: random.Random) -> Case | None:
    """A line of the block has got a comment; a copy elsewhere has a line more. Only the first can
    be right, and a number may say so; but the text does not tell."""
    shown = frame(site, rng)
    if shown is None or len(shown.old) < 2:
        return None
    fit = [
        at for at in context_lines(shown) if strong(shown.old[at]) and shown.distinct(shown.old[at])
    ]
    gap = rng.randint(1, len(shown.old) - 1)
    if not fit or not all(map(strong, shown.old)):
        return None
    at = rng.choice(fit)
    changed = swapped(shown, at, f"{shown.old[at]}  # {rng.choice(OTHERS)}")
    indent = shown.old[gap][: _width(shown.old[gap])]
    copy = [*shown.old[:gap], f"{indent}{rng.choice(OTHERS)}_{rng.choice(OTHERS)}()",
            *shown.old[gap:]]  # fmt: skip
    text = [*shown.lines(changed.old), "", "", *copy]
    expected = [*shown.lines(changed.new), "", "", *copy]
    if places(File(text), shown.old, without_margin):
        return None
    case = refused("one_difference_each", site, rng, text, shown)
    if shown.old == shown.new:
        return None
    line = shown.top + 1 if rng.random() < 0.5 else None
    return replace(case, expected=File(expected).text, unclear=True, line=line, lines=True)


# --- what must be refused -------------------------------------------------------------------------


def missing_anchor(site: Site, rng: random.Random) -> Case | None:
    """The block is there once, but not the anchor that the edit names."""
    shown = frame(site, rng)
    if shown is None or shown.old == shown.new or not any(map(strong, shown.old)):
        return None
    name = f"{rng.choice(OTHERS)}_{rng.choice(OTHERS)}"
    head = rng.choice(["def {}():", "class {}:", "function {}() {{", "fn {}(", "{}"]).format(name)
    if name in site.file.text:
        return None
    case = refused("missing_anchor", site, rng, site.file.lines, shown)
    return replace(case, anchors=(head,), lines=True)


def closers_only(site: Site, rng: random.Random) -> Case | None:
    """Lines that only close blocks, of which the file has others with another indentation."""
    whole = site.file.lines
    runs = [
        at
        for at in range(len(whole) - 1)
        if _CLOSER.fullmatch(whole[at]) and _CLOSER.fullmatch(whole[at + 1])
    ]
    rng.shuffle(runs)
    for at in runs[:20]:
        block = whole[at : at + 2]
        if len(places(site.file, block)) == 1 < len(places(site.file, block, without_margin)):
            name = rng.choice(OTHERS)
            shown = Frame(replace(site, start=at + 1, end=at + 1, put=(name,)), whole[at : at + 1],
                          whole[at + 1 : at + 2])  # fmt: skip
            return replace(refused("closers_only", site, rng, whole, shown), lines=True)
    return None


def made_before(site: Site, rng: random.Random) -> Case | None:
    """The new lines are there, and a line beside them is not as it is quoted."""
    shown = frame(site, rng)
    if shown is None or site.cut or not any(map(strong, site.put)):
        return None
    fit = [
        at for at in context_lines(shown) if strong(shown.old[at]) and shown.distinct(shown.old[at])
    ]
    if not fit or not site.put[0].strip():
        return None
    at = rng.choice(fit)
    changed = swapped(shown, at, f"{shown.old[at]} {rng.choice(OTHERS)}")
    text = shown.lines(changed.new)
    if places(File(text), shown.old, exactly) or "\n".join(shown.old) in File(text).text:
        return None
    return refused("made_before", site, rng, text, shown)


PLACED: Mapping[str, Perturb] = {
    perturb.__name__: perturb
    for perturb in (
        typographic_throughout, other_steps, lost_blank, blank_dropped_beside, number_decides,
        one_difference_each,
    )
}  # fmt: skip
NOWHERE: Mapping[str, Perturb] = {
    perturb.__name__: perturb for perturb in (missing_anchor, closers_only, made_before)
}
