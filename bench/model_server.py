"""A model without latency: an HTTP server on loopback that speaks Anthropic Messages and has its
answers ready, so that its own work does not blur what is measured.

    python -m bench.model_server

Prints its base URL. The prompt says what comes: `bench-stream-N` gives N text deltas, each in a TCP
segment of its own, back to back; with `bench-spaced-N` a millisecond apart. `bench-loop-N` gives N
replies with one call of `read_file` each, and then a last word. `bench-tree-N` gives a reply that
spawns four children with `bench-tree-(N-1)`, then one that waits for them, and then a last word;
`bench-tree-0` only that.
"""

from __future__ import annotations

import asyncio
import re
import sys
from functools import cache
from typing import Any, cast

import orjson

WORD = "delta "
CHILDREN = 4
_ORDER = re.compile(rb"bench-(stream|spaced|loop|tree)-(\d+)")
_LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)
_HEAD = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\n"
    b"transfer-encoding: chunked\r\n\r\n"
)
_END = b"0\r\n\r\n"


class Exchange(asyncio.Protocol):
    """One connection; a request at a time."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._received = b""
        self._waiting: list[bytes] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, blank, body = self._received.partition(b"\r\n\r\n")
        length = _LENGTH.search(head)
        if blank and length and len(body) >= int(length[1]):
            self._received = b""
            self._answer(body)

    def _answer(self, body: bytes) -> None:
        orders = _ORDER.findall(body)
        kind, count = orders[-1] if orders else (b"stream", b"1")
        said = body.count(b'"tool_result"')
        if kind == b"tree":
            events = tree(int(orders[0][1]), said)
        elif kind == b"loop":
            events = call(said, self._path) if said < int(count) else text(1)
        else:
            events = text(int(count))
        chunks = [_HEAD, *(b"%x\r\n%b\r\n" % (len(event), event) for event in events), _END]
        if kind == b"spaced":
            self._waiting = chunks[::-1]
            self._next()
        else:
            for chunk in chunks:
                self._transport.write(chunk)

    def _next(self) -> None:
        if self._waiting and not self._transport.is_closing():
            self._transport.write(self._waiting.pop())
            asyncio.get_running_loop().call_later(0.001, self._next)


@cache
def text(count: int) -> tuple[bytes, ...]:
    delta = _event(
        "content_block_delta", index=0, delta={"type": "text_delta", "text": WORD}
    )  # fmt: skip
    return _reply(_block(0, {"type": "text", "text": ""}, [delta] * count), "end_turn")


def call(number: int, path: str, lines: int = 1) -> tuple[bytes, ...]:
    """Reads from another line on each time: the same call again and again would be taken for a
    loop."""
    arguments = {"path": path, "offset": number + 1, "limit": lines}
    return _reply(_called(0, f"toolu_{number}", "read_file", arguments), "tool_use")


@cache
def tree(levels: int, said: int) -> tuple[bytes, ...]:
    """`levels` are below; `said` results of calls have come."""
    if not levels or said > CHILDREN:
        return text(1)
    if said:
        return _reply(_called(0, "toolu_wait", "wait_agent", {}), "tool_use")
    task = {"agent": "worker", "prompt": f"bench-tree-{levels - 1}"}
    calls = [_called(n, f"toolu_{n}", "spawn_agent", task) for n in range(CHILDREN)]
    return _reply([event for called in calls for event in called], "tool_use")


def _called(index: int, id: str, name: str, arguments: dict[str, Any]) -> list[bytes]:
    block = {"type": "tool_use", "id": id, "name": name, "input": {}}
    delta = {"type": "input_json_delta", "partial_json": orjson.dumps(arguments).decode()}
    return _block(index, block, [_event("content_block_delta", index=index, delta=delta)])


def _block(index: int, block: dict[str, Any], deltas: list[bytes]) -> list[bytes]:
    return [
        _event("content_block_start", index=index, content_block=block),
        *deltas,
        _event("content_block_stop", index=index),
    ]


def _reply(blocks: list[bytes], stop: str) -> tuple[bytes, ...]:
    usage = {"input_tokens": 10, "output_tokens": 1}
    message: dict[str, Any] = {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "bench", "content": [],
        "stop_reason": None, "stop_sequence": None, "usage": usage,
    }  # fmt: skip
    return (
        _event("message_start", message=message),
        *blocks,
        _event(
            "message_delta",
            delta={"stop_reason": stop, "stop_sequence": None},
            usage={"output_tokens": 5},
        ),
        _event("message_stop"),
    )


def _event(type: str, **fields: Any) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (type.encode(), orjson.dumps({"type": type, **fields}))


async def main(path: str) -> None:
    """`path`: the file that loops read."""
    server = await asyncio.get_running_loop().create_server(lambda: Exchange(path), "127.0.0.1", 0)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
