"""Starting, and doing nothing."""

from __future__ import annotations

import subprocess
import sys
import time

from bench.measure import Row, Run, in_turn, resident
from bench.peer import BARE, MAGY, Peer

QUIET = 0.5
"""Seconds without work after which a server counts as idle: what it warms up is warm by then."""


def initialize(run: Run) -> Row:
    ours, floor = in_turn(
        run.choose(4, 9),
        lambda: _initialized(run, *MAGY),
        lambda: _initialized(run, *BARE),
    )
    return Row("spawn -> initialize answered", "seconds", ours, floor, 0.25)


def initialize_beside_python(run: Run) -> Row:
    """Beside a program of one import, and 40 ms."""
    ours, bare = in_turn(
        run.choose(4, 9),
        lambda: _initialized(run, *MAGY),
        _imported_json,
    )
    return Row("spawn -> initialize vs Python and 40 ms", "seconds", ours, bare + 0.04 / 1.1, 1.1)


def first_reply(run: Run) -> Row:
    ours, floor = in_turn(
        run.choose(4, 9),
        lambda: _replied(run, "magy/agent/list", *MAGY),
        lambda: _replied(run, "magy/echo", *BARE),
    )
    return Row("spawn -> first magy/* reply", "seconds", ours, floor, 0.6)


def memory(run: Run) -> Row:
    """A model is played by a script: nothing is imported that makes requests."""
    script = run.fresh("script") / "model.script"
    script.write_text("text: Hello\n")
    ours, floor = _memory(run, {"MAGY_SCRIPT": str(script)})
    return Row("idle memory, scripted model", "bytes", ours, floor, 1.2)


def memory_with_provider(run: Run) -> Row:
    """As most people run it: what makes requests was imported in the background after the start."""
    ours, floor = _memory(run, {"ANTHROPIC_API_KEY": "none"})
    return Row("idle memory, provider warmed", "bytes", ours, floor, 1.2)


def memory_with_document(run: Run) -> Row:
    """As most editors have it."""
    script = run.fresh("script") / "model.script"
    script.write_text("text: Hello\n")
    ours, floor = _memory(run, {"MAGY_SCRIPT": str(script)}, document=True)
    return Row("idle memory, a document is open", "bytes", ours, floor, 1.2)


ROWS = (
    initialize, initialize_beside_python, first_reply,
    memory, memory_with_provider, memory_with_document,
)  # fmt: skip


def _initialized(run: Run, *command: str) -> float:
    before = time.perf_counter()
    with Peer(run, *command) as peer:
        peer.initialize()
        return time.perf_counter() - before


def _imported_json() -> float:
    before = time.perf_counter()
    subprocess.run([sys.executable, "-c", "import json"], check=True)
    return time.perf_counter() - before


def _replied(run: Run, method: str, *command: str) -> float:
    before = time.perf_counter()
    with Peer(run, *command) as peer:
        peer.initialize()
        peer.request(method)
        return time.perf_counter() - before


def _memory(run: Run, variables: dict[str, str], *, document: bool = False) -> list[float]:
    return in_turn(
        run.choose(1, 3),
        lambda: _resident(run, "magy/agent/list", variables, *MAGY, document=document),
        lambda: _resident(run, "magy/echo", {}, *BARE, document=document),
        warm=0,
    )


def _resident(
    run: Run, method: str, variables: dict[str, str], *command: str, document: bool
) -> float:
    with Peer(run, *command, env=variables) as peer:
        peer.initialize()
        if document:
            uri = (peer.state / "document.txt").as_uri()
            item = {"uri": uri, "languageId": "plaintext", "version": 1, "text": "text\n"}
            peer.notify("textDocument/didOpen", textDocument=item)
        peer.request(method)
        _come_to_rest(peer)
        return resident(peer.process.pid)


def _come_to_rest(peer: Peer) -> None:
    used = -1.0
    while (now := peer.processor_time()) - used > QUIET / 50:
        used = now
        time.sleep(QUIET)
