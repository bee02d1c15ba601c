"""A person stops or takes back what has to do with children: results are kept, nothing begins by
itself, and what is not wanted any more is stopped."""

from __future__ import annotations

import json
from pathlib import Path

from magy_server.core.agents.child import Spawn
from magy_server.core.agents.mail import Mailed, TextPayload
from magy_server.core.events import CancelAsked, Finished, Requeued
from magy_server.core.reviews.review_events import Restoring
from magy_server.core.values import Text
from magy_server.engine.log import Write
from magy_server.reviews.checkpoints import Restore

from .home import Home, home, mailed

SPAWN = json.dumps({"agent": "general", "prompt": "hold"})
SCRIPT = f"""
prompt: delegate
call: spawn_agent {SPAWN}
---
text: Delegated.

prompt: hold
call: bash {{"command": "sleep 600", "timeout": 600}}
---
text: Held.

prompt: work
text: THE RESULT.

prompt: wait
call: wait_agent {{}}
---
text: Waited.

prompt: poll
call: wait_agent {{"timeout": 0.6}}
---
call: wait_agent {{"timeout": 0.6}}
---
call: wait_agent {{"timeout": 0.6}}
---
text: Polled.

prompt:
text: Understood.
"""


async def begun(one: Home) -> None:
    await one.new()
    await one.service.configure("s", "bypass", "on")
    await one.prompt("s", "hello")
    await one.rested("s")


async def spawned(one: Home, text: str = "work") -> None:
    """`s/mine`, by a person: its result waits for their next word."""
    task = (Text(text=text),)
    wanted = Spawn(key="mine", agent="general", prompt=task, name="A job", by=one.world.me)
    await one.service.children.spawn("s", wanted)


async def working(one: Home, id: str) -> None:
    await one.until(id, lambda s: s.turn and any(c.started for c in s.turn.calls.values()))


async def asked(one: Home, text: str, key: str, turns: int) -> None:
    await one.prompt("s", text, key)
    await one.rested("s", turns)


async def undone(one: Home, turn: str, key: str = "r1") -> Restore:
    return await one.service.checkpoints.restore(await one.live("s"), key, turn)


async def redone(one: Home, undoes: str) -> Restore:
    return await one.service.checkpoints.restore(await one.live("s"), f"{undoes}'", undoes=undoes)


def senders(waiting: object) -> list[str]:
    assert isinstance(waiting, tuple)
    return [mail.sender for mail in waiting if isinstance(mail, Mailed)]


# --- cancel ---------------------------------------------------------------------------------------


async def test_cancel_where_nothing_runs_leaves_the_results(tmp_path: Path) -> None:
    async with home(tmp_path, SCRIPT) as one:
        await begun(one)
        await spawned(one)
        await one.until("s", lambda s: s.queue.waiting)
        assert not await one.service.cancel("s", None)
        (result,) = (await one.state("s")).queue.waiting
        assert not await one.service.cancel("s", result.id)
        await asked(one, "go on", "p2", turns=2)
        assert "THE RESULT." in await one.seen("s")


async def test_cancel_before_a_turn_begins_takes_the_prompt_and_leaves_the_results(
    tmp_path: Path,
) -> None:
    async with home(tmp_path, SCRIPT) as one:
        await begun(one)
        await spawned(one)
        await one.until("s", lambda s: s.queue.waiting)
        root = await one.live("s")
        assert await one.sessions.trees.take(root.stream)  # so that it cannot begin
        await one.prompt("s", "go on", "p2")
        assert await one.service.cancel("s", None)
        assert senders((await one.state("s")).queue.waiting) == ["s/mine"]
        assert [e for e in await one.events("s") if isinstance(e, Requeued)] == [
            Requeued(dropped=("p2",))
        ]
        await one.sessions.trees.give_back(root.stream)


async def test_cancel_before_a_result_opens_a_turn(tmp_path: Path) -> None:
    """It waits for the next word of the person, and so does all that comes after it."""
    async with home(tmp_path, SCRIPT) as one:
        await begun(one)
        root = await one.live("s")
        assert await one.sessions.trees.take(root.stream)
        first, second = (
            Mailed(id=id, sender=f"s/{id}", agent="general", to="s", payload=TextPayload(text=id))
            for id in ("m1", "m2")
        )
        await root.append(lambda now: Write([first]))
        assert await one.service.cancel("s", None)
        assert not await one.service.cancel("s", None)  # it is stopped
        await one.sessions.trees.give_back(root.stream)
        await root.append(lambda now: Write([second]))
        one.sessions.wake(root)
        await asked(one, "go on", "p2", turns=2)
        assert [past.turn for past in root.state.history.pasts] == ["p1", "p2"]
        assert not root.state.queue.waiting


# --- undo -----------------------------------------------------------------------------------------


async def test_a_result_that_came_with_a_prompt_comes_with_the_next(tmp_path: Path) -> None:
    async with home(tmp_path, SCRIPT) as one:
        await begun(one)
        await spawned(one)
        await one.until("s", lambda s: s.queue.waiting)
        await asked(one, "a question", "p2", turns=2)
        await undone(one, "p2")
        assert senders((await one.state("s")).queue.waiting) == ["s/mine"]
        await redone(one, "r1")
        assert not (await one.state("s")).queue.waiting and "THE RESULT." in await one.seen("s")
        await undone(one, "p2", "r2")
        await asked(one, "a better question", "p3", turns=3)
        assert (await one.seen("s")).count("THE RESULT.") == 1


async def test_a_result_that_was_waited_for_comes_with_the_next_prompt(tmp_path: Path) -> None:
    async with home(tmp_path, SCRIPT) as one:
        await begun(one)
        await spawned(one, "hold")
        await working(one, "s/mine")
        await one.prompt("s", "wait", "p2")
        await working(one, "s")
        await one.service.cancel("s/mine", None)
        await one.rested("s", 2)
        assert not (await one.state("s")).queue.waiting
        await undone(one, "p2")
        assert senders((await one.state("s")).queue.waiting) == ["s/mine"]


async def test_a_turn_that_a_result_opened_does_not_begin_again_by_itself(tmp_path: Path) -> None:
    async with home(tmp_path, SCRIPT) as one:
        await begun(one)
        await one.child("s/2.0", "work", run="p1")
        opened = (await one.rested("s", 2)).history.pasts[-1].turn
        await undone(one, opened)
        assert senders((await one.state("s")).queue.waiting) == ["s/2.0"]
        await asked(one, "go on", "p2", turns=3)
        state = await one.state("s")
        assert [past.turn for past in state.history.pasts] == ["p1", "p2"]


async def test_what_the_undone_turns_had_others_do_is_stopped(tmp_path: Path) -> None:
    """What a person spawned goes on, and so does what an earlier turn asked for."""
    async with home(tmp_path, SCRIPT) as one:
        await begun(one)
        await asked(one, "delegate", "p2", turns=2)
        await spawned(one, "hold")
        await asked(one, "delegate", "p3", turns=3)
        first, mine, second = [info.session for info in await one.service.children.list("s")]
        assert mine == "s/mine"
        for id in (first, mine, second):
            await working(one, id)
        await undone(one, "p3")
        await one.until(second, lambda s: s.turn is None)
        await one.until("s", lambda s: second in s.reports)
        state = await one.state("s")
        assert state.turn is None and [past.turn for past in state.history.pasts] == ["p1", "p2"]
        report = state.reports[second].mail.report
        assert report and report.status == "cancelled"
        assert not [e for id in (first, mine) for e in await one.events(id)
                    if isinstance(e, CancelAsked)]  # fmt: skip
        await undone(one, "p1", "r2")
        await one.until(first, lambda s: s.turn is None)
        assert (await one.state(mine)).turn
        assert {mail.sender for mail in mailed(await one.events("s"))} == {first, second}


async def test_what_was_begun_before_a_crash_stops_them_too(tmp_path: Path) -> None:
    async with home(tmp_path, SCRIPT) as one:
        await begun(one)
        await asked(one, "delegate", "p2", turns=2)
        (child,) = [info.session for info in await one.service.children.list("s")]
        await working(one, child)
        root = await one.live("s")
        intent = Restoring(id="r1", turn="p2", files=True, conversation=True)
        await root.append(lambda now: Write([intent]))
        await one.service.checkpoints.finish(root)
        await one.until(child, lambda s: s.turn is None)
        assert [past.turn for past in (await one.state("s")).history.pasts] == ["p1"]


# --- waiting --------------------------------------------------------------------------------------


async def test_waiting_again_and_again_is_no_loop(tmp_path: Path) -> None:
    async with home(tmp_path, SCRIPT, settings={"limits": {"repeats": 2}}) as one:
        await begun(one)
        await spawned(one, "hold")
        await working(one, "s/mine")
        await asked(one, "poll", "p2", turns=2)
        state = await one.state("s")
        ends = [e.for_model for e in await one.events("s") if isinstance(e, Finished)]
        assert len(ends) == 3 and len(set(ends)) == 1 and state.last_stop == "end_turn"
