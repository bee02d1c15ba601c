"""The tools that find: `glob` files by name, `grep` lines by content.

Both ask ripgrep: what patterns may say and which files are left out is up to it.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Callable, Mapping
from typing import Annotated, Any

from pydantic import Field

from magy_server.core.errors import ToolError
from magy_server.core.events import Facts, Hash
from magy_server.core.tool import FactContext, Result, Tool, ToolContext, tool
from magy_server.tools.files.paths import Place, below
from magy_server.tools.search import excerpts, scope
from magy_server.tools.search import lines as grepping
from magy_server.tools.search.lines import SECONDS, Wish
from magy_server.tools.search.ripgrep_queries import Answer, Expression, FilePattern, Finder
from magy_server.tools.search.scope import called, in_thread, printable

LONGEST = 2_000
"""The most characters of a pattern."""
_EMPTY = re.compile(r"\{,|\{[^{}]*,,|,\}")
FRESH = 30.0
"""Seconds that a result may be given again while nothing is known to have changed."""
Folder = Annotated[str, "The directory to look in, relative to the workspace root or absolute"]


def search_tools(program: str, matches: int, results: int) -> list[Tool]:
    """`glob`, which shows `results` files at most, and `grep`, which shows `matches` lines at most.
    `program` is the name or path of the ripgrep that is preferred."""
    finder = Finder(program)
    return [_glob_tool(finder, results), _grep_tool(finder, matches)]


def _glob_tool(finder: Finder, most: int) -> Tool:
    @tool(effect="read", key="read", kind="search", facts=_glob_facts, fresh=FRESH)
    async def glob(
        ctx: ToolContext,
        pattern: Annotated[
            str,
            "Such as *.py, src/**/*.{ts,tsx}, **/test_*.py",
            Field(min_length=1, max_length=LONGEST),
        ],
        path: Folder = ".",
    ) -> Result:
        """Find files by name. `*` and `?` stay within one name, `**` goes through directories;
        `{a,b}` and `[a-z]` are alternatives. A pattern without a slash matches the name, at any
        depth; with one, the path below `path`. It returns only files, the newest first. It finds
        hidden files, but not those that .gitignore or .ignore exclude, unless the pattern begins
        with the ignored directory's name (`node_modules/foo/**`) or is the whole name of a file."""
        return await _glob(ctx, finder, pattern, most)

    return glob


def _grep_tool(finder: Finder, most: int) -> Tool:
    @tool(effect="read", key="read", kind="search", facts=_grep_facts, fresh=FRESH)
    async def grep(
        ctx: ToolContext,
        pattern: Annotated[
            str,
            "A regular expression in ripgrep's syntax, for one line",
            Field(min_length=1, max_length=LONGEST),
        ],
        path: Annotated[str, "The directory or file to search"] = ".",
        glob: Annotated[
            str,
            "Search only files like this: *.py, src/**/*.{ts,tsx}; with ! before it, all others",
            Field(max_length=LONGEST),
        ] = "",
        ignore_case: bool = False,
        fixed: Annotated[bool, "The pattern is plain text, not a regular expression"] = False,
        context: Annotated[int, "Lines to show around each match", Field(ge=0, le=10)] = 0,
        output: Annotated[
            grepping.Output, "The lines, only the names of the files, or a count for each file"
        ] = "lines",
        offset: Annotated[int, "The first match (or file) to return, from 1", Field(ge=1)] = 1,
    ) -> Result:
        """Search the lines of text files, also of hidden ones. The answer has a line
        `path:line:text` for each match (`path-line-text` for context), in the order of the paths. A
        file that is open in the editor is searched with its unsaved changes. Left out are binary
        files, what .gitignore or .ignore exclude (name a file or directory in `path` to search it
        nevertheless), and files that the rules do not let you read. There is no look-around, no
        back reference and no search over several lines."""
        wish = Wish(
            expression=Expression(pattern, ignore_case, fixed),
            files=_file_pattern(glob) if glob else None,
            context=context,
            output=output,
            offset=offset,
            most=most,
        )
        return await grepping.grep(ctx, finder, wish)

    return grep


async def _grep_facts(
    ctx: FactContext, pattern: str, path: str, **_: Any
) -> tuple[Facts, Mapping[Hash, bytes]]:
    return scope.facts(ctx, path, "search", f'Search "{_short(pattern)}" in'), {}


async def _glob_facts(
    ctx: FactContext, pattern: str, path: str, **_: Any
) -> tuple[Facts, Mapping[Hash, bytes]]:
    return scope.facts(ctx, path, "search", f"Find {_short(pattern)} in"), {}


def _short(pattern: str) -> str:
    shown = printable(pattern)
    return shown if len(shown) <= 60 else shown[:59] + "…"


def _file_pattern(text: str) -> FilePattern:
    if _EMPTY.search(text):
        raise ToolError("Nothing stands between two signs in the { }; call once for each pattern.")
    return FilePattern(text)


# --- glob ---------------------------------------------------------------------------------------


async def _glob(ctx: ToolContext, finder: Finder, pattern: str, most: int) -> Result:
    place = scope.place(ctx)
    wanted = _file_pattern(pattern)
    await asyncio.to_thread(scope.check_folder, place)
    start = await asyncio.to_thread(_start, place, pattern)
    answer = Answer()
    try:
        async with asyncio.timeout(SECONDS):
            await finder.files(place.path, answer, wanted, start)
            found = await in_thread(lambda check: _newest_first(answer, check))
    except TimeoutError:
        raise ToolError(_late(ctx, answer)) from None
    names = [printable(below(ctx.root, path) or path) for path in found[:most]]
    notes = "\n[something in there could not be read and was skipped]" * answer.unreadable
    if not names:
        hint = "; the pattern is for paths below it" * ("/" in pattern and place.name != ".")
        text = f"No files match {printable(pattern)} in {called(place)}{hint}.{notes}"
        return Result(text, for_user="no files")
    total = "1 file" if len(found) == 1 else f"{len(found):,} files"
    if len(found) > most:
        notes = f"\n[{most:,} of {total}, the newest; narrow the pattern or give a path]{notes}"
    return Result("\n".join(names) + notes, for_user=total)


def _start(place: Place, pattern: str) -> str:
    """Where to begin: below the plain names that the pattern begins with, if no link is there."""
    path = place.path
    for name in pattern.removeprefix("/").split("/")[:-1]:
        if name in ("", ".", "..") or any(char in name for char in "*?[]{}\\!"):
            break
        path = os.path.join(path, name)
    return path if os.path.isdir(path) and os.path.realpath(path) == path else place.path


def _newest_first(answer: Answer, check: Callable[[], None]) -> list[str]:
    """By modification time, then by name."""
    times = {}
    for number, path in enumerate(answer.files):
        if number % 1000 == 0:
            check()
        try:
            times[path] = os.lstat(path).st_mtime_ns
        except OSError:
            continue  # gone meanwhile
    return sorted(times, key=lambda path: (-times[path], excerpts.path_order(path)))


def _late(ctx: ToolContext, answer: Answer) -> str:
    some = ", ".join(printable(below(ctx.root, path) or path) for path in answer.files[:20])
    found = f"Until then {len(answer.files):,} files matched, among them: {some}"
    return (
        f"The search took longer than {SECONDS:g} s and was stopped. "
        f"{found if some else 'It had found nothing'}. Give a path to look in a smaller directory."
    )
