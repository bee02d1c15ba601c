"""With these tools a model asks the editor for diagnostics, definitions, references and symbols.

Offered only if the editor announced that it answers. It may name any file: those that the rules
keep from the model are not shown at all, and of what is outside the workspace only where it is.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Sequence
from typing import Annotated, Any, TypeVar

from pydantic import Field

from magy_server.core.errors import EditorError, ToolError
from magy_server.core.knowledge import (
    Answers,
    Definition,
    Diagnostics,
    Question,
    References,
    Spot,
    Symbol,
    Symbols,
)
from magy_server.core.text.sanitizing import printable
from magy_server.core.tool import FactContext, FactsFunction, Gathered, Result, Tool, ToolContext
from magy_server.core.values import Facts
from magy_server.edits.text import plain
from magy_server.tools.editor import problems
from magy_server.tools.editor.uris import named
from magy_server.tools.files.live_file import load
from magy_server.tools.files.paths import Place, below, resolve
from magy_server.tools.search.searched_place import called
from magy_server.tools.shipped import tool

MOST = 200
"""The most lines of an answer."""
WHERE = "the line of the name, from 1; 0: its first occurrence in the file"
A = TypeVar("A")
Name = Annotated[str, "The name, exactly as in the file", Field(min_length=1, max_length=200)]
Line = Annotated[int, f"{WHERE[0].upper()}{WHERE[1:]}", Field(ge=0)]


def _titled(verb: str) -> FactsFunction:
    """Facts that name what is asked about. No file is among the resources: whether the model may
    read it is looked at beside the permission key `editor`, which these questions have."""

    async def facts(
        ctx: FactContext, path: str = "", name: str = "", query: str = "", **_: Any
    ) -> Gathered:
        about = " in ".join(printable(text[:100]) for text in (name or query, path) if text)
        if path:
            resolve(ctx.root, path)
        return Facts(title=f"{verb} {about or 'open files'}"), {}

    return facts


@tool(
    effect="read", key="editor", kind="search", facts=_titled("Diagnostics of"), needs="diagnostics"
)
async def diagnostics(
    ctx: ToolContext,
    path: Annotated[str, "The file; empty: all files open in the editor"] = "",
) -> Result:
    """Show what compilers, linters and language servers in the user's editor report about a file's
    present text: `path:line:column: severity: message`. They may need a moment after an edit. The
    editor often has none for files that are not open: run the project's own checks for these.
    """
    place = _place(ctx, path) if path else None
    found = await _ask(ctx, Diagnostics(place.path if place else None))
    view = _View(ctx)
    order = ("error", "warning", "information", "hint")
    shown = sorted(
        (one for one in found.items if view.shows(one.at)),
        key=lambda one: (order.index(one.severity), one.at.path or one.at.uri, one.at.line),
    )
    lines = [
        problems.said(one, view.name(one.at)) if view.inside(one.at) else view.line(one.at, "")
        for one in shown
    ]
    where = called(place) if place else "the open files"
    return _result(lines, f"No diagnostics in {where}.", "diagnostic", view, found)


@tool(
    effect="read", key="editor", kind="search", facts=_titled("Definition of"), needs="definition"
)
async def find_definition(ctx: ToolContext, path: str, name: Name, line: Line = 0) -> Result:
    """Ask the user's editor where a name that a file uses is defined: `path:line:
    text`. The editor knows the language, so this is more reliable than a search for the text."""
    return await _located(ctx, Definition, path, name, line)


@tool(
    effect="read", key="editor", kind="search", facts=_titled("References of"), needs="references"
)
async def find_references(ctx: ToolContext, path: str, name: Name, line: Line = 0) -> Result:
    """Ask the user's editor where the workspace uses a name that occurs in a file:
    `path:line: text`."""
    return await _located(ctx, References, path, name, line)


@tool(effect="read", key="editor", kind="search", facts=_titled("Symbols of"), needs="symbols")
async def list_symbols(
    ctx: ToolContext,
    path: Annotated[str, "The file to outline; empty: the workspace"] = "",
    query: Annotated[str, "Part of the name", Field(max_length=200)] = "",
) -> Result:
    """Ask the user's editor for functions, classes and so on: those of one file, or those of the
    workspace whose name contains `query`."""
    if not path and not query:
        raise ToolError("Give a path for the outline of a file, or a query for the workspace.")
    place = _place(ctx, path) if path else None
    found = await _ask(ctx, Symbols(place.path if place else None, query))
    view = _View(ctx)
    items = [one for one in found.items if view.shows(one.at)]
    if query:
        items = [one for one in items if query.casefold() in one.name.casefold()]
    lines = [_symbol(one, view, outline=place is not None) for one in items]
    where = f"in {called(place)}" if place else "in the workspace"
    about = f"The editor knows no symbols{f' like {query}' * bool(query)} {where}."
    return _result(lines, about, "symbol", view, found)


KNOWLEDGE_TOOLS: Sequence[Tool] = (diagnostics, find_definition, find_references, list_symbols)


# --- asking -------------------------------------------------------------------------------------


async def _ask(ctx: ToolContext, question: Question[A]) -> A:
    try:
        return await ctx.editor.ask(question)
    except EditorError as error:
        raise ToolError(f"{error.message} Use grep and read_file instead.") from None


def _place(ctx: ToolContext, path: str) -> Place:
    """Raises ToolError also where the model may not read unasked: nobody is asked here."""
    place = resolve(ctx.root, path)
    if ctx.may_read(place.path) != "allow":
        raise ToolError(f"The rules do not let you read {place.name} without asking.")
    return place


async def _position(ctx: ToolContext, place: Place, name: str, line: int) -> tuple[int, str]:
    """Returns the line of `name`, and what stands before it there. Raises ToolError."""
    base = await load(ctx.editor, place)
    if base.missing:
        raise ToolError(base.absent)
    lines = plain(base.raw).split("\n")
    if line > len(lines):
        raise ToolError(f"{place.name} has only {len(lines)} lines.")
    found = await asyncio.to_thread(_found, [lines[line - 1]] if line else lines, name)
    if found is None:
        if not line:
            raise ToolError(f"{place.name} does not have {name!r} in it.")
        text = problems.line(lines[line - 1])
        raise ToolError(f"Line {line} of {place.name} does not have {name!r} in it; it is: {text}")
    index, column = found
    at = line or index + 1
    return at, lines[at - 1][:column]


def _found(lines: Sequence[str], name: str) -> tuple[int, int] | None:
    """Returns (index, column), as a word if the line has it as one."""
    word = re.compile(rf"(?<!\w){re.escape(name)}(?!\w)")
    for index, text in enumerate(lines):
        if name in text and (match := word.search(text)):
            return index, match.start()
    return next(((i, text.index(name)) for i, text in enumerate(lines) if name in text), None)


# --- showing ------------------------------------------------------------------------------------


class _View:
    """Which files an answer may show, and by which name."""

    def __init__(self, ctx: ToolContext) -> None:
        self._ctx = ctx
        self._kept: dict[str, bool] = {}
        self.left_out = 0
        self._root = ctx.root

    def shows(self, spot: Spot) -> bool:
        """Counts what is left out. Where something outside the workspace stands may be known,
        unless a file of its name would be kept from the model."""
        key = spot.path or spot.uri
        if key not in self._kept:
            self._kept[key] = self._keeps(spot)
        self.left_out += self._kept[key]
        return not self._kept[key]

    def _keeps(self, spot: Spot) -> bool:
        if spot.path is not None and self.inside(spot):
            return self._ctx.may_read(spot.path) != "allow"
        found = named(self._root, spot.path or spot.uri)
        return any(self._ctx.may_read(one.subject) == "deny" for one in found)

    def inside(self, spot: Spot) -> bool:
        return spot.path is not None and below(self._root, spot.path) is not None

    def name(self, spot: Spot) -> str:
        if spot.path is None:
            return printable(spot.uri[:500])
        return printable(below(self._root, spot.path) or spot.path)

    def line(self, spot: Spot, text: str) -> str:
        where = f"{self.name(spot)}:{spot.line}"
        if not self.inside(spot):
            return f"{where} (outside the workspace)"
        return f"{where}: {text}" if text else where


async def _located(
    ctx: ToolContext, ask: type[Definition | References], path: str, name: str, line: int
) -> Result:
    place = _place(ctx, path)
    at, before = await _position(ctx, place, name, line)
    found = await _ask(ctx, ask(place.path, at, before, name))
    view = _View(ctx)
    spots = [spot for spot in found.items if view.shows(spot)]
    lines = [view.line(spot, problems.line(spot.text)) for spot in dict.fromkeys(spots)]
    many, one = ("definition",) * 2 if ask is Definition else ("references", "reference")
    return _result(lines, f"The editor knows no {many} of {name}.", one, view, found)


def _symbol(one: Symbol, view: _View, *, outline: bool) -> str:
    if not view.inside(one.at):
        return view.line(one.at, "")
    inside = f" in {one.container}" if one.container else ""
    text = problems.line(f"{one.kind} {one.name}{inside}".strip())
    if outline:
        span = f"{one.at.line}-{one.at.last}" if one.at.last > one.at.line else f"{one.at.line}"
        return f"{span}: {text}"
    return view.line(one.at, text)


def _result(lines: Iterable[str], none: str, what: str, view: _View, found: Answers[Any]) -> Result:
    lines = list(dict.fromkeys(lines))
    count = f"{len(lines)} {what}{'s' * (len(lines) != 1)}"
    notes = ""
    if len(lines) > MOST or found.more:
        shown = min(len(lines), MOST)
        notes += f"\n[only the first {shown} are shown; ask about one file, or narrow it down]"
    if view.left_out:
        notes += f"\n[left out: {view.left_out} in files that the rules keep from you]"
    if found.unclear:
        notes += f"\n[left out: {found.unclear} that the editor reported incompletely]"
    if not lines:
        return Result(none + notes, for_user=f"no {what}s")
    return Result("\n".join(lines[:MOST]) + notes, for_user=count)
