"""Parts of `World` that do nothing: no files, no mentions, no processes. So no part is missing."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TypeVar

from magy_server.core.actions import ActionSpec
from magy_server.core.errors import ToolError
from magy_server.core.events import Content, Hash
from magy_server.core.permit import Ruleset
from magy_server.core.ports import Found, Put
from magy_server.core.values import Version

A = TypeVar("A")


class NoFiles:
    """There are none, and none can be made."""

    def text(self, data: bytes) -> str | None:
        return None

    def encode(self, text: str, like: bytes) -> bytes:
        raise ToolError("There are no files here.")

    async def look(self, root: str, path: str, without: Collection[str] | None = None) -> Found:
        raise ToolError("There are no files here.")

    async def put(self, root: str, was: Found, now: Version, data: bytes, label: str) -> Put:
        raise ToolError("There are no files here.")

    async def head(self, root: str, path: str) -> str | None:
        return None

    async def committed(self, root: str, path: str, commit: str) -> Found:
        raise ToolError("There are no files here.")


async def as_written(
    root: str,
    content: Sequence[Content],
    rules: Sequence[Ruleset],
    actions: Mapping[str, ActionSpec],
) -> tuple[tuple[Content, ...], Mapping[Hash, bytes]]:
    """A prompt mentions nothing."""
    return tuple(content), {}


async def no_group(group: int, marker: str) -> None:
    """No call starts a process."""
