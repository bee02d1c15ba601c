"""Edits of a text that the user has changed since the model read it."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from tests.edits.perturbed.applicable import Perturb
from tests.edits.perturbed.case import (
    OTHERS,
    WORD,
    Case,
    Frame,
    context_lines,
    frame,
    make,
    reworded,
    strong,
    swapped,
)
from tests.edits.perturbed.history import File, Site, bone

_STANDS_FOR_OTHERS = re.compile(r"\s*[^\w\s]*\s*(?:\.{3,}|…)\W*")
_CLOSES = re.compile(r"[\W_]*|\W*(?:end|fi|done|esac|od)\W*|\s*</[\w.:-]+>\s*")
NEAR = 10
"""Lines around a change in which one that is added twice is looked for."""


def _shown(site: Site, rng: random.Random) -> Frame | None:
    """The block, if its label is no matter of opinion. Left out, as an engine may well refuse them
    whatever the user did: a line added that stands for others (`# ...`), which would replace what
    it stands for; lines added that are right there already (an import made twice), which look as if
    the edit had been made; and a block that only closes others, which could be any."""
    shown = frame(site, rng)
    if shown is None or any(map(_STANDS_FOR_OTHERS.fullmatch, site.put)):
        return None
    around = site.file.lines[max(0, site.start - NEAR) : site.end + NEAR]
    added = [line for line in site.put if strong(line)]
    twice = not site.cut and added and {*map(bone, added)} <= {*map(bone, around)}
    return None if twice or all(map(_CLOSES.fullmatch, shown.old)) else shown


def seen_stale_context(site: Site, rng: random.Random) -> Case | None:
    """The user has rewritten a line that the edit shows and keeps."""
    shown = _shown(site, rng)
    if shown is None:
        return None
    fit = [
        at for at in context_lines(shown) if strong(shown.old[at]) and shown.distinct(shown.old[at])
    ]
    if not fit:
        return None
    at = rng.choice(fit)
    typed = reworded(shown.old[at], rng) if rng.random() < 0.5 else _line(rng)
    if typed is None:
        return None
    changed = swapped(shown, at, typed)
    case = make("seen_stale_context", shown, rng, expected=shown.lines(changed.new))
    return case and replace(case, seen=case.text, text=File(shown.lines(changed.old)).text)


def seen_edit_elsewhere(site: Site, rng: random.Random) -> Case | None:
    """The user has typed, deleted or replaced lines away from the block."""
    shown = _shown(site, rng)
    if shown is None:
        return None
    gone = rng.randint(0, 3)
    typed = [_line(rng) for _ in range(rng.randint(0 if gone else 1, 3))]
    size = len(site.file.lines)
    free = [*range(shown.top - gone - 1), *range(shown.bottom + 2, size - gone + 1)]
    if not free:
        return None
    at = rng.choice(free)
    later = len(site.put) - len(site.cut) if at >= shown.bottom else 0
    case = make("seen_edit_elsewhere", shown, rng)
    if case is None:
        return None
    return replace(
        case,
        seen=case.text,
        text=_typed(site.file.lines, at, gone, typed),
        expected=_typed(shown.lines(shown.new), at + later, gone, typed),
    )


def _typed(lines: Sequence[str], at: int, gone: int, typed: Sequence[str]) -> str:
    return File([*lines[:at], *typed, *lines[at + gone :]]).text


def _line(rng: random.Random) -> str:
    return " ".join(rng.choices(OTHERS, k=3)) + f" {rng.randint(100, 999)}"


def seen_same_line(site: Site, rng: random.Random) -> Case | None:
    """The user has changed a line that the edit removes or replaces."""
    shown = _shown(site, rng)
    fit = [at for at in site.gone if strong(site.cut[at])]
    if shown is None or not fit:
        return None
    at = rng.choice(fit)
    typed = reworded(site.cut[at], rng)
    if typed is None or typed in site.put:
        return None
    live = list(site.file.lines)
    live[site.start + at] = typed
    case = make("seen_same_line", shown, rng)
    return case and replace(case, seen=case.text, text=File(live).text, expected=None)


def seen_block_gone(site: Site, rng: random.Random) -> Case | None:
    """The user has deleted the block; one like it is left below. There is context on both sides:
    with what stays put on one, an insertion still has its place."""
    shown = _shown(site, rng)
    words = sorted({word for line in shown.old for word in WORD.findall(line)}) if shown else []
    if shown is None or not words or not shown.head or not shown.tail:
        return None
    word, other = rng.choice(words), rng.choice(OTHERS)
    if other.lower() in site.file.text.lower():
        return None
    sibling = tuple(re.sub(rf"\b{word}\b", other, line) for line in shown.old)
    if sibling == shown.old:
        return None
    whole = site.file.lines
    at = min(len(whole), shown.bottom + rng.randint(0, 5))
    base = replace(site, file=File([*whole[:at], *sibling, *whole[at:]]))
    edit = Frame(base, shown.head, shown.tail)
    case = make("seen_block_gone", edit, rng)
    return case and replace(case, seen=case.text, text=File(edit.lines(())).text, expected=None)


CONCURRENT: Mapping[str, Perturb] = {
    perturb.__name__: perturb
    for perturb in (seen_stale_context, seen_edit_elsewhere, seen_same_line, seen_block_gone)
}
