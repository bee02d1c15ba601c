"""This module asks ripgrep, or what stands in for it, which files there are and which lines match.

Both answer alike. Answers are positions, never text: that is read later, of the few lines shown,
from files that may be read.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from magy_server.core.errors import ToolError
from magy_server.tools.search import ripgrep, standin
from magy_server.tools.search.dialect import Regex
from magy_server.tools.search.endless import endless, why
from magy_server.tools.search.globs import Filter
from magy_server.tools.shell.capture import ask

SCANNED = 50_000
"""Files that are listed at most without ripgrep."""
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
    cut: bool = False
    """There are more than `SCANNED` files."""


class Finder:
    """`program` is ripgrep's name or path."""

    def __init__(self, program: str) -> None:
        self._program = program
        self._suits: dict[tuple[str, int], bool] = {}

    async def files(self, folder: str, keep: Filter, start: int, answer: Answer) -> None:
        """Finds the files below `folder` whose path from character `start` on passes."""

        def add(found: re.Match[bytes]) -> bool:
            path = os.fsdecode(found[1])
            if not path:
                answer.cut = True
            elif keep(path[start:]):
                answer.files.append(path)
            return False

        await self._ask(
            lambda rg: ripgrep.files(rg, folder, keep),
            {"do": "files", "root": folder, "most": SCANNED},
            _records(_PATH, add), answer, around=folder,
        )  # fmt: skip

    async def counts(self, path: str, regex: Regex, keep: Filter | None, answer: Answer) -> None:
        """Finds how many lines match in which files. Raises ToolError above `MOST` files."""
        start = len(path.rstrip("/")) + 1

        def add(found: re.Match[bytes]) -> bool:
            name = os.fsdecode(found[1])
            if keep is None or keep(name[start:]):
                answer.counts[name] = int(found[2])
            return len(answer.counts) > MOST

        question = {"do": "count", "root": path, "glob": keep.pattern if keep else ""}
        await self._ask(
            lambda rg: ripgrep.counts(rg, path, regex, keep),
            {**question, **_patterns(regex)},
            _records(_COUNT, add), answer, around=path,
        )  # fmt: skip
        if len(answer.counts) > MOST:
            raise ToolError(
                f"More than {MOST:,} files match; narrow the search with path, glob or a longer "
                "pattern."
            )

    async def lines(self, paths: Sequence[str], regex: Regex, most: int, answer: Answer) -> None:
        """Finds where the first `most` matching lines of each file are."""
        if paths:
            question = {"do": "lines", "paths": list(paths), "most": most, **_patterns(regex)}
            await self._ask(
                lambda rg: ripgrep.lines(rg, paths, regex, most),
                question, _records(_LINE, _positions(answer)), answer,
            )  # fmt: skip

    async def lines_of(self, text: bytes, regex: Regex) -> list[tuple[int, int]]:
        """Of a UTF-8 text."""
        answer = Answer()
        if text:
            await self._ask(
                lambda rg: ripgrep.lines_of_input(rg, regex),
                {"do": "text", **_patterns(regex)},
                _records(_LINE, _positions(answer)), answer, text,
            )  # fmt: skip
        return [position for found in answer.lines.values() for position in found]

    async def _ask(
        self,
        argv: Callable[[str], list[str]],
        question: Mapping[str, Any],
        take: Callable[[bytes], bool],
        answer: Answer,
        given: bytes = b"",
        around: str | None = None,
    ) -> None:
        if around and (path := await asyncio.to_thread(endless, around)) is not None:
            raise ToolError(why(path))
        try:
            rg = await self._ripgrep()
            if rg:
                code, errors = await ask(argv(rg), take, given=given)
            else:
                line = json.dumps(question).encode() + b"\n"
                code, errors = await ask(standin.argv(), take, given=line + given)
        except OSError as error:
            raise ToolError(f"The search could not be started: {error}. Tell the user.") from None
        if errors.strip() or code not in (0, 1, 2, None):
            said = errors.decode("utf-8", "replace").strip() or f"its program ended with {code}"
            raise ToolError(f"The search failed: {said}. Try a simpler pattern, or tell the user.")
        answer.unreadable |= code == 2

    async def _ripgrep(self) -> str | None:
        """Its path; None when it is not there, or is another program or too old."""
        path = ripgrep.located(self._program)
        if path is None:
            return None
        key = (path, os.stat(path).st_mtime_ns)
        if key not in self._suits:
            said: list[bytes] = []

            def take(data: bytes) -> bool:
                said.append(data)
                return True  # a program that says more than a line is another one

            await ask([path, "--version"], take)
            self._suits[key] = ripgrep.suits(b"".join(said))
            if not self._suits[key]:
                logger.warning("%s is not ripgrep %d or newer", path, ripgrep.OLDEST)
        return path if self._suits[key] else None


def _patterns(regex: Regex) -> dict[str, str]:
    return {"python": regex.python, "ascii": regex.ascii}


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
