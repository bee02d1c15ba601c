"""The floor of the transport: a server that does one thing after the other and nothing besides, on
blocking pipes. It knows `magy/echo`, `magy/stream` and answers everything else with null."""

from __future__ import annotations

import os
import sys
from typing import BinaryIO

import orjson

CHUNK = 64 * 1024


def serve(source: BinaryIO, sink: BinaryIO) -> None:
    while line := source.readline():
        length = int(line.split(b":")[1])
        while source.readline() != b"\r\n":
            pass
        message = orjson.loads(source.read(length))
        params = message.get("params")
        if "id" not in message:
            continue
        if message["method"] == "magy/stream":
            for n in range(params["count"]):
                chunk = {"source": "a", "n": n, "text": "x" * params["size"]}
                say(sink, {"jsonrpc": "2.0", "method": "magy/chunk", "params": chunk})
        result = params if message["method"] == "magy/echo" else None
        say(sink, {"jsonrpc": "2.0", "id": message["id"], "result": result})
        sink.flush()


def say(sink: BinaryIO, message: object) -> None:
    body = orjson.dumps(message)
    sink.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))


if __name__ == "__main__":
    with os.fdopen(0, "rb", CHUNK) as incoming, os.fdopen(1, "wb", CHUNK) as outgoing:
        serve(incoming, outgoing)
    sys.exit(0)
