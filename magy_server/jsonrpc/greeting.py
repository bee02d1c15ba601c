"""The first message of a client is answered before anything is imported that takes long.

A client waits for the answer to `initialize`, and then sends what it has while the rest is
imported. What is not plainly well-formed is left to the whole server. This module imports next to
nothing.
"""

from __future__ import annotations

import json
import os
import select
import time
from collections.abc import Callable, Mapping
from math import isfinite
from typing import Any, NamedTuple, Protocol

PATIENCE = 0.5
"""Seconds. Who says nothing for so long is waited for by the whole server, which imports what it
needs meanwhile."""
LARGEST = 1 << 20
"""Bytes. A longer message is no usual greeting."""
Respond = Callable[[Mapping[str, Any]], dict[str, Any] | None]
"""The response to a first message; None for what is left to the whole server."""


class Greeting(NamedTuple):
    """How a connection has begun."""

    read: bytes
    """What has come so far."""
    first: int = 0
    """Of these bytes so many are an `initialize` that is answered already."""

    @property
    def answered(self) -> bool:
        return self.first > 0


NOTHING_YET = Greeting(b"")


class Framing(Protocol):
    """How one message follows the other."""

    def body(self, read: bytes) -> tuple[bytes, int] | None:
        """The first message, and how many bytes it takes up; None if it has not come whole. An
        empty body stands for a beginning that is not a client's usual one."""

    def framed(self, body: bytes) -> bytes: ...


def greet(stdin: int, stdout: int, framing: Framing, respond: Respond) -> Greeting:
    """Reads the first message, and answers it if it is an `initialize`."""
    read, until = b"", time.monotonic() + PATIENCE
    readable = select.poll()
    readable.register(stdin, select.POLLIN)
    while (found := framing.body(read)) is None:
        left = until - time.monotonic()
        if left <= 0 or not readable.poll(left * 1000) or not (data := os.read(stdin, 1 << 16)):
            return Greeting(read)
        read += data
    body, size = found
    response = respond(_object(body))
    if response is None:
        return Greeting(read)
    data = framing.framed(json.dumps(response, separators=(",", ":")).encode())
    return Greeting(read, size if _written(stdout, data) else 0)


def is_initialize(message: Mapping[str, Any]) -> bool:
    """Whether it can only be understood as a request that initializes, by whatever reads it."""
    id: Any = message.get("id")
    if message.get("method") != "initialize" or message.get("jsonrpc", "2.0") != "2.0":
        return False
    if type(id) is int:
        return 0 <= id < 1 << 31
    return type(id) is str and id.isascii() and len(id) < 100


def _object(body: bytes) -> dict[str, Any]:
    """{} for what is none, and for text that has no UTF-8 form."""
    if b"\\ud" in body.lower():
        return {}
    try:
        message = json.loads(body.decode(), parse_constant=_refused, parse_float=_float)
    except (ValueError, RecursionError):
        return {}
    return message if type(message) is dict else {}


def _float(digits: str) -> float:
    """Raises ValueError for a number that is too large: the server would get no message from it."""
    number = float(digits)
    return number if isfinite(number) else _refused(digits)


def _refused(name: str) -> float:
    raise ValueError(f"{name} is not JSON")


def _written(stdout: int, data: bytes) -> bool:
    """Whether the client has it. What is so short goes out whole or not at all, and if the client
    is gone, the whole server finds that out."""
    try:
        return os.write(stdout, data) > 0
    except OSError:
        return False
