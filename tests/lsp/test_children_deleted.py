"""What is deleted: every client hears of it, whichever process did it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.lsp.family import SESSION, Parent, parent

CHANGED = "magy/interaction/changed"


async def asking(one: Parent) -> tuple[str, str]:
    """A child that asks, and the question's id."""
    child = await one.spawn("asks", "asks")
    change = await one.client.wait_for(CHANGED, lambda params: params["opened"])
    await one.state(child, "waiting")
    return child, change["opened"][0]["interactionId"]


async def hears(one: Parent, gone: str, child: str, question: str) -> None:
    resolved = await one.client.wait_for(CHANGED, lambda params: params["resolved"])
    assert resolved == {"sessionId": child, "opened": [], "resolved": [question]}
    last = await one.client.wait_for("magy/child/changed", lambda params: params["deleted"])
    assert last["parentSessionId"] == SESSION
    told = {key: last["child"][key] for key in ("sessionId", "state", "questions", "waiting")}
    assert told == {"sessionId": child, "state": "closed", "questions": 0, "waiting": 0}
    await one.client.wait_for(
        "magy/session/listChanged", lambda params: params["sessionId"] == gone
    )


@pytest.mark.parametrize("whole", [False, True])
async def test_all_clients_hear_that_a_session_is_no_more(
    root: Path, state: Path, whole: bool
) -> None:
    async with parent(root, state) as one, parent(root, state, new=False) as other:
        child, question = await asking(one)
        await other.state(child, "waiting")
        gone = SESSION if whole else child
        for client in (one.client, other.client):
            client.forget()
        answer = await one.client.request("magy/session/delete", {"sessionId": gone})
        assert answer == {"deleted": True}
        await hears(one, gone, child, question)
        await hears(other, gone, child, question)
        for client in (one.client, other.client):
            listed: Any = await client.request("magy/interaction/list", {})
            assert listed["interactions"] == []


async def test_the_progress_of_a_turn_that_is_deleted_ends(root: Path, state: Path) -> None:
    async with parent(root, state) as one:
        await one.bypass()
        slow = await one.spawn("slow", "slow")
        await one.state(slow, "running")
        begun = await one.client.wait_for("$/progress", lambda p: p["value"]["kind"] == "begin")
        await one.client.request("magy/session/delete", {"sessionId": slow})
        ended = await one.client.wait_for("$/progress", lambda p: p["value"]["kind"] == "end")
        assert ended["token"] == begun["token"]
