"""A model without latency that speaks three wires and remembers when each request came and how
large it was: an HTTP server on loopback, for agents of any make.

It answers `ROUNDS` requests with one call of the tool that reads, each time `LINES` lines from
another one on, and the next request with `DELTAS` deltas, each in a write of its own.
"""

from __future__ import annotations

import asyncio
import re
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, cast

import orjson

from bench import model_server

ROUNDS, LINES, DELTAS = 20, 50, 200
READERS = ("read_file", "read", "exec_command", "shell_command")
"""The tools that read, as agents call them; the last two run a command."""
_HEAD = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\n"
    b"transfer-encoding: chunked\r\n\r\n"
)
_NONE = b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n"
_LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)
Events = Sequence[bytes]


@dataclass(slots=True)
class Requests:
    """Those that came since this was cleared: when (`time.perf_counter`), and the body's bytes."""

    path: str
    """The file that calls read."""
    rounds: int
    url: str = ""
    times: list[float] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)

    def clear(self) -> None:
        self.times.clear()
        self.sizes.clear()

    def answer(self, path: str, body: bytes) -> Events:
        self.times.append(time.perf_counter())
        self.sizes.append(len(body))
        number, request = len(self.times), orjson.loads(body)
        if path.endswith("/messages"):
            done = number > self.rounds
            read = model_server.call(number, self.path, LINES)
            return model_server.text(DELTAS) if done else read
        name = _reader(request)
        given = orjson.dumps(self._arguments(name, number)).decode()
        called = (name, given) if number <= self.rounds else None
        return _chat(number, called) if path.endswith("/completions") else _told(number, called)

    def _arguments(self, name: str, line: int) -> dict[str, Any]:
        command = f"sed -n {line},{line + LINES - 1}p {self.path}"
        if name == "exec_command":
            return {"cmd": command}
        if name == "shell_command":
            return {"command": command}
        return {"path": self.path, "offset": line, "limit": LINES}


def _reader(request: Mapping[str, Any]) -> str:
    """Returns the tool that reads, as both wires of OpenAI's name it."""
    tools = request.get("tools", [])
    names = {tool.get("name") or tool.get("function", {}).get("name") for tool in tools}
    return next((name for name in READERS if name in names), READERS[0])


def _chat(number: int, called: tuple[str, str] | None) -> Events:
    head = {"id": f"c{number}", "object": "chat.completion.chunk", "created": 1, "model": "bench"}

    def chunk(delta: Mapping[str, Any], finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return b"data: %b\n\n" % orjson.dumps({**head, "choices": [choice]})

    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    end = [b"data: %b\n\n" % orjson.dumps({**head, "choices": [], "usage": usage})]
    end.append(b"data: [DONE]\n\n")
    if called is None:
        deltas = [chunk({"content": model_server.WORD})] * DELTAS
        return [chunk({"role": "assistant", "content": ""}), *deltas, chunk({}, "stop"), *end]
    function = {"name": called[0], "arguments": called[1]}
    call = {"index": 0, "id": f"call_{number}", "type": "function", "function": function}
    return [chunk({"role": "assistant", "tool_calls": [call]}), chunk({}, "tool_calls"), *end]


def _told(number: int, called: tuple[str, str] | None) -> Events:
    """In the events of the Responses API."""

    def event(type: str, **fields: Any) -> bytes:
        return b"event: %b\ndata: %b\n\n" % (type.encode(), orjson.dumps({"type": type, **fields}))

    item: dict[str, Any]
    deltas: list[bytes] = []
    if called is None:
        item = {"type": "message", "id": "m1", "role": "assistant", "status": "completed"}
        part = {"type": "output_text", "text": model_server.WORD * DELTAS, "annotations": []}
        delta = event("response.output_text.delta", item_id="m1", output_index=0,
                      content_index=0, delta=model_server.WORD)  # fmt: skip
        begun, item, deltas = {**item, "content": []}, {**item, "content": [part]}, [delta] * DELTAS
    else:
        item = {"type": "function_call", "id": f"f{number}", "call_id": f"call_{number}",
                "name": called[0], "arguments": called[1], "status": "completed"}  # fmt: skip
        begun = {**item, "arguments": ""}
    usage = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15,
             "input_tokens_details": {"cached_tokens": 0},
             "output_tokens_details": {"reasoning_tokens": 0}}  # fmt: skip
    response = {"id": f"r{number}", "object": "response", "created_at": 1, "model": "bench"}
    done = {**response, "status": "completed", "output": [item], "usage": usage}
    return [
        event("response.created", response={**response, "status": "in_progress", "output": []}),
        event("response.output_item.added", output_index=0, item=begun),
        *deltas,
        event("response.output_item.done", output_index=0, item=item),
        event("response.completed", response=done),
    ]


class _Exchange(asyncio.Protocol):
    """One connection; a request at a time."""

    def __init__(self, requests: Requests) -> None:
        self._requests = requests
        self._received = bytearray()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, blank, body = bytes(self._received).partition(b"\r\n\r\n")
        length = _LENGTH.search(head)
        if not blank or len(body) < (int(length[1]) if length else 0):
            return
        self._received.clear()
        verb, path = head.split(b" ", 2)[:2]
        if verb != b"POST":
            self._transport.write(_NONE)
            return
        events = self._requests.answer(path.decode().partition("?")[0], body)
        self._transport.write(_HEAD)
        for event in events:
            self._transport.write(b"%x\r\n%b\r\n" % (len(event), event))
        self._transport.write(b"0\r\n\r\n")


@contextmanager
def serving(path: str, rounds: int = ROUNDS) -> Iterator[Requests]:
    """Runs the server in a thread. `path`: the file that calls read."""
    requests, ready = Requests(path, rounds), threading.Event()
    loop = asyncio.new_event_loop()

    over = asyncio.Event()

    async def serve() -> None:
        server = await loop.create_server(lambda: _Exchange(requests), "127.0.0.1", 0)
        requests.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        ready.set()
        await over.wait()
        server.close()
        await asyncio.sleep(0)  # for the socket to be closed

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()), daemon=True)
    thread.start()
    ready.wait()
    try:
        yield requests
    finally:
        loop.call_soon_threadsafe(over.set)
        thread.join()
        loop.close()
