"""Child agents: a tree of them, a message there and its answer back, a wait that ends, and what one
costs that only waits to be spoken to."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Mapping
from functools import partial
from statistics import median
from typing import Any

import orjson

from bench.measure import TOP, Failed, Row, Run, in_turn, stopwatch
from bench.peer import environment
from bench.turns import Magy, stage

_AGENT = """\
---
description: Works and has others work
mode: all
permissions: {agent: allow, read: allow}
---
You work.
"""
AGENTS = {"worker": _AGENT}
AT_ONCE = 4
WORD = [{"type": "text", "text": "bench-stream-1"}]


def fan_out(run: Run) -> Row:
    """A root with four children that have four each; every parent waits for its own."""
    with stage(run, AGENTS) as (magy, bare):
        ours, floor = in_turn(
            run.choose(3, 9),
            lambda: magy.turn("bench-tree-2", "worker")["wall"],
            lambda: bare.turn("bench-tree-2")["wall"],
        )
    return Row("fan-out of 4 x 4 children, 1 + 4 + 16 agents", "seconds", ours, floor, 8)


def round_trip(run: Run) -> Row:
    """A message to a child that rests, until its answer has come back to the parent."""
    with stage(run, AGENTS) as (magy, _):
        child, alone = _Child(magy), _Alone(magy)
        ours, floor = in_turn(run.choose(20, 60), child.answers, alone.answers, warm=3)
    return Row("message to a child and its answer back", "seconds", ours, floor, 1.5)


def wake_up(run: Run) -> Row:
    """Until a wait that was there before is answered, once the child's turn ends."""
    with stage(run, AGENTS) as (magy, _):
        child = _Child(magy)
        found = [child.wakes() for _ in range(run.choose(20, 60))][3:]
    ours, floor = (median(side) for side in zip(*found, strict=True))
    return Row("message to a child until a wait for it ends", "seconds", ours, floor, 1.1)


def graph(run: Run) -> Row:
    """As many tasks that need nothing of each other, four agents at a time."""
    count = run.choose(20, 100)
    with stage(run, AGENTS) as (magy, _):
        ours, floor = in_turn(
            run.choose(1, 5),
            lambda: stopwatch(partial(_by_graph, magy, count)),
            lambda: stopwatch(partial(_by_hand, magy, count)),
        )
    name = f"a graph of {count} tasks against the same children by hand"
    return Row(name, "seconds", ours, floor, 1.3)


def idle_bytes_1000(run: Run) -> Row:
    return _idle(run, "bytes", 1000)


def idle_bytes_10000(run: Run) -> Row:
    return _idle(run, "bytes", 10_000)


def idle_seconds_1000(run: Run) -> Row:
    return _idle(run, "seconds", 1000)


def idle_seconds_10000(run: Run) -> Row:
    return _idle(run, "seconds", 10_000)


ROWS = (
    fan_out, round_trip, wake_up, graph,
    idle_bytes_1000, idle_bytes_10000, idle_seconds_1000, idle_seconds_10000,
)  # fmt: skip


def _by_graph(magy: Magy, count: int) -> None:
    tasks = [{"id": f"t{n}", "agent": "worker", "prompt": WORD[0]["text"]} for n in range(count)]
    id = magy.session("worker")
    magy.peer.messages.clear()
    magy.peer.request("magy/graph/run", sessionId=id, requestKey="graph", tasks=tasks)
    kept, magy.peer.messages = magy.peer.messages, []
    if not any(map(_ends, kept)):
        magy.peer.wait(_ends)
    (done,) = magy.peer.request("magy/graph/show", sessionId=id)["graphs"]
    if done["counts"] != {"completed": count}:
        raise Failed(f"The graph came to {done['counts']}.")


def _by_hand(magy: Magy, count: int) -> None:
    """One is spawned as soon as one is done, which is closed first, as the limits want it."""
    id, open_, left = magy.session("worker"), set[str](), list(range(count))
    while open_ or left:
        while left and len(open_) < AT_ONCE:
            spawned = magy.peer.request(
                "magy/child/spawn", parentSessionId=id, requestKey=f"t{left.pop()}", agent="worker",
                prompt=WORD,
            )  # fmt: skip
            open_.add(spawned["child"]["sessionId"])
        told = magy.peer.request("magy/child/wait", sessionIds=sorted(open_))
        for result in told["results"]:
            child = result["child"]["sessionId"]
            if child in open_ and result["child"]["state"] == "completed":
                magy.peer.request("magy/child/close", sessionId=child)
                open_.remove(child)
    magy.peer.messages.clear()


class _Alone:
    """A session without a parent."""

    def __init__(self, magy: Magy) -> None:
        self._peer = magy.peer
        self._id = magy.session("worker")
        self._sent = 0

    def answers(self) -> float:
        """Seconds from a prompt to the end of its turn."""
        self._sent += 1
        began = time.perf_counter()
        self._peer.request(
            "magy/session/prompt", sessionId=self._id, messageId=f"m{self._sent}", prompt=WORD
        )
        kept, self._peer.messages = self._peer.messages, []
        if not any(map(_ends, kept)):
            self._peer.wait(_ends)
        return time.perf_counter() - began


class _Child:
    """One that the person spawned, and that rests."""

    def __init__(self, magy: Magy) -> None:
        self._peer = magy.peer
        parent = magy.session("worker")
        spawned = self._peer.request(
            "magy/child/spawn", parentSessionId=parent, requestKey="child", agent="worker",
            prompt=WORD,
        )  # fmt: skip
        self._id: str = spawned["child"]["sessionId"]
        self._seq = 0
        self._sent = 0
        self._peer.request("magy/session/subscribe", sessionId=self._id)
        self._waited(self._peer.request("magy/child/wait", **self._wait()))

    def answers(self) -> float:
        """Seconds from a message to the answer."""
        began = time.perf_counter()
        self._send()
        told = self._peer.request("magy/child/wait", **self._wait())
        took = time.perf_counter() - began
        self._waited(told)
        self._peer.messages.clear()
        return took

    def wakes(self) -> tuple[float, float]:
        """Seconds from a message until a wait has ended, and until the editor has the turn's
        end."""
        self._peer.messages.clear()
        self._peer.send({"id": "wait", "method": "magy/child/wait", "params": self._wait()})
        began = time.perf_counter()
        self._send()
        times: dict[str, float] = {}
        for message in self._peer.messages:  # those that came before the answer to the message
            self._note(message, times, began)
        while len(times) < 2:
            self._note(self._peer.wait(lambda message: True), times, began)
        return times["wait"], times["end"]

    def _note(self, message: Mapping[str, Any], times: dict[str, float], began: float) -> None:
        if message.get("id") == "wait":
            self._waited(message["result"])
            times["wait"] = time.perf_counter() - began
        elif _ends(message):
            times["end"] = time.perf_counter() - began

    def _send(self) -> None:
        self._sent += 1
        self._peer.request(
            "magy/child/send", sessionId=self._id, requestKey=f"m{self._sent}", prompt=WORD
        )

    def _wait(self) -> dict[str, Any]:
        return {"sessionIds": [self._id], "afterSeq": self._seq}

    def _waited(self, told: Mapping[str, Any]) -> None:
        if told["timedOut"] or told["seq"] <= self._seq:
            raise Failed(f"The wait came to nothing: {told}")
        self._seq = told["seq"]


def _ends(message: Mapping[str, Any]) -> bool:
    """Whether it says that a turn is over."""
    update = message.get("params", {}).get("update", {})
    return bool(update.get("sessionUpdate") == "state_update" and update["state"] == "idle")


def _idle(run: Run, unit: Any, count: int) -> Row:
    """Against a task that waits at a queue: the least that an agent can be."""
    ours, floor = in_turn(
        run.choose(1, 3),
        partial(_measured, run, "agents", unit, count),
        partial(_measured, run, "tasks", unit, count),
        warm=0,
    )
    name = {"bytes": "memory", "seconds": "time to load"}[unit]
    return Row(f"an idle agent of {count:,}, {name}", unit, ours, floor, None)


def _measured(run: Run, kind: str, unit: str, count: int) -> float:
    """By a process of its own, that nothing else has used memory of."""
    state = run.fresh("state")
    done = subprocess.run(
        [sys.executable, "-m", "bench.idle", kind, str(count), str(state)],
        cwd=TOP, env=environment(state), capture_output=True, text=True,
    )  # fmt: skip
    if done.returncode:
        raise Failed(f"bench.idle ended with {done.returncode}: {done.stderr[-600:]}")
    return float(orjson.loads(done.stdout)[unit]) / count
