"""Numbers before the lines of old alone, as a model copies them from a tool that shows them."""

from __future__ import annotations

import random
from collections.abc import Sequence

from tests.edits.perturbed.case import Case, Frame, frame, make, without_margin
from tests.edits.perturbed.history import Site

FORMS = ("{}|{}", "{:5}|{}", "{}→{}", "{:6}→{}", "{}\t{}", "{}:{}", "{:3}:{}", "{} │ {}", "L{}: {}")


def numbers_in_old(site: Site, rng: random.Random) -> Case | None:
    """Glued to the line or set apart; new is as it should be in the file."""
    shown = frame(site, rng)
    if shown is None:
        return None
    return make("numbers_in_old", shown, rng, old=_numbered(shown, shown.old, rng))


def numbers_then_trimmed(site: Site, rng: random.Random) -> Case | None:
    """The indentation went with the numbers, and new has that of the file."""
    shown = frame(site, rng, without_margin)
    if shown is None:
        return None
    margin = _margin(shown.old)
    if not margin or not all(line.startswith(margin) for line in shown.new if line.strip()):
        return None
    old = [line[len(margin) :] for line in shown.old]
    return make("numbers_then_trimmed", shown, rng, old=_numbered(shown, old, rng))


def _numbered(shown: Frame, lines: Sequence[str], rng: random.Random) -> list[str]:
    form = rng.choice(FORMS)
    bare = rng.random() < 0.3
    return [
        form.format(shown.top + 1 + at, line) if line or not bare else ""
        for at, line in enumerate(lines)
    ]


def _margin(lines: Sequence[str]) -> str:
    indents = (line[: len(line) - len(line.lstrip())] for line in lines if line.strip())
    return min(indents, key=len, default="")
