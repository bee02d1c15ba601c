"""The log: durable appends, looking at its end, and attaching to a long session."""

from __future__ import annotations

import asyncio
import itertools
import os
import random
import sqlite3
import time
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import closing
from pathlib import Path
from typing import Any

from bench.measure import Row, Run, in_turn, stopwatch
from bench.peer import MAGY, Peer
from magy_server.core.codec import encode
from magy_server.core.events import Admitted, Ended, Event, Opened, Prompted, Replied
from magy_server.core.ports import Batch
from magy_server.core.values import Text
from magy_server.store.schema import open_database
from magy_server.store.sqlite import SqliteStore

WRITERS = 64
SESSION = 1000
"""Events of one session in the big log."""


def append(run: Run) -> Row:
    """64 sessions that each append one event of about 300 bytes, wait until it is durable, and
    again."""
    each = run.choose(30, 100)
    syncs = run.choose(100, 400)

    async def measure() -> list[float]:
        async with _Open(run.fresh("state")) as store:
            heads = dict.fromkeys((f"session/{n}" for n in range(WRITERS)), 0)

            async def writer(stream: str) -> None:
                for _ in range(each):
                    await store.append([Batch(stream, heads[stream], [_reply(300)])])
                    heads[stream] += 1

            async def all_writers() -> None:
                async with asyncio.TaskGroup() as group:
                    for stream in heads:
                        group.create_task(writer(stream))

            file = run.fresh("sync") / "file"
            return await _in_turn(
                run.choose(5, 9),
                lambda: _rate(all_writers(), WRITERS * each),
                lambda: _sync_rate(file, syncs),
            )

    ours, floor = asyncio.run(measure())
    return Row(f"durable appends, {WRITERS} writers", "rate", ours, floor, 15)


def append_alone(run: Run) -> Row:
    """One session appends one event after the other, each durable before the next, beside a loop
    that runs the same SQL on the same kind of file, on its own thread, with bytes made before."""
    each = run.choose(100, 300)

    async def measure() -> list[float]:
        async with _Open(run.fresh("state")) as store:
            async with _Open(run.fresh("state")) as bare:
                path = bare.path
            await store.append([Batch("session/one", 0, [_reply(300)], {}, {"state": "idle"})])

            async def appends() -> None:
                head = await store.head("session/one")
                for after in range(head, head + each):
                    await store.append([Batch("session/one", after, [_reply(300)])])

            with closing(open_database(path, 10.0)) as db:
                return await _in_turn(
                    run.choose(9, 15),
                    lambda: _rate(appends(), each),
                    lambda: _rate(_same_sql(db, each), each),
                )

    ours, floor = asyncio.run(measure())
    return Row("durable appends, one after the other", "rate", ours, floor, 0.8)


async def _same_sql(db: sqlite3.Connection, count: int) -> None:
    """What the store runs for an append of one event to a stream that is there."""
    stream, body, summary = "session/one", encode(_reply(300)), b'{"state":"idle"}'
    standing = "SELECT root, head, created, updated, summary FROM streams WHERE stream = ?"
    if db.execute(standing, (stream,)).fetchone() is None:
        row = (stream, None, 0, 0.0, 0.0, summary)
        db.execute("INSERT INTO streams VALUES (?, ?, ?, ?, ?, ?)", row)
    for _ in range(count):
        db.execute("BEGIN IMMEDIATE")
        _, head, *_ = db.execute(standing, (stream,)).fetchone()
        now = time.time()
        db.execute(
            "INSERT INTO entries (stream, seq, at, opens, body) VALUES (?, ?, ?, ?, ?)",
            (stream, head + 1, now, False, body),
        )
        db.execute(
            "UPDATE streams SET head = ?, updated = ?, summary = ? WHERE stream = ?",
            (head + 1, now, summary, stream),
        )
        db.execute("COMMIT")


def last_events(run: Run) -> Row:
    """The last 200 events of some session, among so many rows."""
    rows = run.choose(10_000, 100_000, 1_000_000)

    async def measure() -> list[float]:
        async with _Open(run.fresh("state")) as large, _Open(run.fresh("state")) as small:
            await _fill(large, rows // SESSION)
            await _fill(small, 1)
            return await _in_turn(
                run.choose(40, 200),
                lambda: _read_end(large, rows // SESSION),
                lambda: _read_end(small, 1),
            )

    ours, floor = asyncio.run(measure())
    return Row(f"last 200 events, {rows:,} rows vs 1,000", "seconds", ours, floor, 3)


def attach(run: Run) -> Row:
    """Through the wire: the answer to `magy/session/subscribe`, twenty turns of it."""
    state = run.fresh("state")
    asyncio.run(_sessions(state))
    with Peer(run, *MAGY, state=state) as peer:
        peer.initialize()
        peer.request("magy/agent/list")

        def attached(session: str) -> float:
            took = stopwatch(lambda: peer.request("magy/session/subscribe", sessionId=session))
            peer.request("magy/session/unsubscribe", sessionId=session)
            return took

        ours, floor = in_turn(
            run.choose(20, 60), lambda: attached("long"), lambda: attached("short")
        )
    return Row("attach, 10,000 events vs 100", "seconds", ours, floor, 1.5)


ROWS = (append, append_alone, last_events, attach)


class _Open:
    """A store that is closed at the end."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    async def __aenter__(self) -> SqliteStore:
        self._store = await SqliteStore.open(self._directory)
        return self._store

    async def __aexit__(self, *exception: object) -> None:
        await self._store.close()


async def _in_turn(times: int, *measures: Callable[[], Awaitable[float]]) -> list[float]:
    """`measure.in_turn` for coroutines: it runs in a thread and has them run on this loop."""
    loop = asyncio.get_running_loop()

    def there(measure: Callable[[], Awaitable[float]]) -> float:
        async def wait() -> float:
            return await measure()

        return asyncio.run_coroutine_threadsafe(wait(), loop).result()

    blocking = [lambda measure=measure: there(measure) for measure in measures]
    return await asyncio.to_thread(in_turn, times, *blocking)


async def _rate(work: Coroutine[Any, Any, None], count: int) -> float:
    began = time.perf_counter()
    await work
    return count / (time.perf_counter() - began)


async def _sync_rate(file: Path, count: int) -> float:
    """How often a second this disk makes 4 KB durable, one after the other."""
    page = os.urandom(4096)
    fd = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    sync = getattr(os, "fdatasync", os.fsync)
    try:
        began = time.perf_counter()
        for _ in range(count):
            os.write(fd, page)
            sync(fd)
        return count / (time.perf_counter() - began)
    finally:
        os.close(fd)


async def _fill(store: SqliteStore, sessions: int) -> None:
    """The sessions grow in turn, ten events at a time, as they do when people use them."""
    for head, group in itertools.product(range(0, SESSION, 10), range(0, sessions, 100)):
        names = range(group, min(group + 100, sessions))
        await store.append([Batch(f"session/{n}", head, [_reply(300)] * 10) for n in names])


async def _read_end(store: SqliteStore, sessions: int) -> float:
    stream = f"session/{random.randrange(sessions)}"
    began = time.perf_counter()
    entries = await store.read(stream, before=SESSION + 1, limit=200)
    took = time.perf_counter() - began
    assert len(entries) == 200
    return took


async def _sessions(state: Path) -> None:
    async with _Open(state) as store:
        for name, length in (("short", 100), ("long", 10_000)):
            events: list[Event] = [Opened(root=None, cwd="/", agent="build", model="bench/bench")]
            while len(events) < length:
                seq = len(events)
                turn = f"p{seq}"
                events += [
                    Prompted(id=turn, content=(Text(text="And now?"),)),
                    Admitted(turn=turn, prompts=(turn,), first=seq + 1),
                    _reply(300, str(seq + 2)),
                    Ended(turn=turn, stop="end_turn"),
                ]
            summary = {"options": {"agent": "build"}, "state": "idle"}
            await store.append([Batch(f"session/{name}", 0, events[:length], {}, summary)])


def _reply(size: int, request: str = "1") -> Replied:
    """About `size` bytes in the log."""
    content = (Text(text="word " * ((size - 110) // 5)),)
    return Replied(request=request, model="bench/bench", content=content, stop="end_turn")
