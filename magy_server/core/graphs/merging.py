"""What several agents wrote becomes one text, and it is said where they wrote the same thing twice,
or wrote different things under one heading. Nothing that only one of them wrote is left out. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from magy_server.core.graphs.graph import names
from magy_server.dataclass import dataclass
from magy_server.regex import regex

ALIKE = 90.0
"""Percent of likeness from which on two texts count as the same in other words."""
_HEADING = regex(r"(#{1,6})\s+(.*?)\s*#*\s*")
_FENCE = regex(r"\s*(```+|~~~+)")
_NUMBER = regex(r"^[\d.)\s]+")


@dataclass(frozen=True, slots=True)
class Piece:
    """What came of one task."""

    task: str
    text: str


@dataclass(frozen=True, slots=True)
class Merged:
    """`notes`: what was found to be the same, and what differs, a sentence each."""

    text: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Section:
    task: str
    heading: str
    body: str

    @property
    def key(self) -> str:
        """The same for headings that differ only in case, level, number and marks."""
        words = _NUMBER.sub("", self.heading.lstrip("#").strip())
        return " ".join(words.strip("*_`:. ").casefold().split())


def merged(pieces: Sequence[Piece]) -> Merged:
    """Returns what the pieces say together, in their order. Pieces without a heading in common
    stand one after the other, each under the name of its task."""
    pieces = [piece for piece in pieces if piece.text.strip()]
    if len(pieces) < 2:
        return Merged(pieces[0].text if pieces else "")
    groups: dict[str, list[_Section]] = {}
    apart: list[_Section] = []
    for section in chain.from_iterable(map(_sections, pieces)):
        group = groups.setdefault(section.key, []) if section.key else apart
        group.append(section)
    shared = [group for group in groups.values() if len({one.task for one in group}) > 1]
    if not shared:
        twins = _twins(pieces)
        same = {task for tasks in twins.values() for task in tasks}
        texts = [f"## {piece.task}\n\n{piece.text.strip()}" for piece in pieces
                 if piece.task not in same]  # fmt: skip
        return Merged("\n\n".join(texts), tuple(_kept_once(*one) for one in twins.items()))
    notes: list[str] = []
    texts = [one.body.strip() for one in apart if one.body.strip()]
    texts += [_joined(group, notes) for group in groups.values()]
    return Merged("\n\n".join(texts), tuple(notes))


def _sections(piece: Piece) -> list[_Section]:
    """The text before the first heading has the heading ""; headings in code are none."""
    found: list[tuple[str, list[str]]] = [("", [])]
    fence = ""
    for line in piece.text.splitlines():
        mark = _FENCE.match(line)
        if mark and not fence:
            fence = mark[1]
        elif mark and mark[1].startswith(fence):
            fence = ""
        if not fence and not mark and _HEADING.fullmatch(line):
            found.append((line.strip(), []))
        else:
            found[-1][1].append(line)
    return [_Section(piece.task, heading, "\n".join(lines)) for heading, lines in found
            if heading or any(map(str.strip, lines))]  # fmt: skip


def _joined(group: Sequence[_Section], notes: list[str]) -> str:
    """What stands under one heading; adds to `notes`."""
    heading = group[0].heading
    kept: list[_Section] = []
    for section in group:
        twin = next((n for n, one in enumerate(kept) if _alike(one.body, section.body)), None)
        if twin is None:
            kept.append(section)
        elif kept[twin].task != section.task:
            if len(section.body.strip()) > len(kept[twin].body.strip()):
                kept[twin], section = section, kept[twin]
            notes.append(
                f"{section.task} says under {_title(heading)} what {kept[twin].task} says; it is "
                "kept once."
            )
    if len(kept) == 1:
        return f"{heading}\n\n{kept[0].body.strip()}".rstrip()
    authors = list(dict.fromkeys(one.task for one in kept))
    if len(authors) > 1:
        notes.append(
            f"{names(authors)} say different things under {_title(heading)}; all of it is "
            "kept, under their names."
        )
    below = "#" * min(6, len(heading) - len(heading.lstrip("#")) + 1)
    parts = [f"{below} {one.task}\n\n{one.body.strip()}" for one in kept]
    return "\n\n".join([heading, *parts])


def _twins(pieces: Sequence[Piece]) -> dict[str, list[str]]:
    """By task: the later ones that say the same as it."""
    first: dict[str, Piece] = {}
    found: dict[str, list[str]] = {}
    for piece in pieces:
        if twin := next((one for one in first.values() if _alike(one.text, piece.text)), None):
            found.setdefault(twin.task, []).append(piece.task)
        else:
            first[piece.task] = piece
    return found


def _kept_once(task: str, others: Sequence[str]) -> str:
    says = "says" if len(others) == 1 else "say"
    return f"{names(others)} {says} what {task} says; it is kept once."


def _alike(one: str, other: str) -> bool:
    one, other = " ".join(one.split()), " ".join(other.split())
    if one == other:
        return True
    from rapidfuzz import fuzz

    # What is short differs in one word, and says the opposite.
    return min(len(one), len(other)) > 200 and fuzz.ratio(one, other) >= ALIKE and (
        _numbers(one) == _numbers(other)
    )  # fmt: skip


def _numbers(text: str) -> list[str]:
    return sorted(regex(r"\d+(?:[.,]\d+)*").findall(text))


def _title(heading: str) -> str:
    return f'"{heading.lstrip("#").strip()}"'
