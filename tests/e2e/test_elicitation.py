"""An MCP server asks the person for something in the middle of a call: a question like others,
which nobody answers but a person, and whose answer only the server gets."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.harness import Person, RpcError, person
from tests.e2e.test_mcp import IMPORTED, finished, ready, results, rude, settings
from tests.loopback import ChatServer, call, text
from tests.patience import PATIENCE

ALLOWED = {"permission": {"mcp__rude": "allow"}, "sandbox": {"level": "off"}}
FORM = {"name": "mcp__rude__form", "arguments": {}}
LINK = {"name": "mcp__rude__link", "arguments": {}}


@asynccontextmanager
async def asked(
    root: Path, state: Path, called: dict[str, Any] = FORM, **more: Any
) -> AsyncIterator[tuple[Person, ChatServer, dict[str, Any]]]:
    """A turn in which the server asks: (the person, the model, the question)."""
    async with ChatServer() as server:
        given = settings(server, mcp={"rude": rude(call_timeout=1)}, **ALLOWED, **more)
        async with person(root, state, settings=given, env=IMPORTED) as one:
            await one.new()
            await ready(one, server)
            server.reply(call("call_tool", called, id="c1"))
            server.reply(text("Over."))
            await one.ask("Try it", "p1")
            yield one, server, await one.question()


@pytest.mark.req("G040", "G022")
async def test_a_form_is_a_question_that_is_answered_once_it_fits(root: Path, state: Path) -> None:
    async with asked(root, state) as (one, server, question):
        done = len(server.asked)
        assert question["kind"] == "form" and not question["remember"]
        assert question["title"] == "The MCP server rude asks: Which branch?"
        (part,) = question["content"]
        assert (
            "branch (text)\npush (yes or no, may be left out; else no)" in part["content"]["text"]
        )
        fields = question["form"]["fields"]
        assert [one["label"] for one in fields] == ["branch", "push", "size"]
        listed = await one.client.request("magy/interaction/list", {})
        assert listed["interactions"][0]["form"] == question["form"]
        for wrong in (
            None,
            {"branch": ""},
            {"branch": "x", "size": "vast"},
            {"branch": "x", "y": 1},
        ):
            given = {} if wrong is None else {"content": wrong}
            with pytest.raises(RpcError):
                await one.respond(question["interactionId"], **given)
        content = {"branch": "release-7", "push": "yes"}
        assert await one.respond(question["interactionId"], content=content) == {
            "accepted": True, "winner": None,
        }  # fmt: skip
        await finished(one, server, done + 1)
        said = json.loads(results(server)["c1"])
        assert said == {"action": "accept", "content": {"branch": "release-7", "push": True}}
        again = await one.respond(question["interactionId"], content=content)
        assert again == {"accepted": False, "winner": "allowed"}
    kept = "".join(file.read_text() for file in (state / "audit").glob("*.jsonl"))
    assert '"fields": ["branch", "push", "size"]' in kept.replace('":[', '": [').replace(
        ',"', ', "'
    )
    assert "filled" in kept and "release-7" not in kept


async def test_a_key_that_magy_knows_is_not_given_to_a_server(root: Path, state: Path) -> None:
    redacted = {"redact": {"patterns": ["zebra-[0-9]+"]}}
    async with asked(root, state, **redacted) as (one, _, question):
        with pytest.raises(RpcError, match="branch holds a key"):
            await one.respond(question["interactionId"], content={"branch": "zebra-123"})
        await one.respond(question["interactionId"], allow=False)
        await one.end()


async def test_only_a_person_answers(root: Path, state: Path) -> None:
    """Bypass does not; a refusal is one, and no reason of the call."""
    async with asked(root, state) as (one, server, question):
        done = len(server.asked)
        await one.request("session/set_config_option", configId="bypass", value="on")
        assert (await one.client.request("magy/interaction/list", {}))["interactions"]
        await one.respond(question["interactionId"], allow=False, reason="Why?")
        await finished(one, server, done + 1)
        assert json.loads(results(server)["c1"]) == {"action": "decline"}


async def test_an_address_is_shown_and_agreed_to(root: Path, state: Path) -> None:
    async with asked(root, state, LINK) as (one, server, question):
        done = len(server.asked)
        assert (
            question["form"]["url"] == "https://login.example/x" and not question["form"]["fields"]
        )
        assert (
            "at login.example:\nhttps://login.example/x"
            in question["content"][0]["content"]["text"]
        )
        await one.respond(question["interactionId"])
        await finished(one, server, done + 1)
        assert json.loads(results(server)["c1"]) == {"action": "accept"}


async def test_a_question_stays_open_for_others_and_ends_with_the_turn(
    root: Path, state: Path
) -> None:
    async with (
        asked(root, state) as (one, server, question),
        person(root, state, settings=settings(server), env=IMPORTED) as other,
    ):
        (listed,) = (await other.client.request("magy/interaction/list", {}))["interactions"]
        assert listed["interactionId"] == question["interactionId"]
        await one.request("session/cancel")
        await one.end()
        gone = await other.client.wait_for(
            "magy/interaction/changed", lambda p: bool(p["resolved"])
        )
        assert question["interactionId"] in gone["resolved"]


async def test_another_window_answers(root: Path, state: Path) -> None:
    async with asked(root, state) as (one, server, question):
        done = len(server.asked)
        async with person(root, state, settings=settings(server), env=IMPORTED) as other:
            await other.respond(question["interactionId"], content={"branch": "main"})
            await finished(one, server, done + 1)
        assert json.loads(results(server)["c1"])["content"]["branch"] == "main"


async def test_what_a_process_was_asked_that_was_killed_is_lost_with_its_call(
    root: Path, state: Path
) -> None:
    async with ChatServer() as server:
        given = settings(server, mcp={"rude": rude(call_timeout=PATIENCE)}, **ALLOWED)
        async with person(root, state, settings=given, env=IMPORTED) as one:
            await one.new()
            await ready(one, server)
            server.reply(call("call_tool", FORM, id="c1"))
            await one.ask("Try it", "p1")
            question = await one.question()
            one.client.process.kill()
            await one.client.process.wait()
        async with person(root, state, settings=settings(server), env=IMPORTED) as one:
            done = len(server.asked)
            server.reply(text("Gone."))
            await one.request("session/resume")
            await one.request("session/subscribe")
            await finished(one, server, done + 1)
            assert "It is unknown whether it took effect" in results(server)["c1"]
            assert not (await one.client.request("magy/interaction/list", {}))["interactions"]
            answer = await one.respond(question["interactionId"], content={"branch": "main"})
            assert answer["accepted"] is False
