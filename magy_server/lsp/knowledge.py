"""What the client's editor knows, asked over the wire. An answer is checked before anything looks
at it: what a client says may be sloppy, stale or hostile."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from pathlib import PurePath
from typing import Any, TypeVar, cast, get_args

from pydantic import ValidationError

from magy_server.api.places import canonical
from magy_server.api.positions import units
from magy_server.api.wire import editor as wire
from magy_server.api.wire.reviews import Position, Range
from magy_server.api.wire.shapes import Wire
from magy_server.core.errors import EditorError
from magy_server.core.knowledge import (
    Answers,
    Definition,
    Diagnostics,
    Evaluated,
    Evaluation,
    Knowledge,
    Problem,
    Question,
    References,
    Spot,
    Symbol,
    Symbols,
)
from magy_server.lsp.documents import LiveWorkspace
from magy_server.lsp.transport import Connection

SECONDS = 10.0
"""In which an editor tells what it knows, or has not."""
GRACE = 2.0
"""Seconds more that it has to say that it gave up."""
_SEVERITIES = ("error", "warning", "information", "hint")
W = TypeVar("W", bound=wire.Loose)
A = TypeVar("A")


class Knower:
    """`knows`: what the client announced of it. `offers` are `magy/editor/*` methods."""

    def __init__(
        self, connection: Connection, workspace: LiveWorkspace, offers: Collection[str]
    ) -> None:
        self._connection = connection
        self._workspace = workspace
        self.knows = frozenset(n for n in get_args(Knowledge) if f"magy/editor/{n}" in offers)

    async def ask(self, question: Question[A]) -> A:
        """Raises EditorError."""
        what, params, seconds, read = self._prepared(question)
        if what not in self.knows:
            raise EditorError(
                f"This editor cannot answer a request for {what}.", reason="not_offered"
            )
        method = f"magy/editor/{what}"
        answer = await self._connection.request(
            method, params.model_dump(mode="json", by_alias=True), seconds
        )
        return cast(A, read(answer))

    def _prepared(self, question: Question[Any]) -> tuple[str, Wire, float, Callable[[Any], Any]]:
        match question:
            case Diagnostics(path=path):
                asked = wire.DiagnosticsParams(uri=path and self._uri(path))
                return "diagnostics", asked, SECONDS, _problems(asked.uri)
            case Definition():
                return "definition", self._place(question), SECONDS, _spots
            case References():
                return "references", self._place(question), SECONDS, _spots
            case Symbols(path=path, query=query):
                outline = wire.SymbolsParams(uri=path and self._uri(path), query=query)
                return "symbols", outline, SECONDS, _symbols
            case Evaluation(code=code, seconds=seconds):
                run = wire.EvalParams(code=code, timeout_ms=round(seconds * 1000))
                return "eval", run, seconds + GRACE, _evaluated
        raise TypeError(f"{question!r} is no question")

    def _uri(self, path: str) -> str:
        """As the editor writes it, if the file is open."""
        return self._workspace.uri_of_path(path) or PurePath(path).as_uri()

    def _place(self, asked: Definition | References) -> wire.PlaceParams:
        character = units(asked.before, self._workspace.encoding)
        position = Position(line=asked.line - 1, character=character)
        return wire.PlaceParams(uri=self._uri(asked.path), position=position, name=asked.name)


def _problems(uri: str | None) -> Callable[[Any], Answers[Problem]]:
    """`uri`: whose they are that name no file. Without it they are left out: who knows whether they
    may be shown."""

    def read(answer: Any) -> Answers[Problem]:
        found = _checked(wire.DiagnosticsAnswer, answer, "diagnostics")
        named = ((one, one.uri or uri) for one in found.diagnostics)
        items = tuple(problem(one, its) for one, its in named if its)
        return _answers(items, answer, "diagnostics", found)

    return read


def problem(one: wire.Diagnostic, uri: str) -> Problem:
    return Problem(
        at=spot(uri, one.range),
        column=one.range.start.character + 1,
        severity=cast(Any, _SEVERITIES[(one.severity or 1) - 1]),
        message=one.message,
        source=one.source or "",
        code="" if one.code is None else str(one.code),
    )


def _spots(answer: Any) -> Answers[Spot]:
    found = _checked(wire.LocationsAnswer, answer, "locations")
    items = tuple(spot(one.uri, one.range, one.text) for one in found.locations)
    return _answers(items, answer, "locations", found)


def _symbols(answer: Any) -> Answers[Symbol]:
    found = _checked(wire.SymbolsAnswer, answer, "symbols")
    items = tuple(
        Symbol(spot(one.uri, one.range), one.name, one.kind, one.container or "")
        for one in found.symbols
    )
    return _answers(items, answer, "symbols", found)


def _evaluated(answer: Any) -> Evaluated:
    found = _checked(wire.EvalAnswer, answer, "eval")
    return Evaluated(found.value, found.output, found.error)


def spot(uri: str, range: Range, text: str = "") -> Spot:
    line = range.start.line + 1
    last = range.end.line + (range.end.character > 0)
    return Spot(canonical(uri), uri, line, max(line, last), text)


def _answers(
    items: tuple[A, ...], answer: Mapping[str, Any], key: str, found: wire.Limited
) -> Answers[A]:
    more = found.truncated or len(answer[key] or ()) > wire.MOST
    return Answers(items, more, wire.unclear(answer[key], items))


def _checked(model: type[W], answer: Any, what: str) -> W:
    """Raises EditorError."""
    if type(answer) is not dict:
        raise EditorError(f"The editor's answer about {what} is not an object.", reason="malformed")
    try:
        return model.model_validate(answer)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(step) for step in first["loc"])
        raise EditorError(
            f"The editor's answer about {what} is invalid: {where}: {first['msg']}.",
            reason="malformed",
        ) from None
