"""This module finds within bounds what the patterns in a command line stand for.

Links that lead back make any number of paths out of a few files, so what counts is each name that
is looked at, not each that is found.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import field

from magy_server.core.shell.globs import may_be
from magy_server.dataclass import dataclass

NAMES = 50_000
"""Names in directories that are looked at for one command line."""
SECONDS = 1.0
_WILD = "*?["


class TooMuch(Exception):
    """The search has reached its bounds."""


@dataclass(slots=True)
class Bounds:
    """The bounds of one command line."""

    names: int = NAMES
    until: float = field(default_factory=lambda: time.monotonic() + SECONDS)

    def spend(self) -> None:
        """Counts a name. Raises TooMuch."""
        self.names -= 1
        if self.names < 0 or (self.names % 64 == 0 and time.monotonic() > self.until):
            raise TooMuch


def expanded(pattern: str, cwd: str, most: int, bounds: Bounds) -> list[str]:
    """At least the names that bash would put for `pattern` in the directory `cwd`, whatever the
    language it runs in; [] when there are none. Raises TooMuch, also for more than `most`."""
    if any(special in pattern for special in ("[:", "[.", "[=")):
        raise TooMuch
    start = "/" * (len(pattern) - len(pattern.lstrip("/")))
    found = [start]
    parts = pattern[len(start) :].split("/")
    for number, part in enumerate(parts):
        last = number == len(parts) - 1
        found = [
            name + ("" if last else "/")
            for folder in found
            for name in _step(folder, part, cwd, bounds, last=last)
        ]
    if len(found) > most:
        raise TooMuch
    return found


def _step(folder: str, part: str, cwd: str, bounds: Bounds, *, last: bool) -> Iterator[str]:
    """Returns the names in `folder` (that ends in a slash, or is empty) for one part of a
    pattern."""
    bounds.spend()
    if not any(char in part for char in _WILD):
        path = folder + part
        if last and not os.path.lexists(os.path.join(cwd, path)):
            return
        yield path
        return
    if part.startswith("."):  # to an older bash these are names like any other
        yield from (folder + name for name in (".", "..") if may_be(part, name))
    try:
        with os.scandir(os.path.join(cwd, folder)) as entries:
            for entry in entries:
                bounds.spend()
                hidden = entry.name.startswith(".") and not part.startswith(".")
                if not hidden and may_be(part, entry.name):
                    yield folder + entry.name
    except OSError:
        return  # what is no directory, or cannot be read, has no names for bash either
