"""A case: a text, an edit as a model may have written it, and what must come of it.

An expectation is only kept when the case itself determines it, by rules that never look at what an
engine answers: the block is at one place only, even for a reader who sees no more than the
perturbation left; no line that was perturbed could be taken for one that the edit adds.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace

from tests.edits.perturbed.history import File, Site, bone

Canon = Callable[[Sequence[str]], Hashable]
"""What is left of a block of lines when a perturbation is looked away from."""
CONTEXT = 3
STRONG = 4
"""Letters and digits of a line that says something; `}` and `else:` are everywhere."""


@dataclass(frozen=True, slots=True)
class Case:
    """`expected` None: it must be refused. `lines`: `old` and `new` are whole lines with their
    ends, as in a search/replace block; else the last line has none, as in a `str_replace` call.
    `seen`: what the model had read, where that is not `text`."""

    kind: str
    repo: str
    commit: str
    path: str
    text: str
    old: str
    new: str
    lines: bool
    expected: str | None
    seen: str | None = None
    line: int | None = None
    anchors: tuple[str, ...] = ()
    unclear: bool = False
    """To refuse it is as right as to make the change that is expected."""


@dataclass(frozen=True)
class Frame:
    """A site with the context that an edit shows."""

    site: Site
    head: tuple[str, ...]
    tail: tuple[str, ...]

    @property
    def old(self) -> tuple[str, ...]:
        return self.head + self.site.cut + self.tail

    @property
    def new(self) -> tuple[str, ...]:
        return self.head + self.site.put + self.tail

    @property
    def top(self) -> int:
        return self.site.start - len(self.head)

    @property
    def bottom(self) -> int:
        return self.site.end + len(self.tail)

    def lines(self, region: Sequence[str]) -> list[str]:
        """The file with `region` in the place of the block."""
        whole = self.site.file.lines
        return [*whole[: self.top], *region, *whole[self.bottom :]]

    def distinct(self, line: str) -> bool:
        """Whether a context line cannot be mistaken for one that is added or removed."""
        return bone(line) not in {bone(other) for other in self.site.cut + self.site.put}


def exactly(lines: Sequence[str]) -> Hashable:
    return tuple(lines)


def without_margin(lines: Sequence[str]) -> Hashable:
    return tuple(line.strip() for line in lines)


def places(file: File, block: Sequence[str], canon: Canon = exactly) -> list[int]:
    """Where the block begins in the file, for a reader who sees `canon` only. An empty block is
    anywhere."""
    if not block:
        return list(range(len(file.lines) + 1))
    known = file.by_bone
    rarest = min(range(len(block)), key=lambda at: len(known.get(bone(block[at]), ())))
    wanted = canon(block)
    last = len(file.lines) - len(block)
    return [
        at - rarest
        for at in known.get(bone(block[rarest]), ())
        if 0 <= at - rarest <= last
        and canon(file.lines[at - rarest : at - rarest + len(block)]) == wanted
    ]


def frame(
    site: Site, rng: random.Random, canon: Canon = exactly, context: int = CONTEXT
) -> Frame | None:
    """With one to three lines of context, as many as make the block unique."""
    whole = site.file.lines
    for size in range(rng.randint(1, context), context + 1):
        found = Frame(
            site,
            whole[max(0, site.start - size) : site.start],
            whole[site.end : site.end + size],
        )
        if not found.head and not found.tail:
            return None
        if places(site.file, found.old, canon) == [found.top]:
            return found
    return None


def strong(line: str) -> bool:
    return len(bone(line)) >= STRONG


def anchored(shown: Frame, spoilt: int) -> bool:
    """Whether the change stays where it is when line `spoilt` of the block says nothing: a strong
    line that is removed, or a strong neighbour, is left."""
    first, after = len(shown.head), len(shown.head) + len(shown.site.cut)
    near = {first - 1, after} if first == after else set(range(first, after))
    return any(strong(shown.old[at]) for at in near - {spoilt} if 0 <= at < len(shown.old))


def unique_without(file: File, shown: Frame, spoilt: int) -> bool:
    """Whether the block is at one place only when line `spoilt` may be anything, and indentation
    does not count."""

    def rest(lines: Sequence[str]) -> Hashable:
        return tuple(line.strip() for at, line in enumerate(lines) if at != spoilt)

    size, wanted = len(shown.old), rest(shown.old)
    if not any(strong(line) for at, line in enumerate(shown.old) if at != spoilt):
        return False
    return [
        at for at in range(len(file.lines) - size + 1) if rest(file.lines[at : at + size]) == wanted
    ] == [shown.top]


def context_lines(shown: Frame) -> list[int]:
    """Indices into `shown.old`."""
    after = len(shown.head) + len(shown.site.cut)
    return [*range(len(shown.head)), *range(after, len(shown.old))]


def swapped(shown: Frame, at: int, line: str) -> Frame:
    """The frame with another context line at index `at` of the old block."""
    head, tail = list(shown.head), list(shown.tail)
    if at < len(head):
        head[at] = line
    else:
        tail[at - len(head) - len(shown.site.cut)] = line
    return replace(shown, head=tuple(head), tail=tuple(tail))


def make(
    kind: str,
    shown: Frame,
    rng: random.Random,
    *,
    old: Sequence[str] | None = None,
    new: Sequence[str] | None = None,
    text: Sequence[str] | None = None,
    expected: Sequence[str] | None = None,
) -> Case | None:
    """The case with what differs from the plain one given as lines; None when the change is not
    visible, or the edit as written can also be read as a change somewhere else."""
    old = shown.old if old is None else old
    new = shown.new if new is None else new
    file = shown.site.file if text is None else File(text)
    wanted = File(shown.lines(shown.new) if expected is None else expected).text
    case = _case(kind, shown.site, file.text, old, new, wanted, rng)
    if old == new or wanted == file.text or not any(map(strong, shown.old)):
        return None
    start, end = file.offset(shown.top), file.offset(shown.bottom)
    literal = list(_found(file.text, case.old))
    if any(not start <= at < end for at in literal):
        return None
    if literal and not case.lines and file.text.replace(case.old, case.new) != wanted:
        return None  # taken by the letter, it comes to something else
    return case


def refused(kind: str, site: Site, rng: random.Random, text: Sequence[str], edit: Frame) -> Case:
    return _case(kind, site, File(text).text, edit.old, edit.new, None, rng)


def _case(
    kind: str,
    site: Site,
    text: str,
    old: Sequence[str],
    new: Sequence[str],
    expected: str | None,
    rng: random.Random,
) -> Case:
    # Without its line end, an empty line at an edge is but the end of the line beside it.
    whole = rng.random() < 0.5 or not (old[0].strip() and old[-1].strip())
    end = "\n" if whole else ""
    return Case(
        kind, site.repo, site.commit, site.path, text,
        "\n".join(old) + end, "\n".join(new) + end if new else "", whole, expected,
    )  # fmt: skip


def _found(text: str, part: str) -> Iterator[int]:
    at = text.find(part)
    while at >= 0:
        yield at
        at = text.find(part, at + 1)


WORD = re.compile(r"[A-Za-z]{4,}")
OTHERS = ("marker", "gadget", "ribbon", "lantern", "walrus", "copper")


def reworded(line: str, rng: random.Random) -> str | None:
    """The line with another word in the place of one of its own."""
    words = list(WORD.finditer(line))
    if not words:
        return None
    word = rng.choice(words)
    other = rng.choice([other for other in OTHERS if other != word[0].lower()])
    other = other.capitalize() if word[0][0].isupper() else other
    return line[: word.start()] + other + line[word.end() :]
