"""This module writes requests on OpenAI's Chat Completions wire, without I/O: a ModelRequest
becomes a request body, for OpenAI and the many servers that speak nearly the same.
https://developers.openai.com/api/reference/chat-completions"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby
from typing import Any

import orjson

from magy_server.core.ports import Message, ModelRequest, Picture, ToolOutput
from magy_server.core.values import Call, Text, Thinking
from magy_server.llm import wire
from magy_server.llm.chat_answer import EXTRA, THINKING
from magy_server.llm.openai_quirks import Quirks, effort, limit, pruned, reasons
from magy_server.llm.request_cache import written

Block = dict[str, Any]

_BRIDGE = {"role": "assistant", "content": "I have the results of the tools."}
_UNSIGNED = {"google": {"thought_signature": "skip_thought_signature_validator"}}
"""For calls that another model made. https://ai.google.dev/gemini-api/docs/thought-signatures"""


def body(request: ModelRequest, quirks: Quirks) -> dict[str, Any]:
    """The JSON body, `stream` left out. A pure function of its arguments: a longer conversation
    extends the messages of a shorter one, so that what the provider has cached stays a prefix."""
    result: dict[str, Any] = {
        "model": request.model,
        "stream_options": {"include_usage": True},
    }
    most, name = limit(request), quirks.limit()
    if most and name:
        result[name] = most
    if how_much := effort(request):
        result["reasoning_effort"] = how_much
    if request.temperature is not None and not (quirks.official and reasons(request.model)):
        result["temperature"] = request.temperature
    if quirks.near:
        result["return_progress"] = True  # llama.cpp says how far it is with the prompt
    if quirks.official:  # others are strict about parameters they do not know
        result["prompt_cache_key"] = request.session[-64:]
    if request.tools:
        result["tools"] = [
            {"type": "function", "function": wire.function(tool)} for tool in request.tools
        ]
    # Some chat templates know only one system message, and only in the first place.
    system = wire.joined(request.system)
    first = [{"role": "system", "content": system}] if system else []
    begun, messages = written(request, "chat", quirks.form(partial(_messages, quirks=quirks)))
    result["messages"] = [*first, *begun, *messages]
    return pruned(result, quirks)


def _messages(
    messages: Sequence[Message], ids: Mapping[str, str], quirks: Quirks
) -> Iterator[Block]:
    """User and assistant in turns, as chat templates insist: neighbours of one role become one
    message, and what would be empty is left out."""
    spoken = (message for message in messages if _says(message))
    for role, group in groupby(spoken, key=lambda message: message.role):
        parts = [part for message in group for part in message.parts]
        if role == "assistant":
            yield _assistant(parts, ids, quirks)
        else:
            yield from _user(parts, ids, quirks)


def _says(message: Message) -> bool:
    return any(
        bool(part.text.strip()) if isinstance(part, Text) else not isinstance(part, Thinking)
        for part in message.parts
    )


def _assistant(parts: Sequence[Any], ids: Mapping[str, str], quirks: Quirks) -> Block:
    calls = list(_calls(parts, ids, quirks))
    text = wire.joined(part.text for part in parts if isinstance(part, Text))
    message: Block = {"role": "assistant", "content": text}
    if calls:
        message["content"] = text or ("" if quirks.mistral else None)
        message["tool_calls"] = calls
        if quirks.wants_thinking:  # also when there was none
            thoughts = [part for part in parts if isinstance(part, Thinking)]
            field = next((t.signature for t in thoughts if t.signature in THINKING), THINKING[0])
            message[field] = wire.joined(thought.text for thought in thoughts)
    return message


def _calls(parts: Sequence[Any], ids: Mapping[str, str], quirks: Quirks) -> Iterator[Block]:
    extra: Any = _UNSIGNED if quirks.gemini else None
    for part in parts:
        match part:
            case Thinking():
                if part.signature == EXTRA:  # it came with the call that stands behind it
                    extra = orjson.loads(part.data)
            case Call():
                function = {
                    "name": wire.wire_name(part.name),
                    "arguments": wire.arguments_text(part),
                }
                call = {"id": ids[part.id], "type": "function", "function": function}
                yield call | ({"extra_content": extra} if extra else {})
                extra = None
            case Text():
                pass
            case _:
                raise TypeError(f"a reply cannot hold {type(part).__name__}")


def _user(parts: Sequence[Any], ids: Mapping[str, str], quirks: Quirks) -> Iterator[Block]:
    """Tool results first, one message each, then one message with the rest. A tool message holds
    only text, so pictures that a tool found stand there too."""
    outputs = [part for part in parts if isinstance(part, ToolOutput)]
    for output in outputs:
        yield {
            "role": "tool",
            "tool_call_id": ids.get(output.call) or quirks.make_id(output.call),
            "content": wire.output_text(output),
        }
    found = [_image(picture) for output in outputs for picture in output.pictures]
    if found:
        found.insert(0, _text("Pictures that the tools returned:"))
    content = [*found, *_said(part for part in parts if not isinstance(part, ToolOutput))]
    if not content:
        return
    if outputs and quirks.mistral:
        yield dict(_BRIDGE)
    if all(block["type"] == "text" for block in content):  # not all servers take a list
        yield {"role": "user", "content": wire.joined(block["text"] for block in content)}
    else:
        yield {"role": "user", "content": content}


def _said(parts: Iterable[Any]) -> Iterator[Block]:
    for part in parts:
        match part:
            case Text():
                if part.text.strip():
                    yield _text(part.text)
            case Picture():
                yield _image(part)
            case _:
                raise TypeError(f"a prompt cannot hold {type(part).__name__}")


def _text(text: str) -> Block:
    return {"type": "text", "text": text}


def _image(picture: Picture) -> Block:
    return {"type": "image_url", "image_url": {"url": wire.data_url(picture)}}
