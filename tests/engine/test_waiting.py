"""Waits for agents: what ends one, what it gives, and what it leaves for the next."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from magy_server.core.events import Finished
from magy_server.core.state.state import State

from .home import Home, delivered, home, mailed

END = "END-OF-REPORT"
UNTIL = 'call: bash {"command": "until [ -e %s ]; do sleep 0.02; done", "timeout": 600}'
HELD = """
prompt: work %(key)s
%(until)s
---
text: I found it in app.py.

prompt: long %(key)s
%(until)s
---
text: %(long)s
"""
SCRIPT = "".join(
    HELD % {"key": key, "until": UNTIL % key, "long": "y" * 12_000 + END} for key in "abcd"
)
SCRIPT += """
prompt: start
text: Started.

prompt: quick
text: I found it in app.py.

prompt:
text: Understood.
"""


def waits(*calls: Any) -> str:
    """A turn, for the prompt "go": these waits and other calls, one after another."""
    named = [c if isinstance(c, str) else f"wait_agent {json.dumps(c)}" for c in calls]
    replies = "\n---\n".join([*(f"call: {call}" for call in named), "text: Done."])
    return f"prompt: go\n{replies}\n{SCRIPT}"


def waiting(number: int) -> Any:
    """Whether that many calls have ended and the next one waits."""

    def right(state: State) -> bool:
        turn = state.turn
        return bool(turn and len(turn.done) == number and any(c.started for c in turn.open_calls))

    return right


async def finish(here: Home, *ids: str) -> None:
    """What was held goes on, to its end."""
    for id in ids:
        (here.root / id.rpartition("/")[2]).touch()
        await here.rested(id)


async def results(here: Home) -> list[str]:
    return [e.for_model for e in await here.events("s") if isinstance(e, Finished)]


async def held(here: Home, *ids: str, task: str = "work") -> None:
    """Children that are at work until they may finish."""
    await here.service.configure("s", "bypass", "on")
    for id in ids:
        await here.child(id, f"{task} {id.rpartition('/')[2]}")
        await here.until(id, lambda s: s.turn and any(c.started for c in s.turn.open_calls))


# --- any ------------------------------------------------------------------------------------------


async def test_any_is_the_first_with_something_that_was_not_had(tmp_path: Path) -> None:
    any_of = {"until": "any"}
    calls = ({"job_ids": ["s/b"]}, any_of, any_of, {**any_of, "job_ids": ["s/a", "s/b"]})
    async with home(tmp_path, waits(*calls)) as here:
        await here.new()
        await here.child("s/a", "quick")
        await here.rested("s/a")
        await held(here, "s/b", "s/c", "s/d")
        await here.prompt("s", "go")  # the result of a goes along with it
        await here.until("s", waiting(0))
        await finish(here, "s/c", "s/b")
        await here.until("s", waiting(2))  # c has waited in the inbox; for d there is to wait
        await finish(here, "s/d")
        await here.rested("s")
        _, second, third, last = await results(here)
        had = "completed\nYou have already received its result."
        assert "## s/c (general: task c): completed\nI found it" in second
        assert f"## s/b (general: task b): {had}" in second and "s/d" in second
        assert "## s/d (general: task d): completed\nI found it" in third
        assert third.count(had) == 3 and "I found it" not in last
        assert "There is nothing to wait for: no agent is working" in last
        events = await here.events("s")
        assert [delivered(events, mail.id) for mail in mailed(events)] == [1] * 4


# --- room -----------------------------------------------------------------------------------------


async def test_what_a_wait_has_no_room_for_is_given_by_the_next(tmp_path: Path) -> None:
    ids = ["s/a", "s/b", "s/c"]
    async with home(tmp_path, waits({}, {}, {"job_ids": ["s/c"]})) as here:
        await here.new()
        await held(here, *ids, task="long")
        await held(here, "s/d")
        await here.prompt("s", "go")
        await here.until("s", waiting(0))
        await finish(here, *ids, "s/d")
        state = await here.rested("s")
        first, second, third = await results(here)
        assert [text.count(END) for text in (first, second, third)] == [1, 1, 1]
        assert "I found it in app.py." in first  # there was room for that, behind the long ones
        assert "Not all results fit here: wait again for s/b, s/c." in first
        assert f"Its result has {12_000 + len(END)} characters; wait again to receive it." in first
        assert "wait again for s/c." in second and "no room" not in third
        assert not state.queue.waiting
        assert (await here.seen("s")).count(END) == len(ids)


async def test_what_is_not_waited_for_again_comes_with_the_next_prompt(tmp_path: Path) -> None:
    async with home(tmp_path, waits({})) as here:
        await here.new()
        await held(here, "s/a", "s/b", task="long")
        await here.prompt("s", "go")
        await here.until("s", waiting(0))
        await finish(here, "s/a", "s/b")
        assert len((await here.rested("s")).queue.waiting) == 1
        await here.prompt("s", "start", "p2")
        await here.rested("s", 2)
        assert (await here.seen("s")).count(END) == 2


# --- cursors --------------------------------------------------------------------------------------


async def ends(here: Home, ids: Sequence[str], **how: Any) -> list[tuple[str, str]]:
    waited = await here.mailing.wait("s", ids, until="any", deadline=here.after(20), **how)
    assert waited.why == "done"
    return [(one.child.status, one.text) for one in waited.results]


async def test_a_cursor_does_not_hide_what_the_log_says_nothing_of(tmp_path: Path) -> None:
    async with home(tmp_path, SCRIPT) as here:
        await here.new()
        await here.prompt("s", "start")
        cursor = (await here.rested("s")).seq
        await here.child("s/b", "quick", wake=False)
        await here.service.cancel("s/b", None)  # before it began
        await held(here, "s/a")
        await here.child("s/a/1.0", "quick")
        await here.rested("s/a/1.0")
        assert await ends(here, ["s/a/1.0"], after=cursor) == [
            ("completed", "I found it in app.py.")
        ]
        assert await ends(here, ["s/b"], after=cursor) == [("cancelled", "")]


async def test_what_was_closed_and_has_ended_since_the_cursor_is_not_missed(
    tmp_path: Path,
) -> None:
    async with home(tmp_path, SCRIPT) as here:
        await here.new()
        cursor = (await here.state("s")).seq
        await held(here, "s/a")
        await here.service.children.close("s/a", "finish")
        await finish(here, "s/a")
        assert await ends(here, [], after=cursor) == [("closed", "I found it in app.py.")]
        assert await ends(here, [], after=(await here.state("s")).seq) == []


# --- closed, deleted ------------------------------------------------------------------------------


async def test_what_is_closed_and_still_at_work_is_waited_for(tmp_path: Path) -> None:
    close = 'close_agent {"job_id": "%s", "mode": "finish"}'
    async with home(tmp_path, waits(close % "a", {})) as here:
        await here.new()
        await held(here, "s/a")
        await here.prompt("s", "go")
        await here.until("s", waiting(1))
        await finish(here, "s/a")
        await here.rested("s")
        closed, waited = await results(here)
        assert closed == "Closed: s/a. It was running."
        assert "## s/a (general: task a): closed\nI found it in app.py." in waited


async def test_the_result_of_what_was_closed_is_still_waited_for(tmp_path: Path) -> None:
    async with home(tmp_path, waits({"job_ids": ["s/a"]}, {}, {})) as here:
        await here.new()
        await held(here, "s/a", "s/b")
        await here.prompt("s", "go")
        await here.until("s", waiting(0))
        await finish(here, "s/b")
        await here.service.children.close("s/b", "finish")
        await finish(here, "s/a")
        await here.service.children.close("s/a", "finish")
        await here.rested("s")
        _, second, third = await results(here)
        assert "## s/b (general: task b): closed\nI found it in app.py." in second
        assert third == "You have no agents to wait for; spawn_agent starts one."


async def test_a_wait_says_what_was_deleted_meanwhile(tmp_path: Path) -> None:
    async with home(tmp_path, waits({})) as here:
        await here.new()
        await held(here, "s/a")
        await here.prompt("s", "go")
        await here.until("s", waiting(0))
        await here.service.delete("s/a")
        await here.rested("s")
        assert await results(here) == ["## s/a: it was deleted and will report nothing more."]


async def test_what_was_only_let_go_from_memory_is_waited_for(tmp_path: Path) -> None:
    async with home(tmp_path, SCRIPT) as here:
        await here.new()
        await held(here, "s/a")
        wait = asyncio.create_task(here.mailing.wait("s", deadline=here.after(60)))
        session = await here.live("s/a")
        while not session.watched:
            await asyncio.sleep(0.001)
        for id in ("s/a", "s"):
            await here.sessions.forget(f"session/{id}")
        await asyncio.sleep(0.05)
        assert not wait.done()
        await finish(here, "s/a")
        (result,) = (await wait).results
        assert result.text == "I found it in app.py."
