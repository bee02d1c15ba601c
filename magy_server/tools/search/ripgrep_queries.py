"""This module asks ripgrep which files there are and which lines match.

The answers depend on nothing but the tree: no settings of the user count, no global ignore file.
Hidden files are searched, the stores of version control are not. Answers are positions, never text:
that is read later, of the few lines shown, from files that may be read.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import field

from magy_server.core.errors import ToolError
from magy_server.dataclass import dataclass
from magy_server.regex import regex
from magy_server.tools.search import ripgrep_program
from magy_server.tools.search.endless_files import IGNORING, endless, why
from magy_server.tools.shell.capture import ask

MOST = 200_000
"""Files with matches; whoever asks for more should ask for less."""
logger = logging.getLogger(__name__)
_COMMON = [
    "--no-config", "--hidden", "--no-messages", "--no-ignore-messages", "--no-ignore-global",
    "--color=never", "--null",
]  # fmt: skip
_STORES = [f"--glob=!{store}" for store in (".git", ".hg", ".svn", ".jj", ".bzr")]
"""Behind all other patterns: the last that matches counts."""
_SEARCH = ["--with-filename", "--no-heading", "--no-mmap", "--crlf"]
_LINES = ["--line-number", "--column", "--text", "--max-columns=1"]
"""The text of a line is left out: it may be a gigabyte."""
_COUNT = regex(rb"([^\0]*)\0(\d+)\r\n")
_LINE = regex(rb"([^\0]*)\0(\d+):(?:(\d+):)?[^\n]*\n")
"""ripgrep gives no column for an empty match at the very end of a file."""
_BRACE = regex(r"(\\[pPxuUb]\{|\\.)|\{(?!\s*[\d,])", re.DOTALL)
_ADVICE = "\n\nConsider enabling"
"""What follows is about options of the program, which no model can give."""


@dataclass(frozen=True, slots=True)
class Expression:
    """A regular expression in ripgrep's syntax, or a plain text."""

    text: str
    ignore_case: bool = False
    fixed: bool = False

    def options(self) -> list[str]:
        """A `{` that begins no count is a character, as in most other dialects."""
        text = self.text
        if not self.fixed:
            text = _BRACE.sub(lambda found: found[1] or r"\{", text)
        return [
            f"--regexp={text}",
            *["--ignore-case"] * self.ignore_case,
            *["--fixed-strings"] * self.fixed,
        ]


@dataclass(frozen=True, slots=True)
class FilePattern:
    """Which files are meant. Without a slash the pattern is for the name, at any depth, else for
    the path below the directory that is searched; a leading `!` means all but these."""

    text: str

    @property
    def is_name(self) -> bool:
        """Whether nothing in it is a wildcard: such a file is found though it is ignored."""
        return not any(char in self.text for char in "*?[\\!")

    @property
    def overrides(self) -> bool:
        """Whether its options show files, too, that are ignored."""
        return "/" in self._below and not self.text.startswith("!")

    @property
    def _below(self) -> str:
        return self.text.removeprefix("!").removeprefix("**/")

    def options(self, folder: str) -> list[str]:
        """`folder`: the directory that is searched. A file type leaves the ignore rules alone,
        which --glob overrides."""
        excludes = "!" * self.text.startswith("!")
        if "/" not in self._below:
            if self.is_name:
                return [f"--glob={self.text}"]
            kind = "--type-not" if excludes else "--type"
            return [f"--type-add=magy:{self._below.replace(':', '?')}", f"{kind}=magy"]
        path = self.text.removeprefix("!").removeprefix("./").lstrip("/")
        every = "**" * path.endswith("/")
        above = re.sub(r"[*?{}\[\]\\]", r"\\\g<0>", folder.rstrip("/"))
        return [f"--glob={excludes}{above}/{path}{every}"]


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
    """`program` is the name or path of the ripgrep that goes before others."""

    def __init__(self, program: str) -> None:
        self._program = program
        self._suits: dict[tuple[str, int], bool] = {}

    async def files(
        self, folder: str, answer: Answer, wanted: FilePattern | None = None, start: str = ""
    ) -> None:
        """Finds the files in `folder`. With `start`, a directory in it, only what is below that,
        even if it is ignored."""
        seen = await self._not_ignored(start or folder, wanted)
        only = wanted.options(folder) if wanted else []

        def add(paths: list[str]) -> None:
            answer.files += paths if seen is None else filter(seen.__contains__, paths)

        what = [*only, *_STORES, "--files", "--", start or folder]
        await self._ask(what, _paths(add), answer, around=folder)

    async def names(self, folder: str, take: Callable[[bytes], None]) -> None:
        """Gives the paths of the files below `folder`, relative to it, to `take` as they come: on
        the loop, a thousand or so at a time, with a NUL between any two."""
        rest = b""

        def taking(data: bytes) -> bool:
            nonlocal rest
            whole, nul, rest = (rest + data).rpartition(b"\0")
            if nul:
                take(whole)
            return False

        await self._ask([*_STORES, "--files"], taking, Answer(), around=folder, cwd=folder)

    async def counts(
        self, path: str, expression: Expression, wanted: FilePattern | None, answer: Answer
    ) -> None:
        """Finds how many lines match in which files. Files with a NUL byte are left out, but for
        one that is named. Raises ToolError above `MOST` files."""
        seen = await self._not_ignored(path, wanted)
        only = wanted.options(path) if wanted else []

        def add(found: re.Match[bytes]) -> bool:
            name = os.fsdecode(found[1])
            if seen is None or name in seen:
                answer.counts[name] = int(found[2])
            return len(answer.counts) > MOST

        what = [*only, *_STORES, *_SEARCH, "--count", *expression.options(), "--", path]
        await self._ask(what, _records(_COUNT, add), answer, around=path)
        if len(answer.counts) > MOST:
            raise ToolError(
                f"More than {MOST:,} files match; narrow the search with path, glob or a longer "
                "pattern."
            )

    async def lines(
        self, paths: Sequence[str], expression: Expression, most: int, answer: Answer
    ) -> None:
        """Finds where the first `most` matching lines of each file are."""
        if paths:
            how = [*_SEARCH, *_LINES, f"--max-count={most}", *expression.options()]
            await self._ask([*how, "--", *paths], _records(_LINE, _positions(answer)), answer)

    async def lines_of(self, text: bytes, expression: Expression) -> list[tuple[int, int]]:
        """Finds where the matching lines of a UTF-8 text are."""
        answer = Answer()
        if text:
            what = [*_SEARCH, *_LINES, "--encoding=none", *expression.options(), "--", "-"]
            await self._ask(what, _records(_LINE, _positions(answer)), answer, text)
        return [position for found in answer.lines.values() for position in found]

    async def _not_ignored(self, folder: str, wanted: FilePattern | None) -> set[str] | None:
        """Of a pattern that overrides the ignore rules, the files among which it may choose."""
        if wanted is None or wanted.is_name or not wanted.overrides:
            return None
        answer = Answer()
        await self.files(folder, answer)
        return set(answer.files)

    async def _ask(
        self,
        options: Sequence[str],
        take: Callable[[bytes], bool],
        answer: Answer,
        given: bytes = b"",
        around: str | None = None,
        cwd: str = "/",
    ) -> None:
        if around and (path := await asyncio.to_thread(endless, around, IGNORING)) is not None:
            raise ToolError(why(path))
        argv = [await self._ripgrep(), *_COMMON, *options]
        try:
            code, errors = await ask(argv, take, given=given, cwd=cwd)
        except OSError as error:
            raise ToolError(f"The search could not be started: {error}. Tell the user.") from None
        except ValueError:
            raise ToolError(
                "The pattern contains a NUL or half a character (a surrogate)."
            ) from None
        if said := errors.decode("utf-8", "replace").partition(_ADVICE)[0].strip():
            raise ToolError(
                f"The pattern is refused: {said.removeprefix('rg: ')}\n"
                "Write \\ before a character that is meant literally. A pattern matches within one "
                "line, and there is no look-around and no back reference."
            )
        if code not in (0, 1, 2, None):
            raise ToolError(f"The search failed: ripgrep ended with {code}. Tell the user.")
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
    """None also of a file that this machine cannot run."""
    said: list[bytes] = []

    def take(data: bytes) -> bool:
        said.append(data)
        return True  # a program that says more than a line is another one

    try:
        await ask([path, "--version"], take)
    except OSError:
        return None
    return ripgrep_program.version(b"".join(said).decode("utf-8", "replace"))


def _positions(answer: Answer) -> Callable[[re.Match[bytes]], bool]:
    def add(found: re.Match[bytes]) -> bool:
        position = (int(found[2]), int(found[3] or 1))
        answer.lines.setdefault(os.fsdecode(found[1]), []).append(position)
        return False

    return add


def _paths(add: Callable[[list[str]], None]) -> Callable[[bytes], bool]:
    """Gives the paths in a stream to `add`, each of which ends with a NUL."""
    rest = b""

    def take(data: bytes) -> bool:
        nonlocal rest
        whole, nul, rest = (rest + data).rpartition(b"\0")
        if nul:
            add(os.fsdecode(whole).split("\0"))
        return False

    return take


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
