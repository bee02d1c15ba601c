"""A ModelRequest becomes an OpenAI Responses body, and the events of a streamed answer become
deltas and one Replied, without I/O. https://developers.openai.com/api/reference/responses

Nothing is kept at the provider (`store` is false): the whole conversation goes with each request,
reasoning included, which comes encrypted and goes back as it came.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from functools import partial
from typing import Any, Literal

from magy_server.core.ports import Delta, Message, ModelRequest, Picture, ToolOutput
from magy_server.core.values import Call, Part, Text, Thinking, Usage
from magy_server.dataclass import dataclass
from magy_server.llm import wire
from magy_server.llm.openai_quirks import Quirks, effort, limit, pruned, reasons
from magy_server.llm.request_cache import written
from magy_server.llm.wire import Stop, StreamError, count

Item = dict[str, Any]

LEAST_LIMIT = 16
"""The API refuses a smaller limit of the reply."""
_ENCRYPTED = "reasoning.encrypted_content"

# --- request ------------------------------------------------------------------------------------


def body(request: ModelRequest, quirks: Quirks) -> dict[str, Any]:
    """The JSON body, `stream` left out. A pure function of its arguments: a longer conversation
    extends the `input` of a shorter one and changes no item of it, so that what the provider has
    cached stays a prefix."""
    result: dict[str, Any] = {"model": request.model, "store": False}
    thinks = reasons(request.model) or request.thinking_tokens > 0
    if thinks:
        result["include"] = [_ENCRYPTED]
    if how_much := effort(request):
        result["reasoning"] = {"effort": how_much, "summary": "auto"}
    if request.temperature is not None and not thinks:
        result["temperature"] = request.temperature
    if most := limit(request):
        result["max_output_tokens"] = max(most, LEAST_LIMIT)
    # Requests of one session find the machine that has its prefix in the cache; 64 characters.
    result["prompt_cache_key"] = request.session[-64:]
    if system := wire.joined(request.system):
        result["instructions"] = system
    if request.tools:
        result["tools"] = [
            {"type": "function", **wire.function(tool), "strict": False} for tool in request.tools
        ]
    begun, items = written(request, "responses", quirks.form(partial(_input, quirks=quirks)))
    result["input"] = [*begun, *items]
    return pruned(result, quirks)


def _input(messages: Sequence[Message], ids: Mapping[str, str], quirks: Quirks) -> list[Item]:
    items: list[Item] = []
    for message in messages:
        if message.role == "assistant":
            items.extend(_spoken(message.parts, ids))
        else:
            items.extend(_told(message.parts, ids, quirks))
    return items


def _spoken(parts: Sequence[Any], ids: Mapping[str, str]) -> Iterator[Item]:
    """Returns the reply as input items. Reasoning goes only before what followed it; the API
    refuses it alone."""
    waiting: list[Item] = []
    for part in parts:
        match part:
            case Thinking():
                if part.data:
                    waiting.append(_reasoning(part))
                continue
            case Text():
                if not part.text.strip():
                    continue
                item: Item = {"type": "message", "role": "assistant", "content": part.text}
            case Call():
                item = {
                    "type": "function_call",
                    "call_id": ids[part.id],
                    "name": wire.wire_name(part.name),
                    "arguments": wire.arguments_text(part),
                }
            case _:
                raise TypeError(f"a reply cannot hold {type(part).__name__}")
        yield from waiting
        waiting.clear()
        yield item


def _reasoning(part: Thinking) -> Item:
    summary = [{"type": "summary_text", "text": part.text}] if part.text else []
    item: Item = {"type": "reasoning", "summary": summary, "encrypted_content": part.data}
    return item | ({"id": part.signature} if part.signature else {})


def _told(parts: Sequence[Any], ids: Mapping[str, str], quirks: Quirks) -> Iterator[Item]:
    """Returns the tool results first, then one message with the rest."""
    said: list[Item] = []
    apart: list[Item] = []
    for part in parts:
        match part:
            case ToolOutput():
                yield _output(part, ids, quirks)
                if quirks.pictures_apart:
                    apart.extend(map(_image, part.pictures))
            case Text():
                if part.text.strip():
                    said.append({"type": "input_text", "text": part.text})
            case Picture():
                said.append(_image(part))
            case _:
                raise TypeError(f"a prompt cannot hold {type(part).__name__}")
    if apart or said:
        yield {"type": "message", "role": "user", "content": [*apart, *said]}


def _output(output: ToolOutput, ids: Mapping[str, str], quirks: Quirks) -> Item:
    item: Item = {
        "type": "function_call_output",
        "call_id": ids.get(output.call) or quirks.make_id(output.call),
    }
    text = wire.output_text(output)
    if output.pictures and not quirks.pictures_apart:
        content = [{"type": "input_text", "text": text}, *map(_image, output.pictures)]
        return item | {"output": content}
    return item | {"output": text}


def _image(picture: Picture) -> Item:
    return {"type": "input_image", "detail": "auto", "image_url": wire.data_url(picture)}


# --- answer -------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Open:
    """An output item while it streams. `call` is the tool call's number in the reply; `texts` is
    what was streamed of each of its parts."""

    item: Item
    call: int = 0
    texts: dict[tuple[str, int], list[str]] = field(default_factory=dict)
    done: bool = False

    def streamed(self, part: tuple[str, int]) -> str:
        return "".join(self.texts.get(part, ()))


class Answer(wire.Answer):
    """See `wire.Answer`."""

    def __init__(self, request: ModelRequest) -> None:
        super().__init__(request)
        self._items: list[_Open] = []
        self._named: dict[Any, _Open] = {}
        self._calls = 0
        self._refused = False
        self._response: Mapping[str, Any] = {}

    def read(self, event: Any) -> Iterator[Delta]:
        if "type" not in event and event.get("error"):
            raise StreamError(event["error"])
        self.started |= event["type"] not in _BEFORE
        match event["type"]:
            case "response.output_item.added":
                yield from self._begin_item(event)
            case "response.output_item.done":
                yield from self._end_item(event)
            case "response.output_text.delta":
                yield from self._more(event, "text", ("text", event.get("content_index", 0)))
            case "response.refusal.delta":
                self._refused = True
                yield from self._more(event, "text", ("text", event.get("content_index", 0)))
            case "response.reasoning_summary_text.delta":
                yield from self._more(event, "thinking", ("summary", event.get("summary_index", 0)))
            case "response.reasoning_text.delta":
                part = ("reasoning", event.get("content_index", 0))
                yield from self._more(event, "thinking", part)
            case "response.function_call_arguments.delta":
                yield from self._more_arguments(self._find(event), event["delta"])
            case "response.function_call_arguments.done":
                yield from self._finish_call(self._find(event), event.get("arguments"))
            case "response.completed" | "response.incomplete":
                yield from self._end(event["response"])
            case "response.failed":
                raise StreamError(event["response"].get("error"))
            case "error":
                raise StreamError(event.get("error") or {**event, "type": None})

    @property
    def closing(self) -> bool:
        return self.complete

    def content(self) -> Sequence[Part]:
        return [part for opened in self._items for part in self._parts(opened)]

    def stop(self) -> Stop:
        reason = (self._response.get("incomplete_details") or {}).get("reason")
        if reason == "content_filter" or self._refused:
            return "refusal"
        if reason == "max_output_tokens":
            return "max_tokens"
        return "tool_use" if self._calls else "end_turn"

    def usage(self) -> Usage:
        usage = self._response.get("usage")
        read = count(usage, "input_tokens_details", "cached_tokens")
        written = count(usage, "input_tokens_details", "cache_write_tokens")
        return Usage(
            input=max(0, count(usage, "input_tokens") - read - written),
            output=count(usage, "output_tokens"),
            cache_read=read,
            cache_write=written,
        )

    def _parts(self, opened: _Open) -> Iterator[Part]:
        """Returns the parts of an item, as the provider finished it, or as far as it had
        streamed."""
        item = opened.item
        match item["type"]:
            case "message":
                text = "".join(opened.streamed(part) for part in sorted(opened.texts))
                if text:
                    yield Text(text=text)
            case "reasoning":
                texts = (opened.streamed(part) for part in sorted(opened.texts))
                text, data = "\n\n".join(texts), item.get("encrypted_content") or ""
                if text or data:
                    yield Thinking(text=text, signature=item.get("id") or "", data=data)
            case "function_call":
                text = opened.streamed(_ARGUMENTS)
                yield self.call(opened.call, item["name"], text, item.get("call_id") or "")

    def _begin_item(self, event: Mapping[str, Any]) -> Iterator[Delta]:
        item = event["item"]
        opened = _Open(item)
        self._items.append(opened)
        self._named |= dict.fromkeys(_names(event), opened)
        if item["type"] == "function_call":
            opened.call = self._calls
            self._calls += 1
            yield Delta("call", "", opened.call, item["name"])

    def _find(self, event: Mapping[str, Any]) -> _Open:
        """Returns the item that an event is about. Raises KeyError."""
        found = (self._named[name] for name in _names(event) if name in self._named)
        opened = next(found, None)
        if opened is None:
            raise KeyError(*_names(event))
        return opened

    def _end_item(self, event: Mapping[str, Any]) -> Iterator[Delta]:
        """Keeps the finished item, and returns what was not streamed of it."""
        item = event["item"]
        if not any(name in self._named for name in _names(event)):
            yield from self._begin_item(event)
        opened = self._find(event)
        opened.item = item
        match item["type"]:
            case "message":
                for index, content in enumerate(item.get("content") or ()):
                    text = content.get("text") or content.get("refusal") or ""
                    self._refused |= content.get("type") == "refusal"
                    yield from self._rest(opened, "text", ("text", index), text)
            case "reasoning":
                for kind, name in (("summary", "summary"), ("reasoning", "content")):
                    for index, content in enumerate(item.get(name) or ()):
                        yield from self._rest(
                            opened, "thinking", (kind, index), content.get("text") or ""
                        )
            case "function_call":
                yield from self._finish_call(opened, item.get("arguments"))

    def _more_arguments(self, opened: _Open, piece: Any) -> Iterator[Delta]:
        if not isinstance(piece, str):
            raise TypeError(f"arguments are {type(piece).__name__}")
        if piece and not opened.done:
            opened.texts.setdefault(_ARGUMENTS, []).append(piece)
            yield Delta("call", piece, opened.call, opened.item["name"])

    def _end(self, response: Mapping[str, Any]) -> Iterator[Delta]:
        self._response = response
        if not self._items:  # a server that sends the items only here
            for index, item in enumerate(response.get("output") or ()):
                yield from self._end_item({"output_index": index, "item": item})
        for opened in self._items:
            if opened.item["type"] == "function_call":
                yield from self._finish_call(opened, None)
        self.complete = True

    def _more(
        self, event: Mapping[str, Any], kind: Literal["text", "thinking"], part: tuple[str, int]
    ) -> Iterator[Delta]:
        opened = self._find(event)
        yield from self._append(opened, kind, part, event["delta"])

    def _append(
        self, opened: _Open, kind: Literal["text", "thinking"], part: tuple[str, int], text: str
    ) -> Iterator[Delta]:
        """Adds text to a part; parts of thinking are paragraphs."""
        if not isinstance(text, str):
            raise TypeError(f"{kind} is {type(text).__name__}")
        if not text:
            return
        begins = part not in opened.texts
        apart = kind == "thinking" and begins and bool(opened.texts)
        opened.texts.setdefault(part, []).append(text)
        yield Delta(kind, "\n\n" + text if apart else text)

    def _rest(
        self, opened: _Open, kind: Literal["text", "thinking"], part: tuple[str, int], whole: str
    ) -> Iterator[Delta]:
        so_far = opened.streamed(part)
        if whole.startswith(so_far):
            yield from self._append(opened, kind, part, whole[len(so_far) :])
        else:
            opened.texts[part] = [whole]

    def _finish_call(self, opened: _Open, whole: str | None) -> Iterator[Delta]:
        """Says once that the arguments are complete, with what was not streamed of them."""
        if opened.done:
            return
        opened.done = True
        so_far = opened.streamed(_ARGUMENTS)
        whole = so_far if whole is None else whole
        opened.texts[_ARGUMENTS] = [whole]
        rest = whole[len(so_far) :] if whole.startswith(so_far) else ""
        yield Delta("call", rest, opened.call, opened.item["name"], done=True)


_ARGUMENTS = ("arguments", 0)
_BEFORE = ("response.created", "response.queued", "response.in_progress")
"""The server sends these at once, before it reads anything."""


def _names(event: Mapping[str, Any]) -> list[Any]:
    """What says which item an event is about: its place, or an id. Some servers leave out the one
    or the other, or both where the item itself has one."""
    item = event.get("item") or {}
    names = (event.get("output_index"), event.get("item_id"), item.get("id"), item.get("call_id"))
    return [name for name in names if name is not None]
