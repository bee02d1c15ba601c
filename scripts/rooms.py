"""The rooms of the server as a page: a picture of who imports whom, and what each module is for."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from tests.test_architecture import tree
from tests.test_rooms import FREE, LEVELS, modules, ours, package

INTRODUCTION = """\
# The rooms

Where is what? Each package of `magy_server` is a room, and each module says in its first sentence
what it is for. [The tour](../tour.md) goes through the most important of them.

Imports go down in this picture, never up, and not sideways except in the top line
([`tests/test_rooms.py`](../../tests/test_rooms.py)). An arrow that can also be walked over others
is left out.
"""


def page() -> Iterator[str]:
    yield INTRODUCTION
    yield from _picture()
    yield "\n## What is in them\n"
    for room, names in groupby(sorted(modules(), key=_sort), key=_room):
        found = [one for one in names if one not in FREE and one != room]
        if found:
            yield f"### {room.replace('.', '/') or 'magy_server'}\n"
            if room in modules():
                yield _about(modules()[room]) + "\n"
            yield "| module | |\n|---|---|"
            for one in found:
                yield f"| {_link(one)} | {_about(modules()[one])} |"
            yield ""


def _picture() -> Iterator[str]:
    arrows = {
        (package(one), package(other))
        for one, path in modules().items()
        for other in ours(path)
        if package(one) != package(other) and not {package(one), package(other)} & FREE
    }
    there = {room for arrow in arrows for room in arrow}
    last = LEVELS[-1] & there
    below = {(a, b) for a, b in arrows if a not in last}
    yield "```mermaid\nflowchart TD"
    named = ", ".join(sorted(last - {"app"}))
    yield f'  app["app, {named}"]'
    for room in sorted(there - last):
        yield f"  {room}"
    tops = {a for a, b in below} | {b for _, b in below}
    tops -= {b for _, b in below}
    for room in sorted(tops):
        yield f"  app --> {room}"
    for a, b in sorted(below):
        if not any((a, mid) in below and (mid, b) in _closure(below) for mid in there if mid != b):
            yield f"  {a} --> {b}"
    yield "```"


def _closure(arrows: set[tuple[str, str]]) -> set[tuple[str, str]]:
    found = set(arrows)
    while more := {(a, d) for a, b in found for c, d in arrows if b == c} - found:
        found |= more
    return found


def _sort(module: str) -> tuple[str, str]:
    return (_room(module), module)


def _room(module: str) -> str:
    path = modules()[module]
    own = path.stem == "__init__"
    return module if own else module.rpartition(".")[0]


def _link(module: str) -> str:
    path = modules()[module]
    inside = path.relative_to(Path(__file__).parents[1])
    return f"[`{path.name}`](../../{inside.as_posix()})"


def _about(path: Path) -> str:
    """The first sentence of its docstring, on one line."""
    text = ast.get_docstring(tree(path)) or ""
    first = " ".join(text.split("\n\n")[0].split())
    return re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", first).replace("|", "\\|")
