"""This module reads answers on OpenAI's Chat Completions wire, without I/O: the chunks of a stream
become deltas and one Replied, as they come from OpenAI, Ollama, llama.cpp, vLLM, Groq, DeepSeek,
Gemini, Mistral and the like. What is said here of "some servers" was seen of one of those."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any, Literal

from magy_server.core.ports import Delta, ModelRequest, Reading
from magy_server.core.text.arguments import arguments_in
from magy_server.core.values import Part, Text, Thinking, Usage
from magy_server.dataclass import dataclass
from magy_server.llm import wire
from magy_server.llm.thoughts import Thoughts
from magy_server.llm.wire import Stop, StreamError, count

_STOPS: Mapping[str, Stop] = {
    "length": "max_tokens",
    "max_tokens": "max_tokens",
    "model_length": "max_tokens",
    "content_filter": "refusal",
    "SAFETY": "refusal",
}
"""What `finish_reason` means. With any other reason, a reply that calls tools stops for the tools,
and another reply is over."""

_FAILED: Mapping[str, Mapping[str, str]] = {
    "error": {"message": "", "code": "error"},
    "insufficient_system_resource": {"message": "", "code": "server_is_overloaded"},
}
"""These reasons to finish mean that the reply is not whole."""

EXTRA = "extra_content"
"""`Thinking.signature` of what a server put beside a call and wants back with it, in `data`."""

THINKING = ("reasoning_content", "reasoning", "thinking")
"""A server sends thinking in one of these fields. `Thinking.signature` keeps which one."""


@dataclass(slots=True)
class _Said:
    """`field`: where thinking came in; "" between tags in the text."""

    kind: Literal["text", "thinking"]
    pieces: list[str]
    field: str = ""


@dataclass(slots=True)
class _Call:
    """A tool call while it streams: its number in the reply, and what the server calls it."""

    number: int
    index: Any
    id: str
    name: str = ""
    pieces: list[str] = field(default_factory=list)
    sent: int = 0
    """How many pieces of it were given as deltas."""
    done: bool = False
    again: bool = False
    """The server began the call again after it was whole. If arguments follow, they are another
    call's."""
    extra: Any = None

    @property
    def text(self) -> str:
        return "".join(self.pieces)

    @property
    def whole(self) -> bool:
        """Returns whether the arguments are a complete object. Callers ask often, so it parses them
        only if they can be complete."""
        last = self.pieces[-1] if self.pieces else ""
        return last.rstrip().endswith("}") and arguments_in(self.text) is not None

    def is_said_by(self, id: str, name: str, arguments: str) -> bool:
        """Some servers end a call by saying once more all of it, or its id and name alone."""
        if not id or id != self.id or name not in ("", self.name):
            return False
        return self.whole and arguments in ("", self.text)


class Answer(wire.Answer):
    """See `wire.Answer`."""

    def __init__(self, request: ModelRequest) -> None:
        super().__init__(request)
        self._thoughts = Thoughts()
        self._parts: list[_Said | _Call] = []
        self._finish: str | None = None
        self._refused = False
        self._usage: Mapping[str, Any] | None = None
        self._began = False
        """A chunk of the reply itself has come."""
        self._counted = False
        """The last chunk only said what the reply cost. Some servers send such a chunk first, and
        for others it is the only sign that the reply is over."""

    def read(self, event: Any) -> Sequence[Delta | Reading]:
        chunk = event[0] if isinstance(event, list) and event else event
        choices = chunk.get("choices") or ()
        if chunk.get("error"):
            raise StreamError(chunk["error"])
        if not choices and ("message" in chunk or "detail" in chunk):
            raise StreamError(chunk)
        self._count(chunk, choices)
        deltas = [delta for choice in choices[:1] for delta in self._choice(choice)]
        self.started |= bool(deltas) or self.closing
        reading = _reading(chunk.get("prompt_progress"))
        return [reading] if reading and not self.started else deltas

    @property
    def closing(self) -> bool:
        return self._finish is not None or self._counted or self.ended

    def content(self) -> Sequence[Part]:
        return [part for said in self._parts for part in self._made(said)]

    def stop(self) -> Stop:
        if self._refused:
            return "refusal"
        usual: Stop = "tool_use" if self._calls else "end_turn"
        return _STOPS.get(self._finish or "", usual)

    def usage(self) -> Usage:
        """`prompt_tokens` counts what was cached too; `completion_tokens` of some servers leaves
        out the thinking, which their total has."""
        usage = self._usage
        prompt = count(usage, "prompt_tokens")
        details = "prompt_tokens_details"
        read = count(usage, details, "cached_tokens") or count(usage, "prompt_cache_hit_tokens")
        written = count(usage, details, "cache_write_tokens")
        output = count(usage, "completion_tokens")
        return Usage(
            input=max(0, prompt - read - written),
            output=max(output, count(usage, "total_tokens") - prompt),
            cache_read=read,
            cache_write=written,
        )

    def rest(self) -> Iterator[Delta]:
        return self._flush()

    @property
    def _calls(self) -> list[_Call]:
        return [part for part in self._parts if isinstance(part, _Call)]

    def _made(self, said: _Said | _Call) -> Iterator[Part]:
        match said:
            case _Said(kind="text"):
                yield Text(text="".join(said.pieces))
            case _Said():
                yield Thinking(text="".join(said.pieces), signature=said.field)
            case _Call():
                if said.extra:  # must come back with the call (Gemini's signatures)
                    data = wire.dumps(said.extra)
                    yield Thinking(signature=EXTRA, data=data)
                yield self.call(said.number, said.name, said.text, said.id)

    # --- a chunk --------------------------------------------------------------------------------

    def _count(self, chunk: Mapping[str, Any], choices: Sequence[Any]) -> None:
        """Takes over the usage. It comes in a chunk of its own, in the last one, in a choice, or
        cumulative in all of them."""
        if choices:
            self._began, self._counted = True, False
        places = [*choices[:1], chunk.get("x_groq") or {}, chunk]
        for place in places:
            if isinstance(found := place.get("usage"), Mapping):
                self._usage = found
                self._counted = self._began and not choices

    def _choice(self, choice: Mapping[str, Any]) -> Iterator[Delta]:
        delta = choice.get("delta") or {}
        if not delta and not self._parts and choice.get("message"):  # a server that does not stream
            delta = choice["message"]
            self.complete = True
        field = next((name for name in THINKING if delta.get(name)), "")
        if field and isinstance(delta[field], str):
            yield from self._say("thinking", delta[field], field)
        yield from self._content(delta.get("content"))
        if refusal := delta.get("refusal"):
            self._refused = True
            yield from self._say("text", refusal)
        for piece in delta.get("tool_calls") or ():
            yield from self._call(piece)
        if reason := str(choice.get("finish_reason") or ""):
            self._finish = reason
            if reason in _FAILED:
                raise StreamError(_FAILED[reason])
            yield from self._flush()

    def _content(self, content: Any) -> Iterator[Delta]:
        """Text; from some servers a list of parts, thinking among them."""
        if isinstance(content, list):
            for part in content:
                if inner := part.get("thinking"):
                    texts = [inner] if isinstance(inner, str) else [t["text"] for t in inner]
                    yield from self._say("thinking", "".join(texts))
                else:
                    yield from self._content(part.get("text"))
        elif content:
            yield from self._tell(*self._thoughts.feed(content))

    def _tell(self, thinking: str, text: str) -> Iterator[Delta]:
        yield from self._say("thinking", thinking)
        yield from self._say("text", text)

    def _say(
        self, kind: Literal["text", "thinking"], text: str, field: str = ""
    ) -> Iterator[Delta]:
        if not isinstance(text, str):
            raise TypeError(f"{kind} is {type(text).__name__}")
        if not text:
            return
        last = self._parts[-1] if self._parts else None
        if isinstance(last, _Said) and last.kind == kind:
            last.pieces.append(text)
        else:
            self._parts.append(_Said(kind, [text], field))
        yield Delta(kind, text)

    # --- tool calls -----------------------------------------------------------------------------

    def _call(self, piece: Mapping[str, Any]) -> Iterator[Delta]:
        function = piece.get("function") or {}
        arguments = function.get("arguments") or ""
        if not isinstance(arguments, str):  # some servers give the object itself
            arguments = json.dumps(arguments, ensure_ascii=False)
        index, id = piece.get("index"), str(piece.get("id") or "")
        name = str(function.get("name") or "")
        call = self._same(index, id)
        if call and call.is_said_by(id, name, arguments):
            call.extra = piece.get("extra_content") or call.extra
            call.again = not arguments
            return
        if call and call.again and arguments and not name and id in ("", call.id):
            id, name = call.id, call.name
        if call is None or self._is_another(call, id, name):
            for before in self._calls:
                if before.whole:
                    yield from self._close(before)
            call = _Call(len(self._calls), index, id)
            self._parts.append(call)
        call.id = call.id or id
        call.name = call.name or name
        call.extra = piece.get("extra_content") or call.extra
        if arguments:
            call.pieces.append(arguments)
        yield from self._more(call, began=bool(name))

    def _same(self, index: Any, id: str) -> _Call | None:
        """Returns the call that a piece may belong to: the last with its index or, without an
        index, with its id; without both, the last call."""
        calls = self._calls
        if index is not None:
            calls = [call for call in calls if call.index == index]
        elif id and any(call.id == id for call in calls):
            calls = [call for call in calls if call.id == id]
        return calls[-1] if calls else None

    def _is_another(self, call: _Call, id: str, name: str) -> bool:
        """Some servers give every call index 0, or no index, or one id to all; some say the name
        again, or make a new id, with each piece of one call."""
        if not name:
            return False
        if id and call.id and id != call.id:
            return True
        return call.whole or (bool(call.name) and name != call.name)

    def _more(self, call: _Call, *, began: bool) -> Iterator[Delta]:
        """Returns the arguments that were not given yet; nothing before the name is known, or after
        the end was said."""
        if not call.name or call.done:
            return
        text = "".join(call.pieces[call.sent :])
        if text or (began and not call.sent):
            yield Delta("call", text, call.number, call.name)
        call.sent = len(call.pieces)

    def _close(self, call: _Call) -> Iterator[Delta]:
        if not call.done:
            call.done = True
            rest = "".join(call.pieces[call.sent :])
            yield Delta("call", rest, call.number, call.name, done=True)

    def _flush(self) -> Iterator[Delta]:
        """Returns all that was held back, and the ends of the calls."""
        yield from self._tell(*self._thoughts.finish())
        for call in self._calls:
            yield from self._close(call)


def _reading(progress: Any) -> Reading | None:
    """How far llama.cpp is with the prompt: it was asked for `return_progress`.
    https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md"""
    if not isinstance(progress, Mapping) or not count(progress, "total"):
        return None
    return Reading(
        done=count(progress, "processed"),
        total=count(progress, "total"),
        cached=count(progress, "cache"),
        seconds=count(progress, "time_ms") / 1000,
    )
