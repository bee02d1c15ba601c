"""All wires share this code, without I/O: it reads an answer event by event, and makes ids and
names of tool calls.

Each wire is a pure module: `body(request)` makes the JSON body, and an `Answer` turns the events of
the streamed answer into deltas and one `Replied`.
"""

from __future__ import annotations

import base64
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

import orjson

from magy_server.core.events import Replied
from magy_server.core.ports import (
    Delta,
    ModelRequest,
    Picture,
    Reading,
    ToolOutput,
    ToolSchema,
)
from magy_server.core.text.arguments import arguments_in
from magy_server.core.text.surrogates import all_whole
from magy_server.core.values import Call, Part, Text, Usage
from magy_server.llm.text_calls import Holding, Made, Tools, calls_in, stray
from magy_server.regex import regex

Stop = Literal["end_turn", "tool_use", "max_tokens", "refusal", "stray_call"]

WIRE_ID = regex(r"[a-zA-Z0-9_-]{1,40}")
"""Ids of calls that every API takes; the strictest allows 40 characters."""


class StreamError(Exception):
    """The provider broke off its answer with an error of its own: `error` as it came."""

    def __init__(self, error: Any) -> None:
        super().__init__(str(error))
        self.error = error


class Answer(ABC):
    """Collects the events of one streamed answer. A wire says what an event holds (`read`) and what
    all of them came to (`content`, `stop`, `usage`); calls that a model writes as text are found
    here, for all wires.

    `feed` raises StreamError when the event says that the provider failed, and KeyError, TypeError,
    ValueError or AttributeError when the event does not have the documented shape; unknown kinds of
    events are ignored.
    """

    def __init__(self, request: ModelRequest) -> None:
        self.request = request
        self.started = False
        """The reply itself has begun."""
        self.heard = False
        """An event of the answer has come."""
        self.complete = False
        """Nothing more will come."""
        self.ended = False
        """The stream ended with the mark `[DONE]`; only Chat Completions has it."""
        self._tools = Tools(request.tools)
        self._holding = Holding(self._tools)
        self._shown = False
        """Text was given as deltas."""
        self._written: list[Made] = []
        """The calls that the model wrote as text."""
        self._finished = False

    # --- a wire ---------------------------------------------------------------------------------

    @abstractmethod
    def read(self, event: Any) -> Iterable[Delta | Reading]: ...

    def rest(self) -> Iterable[Delta]:
        """Returns what `read` held back, once `closing`."""
        return ()

    @property
    def over(self) -> bool:
        """Whether no event after this one is of interest."""
        return self.complete or self.ended

    @property
    @abstractmethod
    def closing(self) -> bool:
        """The provider said that this was all: nothing of the content is missing any more."""

    @abstractmethod
    def content(self) -> Sequence[Part]: ...

    @abstractmethod
    def stop(self) -> Stop: ...

    @abstractmethod
    def usage(self) -> Usage: ...

    # --- an answer ------------------------------------------------------------------------------

    def feed(self, event: Any) -> Sequence[Delta | Reading]:
        self.heard = True
        return list(self._showable(self.read(event)))

    def finish(self) -> Sequence[Delta | Reading]:
        """Returns what was held back, once `closing`. The caller calls it before `replied`."""
        if self._finished:
            return ()
        self._finished = True
        deltas = list(self._showable(self.rest()))
        parts = self.content()
        if not self._shown and not any(isinstance(part, Call) for part in parts):
            self._written = calls_in(_text(parts), self._tools)
        if not self._written:
            return [*deltas, *self._release()]
        for number, (name, arguments) in enumerate(self._written):
            deltas.append(Delta("call", _json(arguments), number, name, done=True))
        return deltas

    def replied(self) -> Replied:
        parts, stop, usage = self.content(), self.stop(), self.usage()
        if self._written:
            parts = [part for part in parts if not isinstance(part, Text)]
            for number, (name, arguments) in enumerate(self._written):
                parts.append(self.call(number, name, _json(arguments)))
            stop = "tool_use" if stop == "end_turn" else stop
        elif stop == "end_turn" and stray(_text(parts), self._tools):
            stop = "stray_call"
        return Replied(
            request=self.request.id,
            model=self.request.model,
            content=tuple(parts),
            stop=stop,
            usage=usage if usage.total else Usage(unreported=1),
        )

    def _showable(self, items: Iterable[Delta | Reading]) -> Iterator[Delta | Reading]:
        for item in items:
            match item:
                case Delta(kind="text"):
                    yield from self._show(self._holding.feed(item.text))
                    continue
                case Delta(kind="call"):
                    yield from self._release()
            yield item

    def _release(self) -> Iterator[Delta]:
        yield from self._show(self._holding.release())

    def _show(self, text: str) -> Iterator[Delta]:
        if text:
            self._shown = True
            yield Delta("text", text)

    def call(self, number: int, name: str, text: str, provider_id: str = "") -> Call:
        """Returns the `number`-th call (from 0) of the reply, from the text of its arguments."""
        arguments = arguments_in(text)
        return Call(
            id=f"{self.request.id}.{number}",
            name=name,
            arguments=arguments or {},
            provider_id=provider_id,
            invalid=text if arguments is None else None,
        )


def _text(parts: Iterable[Part]) -> str:
    return "".join(part.text for part in parts if isinstance(part, Text))


def dumps(value: Any) -> str:
    """Returns as JSON again what an event of an answer held."""
    return orjson.dumps(all_whole(value)).decode()


def _json(arguments: Mapping[str, Any]) -> str:
    return json.dumps(arguments, ensure_ascii=False)


def count(counts: Mapping[str, Any] | None, *path: str) -> int:
    """Returns the number under `path`; 0 when it is missing or no number."""
    value: Any = counts
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    return max(0, value) if isinstance(value, int) else 0


# --- requests -----------------------------------------------------------------------------------


def arguments_of(call: Call) -> dict[str, Any]:
    """What the model is shown of the arguments it gave. The wires (or the servers behind them) have
    room for objects only; of what was none it should still see what it wrote."""
    return call.arguments if call.invalid is None else {"INVALID_JSON": call.invalid}


def arguments_text(call: Call) -> str:
    """Returns the same as JSON, always in the same words."""
    return json.dumps(arguments_of(call), ensure_ascii=False, separators=(",", ":"))


def own_id(call: str) -> str:
    """Returns an id for the wire, made of ours."""
    return "call_" + re.sub(r"[^a-zA-Z0-9_-]", "_", call)


def wire_name(name: str) -> str:
    """A model may call a tool by a name that no API lets stand in a conversation."""
    return re.sub(r"[^a-zA-Z0-9_-]", "_", name)[:64] or "unknown"


def function(tool: ToolSchema) -> dict[str, Any]:
    """Returns a tool as both wires of OpenAI's describe it."""
    return {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)}


def joined(texts: Iterable[str]) -> str:
    """Returns those that are not empty, as paragraphs."""
    return "\n\n".join(text for text in texts if text.strip())


def encoded(picture: Picture) -> str:
    return base64.b64encode(picture.data).decode("ascii")


def data_url(picture: Picture) -> str:
    return f"data:{picture.mime};base64,{encoded(picture)}"


def output_text(output: ToolOutput) -> str:
    """Returns a tool's result for a wire where it must not be empty."""
    if output.text.strip():
        return output.text
    return "(failed without output)" if output.error else "(no output)"
