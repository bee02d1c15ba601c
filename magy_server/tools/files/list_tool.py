"""The tool `list_dir`: what is in a directory, as a tree, a page at a time."""

from __future__ import annotations

import asyncio
import heapq
import os
import stat
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field

from magy_server.core.errors import ToolError
from magy_server.core.events import Facts, Hash
from magy_server.core.tool import FactContext, Result, ToolContext, tool
from magy_server.tools.files.paths import Place
from magy_server.tools.search import scope
from magy_server.tools.search.ignores import Level, level
from magy_server.tools.search.scope import in_thread, printable

LINES = 300
"""Lines of a page, give or take the last directory's."""
INNER = 50
"""Entries of a directory within the one that is listed; of that one all can be paged."""
FRESH = 30.0
SECONDS = 30.0
_WORDS = {
    stat.S_IFIFO: "fifo", stat.S_IFSOCK: "socket", stat.S_IFCHR: "device", stat.S_IFBLK: "device",
}  # fmt: skip


async def _facts(ctx: FactContext, path: str = ".", **_: Any) -> tuple[Facts, Mapping[Hash, bytes]]:
    return scope.facts(ctx, path, "read", "List"), {}


@tool(effect="read", key="read", kind="read", facts=_facts, fresh=FRESH)
async def list_dir(
    ctx: ToolContext,
    path: Annotated[str, "The directory, relative to the workspace root or absolute"] = ".",
    depth: Annotated[int, "How many levels to show", Field(ge=1, le=3)] = 1,
    offset: Annotated[int, "The first entry to return, counted from 1", Field(ge=1)] = 1,
) -> Result:
    """List a directory by name: directories end in `/`, files come with their size in bytes, links
    with what they lead to. Directories that .gitignore or .ignore exclude are marked `(ignored)`
    and not opened; list them by their own path. Long lists end with a note on how to continue."""
    place = scope.place(ctx)
    await asyncio.to_thread(scope.check_folder, place)
    try:
        async with asyncio.timeout(SECONDS):
            page = await in_thread(lambda check: _page(place, depth, offset, check))
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
    return Result(text, for_user=total)


@dataclass(frozen=True, slots=True)
class _Page:
    lines: list[str]
    last: int
    """The last entry that is shown, counted from 1."""
    total: int


def _page(place: Place, depth: int, offset: int, check: Callable[[], None]) -> _Page:
    """Raises OSError when the directory cannot be listed."""
    folder = os.fsencode(place.path)
    here = level(folder)
    names, total = _first(folder, offset - 1 + LINES, check)
    lines: list[str] = []
    last = offset - 1
    for name in names[offset - 1 :]:
        if len(lines) >= LINES:
            break
        lines += _tree(folder, name, here, depth, "", check)
        last += 1
    return _Page(lines, last, total)


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


def _tree(
    folder: bytes, name: bytes, here: Level, depth: int, indent: str, check: Callable[[], None]
) -> Iterator[str]:
    path = folder.rstrip(b"/") + b"/" + name
    shown = indent + printable(os.fsdecode(name))
    try:
        found = os.lstat(path)
    except OSError:
        return  # gone meanwhile
    is_folder = stat.S_ISDIR(found.st_mode)
    ignored = here.ignores(path, name, is_folder)
    mark = "  (ignored)" if ignored else ""
    if not is_folder:
        yield f"{shown}{_kind(path, found)}{mark}"
        return
    if depth == 1 or ignored:
        yield f"{shown}/{mark}"
        return
    try:
        names, total = _first(path, INNER, check)
    except OSError as error:
        yield f"{shown}/  (cannot be listed: {error.strerror})"
        return
    yield f"{shown}/"
    below = here.below(path)
    for inner in names:
        yield from _tree(path, inner, below, depth - 1, indent + "  ", check)
    if total > len(names):
        yield f"{indent}  [{total - len(names):,} more]"


def _kind(path: bytes, found: os.stat_result) -> str:
    """What is said behind the name of what is no directory."""
    if stat.S_ISLNK(found.st_mode):
        try:
            target = os.fsdecode(os.readlink(path))
        except OSError:
            return " -> ?"
        there = "" if os.path.exists(path) else "  (leads nowhere)"
        return f" -> {printable(target)}{there}"
    if not stat.S_ISREG(found.st_mode):
        return f"  ({_WORDS.get(stat.S_IFMT(found.st_mode), 'special file')})"
    executable = "  executable" if found.st_mode & 0o111 else ""
    return f"  {found.st_size:,}{executable}"
