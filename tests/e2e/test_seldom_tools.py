"""A model finds and calls tools that no request describes; for the person it is a call like any
other."""

from __future__ import annotations

import json
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.loopback import ChatServer, call, text

from .harness import Person, person, served

LISTED = """---
description: Looks at commits
tools: git_log
---
You look at commits.
"""


@asynccontextmanager
async def at_work(root: Path, state: Path, **new: Any) -> AsyncIterator[tuple[Person, ChatServer]]:
    async with ChatServer() as server, person(root, state, settings=served(server)) as one:
        await one.new(**new)
        yield one, server


def repository(root: Path) -> None:
    for words in (["init", "--quiet"], ["commit", "--quiet", "--allow-empty", "-m", "First one"]):
        subprocess.run(["git", "-c", "user.name=t", "-c", "user.email=t@e", *words],
                       cwd=root, check=True)  # fmt: skip


def offered(server: ChatServer) -> set[str]:
    return {tool["function"]["name"] for tool in server.asked[-1].body["tools"]}


def results(server: ChatServer) -> dict[str, str]:
    """What the latest request has of calls, by their ids."""
    messages = server.asked[-1].body["messages"]
    return {m["tool_call_id"]: m["content"] for m in messages if m["role"] == "tool"}


def calls(server: ChatServer) -> list[tuple[str, Any]]:
    """(name, arguments) of the calls in the latest request, as the model is told of them."""
    said = [m for m in server.asked[-1].body["messages"] if m["role"] == "assistant"]
    made = [c["function"] for m in said for c in m.get("tool_calls", ())]
    return [(one["name"], json.loads(one["arguments"])) for one in made]


async def test_a_tool_is_found_and_called_and_the_prefix_stays(root: Path, state: Path) -> None:
    repository(root)
    git_log = {"name": "git_log", "arguments": {"stat": True}}
    async with at_work(root, state) as (one, server):
        server.reply(call("find_tools", {"query": "git_log"}, id="c1"))
        server.reply(call("call_tool", git_log, id="c2"))
        server.reply(text("One commit."))
        await one.turn("Which commits are there?")
        assert {"find_tools", "call_tool", "read_file"} <= offered(server)
        assert "git_log" not in offered(server)
        first, *_, last = (request.body for request in server.asked)
        assert first["tools"] == last["tools"]
        assert first["messages"] == last["messages"][: len(first["messages"])]
        assert "git_log" in json.dumps(first["messages"][0]), "the model knows that it is there"
        said = results(server)
        assert said["c1"].startswith("git_log: ") and '"stat"' in said["c1"]
        assert "First one" in said["c2"]
        assert calls(server) == [("find_tools", {"query": "git_log"}), ("call_tool", git_log)]
        shown = [update["title"] for update in one.updates("tool_call_update") if "title" in update]
        assert not [title for title in shown if "call_tool" in title.lower()]
        inputs = [u.get("rawInput") for u in one.updates("tool_call_update")]
        assert {"stat": True} in inputs


async def test_the_person_is_asked_about_the_tool_itself(root: Path, state: Path) -> None:
    repository(root)
    commit = {"name": "git_commit", "arguments": {"message": "Second", "paths": ["a.txt"]}}
    async with at_work(root, state) as (one, server):
        (root / "a.txt").write_text("a\n")
        server.reply(call("call_tool", commit, id="c1"))
        server.reply(text("It was refused."))
        await one.ask("Commit it")
        question = await one.question()
        assert "commit" in question["title"].lower() and "call_tool" not in question["title"]
        await one.respond(question["interactionId"], allow=False)
        await one.end()
        assert "refused" in results(server)["c1"]
        log = subprocess.run(["git", "log", "--format=%s"], cwd=root, capture_output=True)
        assert log.stdout == b"First one\n"


async def test_a_call_that_cannot_be_made_says_why(root: Path, state: Path) -> None:
    async with at_work(root, state) as (one, server):
        server.reply(
            call("call_tool", {"arguments": {}}, id="c1"),
            call("call_tool", {"name": "call_tool", "arguments": {"name": "git_log"}}, id="c2"),
            call("call_tool", {"name": "rocket", "arguments": {}}, id="c3"),
            call("call_tool", {"name": "git_log", "arguments": {"rocket": 1}}, id="c4"),
            call("call_tool", '{"name": ', id="c5"),
            call("find_tools", {"query": "rocket"}, id="c6"),
        )
        server.reply(text("Nothing worked."))
        await one.turn("Try")
        said = results(server)
        assert "give the name of another tool" in said["c2"]
        assert "name: Field required" in said["c1"]
        assert "There is no tool 'rocket'" in said["c3"] and "git_log" in said["c3"]
        assert said["c4"].startswith("git_log: wrong arguments")
        assert "not a JSON object" in said["c5"]
        assert "No tool matches 'rocket'. There are: " in said["c6"] and "web_fetch" in said["c6"]


async def test_a_tool_called_by_its_own_name_is_run(root: Path, state: Path) -> None:
    repository(root)
    async with at_work(root, state) as (one, server):
        server.reply(call("git_log", {}, id="c1"))
        server.reply(text("Done."))
        await one.turn("Which commits are there?")
        assert "First one" in results(server)["c1"]
        assert calls(server) == [("git_log", {})]


async def test_an_agent_that_lists_its_tools_is_shown_them(root: Path, state: Path) -> None:
    (state / "agent").mkdir(parents=True)
    (state / "agent" / "historian.md").write_text(LISTED)
    async with at_work(root, state, agent="historian") as (one, server):
        server.reply(text("Hello."))
        await one.turn("Hello")
        assert offered(server) == {"git_log"}


async def test_an_agent_whose_rules_keep_it_from_finding_is_shown_all(
    root: Path, state: Path
) -> None:
    (state / "agent").mkdir(parents=True)
    rules = 'permissions:\n  git: allow\n  read: allow\n  "*": deny\n'
    (state / "agent" / "narrow.md").write_text(LISTED.replace("tools: git_log\n", rules))
    async with at_work(root, state, agent="narrow") as (one, server):
        server.reply(text("Hello."))
        await one.turn("Hello")
        assert "git_log" in offered(server) and "find_tools" not in offered(server)


async def test_a_model_reads_what_was_changed(root: Path, state: Path) -> None:
    repository(root)
    subprocess.run(["git", "add", "app.py"], cwd=root, check=True)
    (root / "app.py").write_text("def greet():\n    return 'goodbye'\n")
    async with at_work(root, state) as (one, server):
        server.reply(call("git_diff", {}, id="c1"))
        server.reply(text("One word."))
        await one.turn("What is new?")
        assert "+    return 'goodbye'" in results(server)["c1"]
