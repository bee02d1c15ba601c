"""This module keeps the names of a workspace's files for a while, so that they can be completed at
each keystroke. What .gitignore and .ignore leave out is not there."""

from __future__ import annotations

import asyncio
import heapq
import logging
import os
import re
import time
from collections.abc import Callable, Coroutine, Iterable, Iterator
from dataclasses import field
from typing import Any

from magy_server.core.errors import ToolError
from magy_server.dataclass import dataclass
from magy_server.regex import regex
from magy_server.tools.search.ripgrep_queries import Answer, Finder

logger = logging.getLogger(__name__)
FRESH = 5.0
"""Seconds for which a list is taken as it is; an older one is used while it is read again."""
SECONDS = 60.0
"""For reading a list."""
ROOTS = 4
"""Workspaces of which the names are kept."""
_SCRATCH = regex(r"(?:.*/)?(?:#[^/]*#|[^/]*~)", re.DOTALL)
"""What Emacs saves by itself, and backups: nobody means them."""
_BETWEEN = "_-. "
"""Between the words of a name."""


@dataclass(frozen=True, slots=True)
class Names:
    """Paths relative to the root, directories among them, which end in `/`; and the same as they
    are compared. `whole`: that is all there is."""

    paths: tuple[str, ...]
    folded: tuple[str, ...]
    whole: bool = True


@dataclass(slots=True)
class _Gathered(Answer):
    """Makes the names while the search goes on, which takes about as long."""

    root: str = ""
    paths: list[str] = field(default_factory=list)
    folders: dict[str, None] = field(default_factory=dict)

    def found(self, paths: Iterable[str]) -> None:
        start = len(self.root.rstrip("/")) + 1
        last = ""
        for path in paths:
            name = path[start:]
            if not name.isprintable() or '"' in name:
                continue  # no mention could say it
            if name[-1] in "#~" and _SCRATCH.fullmatch(name):
                continue
            self.paths.append(name)
            folder = name[: name.rfind("/") + 1]
            if folder != last:
                last = folder
                while folder and folder not in self.folders:
                    self.folders[folder] = None
                    folder = folder[: folder.rfind("/", 0, -1) + 1]

    def names(self, *, whole: bool) -> Names:
        """Returns those so far; also on another thread."""
        paths = (*self.paths, *self.folders.copy())
        folded = "\n".join(paths).casefold().split("\n") if paths else ()
        return Names(paths, tuple(folded), whole)


class FileIndex:
    """`spawn` runs the reading of a list, which outlives the question that began it."""

    def __init__(
        self, program: str, spawn: Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]]
    ) -> None:
        self._finder = Finder(program)
        self._spawn = spawn
        self._lists: dict[str, _List] = {}

    async def names(self, root: str, patience: float) -> Names:
        """Returns the names in a canonical directory; if `patience` seconds are not enough for the
        first look, those found so far."""
        found = self._lists.pop(root, None) or _List(root)
        self._lists[root] = found
        while len(self._lists) > ROOTS:
            self._lists.pop(next(iter(self._lists))).stop()
        if found.reading is None and time.monotonic() - found.at > FRESH:
            found.reading = self._spawn(self._read(found))
        if found.names is None and found.reading is not None:
            await asyncio.wait({found.reading}, timeout=patience)
        if found.names is not None:
            return found.names
        return await asyncio.to_thread(found.gathered.names, whole=False)

    async def _read(self, found: _List) -> None:
        found.gathered = gathered = _Gathered(root=found.root)
        try:
            whole = False
            try:
                async with asyncio.timeout(SECONDS):
                    await self._finder.files(found.root, gathered)
                whole = True
            except TimeoutError:
                pass
            except ToolError as error:
                logger.warning("the names of the files in %s: %s", found.root, error.message)
            found.names = await asyncio.to_thread(gathered.names, whole=whole)
        finally:
            found.at, found.reading = time.monotonic(), None
            found.gathered = _Gathered(root=found.root)


class _List:
    def __init__(self, root: str) -> None:
        self.root = root
        self.names: Names | None = None
        self.gathered = _Gathered(root=root)
        self.reading: asyncio.Task[None] | None = None
        self.at = -FRESH * 2

    def stop(self) -> None:
        if self.reading is not None:
            self.reading.cancel()


def best(names: Names, query: str, most: int, check: Callable[[], None]) -> list[str]:
    """The paths that `query` may mean, the likeliest first: by the beginning of a file's name, then
    by any part of the path, then by letters in this order; those alike by name. Of an empty query
    what is at the top, of one that ends in `/` what is in that directory."""
    wanted = query.removeprefix("./").casefold()
    scored = heapq.nsmallest(most, _scored(names, wanted, check))
    found = [path for *_, path in scored]
    if len(found) < most and len(wanted.replace("/", "")) >= 2:
        seen = set(found)
        loose = heapq.nsmallest(most, _loose(names, wanted, check))
        found += [path for *_, path in loose if path not in seen]
    return found[:most]


def _scored(
    names: Names, wanted: str, check: Callable[[], None]
) -> Iterator[tuple[int, int, int, str]]:
    folder = wanted.rpartition("/")[0]
    for number, path in enumerate(names.folded):
        if number % 1000 == 0:
            check()
        if wanted not in path or (wanted.endswith("/") and path == wanted):
            continue  # the directory that was typed is there already
        depth = path.count("/", 0, -1)
        if not wanted:
            if depth == 0:
                yield (not path.endswith("/"), depth, len(path), names.paths[number])
            continue
        yield (_rank(path, wanted, folder), depth, len(path), names.paths[number])


def _rank(path: str, wanted: str, folder: str) -> int:
    """Returns a rank; 0 is best."""
    if folder:
        if path == wanted:
            return 0
        return 1 if path.startswith(wanted) else 2 if f"/{wanted}" in path else 4
    base = path.rfind("/", 0, -1) + 1
    at = path.find(wanted, base)
    if at == base:
        return 0 if len(path) - base - path.endswith("/") == len(wanted) else 1
    if at < 0:
        return 4
    return 2 if path[at - 1] in _BETWEEN else 3


def _loose(names: Names, wanted: str, check: Callable[[], None]) -> Iterator[tuple[int, int, str]]:
    """By the length of the part that has all letters in this order."""
    letters = [re.escape(letter) for letter in wanted[:40]]
    near = re.compile(letters[0] + "".join(f"[^{letter}]*{letter}" for letter in letters[1:]))
    for number, path in enumerate(names.folded):
        if number % 1000 == 0:
            check()
        if path != wanted and (found := near.search(path)):
            yield (found.end() - found.start(), len(path), names.paths[number])


def exists(root: str, name: str) -> bool:
    """Returns whether a name of the list is still there."""
    return os.path.lexists(os.path.join(root, name))
