"""This module searches in files and in the buffers that are open: which lines match, and the page
of them that is shown.

First all files with matches are found and counted; then it is asked which of them may be read; only
then lines are read, and of no more files than the page needs.
"""

from __future__ import annotations

import asyncio
import os
import time
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate, islice
from typing import Literal

from magy_server.core.errors import ToolError
from magy_server.core.text.sanitizing import printable
from magy_server.core.tool import Result, ToolContext
from magy_server.dataclass import dataclass
from magy_server.tools.files.pages import PAGE
from magy_server.tools.files.paths import Place, below, judged
from magy_server.tools.search import searched_place, shown_lines
from magy_server.tools.search.ignored_paths import searched
from magy_server.tools.search.ripgrep_queries import Answer, Expression, FilePattern, Finder
from magy_server.tools.search.searched_place import called
from magy_server.tools.stoppable_thread import in_thread

SECONDS = 30.0
"""The longest time of one search, in seconds."""
SLICE = 0.005
"""Seconds of asking what may be read, before others get their turn."""
LATE = 100
"""Files that are asked about for the answer of a search that took too long."""
Output = Literal["lines", "files", "counts"]


@dataclass(frozen=True, slots=True)
class Wish:
    """What was asked for. `most`: lines of a page."""

    expression: Expression
    files: FilePattern | None
    context: int
    output: Output
    offset: int
    most: int


@dataclass(frozen=True, slots=True)
class _Pick:
    """The page holds the matches [first, last) of a file."""

    path: str
    first: int
    last: int


async def grep(ctx: ToolContext, finder: Finder, wish: Wish) -> Result:
    """Raises ToolError, also after `SECONDS` with what was found until then."""
    search = _Search(ctx, finder, wish)
    try:
        async with asyncio.timeout(SECONDS):
            return await search.run()
    except TimeoutError:
        raise ToolError(search.late()) from None


class _Search:
    def __init__(self, ctx: ToolContext, finder: Finder, wish: Wish) -> None:
        self._ctx = ctx
        self._finder = finder
        self._wish = wish
        (self._place,) = judged(ctx.root, ctx.facts)
        self._answer = Answer()
        self._live: dict[str, bytes] = {}
        """The buffers that are searched, instead of what is on disk."""
        self._positions: dict[str, list[tuple[int, int]]] = {}
        self._withheld = 0

    async def run(self) -> Result:
        opened = self._open_here()
        self._live = await self._searched(opened)
        if self._place.path not in opened:
            await self._search_disk()
        await self._search_buffers()
        counts = {p: n for p, n in self._answer.counts.items() if p not in opened}
        counts |= {path: len(found) for path, found in self._positions.items()}
        allowed = await self._allowed(counts)
        if not allowed:
            return Result(f"{self._nothing()}{self._notes()}", for_user="no matches")
        if self._wish.output == "lines":
            text = await self._lines(allowed)
        else:
            text = self._names(allowed)
        return Result(f"{text}{self._notes()}", for_user=_total(allowed))

    # --- finding --------------------------------------------------------------------------------

    def _open_here(self) -> dict[str, str]:
        editor, here = self._ctx.editor, self._place.path
        paths = [path for path in editor.open_paths() if below(here, path) is not None]
        buffers = {path: editor.buffer(path) for path in paths}
        return {path: buffer.text for path, buffer in buffers.items() if buffer}

    async def _searched(self, opened: Mapping[str, str]) -> dict[str, bytes]:
        """Returns the open files that the search would find on disk."""
        here = self._place.path
        texts = {path: text for path, text in opened.items() if text and "\0" not in text}
        found = texts.keys() & {here}
        if not found:
            found = await searched(self._finder, here, texts, self._wish.files)
        return {
            path: text.removeprefix("\ufeff").encode("utf-8", "replace")
            for path, text in texts.items()
            if path in found
        }

    async def _search_disk(self) -> None:
        if self._live and not os.path.lexists(self._place.path):
            return  # a directory of new files that are not saved yet
        is_file = await in_thread(self._checked)
        files = None if is_file else self._wish.files
        path, expression = self._place.path, self._wish.expression
        await self._finder.counts(path, expression, files, self._answer)
        await asyncio.to_thread(searched_place.check_there, self._place)

    def _checked(self, check: Callable[[], None]) -> bool:
        """Whether a file is searched. A binary one among others is passed over; one that was named
        is not passed over silently."""
        searched_place.check_there(self._place)
        if os.path.isdir(self._place.path):
            return False
        try:
            with shown_lines.reading(self._place) as file:
                for piece in shown_lines.pieces(file):
                    check()
                    if b"\0" in piece:
                        raise ToolError(
                            f"{self._place.name} holds binary data, and grep searches text. "
                            "A command can inspect it."
                        )
        except OSError as error:
            raise ToolError(f"{self._place.name} cannot be read: {error.strerror}.") from None
        return True

    async def _search_buffers(self) -> None:
        """All at once, as one text."""
        texts = [data if data.endswith(b"\n") else data + b"\n" for data in self._live.values()]
        starts = list(accumulate((text.count(b"\n") for text in texts), initial=1))
        paths = list(self._live)
        found = await self._finder.lines_of(b"".join(texts), self._wish.expression)
        for line, column in found:
            which = bisect_right(starts, line) - 1
            here = (line - starts[which] + 1, column)
            self._positions.setdefault(paths[which], []).append(here)

    async def _allowed(self, counts: Mapping[str, int]) -> list[tuple[str, int]]:
        """What may be read, in order. What the rules deny is as if it were not there: to say that
        it has a match would already tell of its content."""
        found = []
        until = time.monotonic() + SLICE
        for path in await asyncio.to_thread(sorted, counts, key=shown_lines.path_order):
            action = self._ctx.may_read(path)
            if action == "allow":
                found.append((path, counts[path]))
            self._withheld += action == "ask"
            if time.monotonic() > until:
                await asyncio.sleep(0)
                until = time.monotonic() + SLICE
        return found

    # --- showing --------------------------------------------------------------------------------

    def _name(self, path: str) -> str:
        return below(self._ctx.root, path) or path

    def _names(self, allowed: Sequence[tuple[str, int]]) -> str:
        first = self._wish.offset - 1
        page = allowed[first : first + self._wish.most]
        self._check_offset(len(allowed), "files")
        counts = self._wish.output == "counts"
        lines = [
            f"{printable(self._name(path))}{f':{count}' if counts else ''}" for path, count in page
        ]
        lines.append(self._end(first + len(page), len(allowed), "files", "", _total(allowed)))
        return "\n".join(lines)

    async def _lines(self, allowed: Sequence[tuple[str, int]]) -> str:
        total = sum(count for _, count in allowed)
        self._check_offset(total, "matching lines")
        picks = list(_picked(allowed, self._wish.offset - 1, self._wish.most))
        on_disk = [pick for pick in picks if pick.path not in self._live]
        most = max((pick.last for pick in on_disk), default=0)
        paths = [pick.path for pick in on_disk]
        await self._finder.lines(paths, self._wish.expression, most, self._answer)
        self._positions |= self._answer.lines
        blocks, shown = await in_thread(lambda check: self._blocks(picks, check))
        last = self._wish.offset - 1 + shown
        within = f" in {_files(len(allowed))}"
        end = self._end(last, total, "matching lines", within, _total(allowed))
        return "\n".join([*blocks, end])

    def _blocks(self, picks: Sequence[_Pick], check: Callable[[], None]) -> tuple[list[str], int]:
        """Returns the lines of the page, and how many matches they are."""
        found: list[str] = []
        room, shown = PAGE, 0
        for pick in picks:
            hits = dict(self._positions.get(pick.path, [])[pick.first : pick.last])
            near = self._wish.context
            wanted = {
                line: hits.get(line, 1)
                for hit in hits
                for line in range(max(1, hit - near), hit + near + 1)
            }
            texts = self._read(pick.path, wanted, check)
            for line in sorted(texts):
                if near and found and line - 1 not in texts:
                    found.append("--")
                if line in hits and room <= 0:
                    return found, shown
                mark = ":" if line in hits else "-"
                found.append(f"{printable(self._name(pick.path))}{mark}{line}{mark}{texts[line]}")
                room -= len(found[-1]) + 1
                shown += line in hits
            shown += pick.last - pick.first - len(hits.keys() & texts.keys())
        return found, shown

    def _read(
        self, path: str, wanted: Mapping[int, int], check: Callable[[], None]
    ) -> dict[int, str]:
        if path in self._live:
            return shown_lines.of([self._live[path]], wanted, check)
        place = Place(self._ctx.root, path, self._name(path))
        try:
            return shown_lines.of_file(place, wanted, check)
        except (OSError, ToolError):  # gone since it was counted, or a link was put there
            self._answer.unreadable = True
            return {}

    # --- words ----------------------------------------------------------------------------------

    def _check_offset(self, total: int, what: str) -> None:
        if self._wish.offset > total:
            raise ToolError(
                f"There are only {total:,} {what}; offset {self._wish.offset:,} is past the end."
            )

    def _end(self, last: int, total: int, what: str, within: str, whole: str) -> str:
        first = self._wish.offset
        if first == 1 and last >= total:
            return f"[{whole}]"
        on = f"; continue with offset={last + 1}, or narrow the search" if last < total else ""
        return f"[{what} {first:,}-{last:,} of {total:,}{within}{on}]"

    def _nothing(self) -> str:
        within = f" matching {self._wish.files.text}" if self._wish.files else ""
        return (
            f"No matches for {printable(self._wish.expression.text)} in {called(self._place)}"
            f"{f', files{within}' if within else ''}."
        )

    def _notes(self) -> str:
        notes = []
        if self._withheld:
            notes.append(
                f"{_files(self._withheld)} left out: the rules do not allow reading "
                "without asking; read_file asks"
            )
        if self._answer.unreadable:
            notes.append("something in there could not be read and was skipped")
        return "".join(f"\n[{note}]" for note in notes)

    def late(self) -> str:
        """Returns what a search that took too long had found."""
        first = islice(self._answer.counts, LATE)
        may = [path for path in first if self._ctx.may_read(path) == "allow"][:20]
        names = ", ".join(map(printable, sorted(map(self._name, may), key=shown_lines.path_order)))
        found = f"Until then it had found matches in {names}" if may else "It had found nothing"
        return (
            f"The search took longer than {SECONDS:g} s and was stopped. {found}. "
            "Narrow it with path or glob, or use a simpler pattern."
        )


def _picked(allowed: Sequence[tuple[str, int]], skip: int, most: int) -> Iterator[_Pick]:
    for path, count in allowed:
        if most <= 0:
            return
        first, last = min(skip, count), min(skip + most, count)
        if first < last:
            yield _Pick(path, first, last)
        skip, most = skip - first, most - (last - first)


def _total(allowed: Sequence[tuple[str, int]]) -> str:
    lines = sum(count for _, count in allowed)
    return f"{lines:,} matching {'line' if lines == 1 else 'lines'} in {_files(len(allowed))}"


def _files(count: int) -> str:
    return "1 file" if count == 1 else f"{count:,} files"
