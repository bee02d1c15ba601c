"""`magy/context/get` gives what is around the cursor, as blocks that a prompt can take along.

The pure part composes items from a text and what the client showed; `ContextVerbs` finds the text
and asks the editor for its outline, if it offers one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Literal

from magy_server.api.connected import Connected
from magy_server.api.editor_answers import problem
from magy_server.api.places import canonical, uri_of
from magy_server.api.positions import column, split_lines
from magy_server.api.prompts.readable_files import Reach
from magy_server.api.wire import editor as wire
from magy_server.api.wire.shapes import (
    Block,
    LinkBlock,
    Position,
    Range,
    ResourceBlock,
    TextResource,
)
from magy_server.core.errors import EditorError, ToolError
from magy_server.core.knowledge import Symbol, Symbols
from magy_server.core.no_editor import NO_EDITOR
from magy_server.core.prompting.surroundings import block, definition, window
from magy_server.core.text.sanitizing import printable
from magy_server.dataclass import dataclass
from magy_server.tools.editor.problems import said
from magy_server.tools.files.live_file import load
from magy_server.tools.files.paths import Place, below

Kind = Literal["selection", "definition", "point", "diagnostics", "visible", "open"]
CHARACTERS = 40_000
"""The most characters of one block."""
LINES = 400
DIAGNOSTICS, OPEN = 100, 20
AROUND = 10
"""Lines before and behind the cursor where no definition is found."""
PATIENCE = 1.5
"""Seconds for the editor's outline; without it, indentation tells."""
_INSIDE = frozenset({"variable", "field", "property", "constant", "parameter", "key", "string",
                     "number", "boolean", "import", "enummember"})  # fmt: skip
"""Kinds of symbols that are no definition to look at."""


@dataclass(frozen=True, slots=True)
class Around:
    """The text that the cursor is in; lines keep their ends. `path` None: it is no local file."""

    uri: str
    name: str
    lines: Sequence[str]
    encoding: str
    path: str | None = None


# --- pure ---------------------------------------------------------------------------------------


def compose(
    around: Around, asked: wire.ContextParams, outline: Sequence[Symbol] = ()
) -> list[wire.ContextItem]:
    """What is in this text, best first."""
    lines = around.lines
    at = min(asked.position.line, len(lines) - 1)
    items = list(_selection(around, asked.selection))
    selected = bool(items)
    found = by_outline(lines, at, outline) or definition(lines, at)
    if found:
        first, end = _trimmed(lines, *found)
        items.append(_lines(around, "definition", first, end, at, default=not selected))
    items.append(_point(around, asked.position, bool(found), default=not selected))
    scope = found
    if selected and asked.selection:
        scope = (asked.selection.start.line, asked.selection.end.line + 1)
    items.extend(_diagnostics(around, asked, scope))
    if asked.visible:
        first, end = asked.visible.start.line, asked.visible.end.line + 1
        first, end = _trimmed(lines, min(first, len(lines)), min(end, len(lines)))
        if first < end:
            items.append(_lines(around, "visible", first, end, at, default=False))
    return items


def by_outline(lines: Sequence[str], at: int, outline: Sequence[Symbol]) -> tuple[int, int] | None:
    """The innermost definition of the outline around line `at`; where the outline says only where a
    name stands, the block that begins there."""
    best: tuple[int, int] | None = None
    for symbol in outline:
        if symbol.kind.replace(" ", "").lower() in _INSIDE:
            continue
        first, end = symbol.at.line - 1, min(symbol.at.last, len(lines))
        if first <= at and end - first <= 1:
            first, end = block(lines, first)
        if first <= at < end and end - first > 1 and (not best or end - first < best[1] - best[0]):
            best = (first, end)
    return best


def _selection(around: Around, range: Range | None) -> Iterator[wire.ContextItem]:
    if range is None:
        return
    ends = sorted((p.line, p.character) for p in (range.start, range.end))
    (first, start), (last, stop) = (_clamped(around, *end) for end in ends)
    text = "".join(around.lines[first : last + 1])
    text = text[start : len(text) - len(around.lines[last]) + stop]
    if not text.strip():
        return
    end = last + 1 if stop or last == first else last
    yield _item(around, "selection", first, end, text, default=True)


def _clamped(around: Around, line: int, character: int) -> tuple[int, int]:
    if line >= len(around.lines):
        return len(around.lines) - 1, len(around.lines[-1])
    return line, column(around.lines[line], character, around.encoding)


def _point(around: Around, position: Position, defined: bool, *, default: bool) -> wire.ContextItem:
    line, at = _clamped(around, position.line, position.character)
    first, end = window(len(around.lines), line, 0 if defined else AROUND)
    text = _plain("".join(around.lines[first:end]))
    where = f"[the cursor is in line {line + 1}, column {at + 1}]"
    return _item(around, "point", first, end, f"{where}\n{text}", default, show=line)


def _lines(
    around: Around, kind: Kind, first: int, end: int, at: int, *, default: bool
) -> wire.ContextItem:
    """One block; of more than `LINES` lines it holds those around the cursor, or the first."""
    cut = end - first > LINES
    if cut:
        middle = at if first <= at < end else first
        first = max(first, min(middle - LINES // 2, end - LINES))
        end = first + LINES
    return _item(around, kind, first, end, "".join(around.lines[first:end]), default, cut=cut)


def _item(
    around: Around,
    kind: Kind,
    first: int,
    end: int,
    text: str,
    default: bool,
    *,
    cut: bool = False,
    show: int | None = None,
) -> wire.ContextItem:
    text = _plain(text)
    if len(text) > CHARACTERS:
        text, cut = text[:CHARACTERS] + "\n[cut here]", True
    label = f"{around.name}:{_span(first, end) if show is None else show + 1}"
    words = {"visible": " (visible)", "point": " (cursor)"}.get(kind, "")
    fragment = f"L{first + 1}" + (f"-L{end}" if end > first + 1 else "")
    return wire.ContextItem(
        kind=kind,
        label=label + words + (" (cut)" if cut else ""),
        default=default,
        block=_resource(f"{around.uri}#{fragment}", text),
    )


def _diagnostics(
    around: Around, asked: wire.ContextParams, scope: tuple[int, int] | None
) -> Iterator[wire.ContextItem]:
    """Those in the scope first; they are sent if there are any, or if there is no scope."""
    found = asked.diagnostics
    if not found:
        return
    first, end = scope or (0, len(around.lines))

    def near(one: wire.Diagnostic) -> bool:
        return one.range.start.line < end and one.range.end.line >= first

    ordered = sorted(found, key=lambda one: (not near(one), one.range.start.line))[:DIAGNOSTICS]
    problems = (problem(one, around.uri) for one in ordered)
    text = "\n".join(said(one, around.name) for one in problems)
    count = "1 diagnostic" if len(found) == 1 else f"{len(found)} diagnostics"
    if len(found) > DIAGNOSTICS:
        count += f" (cut to {DIAGNOSTICS})"
    if asked.unclear:
        count += f" ({asked.unclear} malformed left out)"
    yield wire.ContextItem(
        kind="diagnostics",
        label=count,
        default=near(ordered[0]),
        block=_resource("magy:diagnostics", text[:CHARACTERS]),
    )


def _trimmed(lines: Sequence[str], first: int, end: int) -> tuple[int, int]:
    while first < end and not lines[end - 1].strip():
        end -= 1
    return first, end


def _span(first: int, end: int) -> str:
    return f"{first + 1}-{end}" if end > first + 1 else f"{first + 1}"


def _plain(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n").removesuffix("\n")


def _resource(uri: str, text: str) -> Block:
    return ResourceBlock(type="resource", resource=TextResource(uri=uri, text=text))


# --- the handler --------------------------------------------------------------------------------


class ContextVerbs:
    def __init__(self, at: Connected, reach: Reach) -> None:
        self._documents = at.documents
        self._editor = at.service.world.editor
        self._reach = reach

    async def get(self, params: wire.ContextParams) -> wire.ContextResult:
        """Nothing of a file that rules keep from agents, not even a selection."""
        path = canonical(params.uri)
        items: list[wire.ContextItem] = []
        if not self._reach.hidden(params.uri):
            around = await self._around(params.uri, path)
            if around is not None:
                # Of a large text this takes a while, and the editor goes on asking.
                outline = await self._outline(path)
                items = await asyncio.to_thread(compose, around, params, outline)
        items.extend(self._open(params.open_uris, path))
        return wire.ContextResult(items=items)

    async def _around(self, uri: str, path: str | None) -> Around | None:
        document = self._documents.open_document(uri)
        if document is None and path is not None:
            document = self._documents.document(path)
        name = self._reach.called(uri if path else uri.rstrip("/").rpartition("/")[2] or uri)
        known = uri_of(path) if path else printable(uri)
        encoding = self._documents.encoding
        if document is not None:
            return Around(known, name, document.lines, encoding, path)
        if path is None:
            return None
        root = self._reach.root_of(path)
        try:
            base = await load(NO_EDITOR, Place(root, path, below(root, path) or path))
        except ToolError:
            return None
        return None if base.missing else Around(known, name, split_lines(base.raw), encoding, path)

    async def _outline(self, path: str | None) -> Sequence[Symbol]:
        """It is a help, not a need."""
        if path is None or "symbols" not in self._editor.knows:
            return ()
        try:
            async with asyncio.timeout(PATIENCE):
                found = await self._editor.ask(Symbols(path))
        except (EditorError, TimeoutError):
            return ()
        return [symbol for symbol in found.items if symbol.at.path == path]

    def _open(self, uris: Sequence[str], current: str | None) -> Iterator[wire.ContextItem]:
        paths = dict.fromkeys(path for uri in uris if (path := canonical(uri)))
        others = (path for path in paths if path != current and not self._reach.denied(path))
        for path in islice(others, OPEN):
            name = self._reach.name(path)
            link = LinkBlock(type="resource_link", uri=uri_of(path), name=name)
            yield wire.ContextItem(kind="open", label=name, default=False, block=link)
