"""The decoder reads LSP's base protocol tolerantly: bytes become JSON values or `Malformed` notes.

A header block is lines up to an empty one; only `Content-Length` counts, in any case, with CRLF or
LF. The decoder never raises and never gets stuck. What makes that possible: the bytes of a header
line (`Content-Length: 5` and a raw line end) cannot occur inside valid JSON, so wherever they show
up while a body is awaited, skipped or unreadable, a new frame begins there.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator
from typing import Any

import orjson

from magy_server.api.wire.codes import INVALID_REQUEST, PARSE_ERROR
from magy_server.jsonrpc.messages import Malformed, decode
from magy_server.regex import regex

MAX_BODY = 256 * 1024 * 1024
"""Bytes. A frame that announces more is skipped and answered with an error."""

_LENGTH = regex(rb"content-length[ \t]*:[ \t]*(\d+)[ \t]*\r?$", re.IGNORECASE)
_USUAL = regex(rb"Content-Length: (\d{1,15})\r\n\r\n")
_FRAME = regex(rb"Content-Length:[ \t]*\d{1,12}[ \t]*\r?\n(?:[!-~ \t]{1,200}\r?\n)*\r?\n")
_MARK = b"Content-Length:"
_BEGUN = regex(
    rb"(?:%b|%b[ \t]*\d{0,12}\s{0,4})\Z"
    % (b"|".join(_MARK[:n] for n in range(1, len(_MARK))), _MARK)
)
"""A header cut in two by the end of a body."""
_LINE = 4096
"""A header line longer than this is garbage; only its end is kept."""
_SMALL = 128 * 1024
"""Bytes. As much is copied after an odd frame to go on in the quick way."""
_HEAD = 1024
"""How much of a skipped body is kept to find the request's id."""
_ID = regex(
    rb'\s*\{\s*(?:"(?:jsonrpc|method)"\s*:\s*"[^"\\]*"\s*,\s*)*"id"\s*:\s*(-?\d{1,18}|"[^"\\]*")\s*,'
)


class FrameDecoder:
    """Feed it what was read; iterate over what it makes of that, in order."""

    def __init__(self, max_body: int = MAX_BODY) -> None:
        self._max_body = max_body
        self._buffer = bytearray()
        self._length: int | None = None
        """Length of the body that comes next; None between frames."""
        self._scanned = 0
        """Up to where the incomplete body was searched for the header of another frame."""
        self._announced: int | None = None
        """Length that the header lines read so far announce."""
        self._skip = 0
        """Bytes of an oversized body still to come."""
        self._head: bytearray | None = None

    def feed(self, data: bytes) -> Iterator[Any | Malformed]:
        """Must be iterated to its end before the next call."""
        buffer = self._buffer
        if self.idle:
            data = yield from self._usual(data)
            if not data:
                return
        buffer += data
        while self._skip or self._length is not None or self._headers():
            yield from self._skipped() if self._skip else self._body()
            if self._skip or self._length is not None:
                return
            if len(buffer) < _SMALL:
                buffer[:] = yield from self._usual(bytes(buffer))

    @property
    def idle(self) -> bool:
        """False in the middle of a frame: input that ends here was cut off."""
        between = self._length is None and self._announced is None
        return between and not self._buffer and not self._skip

    def _usual(self, data: bytes) -> Generator[Any, None, bytes]:
        """Reads whole frames as nearly every client writes them, up to the first other thing; the
        answer is what is left."""
        at = 0
        while header := _USUAL.match(data, at):
            length = int(header[1])
            begin = header.end()
            stop = begin + length
            if stop > len(data) or length > self._max_body:
                break
            message = decode(data[begin:stop])
            if type(message) is Malformed:
                break
            yield message
            at = stop
        return data[at:]

    def _body(self) -> Iterator[Any | Malformed]:
        """Reads the body that comes next. The length stays known while it has not come whole."""
        buffer, length = self._buffer, self._length
        assert length is not None
        if length > self._max_body:
            self._skip, self._head, self._length = length, bytearray(), None
            yield from self._skipped()
        elif len(buffer) >= length:
            body = bytes(memoryview(buffer)[:length])
            del buffer[:length]
            self._length = None
            message = decode(body)
            if isinstance(message, Malformed):
                self._give_back(body)
            yield message
        elif self._resume_at_inner_frame():
            yield Malformed(PARSE_ERROR, "A frame was shorter than its Content-Length.")

    def _headers(self) -> bool:
        """Consumes header lines. True when a body length is known; False when input ran out."""
        buffer = self._buffer
        while (end := buffer.find(b"\n")) >= 0:
            line = bytes(memoryview(buffer)[:end])
            del buffer[: end + 1]
            if match := _LENGTH.search(line):
                # int() of thousands of digits is an error; what long numbers mean is "too much".
                digits = match[1].lstrip(b"0") or b"0"
                self._announced = int(digits) if len(digits) < 16 else 10**16
            elif self._announced is not None and line in (b"", b"\r"):
                self._length, self._announced, self._scanned = self._announced, None, 0
                return True
        if len(buffer) > _LINE:
            del buffer[: -len(_MARK) - 32]
        return False

    def _resume_at_inner_frame(self) -> bool:
        """Drops an incomplete body that turns out to hold the header of another frame."""
        buffer = self._buffer
        at = buffer.find(_MARK, self._scanned)
        while at >= 0:
            if _FRAME.match(buffer, at):
                del buffer[:at]
                self._length = None
                return True
            at = buffer.find(_MARK, at + 1)
        self._scanned = max(0, len(buffer) - 512)
        return False

    def _give_back(self, body: bytes) -> None:
        """Too long a length takes what follows for body."""
        if inner := _FRAME.search(body) or _BEGUN.search(body):
            self._buffer[:0] = body[inner.start() :]

    def _skipped(self) -> Iterator[Malformed]:
        """Throws an oversized body away, until its end or the header of another frame."""
        buffer = self._buffer
        at = buffer.find(_MARK)
        while at >= 0 and at < self._skip and not _FRAME.match(buffer, at):
            at = buffer.find(_MARK, at + 1)
        found = 0 <= at < self._skip
        # The end of what has come stays, since a header may be cut in two there.
        count = at if found else min(self._skip, max(0, len(buffer) - 512))
        if not found and self._skip <= len(buffer):
            count = self._skip
        if self._head is not None:
            self._head += buffer[: min(count, _HEAD - len(self._head))]
        del buffer[:count]
        self._skip = 0 if found else self._skip - count
        if self._head is not None and (not self._skip or len(self._head) >= _HEAD):
            match, self._head = _ID.match(self._head), None
            text = f"The message is too large: Magy reads at most {self._max_body} bytes in one."
            yield Malformed(INVALID_REQUEST, text, orjson.loads(match[1]) if match else None)
