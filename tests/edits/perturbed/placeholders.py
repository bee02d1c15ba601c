"""New texts that leave something out in words, and comments of that kind that are the file's."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace

from tests.edits.perturbed.applicable import Perturb
from tests.edits.perturbed.case import Case, Frame, frame, make, places, refused
from tests.edits.perturbed.history import File, Site, bone

STYLES = (
    "# {}", "// {}", "/* {} */", "<!-- {} -->", "-- {}", "; {}", "% {}", "{{/* {} */}}", "(* {} *)",
    "{{- {} -}}", "{{{{!-- {} --}}}}", "<%# {} %>", "# [{}]", "// ({})", "--[[ {} ]]",
)  # fmt: skip
SAID = (
    "...", "…", "... rest of the code ...", "unchanged", "same as before", "rest unchanged",
    "keep existing implementation", "existing code", "existing content", "... existing code ...",
    "rest of the file remains the same", "other methods unchanged", "...unchanged...",
    "existing code here", "no changes here", "everything else stays the same",
    "implementation omitted for brevity", "... (rest of the methods)", "keep the rest as is",
    "the remaining code stays unchanged", "Rest of your function...", "... other options ...",
)  # fmt: skip


def placeholder(site: Site, rng: random.Random) -> Case | None:
    """Some lines of the new text, or the last of it, are words."""
    shown = frame(site, rng)
    if shown is None or len(shown.new) < 2:
        return None
    line = _line(shown.new, rng)
    if bone(line) in site.file.by_bone:
        return None
    first = rng.randrange(1, len(shown.new))
    last = rng.randint(first, len(shown.new))
    spoilt = [*shown.new[:first], line, *shown.new[last:]]
    return _saying("placeholder", shown, rng, spoilt)


def placeholder_whole(site: Site, rng: random.Random) -> Case | None:
    """The same in the new text of the whole file."""
    whole = site.file.lines
    if len(whole) < 4 or len(whole) > 400:
        return None
    line = _line(whole, rng)
    if bone(line) in site.file.by_bone or not any(map(str.strip, whole)):
        return None
    all_of_it = Frame(replace(site, start=0, end=len(whole)), (), ())
    cut = rng.randint(len(whole) // 4, len(whole) - 1)
    tail = whole[-1:] if rng.random() < 0.3 else ()
    return _saying("placeholder_whole", all_of_it, rng, [*whole[:cut], line, *tail])


def placeholder_of_the_file(site: Site, rng: random.Random) -> Case | None:
    """Such a comment stands beside the change in the file, and stays."""
    shown = frame(site, rng)
    if shown is None or not (shown.head and shown.tail):
        return None
    line = _line(shown.old, rng)
    if bone(line) in {*map(bone, shown.old), *map(bone, shown.new)}:
        return None
    if rng.random() < 0.5:
        at = rng.randrange(len(shown.head)) + 1
        around = replace(shown, head=(*shown.head[:at], line, *shown.head[at:]))
    else:
        at = rng.randrange(len(shown.tail))
        around = replace(shown, tail=(*shown.tail[:at], line, *shown.tail[at:]))
    text, expected = shown.lines(around.old), shown.lines(around.new)
    if len(places(File(text), around.old)) != 1:
        return None
    return make(
        "placeholder_of_the_file", shown, rng,
        old=around.old, new=around.new, text=text, expected=expected,
    )  # fmt: skip


def _line(around: Sequence[str], rng: random.Random) -> str:
    like = rng.choice([line for line in around if line.strip()] or [""])
    return like[: len(like) - len(like.lstrip())] + rng.choice(STYLES).format(rng.choice(SAID))


def _saying(kind: str, shown: Frame, rng: random.Random, new: Sequence[str]) -> Case:
    spoilt = refused(kind, shown.site, rng, shown.site.file.lines, shown)
    return replace(spoilt, new="\n".join(new) + ("\n" if spoilt.lines else ""))


SAYING: Mapping[str, Perturb] = {
    perturb.__name__: perturb for perturb in (placeholder, placeholder_whole)
}
