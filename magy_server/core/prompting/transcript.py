"""This module writes a conversation as plain text, for agents that are asked about it. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from magy_server.core.events import Finished, Prompted, Replied
from magy_server.core.prompting.sizes import words
from magy_server.core.values import Call, Text

EACH = 2_000
"""Characters that are shown of one message or result."""


def transcript(items: Iterable[object], room: int) -> str:
    """At most about `room` characters: of a long conversation the beginning, which says what it is
    about, and the end, which says what came of it."""
    text = "\n\n".join(_lines(items))
    if len(text) <= room:
        return text
    head, tail = text[: room // 3], text[-(room - room // 3) :]
    return f"{head}\n\n[... {len(text) - room} characters left out ...]\n\n{tail}"


def _lines(items: Iterable[object]) -> Iterator[str]:
    for item in items:
        match item:
            case Prompted():
                yield f"USER: {_cut(words(item))}"
            case Replied():
                for part in item.content:
                    if isinstance(part, Text) and part.text.strip():
                        yield f"AGENT: {_cut(part.text)}"
                    elif isinstance(part, Call):
                        yield f"CALL {part.name}: {_cut(str(part.arguments))}"
            case Finished():
                yield f"RESULT ({item.status}): {_cut(item.for_user or item.for_model)}"


def _cut(text: str) -> str:
    """Its lines stand in, so that none of them can look like the beginning of another's words."""
    text = text.strip()
    text = text if len(text) <= EACH else f"{text[:EACH]} [...]"
    return text.replace("\n", "\n  ")
