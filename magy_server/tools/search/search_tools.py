"""This module defines the search tools: `glob` finds files by name, `grep` lines by content.

Both ask ripgrep: what patterns may say and which files are left out is up to it.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from magy_server.core.errors import ToolError
from magy_server.core.text.sanitizing import printable
from magy_server.core.tool import FactContext, Gathered, Result, Tool, ToolContext
from magy_server.regex import regex
from magy_server.tools.search import glob_search, grep_search, searched_place
from magy_server.tools.search.grep_search import Wish
from magy_server.tools.search.ripgrep_queries import Expression, FilePattern, Finder
from magy_server.tools.shipped import tool

LONGEST = 2_000
"""The most characters of a pattern."""
_EMPTY = regex(r"\{,|\{[^{}]*,,|,\}")
FRESH = 30.0
"""Seconds that a result may be given again while nothing is known to have changed."""
Folder = Annotated[str, "Where to look"]


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
        """Find files by name, the newest first. `*` and `?` stay within one name, `**` goes
        through directories; `{a,b}` and `[a-z]` are alternatives. A pattern without a slash
        matches the name at any depth; with one, the path below `path`. Hidden files are found;
        those that .gitignore or .ignore exclude only if the pattern begins with their
        directory's name (`node_modules/foo/**`) or is a file's whole name."""
        return await glob_search.glob(ctx, finder, _file_pattern(pattern), most)

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
            grep_search.Output, "The lines, only the names of the files, or a count for each file"
        ] = "lines",
        offset: Annotated[int, "The first match or file, from 1", Field(ge=1)] = 1,
    ) -> Result:
        """Search the lines of text files, hidden ones too, and of open files with their unsaved
        changes. The answer has a line `path:line:text` for each match (`path-line-text` for
        context). Left out are binary files, what .gitignore or .ignore exclude (unless `path`
        names it), and what the rules do not let you read. No look-around, no back reference, no
        search over several lines."""
        wish = Wish(
            expression=Expression(pattern, ignore_case, fixed),
            files=_file_pattern(glob) if glob else None,
            context=context,
            output=output,
            offset=offset,
            most=most,
        )
        return await grep_search.grep(ctx, finder, wish)

    return grep


async def _grep_facts(ctx: FactContext, pattern: str, path: str, **_: Any) -> Gathered:
    return searched_place.facts(ctx, path, f'Search "{_short(pattern)}" in'), {}


async def _glob_facts(ctx: FactContext, pattern: str, path: str, **_: Any) -> Gathered:
    return searched_place.facts(ctx, path, f"Find {_short(pattern)} in"), {}


def _short(pattern: str) -> str:
    shown = printable(pattern)
    return shown if len(shown) <= 60 else shown[:59] + "…"


def _file_pattern(text: str) -> FilePattern:
    if _EMPTY.search(text):
        raise ToolError("An alternative within { } is empty; call once for each pattern.")
    return FilePattern(text)
