"""An HTTP server on loopback that speaks Anthropic Messages, streaming, faults included.

    async with AnthropicServer() as server:
        server.reply(thinking("hm"), text("I look."), call("read_file", {"path": "a.py"}))
        server.fault("529", retry_after=0.1)
        server.answer(lambda body: [text(f"{len(body['messages'])} messages")])
        ... client at server.base_url ...
        server.requests[0].body["messages"], .headers["authorization"], .disconnected

Queued replies and faults are used up in order; then `answer` is asked, if given. A request that the
real API would refuse is answered with its 400, unless the server was made with `strict=False`.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from magy_server.llm.scripted import pieces

from .anthropic_checks import problems
from .http import Exchange, HttpServer, Request
from .parts import (
    Called,
    Counted,
    Cut,
    ErrorEvent,
    Fault,
    Hang,
    Part,
    Pause,
    Ping,
    Raw,
    Redacted,
    Said,
    Stopped,
)

Answer = Sequence[Part] | Fault

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

HTML = b"<!DOCTYPE html><html><body><h1>Please log in to the proxy</h1></body></html>"

_USAGE = {
    "input": "input_tokens",
    "output": "output_tokens",
    "cache_read": "cache_read_input_tokens",
    "cache_write": "cache_creation_input_tokens",
}


class AnthropicServer(HttpServer):
    """`batch`: how many events go out in one TCP write."""

    def __init__(self, port: int = 0, *, strict: bool = True, batch: int = 1) -> None:
        super().__init__(port)
        self._strict = strict
        self._batch = batch
        self._queue: deque[Answer] = deque()
        self._function: Callable[[Any], Answer] | None = None
        self._made = 0

    async def __aenter__(self) -> AnthropicServer:
        await self.start()
        return self

    def reply(self, *parts: Part) -> None:
        self._queue.append(parts)

    def fault(
        self,
        name: str,
        *,
        message: str = "",
        type: str = "",
        retry_after: float | str | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        """See `Fault`."""
        given = dict(headers or {})
        if retry_after is not None:
            given["retry-after"] = str(retry_after)
        self._queue.append(Fault(name, message, type, given))

    def answer(self, function: Callable[[Any], Answer]) -> None:
        """`function` is given the request body, once the queue is used up."""
        self._function = function

    async def respond(self, request: Request, exchange: Exchange) -> None:
        answer = self._choose(request)
        if isinstance(answer, Fault):
            await _fail(answer, exchange)
        else:
            await self._stream(request.body, answer, exchange)

    def _choose(self, request: Request) -> Answer:
        if (request.method, request.path) != ("POST", "/v1/messages"):
            return Fault("404", f"{request.method} {request.path}")
        if not {"authorization", "x-api-key"} & set(request.headers):
            return Fault("401", "the API key is missing")
        if self._strict and (wrong := problems(request.body)):
            return Fault("400", "; ".join(wrong))
        if self._queue:
            return self._queue.popleft()
        if self._function is not None:
            return self._function(request.body)
        return Fault("400", "the loopback server has no reply left for this request")

    async def _stream(self, body: Any, parts: Sequence[Part], exchange: Exchange) -> None:
        await exchange.begin()
        self._made += 1
        waiting: list[bytes] = []
        for event in self._events(body, parts, f"msg_{self._made}"):
            if isinstance(event, bytes):
                waiting.append(event)
                if len(waiting) < self._batch:
                    continue
            if waiting:
                await exchange.write(b"".join(waiting))
                waiting.clear()
            match event:
                case Pause():
                    await asyncio.sleep(event.seconds)
                case Hang():
                    await asyncio.Event().wait()
                case Cut():
                    (exchange.reset if event.reset else exchange.cut)()
                    return
        if waiting:
            await exchange.write(b"".join(waiting))
        await exchange.end()

    def _events(
        self, body: Any, parts: Sequence[Part], message: str
    ) -> Iterator[bytes | Pause | Hang | Cut]:
        counts = {"input": 10, "output": 5} | {
            name: count for p in parts if isinstance(p, Counted) for name, count in p.counts.items()
        }
        usage = {_USAGE[name]: count for name, count in counts.items()}
        calls = any(isinstance(p, Called) for p in parts)
        reason: str | None = "tool_use" if calls else "end_turn"
        yield _event("message_start", message=_message(body, message, usage))
        index = 0
        for part in parts:
            match part:
                case Said() | Redacted() | Called():
                    yield from _block(part, index, f"toolu_{message}_{index}")
                    index += 1
                case Stopped():
                    reason = part.reason
                case Ping():
                    yield _event("ping")
                case ErrorEvent():
                    details = {"type": part.type, "message": part.message}
                    yield _event("error", error=details)
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
    return f"event: {type}\ndata: {data}\n\n".encode()


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


def _block(part: Said | Redacted | Called, index: int, id: str) -> Iterator[bytes | Pause]:
    """Start, deltas and stop of one content block, as the API cuts them."""
    block: dict[str, Any]
    deltas: list[dict[str, str]]
    speed = 0.0 if isinstance(part, Redacted) else part.speed
    match part:
        case Said(kind="text"):
            block = {"type": "text", "text": ""}
            cut = part.pieces or tuple(pieces(part.text))
            deltas = [{"type": "text_delta", "text": piece} for piece in cut]
        case Said():
            block = {"type": "thinking", "thinking": "", "signature": ""}
            cut = part.pieces or tuple(pieces(part.text))
            deltas = [{"type": "thinking_delta", "thinking": piece} for piece in cut]
            deltas.append({"type": "signature_delta", "signature": part.signature})
        case Redacted():
            block = {"type": "redacted_thinking", "data": part.data}
            deltas = []
        case Called():
            block = {"type": "tool_use", "id": part.id or id, "name": part.name, "input": {}}
            starts = range(0, len(part.json), part.size)
            cut = ("", *(part.json[start : start + part.size] for start in starts))
            deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in cut]
    yield _event("content_block_start", index=index, content_block=block)
    if index == 0:
        yield _event("ping")
    for delta in deltas:
        if speed:
            yield Pause(max(map(len, delta.values())) / speed)
        yield _event("content_block_delta", index=index, delta=delta)
    yield _event("content_block_stop", index=index)


async def _fail(fault: Fault, exchange: Exchange) -> None:
    match fault.name:
        case "html":
            await exchange.send(200, HTML, "text/html; charset=utf-8")
        case "empty":
            await exchange.begin()
            await exchange.end()
        case "silence":
            await asyncio.Event().wait()
        case "drop":
            exchange.cut()
        case "reset":
            exchange.reset()
        case status if status.isdigit():
            error = {
                "type": fault.type or ERROR_TYPES.get(status, "api_error"),
                "message": fault.message or f"loopback answers {status}",
            }
            body = json.dumps({"type": "error", "error": error}).encode()
            await exchange.send(int(status), body, "application/json", fault.headers)
        case unknown:
            raise ValueError(f"no fault is called {unknown!r}; see tests/loopback/parts.py, Fault")
