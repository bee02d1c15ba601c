"""Rulings that are looked at again, in sessions of one workspace: only so often."""

from __future__ import annotations

import asyncio
import json
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from .harness import Person, person
from .test_child_tools import script
from .test_magi import ALL, put

SESSIONS = ("one", "two", "three")
SLOW = "It failed in a slow night."


def review(of: str, new: str) -> str:
    return put(complexity="simple", review_of=of, review_reason="It failed.", new_evidence=[new])


def turn(prompt: str, arguments: str) -> str:
    return f"prompt: {prompt}\n{arguments}---\ntext: {{{{last}}}}\n"


def told() -> str:
    """In each session a ruling on the same question, and three reviews of it."""
    turns = [turn("decide", put(complexity="simple"))]
    for one in SESSIONS:
        turns += [turn(f"review {n} of {one}", review(f"{one}/5.0", f"It failed {n} in {one}."))
                  for n in range(3)]  # fmt: skip
        turns.append(turn(f"slowly {one}", review(f"{one}/5.0", SLOW)))
        turns.append(turn(f"other {one}", put("Should it be blue?", complexity="simple")))
    slow = "prompt: slow night\ndelay: 600\ntext: Too late.\n"
    return script(*turns, slow, *ALL)


async def opened(one: Person, session: str) -> None:
    await one.new(session)
    await one.request("session/set_config_option", sessionId=session, configId="bypass", value="on")


async def asked(one: Person, session: str, text: str, id: str) -> None:
    await one.ask(text, id, sessionId=session)
    await one.end(session)


async def of_session(one: Person, session: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await one.request("magi/list", sessionId=session))["rulings"]
    return found


async def said(one: Person, session: str) -> str:
    about = {"sessionId": session, "from": {"seq": 0}}
    return json.dumps(await one.client.request("magy/session/subscribe", about))


async def under_way(one: Person, session: str) -> None:
    """Begins a review that takes long, and waits until the nodes are at work."""

    def right(update: dict[str, Any]) -> bool:
        shown = update.get("_meta", {}).get("magy", {}).get("deliberation", {})
        first = shown.get("deliberationId") == f"{session}/5.0"
        return not first and shown.get("state") == "STAGE1_COLLECTING"

    await one.ask(f"slowly {session}", "s", sessionId=session)
    await one.update("tool_call_update", right, session)


TOO_OFTEN = "This decision was reviewed 3 times in 30 days"


@pytest.mark.req("D078")
async def test_two_servers_make_no_fourth_review_of_a_decision(root: Path, state: Path) -> None:
    """Each may review its own ruling twice, and both are on the same question."""
    async with AsyncExitStack() as both:
        servers = {
            name: await both.enter_async_context(person(root, state, told()))
            for name in SESSIONS[:2]
        }  # fmt: skip

        async def reviews(name: str) -> int:
            one = servers[name]
            await opened(one, name)
            await asked(one, name, "decide", "p0")
            for n in range(2):
                await asked(one, name, f"review {n} of {name}", f"r{n}")
            return len(await of_session(one, name)) - 1

        made = await asyncio.gather(*map(reviews, servers))
        assert sorted(made) == [1, 2]
        refused = [TOO_OFTEN in await said(one, name) for name, one in servers.items()]
        assert sorted(refused) == [False, True]
        assert servers["one"].client.process.pid != servers["two"].client.process.pid
    async with person(root, state, told()) as one:
        await opened(one, "three")
        await asked(one, "three", "decide", "p0")
        await asked(one, "three", "review 0 of three", "r0")
        assert len(await of_session(one, "three")) == 1
        assert TOO_OFTEN in await said(one, "three")


@pytest.mark.req("D078")
async def test_a_fork_and_a_ruling_that_was_deleted_give_no_more_reviews(
    root: Path, state: Path
) -> None:
    async with person(root, state, told()) as one:
        for name, times in (("one", 2), ("two", 1)):
            await opened(one, name)
            await asked(one, name, "decide", "p0")
            for n in range(times):
                await asked(one, name, f"review {n} of {name}", f"r{n}")
        await one.request("session/delete", sessionId="one")
        about = {"sessionId": "two", "newSessionId": "three"}
        await one.client.request("magy/session/fork", about)
        await said(one, "three")
        await asked(one, "three", "review 2 of two", "r3")
        assert TOO_OFTEN in await said(one, "three")
        forked, of_two = await of_session(one, "three"), await of_session(one, "two")
        same = [each["ruling"] for each in forked] == [each["ruling"] for each in of_two]
        assert same and len(forked) == 2, "they are the same rulings"
        assert all(ruling["same"] for ruling in forked)


async def test_a_client_gets_the_rulings_of_all_sessions_of_its_project(
    root: Path, state: Path
) -> None:
    other = root.parent / "other"
    other.mkdir()
    async with person(root, state, told()) as one, person(other, state, told()) as stranger:
        for name in ("one", "two"):
            await opened(one, name)
            await asked(one, name, "decide", "p0")
        await asked(one, "one", "other one", "p1")
        await opened(stranger, "three")
        await asked(stranger, "three", "decide", "p0")
        about = {"sessionId": "one", "newSessionId": "fork"}
        await one.client.request("magy/session/fork", about)
        listed = await one.client.request("magy/magi/list", {})
        ids = [ruling["id"].partition("/")[0] for ruling in listed["rulings"]]
        assert ids == ["one", "one", "two"] and listed["nextCursor"] is None
        assert listed["rulings"] == [*await of_session(one, "one"), *await of_session(one, "two")]
        assert listed["running"] == []
        rest = await one.client.request("magy/magi/list", {"cursor": 2, "cwd": str(root)})
        assert rest["rulings"] == await of_session(one, "two")
        await under_way(one, "two")
        (running,) = (await one.client.request("magy/magi/list", {}))["running"]
        assert running["deliberationId"].startswith("two/")
        await one.request("session/cancel", sessionId="two")
        await one.end("two")


@pytest.mark.req("D077", "D078")
async def test_a_review_that_was_cancelled_is_none_and_each_ruling_has_two(
    root: Path, state: Path
) -> None:
    async with person(root, state, told()) as one:
        await opened(one, "one")
        await asked(one, "one", "decide", "p0")
        await under_way(one, "one")
        await one.request("session/cancel", sessionId="one")
        await one.end("one")
        for n in range(3):
            await asked(one, "one", f"review {n} of one", f"r{n}")
        assert len(await of_session(one, "one")) == 3
        assert "The ruling one/5.0 was reviewed 2 times" in await said(one, "one")
