"""Stands in for ripgrep where it is not installed: the same questions, the same answers.

It runs as a program of its own, because `re` cannot be interrupted and would hold up the server:
a search is ended by ending its process. It needs the standard library alone, to start quickly.
The question is a line of JSON on standard input; what follows it is a text to search, if asked for.
"""

from __future__ import annotations

import json
import os
import re
import signal
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any

from magy_server.tools.search.content import opened, pieces
from magy_server.tools.search.globs import Filter
from magy_server.tools.search.walk import files

_START = """
import sys
sys.path.insert(0, {top!r})
from magy_server.tools.search.standin import main
sys.exit(main())
"""
FLUSH = 1 << 16
LONGEST = 120
"""Seconds; the server ends a search long before."""
_FOREIGN = re.compile(rb"(?:^[^\n]*[\x80-\xff][^\n]*(?:\n|\Z))+", re.MULTILINE)


def argv() -> list[str]:
    """Isolated from the user's Python settings, and from what lies in the directory searched."""
    top = str(Path(__file__).resolve().parents[3])
    return [sys.executable, "-I", "-S", "-c", _START.format(top=top)]


def main() -> int:
    """0; 2 when something could not be read, as ripgrep has it."""
    signal.alarm(LONGEST)  # should the server be killed: nothing else interrupts `re`
    question = json.loads(sys.stdin.buffer.readline())
    answer = _Answer(sys.stdout.buffer)
    try:
        _answer(question, answer)
        answer.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # nobody listens any more
    return 2 if answer.failures else 0


class _Answer:
    def __init__(self, out: IO[bytes]) -> None:
        self.failures = 0
        self._out = out
        self._waiting: list[bytes] = []
        self._size = 0

    def failed(self) -> None:
        self.failures += 1

    def add(self, path: bytes, rest: str) -> None:
        record = path + b"\0" + rest.encode()
        self._waiting.append(record)
        self._size += len(record)
        if self._size > FLUSH:
            self.flush()

    def flush(self) -> None:
        self._out.write(b"".join(self._waiting))
        self._out.flush()
        self._waiting, self._size = [], 0


def _answer(question: dict[str, Any], answer: _Answer) -> None:
    do = question["do"]
    if do == "files":
        _list(question, answer)
    elif do == "count":
        search = Search(question)
        for path in _found(question, answer):
            if count := _count(path, search, answer):
                answer.add(path, f"{count}\n")
    elif do == "lines":
        search = Search(question)
        for name in question["paths"]:
            _lines(os.fsencode(name), search, question["most"], answer)
    else:
        text = sys.stdin.buffer.read()
        for line, column in Search(question).lines([text]):
            answer.add(b"", f"{line}:{column}:\n")


def _found(question: dict[str, Any], answer: _Answer) -> Iterator[bytes]:
    root = os.fsencode(question["root"])
    if os.path.isfile(root):
        yield root
        return
    keep = Filter(question["glob"]) if question["glob"] else None
    start = len(root.rstrip(b"/")) + 1
    for path in files(root, answer.failed):
        if keep is None or keep(os.fsdecode(path[start:])):
            yield path


def _list(question: dict[str, Any], answer: _Answer) -> None:
    """At most `most` files are looked at; a record without a path says that there were more."""
    for looked, path in enumerate(files(os.fsencode(question["root"]), answer.failed)):
        if looked == question["most"]:
            answer.add(b"", "")
            return
        answer.add(path, "")


def _count(path: bytes, search: Search, answer: _Answer) -> int:
    """Lines that match; none in a file with a NUL byte."""
    try:
        with opened(path) as file:
            return sum(1 for _ in search.lines(_text(pieces(file))))
    except _Binary:
        return 0
    except OSError:
        answer.failed()
        return 0


def _lines(path: bytes, search: Search, most: int, answer: _Answer) -> None:
    try:
        with opened(path) as file:
            for number, (line, column) in enumerate(search.lines(pieces(file)), 1):
                answer.add(path, f"{line}:{column}:\n")
                if number == most:
                    return
    except OSError:
        answer.failed()


class _Binary(Exception):
    pass


def _text(found: Iterable[bytes]) -> Iterator[bytes]:
    for piece in found:
        if b"\0" in piece:
            raise _Binary
        yield piece


class Search:
    """An expression as `dialect.Regex` has it, under `python` and `ascii`."""

    def __init__(self, question: Mapping[str, Any]) -> None:
        self._patterns = (question["ascii"], question["python"])
        self._compiled: dict[bool, re.Pattern[str]] = {}

    def lines(self, found: Iterable[bytes]) -> Iterator[tuple[int, int]]:
        """(line, byte in the line) of the first match of each line that has one, from 1."""
        before = 0
        for block, plain in _runs(_blocks(found)):
            text = block.decode("ascii" if plain else "utf-8", "surrogateescape")
            line, seen = before + 1, 0
            for start in self._starts(self._regex(plain), text):
                line += text.count("\n", seen, start)
                seen = start
                left = text.rfind("\n", 0, start) + 1
                column = start - left
                if start == len(text):
                    column = 0  # an empty match at the very end of a file
                elif not plain:
                    column = len(text[left:start].encode("utf-8", "surrogateescape"))
                yield line, column + 1
            before += text.count("\n")

    def _regex(self, plain: bool) -> re.Pattern[str]:
        if plain not in self._compiled:
            self._compiled[plain] = re.compile(self._patterns[not plain], re.MULTILINE)
        return self._compiled[plain]

    def _starts(self, regex: re.Pattern[str], text: str) -> Iterator[int]:
        at = 0
        while at < len(text):
            found = regex.search(text, at)
            if found is None or (found.start() == len(text) and text.endswith("\n")):
                return  # after the last line end no line begins
            yield found.start()
            at = text.find("\n", found.start()) + 1
            if at == 0:
                return


def _runs(blocks: Iterable[bytes]) -> Iterator[tuple[bytes, bool]]:
    """Parts of whole lines that are ASCII, and such where no line is."""
    for block in blocks:
        at = 0
        for foreign in () if block.isascii() else _FOREIGN.finditer(block):
            if at < foreign.start():
                yield block[at : foreign.start()], True
            yield foreign[0], False
            at = foreign.end()
        if at < len(block):
            yield block[at:], True


def _blocks(found: Iterable[bytes]) -> Iterator[bytes]:
    """Whole lines, about a megabyte at a time; more where a line is longer."""
    waiting: list[bytes] = []
    for piece in found:
        cut = piece.rfind(b"\n") + 1
        if cut:
            yield b"".join([*waiting, piece[:cut]])
            waiting = []
        if cut < len(piece):
            waiting.append(piece[cut:])
    if waiting:
        yield b"".join(waiting)
