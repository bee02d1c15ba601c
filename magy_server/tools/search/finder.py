"""This module asks ripgrep which files there are and which lines match.

Answers are positions, never text: that is read later, of the few lines shown,
from files that may be read.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from magy_server.core.errors import ToolError
from magy_server.tools.search import ripgrep, ripgrep_program
from magy_server.tools.search.dialect import Regex
from magy_server.tools.search.endless import endless, why
from magy_server.tools.search.globs import Filter
from magy_server.tools.shell.capture import ask

MOST = 200_000
"""Files with matches; whoever asks for more should ask for less."""
logger = logging.getLogger(__name__)
_PATH = re.compile(rb"([^\0]*)\0")
_COUNT = re.compile(rb"([^\0]*)\0(\d+)\n")
_LINE = re.compile(rb"([^\0]*)\0(\d+):(?:(\d+):)?[^\n]*\n")
"""ripgrep gives no column for an empty match at the very end of a file."""


@dataclass(slots=True)
class Answer:
    """What has come so far; it is filled while the search runs."""

    files: list[str] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    lines: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    """(line, byte in the line) of each first match, both from 1."""
    unreadable: bool = False
    """The search could not read something in the tree."""


class Finder:
    """`program` is the name or path of ripgrep that goes before others."""

    def __init__(self, program: str) -> None:
        self._program = program
        self._suits: dict[tuple[str, int], bool] = {}

    async def files(self, folder: str, keep: Filter, start: int, answer: Answer) -> None:
        """Finds the files below `folder` whose path from character `start` on passes."""

        def add(found: re.Match[bytes]) -> bool:
            path = os.fsdecode(found[1])
            if keep(path[start:]):
                answer.files.append(path)
            return False

        argv = ripgrep.files(folder, keep)
        await self._ask(argv, _records(_PATH, add), answer, around=folder)

    async def counts(self, path: str, regex: Regex, keep: Filter | None, answer: Answer) -> None:
        """Finds how many lines match in which files. Raises ToolError above `MOST` files."""
        start = len(path.rstrip("/")) + 1

        def add(found: re.Match[bytes]) -> bool:
            name = os.fsdecode(found[1])
            if keep is None or keep(name[start:]):
                answer.counts[name] = int(found[2])
            return len(answer.counts) > MOST

        argv = ripgrep.counts(path, regex, keep)
        await self._ask(argv, _records(_COUNT, add), answer, around=path)
        if len(answer.counts) > MOST:
            raise ToolError(
                f"More than {MOST:,} files match; narrow the search with path, glob or a longer "
                "pattern."
            )

    async def lines(self, paths: Sequence[str], regex: Regex, most: int, answer: Answer) -> None:
        """Finds where the first `most` matching lines of each file are."""
        if paths:
            argv = ripgrep.lines(paths, regex, most)
            await self._ask(argv, _records(_LINE, _positions(answer)), answer)

    async def lines_of(self, text: bytes, regex: Regex) -> list[tuple[int, int]]:
        """Of a UTF-8 text."""
        answer = Answer()
        if text:
            argv = ripgrep.lines_of_input(regex)
            await self._ask(argv, _records(_LINE, _positions(answer)), answer, text)
        return [position for found in answer.lines.values() for position in found]

    async def _ask(
        self,
        argv: Sequence[str],
        take: Callable[[bytes], bool],
        answer: Answer,
        given: bytes = b"",
        around: str | None = None,
    ) -> None:
        if around and (path := await asyncio.to_thread(endless, around)) is not None:
            raise ToolError(why(path))
        try:
            code, errors = await ask([await self._ripgrep(), *argv], take, given=given)
        except OSError as error:
            raise ToolError(f"The search could not be started: {error}. Tell the user.") from None
        if errors.strip() or code not in (0, 1, 2, None):
            said = errors.decode("utf-8", "replace").strip() or f"its program ended with {code}"
            raise ToolError(f"The search failed: {said}. Try a simpler pattern, or tell the user.")
        answer.unreadable |= code == 2

    async def _ripgrep(self) -> str:
        """The path of a program that suits. Raises ToolError when there is none."""
        for path in ripgrep_program.candidates(self._program):
            key = (path, os.stat(path).st_mtime_ns)
            if key not in self._suits:
                self._suits[key] = ripgrep_program.suits(await _version(path))
                if not self._suits[key]:
                    logger.warning("%s is not ripgrep %d or newer", path, ripgrep_program.OLDEST)
            if self._suits[key]:
                return path
        raise ToolError(f"{ripgrep_program.MISSING} Tell the user. {ripgrep_program.MEND}")


async def _version(path: str) -> str | None:
    said: list[bytes] = []

    def take(data: bytes) -> bool:
        said.append(data)
        return True  # a program that says more than a line is another one

    await ask([path, "--version"], take)
    return ripgrep_program.version(b"".join(said).decode("utf-8", "replace"))


def _positions(answer: Answer) -> Callable[[re.Match[bytes]], bool]:
    def add(found: re.Match[bytes]) -> bool:
        position = (int(found[2]), int(found[3] or 1))
        answer.lines.setdefault(os.fsdecode(found[1]), []).append(position)
        return False

    return add


def _records(
    form: re.Pattern[bytes], add: Callable[[re.Match[bytes]], bool]
) -> Callable[[bytes], bool]:
    """Gives each whole record of a stream to `add`, until that says that it is enough."""
    rest = b""

    def take(data: bytes) -> bool:
        nonlocal rest
        rest += data
        end = 0
        while found := form.match(rest, end):
            end = found.end()
            if add(found):
                return True
        rest = rest[end:]
        return False

    return take
