"""What a provider's prompt cache can find again: whether each request of a tool loop begins with
all of the one before."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from subprocess import PIPE, Popen
from typing import Any

import orjson

from bench.measure import TOP, Failed, Row, Run
from bench.peer import MAGY, Peer, environment

ROUNDS = 10
SETTINGS = """
titles = false
[model]
default = "bench/bench"
thinking_tokens = 2000
[[provider]]
name = "bench"
kind = "{kind}"
base_url = "{url}"
"""
KINDS = {"anthropic": "anthropic", "responses": "openai", "chat": "openai-chat"}
"""The wires of `tests.loopback`, and what Magy's configuration calls them."""


def anthropic_prefix(run: Run) -> Row:
    """Cache marks aside: they are where the cache is read and written, and no part of it."""
    return _extensions(run, "anthropic")


def responses_prefix(run: Run) -> Row:
    return _extensions(run, "responses")


def chat_prefix(run: Run) -> Row:
    return _extensions(run, "chat")


ROWS = (anthropic_prefix, responses_prefix, chat_prefix)


def _extensions(run: Run, wire: str) -> Row:
    """Of the requests after the first, those that are exact extensions of the one before."""
    bodies = _bodies(run, wire)
    if len(bodies) != ROUNDS + 1:
        raise Failed(f"{len(bodies)} requests came instead of {ROUNDS + 1}.")
    requests = [_pieces(body) for body in bodies]
    held = sum(later[: len(before)] == before for before, later in pairwise(requests))
    return Row(f"requests that extend the last one, {wire}", "count", held, ROUNDS, 1)


def _pieces(body: dict[str, Any]) -> list[bytes]:
    """All that stands before the conversation, and its items, as their bytes."""
    name = "input" if "input" in body else "messages"
    conversation = body.pop(name)
    return [orjson.dumps(_unmarked(part)) for part in (body, *conversation)]


def _unmarked(value: Any) -> Any:
    match value:
        case dict():
            return {k: _unmarked(v) for k, v in value.items() if k != "cache_control"}
        case list():
            return [_unmarked(item) for item in value]
    return value


def _bodies(run: Run, wire: str) -> list[dict[str, Any]]:
    """The requests of a turn of the real server that reads a line in each of ROUNDS rounds."""
    root, state = run.fresh("project"), run.fresh("state")
    (root / "notes.txt").write_text("".join(f"line {n}\n" for n in range(1, ROUNDS + 1)))
    with loopback(wire, state, _script()) as url:
        (state / "magy.toml").write_text(SETTINGS.format(kind=KINDS[wire], url=url))
        with Peer(run, *MAGY, state=state) as peer:
            peer.initialize(root)
            turn(peer, root)
    return [orjson.loads(body) for body in requests_of(state)]


def requests_of(state: Path) -> list[bytes]:
    """The bodies of the requests that a `loopback` server got."""
    log = (state / "requests.log").read_bytes()
    requests = [orjson.loads(line) for line in log.splitlines()]
    # Chat Completions has no field for the window of a model: servers are asked in other places.
    return [orjson.dumps(one["body"]) for one in requests if one["method"] == "POST"]


def turn(peer: Peer, root: Path) -> None:
    """A turn of a new session, to its end."""
    peer.request("magy/session/new", sessionId="s1", cwd=str(root))
    peer.request("magy/session/subscribe", sessionId="s1")
    prompt = [{"type": "text", "text": "Read line by line"}]
    peer.request("magy/session/prompt", sessionId="s1", messageId="p1", prompt=prompt)
    idle = peer.wait(
        lambda m: (
            m.get("method") == "magy/session/update"
            and m["params"]["update"].get("state") == "idle"
        )
    )
    if (stop := idle["params"]["update"]["stopReason"]) != "end_turn":
        raise Failed(f"The turn ended with {stop}.")


def _script() -> str:
    rounds = (
        f"think: line {n} next\ntext: Line {n}.\n"
        f'call: read_file {{"path": "notes.txt", "offset": {n}, "limit": 1}}\n'
        for n in range(1, ROUNDS + 1)
    )
    return "---\n".join([*rounds, "text: done\n"])


@contextmanager
def loopback(wire: str, state: Path, script: str) -> Iterator[str]:
    """A model server that plays a script; its base URL. What it was asked is in `requests.log`."""
    file = state / "model.script"
    file.write_text(script)
    command = [sys.executable, "-m", "tests.loopback", "--wire", wire, "--script", str(file),
               "--log", str(state / "requests.log")]  # fmt: skip
    with Popen(command, cwd=TOP, env=environment(state), stdout=PIPE, text=True) as process:
        try:
            assert process.stdout
            yield process.stdout.readline().strip()
        finally:
            process.terminate()
