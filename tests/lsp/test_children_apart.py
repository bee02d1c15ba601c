"""Agents keep apart: what one does, plans and knows is in no other's log, also side by side."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.lsp.family import SESSION, Parent, parent

WORDS = ("amber", "basalt", "cobalt")
SCRIPT = "\n".join(f"""
prompt: {word}
text: I take {word}-note.
call: update_plan {{"tasks": [{{"content": "{word}-plan", "status": "in_progress"}}]}}
call: bash {{"command": "echo {word}-output; until [ -e go ]; do sleep 0.02; done", "timeout": 600}}
---
text: {word}-answer
""" for word in WORDS)  # fmt: skip


async def log(one: Parent, session: str) -> str:
    """All updates of a session, as JSON."""
    found = await one.client.request("magy/session/events", {"sessionId": session, "after": 0})
    assert not found["more"]
    return json.dumps([event["update"] for event in found["events"]])


def own(word: str) -> tuple[str, ...]:
    return tuple(f"{word}-{part}" for part in ("note", "plan", "output", "answer"))


@pytest.mark.req("C046", "C023", "C024")
async def test_agents_side_by_side_do_not_see_each_others_state(root: Path, state: Path) -> None:
    async with parent(root, state, script=SCRIPT) as one:
        await one.bypass()
        ids = await asyncio.gather(*(one.spawn(f"k-{word}", word, name=word) for word in WORDS))
        for id in ids:
            await one.state(id, "running")
        await one.go()
        waited = await one.wait(until="all")
        answers = {result["child"]["name"]: result["text"] for result in waited["results"]}
        assert answers == {word: f"{word}-answer" for word in WORDS}
        for id, word in zip(ids, WORDS, strict=True):
            said = await log(one, id)
            assert all(mark in said for mark in own(word))
            others = [mark for other in WORDS if other != word for mark in own(other)]
            assert not [mark for mark in others if mark in said]
            plan = await summary(one, id)
            assert [task["content"] for task in plan["plan"]] == [f"{word}-plan"]
            session = plan["session"]
            assert (session["sessionId"], session["parentSessionId"]) == (id, SESSION)
        above = await log(one, SESSION)  # has the answers, and nothing else of theirs
        assert all(f"{word}-answer" in above for word in WORDS)
        assert not [mark for word in WORDS for mark in own(word)[:3] if mark in above]


async def summary(one: Parent, session: str) -> dict[str, Any]:
    found = await one.client.request(
        "magy/session/subscribe", {"sessionId": session, "from": {"tail": 1}}
    )
    told: dict[str, Any] = found["summary"]
    return told


STATES = (
    SCRIPT
    + """
prompt: ask me
call: edit_file {"path": "app.py", "old_text": "'hello'", "new_text": "'bye'"}
---
text: Never said.

prompt: break
error: auth

prompt: quick
text: Quick is done.
"""
)


@pytest.mark.req("E132")
async def test_each_state_that_a_child_can_be_in(root: Path, state: Path) -> None:
    settings = {"spawn": {"max_concurrent": 1, "max_children": 4}}
    async with parent(root, state, script=STATES, settings=settings) as one:
        await one.request("session/set_config_option", configId="bypass", value="on")
        for key, task, last in (("ends", "quick", "completed"), ("breaks", "break", "failed")):
            await one.state(await one.spawn(key, task), last)
        closed = await one.spawn("gone", "quick")
        await one.state(closed, "completed")
        await one.child("close", sessionId=closed, mode="cancel")
        await one.state(closed, "closed")
        await one.request("session/set_config_option", configId="bypass", value="off")
        asks = await one.spawn("asks", "ask me")
        await one.state(asks, "waiting")
        assert (await one.states()) == {
            "ends": "completed", "breaks": "failed", "gone": "closed", "asks": "waiting",
        }  # fmt: skip
        for child in ("ends", "breaks"):
            await one.child("close", sessionId=f"{SESSION}/{child}", mode="cancel")
        await one.bypass()
        works = await one.spawn("works", "amber")
        await one.state(works, "running")
        waits = await one.spawn("waits", "basalt")
        await one.state(waits, "queued")
        await one.child("send", sessionId=works, requestKey="s1", signal="cancel")
        await one.state(works, "cancelled")
        found = await one.states()
        assert (found["works"], found["asks"]) == ("cancelled", "waiting")
        assert {"queued", "running"} & {found["waits"]}
