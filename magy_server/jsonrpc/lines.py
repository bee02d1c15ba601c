"""Messages that stand on a line each are read here, in bounded memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from magy_server.api.wire.codes import INVALID_REQUEST
from magy_server.jsonrpc.messages import Malformed, decode

LONGEST = 256 * 1024 * 1024
"""Bytes. A line that is longer is skipped and answered with an error."""


class LineDecoder:
    """Feed it what was read; iterate over what it makes of that, in order. Blank lines count for
    nothing."""

    def __init__(self, longest: int = LONGEST) -> None:
        self._longest = longest
        self._parts: list[bytes] = []
        self._size = 0

    def feed(self, data: bytes) -> Iterator[Any]:
        """Must be iterated to its end before the next call."""
        *whole, rest = data.split(b"\n")
        for line in whole:
            self._add(line)
            size, parts, self._size, self._parts = self._size, self._parts, 0, []
            if size > self._longest:
                yield Malformed(
                    INVALID_REQUEST,
                    f"The message is too large: Magy reads at most {self._longest} bytes in one.",
                )
            elif body := b"".join(parts).strip():
                yield decode(body)
        self._add(rest)

    def _add(self, part: bytes) -> None:
        """Of a line that is too long nothing is kept but its length."""
        self._size += len(part)
        if self._size > self._longest:
            self._parts.clear()
        elif part:
            self._parts.append(part)

    @property
    def idle(self) -> bool:
        """False in the middle of a line: input that ends here was cut off."""
        return self._size == 0
