"""A language client that does as little as possible, so that what is measured is the server."""

from __future__ import annotations

import os
import re
import select
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

import orjson

from bench.measure import TOP, Failed, Run, processor_time
from tests.guard import clean_environment
from tests.lsp.client import CAPABILITIES, uri_of

PATIENCE = 120.0
"""Seconds of silence after which a row is given up."""
_HEADER = re.compile(rb"Content-Length: (\d+)\r\n(?:Content-Type: [^\r\n]*\r\n)?\r\n")

MAGY = ("-m", "magy_server", "lsp")
BARE = ("-m", "tests.lsp.bare_pygls")
TOY = ("-m", "tests.lsp.echo_server")
"""Our transport with a toy behind it."""
SYNCHRONOUS = ("-m", "bench.synchronous")


def environment(state: Path, added: Mapping[str, str] | None = None) -> dict[str, str]:
    """That of this process without keys and settings; compiled modules are kept, as they are for
    anybody who starts Magy a second time."""
    variables = dict(os.environ)
    clean_environment(variables)
    variables.pop("PYTHONDONTWRITEBYTECODE", None)
    places = {"MAGY_STATE_DIR": str(state), "MAGY_CONFIG_DIR": str(state), "HOME": str(state)}
    return {**variables, **places, **(added or {})}


class Peer:
    """A server process. `messages` keeps notifications that came while something else was awaited.
    Use as a context manager; leaving it ends the process."""

    def __init__(
        self,
        run: Run,
        *command: str,
        state: Path | None = None,
        env: Mapping[str, str] | None = None,
    ) -> None:
        self.state = state or run.fresh("state")
        self.messages: list[dict[str, Any]] = []
        self._buffer = bytearray()
        self._log = (self.state / "bench.log").open("w+b")
        self._count = 0
        self.process = subprocess.Popen(
            [sys.executable, *command],
            cwd=TOP,
            env=environment(self.state, env),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            bufsize=0,
        )
        assert self.process.stdin and self.process.stdout
        self._in, self._out = self.process.stdin.fileno(), self.process.stdout.fileno()
        self._readable = select.poll()
        self._readable.register(self._out, select.POLLIN | select.POLLHUP)

    def __enter__(self) -> Peer:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.process.kill()
        self.process.wait()
        for file in (self.process.stdin, self.process.stdout, self._log):
            if file:
                file.close()

    def processor_time(self) -> float:
        return processor_time(self.process.pid)

    # --- messages -------------------------------------------------------------------------------

    def initialize(self, root: Path | None = None) -> None:
        uri = uri_of(root) if root else None
        folders = [{"uri": uri, "name": root.name}] if root else None
        magy = {"client": {"name": "bench"}, "capabilities": {"interactions": True}}
        self.request(
            "initialize",
            processId=os.getpid(),
            capabilities=CAPABILITIES,
            rootUri=uri,
            workspaceFolders=folders,
            initializationOptions={"magy": magy},
        )
        self.notify("initialized")

    def request(self, method: str, **params: Any) -> Any:
        """The result. Raises Failed for an error."""
        self._count += 1
        self.send({"id": self._count, "method": method, "params": params})
        answer = self.wait(lambda m: m.get("id") == self._count and "method" not in m)
        if "error" in answer:
            raise Failed(f"{method}: {answer['error'].get('message')}{self.log()}")
        return answer["result"]

    def notify(self, method: str, **params: Any) -> None:
        self.send({"method": method, "params": params})

    def send(self, message: Mapping[str, Any]) -> None:
        self.write(frame({"jsonrpc": "2.0", **message}))

    def write(self, data: bytes) -> None:
        view = memoryview(data)
        try:
            while view:
                view = view[os.write(self._in, view) :]
        except BrokenPipeError:
            raise Failed(f"The server is gone.{self.log()}") from None

    def wait(self, match: Callable[[dict[str, Any]], Any]) -> dict[str, Any]:
        """The next message that matches. Requests of the server get null for an answer."""
        while True:
            message: dict[str, Any] = orjson.loads(self.read())
            if match(message):
                return message
            if "method" in message and "id" in message:
                self.send({"id": message["id"], "result": None})
            else:
                self.messages.append(message)

    def read(self) -> bytes:
        """The body of the next frame."""
        while True:
            if match := _HEADER.match(self._buffer):
                end = match.end() + int(match[1])
                if len(self._buffer) >= end:
                    body = bytes(memoryview(self._buffer)[match.end() : end])
                    del match, self._buffer[:end]
                    return body
                del match
            self._more()

    def _more(self) -> None:
        if not self._readable.poll(PATIENCE * 1000):
            raise Failed(f"The server said nothing for {PATIENCE:g} seconds.{self.log()}")
        data = os.read(self._out, 1 << 18)
        if not data:
            raise Failed(f"The server is gone.{self.log()}")
        self._buffer += data

    def log(self) -> str:
        self._log.seek(0)
        text = self._log.read().decode(errors="replace").strip()
        return f" Its log ends: {text[-600:]}" if text else ""


def frame(message: Any) -> bytes:
    body = orjson.dumps(message)
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)
