"""A ModelRequest becomes an Anthropic Messages body, and the events of a streamed answer become
deltas and one Replied, without I/O. https://platform.claude.com/docs/en/api/messages"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from itertools import groupby
from typing import Any, Literal

from magy_server.core.ports import Delta, Message, ModelRequest, Picture, ToolOutput
from magy_server.core.values import Call, Part, Text, Thinking, Usage
from magy_server.dataclass import dataclass
from magy_server.llm import pictures, wire
from magy_server.llm.request_cache import Form, written
from magy_server.llm.wire import Stop, StreamError, own_id
from magy_server.regex import regex

Block = dict[str, Any]

LEAST_THINKING = 1024
"""The API refuses a budget for thinking with fewer tokens."""
USUAL_LIMIT = 32_000
"""Tokens of a reply for which nobody set a limit; the API insists on a limit."""
MOST_PICTURES, PICTURES_LEAVE = 20, 10
"""With more pictures in a request the API refuses those over 2,000 pixels, which others of the
session may be. So many older ones at a time are only named."""

_THOUGHTS = ("thinking", "redacted_thinking")
_ID = regex(r"[a-zA-Z0-9_-]{1,64}")
_STOPS: Mapping[str, Stop] = {
    "end_turn": "end_turn",
    "stop_sequence": "end_turn",
    "pause_turn": "end_turn",  # only a server-side tool pauses, and Magy offers none
    "tool_use": "tool_use",
    "max_tokens": "max_tokens",
    "model_context_window_exceeded": "max_tokens",
    "refusal": "refusal",
}

# --- request ------------------------------------------------------------------------------------


def body(request: ModelRequest, *, blind: bool = False) -> dict[str, Any]:
    """The JSON body, `stream` left out. A pure function of its arguments: a longer conversation
    extends the blocks of a shorter one and changes none of them, cache marks aside, so that what
    the provider has cached stays a prefix; only where pictures become too many, some old ones
    leave. `blind`: the model cannot see."""
    system = [_text(text) for text in request.system if text.strip()]
    tools: list[Block] = [
        {"name": t.name, "description": t.description, "input_schema": dict(t.parameters)}
        for t in request.tools
    ]
    if blind:
        form = replace(_FORM, hidden=pictures.ALL, name=pictures.UNSEEN)
    else:
        leaving = pictures.leaving(request, MOST_PICTURES, PICTURES_LEAVE)
        form = replace(_FORM, hidden=leaving, name=pictures.EARLIER)
    begun, messages = written(request, "anthropic", form)
    if not request.single:
        _mark(system, tools, messages)
    limit = request.max_tokens or USUAL_LIMIT
    result: dict[str, Any] = {"model": request.model, "max_tokens": limit}
    if request.thinking_tokens > 0:
        budget = max(LEAST_THINKING, request.thinking_tokens)
        result["thinking"] = {"type": "enabled", "budget_tokens": budget}
        if limit <= budget:  # the budget counts against it
            result["max_tokens"] = budget + limit
    elif request.temperature is not None:  # not allowed together with thinking
        result["temperature"] = request.temperature
    if system:
        result["system"] = system
    if tools:
        result["tools"] = tools
    result["messages"] = [*begun, *messages]
    return result


def _mark(system: list[Block], tools: list[Block], messages: list[Block]) -> None:
    """Sets the cache marks; the API allows four.

    The mark on the last user message writes the cache for the next request; that on the one before
    is where the previous request wrote, so it is found however many blocks came since (the
    provider looks back only 20 blocks from a mark).
    """
    users = [message["content"] for message in messages if message["role"] == "user"]
    for blocks in (system, tools, *users[-2:]):
        if blocks:
            blocks[-1]["cache_control"] = {"type": "ephemeral"}


def _messages(messages: Sequence[Message], ids: Mapping[str, str]) -> list[Block]:
    """Returns one message for each run of messages of one role. Within a user message the tool
    results come first, as the API demands; empty messages are left out."""
    rendered = ((m.role, _whole(_blocks(m.parts, ids))) for m in messages)
    result: list[Block] = []
    for role, group in groupby((r for r in rendered if r[1]), key=lambda r: r[0]):
        blocks = [block for _, blocks in group for block in blocks]
        if role == "user":
            blocks.sort(key=lambda block: block["type"] != "tool_result")
        result.append({"role": role, "content": blocks})
    return result


_FORM = Form(_messages, _ID, own_id)


def _whole(blocks: Iterable[Block]) -> list[Block]:
    """Returns the content without thinking at its end. When a reply was cut short there, the API
    would refuse it in every later request."""
    result = list(blocks)
    while result and result[-1]["type"] in _THOUGHTS:
        result.pop()
    return result


def _blocks(parts: Sequence[Any], ids: Mapping[str, str]) -> Iterator[Block]:
    for part in parts:
        match part:
            case Text():
                if part.text.strip():
                    yield _text(part.text)
            case Thinking():
                yield from _thinking(part)
            case Picture():
                yield _image(part)
            case Call():
                yield {
                    "type": "tool_use",
                    "id": ids[part.id],
                    "name": wire.wire_name(part.name),
                    "input": wire.arguments_of(part),
                }
            case ToolOutput():
                yield _result(part, ids)
            case _:
                raise TypeError(f"a message cannot hold {type(part).__name__}")


def _text(text: str) -> Block:
    return {"type": "text", "text": text}


def _image(picture: Picture) -> Block:
    source = {"type": "base64", "media_type": picture.mime, "data": wire.encoded(picture)}
    return {"type": "image", "source": source}


def _thinking(part: Thinking) -> Iterator[Block]:
    """Returns the thinking as it came, or nothing: the API refuses thinking without the provider's
    proof."""
    if part.data:
        yield {"type": "redacted_thinking", "data": part.data}
    elif part.signature:
        yield {"type": "thinking", "thinking": part.text, "signature": part.signature}


def _result(output: ToolOutput, ids: Mapping[str, str]) -> Block:
    block: Block = {
        "type": "tool_result",
        "tool_use_id": ids.get(output.call) or own_id(output.call),
    }
    # An error must say something.
    text = "(failed without output)" if output.error else ""
    text = output.text if output.text.strip() else text
    if output.pictures and output.error:  # it may hold only text
        block["content"] = f"{text}\n{pictures.BESIDE_ERROR}"
    elif output.pictures:
        said = [_text(text)] if text else []
        block["content"] = [*said, *map(_image, output.pictures)]
    elif text:
        block["content"] = text
    if output.error:
        block["is_error"] = True
    return block


# --- answer -------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Open:
    """A content block while it streams. `call` is the tool call's number in the reply."""

    block: Block
    call: int = 0
    pieces: list[str] = field(default_factory=list)
    signature: list[str] = field(default_factory=list)

    def more(self, kind: Literal["text", "thinking"], text: str | None) -> Iterator[Delta]:
        if text:
            self.pieces.append(text)
            yield Delta(kind, text)


class Answer(wire.Answer):
    """See `wire.Answer`."""

    def __init__(self, request: ModelRequest) -> None:
        super().__init__(request)
        self._blocks: dict[int, _Open] = {}
        self._calls = 0
        self._usage: dict[str, int] = {}
        self._stop: str | None = None

    def read(self, event: Any) -> Iterator[Delta]:
        match event["type"]:
            case "message_start":
                self.started = True
                self._count(event["message"].get("usage"))
            case "content_block_start":
                yield from self._begin(event["index"], event["content_block"])
            case "content_block_delta":
                yield from self._go_on(self._blocks[event["index"]], event["delta"])
            case "content_block_stop":
                opened = self._blocks.get(event["index"])
                if opened and opened.block["type"] == "tool_use":
                    yield Delta("call", "", opened.call, opened.block["name"], done=True)
            case "message_delta":
                self._stop = event["delta"].get("stop_reason") or self._stop
                self._count(event.get("usage"))
            case "message_stop":
                self.complete = True
            case "error":
                raise StreamError(dict(event["error"]))

    @property
    def closing(self) -> bool:
        return self._stop is not None

    def content(self) -> Sequence[Part]:
        parts = (self._part(self._blocks[index]) for index in sorted(self._blocks))
        return [part for part in parts if part is not None]

    def stop(self) -> Stop:
        """Returns why the reply stopped. Some compatible servers say `end_turn` although the reply
        calls tools."""
        stop = _STOPS.get(self._stop or "", "end_turn")
        if stop in ("end_turn", "tool_use"):
            return "tool_use" if self._calls else "end_turn"
        return stop

    def usage(self) -> Usage:
        return Usage(
            input=self._usage.get("input_tokens", 0),
            output=self._usage.get("output_tokens", 0),
            cache_read=self._usage.get("cache_read_input_tokens", 0),
            cache_write=self._usage.get("cache_creation_input_tokens", 0),
        )

    def _part(self, block: _Open) -> Part | None:
        text = "".join(block.pieces)
        match block.block["type"]:
            case "text":
                return Text(text=text) if text else None
            case "thinking":
                return Thinking(text=text, signature="".join(block.signature))
            case "redacted_thinking":
                return Thinking(data=block.block["data"])
            case "tool_use":
                if not text.strip() and block.block.get("input"):
                    text = wire.dumps(block.block["input"])
                return self.call(block.call, block.block["name"], text, block.block["id"])
        return None  # a server-side block; Magy asks for none

    def _begin(self, index: int, block: Block) -> Iterator[Delta]:
        opened = self._blocks[index] = _Open(block)
        match block["type"]:
            case "tool_use":
                opened.call = self._calls
                self._calls += 1
                yield Delta("call", "", opened.call, block["name"])
            case "text":
                yield from opened.more("text", block.get("text"))
            case "thinking":
                if signature := block.get("signature"):
                    opened.signature.append(signature)
                yield from opened.more("thinking", block.get("thinking"))

    def _go_on(self, opened: _Open, delta: Mapping[str, Any]) -> Iterator[Delta]:
        match delta["type"]:
            case "text_delta":
                yield from opened.more("text", delta["text"])
            case "input_json_delta":
                if opened.block["type"] == "tool_use" and (piece := delta["partial_json"]):
                    opened.pieces.append(piece)
                    yield Delta("call", piece, opened.call, opened.block["name"])
            case "thinking_delta":
                yield from opened.more("thinking", delta["thinking"])
            case "signature_delta":
                opened.signature.append(delta["signature"])

    def _count(self, usage: Mapping[str, Any] | None) -> None:
        """Takes over the counts of an event. They are cumulative: a later one replaces an earlier
        one."""
        for name, count in (usage or {}).items():
            if isinstance(count, int):
                self._usage[name] = count
