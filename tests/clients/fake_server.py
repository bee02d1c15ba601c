"""A language server that follows a script: what clients are tested against, frame by frame.

    python fake_server.py SCENARIO LOG

SCENARIO is a JSON object: method -> list of turns; the n-th message with that method is answered by
the n-th turn, the last turn serves for all later ones. A turn is a list of steps:

    {"result": ...}                          the response (null is sent when a request has none)
    {"error": {"code": ..., "message": ...}} an error response
    {"notify": METHOD, "params": ...}        a notification; "times": N repeats it
    {"request": METHOD, "params": ...}       a request to the client; its answer goes to LOG
    {"silent": true}                         no response, as of a server that hangs
    {"exit": CODE}                           dies at once

The string "$KEY" stands for that key of the message's params. Every message that comes in is
written to LOG as a line of JSON at once.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any, BinaryIO


def read(stream: BinaryIO) -> dict[str, Any] | None:
    length = None
    while line := stream.readline().strip():
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            length = int(value)
    return None if length is None else json.loads(stream.read(length))


def filled(value: Any, params: dict[str, Any]) -> Any:
    if isinstance(value, str) and value.startswith("$"):
        return params[value[1:]]
    if isinstance(value, dict):
        return {key: filled(item, params) for key, item in value.items()}
    if isinstance(value, list):
        return [filled(item, params) for item in value]
    return value


class FakeServer:
    def __init__(self, scenario: dict[str, list[list[dict[str, Any]]]], log: Path) -> None:
        self._scenario = scenario
        self._log = log
        self._seen: dict[str, int] = {}
        self._asked = 0

    def run(self) -> None:
        while (message := read(sys.stdin.buffer)) is not None:
            with self._log.open("a", encoding="utf-8") as log:
                log.write(json.dumps(message) + "\n")
            method = message.get("method")
            if method == "exit":
                return
            if method is not None:
                self._play(method, message)

    def _play(self, method: str, message: dict[str, Any]) -> None:
        params = message.get("params") or {}
        answered = False
        for step in self._turn(method):
            step = filled(step, params)
            match step:
                case {"result": _} | {"error": _}:
                    answered = True
                    self._send({"id": message["id"], **step})
                case {"notify": name}:
                    body = {"method": name, "params": step.get("params", {})}
                    for _ in range(step.get("times", 1)):
                        self._send(body)
                case {"request": name}:
                    self._asked += 1
                    body = {"id": f"fake-{self._asked}", "method": name}
                    self._send({**body, "params": step.get("params", {})})
                case {"silent": _}:
                    answered = True
                case {"exit": code}:
                    os._exit(code)
                case _:
                    raise SystemExit(f"unknown step: {step}")
        if "id" in message and not answered:
            self._send({"id": message["id"], "result": None})

    def _turn(self, method: str) -> list[dict[str, Any]]:
        turns = self._scenario.get(method, [[]])
        at = self._seen.get(method, 0)
        self._seen[method] = at + 1
        return turns[min(at, len(turns) - 1)]

    def _send(self, message: dict[str, Any]) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}, ensure_ascii=False).encode()
        sys.stdout.buffer.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    FakeServer(json.loads(Path(sys.argv[1]).read_text("utf-8")), Path(sys.argv[2])).run()
