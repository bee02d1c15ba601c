"""This module reads the lines that a search shows: where they are, in bounded memory, cut around
the match."""

from __future__ import annotations

import codecs
import os
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import BinaryIO

from magy_server.tools.files.disk import CHUNK, opened
from magy_server.tools.files.encodings import sniff
from magy_server.tools.files.paths import Place, directory

WIDTH = 400
"""Characters of a line that are shown."""
_BEFORE = 100
"""Bytes before a match that are shown of a long line."""
_BYTES = 4 * WIDTH
_UTF16 = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}


@contextmanager
def reading(place: Place) -> Iterator[BinaryIO]:
    """Opens a regular file to read. Raises ToolError, OSError."""
    with directory(place) as (fd, name), opened(fd, name, place) as file:
        yield file


def pieces(file: BinaryIO) -> Iterator[bytes]:
    """Gives the text as a search sees it, in UTF-8 without a byte order mark, a megabyte or so at a
    time: UTF-16 is known by its mark, all else is taken as it is. Raises OSError."""
    head = file.read(CHUNK) or b""
    codec = _UTF16.get(head[:2])
    if codec is None:
        yield head.removeprefix(codecs.BOM_UTF8)
        while chunk := file.read(CHUNK):
            yield chunk
        return
    decoder = codecs.getincrementaldecoder(codec)("replace")
    yield decoder.decode(head[2:]).encode()
    while chunk := file.read(CHUNK):
        yield decoder.decode(chunk).encode()
    yield decoder.decode(b"", final=True).encode()


def of_file(place: Place, wanted: Mapping[int, int], check: Callable[[], None]) -> dict[int, str]:
    """Does what `of` does, for a file on disk."""
    with reading(place) as file:
        return of(pieces(file), wanted, check)


def of(
    found: Iterable[bytes], wanted: Mapping[int, int], check: Callable[[], None]
) -> dict[int, str]:
    """The wanted lines of a UTF-8 text that comes in pieces. `wanted`: line -> the byte in it that
    must be seen, both counted from 1. Lines that are not there are left out. `check` is called now
    and then, and may raise."""
    order = sorted(wanted)
    lines: dict[int, str] = {}
    number, line = 1, None
    for piece in found:
        check()
        at, breaks = bisect_left(order, number), piece.count(b"\n")
        if at == len(order):
            break
        if number + breaks < order[at]:
            number += breaks
            continue
        for index, text in enumerate(piece.split(b"\n")):
            if index:
                if line is not None:
                    lines[number] = line.text()
                number, line = number + 1, None
            if number in wanted:
                line = line or _Line(wanted[number])
                line.add(text)
    if line is not None and line.length:
        lines[number] = line.text()
    return lines


class _Line:
    """A line as it is read: its length, its beginning, and the part around `column`."""

    def __init__(self, column: int) -> None:
        self.length = 0
        self._start = 0 if column <= WIDTH // 2 else column - 1 - _BEFORE
        self._head, self._part = b"", b""

    def add(self, piece: bytes) -> None:
        skipped = max(0, self._start - self.length)
        self._head += piece[: _BYTES - len(self._head)]
        self._part += piece[skipped : skipped + _BYTES - len(self._part)]
        self.length += len(piece)

    def text(self) -> str:
        if self.length <= _BYTES and len(text := _decoded(self._head)) <= WIDTH:
            return text.removesuffix("\r")
        text = _decoded(self._part)
        before = "[...] " if self._start else ""
        return f"{before}{text[:WIDTH]} [... cut: this line has {self.length:,} bytes]"


def _decoded(data: bytes) -> str:
    """UTF-8 that may have been cut within its first or last character, or another encoding."""
    skip = next((n for n in range(min(4, len(data))) if not 0x80 <= data[n] < 0xC0), 0)
    try:
        return codecs.getincrementaldecoder("utf-8")().decode(data[skip:])
    except UnicodeDecodeError:
        encoding = sniff(data, whole=True)
        return data.decode(encoding.codec if encoding else "utf-8", "replace")


def path_order(name: str) -> list[str]:
    """Sorts a directory's files together, before what only begins like its name."""
    return name.split(os.sep)
