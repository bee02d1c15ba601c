"""Hostile frames for a language server on stdio, from a seed:

    python -m tests.lsp.fuzz --seed 7 --frames 10000 -- magy lsp

The server passes when it still answers a good request after every few hundred frames and at the
end, and then ends in order when its input breaks off in the middle of a frame.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import random
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.lsp.client import Client, RpcError, frame

STANDARD = (
    "initialize", "initialized", "textDocument/didOpen", "textDocument/didChange",
    "textDocument/didClose", "textDocument/didSave", "textDocument/hover",
    "textDocument/codeAction", "codeAction/resolve", "textDocument/codeLens",
    "workspace/executeCommand", "workspace/didChangeWorkspaceFolders",
    "workspace/didChangeConfiguration", "notebookDocument/didOpen", "notebookDocument/didChange",
    "notebookDocument/didClose", "window/workDoneProgress/cancel", "$/setTrace", "$/progress",
    "$/cancelRequest", "$/unknown", "unknown/method", "", "magy/", "magy/no/such/method", "\0",
)  # fmt: skip
"""All but `shutdown` and `exit`, which a server should obey."""

WORDS = (
    "id", "jsonrpc", "method", "params", "result", "error", "uri", "text", "range", "textDocument",
    "version", "contentChanges", "start", "end", "line", "character", "token", "command",
    "arguments", "sessionId", "prompt", "_meta", "class", "FOO-BAR", "type_name", "path", "cursor",
    "limit", "requestKey",
)  # fmt: skip
NUMBERS = (0, -1, 1, 2**31, 2**32, 2**53 + 1, -(2**63), 2**64, 10**30, 0.5, -0.0, 1e308)
STRINGS = (
    "", "x", "2.0", "file:///tmp/a.py", "file://[", "file:///%FF%00", "untitled:1", "../../etc",
    "\u0000", "é😋", "\u2028\x0c", "Content-Length: 5\r\n\r\n{}", "a" * 5000, "magy-1",
)  # fmt: skip
BASE = 10**9
"""Where the ids of good requests begin."""


@dataclass
class Report:
    frames: int
    checks: int
    exit_code: int
    answers: int
    log: str


class Hostile:
    """A source of frames; the same seed gives the same ones."""

    def __init__(self, seed: int, methods: Sequence[str]) -> None:
        self._random = random.Random(seed)
        self._methods = (*methods, *STANDARD)
        self._kinds: Sequence[Callable[[], bytes]] = (
            self.any_value, self.wrong_fields, self.wrong_fields, self.call, self.call, self.call,
            self.call, self.response, self.cancel, self.twice, self.odd_header, self.wrong_length,
            self.garbage, self.flipped, self.not_utf8, self.surrogates, self.deep, self.cut,
            self.document,
        )  # fmt: skip

    def frames(self, count: int) -> Iterator[bytes]:
        for _ in range(count):
            yield self._random.choice(self._kinds)()

    def value(self, depth: int = 3) -> Any:
        pick = self._random.random()
        if depth and pick < 0.25:
            return {self.word(): self.value(depth - 1) for _ in range(self._random.randrange(5))}
        if depth and pick < 0.4:
            return [self.value(depth - 1) for _ in range(self._random.randrange(5))]
        return self._random.choice([None, True, False, self.number(), self.string(), self.string()])

    def word(self) -> str:
        return self._random.choice([*WORDS, self.string()])

    def number(self) -> float:
        return self._random.choice([*NUMBERS, self._random.randrange(1000)])

    def string(self) -> str:
        return self._random.choice([*STRINGS, *WORDS])

    def method(self) -> str:
        return self._random.choice(self._methods)

    def id(self) -> Any:
        return self._random.choice([self._random.randrange(200), "x", "magy-1", "", None, 1.5, []])

    def any_value(self) -> bytes:
        return _framed(self.value())

    def wrong_fields(self) -> bytes:
        fields = {"jsonrpc": "2.0", "id": self.id(), "method": self.method(), "params": {}}
        for _ in range(self._random.randrange(1, 4)):
            fields[self._random.choice(["jsonrpc", "id", "method", "params"])] = self.value(2)
        if self._random.random() < 0.5:
            fields.pop(self._random.choice(list(fields)))
        if fields.get("method") in ("exit", "shutdown"):
            del fields["method"]
        return _framed(fields)

    def call(self) -> bytes:
        params: Any = {self.word(): self.value() for _ in range(self._random.randrange(6))}
        fields = {"jsonrpc": "2.0", "method": self.method(), "params": params}
        if self._random.random() < 0.8:
            fields["id"] = self._random.randrange(10**6)
        return _framed(fields)

    def document(self) -> bytes:
        """Document notifications that are nearly right, so that they get further in."""
        name = {"uri": self.string(), "version": self.number(), "languageId": "x", "text": "a\nb"}
        at = {"line": self.number(), "character": self.number()}
        change = {"range": {"start": at, "end": {"line": 0, "character": 1}}, "text": self.string()}
        fields = {"textDocument": name, "contentChanges": [change, self.value()]}
        kind = self._random.choice(["didOpen", "didChange", "didClose"])
        return _framed({"jsonrpc": "2.0", "method": f"textDocument/{kind}", "params": fields})

    def response(self) -> bytes:
        id = self._random.choice([self.id(), f"magy-{self._random.randrange(20)}"])
        kind = self._random.choice(["result", "error"])
        return _framed({"jsonrpc": "2.0", "id": id, kind: self.value()})

    def cancel(self) -> bytes:
        params = self._random.choice([{"id": self.id()}, self.value()])
        return _framed({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": params})

    def twice(self) -> bytes:
        return self.call() * 2

    def odd_header(self) -> bytes:
        body = self.call().partition(b"\r\n\r\n")[2]
        size = len(body)
        return self._random.choice([
            b"content-length:%d\n\n%b" % (size, body),
            b"Content-Type: text\r\nContent-Length: %d\r\nA: b\r\n\r\n%b" % (size, body),
            b"Content-Length: %d\r\n%b" % (size, body),
            b"Content-Length: \r\n\r\n" + body,
            b"Content-Length %d\r\n\r\n%b" % (size, body),
            b": \r\n: \r\n\r\n" + body,
            b"Content-Length: 0\r\n\r\n",
            b"Content-Length: 0x10\r\n\r\n" + body,
            b"A" * 20_000 + b"\r\n",
        ])  # fmt: skip

    def wrong_length(self) -> bytes:
        body = self.call().partition(b"\r\n\r\n")[2]
        wrong = [0, 1, len(body) - 1, len(body) + 1, len(body) + 50, 2**31, 10**12, 10**40, -1]
        return b"Content-Length: %d\r\n\r\n%b" % (self._random.choice(wrong), body)

    def garbage(self) -> bytes:
        return self._random.randbytes(self._random.randrange(1, 300))

    def flipped(self) -> bytes:
        data = bytearray(self.call())
        for _ in range(self._random.randrange(1, 5)):
            data[self._random.randrange(len(data))] ^= 1 << self._random.randrange(8)
        return bytes(data)

    def not_utf8(self) -> bytes:
        body = bytearray(self.call().partition(b"\r\n\r\n")[2])
        body[self._random.randrange(len(body))] = self._random.choice([0x80, 0xC0, 0xFF, 0xED])
        return frame(bytes(body))

    def surrogates(self) -> bytes:
        text = self._random.choice([r"\ud800", r"\udc00", r"\ude0b\ud83d", r"\uD83D\u0041"])
        body = '{"jsonrpc":"2.0","id":5,"method":"%s","params":{"%s":["%s"]}}'
        return frame((body % (self._random.choice(self._methods[:3]), text, text)).encode())

    def deep(self) -> bytes:
        depth = self._random.choice([100, 1000, 1500, 50_000])
        opening, closing = self._random.choice([("[", "]"), ('{"jsonrpc":', "}")])
        inner = opening * depth + "1" + closing * depth
        return frame(b'{"id":6,"method":"magy/x","params":{"a":%b}}' % inner.encode())

    def cut(self) -> bytes:
        data = self.call()
        return data[: self._random.randrange(len(data))]


async def fuzz(
    command: Sequence[str],
    *,
    seed: int,
    frames: int,
    methods: Sequence[str] = (),
    good: tuple[str, Any] = ("workspace/executeCommand", {"command": "no such command"}),
    every: int = 500,
    **spawn: Any,
) -> Report:
    """Raises AssertionError when the server dies or does not answer the `good` request, be it with
    an error. `methods` are further methods to call; `spawn` is for `Client.spawn`."""
    async with Client.spawn(command, **spawn) as client:
        client._ids = itertools.count(BASE)
        await client.initialize()
        checks = 0
        for n, data in enumerate(Hostile(seed, methods).frames(frames)):
            client.send_raw(data)
            assert client.process.stdin is not None
            await client.process.stdin.drain()
            if n % every == every - 1 or n == frames - 1:
                await _check(client, good, f"frame {n} of seed {seed}")
                checks += 1
        client.send_raw(b'Content-Length: 100\r\n\r\n{"jsonrpc":')
        client.close_input()
        code = await client.exit_code()
        return Report(frames, checks, code, len(client.received), client.log)


async def _check(client: Client, good: tuple[str, Any], where: str) -> None:
    try:
        await client.request(*good)
    except RpcError:
        return
    except (TimeoutError, ConnectionError) as error:
        raise AssertionError(f"No answer after {where}: {error!r}. Log: {client.log}") from None


def _framed(message: Any) -> bytes:
    return frame(json.dumps(message, ensure_ascii=False).encode("utf-8", "replace"))


def main(arguments: Sequence[str], environment: Mapping[str, str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    parser.add_argument("--frames", type=int, default=10_000)
    parser.add_argument("--method", action="append", default=[], help="also call this method")
    parser.add_argument("command", nargs="+", help="the server, after --")
    options = parser.parse_args(arguments)
    report = asyncio.run(
        fuzz(
            options.command,
            seed=options.seed,
            frames=options.frames,
            methods=options.method,
            env=environment,
        )
    )
    print(f"seed {options.seed}: {report.frames} frames, {report.answers} answers, all well")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
