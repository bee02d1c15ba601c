"""Opening a long session costs what opening a short one does: it reads the same few events."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from magy_server.core.events import Admitted, Ended, Event, Opened, Prompted, Replied
from magy_server.core.ports import Batch
from magy_server.core.values import Text
from magy_server.engine.log import RECENT
from magy_server.engine.snapshots import EVERY
from magy_server.store.sqlite import SqliteStore
from tests.patience import PATIENCE

from .harness import RpcError, person

TAIL = 5
"""Turns that the editor asks for."""


def events_of(count: int) -> list[Event]:
    """The last `TAIL` turns are numbered from 0."""
    events: list[Event] = [Opened(root=None, cwd="/", agent="build", model="")]
    turns = (count - 1) // 4
    for number in range(TAIL - turns, TAIL):
        turn = f"p{number}"
        events += [
            Prompted(id=turn, content=(Text(text="And now?"),)),
            Admitted(turn=turn, prompts=(turn,), first=len(events) + 1),
            Replied(request=f"r{number}", model="script/script", stop="end_turn",
                    content=(Text(text=f"This is {number}."),)),
            Ended(turn=turn, stop="end_turn"),
        ]  # fmt: skip
    return events


async def fill(state: Path, lengths: Mapping[str, int]) -> None:
    store = await SqliteStore.open(state)
    try:
        summary = {"options": {"agent": "build"}, "state": "idle"}
        for name, length in lengths.items():
            await store.append([Batch(f"session/{name}", 0, events_of(length), {}, summary)])
    finally:
        await store.close()


def shown(attached: dict[str, Any]) -> list[dict[str, Any]]:
    """What an editor shows of each event; the numbers of events left out."""
    updates = [event["update"] for event in attached["events"]]
    return [{key: u[key] for key in ("sessionUpdate", "content") if key in u} for u in updates]


@pytest.mark.req("G004")
async def test_10000_events_open_like_100(root: Path, state: Path) -> None:
    """All older events are made unreadable first: whoever looks at one of them fails."""
    await fill(state, {"long": 10_001, "short": 101})
    with closing(sqlite3.connect(state / "magy.db")) as database, database:
        spoilt = database.execute(
            "UPDATE entries SET body = 'spoilt' WHERE seq <= CASE stream"
            " WHEN 'session/long' THEN 10001 ELSE 101 END - ?", (4 * TAIL,)
        )  # fmt: skip
        assert spoilt.rowcount == 10_102 - 8 * TAIL
    async with person(root, state, "prompt:\ntext: Hello.\n") as one:
        long, short = [
            await one.request("session/subscribe", sessionId=name, **{"from": {"tail": TAIL}})
            for name in ("long", "short")
        ]
        assert len(shown(long)) >= 2 * TAIL
        assert shown(long) == shown(short)
        assert [long["floorSeq"], short["floorSeq"]] == [10_002 - 4 * TAIL, 102 - 4 * TAIL]
        with pytest.raises(RpcError, match="cannot be read"):
            await one.request("session/events", sessionId="long", before=long["floorSeq"])


async def test_one_that_is_open_is_made_ready_for_the_first_prompt_after_an_update(
    root: Path, state: Path
) -> None:
    """All that a snapshot stands for is made unreadable before the prompt."""
    await fill(state, {"long": EVERY + 1})
    async with person(root, state, "prompt: hello\ntext: Good day.\n") as one:
        await one.request("session/subscribe", sessionId="long")
        with closing(sqlite3.connect(state / "magy.db")) as database:
            async with asyncio.timeout(PATIENCE):
                while not database.execute("SELECT 1 FROM snapshots").fetchone():
                    await asyncio.sleep(0.01)
            with database:
                database.execute(
                    "UPDATE entries SET body = 'spoilt' WHERE seq <= ?", (EVERY + 1 - RECENT,)
                )
        await one.ask("hello", "hello", sessionId="long")
        idle = await one.client.wait_for(
            "magy/session/update", lambda p: p["update"].get("state") == "idle"
        )
        assert (idle["sessionId"], idle["update"]["stopReason"]) == ("long", "end_turn")
