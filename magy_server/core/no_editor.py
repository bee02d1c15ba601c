"""`NoEditor` stands in for the editor of a process that has none (`core.ports.Editor`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from magy_server.core.errors import EditorError, EditRefused
from magy_server.core.knowledge import Question
from magy_server.core.ports import Buffer, Seen
from magy_server.edits.model import TextChange

A = TypeVar("A")


class NoEditor:
    """No file is open, and nothing can be asked."""

    tells = True
    knows: frozenset[str] = frozenset()

    async def look(self, path: str) -> None:
        return

    def buffer(self, path: str) -> Buffer | None:
        return None

    def open_paths(self) -> Sequence[str]:
        return ()

    async def apply(self, buffer: Buffer, changes: Sequence[TextChange], label: str) -> Buffer:
        raise EditRefused("There is no editor here.")

    async def late(self, path: str) -> bool:
        return False

    async def save(self, buffer: Buffer) -> Buffer | None:
        return None

    def follow(self, see: Callable[[Seen], None]) -> Callable[[], None]:
        return lambda: None

    async def caught_up(self) -> bool:
        return True

    async def ask(self, question: Question[A]) -> A:
        raise EditorError("There is no editor here.")


NO_EDITOR = NoEditor()
