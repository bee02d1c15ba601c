"""An HTTP server on loopback that speaks OpenAI Chat Completions, streaming, faults included, as
OpenAI does or with the quirks of those who claim compatibility. How to use it: `server.py`.
https://developers.openai.com/api/docs/api-reference/chat-streaming
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from magy_server.core.ports import Message, ToolOutput
from magy_server.core.values import Text

from .http import Request
from .openai_checks import chat_problems, error_body, listed
from .openai_responses import FAULTS
from .parts import (
    Called,
    Cut,
    ErrorEvent,
    Failed,
    Fault,
    Hang,
    Part,
    Pause,
    Ping,
    Raw,
    Redacted,
    Refusal,
    Said,
    Stopped,
)
from .server import ModelServer, Step, counts, piece_by_piece

TEXT_CALLS: Mapping[str, str] = {
    "": "",
    "hermes": '<tool_call>\n{{"name": {name}, "arguments": {arguments}}}\n</tool_call>',
    "fenced": '```json\n{{"name": {name}, "arguments": {arguments}}}\n```',
    "bare": '{{"name": {name}, "arguments": {arguments}}}',
}
"""How models whose server does not know their template write calls into the text."""


@dataclass(frozen=True)
class Quirks:
    """What OpenAI-compatible servers do differently; the defaults are OpenAI's own ways."""

    ids: Literal["own", "missing", "repeated"] = "own"
    """Of calls. `repeated`: the first of every reply is `call_0`, and so on."""
    usage: bool = True
    usage_with_content: bool = False
    """In the chunk with the finish reason, instead of one of its own."""
    stream_options: bool = True
    """False: a request that has them is refused."""
    done: bool = True
    """Whether `[DONE]` ends the stream."""
    text_calls: Literal["", "hermes", "fenced", "bare"] = ""
    """Calls are text; see TEXT_CALLS."""
    arguments_as_object: bool = False
    whole_calls: bool = False
    """A call comes in one chunk."""
    index: bool = True
    """False: calls have no `index`; each is whole."""
    stop_with_calls: bool = False
    """The finish reason is `stop` although there are calls."""
    null_finish: bool = False
    """No finish reason at all."""
    reasoning: str = ""
    """The field that thinking comes in: `reasoning_content` or `reasoning`. OpenAI shows none."""
    echo: Literal["refused", "ignored", "required"] = "refused"
    """What to think of assistant messages with that field; `required` beside calls."""
    max_completion_tokens: bool = True
    """False: only `max_tokens` is known."""


class ChatServer(ModelServer):
    prefix = "/v1"
    path = "/chat/completions"
    stops: ClassVar[Mapping[str, str]] = {
        "end_turn": "stop",
        "tool_use": "tool_calls",
        "max_tokens": "length",
        "refusal": "content_filter",
    }
    faults = FAULTS

    def __init__(self, *arguments: Any, quirks: Quirks | None = None, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.quirks = quirks or Quirks()

    def problems(self, request: Request) -> list[str]:
        quirks = self.quirks
        unknown = [
            *(["stream_options"] if not quirks.stream_options else []),
            *(["max_completion_tokens"] if not quirks.max_completion_tokens else []),
        ]
        field = quirks.reasoning if quirks.echo != "refused" else ""
        return chat_problems(
            request.body, unknown=unknown, reasoning=field, required=quirks.echo == "required"
        )

    def error(self, fault: Fault) -> dict[str, Any]:
        return error_body(fault)

    def listed(self, models: Sequence[str]) -> dict[str, Any]:
        return listed(models)

    @staticmethod
    def conversation(body: Any) -> list[Message]:
        return list(_spoken(body["messages"]))

    def events(self, body: Any, parts: Sequence[Part], number: int) -> Iterator[Step]:
        stream = _Stream(body, number, self.quirks)
        yield stream.chunk({"role": "assistant", "content": "", "refusal": None})
        for part in parts:
            match part:
                case Said() | Called() | Refusal():
                    yield from stream.part(part)
                case Stopped():
                    stream.finish = part.reason
                case Ping():
                    yield b": keep-alive\n\n"
                case ErrorEvent(type=code, message=message) | Failed(code=code, message=message):
                    error = error_body(Fault("500", message, code))
                    yield f"data: {json.dumps(error)}\n\n".encode()
                    return
                case Raw():
                    yield part.data
                case Pause() | Hang():
                    yield part
                case Cut():
                    yield part
                    return
                case Redacted():
                    raise ValueError("Chat Completions has no hidden thinking")
        yield from stream.end(counts(parts))


class _Stream:
    """One completion while it is made."""

    def __init__(self, body: Any, number: int, quirks: Quirks) -> None:
        self.finish: str | None = "stop"
        self._body = body
        self._number = number
        self._quirks = quirks
        self._calls = 0

    def chunk(
        self, delta: Mapping[str, Any] | None, finish: str | None = None, **fields: Any
    ) -> bytes:
        """`delta` None: without choices."""
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        given = {
            "id": f"chatcmpl-{self._number}",
            "object": "chat.completion.chunk",
            "created": 1767225600,
            "model": self._body["model"],
            "service_tier": "default",
            "system_fingerprint": "fp_loopback",
            "choices": [] if delta is None else [choice],
            **({"usage": None} if self._counts else {}),
            **fields,
        }
        return f"data: {json.dumps(given, ensure_ascii=False)}\n\n".encode(
            "utf-8", "backslashreplace"
        )

    @property
    def _counts(self) -> bool:
        asked = (self._body.get("stream_options") or {}).get("include_usage")
        return self._quirks.usage and bool(asked or not self._quirks.stream_options)

    def end(self, tokens: Mapping[str, int]) -> Iterator[bytes]:
        with_content = self._counts and self._quirks.usage_with_content
        finish = None if self._quirks.null_finish else self.finish
        yield self.chunk({}, finish, **({"usage": _usage(tokens)} if with_content else {}))
        if self._counts and not with_content:
            yield self.chunk(None, usage=_usage(tokens))
        if self._quirks.done:
            yield b"data: [DONE]\n\n"

    def part(self, part: Said | Called | Refusal) -> Iterator[Step]:
        match part:
            case Called() if self._quirks.text_calls:
                template = TEXT_CALLS[self._quirks.text_calls]
                text = template.format(name=json.dumps(part.name), arguments=part.json)
                return self._said(Said("text", text, speed=part.speed), "content")
            case Called():
                return self._call(part)
            case Said(kind="thinking"):
                return self._said(part, self._quirks.reasoning)
            case Said():
                return self._said(part, "content")
            case Refusal():
                return self._said(Said("text", part.text), "refusal")

    def _said(self, part: Said, name: str) -> Iterator[Step]:
        for piece in piece_by_piece(part):
            if isinstance(piece, Pause):
                yield piece
            elif name:
                yield self.chunk({name: piece})

    def _call(self, part: Called) -> Iterator[Step]:
        quirks, index = self._quirks, self._calls
        self._calls += 1
        self.finish = "stop" if quirks.stop_with_calls else "tool_calls"
        place = {"index": index} if quirks.index else {}
        made = {
            "own": part.id or f"call_{self._number}_{index}",
            "repeated": f"call_{index}",
            "missing": "",
        }[quirks.ids]
        head = place | ({"id": made} if made else {}) | {"type": "function"}
        if quirks.whole_calls or quirks.arguments_as_object or not quirks.index:
            given = json.loads(part.json) if quirks.arguments_as_object else part.json
            function = {"name": part.name, "arguments": given}
            yield self.chunk({"tool_calls": [head | {"function": function}]})
            return
        yield self.chunk(
            {"tool_calls": [head | {"function": {"name": part.name, "arguments": ""}}]}
        )
        for piece in piece_by_piece(part):
            if isinstance(piece, Pause):
                yield piece
            else:
                yield self.chunk({"tool_calls": [place | {"function": {"arguments": piece}}]})


def _usage(tokens: Mapping[str, int]) -> dict[str, Any]:
    """Here `input` includes what was read from the cache."""
    read = tokens["input"] + tokens["cache_read"] + tokens["cache_write"]
    return {
        "prompt_tokens": read,
        "completion_tokens": tokens["output"],
        "total_tokens": read + tokens["output"],
        "prompt_tokens_details": {"cached_tokens": tokens["cache_read"], "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": 0},
    }


# --- a request, for scripts ---------------------------------------------------------------------


def _spoken(messages: Sequence[Any]) -> Iterator[Message]:
    """Tool results and what a person said after them are one message."""
    told = [m for m in messages if m["role"] not in ("system", "developer")]
    for of_assistant, group in itertools.groupby(told, lambda m: m["role"] == "assistant"):
        given = list(group)
        if of_assistant:
            for message in given:
                yield Message("assistant", tuple(_parts(message)))
        else:
            yield Message("user", tuple(part for message in given for part in _parts(message)))


def _parts(message: Mapping[str, Any]) -> Iterator[Text | ToolOutput]:
    content = message.get("content") or ""
    texts = [content] if isinstance(content, str) else [p["text"] for p in content if "text" in p]
    if message["role"] == "tool":
        yield ToolOutput("", message["tool_call_id"], "".join(texts))
    else:
        yield from (Text(text=text) for text in texts)
