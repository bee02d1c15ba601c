"""The door for the Agent Client Protocol, beside that of the language server: the same engine."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import orjson

from bench.measure import Failed, Row, Run, in_turn
from bench.peer import MAGY, Peer
from bench.turns import Magy, stage

ACP = ("-m", "magy_server", "acp")


def initialize(run: Run) -> Row:
    ours, floor = in_turn(
        run.choose(4, 9),
        lambda: _begun(run, lambda: LinePeer(run, *ACP)),
        lambda: _begun(run, lambda: Peer(run, *MAGY)),
    )
    return Row("ACP: spawn -> initialize answered vs LSP", "seconds", ours, floor, 1.3)


def first_session(run: Run) -> Row:
    """Until a session is there."""
    ours, floor = in_turn(
        run.choose(4, 9),
        lambda: _begun(run, lambda: LinePeer(run, *ACP), _new_acp),
        lambda: _begun(run, lambda: Peer(run, *MAGY), _new_lsp),
    )
    return Row("ACP: spawn -> first session vs LSP", "seconds", ours, floor, 1.3)


def echo(run: Run) -> Row:
    """The same small request of ours by both doors, one at a time."""
    count = run.choose(300, 1000)
    with LinePeer(run, *ACP) as one, Peer(run, *MAGY) as other:
        for peer in (one, other):
            peer.initialize(run.directory)
            peer.request("_magy/agent/health" if peer is one else "magy/agent/health")
        ours, floor = in_turn(
            run.choose(5, 9),
            partial(_asked, one, "_magy/agent/health", count),
            partial(_asked, other, "magy/agent/health", count),
        )
    return Row("ACP: small request vs LSP, CPU", "seconds", ours, floor, 1.3)


def delta(run: Run) -> Row:
    count = run.choose(2000, 5000)
    prompt = f"bench-stream-{count}"
    with stage(run) as (magy, _), LinePeer(run, *ACP, state=magy.peer.state, env=KEY) as peer:
        talker = Talker(peer, magy)
        ours, floor = in_turn(
            run.choose(3, 7),
            lambda: talker.turn(prompt) / count,
            lambda: magy.turn(prompt)["cpu"] / count,
        )
    return Row("ACP: model delta to editor, at once, vs LSP, CPU", "seconds", ours, floor, 1.3)


ROWS = (initialize, first_session, echo, delta)
KEY = {"BENCH_API_KEY": "none"}


class LinePeer(Peer):
    """Speaks a message a line."""

    def initialize(self, root: Path | None = None) -> None:
        self.request("initialize", protocolVersion=1, clientCapabilities={})

    def send(self, message: Any) -> None:
        self.write(orjson.dumps({"jsonrpc": "2.0", **message}) + b"\n")

    def read(self) -> bytes:
        while (end := self._buffer.find(b"\n")) < 0:
            self._more()
        line = bytes(memoryview(self._buffer)[:end])
        del self._buffer[: end + 1]
        return line


class Talker:
    """Each turn is in a session of its own."""

    def __init__(self, peer: Peer, magy: Magy) -> None:
        self._peer = peer
        self._root = str(magy.root)
        peer.initialize()

    def turn(self, prompt: str) -> float:
        """Seconds of the server's processor."""
        peer = self._peer
        made = peer.request("session/new", cwd=self._root, mcpServers=[])
        peer.messages.clear()
        used = peer.processor_time()
        content = [{"type": "text", "text": prompt}]
        answer = peer.request("session/prompt", sessionId=made["sessionId"], prompt=content)
        if answer["stopReason"] != "end_turn":
            raise Failed(f"The turn ended with {answer}")
        return peer.processor_time() - used


def _begun(
    run: Run, start: Callable[[], Peer], then: Callable[[Run, Peer], None] = lambda run, peer: None
) -> float:
    before = time.perf_counter()
    with start() as peer:
        peer.initialize(run.directory)
        then(run, peer)
        return time.perf_counter() - before


def _new_acp(run: Run, peer: Peer) -> None:
    peer.request("session/new", cwd=str(run.directory), mcpServers=[])


def _new_lsp(run: Run, peer: Peer) -> None:
    peer.request("magy/session/new", sessionId="s", cwd=str(run.directory))
    peer.request("magy/session/subscribe", sessionId="s")


def _asked(peer: Peer, method: str, count: int) -> float:
    before = peer.processor_time()
    for _ in range(count):
        peer.request(method)
    return (peer.processor_time() - before) / count
