"""What several agents wrote becomes one text, and it is said where they wrote the same thing twice,
or wrote different things under one heading. Nothing that only one of them wrote is left out. Pure.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain

from magy_server.core.graphs.contradictions import Text, contradictions, lines, same
from magy_server.core.graphs.graph import names
from magy_server.dataclass import dataclass
from magy_server.regex import regex

SHOWN = 20
"""The most contradictions that are named."""
_HEADING = regex(r"(#{1,6})\s+(.*?)\s*#*\s*")
_UNDER = regex(r" {0,3}(=+|-+)\s*")
"""Under a heading."""
_NUMBER = regex(r"^(?:[\d.)、\s]+|[一二三四五六七八九十]+[、.]\s*)+")


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
    """`above`: the headings that it stands under."""

    task: str
    heading: str
    body: str
    above: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        return _plain(self.heading)


def merged(pieces: Sequence[Piece]) -> Merged:
    """Returns what the pieces say together, in their order. Pieces without a heading in common
    stand one after the other, each under the name of its task."""
    pieces = [piece for piece in pieces if piece.text.strip()]
    if len(pieces) < 2:
        return Merged(pieces[0].text if pieces else "")
    sections = [_sections(piece) for piece in pieces]
    twice = {name for some in sections for name, count in Counter(
        one.words for one in some).items() if count > 1}  # fmt: skip
    groups: dict[object, list[_Section]] = {}
    for section in chain.from_iterable(sections):
        # What stands in a text twice, such as "Example", is known by what it is under.
        key = (*section.above, section.words) if section.words in twice else section.words
        groups.setdefault(key, []).append(section)
    intro = groups.pop("", [])
    notes: list[str] = []
    if any(len({one.task for one in group}) > 1 for group in groups.values()):
        texts = _begun(intro, notes)
        texts += [_joined(group, notes) for group in groups.values()]
    else:
        twins = _twins(pieces)
        alike = {task for tasks in twins.values() for task in tasks}
        texts = [f"## {piece.task}\n\n{piece.text.strip()}" for piece in pieces
                 if piece.task not in alike]  # fmt: skip
        notes += [_kept_once(*one) for one in twins.items()]
    return Merged("\n\n".join(texts), (*notes, *conflicts(pieces)))


def _sections(piece: Piece) -> list[_Section]:
    """The text before the first heading has the heading ""; headings in code are none."""
    found: list[tuple[str, list[str]]] = [("", [])]
    for line, kind in lines(piece.text):
        if kind != "prose":
            found[-1][1].append(line)
        elif _HEADING.fullmatch(line):
            found.append((line.strip(), []))
        elif under := _underlined(found[-1][1], line):
            found[-1][1].pop()
            found.append((under, []))
        else:
            found[-1][1].append(line)
    return list(_placed(piece.task, found))


def _underlined(above: Sequence[str], line: str) -> str:
    """A heading that has a line of `=` or `-` below it instead of signs before it; "": none."""
    mark = _UNDER.fullmatch(line)
    text = above[-1].strip() if above else ""
    alone = len(above) < 2 or not above[-2].strip()
    if not (mark and text and alone) or text.startswith(("-", "*", "+", ">", "|")):
        return ""
    return f"{'#' if mark[1][0] == '=' else '##'} {text}"


def _placed(task: str, parts: Sequence[tuple[str, list[str]]]) -> Iterator[_Section]:
    path: list[tuple[int, str]] = []
    for heading, below in parts:
        if not heading and not any(map(str.strip, below)):
            continue
        level = _level(heading)
        while path and path[-1][0] >= level:
            path.pop()
        above = tuple(words for _, words in path)
        yield _Section(task, heading, "\n".join(below), above)
        if heading:
            path.append((level, _plain(heading)))


def _level(heading: str) -> int:
    return len(heading) - len(heading.lstrip("#"))


def _plain(heading: str) -> str:
    """The same for headings that differ only in case, level, number and marks."""
    words = unicodedata.normalize("NFKC", heading.lstrip("#").strip(" *_`"))
    return " ".join(_NUMBER.sub("", words).strip("*_`:。. ").casefold().split())


def _begun(intro: Sequence[_Section], notes: list[str]) -> list[str]:
    """What stands before all headings; of several, under their names."""
    kept = _different(intro, notes, "at the beginning")
    if len({one.task for one in kept}) < 2:
        return [one.body.strip() for one in kept]
    return [f"**{one.task}:** {one.body.strip()}" for one in kept]


def _joined(group: Sequence[_Section], notes: list[str]) -> str:
    """What stands under one heading; adds to `notes`."""
    heading = group[0].heading
    kept = _different(group, notes, f"under {_title(heading)}")
    if len(kept) == 1:
        return f"{heading}\n\n{kept[0].body.strip()}".rstrip()
    authors = list(dict.fromkeys(one.task for one in kept))
    if len(authors) > 1:
        notes.append(
            f"{names(authors)} say different things under {_title(heading)}; all of it is "
            "kept, under their names."
        )
    below = "#" * min(6, _level(heading) + 1)
    parts = [f"{below} {one.task}\n\n{one.body.strip()}" for one in kept]
    return "\n\n".join([heading, *parts])


def _different(group: Sequence[_Section], notes: list[str], where: str) -> list[_Section]:
    """Those of which none says what another does; adds to `notes`."""
    kept: list[_Section] = []
    for section in group:
        twin = next((n for n, one in enumerate(kept) if same(one.body, section.body)), None)
        if twin is None:
            if section.body.strip() or len(group) == 1:
                kept.append(section)
            continue
        if len(section.body.strip()) > len(kept[twin].body.strip()):
            kept[twin], section = section, kept[twin]
        if kept[twin].task != section.task and section.body.strip():
            notes.append(
                f"{section.task} says {where} what {kept[twin].task} says; it is kept once."
            )
    return kept or list(group[:1])


def _twins(pieces: Sequence[Piece]) -> dict[str, list[str]]:
    """By task: the later ones that say the same as it, or less."""
    kept: list[Piece] = []
    found: dict[str, list[str]] = {}
    for piece in pieces:
        twin = next((n for n, one in enumerate(kept) if same(one.text, piece.text)), None)
        if twin is None:
            kept.append(piece)
            continue
        if len(piece.text.strip()) > len(kept[twin].text.strip()):
            found[piece.task] = found.pop(kept[twin].task, [])
            kept[twin], piece = piece, kept[twin]
        found.setdefault(kept[twin].task, []).append(piece.task)
    return found


def _kept_once(task: str, others: Sequence[str]) -> str:
    says = "says" if len(others) == 1 else "say"
    return f"{names(others)} {says} what {task} says; it is kept once."


def conflicts(pieces: Sequence[Piece]) -> Iterator[str]:
    """Yields a sentence for each contradiction between pieces."""
    found = contradictions([Text(piece.task, piece.text) for piece in pieces])
    for one, other in ((both.one, both.other) for both in found[:SHOWN]):
        if one.text == other.text:
            yield f"{one.task} and {other.task} give different code for `{one.text}`."
        else:
            yield (
                f"{one.task} and {other.task} contradict each other: "
                f'"{one.text}" and "{other.text}".'
            )
    if (more := len(found) - SHOWN) > 0:
        yield f"There are {more:,} more contradictions."


def _title(heading: str) -> str:
    return f'"{heading.lstrip("#").strip()}"'
