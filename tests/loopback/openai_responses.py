"""An HTTP server on loopback that speaks OpenAI Responses, streaming, faults included. How to use
it: `server.py`. https://developers.openai.com/api/docs/api-reference/responses-streaming

Reasoning is summed up only for requests that ask for it (`reasoning.summary`), and its encrypted
content is there only if `include` names it; `thinking(text, signature)` gives both.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from magy_server.core.errors import ProviderFault
from magy_server.core.ports import Message, ToolOutput
from magy_server.core.values import Text

from .http import Request
from .openai_checks import Memory, error_body, listed, response_problems
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

FAULTS: Mapping[ProviderFault, tuple[str, str]] = {
    "no_key": ("401", "invalid_api_key"),
    "auth": ("401", "invalid_api_key"),
    "not_found": ("404", "model_not_found"),
    "rate_limit": ("429", "rate_limit_exceeded"),
    "overloaded": ("503", "server_is_overloaded"),
    "server": ("500", "server_error"),
    "timeout": ("408", "request_timeout"),
    "connection": ("drop", ""),
    "malformed": ("html", ""),
    "too_long": ("400", "context_length_exceeded"),
    "refused": ("400", "invalid_prompt"),
}
"""`Fault.type` is what these APIs call `error.code`."""


class ResponsesServer(ModelServer):
    prefix = "/v1"
    path = "/responses"
    stops: ClassVar[Mapping[str, str]] = {
        "end_turn": "completed",
        "tool_use": "completed",
        "max_tokens": "max_output_tokens",
        "refusal": "content_filter",
    }
    """`completed`, or why the response is incomplete."""
    faults = FAULTS

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._memory = Memory()

    def problems(self, request: Request) -> list[str]:
        return response_problems(request.body, self._memory)

    def error(self, fault: Fault) -> dict[str, Any]:
        return error_body(fault)

    def listed(self, models: Sequence[str]) -> dict[str, Any]:
        return listed(models)

    @staticmethod
    def conversation(body: Any) -> list[Message]:
        given = body["input"]
        return list(_spoken([{"role": "user", "content": given}] if _is_text(given) else given))

    def events(self, body: Any, parts: Sequence[Part], number: int) -> Iterator[Step]:
        stream = _Stream(body, number)
        yield from stream.begin()
        for part in parts:
            match part:
                case Said() | Redacted() | Called() | Refusal():
                    yield from stream.item(part)
                case Stopped():
                    stream.stop = part.reason or "completed"
                case Ping():
                    yield stream.event("keepalive") + b": a comment\n\n"
                case ErrorEvent():
                    yield stream.event("error", code=part.type, message=part.message, param=None)
                    return
                case Failed():
                    error = {"code": part.code, "message": part.message}
                    failed = stream.response("failed", error=error)
                    yield stream.event("response.failed", response=failed)
                    return
                case Raw():
                    yield part.data
                case Pause() | Hang():
                    yield part
                case Cut():
                    yield part
                    return
        self._memory.made(stream.output, stored=body.get("store", True))
        yield stream.end(counts(parts))


@dataclass
class _Stream:
    """One response while it is made."""

    body: Any
    number: int
    stop: str = "completed"
    output: list[dict[str, Any]] = field(default_factory=list)
    _sequence: Iterator[int] = field(default_factory=itertools.count)

    def event(self, type: str, **fields: Any) -> bytes:
        event = {"type": type, "sequence_number": next(self._sequence), **fields}
        return f"event: {type}\ndata: {json.dumps(event, ensure_ascii=False)}\n\n".encode(
            "utf-8", "backslashreplace"
        )

    def begin(self) -> Iterator[bytes]:
        for name in ("created", "in_progress"):
            yield self.event(f"response.{name}", response=self.response("in_progress"))

    def end(self, tokens: Mapping[str, int]) -> bytes:
        status = "completed" if self.stop == "completed" else "incomplete"
        why = None if status == "completed" else {"reason": self.stop}
        response = self.response(
            status, incomplete_details=why, output=self.output, usage=_usage(tokens)
        )
        return self.event(f"response.{status}", response=response)

    def response(self, status: str, **fields: Any) -> dict[str, Any]:
        body = self.body
        return {
            "id": f"resp_{self.number}",
            "object": "response",
            "created_at": 1767225600,
            "status": status,
            "background": False,
            "error": None,
            "incomplete_details": None,
            "instructions": body.get("instructions"),
            "max_output_tokens": body.get("max_output_tokens"),
            "model": body["model"],
            "output": [],
            "parallel_tool_calls": body.get("parallel_tool_calls", True),
            "previous_response_id": None,
            "prompt_cache_key": body.get("prompt_cache_key"),
            "reasoning": {"effort": None, "summary": None} | (body.get("reasoning") or {}),
            "service_tier": "default",
            "store": body.get("store", True),
            "temperature": body.get("temperature", 1.0),
            "text": {"format": {"type": "text"}},
            "tool_choice": body.get("tool_choice", "auto"),
            "tools": body.get("tools", []),
            "top_p": 1.0,
            "truncation": "disabled",
            "usage": None,
            "user": None,
            "metadata": {},
            **fields,
        }

    def item(self, part: Said | Redacted | Called | Refusal) -> Iterator[Step]:
        match part:
            case Called():
                return self._call(part)
            case Said(kind="thinking") | Redacted():
                return self._reasoning(part)
            case Said():
                content = {"type": "output_text", "annotations": [], "logprobs": [], "text": ""}
                return self._message(part, content, "output_text", "text")
            case Refusal():
                said = Said("text", part.text)
                return self._message(said, {"type": "refusal", "refusal": ""}, "refusal", "refusal")

    def _added(self, kind: str, type: str, **fields: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        """A new output item, and what all its events say of it."""
        index = len(self.output)
        item = {"id": f"{kind}_{self.number}_{index}", "type": type, **fields}
        self.output.append(item)
        return item, {"item_id": item["id"], "output_index": index}

    def _item(self, name: str, item: Mapping[str, Any], **changed: Any) -> bytes:
        index = len(self.output) - 1
        shown = {**item, **changed}
        return self.event(f"response.output_item.{name}", output_index=index, item=shown)

    def _message(self, part: Said, content: dict[str, Any], kind: str, name: str) -> Iterator[Step]:
        item, about = self._added("msg", "message", status="in_progress", content=[],
                                  role="assistant")  # fmt: skip
        about["content_index"] = 0
        extra: dict[str, Any] = {"logprobs": []} if kind == "output_text" else {}
        yield self._item("added", item)
        yield self.event("response.content_part.added", **about, part=content)
        for piece in piece_by_piece(part):
            if isinstance(piece, Pause):
                yield piece
            else:
                hidden = {"obfuscation": "x" * (16 - len(piece) % 16)}
                delta = {**about, "delta": piece, **extra, **hidden}
                yield self.event(f"response.{kind}.delta", **delta)
        whole = content | {name: part.text}
        yield self.event(f"response.{kind}.done", **about, **{name: part.text}, **extra)
        yield self.event("response.content_part.done", **about, part=whole)
        item |= {"status": "completed", "content": [whole]}
        yield self._item("done", item)

    def _reasoning(self, part: Said | Redacted) -> Iterator[Step]:
        """`encrypted_content` is whole only in the last event of the item."""
        wanted = "reasoning.encrypted_content" in self.body.get("include", ())
        proof = part.data if isinstance(part, Redacted) else part.signature
        item, about = self._added("rs", "reasoning", summary=[])
        if wanted:
            item["encrypted_content"] = proof
        early = {"encrypted_content": f"begin-{proof[:4]}"} if wanted else {}
        yield self._item("added", item, **early)
        if isinstance(part, Said) and (self.body.get("reasoning") or {}).get("summary"):
            for index, text in enumerate(part.summaries or (part.text,)):
                said = Said("thinking", text, speed=part.speed, pieces=part.pieces)
                yield from self._summary(said, about | {"summary_index": index})
                item["summary"].append({"type": "summary_text", "text": text})
        yield self._item("done", item)

    def _summary(self, part: Said, about: Mapping[str, Any]) -> Iterator[Step]:
        name, content = "response.reasoning_summary", {"type": "summary_text", "text": ""}
        yield self.event(f"{name}_part.added", **about, part=content)
        for piece in piece_by_piece(part):
            if isinstance(piece, Pause):
                yield piece
            else:
                yield self.event(f"{name}_text.delta", **about, delta=piece)
        yield self.event(f"{name}_text.done", **about, text=part.text)
        yield self.event(f"{name}_part.done", **about, part=content | {"text": part.text})

    def _call(self, part: Called) -> Iterator[Step]:
        id = part.id or f"call_{self.number}_{len(self.output)}"
        item, about = self._added("fc", "function_call", status="in_progress", arguments="",
                                  call_id=id, name=part.name)  # fmt: skip
        name = "response.function_call_arguments"
        yield self._item("added", item)
        for piece in piece_by_piece(part):
            if isinstance(piece, Pause):
                yield piece
            else:
                yield self.event(f"{name}.delta", **about, delta=piece)
        yield self.event(f"{name}.done", **about, arguments=part.json)
        item |= {"status": "completed", "arguments": part.json}
        yield self._item("done", item)


def _usage(tokens: Mapping[str, int]) -> dict[str, Any]:
    """Here `input` includes what was read from the cache and written to it."""
    read = tokens["input"] + tokens["cache_read"] + tokens["cache_write"]
    return {
        "input_tokens": read,
        "input_tokens_details": {
            "cached_tokens": tokens["cache_read"],
            "cache_write_tokens": tokens["cache_write"],
        },
        "output_tokens": tokens["output"],
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": read + tokens["output"],
    }


# --- a request, for scripts ---------------------------------------------------------------------


def _is_text(content: Any) -> bool:
    return isinstance(content, str)


def _spoken(items: Sequence[Any]) -> Iterator[Message]:
    """Items of one side that follow each other are one message."""
    told = [item for item in items if item.get("role") not in ("system", "developer")]
    for of_assistant, group in itertools.groupby(told, _of_assistant):
        parts = tuple(part for item in group for part in _parts(item))
        yield Message("assistant" if of_assistant else "user", parts)


def _of_assistant(item: Mapping[str, Any]) -> bool:
    return item.get("type") in ("reasoning", "function_call") or item.get("role") == "assistant"


def _parts(item: Mapping[str, Any]) -> Iterator[Text | ToolOutput]:
    if item.get("type") == "function_call_output":
        yield ToolOutput("", item["call_id"], "".join(_texts(item["output"])))
    elif "role" in item:
        yield from (Text(text=text) for text in _texts(item["content"]))


def _texts(content: Any) -> Iterator[str]:
    if _is_text(content):
        yield content
    else:
        yield from (part["text"] for part in content if "text" in part)
