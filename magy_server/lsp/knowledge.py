"""`Knower` asks the editor over the wire what it knows of the code. It checks each answer before
anything uses it: what a client says may be sloppy, stale or hostile."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any, TypeVar, cast, get_args

from magy_server.api.places import uri_of
from magy_server.api.positions import units
from magy_server.api.wire.shapes import Position, Wire
from magy_server.core.errors import EditorError
from magy_server.core.knowledge import (
    Definition,
    Diagnostics,
    Evaluation,
    Knowledge,
    Question,
    References,
    Symbols,
)
from magy_server.lsp.documents import LiveWorkspace
from magy_server.lsp.transport import Connection

if TYPE_CHECKING:  # many editors are never asked
    from magy_server.api.wire import editor as wire

SECONDS = 30.0
"""In which an editor tells what it knows. A language server that starts with the file takes most of
them."""
GRACE = 2.0
"""Seconds more that it has to say that it gave up."""
A = TypeVar("A")


class Knower:
    """`knows`: what the client announced of it. `offers` are `magy/editor/*` methods."""

    def __init__(
        self, connection: Connection, workspace: LiveWorkspace, offers: Collection[str]
    ) -> None:
        self._connection = connection
        self._workspace = workspace
        self._offers = frozenset(offers)
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
        from magy_server.api import editor_answers
        from magy_server.api.wire import editor as wire

        match question:
            case Diagnostics(path=path):
                asked = wire.DiagnosticsParams(uri=path and self._uri(path))
                return "diagnostics", asked, SECONDS, editor_answers.problems(asked.uri)
            case Definition():
                return "definition", self._place(question), SECONDS, editor_answers.spots
            case References():
                return "references", self._place(question), SECONDS, editor_answers.spots
            case Symbols(path=path, query=query):
                outline = wire.SymbolsParams(uri=path and self._uri(path), query=query)
                return "symbols", outline, SECONDS, editor_answers.symbols
            case Evaluation(code=code, seconds=seconds):
                run = wire.EvalParams(code=code, timeout_ms=round(seconds * 1000))
                return "eval", run, seconds + GRACE, editor_answers.evaluated
        raise TypeError(f"{question!r} is no question")

    def _uri(self, path: str) -> str:
        """As the editor writes it, if the file is open."""
        return self._workspace.uri_of_path(path) or uri_of(path)

    def _place(self, asked: Definition | References) -> wire.PlaceParams:
        from magy_server.api.wire import editor as wire

        character = units(asked.before, self._workspace.encoding)
        position = Position(line=asked.line - 1, character=character)
        return wire.PlaceParams(uri=self._uri(asked.path), position=position, name=asked.name)
