"""Half surrogate pairs, which JSON and Python can hold and UTF-8 cannot, become U+FFFD, so that
half a character does not cost the whole message."""

from __future__ import annotations

import json
from collections.abc import Hashable
from typing import Any

import orjson

from magy_server.regex import regex

_ESCAPED = regex(r"\\u[dD][89a-fA-F]")
_HALF = regex("[\ud800-\udfff]")


def whole(text: str) -> str:
    """Returns the text with U+FFFD for each lone half; two halves that belong together become one
    character."""
    if _HALF.search(text) is None:
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def all_whole(value: Any) -> Any:
    """Does the same for all texts in a JSON value."""
    match value:
        case str():
            return whole(value)
        case dict():
            return {all_whole(key): all_whole(item) for key, item in value.items()}
        case list() | tuple():
            return [all_whole(item) for item in value]
    return value


def loads(data: str | bytes, *, halves: bool = False) -> Any:
    """One JSON value. With `halves` they are left as they are: the other half may come later.
    Raises ValueError."""
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        text = data if isinstance(data, str) else data.decode("utf-8", "surrogatepass")
        if not (_ESCAPED.search(text) or _HALF.search(text)):
            raise
    try:
        value = _lenient(text)
        return value if halves else all_whole(value)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _lenient(text: str) -> Any:
    return json.loads(text, parse_constant=_no_constant)


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


class Joining:
    """Texts that come in pieces, which may be cut between the halves of a pair."""

    def __init__(self) -> None:
        self._held: dict[Hashable, str] = {}

    def feed(self, key: Hashable, piece: str, *, last: bool = False) -> str:
        """Returns what can be shown of text `key` by now: a first half at the end waits for the
        other."""
        text = self._held.pop(key, "") + piece
        if not last and "\ud800" <= text[-1:] <= "\udbff":
            self._held[key], text = text[-1], text[:-1]
        return whole(text)
