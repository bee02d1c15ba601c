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
from magy_server.tools.search.ripgrep_queries import Finder

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
_PLAIN = bytes(range(0x20, 0x7F)).replace(b'"', b"") + b"\0"
"""A path of these can be said, and is as long when it is folded."""
_PAD = "\x01"
_TOP = regex(r"\0([^/\0]+)(?:(/)[^\0]*(?:\0\1/[^\0]*)*)?(?=\0)")
"""A file at the top, or a directory and all in it that is named one after the other."""


@dataclass(frozen=True, slots=True)
class Names:
    """Paths of files relative to the root, in one text with a NUL on either side of each; and the
    same as they are compared, each at the same place. So that it is, one that is shorter than its
    other form ends in `_PAD`. `whole`: that is all there is."""

    text: str
    folded: str
    whole: bool = True

    def __contains__(self, path: str) -> bool:
        """Returns whether there is a file of that name."""
        return f"\0{_padded(path, path.casefold())}\0" in self.text

    def folder(self, start: int, slash: int) -> str:
        """Returns the part of the path that begins at `start` up to a slash of its other form."""
        whole = self.text[start : self.text.index("\0", start)]
        return "/".join(whole.split("/")[: self.folded.count("/", start, slash) + 1]) + "/"


def names_of(paths: Iterable[str]) -> Names:
    """Returns those of files whose names are known."""
    text = folded = "\0"
    for path in paths:
        text += _padded(path, path.casefold()) + "\0"
        folded += path.casefold() + "\0"
    return Names(text, folded)


def _padded(path: str, folded: str) -> str:
    return path.ljust(len(folded), _PAD)


@dataclass(slots=True)
class _Gathered:
    """Takes what ripgrep prints, while it goes on. For each single name nothing is done, unless
    one of those that come together is odd."""

    texts: list[str] = field(default_factory=list)
    folded: list[str] = field(default_factory=list)

    def take(self, paths: bytes) -> None:
        text, data = os.fsdecode(paths), b"\0%b\0" % paths
        if data.translate(None, _PLAIN) or b"~\0" in data or b"#\0" in data:
            odd = names_of(filter(_meant, text.split("\0")))
            self.texts.append(odd.text)
            self.folded.append(odd.folded)
        else:
            self.texts.append(f"\0{text}\0")
            self.folded.append(f"\0{text.lower()}\0")

    def names(self, *, whole: bool) -> Names:
        """Returns those so far."""
        return Names("".join(self.texts), "".join(self.folded), whole)


def _meant(path: str) -> bool:
    """Whether a mention could say the name, and somebody may mean it."""
    if not path.isprintable() or '"' in path:
        return False
    return not (path[-1] in "#~" and _SCRATCH.fullmatch(path))


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
        return found.gathered.names(whole=False)

    async def _read(self, found: _List) -> None:
        found.gathered = gathered = _Gathered()
        try:
            whole = False
            try:
                async with asyncio.timeout(SECONDS):
                    await self._finder.names(found.root, gathered.take)
                whole = True
            except TimeoutError:
                pass
            except ToolError as error:
                logger.warning("the names of the files in %s: %s", found.root, error.message)
            found.names = gathered.names(whole=whole)
        finally:
            found.at, found.reading = time.monotonic(), None
            found.gathered = _Gathered()


class _List:
    def __init__(self, root: str) -> None:
        self.root = root
        self.names: Names | None = None
        self.gathered = _Gathered()
        self.reading: asyncio.Task[None] | None = None
        self.at = -FRESH * 2

    def stop(self) -> None:
        if self.reading is not None:
            self.reading.cancel()


def best(names: Names, query: str, most: int, check: Callable[[], None]) -> list[str]:
    """The paths that `query` may mean, the likeliest first: by the beginning of a file's name, then
    by any part of the path, then by letters in this order; those alike by name. Directories are
    among them, and end in `/`. Of an empty query what is at the top, of one that ends in `/` what
    is in that directory."""
    wanted = query.removeprefix("./").casefold()
    if "\0" in wanted:
        return []
    scored = heapq.nsmallest(most, _scored(names, wanted, check) if wanted else _top(names))
    found = [path for *_, path in scored]
    if len(found) < most and len(wanted.replace("/", "")) >= 2:
        seen = set(found)
        loose = heapq.nsmallest(most, _loose(names, wanted, check))
        found += [path for *_, path in loose if path not in seen]
    return [path.rstrip(_PAD) for path in found[:most]]


def _top(names: Names) -> Iterator[tuple[int, int, int, str]]:
    for path in {found[1] + (found[2] or "") for found in _TOP.finditer(names.text)}:
        folded = path.rstrip(_PAD).casefold()
        yield not path.endswith("/"), 0, len(folded), path


def _scored(
    names: Names, wanted: str, check: Callable[[], None]
) -> Iterator[tuple[int, int, int, str]]:
    folder, size = wanted.rpartition("/")[0], len(wanted)
    text, folded, seen, number, end = names.text, names.folded, set[str](), 0, 0
    while (at := folded.find(wanted, end)) >= 0:
        if number % 1000 == 0:
            check()
        number += 1
        start, end = folded.rfind("\0", 0, at) + 1, folded.find("\0", at)
        path = folded[start:end]
        yield _rank(path, wanted, folder), path.count("/"), end - start, text[start:end]
        slash = folded.rfind("/", at + size - 1, end)
        if slash >= 0 and text[start : slash + 1] not in seen:
            for path, name in _folders(names, start, at + size, slash, seen):
                if path != wanted:  # that one was typed already
                    yield _rank(path, wanted, folder), path.count("/") - 1, len(path), name


def _folders(
    names: Names, start: int, last: int, slash: int, seen: set[str]
) -> Iterator[tuple[str, str]]:
    """The directories of a path (from `start`, the last one up to `slash`) in which all that
    matches is (up to `last`), but for those that were seen: each as it is compared, and as it
    is."""
    while slash >= 0 and (name := names.folder(start, slash)) not in seen:
        seen.add(name)
        yield names.folded[start : slash + 1], name
        slash = names.folded.rfind("/", last - 1, slash)


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
    near = re.compile(letters[0] + "".join(f"[^{letter}\0]*{letter}" for letter in letters[1:]))
    folded, seen, number, end = names.folded, set[str](), 0, 0
    while found := near.search(folded, end):
        if number % 1000 == 0:
            check()
        number += 1
        first, last = found.span()
        start, end = folded.rfind("\0", 0, first) + 1, folded.find("\0", last)
        yield last - first, end - start, names.text[start:end]
        slash = folded.rfind("/", last - 1, end)
        for path, name in _folders(names, start, last, slash, seen):
            if path != wanted:
                yield last - first, len(path), name


def exists(root: str, name: str) -> bool:
    """Returns whether a name of the list is still there."""
    return os.path.lexists(os.path.join(root, name))
