"""`@sym:NAME` in a prompt gives the text of the definition, if the editor knows where that is."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from magy_server.core.errors import EditorError, ToolError
from magy_server.core.knowledge import Symbol, Symbols
from magy_server.core.ports import Editor
from magy_server.core.prompting.surroundings import block
from magy_server.core.values import Content, Embedded, Link
from magy_server.edits.text import plain
from magy_server.regex import regex
from magy_server.tools.files.live_file import load
from magy_server.tools.files.paths import Place, below

SYMBOL = "sym:"
"""What `@` is followed by where a name in the code is meant, not a file."""
MOST, ALIKE = 10, 3
"""Names of one prompt that are looked up, and definitions of one name that are given."""
PATIENCE = 3.0
"""Seconds for all of them: a person has just pressed return."""
LINES, CHARACTERS = 400, 40_000
"""The most lines and characters of one definition."""
_NAMED = regex(rf'(?<![\w.@/\\+-])@{SYMBOL}([^\s"@]{{1,200}})')
CLOSING = ".,;:!?)]}>'\"`’”»…"
"""What follows a name in a sentence; tried without it."""


def names(text: str) -> list[str]:
    return list(dict.fromkeys(found[1] for found in _NAMED.finditer(text)))[:MOST]


async def definitions(
    root: str, text: str, editor: Editor, may_read: Callable[[Place], bool]
) -> list[Content]:
    """What the names in `text` stand for; a name that the editor does not know stands for nothing.
    A definition in a file that may not be read unasked is only linked."""
    found: list[Content] = []
    if "symbols" not in editor.knows:
        return found
    try:
        async with asyncio.timeout(PATIENCE):
            for name in names(text):
                for symbol in await _known(root, name, editor):
                    found.append(await _definition(root, symbol, editor, may_read))
    except TimeoutError:
        pass  # what was found until then
    return found


async def _known(root: str, name: str, editor: Editor) -> Sequence[Symbol]:
    """Those in the workspace that are called so. `@sym:run,` means `run`, if no `run,` is known."""
    short = name.rstrip(CLOSING)
    if not short:
        return ()
    try:
        answers = await editor.ask(Symbols(None, short))
    except EditorError:
        return ()
    for wanted in dict.fromkeys((name, short)):
        if alike := list(_alike(root, wanted, answers.items)):
            return alike[:ALIKE]
    return ()


def _alike(root: str, name: str, symbols: Sequence[Symbol]) -> Iterator[Symbol]:
    for symbol in symbols:
        path = symbol.at.path
        inside = path is not None and below(root, path) not in (None, ".")
        if inside and name in (symbol.name, f"{symbol.container}.{symbol.name}"):
            yield symbol


async def _definition(
    root: str, symbol: Symbol, editor: Editor, may_read: Callable[[Place], bool]
) -> Content:
    path = symbol.at.path or ""
    place = Place(root, path, below(root, path) or path)
    uri = Path(path).as_uri()
    link = Link(uri=f"{uri}#L{symbol.at.line}", name=f"{place.name}:{symbol.at.line}")
    if not await asyncio.to_thread(os.path.isfile, path) or not may_read(place):
        return link
    try:
        base = await load(editor, place)
    except ToolError:
        return link
    lines = plain(base.raw).split("\n")
    first, end = symbol.at.line - 1, min(symbol.at.last, len(lines))
    if first >= len(lines):
        return link  # the editor's knowledge is older than the file
    if end - first <= 1:
        first, end = block(lines, first)
    end = min(end, first + LINES)
    text = "\n".join(lines[first:end])[:CHARACTERS]
    return Embedded(uri=f"{uri}#L{first + 1}-L{end}", text=text)
