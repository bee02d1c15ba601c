"""What a round costs after so many earlier rounds of the same turn: it should stay what it was.

The server is the real one, the model is without latency, and each round reads one line of a file.
"""

from __future__ import annotations

from collections.abc import Iterator

from bench.measure import Failed, Run
from bench.turns import Magy, stage

WINDOW = 20
"""Over so many rounds is averaged: those up to each of the marks."""
MARKS = (20, 100, 500, 2000, 5000)


def report(run: Run) -> str:
    """A table: a line for each mark, milliseconds of processor time a round, and how many times
    that of the first mark it is. Raises Failed."""
    marks = MARKS[: run.choose(3, 4, 5)]
    with stage(run) as (magy, _):
        magy.turn("bench-loop-20")  # warm
        costs = dict(_costs(magy, marks))
    lines = ["| earlier rounds | ms CPU a round | times the first |", "| ---: | ---: | ---: |"]
    first = costs[marks[0]]
    for mark in marks:
        lines.append(f"| {mark:,} | {costs[mark] * 1000:.1f} | {costs[mark] / first:.2f} |")
    return "\n".join(lines)


def _costs(magy: Magy, marks: tuple[int, ...]) -> Iterator[tuple[int, float]]:
    """(mark, seconds of the server's processor time a round)"""
    peer, session = magy.peer, magy.session()
    peer.request(
        "magy/session/prompt", sessionId=session, messageId="p1",
        prompt=[{"type": "text", "text": f"bench-loop-{marks[-1]}"}],
    )  # fmt: skip
    done, begun = 0, 0.0
    while done < marks[-1]:
        update = peer.wait(lambda m: m.get("method") == "magy/session/update")["params"]["update"]
        if update.get("sessionUpdate") == "state_update" and update["state"] == "idle":
            raise Failed(f"The turn ended after {done} rounds, with {update}")
        if update.get("sessionUpdate") != "tool_call_update" or update.get("status") != "completed":
            continue
        done += 1
        if done + WINDOW in marks or done == marks[0] - WINDOW + 1:
            begun = peer.processor_time()
        if done in marks:
            over = WINDOW if done > WINDOW else WINDOW - 1
            yield done, (peer.processor_time() - begun) / over
        peer.messages.clear()
