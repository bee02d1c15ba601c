"""This module finds tool calls that models write into their text, because their server does not
read them, or because they never learnt the server's own form. Without I/O.

A text is calls when it holds nothing else: JSON objects that name an offered tool (bare, in a code
fence, in a list, between tags such as `<tool_call>`, behind marks such as `[TOOL_CALLS]`), XML such
as `<function=NAME>` or `<invoke name="NAME">`, or Python such as `[read_file(path="a.py")]`. A call
beside other text, or of a tool that was not offered, is `stray`: nobody makes it.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any

from magy_server.core.ports import ToolSchema
from magy_server.core.text.arguments import arguments_in
from magy_server.dataclass import dataclass
from magy_server.regex import regex

Made = tuple[str, dict[str, Any]]
"""A call: the tool's name, and its arguments."""

_NAME_KEYS = ("name", "tool", "tool_name", "function", "function_name", "recipient_name", "action")
_ARGUMENT_KEYS = (
    "arguments", "parameters", "args", "input", "params", "kwargs", "tool_input", "action_input",
)  # fmt: skip
_BESIDE = frozenset({"type", "id", "call_id", "tool_call_id", "index", "thought", "thoughts",
                     "reasoning", "explanation"})  # fmt: skip
"""Keys that may stand beside name and arguments."""
_TYPES = ("function", "function_call", "tool_use", "tool_call")
_WRAPPERS = ("tool_calls", "tool_call", "function_call", "function", "calls")

_TAG = (
    r"</?(?:\w+:)?(?:tools?|functions?)(?:[_-]?(?:calls?|use))?>"
    r"|<\|[^|<>\n]{1,40}\|>|<｜[^｜<>\n]{1,40}｜>"
    r"|\[/?(?:TOOL_CALLS?|ARGS|TOOL_REQUEST|END_TOOL_REQUEST)\]"
)
_TAGS = regex(_TAG)
_FENCE = regex(r"```(?:json[c5]?|tool_?calls?|tool_code|tool|xml|python)?[ \t]*(?=\s|[{\[<]|$)")
_WRAPPING = regex(rf"{_TAG}|{_FENCE.pattern}|[\s;,]+|[\[\]]")
"""These may stand around calls without being other text."""
_TAGGED = regex(rf"(?:{_TAG})\s*[{{\[<]")
_FENCES = ("```json", "```tool_call", "```tool_calls", "```tool_code", "```tool", "```xml", "```")

_START = regex(r"\{|<function=([\w.-]+)>|<(?:\w+:)?invoke\s+name=\"([\w.-]+)\"\s*>")
_XML_END = regex(r"</function>|</(?:\w+:)?invoke>")
_PARAMETER = regex(
    r"<(?:\w+:)?parameter(?:=| name=\")([\w.-]+)\"?[^>\n]*>(.*?)</(?:\w+:)?parameter>", re.DOTALL
)
_FIRST_KEY = regex(r'[\[\s]*\{\s*"([^"\\]*)"')
_FIRST_NAME = regex(rf'[\[\s]*\{{\s*"(?:{"|".join(_NAME_KEYS)})"\s*:\s*(?:"([^"\\]*)"|([^\s"]))')
_BEGINNING = regex(r'[\[\s]*(\{\s*("[^"\\]*)?)?')
_BEFORE = ("", "print(", "default_api.", "print(default_api.")
_BEHIND = ("(", "{", "[ARGS]")
_DECODER = json.JSONDecoder(strict=False)

_HEAD = 300
"""The most characters that Magy looks at to see whether a text can be a call."""
_LONGEST_HEAD = 2_000
"""Characters, blanks included, after which a text is shown that is still not known to be a call."""
_TRIES = 200
"""Braces of one text that are looked at and turn out to begin no JSON."""
_LONGEST_CODE = 20_000


class Tools:
    """The tools that were offered."""

    def __init__(self, schemas: Sequence[ToolSchema]) -> None:
        self._schemas = {schema.name: schema.parameters for schema in schemas}
        names = "|".join(re.escape(name) for name in self._schemas)
        keys, values = "|".join(_NAME_KEYS), "|".join(_ARGUMENT_KEYS)
        self.broken = regex(rf'\{{\s*"(?:{keys})"\s*:\s*"(?:{names})"\s*(?:\}}|,\s*"(?:{values})")')
        """How a call begins that cannot become one, since the rest is wrong."""

    def __bool__(self) -> bool:
        return bool(self._schemas)

    def __iter__(self) -> Iterator[str]:
        return iter(self._schemas)

    def named(self, name: Any) -> str | None:
        """Returns the offered tool that a model means: some models put a namespace before the
        name."""
        if not isinstance(name, str):
            return None
        return next((n for n in (name, name.rpartition(".")[2]) if n in self._schemas), None)

    def properties(self, name: str) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self._schemas[name].get("properties") or {}
        return found

    def takes(self, name: str, arguments: Mapping[str, Any]) -> bool:
        """Returns whether the tool takes these arguments, and none that it needs is missing."""
        needed = self._schemas[name].get("required") or ()
        return arguments.keys() <= self.properties(name).keys() and set(needed) <= arguments.keys()

    def typed(self, name: str, texts: Mapping[str, str]) -> dict[str, Any]:
        """Returns arguments from texts: it reads as JSON what is not to be a text."""
        return {key: self._value(name, key, text) for key, text in texts.items()}

    def _value(self, name: str, key: str, text: str) -> Any:
        if (self.properties(name).get(key) or {}).get("type", "string") == "string":
            return text.removeprefix("\n").removesuffix("\n")
        try:
            return _DECODER.decode(text.strip())
        except (ValueError, RecursionError):
            return text


# --- while it streams ---------------------------------------------------------------------------


class Holding:
    """Holds a text back that begins like a call, so that nobody sees it flash by as text."""

    def __init__(self, tools: Tools) -> None:
        self._tools = tools
        self._pieces: list[str] = []
        self._decided = not tools
        self._holds = False

    def feed(self, text: str) -> str:
        """Takes more text, and returns what may be shown now."""
        if self._decided and not self._holds:
            return text
        self._pieces.append(text)
        if not self._decided:
            held = "".join(self._pieces)
            verdict = self._promising(held.lstrip()) if len(held) < _LONGEST_HEAD else False
            self._decided, self._holds = verdict is not None, verdict is True
        return self.release() if self._decided and not self._holds else ""

    def release(self) -> str:
        """Returns what was held back. From now on it holds nothing back."""
        text = "".join(self._pieces)
        self._pieces.clear()
        self._decided, self._holds = True, False
        return text

    def _promising(self, begun: str) -> bool | None:
        """Returns whether the text may be a call; None while it is too short to tell."""
        if tag := _TAGS.match(begun):
            return not tag[0].startswith("</")
        if _may_become_tag(begun) or any(f.startswith(begun) for f in _FENCES):
            return None
        if begun.startswith("```"):
            fence = _FENCE.match(begun)
            if fence is None:
                return False
            begun = begun[fence.end() :].lstrip()
        if re.match(r"<(function=|(\w+:)?invoke )", begun):
            return True
        code = self._is_code(begun)
        return self._is_json(begun) if code is False else code

    def _is_code(self, begun: str) -> bool | None:
        """Returns whether the text begins with a tool's name and what opens its arguments."""
        word = begun.lstrip("[ ")
        for name in self._tools:
            for code in (f"{before}{name}{mark}" for before in _BEFORE for mark in _BEHIND):
                if word.startswith(code):
                    return True
                if code.startswith(word):
                    return None
        return False

    def _is_json(self, begun: str) -> bool | None:
        if key := _FIRST_KEY.match(begun):
            if key[1] in _NAME_KEYS:
                value = _FIRST_NAME.match(begun)
                if value is None:
                    return None if len(begun) < _HEAD else False
                return value[1] is None or self._tools.named(value[1]) is not None
            return (
                key[1] in _BESIDE or key[1] in _ARGUMENT_KEYS or key[1] in _WRAPPERS
                or self._tools.named(key[1]) is not None
            )  # fmt: skip
        if len(begun) > _HEAD:
            return False
        return None if _BEGINNING.fullmatch(begun) else False


_OPENERS = (
    "<tool_call>", "<tool_calls>", "<function_call>", "<function_calls>", "<functioncall>",
    "<tools>", "<tool>", "<tool_use>", "<function=", "<invoke ", "[TOOL_CALLS]", "[TOOL_REQUEST]",
)  # fmt: skip
_MARK = regex(r"<[|｜][^|｜<>\n]{0,40}[|｜]?|<\w{1,10}:\w{0,15}")


def _may_become_tag(begun: str) -> bool:
    """Returns whether this may be the beginning of a tag."""
    return any(o.startswith(begun) for o in _OPENERS) or _MARK.fullmatch(begun) is not None


# --- the whole text -----------------------------------------------------------------------------


@dataclass(slots=True)
class _Found:
    """`calls` of offered tools; `others`: so many characters are calls of tools that were not
    offered; `rest` is what stands around them all."""

    calls: list[Made] = field(default_factory=list)
    others: int = 0
    broken: bool = False
    """The text has a call of an offered tool that cannot be made."""
    last: int = 0
    """The position where the last of them ends."""
    rest: list[str] = field(default_factory=list)

    @property
    def alone(self) -> bool:
        return not _WRAPPING.sub("", "\n".join(self.rest))


def calls_in(text: str, tools: Tools) -> list[Made]:
    """Returns the calls that make up the text; none when it is anything else."""
    if not tools or not text.strip():
        return []
    if code := _code(text, tools):
        return code
    found = _scan(text, tools)
    return found.calls if found.alone and not found.others else []


def stray(text: str, tools: Tools) -> bool:
    """Whether the text, which `calls_in` finds no calls to be, holds a call all the same. A call of
    a tool that was not offered counts when it is the last word or the better part of the text: it
    may be an example of something else."""
    if not tools or not text.strip():
        return False
    found = _scan(text, tools)
    if found.calls or _TAGGED.search(text):
        return True
    if found.others:
        return found.others * 2 >= len(text) or not _WRAPPING.sub("", text[found.last :])
    return found.broken


def _scan(text: str, tools: Tools) -> _Found:
    found = _Found()
    at = tries = 0
    while tries < _TRIES and (start := _START.search(text, at)):
        before = text[at : start.start()]
        if start[0] == "{":
            value, end = _decoded(text, start.start())
            calls = _calls(value, tools)
            if calls is None and (name := _named_before(before, tools)):
                calls, before = [(name, value)], ""
            tries += value is None
        else:
            calls, end = _xml(text, start, tools)
        found.rest.append(before)
        at = end
        if calls is None:
            found.broken |= start[0] != "{" or tools.broken.match(text, start.start()) is not None
            found.rest.append(text[start.start() : end])
            continue
        found.last = end
        found.calls += calls
        found.others += 0 if calls else end - start.start()
    found.rest.append(text[at:])
    return found


def _decoded(text: str, at: int) -> tuple[Any, int]:
    """Returns the JSON object that begins there, and where it ends; None when there is none."""
    try:
        return _DECODER.raw_decode(text, at)
    except (ValueError, RecursionError):
        return None, at + 1


def _named_before(before: str, tools: Tools) -> str | None:
    """Returns the tool whose arguments follow: `[TOOL_CALLS]read_file[ARGS]{...}` and the like."""
    name = " ".join(_WRAPPING.sub(" ", before[-_HEAD:]).split())
    name = name.rpartition("to=")[2].removesuffix(" json").removeprefix("function ")
    return tools.named(re.sub(r":\d+$", "", name)) if name else None


def _calls(value: Any, tools: Tools) -> list[Made] | None:
    """The calls that a JSON value is: none of them when it calls what was not offered; None when
    it is something else."""
    if not isinstance(value, dict):
        return None
    inner = next((value[k] for k in _WRAPPERS if isinstance(value.get(k), dict | list)), None)
    if inner is None or len(value.keys() - _BESIDE) != 1:
        return _call(value, tools)
    if value.get("type", "function") not in _TYPES:
        return None
    made = [_calls(one, tools) for one in (inner if isinstance(inner, list) else [inner])]
    if any(one is None for one in made):
        return None
    return [call for one in made for call in one or ()] if all(made) else []


def _call(fields: Mapping[str, Any], tools: Tools) -> list[Made] | None:
    if fields.get("type", "function") not in _TYPES:
        return None  # an object, or a schema, that has a tool's name
    key = next((k for k in _NAME_KEYS if isinstance(fields.get(k), str)), None)
    if key is None:
        return _keyed(fields, tools)
    name = tools.named(fields[key])
    given = [k for k in _ARGUMENT_KEYS if k in fields]
    others = fields.keys() - {key} - _BESIDE
    if len(given) == 1 and others == set(given):
        arguments = fields[given[0]]
        if isinstance(arguments, str):
            arguments = arguments_in(arguments)
        if isinstance(arguments, dict):
            return [(name, arguments)] if name else []
    if name is None:
        return None
    flat = {k: fields[k] for k in others}  # the arguments stand beside the name
    return [(name, flat)] if tools.takes(name, flat) else None


def _keyed(fields: Mapping[str, Any], tools: Tools) -> list[Made] | None:
    """Reads calls such as `{"read_file": {"path": "a.py"}}`."""
    if len(fields) != 1:
        return None
    [(key, arguments)] = fields.items()
    name = tools.named(key)
    if name and isinstance(arguments, dict) and tools.takes(name, arguments):
        return [(name, arguments)]
    return None


def _xml(text: str, start: re.Match[str], tools: Tools) -> tuple[list[Made] | None, int]:
    """Reads `<function=NAME>` and `<invoke name="NAME">`, with JSON or `<parameter>`s inside."""
    close = _XML_END.search(text, start.end())
    inner = text[start.end() : close.start() if close else len(text)]
    end = close.end() if close else len(text)
    name = tools.named(start[1] or start[2])
    if name is None:
        return [], end
    if inner.lstrip().startswith("{"):
        arguments = arguments_in(inner)
        return ([(name, arguments)] if arguments is not None else None), end
    texts = {parameter[1]: parameter[2] for parameter in _PARAMETER.finditer(inner)}
    if not texts and inner.strip():
        return None, end
    return [(name, tools.typed(name, texts))], end


# --- Python -------------------------------------------------------------------------------------


def _code(text: str, tools: Tools) -> list[Made]:
    """Reads calls written as Python: alone, in a list, in `print()`."""
    code = _TAGS.sub("", _FENCE.sub("", text)).strip().removesuffix("```").strip()
    if len(code) > _LONGEST_CODE or not code.endswith((")", "]")):
        return []
    try:
        module = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    found = [call for line in module.body for call in _expressions(line)]
    made = [_python(call, tools) for call in found]
    return [one for one in made if one] if all(made) else []


def _expressions(line: ast.stmt) -> list[ast.expr]:
    value = line.value if isinstance(line, ast.Expr) else None
    match value:
        case ast.List(elts=several):
            return several
        case ast.Call(func=ast.Name(id="print"), args=[inner], keywords=[]):
            return [inner]
        case None:
            return [ast.Constant(None)]
    return [value]


def _python(call: ast.expr, tools: Tools) -> Made | None:
    if not isinstance(call, ast.Call):
        return None
    name = tools.named(ast.unparse(call.func))
    if name is None:
        return None
    try:
        given = dict(zip(tools.properties(name), map(ast.literal_eval, call.args), strict=False))
        given |= {word.arg or "": ast.literal_eval(word.value) for word in call.keywords}
        json.dumps(given)
    except (ValueError, TypeError):
        return None
    return (name, given) if tools.takes(name, given) else None
