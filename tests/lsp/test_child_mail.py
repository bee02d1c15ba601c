"""What is said between agents, and how they are, through the real process: data and signals that no
model sees, and health that needs none."""

from __future__ import annotations

import re
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from tests.lsp.family import SESSION, Parent, parent

SCRIPT = """
prompt: xyzzy
text: The model has read what is not for it.

prompt: hang
text: I begin.
delay: 300
text: Too late.

prompt: look
text: Nothing odd.

prompt: message
text: Thank you.
"""


async def told(one: Parent, signal: str) -> dict[str, Any]:
    def right(update: dict[str, Any]) -> bool:
        return bool(update.get("body", {}).get("signal") == signal)

    return await one.update("_magy_mail", right)


@pytest.mark.req("A009")
async def test_data_is_kept_and_no_model_reads_it(root: Path, state: Path) -> None:
    async with parent(root, state, script=SCRIPT) as one:
        child = await one.spawn("one", "look")
        await one.wait(child)
        await one.client.request("magy/session/subscribe", {"sessionId": child})
        data = {"secret": "xyzzy", "list": [1, {"a": None}]}
        sent = await one.child("send", sessionId=child, requestKey="d1", data=data)
        assert sent == {"messageId": "d1", "outcome": "delivered"}
        again = await one.child("send", sessionId=child, requestKey="d1", data=data)
        assert again["outcome"] == "known"
        update = await one.update("_magy_mail", session=child)
        assert update["mail"]["payload"] == "data" and update["body"] == {"data": data}
        prompt = [{"type": "text", "text": "look"}]
        before = await one.wait(child)
        await one.child("send", sessionId=child, requestKey="p1", prompt=prompt)
        (result,) = (await one.wait(child, afterSeq=before["seq"]))["results"]
        assert result["text"] == "Nothing odd."
        assert one.said(child) == "Nothing odd.", "the data began no turn"


@pytest.mark.req("A012", "A171")
async def test_signals_are_obeyed_while_the_model_hangs(root: Path, state: Path) -> None:
    async with parent(root, state, script=SCRIPT) as one:
        child = await one.spawn("one", "hang", name="Hang about", agent="general")
        await one.state(child, "running")
        sent = await one.child("send", sessionId=child, requestKey="s1", signal="ping")
        assert sent["outcome"] == "delivered"
        beat = (await told(one, "heartbeat"))["mail"]
        assert re.fullmatch("[0-7][0-9A-HJKMNP-TV-Z]{25}", beat["id"])
        assert (beat["sender"], beat["to"], beat["agent"]) == (child, SESSION, "general")
        assert beat["metadata"]["state"] == "running"
        assert re.fullmatch("[0-7][0-9A-HJKMNP-TV-Z]{25}", beat["correlation"])
        await one.child("send", sessionId=child, requestKey="s2", signal="cancel")
        await one.state(child, "cancelled")
        await one.child("send", sessionId=child, requestKey="s3", signal="shutdown")
        why = await one.refused("send", sessionId=child, requestKey="d1", data={})
        assert "is closed" in why
        assert (await one.states())["one"] == "closed"


@pytest.mark.req("A171")
async def test_a_message_says_from_whom_to_whom_when_and_what(root: Path, state: Path) -> None:
    """A result, which is text, in the log of who gets it; data in that of the child."""
    async with parent(root, state, script=SCRIPT) as one:
        child = await one.spawn("one", "look", name="Look", agent="general")
        await one.wait(child)
        await one.update("_magy_mail")
        data = {"list": [1, None]}
        await one.child("send", sessionId=child, requestKey="d1", data=data)
        (at, result) = await mail(one, SESSION)
        assert result["content"] == [{"type": "text", "text": "Nothing odd."}]
        said = result["mail"]
        assert (said["sender"], said["to"], said["payload"]) == (child, SESSION, "text")
        assert (said["agent"], said["name"]) == ("general", "Look")
        assert set(said) >= {"metadata", "correlation"}
        assert abs(made(said["id"]) - at) < 60, "when, in its id"
        (_, kept) = await mail(one, child)
        assert kept["body"] == {"data": data} and kept["mail"]["payload"] == "data"
        assert (kept["mail"]["sender"], kept["mail"]["to"]) == ("", child), "a program's"


async def mail(one: Parent, session: str) -> tuple[float, dict[str, Any]]:
    """The only message in the log of a session, and when it was written there, in seconds."""
    page = await one.client.request("magy/session/events", {"sessionId": session, "after": 0})
    (found,) = [e for e in page["events"] if e["update"]["sessionUpdate"] == "_magy_mail"]
    return found["at"], found["update"]


def made(ulid: str) -> float:
    """The time in a ULID, in seconds since the epoch."""
    milliseconds = 0
    for letter in ulid[:10]:
        milliseconds = milliseconds * 32 + "0123456789ABCDEFGHJKMNPQRSTVWXYZ".index(letter)
    return milliseconds / 1000


@pytest.mark.req("A027", "A183")
async def test_health_is_told_while_the_model_hangs(root: Path, state: Path) -> None:
    async with parent(root, state, script=SCRIPT) as one:
        child = await one.spawn("one", "hang")
        await one.state(child, "running")
        prompt = [{"type": "text", "text": "look"}]
        await one.child("send", sessionId=child, requestKey="p1", prompt=prompt, delivery="queue")
        agents = (await one.client.request("magy/agent/health", {}))["agents"]
        (found,) = [agent for agent in agents if agent["sessionId"] == child]
        assert (found["state"], found["queueDepth"]) == ("running", 1)
        assert (found["errors"], found["errorRate"], found["restarts"]) == (0, 0, 0)
        assert 0 < found["memory"] < 10_000_000
        assert datetime.fromisoformat(found["lastProgress"]).tzinfo is not None
