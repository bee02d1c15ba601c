"""Agents that die of errors nobody foresaw, and what is known of each without asking a model."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from magy_server.core.events import Ended, Entry, Finished, Replied, Resumed
from magy_server.core.state.state import State
from magy_server.team.supervision import Health
from tests.patience import PATIENCE

from .home import Home, delivered, home, mailed

SCRIPT = """
prompt: work
text: Looking.
call: bash {"command": "echo ran >> marker"}
---
text: I found it.

prompt: slowly
text: One moment.
delay: 600
text: Too late.

prompt: go wrong
error: auth

prompt:
text: Understood.
"""
ALLOWED = {"permission": {"bash": "allow"}, "model": {"retries": 0}}


class Bug:
    """A listener that fails `times` times when this kind of entry comes to this session: the task
    of the agent dies of it."""

    def __init__(self, session: str, kind: str, times: int) -> None:
        self._stream, self._kind, self.left = f"session/{session}", kind, times

    def __call__(self, state: State, entries: Sequence[Entry]) -> None:
        here = state.stream == self._stream and any(e.event.type == self._kind for e in entries)
        if here and self.left:
            self.left -= 1
            raise RuntimeError("there is a bug")


def health(here: Home) -> dict[str, Health]:
    return {one.session: one for one in here.service.supervisor.health()}


@pytest.mark.req("A182", "C026")
@pytest.mark.parametrize("kind", ["briefed", "admitted", "replied", "judged", "finished"])
async def test_an_agent_that_dies_is_begun_anew_and_nobody_else_notices(
    tmp_path: Path, kind: str
) -> None:
    bug = Bug("s/1.0", kind, 2)
    async with home(tmp_path, SCRIPT, settings=ALLOWED, listeners=[bug]) as here:
        await here.new()
        await here.child("s/1.1", "work", run="p1")
        await here.child("s/1.0", "work", run="p1")
        for id in ("s/1.0", "s/1.1"):
            assert (await here.rested(id)).last_stop == "end_turn"
        assert bug.left < 2
        events = await here.events("s/1.0")
        assert sum(isinstance(e, Resumed) for e in events) >= 1
        assert not any(isinstance(e, Resumed) for e in await here.events("s/1.1"))
        calls = [e for e in events if isinstance(e, Finished)]
        assert len(calls) == 1 and calls[0].status in ("completed", "unknown")
        ran = (here.root / "marker").read_text().split()
        assert len(ran) <= 2  # once each: what is unknown is not run again
        one, other = health(here)["s/1.0"], health(here)["s/1.1"]
        assert (one.errors, one.restarts, other.restarts) == (0, 2 - bug.left, 0)
        assert one.error_rate == pytest.approx((2 - bug.left) / (3 - bug.left))


@pytest.mark.req("A182")
async def test_after_five_errors_in_a_row_it_is_given_up_and_says_so(tmp_path: Path) -> None:
    bugs = [Bug("s/1.0", "replied", 1), Bug("s/1.0", "resumed", 100)]
    async with home(tmp_path, SCRIPT, settings=ALLOWED, listeners=bugs) as here:
        await here.new()
        await here.child("s/1.1", "work")
        await here.child("s/1.0", "work")
        assert (await here.rested("s/1.0")).last_stop == "error"
        (end,) = [e for e in await here.events("s/1.0") if isinstance(e, Ended)]
        assert end.message == (
            "Magy failed: RuntimeError: there is a bug. Magy restarted it 4 times, and it failed "
            "each time."
        )
        one = health(here)["s/1.0"]
        assert (one.state, one.errors, one.restarts, one.error_rate) == ("failed", 5, 4, 1.0)
        assert (await here.rested("s/1.1")).last_stop == "end_turn"
        # The parent knows, once.
        events = await here.events("s")
        (mail,) = [m for m in mailed(events) if m.sender == "s/1.0"]
        assert mail.report and mail.report.status == "failed"
        await here.until("s", lambda s: s.turn is None and not s.queue.waiting)
        assert delivered(await here.events("s"), mail.id) == 1
        # It can be used again.
        bugs[1].left = 0
        await here.mailing.send("s/1.0", "hello", key="9.0", sender="s")
        assert (await here.rested("s/1.0", 2)).last_stop == "end_turn"
        assert health(here)["s/1.0"].errors == 0


async def test_health_is_known_without_a_model(tmp_path: Path) -> None:
    async with home(tmp_path, SCRIPT, settings=ALLOWED) as here:
        await here.new()
        before = here.world.clock.now()
        await here.child("s/1.0", "slowly")
        await here.child("s/1.1", "go wrong")
        await here.rested("s/1.1")
        for number in range(3):
            await here.mailing.send("s/1.0", "then", key=f"{number}.0", sender="s",
                                    delivery="queue")  # fmt: skip
        events = [*await here.events("s/1.0"), *await here.events("s/1.1")]
        asked = sum(isinstance(event, Replied) for event in events)
        busy, failed = health(here)["s/1.0"], health(here)["s/1.1"]
        assert (busy.state, busy.queue_depth, busy.errors, busy.error_rate) == ("running", 3, 0, 0)
        assert (failed.state, failed.errors, failed.error_rate) == ("failed", 1, 1.0)
        assert failed.restarts == 0  # a model's fault is not an agent's death
        assert busy.last_progress >= before
        assert 4_096 < busy.memory < 10_000_000
        await here.mailing.send("s/1.0", "x" * 100_000, key="long", sender="s", delivery="queue")
        assert health(here)["s/1.0"].memory > busy.memory + 100_000
        here.service.supervisor.look()
        order = list(health(here))
        assert order.index("s/1.0") < order.index("s/1.1")  # who is at work comes first
        assert asked == 0


async def test_what_streams_is_progress(tmp_path: Path) -> None:
    script = "prompt: work\nspeed: 200\ntext: " + "word " * 2_000
    async with home(tmp_path, script) as here:
        await here.new()
        child = await here.child("s/1.0", "work")

        async def grown(size: int) -> int:
            async with asyncio.timeout(PATIENCE):
                while sum(p.size for p in child.streaming.partials.values()) <= size:
                    await asyncio.sleep(0.01)
            return sum(p.size for p in child.streaming.partials.values())

        size = await grown(0)
        here.service.supervisor.look()
        first = health(here)["s/1.0"].last_progress
        await grown(size)
        here.service.supervisor.look()
        assert health(here)["s/1.0"].last_progress > first


async def test_who_has_something_to_do_and_is_not_at_it_is_woken(tmp_path: Path) -> None:
    async with home(tmp_path, SCRIPT, settings=ALLOWED) as here:
        await here.new()
        await here.child("s/1.0", "hello", wake=False)
        assert (await here.rested("s/1.0")).last_stop == "end_turn"


@pytest.mark.req("C060", "C061")
async def test_the_audit_says_who_did_which_part_and_what_it_took(tmp_path: Path) -> None:
    price = {"script": {"input": 10.0, "output": 10.0}}
    async with home(tmp_path, SCRIPT, settings=ALLOWED, about=price) as here:
        await here.new()
        await here.child("s/1.0", "work", run="p1")
        await here.child("s/1.1", "hello", run="p1")
        for id in ("s/1.0", "s/1.1"):
            await here.rested(id)
        await here.until(
            "s",
            lambda s: len(s.reports) == 2 and not s.queue.waiting and s.turn is None,
        )
        await here.service.children.close("s/1.0", reason="not needed")
        spent = {id: await here.state(id) for id in ("s/1.0", "s/1.1")}
    (file,) = (tmp_path / "state" / "audit").glob("audit-*.jsonl")
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    edges = {line["from_session_id"]: line for line in lines if line["event"] == "mailed"}
    assert set(edges) == {"s/1.0", "s/1.1"}
    for id, edge in edges.items():
        state = spent[id]
        assert (edge["session_id"], edge["from_agent"], edge["run_id"]) == ("s", "general", "p1")
        assert (edge["call_id"], edge["task"]) == (id[2:], f"task {id[2:]}")
        assert (edge["model"], edge["status"]) == ("scripted/script", "completed")
        assert edge["tokens"] == state.spending.usage.model_dump()
        assert edge["cost"] == pytest.approx(state.spending.cost) and edge["cost"] > 0
        assert edge["seconds"] >= 0 and "I found it" not in json.dumps(edge)
    spawned = [line for line in lines if line["event"] == "opened"]
    assert {(line["parent_session_id"], line["call_id"]) for line in spawned} == {
        ("s", "1.0"), ("s", "1.1"),
    }  # fmt: skip
    (closed,) = [line for line in lines if line["event"] == "closed"]
    assert (closed["session_id"], closed["mode"]) == ("s/1.0", "finish")
