"""What a run may take in its whole tree: held while agents ask at the same time, and after a
restart."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from magy_server.core.errors import StoreError
from magy_server.core.events import Ended, Replied
from magy_server.core.ports import Batch, Lease
from magy_server.core.values import Limits
from magy_server.engine.session import Session
from magy_server.store.faulty import Fault

from .home import Home, faulty, home
from .running import until

SCRIPT = """
prompt: start
text: Started.
usage: input=100 output=50

prompt: message
text: I see.
usage: input=100 output=50

prompt: work
delay: 0.05
text: Working.
usage: input=5000 output=150
call: list_dir {"path": "."}
---
delay: 0.05
text: And on.
usage: input=5000 output=150
call: list_dir {"path": "."}
---
delay: 0.05
text: Done.
usage: input=5000 output=150
"""
PRICED = {"script": {"input": 10.0, "output": 10.0, "cache_read": 10.0, "cache_write": 10.0}}
"""US dollars for a million tokens: $0.001 for a hundred."""
AGENT = f"""---
description: Has one tool, and a prompt that makes a request of some 5,200 tokens
mode: all
tools: [list_dir]
permissions:
  read: allow
---
{"Go on. " * 2_250}
"""
"""The sums below count on this size, which is not to change with the tools and prompts that Magy
ships; and what the script says a request took is within it."""


@pytest.fixture(autouse=True)
def agents(tmp_path: Path) -> None:
    folder = tmp_path / "state" / "agent"
    folder.mkdir(parents=True)
    for name in ("build", "general"):
        (folder / f"{name}.md").write_text(AGENT)


def capped(**limits: Any) -> dict[str, Any]:
    """Replies have at most 200 tokens."""
    return {"limits": limits, "model": {"max_tokens": 200}}


async def spent(here: Home, run: str, *ids: str) -> tuple[int, float]:
    states = [await here.state(id) for id in ids]
    took = [state.spending.runs[run] for state in states if run in state.spending.runs]
    return sum(t.usage.total for t in took), sum(t.cost for t in took)


async def ends(here: Home, id: str) -> list[Ended]:
    return [event for event in await here.events(id) if isinstance(event, Ended)]


CHILDREN = ("s/1.0", "s/1.1", "s/1.2", "s/1.0/2.0")


@pytest.mark.parametrize("cap", [16_000, 30_000, 50_000])
async def test_a_tree_stays_within_its_tokens_though_all_ask_at_once(
    tmp_path: Path, cap: int
) -> None:
    async with home(tmp_path, SCRIPT, settings=capped(run_tokens=cap)) as here:
        await here.new()
        await here.prompt("s", "start")
        await here.rested("s")
        for id in CHILDREN:
            await here.child(id, "work", run="p1", wake=False)
        for id in CHILDREN:
            here.sessions.wake(await here.live(id))
        for id in CHILDREN:
            await here.rested(id)
        tokens, _ = await spent(here, "p1", "s", *CHILDREN)
        assert 0 < tokens <= cap
        stops = {end.stop for id in CHILDREN for end in await ends(here, id)}
        assert stops <= {"end_turn", "max_run"} and "max_run" in stops
        stopped = [e for id in CHILDREN for e in await ends(here, id) if e.stop == "max_run"]
        for end in stopped:
            said = f"Stopped at the limit of {cap} tokens for the run of s and its agents ("
            assert end.message.startswith(said)


async def test_the_partial_work_is_handed_back_and_the_parent_is_told(tmp_path: Path) -> None:
    async with home(tmp_path, SCRIPT, settings=capped(run_tokens=11_500)) as here:
        await here.new()
        await here.child("s/1.0", "work", run="p1")
        await here.rested("s/1.0")
        (end,) = await ends(here, "s/1.0")
        assert end.stop == "max_run"
        assert "Done in this turn:\n- List the workspace: completed (2 times)" in end.message
        state = await here.until("s", lambda s: s.reports)
        mail = state.reports["s/1.0"].mail
        assert mail.report and (mail.report.status, mail.report.stop) == ("failed", "max_run")
        (text,) = (part.text for part in mail.content)
        assert text.startswith("And on.\n\nStopped at the limit of 11500 tokens")


@pytest.mark.req("G024")
async def test_a_tree_stays_within_its_cost(tmp_path: Path) -> None:
    settings = capped(run_cost=0.3)
    async with home(tmp_path, SCRIPT, settings=settings, about=PRICED) as here:
        await here.new()
        for id in CHILDREN:
            await here.child(id, "work", run="p1", wake=False)
        for id in CHILDREN:
            here.sessions.wake(await here.live(id))
        for id in CHILDREN:
            await here.rested(id)
        _, cost = await spent(here, "p1", *CHILDREN)
        assert 0.2 < cost <= 0.3
        stopped = [e for id in CHILDREN for e in await ends(here, id) if e.stop == "max_run"]
        assert stopped and all("the limit of $0.3 for the run of s" in e.message for e in stopped)


async def test_what_was_spent_before_a_restart_counts(tmp_path: Path) -> None:
    settings = capped(run_tokens=18_000)
    async with home(tmp_path, SCRIPT, settings=settings) as here:
        await here.new()
        await here.child("s/1.0", "work", run="p1")
        await here.until(
            "s/1.0", lambda s: s.spending.runs.get("p1") and s.spending.runs["p1"].requests == 2
        )
    async with home(tmp_path, SCRIPT, settings=settings) as here:
        await here.service.resume_all([str(here.root)])
        await here.child("s/1.1", "work", run="p1")
        await here.rested("s/1.1")
        await here.rested("s/1.0")
        tokens, _ = await spent(here, "p1", "s/1.0", "s/1.1")
        assert 10_300 <= tokens <= 18_000
        (end,) = await ends(here, "s/1.1")
        assert end.stop == "max_run"


async def test_a_childs_own_cap_holds_for_it_and_those_below_it(tmp_path: Path) -> None:
    async with home(tmp_path, SCRIPT, settings=capped()) as here:
        await here.new()
        limits = Limits(run_tokens=12_000)
        await here.child("s/1.0", "work", run="p1", limits=limits)
        await here.child("s/1.1", "work", run="p1")
        await here.child("s/1.0/2.0", "work", run="p1")
        for id in ("s/1.0", "s/1.1", "s/1.0/2.0"):
            await here.rested(id)
        assert [e.stop for e in await ends(here, "s/1.1")] == ["end_turn"]
        tokens, _ = await spent(here, "p1", "s/1.0", "s/1.0/2.0")
        assert 0 < tokens <= 12_000
        (end, *_) = await ends(here, "s/1.0")
        assert "the run of s/1.0 and its agents" in end.message


async def test_another_run_has_a_purse_of_its_own(tmp_path: Path) -> None:
    async with home(tmp_path, SCRIPT, settings=capped(run_tokens=9_000)) as here:
        await here.new()
        for number in range(3):
            await here.prompt("s", "start", f"p{number}")
            await here.rested("s", number + 1)
        assert [e.stop for e in await ends(here, "s")] == ["end_turn"] * 3


async def test_a_cap_on_cost_says_where_it_cannot_hold(tmp_path: Path) -> None:
    heard: list[str] = []

    async with home(tmp_path, SCRIPT, settings=capped(run_cost=0.000001)) as here:
        session = await here.new()
        sizes: list[int] = [0]

        def look() -> None:
            """Notices add up, until the turn is over."""
            notice = session.streaming.partials.get(("notice", "notice"))
            if notice and notice.size > sizes[-1]:
                heard.append(notice.since(sizes[-1]))
            sizes.append(notice.size if notice else 0)

        session.watch(look)
        await here.prompt("s", "start")
        await here.rested("s")
        await here.prompt("s", "work", "p2")
        await here.rested("s", 2)
        assert [e.stop for e in await ends(here, "s")] == ["end_turn", "end_turn"]
    assert len(heard) == 2 and all("The price of scripted/script is not known" in h for h in heard)


async def test_who_must_wait_for_others_goes_on_when_they_took_less(tmp_path: Path) -> None:
    """Only one request fits at a time; each takes less than was put aside for it."""
    async with home(tmp_path, SCRIPT, settings=capped(run_tokens=8_000)) as here:
        await here.new()
        for id in ("s/1.0", "s/1.1", "s/1.2"):
            await here.child(id, "message", run="p1", wake=False)
        for id in ("s/1.0", "s/1.1", "s/1.2"):
            here.sessions.wake(await here.live(id))
        for id in ("s/1.0", "s/1.1", "s/1.2"):
            await here.rested(id)
            assert [e.stop for e in await ends(here, id)] == ["end_turn"]


async def test_a_cancelled_request_gives_back_what_was_put_aside(tmp_path: Path) -> None:
    script = SCRIPT + "\nprompt: hang\ndelay: 600\ntext: never\n"
    async with home(tmp_path, script, settings=capped(run_tokens=8_000)) as here:
        await here.new()
        await here.child("s/1.0", "hang", run="p1")
        await until(lambda: here.service.purse._slips)
        await here.child("s/1.1", "message", run="p1")
        await here.until("s/1.1", lambda s: s.turn)
        await asyncio.sleep(0.1)
        assert (await here.state("s/1.1")).turn  # it waits for what the other holds
        await here.service.cancel("s/1.0", None)
        await here.rested("s/1.1")
        assert [e.stop for e in await ends(here, "s/1.1")] == ["end_turn"]


async def test_what_could_not_be_put_on_record_hangs_nobody(tmp_path: Path) -> None:
    """The reply of one comes, and the disk is full; its turn stays open, the other goes on."""

    def replied(batches: Sequence[Batch], lease: Lease | None = None) -> bool:
        here = batches[0].stream == "session/s/1.0"
        return here and any(isinstance(event, Replied) for event in batches[0].events)

    both = asyncio.Event()
    full = Fault("append", 1, when=replied, until=both, error=StoreError)
    store = await faulty(tmp_path, full)
    async with home(tmp_path, SCRIPT, settings=capped(run_tokens=20_000), store=store) as here:
        await here.new()
        await here.prompt("s", "start")
        await here.rested("s")

        def at_work(session: Session) -> bool:
            return session.id == "s/1.1" and session.state.turn is not None

        for id in ("s/1.0", "s/1.1"):
            await here.child(id, "work", run="p1")
        # Who begins when nobody works takes the tree anew, and goes on with this one, too.
        await until(lambda: any(at_work(s) for s in here.sessions.folded()))
        both.set()
        assert (await here.until("s/1.1", lambda s: s.last_stop)).last_stop == "end_turn"
        assert full.reached.is_set() and (await here.state("s/1.0")).turn
