"""This module tells what a command points at: the place in words, the lines there as the editor
shows them now, and the word at the cursor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from magy_server.api.connected import Documents
from magy_server.api.positions import column
from magy_server.api.prompts.readable_files import Reach
from magy_server.api.wire.shapes import Position, Range
from magy_server.core.errors import InvalidRequest
from magy_server.core.values import Content
from magy_server.dataclass import dataclass
from magy_server.regex import regex

if TYPE_CHECKING:  # an editor may be open for days before somebody points at something
    from magy_server.api.prompts.context import ContextVerbs
    from magy_server.api.wire.editor import Diagnostic

_WORD = regex(r"[^\W\d]\w*")
_LONGEST_LINE = 2_000
"""Characters beyond which no word is looked for: nobody wrote such a line."""


@dataclass(frozen=True, slots=True)
class Pointed:
    """`place`: `path:first-last`, for people and models. `content`: what stands there, or around
    the cursor, and what the editor reports of it."""

    place: str
    symbol: str
    content: Sequence[Content]


class Pointing:
    """`contexts` is asked for when it is first needed."""

    def __init__(
        self, workspace: Documents, contexts: Callable[[], ContextVerbs], reach: Reach
    ) -> None:
        self._workspace = workspace
        self._contexts = contexts
        self._reach = reach

    async def at(self, uri: str, range: Range, diagnostics: Sequence[Diagnostic] = ()) -> Pointed:
        """Raises InvalidRequest: agents must not see that file, or there is none."""
        from magy_server.api import present
        from magy_server.api.wire.editor import ContextParams

        name = self._reach.called(uri)
        if self._reach.hidden(uri):
            raise InvalidRequest(f"A rule keeps {name} from agents, so Magy does not send it.")
        asked = ContextParams(
            uri=uri,
            position=range.start,
            selection=None if empty(range) else range,
            diagnostics=list(diagnostics),
        )
        items = (await self._contexts().get(asked)).items
        if not items:
            raise InvalidRequest(f"{name} is not open here, and is not a readable text file.")
        content, _ = present.content([item.block for item in items if item.default])
        return Pointed(f"{name}:{_lines(range)}", self.symbol(uri, range), content)

    def symbol(self, uri: str, range: Range) -> str:
        """The word at the cursor, or the one that is selected; "" if there is none. At once, for
        every movement of the cursor."""
        document = self._workspace.open_document(uri)
        if document is None or range.start.line != range.end.line:
            return ""
        return _word(document.line(range.start.line), range.start, self._workspace.encoding)


def empty(range: Range) -> bool:
    return range.start == range.end


def _lines(range: Range) -> str:
    """From 1. A selection of whole lines ends where the line after them begins."""
    first, last = range.start.line, range.end.line
    last -= range.end.character == 0 and last > first
    return f"{first + 1}" if first == last else f"{first + 1}-{last + 1}"


def _word(line: str, position: Position, encoding: str) -> str:
    if len(line) > _LONGEST_LINE:
        return ""
    at = column(line, position.character, encoding)
    return next((w[0] for w in _WORD.finditer(line) if w.start() <= at <= w.end()), "")
