"""The scanner finds the edits in a stream of JSON as soon as each is whole, at a cost that depends
only on what is new: it looks at every character once, by a regular expression."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Literal

from magy_server.dataclass import dataclass
from magy_server.regex import regex

_TOKEN = regex(r'["{}\[\]:,\n]')
_IN_STRING = regex(r'["\\\n]')
DEPTH = 200
"""Containers within each other; deeper text is no edit."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Something whole in the stream. `line` counts from 1.

    `value`: a value at the top, when it is an object. `item`: an object in a list at the top, or in
    the member `key` of such an object. `member`: a string in an object at the top, under `key`.
    `lost`: it is too deep, or closes what was not open; nothing follows.
    """

    kind: Literal["value", "item", "member", "lost"]
    text: str = ""
    line: int = 1
    key: str = ""


class Scanner:
    """`feed` gives the pieces that became whole. It believes the text to be JSON; whether it is,
    somebody else must find out at the end."""

    def __init__(self) -> None:
        self._stack: list[str] = []
        self._string = self._escaped = self._lost = False
        self._line = 1
        self._key = ""
        self._text: list[str] | None = None
        """Of the string that is being read in an object at the top."""
        self._item: list[str] | None = None
        self._item_line = 1
        self._value: list[str] | None = None
        self._value_line = 1
        self._last = ""

    def feed(self, chunk: str) -> Iterator[Piece]:
        at, taken = 0, 0
        if self._escaped and chunk:
            self._escaped = False
            self._line += chunk[0] == "\n"
            at = 1
        while at < len(chunk) and not self._lost:
            found = (_IN_STRING if self._string else _TOKEN).search(chunk, at)
            if found is None:
                break
            start, at = found.start(), found.end()
            char = found.group()
            if char == "\n":
                self._line += 1
            elif char == "\\":
                self._escaped = at == len(chunk)
                if not self._escaped:
                    self._line += chunk[at] == "\n"
                    at += 1
            elif self._string or char == '"':
                taken = self._keep(chunk, taken, at if self._string else start)
                yield from self._quote()
            elif char in "{[":
                taken = self._keep(chunk, taken, start)
                yield from self._open(char)
            elif char in "}]":
                taken = self._keep(chunk, taken, at)
                yield from self._close(char)
            elif len(self._stack) == 1:
                self._key = self._last if char == ":" else ""
        if not self._lost:
            self._keep(chunk, taken, len(chunk))

    def _keep(self, chunk: str, start: int, end: int) -> int:
        if start < end:
            piece = chunk[start:end]
            for parts in (self._text, self._item, self._value):
                if parts is not None:
                    parts.append(piece)
        return end

    def _quote(self) -> Iterator[Piece]:
        self._string = not self._string
        if self._stack != ["{"]:
            return
        if self._string:
            self._text = []
            return
        text = "".join(self._text or [])
        self._text, self._last = None, _decoded(text)
        if self._key:
            yield Piece("member", self._last, self._line, self._key)

    def _open(self, char: str) -> Iterator[Piece]:
        if len(self._stack) == DEPTH:
            yield from self._lose()
            return
        if not self._stack and char == "{":
            self._value, self._value_line = [], self._line
        in_list = self._stack == ["["] or (self._stack == ["{", "["] and self._key)
        if char == "{" and in_list:
            self._item, self._item_line = [], self._line
        self._stack.append(char)

    def _close(self, char: str) -> Iterator[Piece]:
        if not self._stack or self._stack.pop() + char not in ("{}", "[]"):
            yield from self._lose()
            return
        if self._item is not None and self._stack in (["["], ["{", "["]):
            text, self._item = "".join(self._item), None
            yield Piece("item", text, self._item_line, self._key)
        elif self._value is not None and not self._stack:
            text, self._value = "".join(self._value), None
            yield Piece("value", text, self._value_line)
        if not self._stack:
            self._key = self._last = ""

    def _lose(self) -> Iterator[Piece]:
        self._lost = True
        yield Piece("lost", line=self._line)


def _decoded(text: str) -> str:
    try:
        decoded = json.loads(text, strict=False)
    except ValueError:
        return ""
    return decoded if isinstance(decoded, str) else ""
