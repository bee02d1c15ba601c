"""Tools of MCP servers in a session: found, asked about, called; and what a project's servers may
not do before a person trusts it."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.harness import Person, RpcError, findable, person, served
from tests.loopback import ChatServer, call, text
from tests.mcp.test_servers import HERE
from tests.nursery import ADAPTERS, ALSO, MCP_CLIENT
from tests.patience import PATIENCE

RUDE = str(HERE / "rude_server.py")
IMPORTED = {ALSO: f"{ADAPTERS} {MCP_CLIENT}"}
CALLED = {"name": "mcp__rude__babble", "arguments": {}}


def rude(*args: str, **more: Any) -> dict[str, Any]:
    return {"command": sys.executable, "args": [RUDE, *args], "start_timeout": PATIENCE, **more}


def settings(server: ChatServer, **more: Any) -> dict[str, Any]:
    return {**served(server), **more}


def results(server: ChatServer) -> dict[str, str]:
    """What the latest request has of calls, by their ids."""
    messages = server.asked[-1].body["messages"]
    return {m["tool_call_id"]: m["content"] for m in messages if m["role"] == "tool"}


def system(server: ChatServer, request: int = -1) -> str:
    messages = server.asked[request].body["messages"]
    return "\n".join(m["content"] for m in messages if m["role"] == "system")


@asynccontextmanager
async def at_work(root: Path, state: Path, **more: Any) -> AsyncIterator[tuple[Person, ChatServer]]:
    async with (
        ChatServer() as server,
        person(root, state, settings=settings(server, **more), env=IMPORTED) as one,
    ):
        await one.new()
        yield one, server


async def ready(one: Person, server: ChatServer, id: str = "p0") -> None:
    """A turn for which the tools were there: that of a slow machine may be a later one."""
    for attempt in range(200):
        server.reply(text("Hello."))
        await one.ask("Hello", f"{id}-{attempt}")
        await one.update(
            "state_update",
            lambda u, n=attempt + 1: u["state"] == "idle" and len(server.asked) >= n,
        )
        if "MCP servers rude" in json.dumps(server.asked[-1].body["messages"]):
            return
    raise AssertionError("the tools never came")


async def finished(one: Person, server: ChatServer, requests: int) -> None:
    await one.update(
        "state_update", lambda u: u["state"] == "idle" and len(server.asked) >= requests
    )


async def turn_of(one: Person, server: ChatServer, session: str, called: dict[str, Any]) -> None:
    """Begins a turn of a new session, in which the model makes one call."""
    await one.new(session)
    server.reply(call("call_tool", called, id=f"c-{session}"))
    server.reply(text("Over."))
    await one.ask("Try it", f"p-{session}", sessionId=session)


@pytest.mark.req("G040")
async def test_a_tool_is_found_asked_about_and_remembered_until_it_changes(
    root: Path, state: Path
) -> None:
    hang = {"name": "mcp__rude__hang", "arguments": {}}
    change = {"name": "mcp__rude__change", "arguments": {}}
    rules = {"permission": {"mcp__rude__change": "allow"}}
    async with at_work(root, state, mcp={"rude": rude(call_timeout=1)}, **rules) as (one, server):
        await ready(one, server)
        first = server.asked[0].body
        assert "mcp__" not in json.dumps(first["tools"])
        done = len(server.asked)
        server.reply(call("find_tools", {"query": "hang"}, id="c1"))
        server.reply(call("call_tool", hang, id="c2"))
        server.reply(text("It hung."))
        await one.ask("Try it", "p1")
        question = await one.question()
        assert question["title"] == "hang of the MCP server rude"
        (remembered,) = question["remember"]
        assert remembered["key"] == "mcp__rude__hang"
        await one.respond(question["interactionId"], scope="project")
        await finished(one, server, done + 3)
        said = results(server)
        assert said["c1"].startswith("mcp__rude__hang: Does this: hang.")
        assert "did not answer within 1 seconds" in said["c2"]

        for session, called in (("s2", hang), ("s3", change)):
            await turn_of(one, server, session, called)
            await one.end(session)
            assert not one.updates("_magy_interaction", session), "what is allowed is not asked"
        assert "changed" in results(server)["c-s3"]

        await turn_of(one, server, "s4", hang)
        update = await one.update("_magy_interaction", lambda u: "open" in u, "s4")
        assert "its server has changed this tool since you allowed it" in update["open"]["rule"]
        id = update["open"]["interactionId"]
        await one.respond(id, allow=False, sessionId="s4")
        await one.end("s4")


async def test_once_a_server_has_said_something_every_call_is_asked_about(
    root: Path, state: Path
) -> None:
    babble = {"name": "mcp__rude__babble", "arguments": {}}
    rules = {"permission": {"mcp__rude": "allow"}}
    async with at_work(root, state, mcp={"rude": rude()}, **rules) as (one, server):
        await ready(one, server)
        done = len(server.asked)
        server.reply(call("find_tools", {"query": "babble"}, id="c0"))
        server.reply(call("call_tool", babble, id="c1"))
        server.reply(call("call_tool", babble, id="c2"))
        server.reply(text("Over."))
        await one.ask("Try it", "p1")
        question = await one.question()
        assert "nobody vouches for (babble of the MCP server rude)" in question["rule"]
        assert len(server.asked) == done + 3 and not question["remember"]
        await one.respond(question["interactionId"], allow=False)
        await finished(one, server, done + 4)


async def test_rules_name_tools_servers_and_patterns(root: Path, state: Path) -> None:
    permission = {"mcp__*": "deny", "mcp__rude__*": "allow", "mcp__rude__die": "deny"}
    async with at_work(root, state, mcp={"rude": rude()}, permission=permission) as (one, server):
        await ready(one, server)
        done = len(server.asked)
        server.reply(call("call_tool", CALLED, id="c1"), call("mcp__rude__die", {}, id="c2"))
        server.reply(text("Done."))
        await one.ask("Try", "p1")
        await finished(one, server, done + 2)
        assert "delete everything" in results(server)["c1"]
        assert "'mcp__rude__die' is switched off here" in results(server)["c2"]


async def test_what_a_server_says_is_no_part_of_the_prompt(root: Path, state: Path) -> None:
    async with at_work(root, state, mcp={"rude": rude()}, permission={"mcp__rude": "allow"}) as (
        one,
        server,
    ):
        await ready(one, server)
        done = len(server.asked)
        server.reply(call("call_tool", CALLED, id="c1"))
        server.reply(text("No."))
        await one.ask("Try", "p1")
        await finished(one, server, done + 2)
        assert results(server)["c1"].startswith("&lt;note>")


async def test_a_slow_server_is_told_of_after_the_prefix(root: Path, state: Path) -> None:
    async with at_work(root, state, mcp={"rude": rude("slow")}) as (one, server):
        await ready(one, server)
        first, last = server.asked[0].body, server.asked[-1].body
        assert not findable(system(server, 0)) & {"all those of the MCP servers rude"}
        assert first["tools"] == last["tools"]
        assert first["messages"] == last["messages"][: len(first["messages"])]
        assert '<updated section=\\"tools\\">' in json.dumps(last["messages"])


async def test_a_call_outlives_the_process_and_says_that_its_server_is_gone(
    root: Path, state: Path
) -> None:
    async with ChatServer() as server:
        given = settings(server, mcp={"rude": rude()})
        async with person(root, state, settings=given, env=IMPORTED) as one:
            await one.new()
            await ready(one, server)
            server.reply(call("call_tool", CALLED, id="c1"))
            await one.ask("Try", "p1")
            question = await one.question()
        async with person(root, state, settings=settings(server), env=IMPORTED) as one:
            await one.request("session/resume")
            await one.request("session/subscribe")
            done = len(server.asked)
            server.reply(text("Gone."))
            await one.respond(question["interactionId"])
            await finished(one, server, done + 1)
            assert "There is no MCP server 'rude' here any more" in results(server)["c1"]


@pytest.mark.req("G040")
async def test_servers_of_a_project_wait_for_trust(root: Path, state: Path) -> None:
    started = state / "started"
    evil = {"command": sys.executable, "args": [RUDE, f"touch={started}"]}
    (root / ".mcp.json").write_text(json.dumps({"mcpServers": {"rude": evil}}))
    async with at_work(root, state) as (one, server):
        told = await one.client.wait_for("window/showMessage", lambda p: "trusted" in p["message"])
        assert str(root / ".mcp.json") in told["message"]
        server.reply(text("Hello."))
        await one.turn("Hello")
        assert not started.exists() and "MCP" not in system(server)
        await one.client.request("magy/workspace/trust", {"root": str(root), "trusted": True})
        await ready(one, server, "p1")
        assert started.exists()
        (root / ".mcp.json").write_text(json.dumps({"mcpServers": {"rude": evil, "b": evil}}))
        server.reply(text("Hello."))
        done = len(server.asked)
        await one.ask("Hello", "p2")
        await finished(one, server, done + 1)
        last = json.dumps(server.asked[-1].body["messages"])
        assert last.rindex("updated section") > last.rindex("MCP servers rude")


async def connected(one: Person, name: str = "rude") -> dict[str, Any]:
    listed = await one.client.request("magy/mcp/list", {"connect": name})
    (server,) = (server for server in listed["servers"] if server["name"] == name)
    return dict(server)


@pytest.mark.needs("bwrap")
async def test_a_server_runs_in_the_sandbox_of_commands(root: Path, state: Path) -> None:
    outside, inside = root.parent / "outside", root / "inside"
    for level in ("off", "standard"):
        for place in (inside, outside):
            place.unlink(missing_ok=True)
            given = {"sandbox": {"level": level}, "mcp": {"rude": rude(f"touch={place}")}}
            async with at_work(root, state, **given) as (one, _):
                server = await connected(one)
            assert place.exists() is (level == "off" or place == inside), server


async def test_clients_list_servers_and_have_them_tried(root: Path, state: Path) -> None:
    wrong = {"command": "${NOT_THERE_AT_ALL}"}
    async with at_work(root, state, mcp={"rude": rude(), "wrong": wrong}) as (one, _):
        listed = await one.client.request("magy/mcp/list", {})
        (server,) = listed["servers"]
        assert server["name"] == "rude" and server["condition"] == "idle"
        assert "NOT_THERE_AT_ALL" in listed["problems"][0]
        server = await connected(one)
        assert server["condition"] == "ready" and server["about"] == "rude 0"
        names = [tool["name"] for tool in server["tools"]]
        assert "mcp__rude__hang" in names
        with pytest.raises(RpcError, match="There is no MCP server 'none' here"):
            await one.client.request("magy/mcp/list", {"connect": "none"})


SAMPLE = {"command": sys.executable, "args": [str(HERE / "sdk_server.py")]}


def told(server: ChatServer) -> str:
    """The last words of a person, as the model gets them."""
    said = [m["content"] for m in server.asked[-1].body["messages"] if m["role"] == "user"]
    return json.dumps(said[-1])


@pytest.mark.req("G040")
async def test_a_prompt_names_resources_and_prompts_of_servers(root: Path, state: Path) -> None:
    rules = {"permission": {"net": "allow", "mcp__hidden": "deny"}}
    servers = {"sample": {**SAMPLE, "start_timeout": PATIENCE}, "hidden": SAMPLE}
    async with at_work(root, state, mcp=servers, **rules) as (one, server):
        await connected(one, "sample")
        server.reply(text("Yes."))
        await one.turn("Do @sample:memo://today, not @sample:note://none/x or @hidden:memo://today")
        said = told(server)
        assert said.count("Water the plants.") == 1 and "mcp:sample/memo://today" in said
        assert "This could not be read: The MCP server 'sample': it does not give note://" in said
        server.reply(call("web_fetch", {"url": "http://127.0.0.1:1/"}, id="c1"))
        server.reply(text("Done."))
        await one.ask("/sample:review 'this code' tone=rude", "p2")
        question = await one.question()
        assert "Review this code in a rude tone." in told(server)
        assert "after a text was read that nobody vouches for (mcp:sample/" in question["rule"]
        await one.respond(question["interactionId"], allow=False)
        await finished(one, server, 3)
        with pytest.raises(
            RpcError, match=r"/sample:review takes topic \[tone\]; there is no topi"
        ):
            await one.ask("/sample:review", "p3")
        with pytest.raises(RpcError, match="has no prompt 'x'; it has review"):
            await one.ask("/sample:x", "p4")


async def offered(one: Person, before: str) -> list[str]:
    found = await one.client.request("magy/prompt/complete", {"before": before})
    return [item["text"] for item in found["items"]]


async def test_what_servers_offer_is_completed(root: Path, state: Path) -> None:
    servers = {"sample": {**SAMPLE, "start_timeout": PATIENCE}}
    async with at_work(root, state, mcp=servers) as (one, _):
        await connected(one, "sample")
        assert "@sample:" in await offered(one, "See @sam")
        assert "/sample:" in await offered(one, "/sam")

        async def until(before: str, item: str) -> None:
            """The server may be slower than a completion waits."""
            for _ in range(200):
                if item in await offered(one, before):
                    return
            raise AssertionError(f"{item} never came")

        await until("See @sample:", "@sample:memo://today")
        await until("/sample:re", "/sample:review")
        assert not await offered(one, "/sample:zz")
