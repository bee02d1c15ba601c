"""A client asks for inline completion with these. Quick to import: most people never do."""

from __future__ import annotations

from magy_server.api.wire.shapes import Position, Range
from magy_server.dataclass import dataclass

SCHEMES = ("file", "untitled")
"""Documents that people write; others an editor only shows."""


@dataclass(frozen=True, slots=True)
class Selected:
    """The entry of the editor's own list that is selected: it would put `text` in the place of
    `range`, which ends at the cursor."""

    range: Range
    text: str


@dataclass(frozen=True, slots=True)
class Request:
    """`invoked`: the person asked for it, and does not only type."""

    uri: str
    position: Position
    language: str = ""
    invoked: bool = False
    selected: Selected | None = None
