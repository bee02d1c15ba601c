"""Who changed a file, where that is known: Magy's own changes and what a person saves, told by
those who make or hear of them, heard by those who watch meanwhile.

A command is watched for the files that change while it runs. What another call wrote, or a person
saved, is not the command's doing, however it looks from outside.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from magy_server.core.values import Version

_watches: list[Watch] = []


@dataclass(frozen=True, slots=True)
class Told:
    """What a file then was; the bytes of it."""

    version: Version
    data: bytes = field(repr=False)


class Watch:
    def __init__(self) -> None:
        self._last: dict[str, Told] = {}

    def last(self, path: str) -> Told | None:
        """What somebody else made of this file most recently; None: nobody is known to have."""
        return self._last.get(path)

    def paths(self) -> list[str]:
        return list(self._last)

    def hear(self, path: str, told: Told) -> None:
        self._last[path] = told


def tell(path: str, now: Version, data: bytes = b"") -> None:
    """`path` (as in `FileChange`) was just made to be so, on purpose and on disk. From any
    thread."""
    for watch in tuple(_watches):
        watch.hear(path, Told(now, data))


@contextmanager
def watching() -> Iterator[Watch]:
    """Hears what is told until the end of the block."""
    watch = Watch()
    _watches.append(watch)
    try:
        yield watch
    finally:
        _watches.remove(watch)
