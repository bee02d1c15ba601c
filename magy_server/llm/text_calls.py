"""What models behind simple servers put into the text of a reply: their thinking between tags, and
tool calls as JSON. Without I/O; what is fed comes in pieces that may be cut anywhere.

Thinking is only what stands between `<think>` tags at the very beginning. Calls are only calls when
nothing else is said, each as `{"name": ..., "arguments": {...}}` (bare, in a code fence, between
`<tool_call>` tags, or after `<|python_tag|>` or `[TOOL_CALLS]`), of tools that were offered.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any, Literal

import orjson

from magy_server.llm.wire import arguments_in

_THINK, _THOUGHT = "<think>", "</think>"

_CLOSERS = {
    "```json": "```",
    "```tool_call": "```",
    "```": "```",
    "<tool_call>": "</tool_call>",
    "<|python_tag|>": "",
    "[TOOL_CALLS]": "",
}
"""What may stand before the JSON of a call -> what then stands behind it. Nothing is possible too.
In the order in which they are tried."""

_KEYS = frozenset({"name", "arguments", "parameters", "function", "type", "id"})
_BEGINNING = re.compile(r'[\[\s]*(\{\s*("[^"\\]*)?)?')
_FIRST_KEY = re.compile(r'[\[\s]*\{\s*"([^"\\]*)"')
_NAME = re.compile(r'[\[\s]*\{\s*"name"\s*:\s*"([^"\\]*)"')
_MARKS = re.compile(r'["\\{}\[\]]')

_HEAD = 300
"""Characters of a value that are looked at to see whether it can be a call."""


class Thoughts:
    """Tells the thinking at the beginning of a text from the rest."""

    def __init__(self) -> None:
        self._state: Literal["start", "inside", "gap", "after"] = "start"
        self._pending = ""
        self._thought = False

    def feed(self, text: str) -> tuple[str, str]:
        """(thinking, text) that is sure by now."""
        self._pending += text
        thinking = ""
        if self._state == "start":
            begun = self._pending.lstrip()
            if _THINK.startswith(begun[: len(_THINK)]) and len(begun) < len(_THINK):
                return "", ""
            self._state = "inside" if begun.startswith(_THINK) else "after"
            if self._state == "inside":
                self._pending = begun[len(_THINK) :]
        if self._state == "inside":
            if not self._thought:
                self._pending = self._pending.lstrip("\n")
            self._thought = bool(self._pending)
            thinking, closed, rest = self._pending.partition(_THOUGHT)
            if not closed:
                keep = _overlap(thinking, _THOUGHT)
                self._pending = thinking[len(thinking) - keep :]
                return thinking[: len(thinking) - keep], ""
            self._state, self._pending = "gap", rest
        rest, self._pending = self._pending, ""
        if self._state == "gap" and (rest := rest.lstrip()):
            self._state = "after"
        return thinking, rest

    def finish(self) -> tuple[str, str]:
        """The same for what was not sure."""
        rest, self._pending = self._pending, ""
        return (rest, "") if self._state == "inside" else ("", rest)


def _overlap(text: str, mark: str) -> int:
    """How many characters at the end of the text may be the beginning of the mark."""
    return next((n for n in range(len(mark) - 1, 0, -1) if text.endswith(mark[:n])), 0)


class TextCalls:
    """Holds a text back as long as it may be nothing but calls of the tools `names`."""

    def __init__(self, names: Collection[str]) -> None:
        self._names = frozenset(names)
        self._held: list[str] = []
        self._values: list[str] = []
        self._plain = not names
        self._stage: Literal["before", "value", "behind"] = "before"
        self._pending = ""
        self._closer = ""
        self._json = _Json()

    def feed(self, text: str) -> str:
        """What may be shown now."""
        if self._plain:
            return text
        self._held.append(text)
        self._pending += text
        while self._pending and not self._plain and self._step():
            pass
        return self.release() if self._plain else ""

    def release(self) -> str:
        """What was held back; from now on nothing is."""
        text = "".join(self._held)
        self._plain = True
        self._held.clear()
        self._values.clear()
        return text

    def finish(self) -> tuple[list[tuple[str, dict[str, Any]]], str]:
        """At the end of the reply: the calls as (name, arguments), or the text held back. A last
        closing mark may be missing."""
        calls: list[tuple[str, dict[str, Any]]] = []
        if not self._plain and self._stage != "value" and not self._pending.strip():
            found = [call for value in self._values for call in self._calls(value)]
            calls = [call for call in found if call is not None]
            if len(calls) < len(found):
                calls = []
        text = self.release()
        return (calls, "") if calls else ([], text)

    # --- one step: False when more text is needed ------------------------------------------------

    def _step(self) -> bool:
        match self._stage:
            case "before":
                return self._before()
            case "value":
                return self._value()
        return self._behind()

    def _before(self) -> bool:
        begun = self._pending.lstrip(" \t\r\n;" if self._values else None)
        if not begun:
            return False
        if any(mark.startswith(begun) and mark != begun for mark in _CLOSERS):
            return False
        opener = next((mark for mark in _CLOSERS if begun.startswith(mark)), "")
        self._closer = _CLOSERS.get(opener, "")
        self._pending = begun[len(opener) :]
        self._stage = "value"
        self._json = _Json()
        return True

    def _value(self) -> bool:
        end = self._json.feed(self._pending)
        self._pending = "" if end is None else self._pending[end:]
        if not self._promising(self._json.head):
            self._plain = True
        elif end is not None:
            self._values.append(self._json.text())
            self._stage = "behind"
            return True
        return False

    def _promising(self, head: str) -> bool:
        if name := _NAME.match(head):
            return name[1] in self._names
        if key := _FIRST_KEY.match(head):
            return key[1] in _KEYS
        return _BEGINNING.fullmatch(head) is not None

    def _behind(self) -> bool:
        rest = self._pending.lstrip() if self._closer else self._pending
        if rest.startswith(self._closer):
            self._pending = rest[len(self._closer) :]
            self._stage = "before"
            return True
        self._plain = not self._closer.startswith(rest)
        return False

    def _calls(self, text: str) -> list[tuple[str, dict[str, Any]] | None]:
        try:
            value = orjson.loads(text)
        except orjson.JSONDecodeError:
            return [None]
        return [self._call(one) for one in (value if isinstance(value, list) else [value])]

    def _call(self, value: Any) -> tuple[str, dict[str, Any]] | None:
        if isinstance(value, dict) and isinstance(value.get("function"), dict):
            if value.get("type", "function") != "function":
                return None
            value = value["function"]
        if not isinstance(value, dict) or value.keys() - _KEYS:
            return None
        if value.get("type", "function") != "function":
            return None  # an object, or a schema, that has a tool's name
        name, arguments = value.get("name"), value.get("arguments", value.get("parameters"))
        if isinstance(arguments, str) and arguments.strip():
            arguments = arguments_in(arguments)
        if name not in self._names or not isinstance(arguments, dict):
            return None
        return name, arguments


class _Json:
    """Finds where one JSON object or array ends, looking at each character once."""

    def __init__(self) -> None:
        self.head = ""
        self._pieces: list[str] = []
        self._depth = 0
        self._in_string = False
        self._escaped = False

    def feed(self, text: str) -> int | None:
        """Where in `text` the value ends; None when it goes on."""
        end = self._scan(text)
        piece = text if end is None else text[:end]
        self._pieces.append(piece)
        if len(self.head) < _HEAD:
            self.head = (self.head + piece)[:_HEAD]
        return end

    def text(self) -> str:
        return "".join(self._pieces)

    def _scan(self, text: str) -> int | None:
        at = 1 if self._escaped else 0
        self._escaped = False
        while mark := _MARKS.search(text, at):
            at = mark.end()
            match mark[0]:
                case "\\" if self._in_string:
                    self._escaped = at == len(text)
                    at += 1
                case '"':
                    self._in_string = not self._in_string
                case "{" | "[" if not self._in_string:
                    self._depth += 1
                case "}" | "]" if not self._in_string:
                    self._depth -= 1
                    if self._depth <= 0:
                        return at
        return None
