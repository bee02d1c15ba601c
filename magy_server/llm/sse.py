"""This module reads server-sent events from the chunks of a response body, without I/O.
https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation

Only the data of an event is given: all wires say in it what kind of event it is.
"""

from __future__ import annotations

from collections.abc import Sequence

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

    def feed(self, chunk: bytes) -> Sequence[bytes]:
        if not chunk:
            return ()
        self._size += len(chunk)
        if self._after_return and chunk.startswith(b"\n"):
            chunk = chunk[1:]
            self._after_return = False
            if not chunk:
                return ()
        self._after_return = chunk.endswith(b"\r")
        *whole, rest = _LINE_END.split(chunk)
        found: list[bytes] = []
        for line in whole:
            if self._line:
                self._line.append(line)
                line = b"".join(self._line)
                self._line.clear()
            event = self._read(line)
            if event is not None:
                if not self._data:  # a comment may stand in the middle of an event
                    self._size = 0
                found.append(event)
        if rest:
            self._line.append(rest)
        _check(self._size)
        return found

    def finish(self) -> Sequence[bytes]:
        """Returns the last event, if no blank line closed it: some servers leave that line out."""
        line = b"".join(self._line)
        self._line.clear()
        ending = (self._read(one) for one in ((line, b"") if line else (b"",)))
        return [event for event in ending if event is not None]

    def _read(self, line: bytes) -> bytes | None:
        """Returns what `feed` gives for a line; None: nothing yet."""
        if not line:
            data, self._data = self._data, []
            return b"\n".join(data) if data else None
        field, _, value = line.removeprefix(b"\xef\xbb\xbf").partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            self._data.append(value)
            return None
        # older llama.cpp servers have a field of their own for errors
        return b'{"error":' + value + b"}" if field == b"error" else b""


class Whole:
    """Reads a body that is one document, from a server that does not stream, as one event. Raises
    ValueError if that is over 64 MB."""

    def __init__(self) -> None:
        self._size = 0
        self._parts: list[bytes] = []

    def feed(self, chunk: bytes) -> Sequence[bytes]:
        self._size += len(chunk)
        self._parts.append(chunk)
        _check(self._size)
        return ()

    def finish(self) -> Sequence[bytes]:
        return [b"".join(self._parts)]


def _check(size: int) -> None:
    if size > _LARGEST:
        raise ValueError(f"an event of the stream is over {_LARGEST >> 20} MB")
