"""Reads that run while the reply still streams, and answers that are given again (A248, A106).

The search program is a real ripgrep behind a script that writes down each time it runs, so what
happened is seen outside Magy.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from magy_server.core.agents.tree import stream_of
from magy_server.core.events import Withdrawn
from magy_server.engine.world import read_project, record
from magy_server.store.sqlite import SqliteStore
from magy_server.tools.search import ripgrep_program
from tests.e2e.harness import SESSION, Person, person
from tests.loopback import AnthropicServer, call, cut, hang, pause, raw, text
from tests.patience import PATIENCE

ENV = {"ANTHROPIC_API_KEY": "test", "MAGY_MODEL": "anthropic/test"}


class Searches:
    """Counts the searches that were really made."""

    def __init__(self, directory: Path) -> None:
        self.program = directory / "counting-rg"
        self._log = directory / "searches"
        self._log.touch()
        *_, rg = ripgrep_program.candidates("rg")
        self._held = directory / "held"
        self.program.write_text(
            f'#!/bin/sh\necho "$@" >> {self._log}\ncase "$*" in *--count*)\n'
            f"while [ -e {self._held} ]; do sleep 0.01; done;; esac\n"
            f'exec {rg} "$@"\n'
        )
        self.program.chmod(0o755)

    def of(self, word: str) -> int:
        """Each search counts the matches first, and then fetches lines."""
        ran = self._log.read_text().splitlines()
        return sum(word in line and "--count" in line for line in ran)

    def hold(self) -> Callable[[], None]:
        """No search ends until what this returns is called."""
        self._held.touch()
        return self._held.unlink

    async def reach(self, word: str, count: int) -> None:
        async with asyncio.timeout(PATIENCE):
            while self.of(word) < count:
                await asyncio.sleep(0.01)


@pytest.fixture
async def server() -> AsyncIterator[AnthropicServer]:
    async with AnthropicServer() as server:
        yield server


@pytest.fixture
def searches(tmp_path: Path) -> Searches:
    return Searches(tmp_path)


def settings(server: AnthropicServer, searches: Searches, **more: Any) -> dict[str, Any]:
    provider = {"name": "anthropic", "kind": "anthropic", "base_url": server.base_url}
    tools = {"grep_program": str(searches.program)}
    return {"provider": [provider], "model": {"retry_delay": 0.01}, "tools": tools, **more}


def grep(pattern: str) -> Any:
    return call("grep", {"pattern": pattern})


@pytest.mark.req("A248", "A259")
async def test_a_read_runs_before_the_reply_ends(
    root: Path, state: Path, server: AnthropicServer, searches: Searches
) -> None:
    (root / "a.py").write_text("alpha\n")
    server.reply(grep("alpha"), text("And then"), hang())
    async with person(root, state, env=ENV, settings=settings(server, searches)) as one:
        await one.new()
        await one.ask("look")
        await searches.reach("alpha", 1)  # the reply never ends, and yet it runs
        assert not one.updates("tool_call_update")[0].get("kind")  # nobody was told of a result
        assert one.outputs() == []
        await one.request("session/cancel")
        assert (await one.end())["stopReason"] == "cancelled"
        assert one.outputs() == []


async def test_what_ran_early_is_the_result(
    root: Path, state: Path, server: AnthropicServer, searches: Searches
) -> None:
    (root / "a.py").write_text("alpha\nbeta\n")
    ran = asyncio.Event()
    server.reply(grep("alpha"), grep("beta"), text("Looking."), hang(until=ran))
    server.reply(text("Found."))
    async with person(root, state, env=ENV, settings=settings(server, searches)) as one:
        await one.new()
        await one.ask("look")
        await searches.reach("alpha", 1)
        await searches.reach("beta", 1)
        ran.set()
        assert (await one.end())["stopReason"] == "end_turn"
        results = server.requests[1].body["messages"][-1]["content"]
        assert ["a.py:1:alpha" in str(results[0]), "a.py:2:beta" in str(results[1])] == [True, True]
        assert (searches.of("alpha"), searches.of("beta")) == (1, 1)
    store = await SqliteStore.open(state)
    try:
        events = [(one.at, one.event.type) for one in await store.read(stream_of(SESSION))]
    finally:
        await store.close()
    at = next(at for at, type in events if type == "replied")
    together = [type for when, type in events if when == at]
    assert together[:1] == ["replied"] and together.count("judged") == 2  # in one commit


async def test_a_read_that_takes_long_keeps_no_reply_out_of_the_log(
    root: Path, state: Path, server: AnthropicServer, searches: Searches
) -> None:
    (root / "a.py").write_text("alpha\n")
    free, ends = searches.hold(), asyncio.Event()
    server.reply(grep("alpha"), text("Looking."), hang(until=ends))
    server.reply(text("Found."))
    async with person(root, state, env=ENV, settings=settings(server, searches)) as one:
        await one.new()
        await one.ask("look")
        await searches.reach("alpha", 1)
        ends.set()
        log = await SqliteStore.open(state)
        async with asyncio.timeout(PATIENCE):
            while (await log.read(stream_of(SESSION)))[-1].event.type != "judged":
                await asyncio.sleep(0.01)
        await log.close()
        free()
        assert (await one.end())["stopReason"] == "end_turn"
        assert "a.py:1:alpha" in str(server.requests[1].body["messages"][-1])
        assert searches.of("alpha") == 1


async def test_a_broken_reply_discards_what_ran(
    root: Path, state: Path, server: AnthropicServer, searches: Searches
) -> None:
    (root / "a.py").write_text("alpha\nbeta\n")
    ran = asyncio.Event()
    server.reply(grep("alpha"), text("And"), hang(until=ran), cut())
    server.reply(grep("beta"))
    server.reply(text("Done."))
    async with person(root, state, env=ENV, settings=settings(server, searches)) as one:
        await one.new()
        await one.ask("look")
        await searches.reach("alpha", 1)
        ran.set()
        assert (await one.end())["stopReason"] == "end_turn"
        assert (searches.of("alpha"), searches.of("beta")) == (1, 1)
        (result,) = server.requests[2].body["messages"][-1]["content"]
        assert "beta" in str(result) and "alpha" not in str(result)


async def test_a_read_after_a_write_waits_for_it(
    root: Path, state: Path, server: AnthropicServer, searches: Searches
) -> None:
    write = call("write_file", {"path": "new.py", "content": "alpha\n"})
    server.reply(write, grep("alpha"), text("And"), pause(0.5))
    server.reply(text("Done."))
    async with person(root, state, env=ENV, settings=settings(server, searches)) as one:
        await one.new()
        await one.ask("write, then look")
        await one.answer()
        await one.end()
        assert searches.of("alpha") == 1
        assert "new.py:1:alpha" in str(server.requests[1].body["messages"][-1])


async def test_a_read_that_was_sent_before_the_write_that_it_follows_waits_for_it(
    root: Path, state: Path, server: AnthropicServer, searches: Searches
) -> None:
    (root / "a.py").write_text("alpha old\n")
    write = {"path": "a.py", "content": "alpha new\n"}
    ran = asyncio.Event()
    server.reply(
        raw(block(2, "grep", {"pattern": "alpha"})),
        hang(until=ran),
        raw(block(1, "write_file", write)),
        raw(block(0, "grep", {"pattern": "old"})),
    )
    server.reply(text("Done."))
    async with person(root, state, env=ENV, settings=settings(server, searches)) as one:
        await one.new()
        await one.ask("write, then look")
        await searches.reach("alpha", 1)
        ran.set()
        await one.answer()
        await one.end()
        before, _, after = server.requests[1].body["messages"][-1]["content"]
        assert "alpha old" in str(before)
        assert "alpha new" in str(after) and "old" not in str(after)


def block(index: int, name: str, arguments: Any) -> str:
    """A whole call, as a server sends it that says itself where in the reply it stands."""
    use = {"type": "tool_use", "id": f"toolu_{index}", "name": name, "input": {}}
    delta = {"type": "input_json_delta", "partial_json": json.dumps(arguments)}
    steps: tuple[dict[str, Any], ...] = (
        {"type": "content_block_start", "index": index, "content_block": use},
        {"type": "content_block_delta", "index": index, "delta": delta},
        {"type": "content_block_stop", "index": index},
    )
    return "".join(f"event: {step['type']}\ndata: {json.dumps(step)}\n\n" for step in steps)


async def test_what_must_be_asked_does_not_run_early(
    root: Path, state: Path, server: AnthropicServer, searches: Searches
) -> None:
    (root / "a.py").write_text("alpha\n")
    server.reply(grep("alpha"), text("And"), pause(0.5))
    server.reply(text("Done."))
    asking = settings(server, searches, permission={"read": "ask"})
    async with person(root, state, env=ENV, settings=asking) as one:
        await one.new()
        await one.ask("look")
        question = await one.question()
        assert searches.of("alpha") == 0
        await one.respond(question["interactionId"], False)
        await one.end()
        assert searches.of("alpha") == 0


async def test_rules_that_became_stricter_meanwhile_hold(
    root: Path, state: Path, server: AnthropicServer, searches: Searches
) -> None:
    (root / "secret.txt").write_text("alpha PASSWORD\n")
    (root / "open.txt").write_text("alpha\n")
    stricter = asyncio.Event()
    server.reply(grep("alpha"), text("And"), hang(until=stricter))
    server.reply(text("Done."))
    rules = {"read": {"secret.txt": "ask", "*": "allow"}}
    async with person(
        root, state, env=ENV, settings=settings(server, searches, permission=rules)
    ) as one:
        await one.new()
        await one.request("session/set_config_option", configId="bypass", value="on")
        await one.ask("look")
        await searches.reach("alpha", 1)
        await one.request("session/set_config_option", configId="bypass", value="off")
        stricter.set()
        await one.end()
        told = str(server.requests[1].body["messages"])
        assert "open.txt:1:alpha" in told and "PASSWORD" not in told


async def test_what_another_process_has_withdrawn_meanwhile_is_asked_for(
    root: Path, state: Path, server: AnthropicServer, searches: Searches
) -> None:
    (root / "a.py").write_text("alpha\nbeta\n")
    withdrawn = asyncio.Event()
    server.reply(grep("alpha"))
    server.reply(text("Found."))
    server.reply(grep("beta"), text("And"), hang(until=withdrawn))
    server.reply(text("Done."))
    asking = settings(server, searches, permission={"read": "ask"})
    async with person(root, state, env=ENV, settings=asking) as one:
        await one.new()
        await one.ask("look")
        await one.answer(scope="project")
        await one.end()
        await one.ask("look again", id="p2")
        await searches.reach("beta", 1)  # it ran ahead, for it was allowed then
        await withdraw_all(state, root)
        withdrawn.set()
        await one.answer(False)
        await one.end()
        told = str(server.requests[3].body["messages"][-1])
        assert "refused" in told and "a.py" not in told


async def withdraw_all(state: Path, root: Path) -> None:
    """As another process does it."""
    store = await SqliteStore.open(state)
    try:
        grants = (await read_project(store, str(root))).grants
        assert grants
        for grant in grants:
            await record(store, str(root), Withdrawn(grant=grant.id))
    finally:
        await store.close()


@pytest.mark.req("A110")
async def test_nothing_is_kept_while_a_command_runs_anywhere(
    root: Path, state: Path, server: AnthropicServer, searches: Searches
) -> None:
    (root / "a.txt").write_text("alpha old\n")
    wait = "while ! test -e go; do sleep 0.05; done; echo 'alpha new' > a.txt; touch gone; sleep 60"
    changed = asyncio.Event()
    server.reply(call("bash", {"command": wait, "background": True}))
    server.reply(text("Running."))
    async with person(root, state, env=ENV, settings=settings(server, searches)) as one:
        await one.new()
        await one.request("session/set_config_option", configId="bypass", value="on")
        await one.turn("start it")
        await one.request("session/new", sessionId="s2", cwd=str(root))
        await one.request("session/subscribe", sessionId="s2")
        server.reply(grep("alpha"))
        server.reply(text("Wait."), hang(until=changed), grep("alpha"))
        server.reply(text("Done."))
        await one.ask("look twice", "p2", sessionId="s2")
        await searches.reach("alpha", 1)
        (root / "go").touch()
        async with asyncio.timeout(PATIENCE):
            while not (root / "gone").exists():
                await asyncio.sleep(0.01)
        changed.set()
        await one.end("s2")
        assert "alpha new" in str(server.requests[4].body["messages"][-1])


async def test_a_file_that_is_opened_again_is_searched_again(
    root: Path, state: Path, server: AnthropicServer, searches: Searches
) -> None:
    path = root / "a.txt"
    path.write_text("alpha disk\n")
    server.reply(grep("alpha"))
    again = asyncio.Event()
    server.reply(text("Wait."), hang(until=again), grep("alpha"))
    server.reply(text("Done."))
    async with person(root, state, env=ENV, settings=settings(server, searches)) as one:
        await one.new()

        def opens(text: str) -> None:
            document = {"uri": path.as_uri(), "languageId": "text", "version": 1, "text": text}
            one.client.notify("textDocument/didOpen", {"textDocument": document})

        opens("alpha first\n")
        await one.ask("look twice")
        await one.update("tool_call_update", lambda u: u.get("status") == "completed")
        one.client.notify("textDocument/didClose", {"textDocument": {"uri": path.as_uri()}})
        opens("alpha second\n")
        await one.request("session/list")  # by now it has heard of that
        again.set()
        await one.end()
        assert "alpha first" in str(server.requests[1].body["messages"][-1])
        assert "alpha second" in str(server.requests[2].body["messages"][-1])


@pytest.mark.req("A106", "A110")
async def test_equal_calls_get_one_answer_until_something_changes(
    root: Path, state: Path, server: AnthropicServer, searches: Searches
) -> None:
    (root / "a.py").write_text("alpha\n")
    server.reply(grep("alpha"))
    server.reply(grep("alpha"))
    server.reply(call("write_file", {"path": "b.py", "content": "alpha\n"}))
    server.reply(grep("alpha"))
    server.reply(text("Done."))
    async with person(root, state, env=ENV, settings=settings(server, searches)) as one:
        await one.new()
        await one.ask("look twice")
        await one.answer()
        await one.end()
        assert searches.of("alpha") == 2
        final = str(server.requests[4].body["messages"][-1])
        assert "a.py:1:alpha" in final and "b.py:1:alpha" in final
        # A person who prompts may have changed anything meanwhile.
        (root / "c.py").write_text("alpha\n")
        server.reply(grep("alpha"))
        server.reply(text("Done."))
        await one.turn("again", "p2")
        assert "c.py:1:alpha" in str(server.requests[6].body["messages"][-1])
        assert searches.of("alpha") == 3


@pytest.mark.req("A106", "A266")
async def test_sessions_share_answers_but_not_what_they_may_see(
    root: Path, state: Path, server: AnthropicServer, searches: Searches
) -> None:
    (root / "a.py").write_text("alpha\n")
    (root / "secret.txt").write_text("alpha\n")
    agents = state / "agent"
    agents.mkdir(parents=True)
    (agents / "careful.md").write_text(
        "---\ndescription: Careful\nextends: build\npermissions:\n"
        '  read:\n    - "secret.txt": deny\n    - "*": allow\n---\nYou are careful.\n'
    )

    def answer(body: Any) -> Any:
        looked = "tool_result" in str(body["messages"])
        return [text("Done.")] if looked else [grep("alpha"), pause(0.3)]

    server.answer(answer)
    async with person(root, state, env=ENV, settings=settings(server, searches)) as one:
        await one.new()
        for name, agent in (("s2", "build"), ("s3", "careful")):
            await one.request("session/new", sessionId=name, cwd=str(root), agent=agent)
            await one.request("session/subscribe", sessionId=name)
        await one.turn("look")
        for name in ("s2", "s3"):
            await _told(one, name)
        shown = [str(r.body["messages"]) for r in server.requests]
        results = [said for said in shown if "tool_result" in said]
        assert ["secret.txt:1" in said for said in results] == [True, True, False]


async def _told(one: Person, session: str) -> None:
    await one.ask("look", f"p-{session}", sessionId=session)
    await one.end(session)
