"""This module searches files by name, and shows those that changed last."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable

from magy_server.core.errors import ToolError
from magy_server.core.text.sanitizing import printable
from magy_server.core.tool import Result, ToolContext
from magy_server.tools.files.paths import Place, below, judged
from magy_server.tools.search import searched_place, shown_lines
from magy_server.tools.search.grep_search import SECONDS
from magy_server.tools.search.ripgrep_queries import Answer, FilePattern, Finder
from magy_server.tools.search.searched_place import called
from magy_server.tools.stoppable_thread import in_thread


async def glob(ctx: ToolContext, finder: Finder, wanted: FilePattern, most: int) -> Result:
    """`most`: files that are shown. Raises ToolError, also after `SECONDS` with what was found."""
    (place,) = judged(ctx.root, ctx.facts)
    await asyncio.to_thread(searched_place.check_folder, place)
    start = await asyncio.to_thread(_start, place, wanted.text)
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
        hint = "; the pattern is for paths below it" * ("/" in wanted.text and place.name != ".")
        text = f"No files match {printable(wanted.text)} in {called(place)}{hint}.{notes}"
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
    return sorted(times, key=lambda path: (-times[path], shown_lines.path_order(path)))


def _late(ctx: ToolContext, answer: Answer) -> str:
    some = ", ".join(printable(below(ctx.root, path) or path) for path in answer.files[:20])
    found = f"Until then {len(answer.files):,} files matched, among them: {some}"
    return (
        f"The search took longer than {SECONDS:g} s and was stopped. "
        f"{found if some else 'It had found nothing'}. Give a path to look in a smaller directory."
    )
