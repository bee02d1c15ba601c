"""The perturbations after which there is no right place any more: an engine must refuse."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence

from tests.edits.perturbed.applicable import Perturb
from tests.edits.perturbed.case import (
    OTHERS,
    WORD,
    Case,
    Frame,
    frame,
    places,
    refused,
    reworded,
    strong,
)
from tests.edits.perturbed.history import File, Site, bone


def ambiguous(site: Site, rng: random.Random) -> Case | None:
    """The block is there twice: by nature, or because it was copied to the end."""
    whole = site.file.lines
    for size in (1, 2):
        edit = Frame(site, whole[max(0, site.start - size) : site.start],
                     whole[site.end : site.end + size])  # fmt: skip
        if edit.old and len(places(site.file, edit.old)) > 1:
            return refused("ambiguous", site, rng, whole, edit)
    shown = frame(site, rng)
    if shown is None or shown.bottom == len(whole):
        return None
    return refused("ambiguous", site, rng, [*whole, *shown.old], shown)


def stale_target_line(site: Site, rng: random.Random) -> Case | None:
    """The user has put another word in a line that is removed or replaced."""
    shown = frame(site, rng)
    if shown is None:
        return None
    fit = [at for at in site.gone if strong(site.cut[at])]
    if not fit:
        return None
    at = rng.choice(fit)
    typed = reworded(site.cut[at], rng)
    if typed is None or bone(typed) in set(map(bone, site.put)):
        return None
    text = list(site.file.lines)
    text[site.start + at] = typed
    return _gone("stale_target_line", site, rng, text, shown)


def similar_sibling_trap(site: Site, rng: random.Random) -> Case | None:
    """The block was deleted; another is left that is like it but for a name in what the edit
    removes: one of the file's own, or a copy with the name changed."""
    shown = frame(site, rng)
    if shown is None:
        return None
    words = sorted({word for at in site.gone for word in WORD.findall(site.cut[at])})
    if not words:
        return None
    word, other = rng.choice(words), rng.choice(OTHERS)
    if other.lower() in site.file.text.lower():
        return None
    sibling = [re.sub(rf"\b{word}\b", other, line) for line in shown.old]
    first = len(shown.head)
    if all(sibling[first + at] == site.cut[at] for at in site.gone):  # part of a longer name
        return None
    text = list(site.file.lines)
    text[shown.top : shown.bottom] = sibling
    return _gone("similar_sibling_trap", site, rng, text, shown)


def _gone(
    kind: str, site: Site, rng: random.Random, text: Sequence[str], edit: Frame
) -> Case | None:
    """The case, when not even letters and digits of what is removed are anywhere in the text in one
    piece: else the lines around that may be what the user has changed."""

    def letters(lines: Sequence[str]) -> tuple[str, ...]:
        return tuple(map(bone, lines))

    if places(File(text), site.cut, letters) or edit.old == edit.new:
        return None
    if "\n".join(edit.old) in File(text).text:  # its first line was empty, or less than a line
        return None
    return refused(kind, site, rng, text, edit)


def foreign_block(site: Site, rng: random.Random, other: Site) -> Case | None:
    """The edit was meant for another file, of which this one has next to nothing: less than a
    third of the lines that say something, and not all that are removed."""
    edit = frame(other, rng)
    if edit is None or other.path == site.path:
        return None
    known = site.file.by_bone
    said = [line for line in edit.old if strong(line)]
    there = [line for line in said if bone(line) in known]
    removed = [other.cut[at] for at in other.gone if strong(other.cut[at])]
    if not said or 3 * len(there) >= len(said) or (removed and set(removed) <= set(there)):
        return None
    return refused("foreign_block", site, rng, site.file.lines, edit)


def foreign(others: Sequence[Site]) -> Perturb:
    """`foreign_block` with the edits of these; of a file of the same kind where there is one."""

    def perturb(site: Site, rng: random.Random) -> Case | None:
        alike = [other for other in others if _kind(other) == _kind(site)]
        return foreign_block(site, rng, rng.choice(alike or others))

    return perturb


def _kind(site: Site) -> str:
    return site.path.rpartition(".")[2]


def refusable(sites: Sequence[Site]) -> Mapping[str, Perturb]:
    return {
        "ambiguous": ambiguous,
        "foreign_block": foreign(sites),
        "stale_target_line": stale_target_line,
        "similar_sibling_trap": similar_sibling_trap,
    }
