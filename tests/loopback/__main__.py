"""The loopback server as a process:

    python -m tests.loopback --port 0 --script FILE --log FILE

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
from pathlib import Path
from typing import BinaryIO

from .anthropic import AnthropicServer
from .from_script import anthropic_answers
from .http import Exchange, Request

_SECRET = ("x-api-key", "authorization")


class _Logged(AnthropicServer):
    def __init__(self, port: int, log: BinaryIO | None) -> None:
        super().__init__(port)
        self._log = log

    async def respond(self, request: Request, exchange: Exchange) -> None:
        if self._log is not None:
            headers = {k: v for k, v in request.headers.items() if k not in _SECRET}
            line = {
                "at": time.time(),
                "method": request.method,
                "path": request.path,
                "headers": headers,
                "body": request.body if request.raw else None,
            }
            self._log.write(json.dumps(line).encode() + b"\n")
            self._log.flush()
            os.fsync(self._log.fileno())
        await super().respond(request, exchange)


async def _run(port: int, script: Path, log: BinaryIO | None) -> None:
    server = _Logged(port, log)
    server.answer(anthropic_answers(script))
    ended = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    await server.start()
    print(server.base_url, flush=True)
    await ended.wait()
    await server.stop()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.loopback", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="0: any free one")
    parser.add_argument("--script", type=Path, required=True)
    parser.add_argument("--log", type=Path)
    options = parser.parse_args()
    if options.log is None:
        asyncio.run(_run(options.port, options.script, None))
        return 0
    with options.log.open("ab") as log:
        asyncio.run(_run(options.port, options.script, log))
    return 0


if __name__ == "__main__":
    sys.exit(main())
