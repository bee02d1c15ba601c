"""What a round costs after so many earlier rounds of the same turn, and what the first prompt costs
in a session with so many events: it should stay what it was.

The server is the real one, the model is without latency, and each round reads one line of a file.
"""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from typing import Any

from bench.measure import Failed, Run
from bench.peer import MAGY, Peer
from bench.turns import KEY, Magy, stage
from magy_server.core.agents.tree import stream_of
from magy_server.core.events import (
    Admitted,
    Compacted,
    Ended,
    Event,
    Finished,
    Judged,
    Opened,
    Prompted,
    Replied,
    Started,
)
from magy_server.core.ports import Batch
from magy_server.core.values import Call, Decision, Evidence, Facts, Hash, Text
from magy_server.engine.snapshots import EVERY
from magy_server.store.sqlite import SqliteStore

WINDOW = 20
"""Over so many rounds is averaged: those up to each of the marks."""
MARKS = (20, 100, 500, 2000, 5000)
EVENTS = (100, 10_000, 100_000)
CALLS = 6
"""So many has each turn of a long session."""
TURNS = 100
"""After so many its conversation is compacted, as that of every long session is."""
SUMMARY = b"Lines were looked at."


def report(run: Run) -> str:
    """Two tables, of rounds and of long sessions. Raises Failed."""
    return f"{_rounds(run)}\n\n{_sessions(run)}"


def _rounds(run: Run) -> str:
    """A line for each mark: milliseconds of processor time a round, and how many times that of the
    first mark it is."""
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


def _sessions(run: Run) -> str:
    """Three lines for each length: for the first process that loads the session, which folds its
    whole log; for the next one, which finds what that kept; and for one that finds nothing of this
    Magy, but shows the session long enough before it is prompted. All of it is as a client sees
    it; `silence` is the longest time in which the server answered nothing, though it was asked all
    the time."""
    lines = ["| events | loaded | first word after, s | CPU, s | longest silence, ms |"]
    lines.append("| ---: | --- | ---: | ---: | ---: |")
    for count in EVENTS[: run.choose(2, 3)]:
        with stage(run) as (magy, _):
            state = magy.peer.state
            magy.turn("bench-stream-1")  # warm
            asyncio.run(_write(state, magy.root, count))
            lines.append(_line(count, "for the first time", _prompted(magy, "p1")))
            _kept(state, count)
            with Peer(run, *MAGY, state=state, env=KEY) as peer:
                another = Magy(peer, magy.root)
                another.turn("bench-stream-1")
                lines.append(_line(count, "again", _prompted(another, "p2")))
            _updated(state)
            with Peer(run, *MAGY, state=state, env=KEY) as peer:
                shown = Magy(peer, magy.root)
                shown.turn("bench-stream-1")
                peer.request("magy/session/subscribe", sessionId="long")
                _kept(state, count)
                lines.append(_line(count, "for the first time, once shown", _prompted(shown, "p3")))
    return "\n".join(lines)


def _line(count: int, loaded: str, prompted: tuple[float, float, float]) -> str:
    first, cpu, silence = prompted
    return f"| {count:,} | {loaded} | {first:.2f} | {cpu:.2f} | {silence * 1000:.0f} |"


def _kept(state: Path, count: int) -> None:
    """Waits until there is a snapshot, if the session is long enough for one."""
    while count >= EVERY:
        with closing(sqlite3.connect(state / "magy.db")) as db:
            query = "SELECT 1 FROM snapshots WHERE seq >= ? AND code != ''"
            if db.execute(query, (count,)).fetchone():
                return
        time.sleep(0.05)


def _updated(state: Path) -> None:
    """As if another Magy had made the snapshots."""
    with closing(sqlite3.connect(state / "magy.db")) as db, db:
        db.execute("UPDATE snapshots SET code = ''")


async def _write(state: Path, root: Path, count: int) -> None:
    store = await SqliteStore.open(str(state))
    events = _events(str(root), count)
    try:
        for start in range(0, len(events), 5000):
            blobs = {Hash(sha256(SUMMARY).hexdigest()): SUMMARY}
            batch = Batch(stream_of("long"), start, events[start : start + 5000], blobs)
            await store.append([batch], None)
    finally:
        await store.close()


def _events(root: str, count: int) -> list[Event]:
    """At least so many: turns with calls that are over."""
    summary = Hash(sha256(SUMMARY).hexdigest())
    turns = 0
    events: list[Event] = [Opened(agent="build", cwd=root, root=root, model="", title="Long")]
    while len(events) < count:
        turn = f"t{len(events)}"
        events.append(Prompted(id=turn, content=(Text(text="Look at the next lines."),)))
        events.append(Admitted(turn=turn, prompts=(turn,), first=len(events), opens=True))
        for _ in range(CALLS):
            id = f"{len(events) + 1}.0"
            call = Call(id=id, name="read_file", arguments={"path": "notes.txt"})
            judged = Judged(call=id, facts=Facts(title="Read notes.txt"),
                            decision=Decision(action="allow", rule="a rule"))  # fmt: skip
            events += [
                Replied(request=turn, model="bench", content=(call,), stop="tool_use"),
                judged,
                Started(call=id, evidence=Evidence()),
                Finished(call=id, status="completed", for_model="a line of notes\n" * 20),
            ]
        events.append(Ended(turn=turn, stop="end_turn"))
        turns += 1
        if turns % TURNS == 0:
            items = TURNS * (1 + 2 * CALLS) + (turns > TURNS)
            events.append(Compacted(dropped=items, summary=summary, resting=True))
    return events


def _prompted(magy: Magy, id: str) -> tuple[float, float, float]:
    """Seconds: until the first word, of processor time until then, and of the longest silence."""
    peer = magy.peer
    peer.request("magy/session/subscribe", sessionId="long")
    used, began = peer.processor_time(), time.perf_counter()
    peer.send({
        "id": "prompt", "method": "magy/session/prompt",
        "params": {"sessionId": "long", "messageId": id,
                   "prompt": [{"type": "text", "text": "bench-stream-1"}]},
    })  # fmt: skip
    silence = 0.0
    while True:
        asked = time.perf_counter()
        peer.request("magy/session/list", limit=1)
        silence = max(silence, time.perf_counter() - asked)
        if any(_speaks(message) for message in peer.messages):
            found = time.perf_counter() - began, peer.processor_time() - used, silence
            break
        peer.messages.clear()
    if not any(_idle(message) for message in peer.messages):
        peer.wait(_idle)
    return found


def _idle(message: dict[str, Any]) -> bool:
    update: dict[str, Any] = message.get("params", {}).get("update", {})
    return update.get("sessionUpdate") == "state_update" and update.get("state") == "idle"


def _speaks(message: dict[str, Any]) -> bool:
    update = message.get("params", {}).get("update", {})
    if _idle(message):
        raise Failed(f"The turn ended with {update}")
    return str(update.get("sessionUpdate")) == "agent_message_chunk"
