"""The tool `list_dir` shows what is in a directory, as a tree, a page at a time."""

from __future__ import annotations

import asyncio
import heapq
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import field
from functools import partial
from typing import Annotated, Any

from pydantic import Field

from magy_server.core.errors import ToolError
from magy_server.core.text.sanitizing import printable
from magy_server.core.tool import FactContext, Gathered, Result, Tool, ToolContext
from magy_server.dataclass import dataclass
from magy_server.tools.files.paths import Place, judged
from magy_server.tools.search import searched_place
from magy_server.tools.search.ignored_paths import searched
from magy_server.tools.search.ripgrep_queries import FilePattern, Finder
from magy_server.tools.shipped import tool
from magy_server.tools.stoppable_thread import in_thread

LINES = 300
"""Lines of a page, give or take the last directory's."""
INNER = 50
"""Entries of a directory within the one that is listed; of that one all can be paged."""
FRESH = 30.0
SECONDS = 30.0
_PROBE = "magy-is-this-directory-searched"
"""No ignore file has this name."""
_WORDS = {
    stat.S_IFIFO: "fifo", stat.S_IFSOCK: "socket", stat.S_IFCHR: "device", stat.S_IFBLK: "device",
}  # fmt: skip


async def _facts(ctx: FactContext, path: str = ".", **_: Any) -> Gathered:
    return searched_place.facts(ctx, path, "List"), {}


def list_tool(program: str) -> Tool:
    """`program` is the name or path of the ripgrep that is preferred: it knows what is ignored."""
    finder = Finder(program)

    @tool(effect="read", key="read", kind="read", facts=_facts, fresh=FRESH)
    async def list_dir(
        ctx: ToolContext,
        path: str = ".",
        depth: Annotated[int, "Levels to show", Field(ge=1, le=3)] = 1,
        offset: Annotated[int, "The first entry, from 1", Field(ge=1)] = 1,
    ) -> Result:
        """List a directory by name: directories end in `/`, files come with their size in bytes,
        links with what they lead to. Ignored directories are marked `(ignored)` and not opened;
        list them by their own path."""
        return await _list(ctx, finder, depth, offset)

    return list_dir


async def _list(ctx: ToolContext, finder: Finder, depth: int, offset: int) -> Result:
    (place,) = judged(ctx.root, ctx.facts)
    await asyncio.to_thread(searched_place.check_folder, place)
    try:
        async with asyncio.timeout(SECONDS):
            page = await _page(place, finder, depth, offset)
    except TimeoutError:
        raise ToolError(
            f"{place.name} could not be listed within {SECONDS:g} s; list a directory in it, or "
            "find files in it with glob."
        ) from None
    except OSError as error:
        raise ToolError(f"{place.name} cannot be listed: {error.strerror}.") from None
    if offset > max(page.total, 1):
        raise ToolError(
            f"{place.name} has only {page.total:,} entries; offset {offset:,} is past the end."
        )
    total = "1 entry" if page.total == 1 else f"{page.total:,} entries"
    if not page.lines:
        return Result(f"{printable(place.name)} is empty.", for_user="empty")
    text = "\n".join(page.lines)
    if offset > 1 or page.last < page.total:
        on = f"; continue with offset={page.last + 1}" if page.last < page.total else ""
        text += f"\n[entries {offset:,}-{page.last:,} of {page.total:,}{on}]"
    if page.unmarked:
        text += f"\n[what is ignored is not marked: {page.unmarked}]"
    return Result(text, for_user=total)


@dataclass(frozen=True, slots=True)
class _Page:
    lines: list[str]
    last: int
    """The last entry that is shown, counted from 1."""
    total: int
    unmarked: str
    """Why nothing is marked as ignored; "" if that is known."""


@dataclass(slots=True)
class _Entry:
    path: str
    found: os.stat_result
    ignored: bool = False
    inner: list[_Entry] = field(default_factory=list)
    hidden: int = 0
    """Further entries of this directory."""
    problem: str = ""

    def lines(self, indent: str = "") -> Iterator[str]:
        shown = indent + printable(os.path.basename(self.path))
        mark = "  (ignored)" if self.ignored else ""
        if not stat.S_ISDIR(self.found.st_mode):
            yield f"{shown}{_kind(self.path, self.found)}{mark}"
            return
        yield f"{shown}/{mark}{self.problem}"
        for entry in self.inner:
            yield from entry.lines(indent + "  ")
        if self.hidden:
            yield f"{indent}  [{self.hidden:,} more]"

    def at(self, level: int) -> Iterator[_Entry]:
        """What is so many levels below it."""
        if level == 0:
            yield self
        for entry in self.inner if level else ():
            yield from entry.at(level - 1)


async def _page(place: Place, finder: Finder, depth: int, offset: int) -> _Page:
    """Raises OSError when the directory cannot be listed."""
    most = offset - 1 + LINES
    entries, total = await in_thread(partial(_entries, place.path, offset - 1, most))
    unmarked = await _mark(place, finder, entries)
    for level in range(depth - 1):
        entries = await in_thread(partial(_opened, entries, level))
        inner = [one for entry in entries for one in entry.at(level + 1)]
        unmarked = unmarked or await _mark(place, finder, inner)
    lines: list[str] = []
    shown = 0
    for entry in entries:
        if len(lines) >= LINES:
            break
        lines += entry.lines()
        shown += 1
    return _Page(lines, offset - 1 + shown, total, unmarked)


async def _mark(place: Place, finder: Finder, entries: Sequence[_Entry]) -> str:
    """Marks what is ignored; says why it cannot."""
    folders = {f"{e.path}/{_PROBE}": e for e in entries if stat.S_ISDIR(e.found.st_mode)}
    others = {e.path: e for e in entries if not stat.S_ISDIR(e.found.st_mode)}
    try:
        seen = await searched(finder, place.path, others)
        seen |= await searched(finder, place.path, folders, FilePattern(_PROBE))
    except ToolError as error:
        return error.message
    for path, entry in (others | folders).items():
        entry.ignored = path not in seen
    return ""


def _opened(entries: Sequence[_Entry], level: int, check: Callable[[], None]) -> list[_Entry]:
    """The entries that a page has room for, with what is in the directories at that level."""
    lines, kept = 0, []
    for entry in entries:
        if lines >= LINES:
            break
        for one in entry.at(level):
            if stat.S_ISDIR(one.found.st_mode) and not one.ignored:
                try:
                    one.inner, total = _entries(one.path, 0, INNER, check)
                    one.hidden = max(0, total - INNER)
                except OSError as error:
                    one.problem = f"  (cannot be listed: {error.strerror})"
        lines += sum(1 for _ in entry.lines())
        kept.append(entry)
    return kept


def _entries(
    folder: str, skip: int, most: int, check: Callable[[], None]
) -> tuple[list[_Entry], int]:
    names, total = _first(os.fsencode(folder), most, check)
    found = []
    for name in names[skip:]:
        path = os.path.join(folder, os.fsdecode(name))
        with suppress(OSError):  # gone meanwhile
            found.append(_Entry(path, os.lstat(path)))
    return found, total


def _first(folder: bytes, most: int, check: Callable[[], None]) -> tuple[list[bytes], int]:
    """The first `most` names in order, and how many there are: memory for no more than these."""
    total = 0

    def names() -> Iterator[bytes]:
        nonlocal total
        with os.scandir(folder) as found:
            for entry in found:
                if total % 1000 == 0:
                    check()
                total += 1
                yield entry.name

    return heapq.nsmallest(most, names()), total


def _kind(path: str, found: os.stat_result) -> str:
    """What is said behind the name of what is no directory."""
    if stat.S_ISLNK(found.st_mode):
        try:
            target = os.readlink(path)
        except OSError:
            return " -> ?"
        there = "" if os.path.exists(path) else "  (leads nowhere)"
        return f" -> {printable(target)}{there}"
    if not stat.S_ISREG(found.st_mode):
        return f"  ({_WORDS.get(stat.S_IFMT(found.st_mode), 'special file')})"
    executable = "  executable" if found.st_mode & 0o111 else ""
    return f"  {found.st_size:,}{executable}"
