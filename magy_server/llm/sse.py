"""This module reads server-sent events from the chunks of a response body, without I/O.
https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation

Only the data of an event is given: all wires say in it what kind of event it is.
"""

from __future__ import annotations

from collections.abc import Iterator

from magy_server.regex import regex

_LARGEST = 1 << 26
"""The most bytes of an event."""
_LINE_END = regex(rb"\r\n|\n|\r")


class Events:
    """`feed` gives the data of each event that a chunk completes, in order, and b"" for what has no
    data (a comment, an event name alone): a sign of life. Chunks may cut anywhere. Raises
    ValueError for an event over 64 MB."""

    def __init__(self) -> None:
        self._size = 0
        self._line: list[bytes] = []
        self._data: list[bytes] = []
        self._after_return = False

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        if not chunk:
            return
        self._size += len(chunk)
        if self._after_return and chunk.startswith(b"\n"):
            chunk = chunk[1:]
            self._after_return = False
            if not chunk:
                return
        self._after_return = chunk.endswith(b"\r")
        *whole, rest = _LINE_END.split(chunk)
        for end in whole:
            self._line.append(end)
            line = b"".join(self._line)
            self._line.clear()
            for event in self._read(line):
                self._size = 0
                yield event
        if rest:
            self._line.append(rest)
        _check(self._size)

    def finish(self) -> Iterator[bytes]:
        """Returns the last event, if no blank line closed it: some servers leave that line out."""
        line = b"".join(self._line)
        self._line.clear()
        if line:
            yield from self._read(line)
        if self._data:
            yield from self._read(b"")

    def _read(self, line: bytes) -> Iterator[bytes]:
        if not line:
            if self._data:
                yield b"\n".join(self._data)
            self._data.clear()
            return
        field, _, value = line.removeprefix(b"\xef\xbb\xbf").partition(b":")
        value = value.removeprefix(b" ")
        match field:
            case b"data":
                self._data.append(value)
            case b"error":  # older llama.cpp servers have a field of their own for it
                yield b'{"error":' + value + b"}"
            case _:
                yield b""


class Whole:
    """Reads a body that is one document, from a server that does not stream, as one event. Raises
    ValueError if that is over 64 MB."""

    def __init__(self) -> None:
        self._size = 0
        self._parts: list[bytes] = []

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        self._size += len(chunk)
        self._parts.append(chunk)
        _check(self._size)
        yield from ()

    def finish(self) -> Iterator[bytes]:
        yield b"".join(self._parts)


def _check(size: int) -> None:
    if size > _LARGEST:
        raise ValueError(f"an event of the stream is over {_LARGEST >> 20} MB")
