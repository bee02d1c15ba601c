"""An HTTP server on loopback that speaks Anthropic Messages, streaming, faults included. How to use
it: `server.py`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from magy_server.core.errors import ProviderFault
from magy_server.core.ports import Message, ToolOutput
from magy_server.core.values import Text

from .anthropic_checks import problems
from .http import Request
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

ERROR_TYPES = {
    "400": "invalid_request_error",
    "401": "authentication_error",
    "403": "permission_error",
    "404": "not_found_error",
    "408": "timeout_error",
    "413": "request_too_large",
    "429": "rate_limit_error",
    "504": "timeout_error",
    "529": "overloaded_error",
}
"""By HTTP status; every other one is an `api_error`."""

_USAGE = {
    "input": "input_tokens",
    "output": "output_tokens",
    "cache_read": "cache_read_input_tokens",
    "cache_write": "cache_creation_input_tokens",
}


class AnthropicServer(ModelServer):
    path = "/v1/messages"
    models_path = "/v1/models"
    stops: ClassVar[Mapping[str, str]] = {
        name: name for name in ("end_turn", "tool_use", "max_tokens", "refusal")
    }
    faults: ClassVar[Mapping[ProviderFault, tuple[str, str]]] = {
        "no_key": ("401", "authentication_error"),
        "auth": ("401", "authentication_error"),
        "not_found": ("404", "not_found_error"),
        "rate_limit": ("429", "rate_limit_error"),
        "overloaded": ("529", "overloaded_error"),
        "server": ("500", "api_error"),
        "timeout": ("408", "timeout_error"),
        "connection": ("drop", ""),
        "malformed": ("html", ""),
        "too_long": ("413", "request_too_large"),
        "refused": ("400", "invalid_request_error"),
    }

    def problems(self, request: Request) -> list[str]:
        return problems(request.body)

    def error(self, fault: Fault) -> dict[str, Any]:
        error = {
            "type": fault.type or ERROR_TYPES.get(fault.name, "api_error"),
            "message": fault.message or f"loopback answers {fault.name}",
        }
        return {"type": "error", "error": error}

    def listed(self, models: Sequence[str]) -> dict[str, Any]:
        data = [
            {"type": "model", "id": m, "display_name": m, "created_at": "2026-01-01T00:00:00Z"}
            for m in models
        ]
        ends = {"first_id": models[0], "last_id": models[-1]} if models else {}
        return {"data": data, "has_more": False, "first_id": None, "last_id": None, **ends}

    @staticmethod
    def conversation(body: Any) -> list[Message]:
        return [Message(m["role"], tuple(_spoken(m["content"]))) for m in body["messages"]]

    def events(self, body: Any, parts: Sequence[Part], number: int) -> Iterator[Step]:
        usage = {_USAGE[name]: count for name, count in counts(parts).items()}
        calls = any(isinstance(p, Called) for p in parts)
        reason: str | None = "tool_use" if calls else "end_turn"
        yield _event("message_start", message=_message(body, f"msg_{number}", usage))
        index = 0
        for part in parts:
            match part:
                case Said() | Redacted() | Called():
                    yield from _block(part, index, f"toolu_msg_{number}_{index}")
                    index += 1
                case Refusal():
                    yield from _block(Said("text", part.text), index, "")
                    index, reason = index + 1, "refusal"
                case Stopped():
                    reason = part.reason
                case Ping():
                    yield _event("ping")
                case ErrorEvent(type=type, message=message) | Failed(code=type, message=message):
                    yield _event("error", error={"type": type, "message": message})
                    return
                case Raw():
                    yield part.data
                case Pause() | Hang():
                    yield part
                case Cut():
                    yield part
                    return
        delta = {"stop_reason": reason, "stop_sequence": None}
        yield _event("message_delta", delta=delta, usage={"output_tokens": usage["output_tokens"]})
        yield _event("message_stop")


def _event(type: str, **fields: Any) -> bytes:
    data = json.dumps({"type": type, **fields}, ensure_ascii=False)
    return f"event: {type}\ndata: {data}\n\n".encode("utf-8", "backslashreplace")


def _message(body: Any, id: str, usage: dict[str, int]) -> dict[str, Any]:
    return {
        "id": id,
        "type": "message",
        "role": "assistant",
        "model": body["model"],
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": usage | {"output_tokens": 1},
    }


def _block(part: Said | Redacted | Called, index: int, id: str) -> Iterator[Step]:
    """Start, deltas and stop of one content block, as the API cuts them."""
    block: dict[str, Any]
    match part:
        case Said(kind="text"):
            block, delta = {"type": "text", "text": ""}, ("text_delta", "text")
        case Said():
            block = {"type": "thinking", "thinking": "", "signature": ""}
            delta = ("thinking_delta", "thinking")
        case Redacted():
            block, delta = {"type": "redacted_thinking", "data": part.data}, ("", "")
        case Called():
            block = {"type": "tool_use", "id": part.id or id, "name": part.name, "input": {}}
            delta = ("input_json_delta", "partial_json")
    yield _event("content_block_start", index=index, content_block=block)
    if index == 0:
        yield _event("ping")

    def more(kind: str, field: str, piece: str) -> bytes:
        return _event("content_block_delta", index=index, delta={"type": kind, field: piece})

    if isinstance(part, Called):
        yield more(*delta, "")
    for piece in () if isinstance(part, Redacted) else piece_by_piece(part):
        yield piece if isinstance(piece, Pause) else more(*delta, piece)
    if isinstance(part, Said) and part.kind == "thinking":
        yield more("signature_delta", "signature", part.signature)
    yield _event("content_block_stop", index=index)


def _spoken(content: Any) -> Iterator[Text | ToolOutput]:
    if isinstance(content, str):
        yield Text(text=content)
        return
    for block in content:
        if block["type"] == "text":
            yield Text(text=block["text"])
        elif block["type"] == "tool_result":
            output = block.get("content", "")
            text = output if isinstance(output, str) else "".join(_texts(output))
            yield ToolOutput("", block["tool_use_id"], text)


def _texts(blocks: Any) -> Iterator[str]:
    yield from (block["text"] for block in blocks if block["type"] == "text")
