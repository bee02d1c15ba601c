"""This module turns an editor's answers about code (problems, places, symbols, results) into
values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar, cast

from pydantic import ValidationError

from magy_server.api.places import canonical
from magy_server.api.wire import editor as wire
from magy_server.api.wire.shapes import Range
from magy_server.core.errors import EditorError
from magy_server.core.knowledge import Answers, Evaluated, Problem, Spot, Symbol

_SEVERITIES = ("error", "warning", "information", "hint")
W = TypeVar("W", bound=wire.Loose)
A = TypeVar("A")


def problems(uri: str | None) -> Callable[[Any], Answers[Problem]]:
    """`uri`: the file of those problems that name none. Without it Magy leaves them out: nothing
    says whether they may be shown."""

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


def spots(answer: Any) -> Answers[Spot]:
    found = _checked(wire.LocationsAnswer, answer, "locations")
    items = tuple(spot(one.uri, one.range, one.text) for one in found.locations)
    return _answers(items, answer, "locations", found)


def symbols(answer: Any) -> Answers[Symbol]:
    found = _checked(wire.SymbolsAnswer, answer, "symbols")
    items = tuple(
        Symbol(spot(one.uri, one.range), one.name, one.kind, one.container or "")
        for one in found.symbols
    )
    return _answers(items, answer, "symbols", found)


def evaluated(answer: Any) -> Evaluated:
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
