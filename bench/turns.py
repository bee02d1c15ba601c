"""Whole turns against a model without latency: streaming, the first word, the tool loop."""

from __future__ import annotations

import itertools
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import orjson

from bench.measure import TOP, Failed, Row, Run, in_turn
from bench.peer import MAGY, Peer, environment

SETTINGS = """
titles = false
[model]
default = "bench/bench"
[[provider]]
name = "bench"
kind = "anthropic"
base_url = "{url}"
api_key_env = "BENCH_API_KEY"
[limits]
requests = 0
repeats = 0
"""


def delta_spaced(run: Run) -> Row:
    """A millisecond apart, as fast as a model may be: every delta is read alone."""
    count = run.choose(500, 1500)
    return _deltas(run, "model delta to editor, 1 ms apart, CPU", "bench-spaced", count)


def delta_burst(run: Run) -> Row:
    """Back to back: both sides may take several at once."""
    count = run.choose(2000, 5000)
    return _deltas(run, "model delta to editor, at once, CPU", "bench-stream", count)


def first_delta(run: Run) -> Row:
    """On a warm connection, seen from the client."""
    with stage(run) as (magy, bare):
        ours, floor = in_turn(
            run.choose(20, 60),
            lambda: magy.turn("bench-stream-1")["first"],
            lambda: bare.turn("bench-stream-1")["first"],
            warm=3,
        )
    return Row("prompt -> first delta at the client", "seconds", ours, floor, 1.15)


def tool_loop(run: Run) -> Row:
    rounds = run.choose(50, 100)
    with stage(run) as (magy, bare):
        ours, floor = in_turn(
            run.choose(3, 5),
            lambda: _looped(magy, rounds),
            lambda: bare.turn(f"bench-loop-{rounds}")["wall"] / rounds,
        )
    return Row(f"tool loop of {rounds} rounds, per round", "seconds", ours, floor, 3)


def reviewed(run: Run) -> Row:
    """A turn that changes nothing, while so many files wait for the person's decision."""
    count = run.choose(100, 500)
    with stage(run) as (busy, _), stage(run) as (free, _):
        busy.edit(count)
        ours, floor = in_turn(
            run.choose(5, 15),
            lambda: busy.turn("bench-stream-1")["cpu"],
            lambda: free.turn("bench-stream-1")["cpu"],
            warm=3,
        )
    return Row(f"turn with {count} files under review, CPU", "seconds", ours, floor, 1.5)


ROWS = (delta_spaced, delta_burst, first_delta, tool_loop, reviewed)


def _deltas(run: Run, name: str, order: str, count: int) -> Row:
    prompt = f"{order}-{count}"
    with stage(run) as (magy, bare):
        ours, floor = in_turn(
            run.choose(3, 7),
            lambda: magy.turn(prompt)["cpu"] / count,
            lambda: bare.turn(prompt)["cpu"] / count,
        )
    return Row(name, "seconds", ours, floor, 1.2)


def _looped(magy: Magy, rounds: int) -> float:
    told = magy.turn(f"bench-loop-{rounds}")
    if told["calls"] != rounds:
        raise Failed(f"{told['calls']:g} of {rounds} calls were completed.")
    return told["wall"] / rounds


KEY = {"BENCH_API_KEY": "none"}
FILES = 100
"""In one edit."""


class Magy:
    """The real server; each turn is in a session of its own."""

    def __init__(self, peer: Peer, root: Path) -> None:
        self.peer = peer
        self.root = root
        self._numbers = itertools.count(1)
        peer.initialize(root)
        peer.request("magy/agent/list")

    def session(self, agent: str | None = None) -> str:
        """A new one, subscribed to."""
        session = f"s{self.peer.process.pid}-{next(self._numbers)}"
        self.peer.request("magy/session/new", sessionId=session, cwd=str(self.root), agent=agent)
        self.peer.request("magy/session/subscribe", sessionId=session)
        return session

    def edit(self, count: int) -> None:
        """Makes so many files, which are under review then."""
        for first in range(0, count, FILES):
            numbers = range(first, min(first + FILES, count))
            parts = [f"*** Add File: d{n // 20}/f{n}.txt\n+line {n}\n+and more\n" for n in numbers]
            text = "".join(["*** Begin Patch\n", *parts, "*** End Patch\n"])
            made = self.peer.request(
                "magy/edit/apply", cwd=str(self.root), text=text, requestKey=f"files-{first}"
            )
            if not made["applied"]:
                raise Failed(f"The files were not made: {made}")
        listed = self.peer.request("magy/review/list", cwd=str(self.root), limit=count)
        if len(listed["files"]) != count:
            raise Failed(f"{len(listed['files'])} of {count} files are under review.")
        time.sleep(3)  # what was changed a moment ago is looked at again

    def turn(self, prompt: str, agent: str | None = None) -> dict[str, float]:
        """Seconds: `first` and `wall` from the prompt on, and `cpu` of the server. `calls` is how
        many tool calls were completed."""
        peer, session = self.peer, self.session(agent)
        peer.messages.clear()
        used, began = peer.processor_time(), time.perf_counter()
        peer.send({
            "id": session, "method": "magy/session/prompt",
            "params": {"sessionId": session, "messageId": "p1",
                       "prompt": [{"type": "text", "text": prompt}]},
        })  # fmt: skip
        first, calls = 0.0, 0
        while True:
            update = _update(peer.wait(lambda m: m.get("method") == "magy/session/update"))
            kind = update.get("sessionUpdate")
            if kind == "agent_message_chunk" and not first:
                first = time.perf_counter() - began
            elif kind == "tool_call_update" and update.get("status") == "completed":
                calls += 1
            elif kind == "state_update" and update["state"] == "idle":
                break
        wall, cpu = time.perf_counter() - began, peer.processor_time() - used
        if update.get("stopReason") != "end_turn":
            raise Failed(f"The turn ended with {update}")
        return {"first": first, "wall": wall, "cpu": cpu, "calls": calls}


class Bare:
    """`bench.bare_sdk` in a process of its own."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process

    def turn(self, prompt: str) -> dict[str, float]:
        assert self._process.stdin and self._process.stdout
        self._process.stdin.write(prompt.encode() + b"\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise Failed("The bare SDK's process is gone; its error is above.")
        told: dict[str, float] = orjson.loads(line)
        return told


@contextmanager
def stage(run: Run, agents: Mapping[str, str] | None = None) -> Iterator[tuple[Magy, Bare]]:
    """Both sides, warm, with the same model server behind them. `agents`: files of the user's."""
    root, state = run.fresh("project"), run.fresh("state")
    notes = root / "notes.txt"
    notes.write_text("".join(f"line {n} of some notes\n" for n in range(1, 10_001)))
    start = partial(_process, env=environment(state))
    with start("-m", "bench.model_server", str(notes)) as model:
        assert model.stdout
        url = model.stdout.readline().decode().strip()
        (state / "magy.toml").write_text(SETTINGS.format(url=url))
        (state / "agent").mkdir()
        for name, text in (agents or {}).items():
            (state / "agent" / f"{name}.md").write_text(text)
        with (
            start("-m", "bench.bare_sdk", url, str(state / "bare.db")) as bare,
            Peer(run, *MAGY, state=state, env=KEY) as peer,
        ):
            yield Magy(peer, root), Bare(bare)


@contextmanager
def _process(*command: str, env: dict[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(
        [sys.executable, *command], cwd=TOP, env=env,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    ) as process:  # fmt: skip
        try:
            yield process
        finally:
            process.kill()


def _update(message: dict[str, Any]) -> dict[str, Any]:
    update: dict[str, Any] = message["params"]["update"]
    return update
