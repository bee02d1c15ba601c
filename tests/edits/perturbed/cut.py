"""Old texts that end, or begin, within a line, of which the new text has all."""

from __future__ import annotations

import random
from collections.abc import Sequence

from tests.edits.perturbed.case import CONTEXT, Case, Frame, places
from tests.edits.perturbed.history import File, Site

ENDS = ("{", ":", ";", ")", "]", "}")


def cut_last_line(site: Site, rng: random.Random) -> Case | None:
    """The last line of old is cut off behind an open bracket, or before the sign that ends it."""
    shown = _edges(site, head=rng.randint(0, CONTEXT), tail=0)
    if shown is None:
        return None
    line, new = shown.old[-1], shown.new[-1]
    end = line[-1:]
    if end not in ENDS or new[-1:] != end or not _same(line, new, 0):
        return None
    at = [n for n in range(4, len(line) - 1) if _is_cut(line, n, end) and line[n - 1].strip()]
    at = [n for n in at if not new.startswith(line[:n].rstrip() + line[n:])]
    if not at:
        return None
    cut = line[: rng.choice(at)]
    return _case("cut_last_line", shown, [*shown.old[:-1], cut], shown.new)


def cut_first_line(site: Site, rng: random.Random) -> Case | None:
    """The first line of old has lost its beginning, an open bracket with it."""
    shown = _edges(site, head=0, tail=rng.randint(0, CONTEXT))
    if shown is None:
        return None
    line, new = shown.old[0], shown.new[0]
    lead = len(line) - len(line.lstrip())
    at = [
        n
        for n in range(lead + 4, len(line) - 2)
        if _depth(line[:n]) > 0 and new.startswith(line[:n]) and line[n].strip()
    ]
    if not at or _depth("\n".join(shown.old)) != _depth("\n".join(shown.new)):
        return None
    old = [line[rng.choice(at) :], *shown.old[1:]]
    return _case("cut_first_line", shown, old, shown.new)


def _edges(site: Site, head: int, tail: int) -> Frame | None:
    """Both texts begin and end with a line that is changed, or with context before or behind."""
    whole = site.file.lines
    shown = Frame(site, whole[max(0, site.start - head) : site.start],
                  whole[site.end : site.end + tail])  # fmt: skip
    if not site.cut or not site.put or places(site.file, shown.old) != [shown.top]:
        return None
    return shown


def _same(line: str, new: str, at: int) -> bool:
    lead = len(line) - len(line.lstrip())
    return line != new and line[: lead + 3] == new[: lead + 3] and len(line) - lead > 6


def _is_cut(line: str, at: int, end: str) -> bool:
    kept, rest = line[:at].rstrip(), line[at:]
    if _depth(kept) > 0 and any(sign not in kept for sign in rest):
        return _depth(rest) != 0
    return end in ":;{" and not kept.endswith(end) and _depth(rest) == 0 == _depth(kept)


def _depth(text: str) -> int:
    return sum((sign in "([{") - (sign in ")]}") for sign in text)


def _case(kind: str, shown: Frame, old: Sequence[str], new: Sequence[str]) -> Case | None:
    site = shown.site
    text, quoted = site.file.text, "\n".join(old)
    wanted = File(shown.lines(shown.new)).text
    if text.count(quoted) != 1 or wanted == text:
        return None
    return Case(
        kind, site.repo, site.commit, site.path, text, quoted, "\n".join(new), False, wanted
    )
