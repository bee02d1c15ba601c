"""What a scripted answer is made of: `server.reply(text("hi"), call("read_file", {"path": "a"}))`.
They say nothing about a provider; each server puts them on its own wire."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal


@dataclass(frozen=True)
class Said:
    """`speed` in characters per second; 0: at once. `pieces`: exactly these deltas. `summaries`:
    thinking that OpenAI sums up in several parts, of which `text` is what they make together."""

    kind: Literal["text", "thinking"]
    text: str
    signature: str = ""
    speed: float = 0.0
    pieces: tuple[str, ...] | None = None
    summaries: tuple[str, ...] = ()


@dataclass(frozen=True)
class Redacted:
    """Thinking of which nothing is shown."""

    data: str


@dataclass(frozen=True)
class Called:
    """`json` is sent as it is, in pieces of `size` characters."""

    name: str
    json: str
    id: str | None
    size: int
    speed: float = 0.0


@dataclass(frozen=True)
class Counted:
    counts: Mapping[str, int]


@dataclass(frozen=True)
class Stopped:
    reason: str | None


@dataclass(frozen=True)
class Refusal:
    """The model's words for why it will not."""

    text: str


@dataclass(frozen=True)
class Pause:
    seconds: float


@dataclass(frozen=True)
class Ping:
    pass


@dataclass(frozen=True)
class Cut:
    """The connection ends in the middle; with `reset`, by RST."""

    reset: bool = False


@dataclass(frozen=True)
class Hang:
    """Nothing more comes until something has happened, or ever; the connection stays open."""

    until: asyncio.Event | None = None


@dataclass(frozen=True)
class ErrorEvent:
    """The provider breaks off the reply. `type` in its own words: on Anthropic's wire `error.type`,
    on OpenAI's `code`."""

    type: str
    message: str


@dataclass(frozen=True)
class Failed:
    """Responses only: the reply ends with status `failed`."""

    code: str
    message: str


@dataclass(frozen=True)
class Raw:
    """These bytes, as one chunk of the stream."""

    data: bytes


@dataclass(frozen=True)
class Fault:
    """A whole answer that is no reply: an HTTP status ("429"), or one of `html` (a proxy's page),
    `empty` (a stream without events), `silence` (nothing at all), `drop` (closed without a word),
    `reset`."""

    name: str
    message: str = ""
    type: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)


Part = (
    Said | Redacted | Called | Counted | Stopped | Refusal | Pause | Ping | Cut | Hang | ErrorEvent
    | Failed | Raw
)  # fmt: skip


def text(text: str, *, speed: float = 0.0, pieces: tuple[str, ...] | None = None) -> Said:
    return Said("text", text, speed=speed, pieces=pieces)


def thinking(text: str, signature: str = "sig-loopback") -> Said:
    return Said("thinking", text, signature)


def summaries(*texts: str, signature: str = "sig-loopback") -> Said:
    return Said("thinking", "\n\n".join(texts), signature, summaries=texts)


def redacted(data: str) -> Redacted:
    return Redacted(data)


def call(
    name: str,
    arguments: Mapping[str, Any] | str,
    *,
    id: str | None = None,
    size: int = 20,
) -> Called:
    """`arguments` as a `str` is sent unchecked, broken or not. `id` None: the server makes one."""
    sent = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    return Called(name, sent, id, size)


def usage(**counts: int) -> Counted:
    """input, output, cache_read, cache_write."""
    return Counted(counts)


def stop(reason: str | None) -> Stopped:
    """In the provider's own words."""
    return Stopped(reason)


def refusal(text: str) -> Refusal:
    return Refusal(text)


def pause(seconds: float) -> Pause:
    return Pause(seconds)


def ping() -> Ping:
    return Ping()


def cut(*, reset: bool = False) -> Cut:
    return Cut(reset)


def hang(until: asyncio.Event | None = None) -> Hang:
    return Hang(until)


def error(type: str, message: str = "") -> ErrorEvent:
    return ErrorEvent(type, message)


def failed(code: str, message: str = "") -> Failed:
    return Failed(code, message)


def raw(data: bytes | str) -> Raw:
    return Raw(data.encode() if isinstance(data, str) else data)
