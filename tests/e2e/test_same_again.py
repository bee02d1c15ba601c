"""The same request again, or several times at once, is one; another under its id is refused."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from .harness import SESSION, Person, RpcError, person

SCRIPT = "text: Hello.\n"


async def all_of(asked: Sequence[Any]) -> list[Any]:
    return list(await asyncio.gather(*asked, return_exceptions=True))


def made(found: Sequence[Any], session: str) -> None:
    assert [one if isinstance(one, RpcError) else one["sessionId"] for one in found] == [
        session
    ] * len(found)


async def refused(one: Person, method: str, **params: Any) -> str:
    with pytest.raises(RpcError) as found:
        await one.request(method, **params)
    assert found.value.data["reason"] == "key_used"
    assert "repeat a request" in str(found.value)
    return str(found.value)


async def test_a_session_is_made_once_however_often_at_once(root: Path, state: Path) -> None:
    async with person(root, state, SCRIPT) as one:
        made(await all_of([one.request("session/new", cwd=str(root)) for _ in range(3)]), SESSION)
        await one.request("session/subscribe")
        made(await all_of([one.request("session/new", cwd=str(root)) for _ in range(3)]), SESSION)
        await one.turn("Hello?")
        assert one.said() == "Hello."


async def test_another_session_under_an_id_is_refused(root: Path, state: Path) -> None:
    (root / "sub").mkdir()
    async with person(root, state, SCRIPT) as one:
        await one.new(model="scripted/a")
        same = {"cwd": str(root), "model": "scripted/a"}
        assert (await one.request("session/new", **same))["sessionId"] == SESSION
        for other in (
            {"cwd": str(root / "sub")}, {"agent": "plan"}, {"model": "scripted/b"}, {"model": None},
        ):  # fmt: skip
            asked = {**same, **other}
            await refused(one, "session/new", **{k: v for k, v in asked.items() if v is not None})
        await one.turn("Hello?")
        await one.request("session/fork", newSessionId="s2", seq=1)
        await refused(one, "session/new", sessionId="s2", **same)


async def test_a_fork_under_an_id_that_is_used(root: Path, state: Path) -> None:
    async with person(root, state, SCRIPT) as one:
        await one.new()
        await one.turn("Hello?")
        await one.request("session/new", sessionId="other", cwd=str(root))
        await one.request("session/fork", newSessionId="s2", seq=3)
        again = await one.request("session/fork", newSessionId="s2", seq=3)
        assert again["sessionId"] == "s2"
        assert "forked at entry 3" in await refused(one, "session/fork", newSessionId="s2", seq=2)
        assert "not a fork of session 'other'" in await refused(
            one, "session/fork", sessionId="other", newSessionId="s2"
        )
        await refused(one, "session/fork", newSessionId="other")
        await refused(one, "session/fork", newSessionId=SESSION)


async def test_six_at_once_from_two_processes(root: Path, state: Path) -> None:
    async with person(root, state, SCRIPT) as one, person(root, state, SCRIPT) as two:
        three = [one, two] * 3
        asked = [p.request("session/new", cwd=str(root), sessionId="n") for p in three]
        made(await all_of(asked), "n")
        await one.new()
        await one.turn("Hello?")
        made(await all_of([p.request("session/fork", newSessionId="f") for p in three]), "f")
        spawn = {
            "parentSessionId": SESSION, "requestKey": "c",
            "prompt": [{"type": "text", "text": "Help."}],
        }  # fmt: skip
        found = await all_of([p.client.request("magy/child/spawn", spawn) for p in three])
        assert {child["child"]["sessionId"] for child in found} == {f"{SESSION}/c"}, found
        asked = [p.ask("again", "p2", sessionId="n") for p in three]
        outcomes = [found["outcome"] for found in await all_of(asked)]
        assert sorted(outcomes).count("known") == 5, outcomes
        mail = [p.request("child/send", sessionId=f"{SESSION}/c", requestKey="k",
                          prompt=[{"type": "text", "text": "More."}]) for p in three]  # fmt: skip
        sent = await all_of(mail)
        assert {found["messageId"] for found in sent} == {"k"}, sent
