"""`magy mcp serve` with clients that send what is too large or no message, and that do not read."""

from __future__ import annotations

import json
import os
import select
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from magy_server.mcp_server.client_pipes import LARGEST
from tests.cli.harness import Magy
from tests.patience import PATIENCE

MB = 1024 * 1024
HELLO = {
    "jsonrpc": "2.0", "id": 0, "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18", "capabilities": {},
        "clientInfo": {"name": "rude", "version": "1"},
    },
}  # fmt: skip


@pytest.fixture
def magy(tmp_path: Path) -> Magy:
    (tmp_path / "project" / ".git").mkdir(parents=True)
    return Magy((tmp_path / "project").resolve(), tmp_path / "state")


class Client:
    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        assert process.stdin and process.stdout
        self.stdin, self.stdout = process.stdin, process.stdout

    def write(self, text: str) -> None:
        self.stdin.write(text)
        self.stdin.flush()

    def say(self, **message: Any) -> None:
        self.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")

    def read(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.stdout.readline())
        return found


@contextmanager
def client(magy: Magy) -> Iterator[Client]:
    process = magy.start("mcp", "serve", "--root", str(magy.root), stdin=subprocess.PIPE)
    try:
        one = Client(process)
        one.say(**HELLO)
        assert one.read()["result"]["serverInfo"]["name"] == "magy"
        one.say(method="notifications/initialized")
        yield one
    finally:
        process.kill()
        with process:
            process.wait(PATIENCE)


def test_a_line_without_end_costs_little_and_is_refused(magy: Magy) -> None:
    with client(magy) as one:
        memory = psutil.Process(one.process.pid).memory_info
        before = memory().rss
        for _ in range(3 * LARGEST // MB):
            one.write("x" * MB)
        assert memory().rss - before < 2 * LARGEST
        one.write("\n")
        assert "too large" in one.read()["error"]["message"]
        one.say(id=1, method="ping")
        assert one.read()["id"] == 1


def test_what_is_no_message_is_answered_and_the_next_one_served(magy: Magy) -> None:
    with client(magy) as one:
        for nonsense, id in (("{", None), ("[]", None), ('{"id": 7, "method": 5}', 7)):
            one.write(nonsense + "\n")
            said = one.read()
            assert said["error"]["code"] in (-32700, -32600) and said["id"] == id
        one.say(id=1, method="tools/list")
        assert len(one.read()["result"]["tools"]) > 10


def test_it_ends_with_its_client_who_never_read(magy: Magy) -> None:
    with client(magy) as one:
        for id in range(1, 201):  # several times what a pipe holds
            one.say(id=id, method="tools/list")
        one.stdin.close()
        assert one.process.wait(PATIENCE) == 0


def test_who_asks_on_and_does_not_read_is_not_heard_any_more(magy: Magy) -> None:
    with client(magy) as one:
        # what is refused is answered with the name that is not known
        params = {"name": "y" * MB, "arguments": {}}
        asked = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
        rest, sent, pipe = b"", 0, one.stdin.fileno()
        os.set_blocking(pipe, False)
        while sent < 12 * LARGEST and select.select([], [pipe], [], 3)[1]:
            rest = rest or asked.encode() + b"\n"
            taken = os.write(pipe, rest)
            rest, sent = rest[taken:], sent + taken
        assert sent < 12 * LARGEST
