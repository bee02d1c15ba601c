"""The loopback server as a process:

    python -m tests.loopback --wire anthropic --port 0 --script FILE --log FILE

Prints its base URL as the first line. Appends one JSON line for each request to the log, on disk
before the answer begins, so that a test that kills processes can count requests. Ends at SIGTERM.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import sys
import time
from collections.abc import Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import BinaryIO

from .anthropic import AnthropicServer
from .from_script import answers
from .http import Request
from .openai_chat import ChatServer
from .openai_responses import ResponsesServer
from .server import ModelServer

WIRES: Mapping[str, type[ModelServer]] = {
    "anthropic": AnthropicServer,
    "responses": ResponsesServer,
    "chat": ChatServer,
}
_SECRET = ("x-api-key", "authorization")


def _note(request: Request, log: BinaryIO) -> None:
    line = {
        "at": time.time(),
        "method": request.method,
        "path": request.path,
        "headers": {k: v for k, v in request.headers.items() if k not in _SECRET},
        "body": request.body if request.raw else None,
    }
    log.write(json.dumps(line).encode() + b"\n")
    log.flush()
    os.fsync(log.fileno())


async def _run(wire: type[ModelServer], port: int, script: Path, log: BinaryIO | None) -> None:
    server = wire(port, heard=partial(_note, log=log) if log else None)
    server.answer(answers(script, wire))
    ended = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    await server.start()
    print(server.base_url, flush=True)
    await ended.wait()
    await server.stop()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.loopback", description=__doc__)
    parser.add_argument("--wire", choices=WIRES, default="anthropic")
    parser.add_argument("--port", type=int, default=0, help="0: any free one")
    parser.add_argument("--script", type=Path, required=True)
    parser.add_argument("--log", type=Path)
    options = parser.parse_args()
    with ExitStack() as closing:
        log = closing.enter_context(options.log.open("ab")) if options.log else None
        asyncio.run(_run(WIRES[options.wire], options.port, options.script, log))
    return 0


if __name__ == "__main__":
    sys.exit(main())
