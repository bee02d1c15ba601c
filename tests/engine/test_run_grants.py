"""What a person allows once covers the run in which they were asked, and nothing else."""

from __future__ import annotations

import json
from pathlib import Path

from magy_server.core.agents.child import Spawn
from magy_server.core.events import Judged, Opened, Prompted
from magy_server.core.values import Text
from magy_server.engine.log import Write

from .home import Home, home

SPAWN = json.dumps({"agent": "explore", "prompt": "look"})
SCRIPT = f"""
prompt: delegate
call: spawn_agent {SPAWN}
---
text: Delegated.

prompt:
text: Understood.
"""


async def allowed(one: Home, id: str) -> None:
    state = await one.until(id, lambda s: s.questions)
    (question,) = state.questions
    assert await one.service.answer(id, question, allow=True, reason="", scope="once", by="me")


async def person_spawned(one: Home) -> None:
    wanted = Spawn(key="mine", agent="build", prompt=(Text(text="delegate"),), by=one.world.me)
    await one.service.children.spawn("s", wanted)


async def decisions(one: Home, id: str) -> list[str]:
    return [e.decision.action for e in await one.events(id) if isinstance(e, Judged)]


async def called(one: Home) -> None:
    """`s/2.0`, as a call in the run `p1` spawns it."""
    opened = Opened(root=str(one.root), cwd=str(one.root), agent="build", model="", parent="s",
                    call="2.0")  # fmt: skip
    task = Prompted(id="s/2.0:task", content=(Text(text="delegate"),), run="p1")
    session = one.sessions.watch("session/s/2.0")
    await session.load()
    await session.append(lambda now: Write([opened, task]))
    one.sessions.wake(session)


async def test_it_covers_all_who_work_for_the_run_and_no_run_of_a_person_below(
    tmp_path: Path,
) -> None:
    async with home(tmp_path, SCRIPT) as one:
        await one.new()
        await one.prompt("s", "delegate")
        await allowed(one, "s")
        await one.rested("s", 2)
        assert [grant.scope for grant in (await one.state("s")).grants] == ["run"]
        await called(one)
        await one.rested("s/2.0", 2)
        assert await decisions(one, "s/2.0") == ["allow"]
        await person_spawned(one)
        await allowed(one, "s/mine")
        await one.rested("s/mine", 2)
        assert await decisions(one, "s/mine") == ["ask"]
