"""A script says what a scripted model answers. These functions turn text into a Script, and choose
the next reply.

The format is described for authors in docs/reference/script-format.md. Pure.
"""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any, Literal, cast, get_args

from magy_server.core.errors import InvalidConfig, ProviderFault
from magy_server.core.ports import Message, ToolOutput
from magy_server.core.values import Text
from magy_server.dataclass import dataclass
from magy_server.regex import regex

Stop = Literal["end_turn", "max_tokens", "refusal", "stray_call"]

EXHAUSTED = "(the script has no further reply)"
UNKNOWN = "(the script has no section for this prompt)"
_NOTE = regex(r"<note>\n.*\n</note>\Z", re.DOTALL)

# --- what a script is ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Say:
    """Text or thinking. `speed` in characters per second, 0: as fast as possible."""

    kind: Literal["text", "thinking"]
    text: str
    speed: float = 0.0


@dataclass(frozen=True, slots=True)
class Use:
    """A tool call."""

    name: str
    arguments: Mapping[str, Any]
    speed: float = 0.0


@dataclass(frozen=True, slots=True)
class Pause:
    seconds: float


@dataclass(frozen=True, slots=True)
class Fail:
    """The request fails here, the first `times` times that it comes here."""

    fault: ProviderFault
    times: int
    retry_after: float | None
    line: int


Step = Say | Use | Pause | Fail


@dataclass(slots=True)
class Reply:
    """`usage` holds the counts the script gives; the others are estimated."""

    line: int = 0
    steps: list[Step] = field(default_factory=list)
    usage: dict[str, int] = field(default_factory=dict)
    stop: Stop | None = None

    @property
    def empty(self) -> bool:
        return not (self.steps or self.usage or self.stop)


@dataclass(slots=True)
class Section:
    """The replies to a prompt that contains `pattern` (lower case); "" is the fallback."""

    pattern: str
    line: int
    replies: list[Reply]


@dataclass(slots=True)
class Script:
    sections: list[Section]

    def next_reply(self, messages: Sequence[Message]) -> Reply:
        """The reply to this conversation: a function of the conversation alone, so that a script
        goes on where it was after a restart."""
        said = 0
        since_prompt: int | None = None
        for message in reversed(messages):
            if message.role == "assistant":
                said += 1
            elif section := self._matching(said_in(message)):
                return _nth(section, said)
            elif since_prompt is None and _is_prompt(message):
                since_prompt = said
        fallback = next((s for s in self.sections if not s.pattern), None)
        if fallback is None:
            return _note(UNKNOWN)
        return _nth(fallback, said if since_prompt is None else since_prompt)

    def _matching(self, prompt: str) -> Section | None:
        prompt = prompt.lower()
        return next((s for s in self.sections if s.pattern and s.pattern in prompt), None)


def _nth(section: Section, index: int) -> Reply:
    return section.replies[index] if index < len(section.replies) else _note(EXHAUSTED)


def _note(text: str) -> Reply:
    return Reply(steps=[Say("text", text)])


def said_in(message: Message) -> str:
    """Returns what the person said in a message. Notes to the model are not prompts."""
    parts = (part.text for part in message.parts if isinstance(part, Text))
    return "\n".join(text for text in parts if not _NOTE.match(text))


def _is_prompt(message: Message) -> bool:
    """Returns whether a message is a prompt. Texts beside tool results are not: they came while the
    model was at work."""
    return not any(isinstance(part, ToolOutput) for part in message.parts)


def last_output(messages: Sequence[Message]) -> str:
    """Returns the text of the last tool result, for `{{last}}`, or "" when there is none."""
    outputs = (p for m in messages for p in m.parts if isinstance(p, ToolOutput))
    return next((output.text for output in reversed(list(outputs))), "")


# --- reading one --------------------------------------------------------------------------------

_DIRECTIVE = regex(r"([a-z]+):[ \t]*(.*)")
_SEPARATOR = regex(r"-{3,}\s*")


def parse(text: str, name: str = "script") -> Script:
    """Raises InvalidConfig that names the line and what was expected there."""
    return _Parser(name).parse(text)


class _Parser:
    def __init__(self, name: str) -> None:
        self._name = name
        self._line = 1
        self._speed = 0.0
        self._sections: list[Section] = []

    def parse(self, text: str) -> Script:
        for word, value in self._lines(text):
            if word == "---":
                self._section().replies.append(Reply(self._line))
            elif word == "prompt":
                self._open(value)
            else:
                self._directive(word, value)
        for reply in (reply for section in self._sections for reply in section.replies):
            if reply.empty:
                self._line = reply.line
                raise self._wrong("this reply is empty: give it a text:")
        if not self._sections:
            raise self._wrong("the script is empty; write at least one line, such as `text: Hello`")
        return Script(self._sections)

    def _lines(self, text: str) -> Iterator[tuple[str, str]]:
        """(directive, value with its continuation lines); `_line` is where the directive stands."""
        lines = text.splitlines()
        index = 0
        while index < len(lines):
            line = lines[index].rstrip()
            self._line = index = index + 1
            if not line or line.startswith("#"):
                continue
            if _SEPARATOR.fullmatch(line):
                yield "---", ""
                continue
            match = _DIRECTIVE.fullmatch(line)
            if not match:
                raise self._wrong(
                    f"expected `directive: value`, `---` or a comment, found {line[:40]!r}"
                    + ("; an indented line continues a text: or call:" if line[0] in " \t" else "")
                )
            end = index
            while end < len(lines) and (not lines[end].strip() or lines[end][0] in " \t"):
                end += 1
            yield match[1], _joined(match[2], lines[index:end])
            index = end

    def _section(self) -> Section:
        if not self._sections:
            self._sections.append(Section("", self._line, [Reply(self._line)]))
        return self._sections[-1]

    def _open(self, pattern: str) -> None:
        pattern = pattern.lower()
        for section in self._sections:
            if section.pattern == pattern:
                what = f"prompt {pattern!r}" if pattern else "a section without a pattern"
                raise self._wrong(f"{what} was already given at line {section.line}")
        self._sections.append(Section(pattern, self._line, [Reply(self._line)]))

    def _directive(self, word: str, value: str) -> None:
        read = _DIRECTIVES.get(word)
        if read is None:
            known = ", ".join(("prompt", *_DIRECTIVES))
            raise self._wrong(f"unknown directive {word!r}; known are {known}")
        read(self, value)

    def _reply(self) -> Reply:
        return self._section().replies[-1]

    def _text(self, value: str) -> None:
        self._say("text", value)

    def _think(self, value: str) -> None:
        self._say("thinking", value)

    def _say(self, kind: Literal["text", "thinking"], value: str) -> None:
        """Adds text to the reply. Neighbours of one kind are one part, on lines of their own."""
        said = [step for step in self._reply().steps if isinstance(step, Say | Use)]
        if said and isinstance(said[-1], Say) and said[-1].kind == kind:
            value = "\n" + value
        self._reply().steps.append(Say(kind, value, self._speed))

    def _call(self, value: str) -> None:
        match = re.fullmatch(r"([^\s{]+)\s*(.*)", value, re.DOTALL)
        if not match:
            raise self._wrong('expected `call: tool_name {"argument": ...}`')
        name, given = match.groups()
        try:
            arguments = json.loads(given or "{}")
        except json.JSONDecodeError as error:
            raise self._wrong(f"the arguments of {name} are not JSON: {error}") from None
        if not isinstance(arguments, dict):
            raise self._wrong(f"the arguments of {name} must be a JSON object")
        self._reply().steps.append(Use(name, arguments, self._speed))

    def _usage(self, value: str) -> None:
        names = ("input", "output", "cache_read", "cache_write")
        for name, count in self._settings(value, names).items():
            self._reply().usage[name] = int(self._number(name, count, whole=True))

    def _delay(self, value: str) -> None:
        self._reply().steps.append(Pause(self._number("delay", value)))

    def _set_speed(self, value: str) -> None:
        self._speed = self._number("speed", value)

    def _error(self, value: str) -> None:
        fault, _, rest = value.partition(" ")
        if fault not in get_args(ProviderFault):
            known = ", ".join(get_args(ProviderFault))
            raise self._wrong(f"unknown fault {fault!r}; known are {known}")
        settings = self._settings(rest, ("times", "retry_after"))
        times = int(self._number("times", settings.get("times", "1"), whole=True))
        wait = settings.get("retry_after")
        retry_after = None if wait is None else self._number("retry_after", wait)
        self._reply().steps.append(Fail(cast(ProviderFault, fault), times, retry_after, self._line))

    def _stop(self, value: str) -> None:
        if value not in get_args(Stop):
            raise self._wrong(f"expected stop: {' | '.join(get_args(Stop))}, found {value!r}")
        self._reply().stop = cast(Stop, value)

    def _settings(self, value: str, names: Sequence[str]) -> dict[str, str]:
        settings: dict[str, str] = {}
        for item in value.split():
            name, equals, setting = item.partition("=")
            if name not in names or not equals:
                raise self._wrong(f"expected {' '.join(f'{n}=...' for n in names)}, found {item!r}")
            settings[name] = setting
        return settings

    def _number(self, name: str, value: str, *, whole: bool = False) -> float:
        if not re.fullmatch(r"\d+" if whole else r"\d+(\.\d+)?|\.\d+", value):
            kind = "a whole number" if whole else "a number"
            raise self._wrong(f"{name} must be {kind}, not {value!r}")
        return float(value)

    def _wrong(self, what: str) -> InvalidConfig:
        return InvalidConfig(f"{self._name}, line {self._line}: {what}.")


_DIRECTIVES: Mapping[str, Callable[[_Parser, str], None]] = {
    "text": _Parser._text,
    "think": _Parser._think,
    "call": _Parser._call,
    "usage": _Parser._usage,
    "delay": _Parser._delay,
    "speed": _Parser._set_speed,
    "error": _Parser._error,
    "stop": _Parser._stop,
}


def _joined(first: str, rest: Sequence[str]) -> str:
    """The value: what stands on the directive's line (unless a lone `|`), then the indented lines,
    less the indentation they share; blank lines at the end do not count."""
    block = textwrap.dedent("\n".join(rest)).rstrip()
    if not block.strip():
        return "" if first == "|" else first
    return block if first in ("", "|") else f"{first}\n{block}"
