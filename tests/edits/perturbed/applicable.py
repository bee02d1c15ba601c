"""The perturbations that an engine should see through."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace

from tests.edits.perturbed.case import (
    OTHERS,
    WORD,
    Case,
    Frame,
    anchored,
    context_lines,
    frame,
    make,
    places,
    reworded,
    strong,
    swapped,
    unique_without,
    without_margin,
)
from tests.edits.perturbed.history import File, Site

Perturb = Callable[[Site, random.Random], Case | None]
"""None: this site does not lend itself to it."""


def exact(site: Site, rng: random.Random) -> Case | None:
    shown = frame(site, rng)
    return make("exact", shown, rng) if shown else None


def trailing_ws(site: Site, rng: random.Random) -> Case | None:
    """White space at line ends: of lines of the file that stay, or in the edit, or in its old text
    only."""

    def canon(lines: Sequence[str]) -> Hashable:
        return tuple(line.rstrip() for line in lines)

    shown = frame(site, rng, canon)
    if shown is None or any(line != line.rstrip() for line in (*shown.old, *shown.new)):
        return None
    where = rng.choice(["file", "edit", "old"])
    chosen = [at for at in context_lines(shown) if shown.distinct(shown.old[at])]
    if where != "file":  # whether a replaced line keeps the space at its end is open
        chosen += range(len(shown.head), len(shown.head) + len(site.cut))
    chosen = [at for at in chosen if rng.random() < 0.6]
    if not chosen:
        return None
    spaced = _spaced(shown, chosen, rng.choice(["  ", " ", "\t", "    "]))
    region = [*spaced.head, *site.put, *spaced.tail]
    if where == "file":
        text, expected = shown.lines(spaced.old), shown.lines(region)
        return make("trailing_ws", shown, rng, text=text, expected=expected)
    new = region if where == "edit" else shown.new
    return make("trailing_ws", shown, rng, old=spaced.old, new=new)


def _spaced(shown: Frame, chosen: Sequence[int], space: str) -> Frame:
    old = [line + space * (at in chosen) for at, line in enumerate(shown.old)]
    first, after = len(shown.head), len(shown.head) + len(shown.site.cut)
    whole = list(shown.site.file.lines)
    whole[shown.site.start : shown.site.end] = old[first:after]
    return Frame(replace(shown.site, file=File(whole)), tuple(old[:first]), tuple(old[after:]))


def outdent_uniform(site: Site, rng: random.Random) -> Case | None:
    """The whole edit is moved to the left."""
    shown = frame(site, rng, without_margin)
    if shown is None or any(line and not line.strip() for line in (*shown.old, *shown.new)):
        return None
    if sum(map(bool, shown.old)) < 2:
        return None  # without its margin, one line is still there, within itself
    filled = [line for line in (*shown.old, *shown.new) if line]
    margin = min((_indent(line) for line in filled), key=len)
    if not margin or not all(line.startswith(margin) for line in filled):
        return None
    old, new = ([line[len(margin) :] for line in part] for part in (shown.old, shown.new))
    if all(line.startswith(margin) for line in new if line):
        return None  # it may have the indentation of the file
    return make("outdent_uniform", shown, rng, old=old, new=new)


def first_line_outdent(site: Site, rng: random.Random) -> Case | None:
    """The first line has lost its indentation, as when the edit was trimmed."""
    shown = frame(site, rng, without_margin)
    if shown is None or not shown.head or not _indent(shown.head[0]) or not shown.head[0].strip():
        return None
    if not any(map(strong, shown.old[1:])):
        return None
    first = shown.head[0].lstrip()
    old, new = [first, *shown.old[1:]], [first, *shown.new[1:]]
    return make("first_line_outdent", shown, rng, old=old, new=new)


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def tabs_as_spaces(site: Site, rng: random.Random) -> Case | None:
    width = rng.choice([2, 4, 4, 8])
    return _other_indent("tabs_as_spaces", site, rng, "\t", " " * width)


def spaces_as_tabs(site: Site, rng: random.Random) -> Case | None:
    """The unit is the smallest indentation of the block's file."""
    indents = {len(_indent(line)) for line in site.file.lines if line.startswith(" ")}
    unit = min(indents, default=0)
    if unit not in (2, 4, 8):
        return None
    return _other_indent("spaces_as_tabs", site, rng, " " * unit, "\t")


def _other_indent(kind: str, site: Site, rng: random.Random, unit: str, other: str) -> Case | None:
    shown = frame(site, rng, without_margin)
    if shown is None:
        return None
    found = []
    for line in (*shown.old, *shown.new):
        indent = _indent(line)
        depth = len(indent) // len(unit)
        if indent != unit * depth or (line and not line.strip()):
            return None
        found.append(other * depth + line[len(indent) :])
    old, new = found[: len(shown.old)], found[len(shown.old) :]
    if old == list(shown.old):  # nothing to learn the width from
        return None
    return make(kind, shown, rng, old=old, new=new)


def blank_line_dropped(site: Site, rng: random.Random) -> Case | None:
    """An empty line in or beside what is removed or kept, not where something is inserted."""

    def canon(lines: Sequence[str]) -> Hashable:
        return tuple(line for line in lines if line.strip())

    shown = frame(site, rng)
    if shown is None:
        return None
    filled = File([line for line in site.file.lines if line.strip()])
    if len(places(filled, [line for line in shown.old if line.strip()])) != 1:
        return None
    gaps = _open_gaps(shown.head, site.cut, site.put, shown.tail)
    blank = [
        at
        for at in context_lines(shown)
        if not shown.old[at].strip() and 0 < at < len(shown.old) - 1 and not {at, at + 1} & gaps
    ]
    if not blank:
        return None
    at = rng.choice(blank)
    later = at + len(site.put) - len(site.cut) if at >= len(shown.head) else at
    old = [line for n, line in enumerate(shown.old) if n != at]
    new = [line for n, line in enumerate(shown.new) if n != later]
    if "\n".join(old) in site.file.text:  # it was one of several at an edge of the block
        return None
    return make("blank_line_dropped", shown, rng, old=old, new=new)


def _open_gaps(
    head: Sequence[str], cut: Sequence[str], put: Sequence[str], tail: Sequence[str]
) -> set[int]:
    """The gaps between lines of the old block where lines may be said to be inserted: all that the
    change can be moved to without another result, blank lines looked away from. A line for an
    empty one is inserted beside another one that was dropped."""
    if len(cut) == len(put) and any(line.strip() for line in cut):
        return set()
    found = set(range(len(head), len(head) + len(cut) + 1))
    moving = [line for line in (put if len(put) > len(cut) else cut) if line.strip()]
    for step, side in ((-1, list(reversed(head))), (1, list(tail))):
        block = list(moving)
        at = len(head) if step < 0 else len(head) + len(cut)
        for line in side:
            edge = (block[-1] if step < 0 else block[0]) if block else None
            if line.strip() and line != edge:
                break
            if line.strip():
                block = [line, *block[:-1]] if step < 0 else [*block[1:], line]
            at += step
            found.add(at)
    return found


TYPOGRAPHY: Mapping[str, Sequence[str]] = {
    "'": "’‘",
    '"': "“”",
    "-": "–‑−",
    "...": "…",
    " ": "\N{NO-BREAK SPACE}",
}


def unicode_punct_in_context(site: Site, rng: random.Random) -> Case | None:
    """Typographic quotes, dashes and spaces in lines that stay."""

    def canon(lines: Sequence[str]) -> Hashable:
        return tuple(re.sub(r"[-'\"‘’“”–‑−\s]", "", line) for line in lines)

    shown = frame(site, rng, canon)
    if shown is None or not shown.old[0].isascii():
        return None
    marks = ["'", '"', "-", "..."] if rng.random() < 0.8 else [" "]
    changed = shown
    for at in context_lines(shown):
        line = shown.old[at]
        if not shown.distinct(line):
            continue
        indent, rest = _indent(line), line.lstrip()
        for mark in marks:
            rest = rest.replace(mark, rng.choice(TYPOGRAPHY[mark]))
        changed = swapped(changed, at, indent + rest)
    if changed.old == shown.old:
        return None
    return make("unicode_punct_in_context", shown, rng, old=changed.old, new=changed.new)


def overescaped_quotes(site: Site, rng: random.Random) -> Case | None:
    """A backslash before every quote of one kind, as when JSON was escaped twice."""
    shown = frame(site, rng)
    if shown is None or any("\\" in line for line in (*shown.old, *shown.new)):
        return None
    quote = next((mark for mark in "\"'" if any(mark in line for line in shown.old)), None)
    if quote is None:
        return None
    old, new = (
        [line.replace(quote, f"\\{quote}") for line in part] for part in (shown.old, shown.new)
    )
    whole = File([line.replace(f"\\{quote}", quote) for line in site.file.lines])
    if places(whole, shown.old) != [shown.top]:
        return None
    return make("overescaped_quotes", shown, rng, old=old, new=new)


def crlf_file(site: Site, rng: random.Random) -> Case | None:
    case = exact(site, rng)
    if case is None or case.expected is None:
        return None
    return replace(
        case,
        kind="crlf_file",
        text=case.text.replace("\n", "\r\n"),
        expected=case.expected.replace("\n", "\r\n"),
    )


def crlf_edit(site: Site, rng: random.Random) -> Case | None:
    case = exact(site, rng)
    if case is None or "\n" not in case.old:
        return None
    old, new = (part.replace("\n", "\r\n") for part in (case.old, case.new))
    return replace(case, kind="crlf_edit", old=old, new=new)


def typo_in_context(site: Site, rng: random.Random) -> Case | None:
    """Two letters changed places in a line that stays, or one is missing or doubled."""
    spoilt = _spoilt(site, rng)
    if spoilt is None:
        return None
    shown, at = spoilt
    words = list(WORD.finditer(shown.old[at]))
    if not words:
        return None
    word = rng.choice(words)
    n = rng.randrange(len(word[0]) - 1)
    first, second = word[0][n], word[0][n + 1]
    other = rng.choice([second + first, first, first + first + second])
    line = shown.old[at]
    typed = line[: word.start() + n] + other + line[word.start() + n + 2 :]
    if typed == line or typed in site.file.lines:
        return None
    changed = swapped(shown, at, typed)
    return make("typo_in_context", shown, rng, old=changed.old, new=changed.new)


def _spoilt(site: Site, rng: random.Random) -> tuple[Frame, int] | None:
    """A block with a line of context that says nothing any more, and is not needed."""
    shown = frame(site, rng)
    if shown is None:
        return None
    fit = [
        at
        for at in context_lines(shown)
        if strong(shown.old[at]) and shown.distinct(shown.old[at]) and anchored(shown, at)
    ]
    if not fit:
        return None
    at = rng.choice(fit)
    return (shown, at) if unique_without(site.file, shown, at) else None


def elided_dots(site: Site, rng: random.Random) -> Case | None:
    """`...` stands for lines in the middle of the context, above or below."""
    dots = {line.strip() for line in (*site.file.lines, *site.put)} & {"...", "…"}
    shown = frame(site, rng)
    if shown is None or dots:
        return None
    size = rng.randint(6, 20)
    whole = site.file.lines
    above = rng.random() < 0.5
    if above:
        head, tail = whole[max(0, site.start - size) : site.start], shown.tail
        parts = [head[:2], head[-2:] + site.cut + tail]
        gap = len(parts[0])
    else:
        head, tail = shown.head, whole[site.end : site.end + size]
        parts = [head + site.cut + tail[:2], tail[-2:]]
        gap = len(parts[0])
    if len(head if above else tail) < 6:
        return None
    long = Frame(site, head, tail)
    starts = [long.top, long.bottom - len(parts[1])]
    for part, start in zip(parts, starts, strict=True):
        if not any(map(strong, part)) or places(site.file, part) != [start]:
            return None
    left_out = len(long.old) - len(parts[0]) - len(parts[1])
    old = [*long.old[:gap], "...", *long.old[gap + left_out :]]
    later = gap if above else gap + len(site.put) - len(site.cut)
    new = [*long.new[:later], "...", *long.new[later + left_out :]]
    return make("elided_dots", long, rng, old=old, new=new)


def line_number_prefix(site: Site, rng: random.Random) -> Case | None:
    """As the lines are shown by a tool that reads files."""
    shown = frame(site, rng)
    if shown is None:
        return None
    form = rng.choice(["{}\t{}", "{:6}\t{}", "{} | {}", "{}: {}", "{:4} | {}"])
    old, new = (
        [form.format(shown.top + 1 + at, line) for at, line in enumerate(part)]
        for part in (shown.old, shown.new)
    )
    return make(
        "line_number_prefix", shown, rng, old=old, new=new if rng.random() < 0.6 else shown.new
    )


def stale_context_line(site: Site, rng: random.Random) -> Case | None:
    """The user has put another word, or something at the end, in a line that stays."""
    spoilt = _spoilt(site, rng)
    if spoilt is None:
        return None
    shown, at = spoilt
    line = shown.old[at]
    typed = reworded(line, rng) if rng.random() < 0.5 else f"{line} {rng.choice(OTHERS)}"
    if typed is None or 2 * len(typed) > 3 * len(line) or 3 * len(line) < 24:
        return None
    changed = swapped(shown, at, typed)
    text, expected = shown.lines(changed.old), shown.lines(changed.new)
    if places(File(text), changed.old) != [shown.top]:
        return None
    return make("stale_context_line", shown, rng, text=text, expected=expected)


def user_insert_elsewhere(site: Site, rng: random.Random) -> Case | None:
    """Lines typed away from the block."""
    shown = frame(site, rng)
    if shown is None:
        return None
    size = len(site.file.lines)
    free = [*range(shown.top - 3), *range(shown.bottom + 4, size + 1)]
    if not free:
        return None
    at = rng.choice(free)
    typed = [f"{rng.choice(OTHERS)} {n} {rng.choice(OTHERS)}" for n in range(rng.randint(1, 5))]
    text, expected = (
        [*whole[: at + later], *typed, *whole[at + later :]]
        for whole, later in (
            (list(site.file.lines), 0),
            (shown.lines(shown.new), len(site.put) - len(site.cut) if at >= shown.bottom else 0),
        )
    )
    moved = replace(site, file=File(text))
    if at < shown.top:
        moved = replace(moved, start=site.start + len(typed), end=site.end + len(typed))
    edit = Frame(moved, shown.head, shown.tail)
    return make("user_insert_elsewhere", edit, rng, expected=expected)


APPLICABLE: Mapping[str, Perturb] = {
    perturb.__name__: perturb
    for perturb in (
        exact, trailing_ws, outdent_uniform, first_line_outdent, tabs_as_spaces, spaces_as_tabs,
        blank_line_dropped, unicode_punct_in_context, overescaped_quotes, crlf_file, crlf_edit,
        typo_in_context, elided_dots, line_number_prefix, stale_context_line,
        user_insert_elsewhere,
    )
}  # fmt: skip
