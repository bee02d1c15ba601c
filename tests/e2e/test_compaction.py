"""Long conversations: what the model still knows after the older part was compacted, and that the
cost of all this is seen. Real processes on both sides; the model is a loopback server."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from magy_server.core.errors import InvalidRequest
from tests.e2e.harness import SESSION, Person, RpcError, person
from tests.loopback import AnthropicServer, call, hang, stop, text, thinking, usage
from tests.loopback.parts import Fault, Part

SUMMARY = "Decided: the port is 4711. Next: write the tests."
ASKED = "has grown too long"
"""Words of the compaction agent's prompt."""


@pytest.fixture
async def server() -> AsyncIterator[AnthropicServer]:
    async with AnthropicServer() as server:
        yield server


def options(server: AnthropicServer, **model: Any) -> dict[str, Any]:
    about = {"window": 20_000, "max_tokens": 1_000, "input": 10.0, "output": 50.0}
    provider = {"name": "anthropic", "kind": "anthropic", "base_url": server.base_url,
                "about": {"test": about}}  # fmt: skip
    return {"provider": [provider], "model": {"retry_delay": 0.01, **model}}


ENV = {"ANTHROPIC_API_KEY": "test", "MAGY_MODEL": "anthropic/test"}


def last(body: Any) -> str:
    """What the user, or a tool, said last."""
    return json.dumps(body["messages"][-1], ensure_ascii=False)


def everything(body: Any) -> str:
    return json.dumps([body["system"], body["messages"]], ensure_ascii=False)


def model(body: Any) -> Sequence[Part]:
    """Sums up when asked to; answers questions from what it is shown, and from nothing else."""
    said = last(body)
    if ASKED in said:
        return [text(SUMMARY), usage(input=100, cache_read=1_000, output=50)]
    if "Which" in said:
        known = everything(body)
        facts = ["4711", "Never touch vendor/", "not on Fridays", "app.py: changed", "[>] tests"]
        return [text("I know: " + "; ".join(fact for fact in facts if fact in known))]
    return [text("Fine.")]


async def work(one: Person, server: AnthropicServer) -> None:
    """A turn with a constraint, an edit, a refusal and a plan."""
    plan = [{"content": "tests", "status": "in_progress"}]
    server.reply(text("I read."), call("read_file", {"path": "app.py"}))
    edit = {"path": "app.py", "old_text": "hello", "new_text": "goodbye"}
    server.reply(call("edit_file", edit))
    server.reply(call("update_plan", {"tasks": plan}), call("bash", {"command": "make deploy"}))
    server.reply(text("I chose port 4711."), usage(input=2_000, output=20))
    await one.ask("Never touch vendor/. Make it say goodbye.")
    await one.answer()
    await one.answer(False, reason="not on Fridays")
    await one.end()


@pytest.mark.req("E087", "G026")
async def test_after_a_compaction_the_model_knows_what_counts(
    root: Path, state: Path, server: AnthropicServer
) -> None:
    (root / "app.py").write_text("print('hello')\n")
    async with person(root, state, env=ENV, settings=options(server)) as one:
        await one.new()
        await work(one, server)
        server.answer(model)
        await one.request("session/compact", focus="the port")
        await one.update("notice", lambda u: u["title"] == "Compacted")
        await one.end()
        asked = server.requests[-1].body
        assert "the port" in last(asked)
        whole = len(json.dumps(asked["messages"]))
        await one.turn("Which port, which constraints, which files?", "p2")
        known = one.said().rpartition("I know: ")[2]
        assert known == "4711; Never touch vendor/; not on Fridays; app.py: changed; [>] tests"
        assert len(json.dumps(server.requests[-1].body["messages"])) < whole
        assert server.requests[-1].body["tools"] == asked["tools"]
        costs = [u["_meta"]["magy"]["cost"] for u in one.updates("usage_update")]
        assert costs[3] == pytest.approx((2_000 * 10 + 20 * 50) / 1e6)
        summary = (await one.request("session/subscribe", **{"from": {"tail": 0}}))["summary"]
        assert summary["cost"]["amount"] == pytest.approx(sum(costs), abs=1e-5)
        assert summary["cost"]["unpriced"] == 0
    done = subprocess.run([sys.executable, "-m", "magy_server", "replay", SESSION],
                          env={**os.environ, "MAGY_STATE_DIR": str(state)},
                          capture_output=True, text=True, check=True)  # fmt: skip
    pairs = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(pairs) == len(server.requests) - 1
    assert SUMMARY in json.dumps(pairs[-1]["request"]["messages"])
    assert SUMMARY not in json.dumps(pairs[-2]["request"]["messages"])


async def test_a_full_window_is_compacted_by_itself(
    root: Path, state: Path, server: AnthropicServer
) -> None:
    for number in range(8):
        (root / f"f{number}.txt").write_text(f"number {number}\n" + ("x" * 99 + "\n") * 70)

    def reader(body: Any) -> Sequence[Part]:
        if ASKED in last(body):
            return [text(SUMMARY)]
        reads = sum(1 for r in server.requests if ASKED not in last(r.body))
        size = len(json.dumps(body)) // 4
        done = reads > 8
        step: Part = text("All read.") if done else call("read_file", {"path": f"f{reads - 1}.txt"})
        return [step, usage(input=size, output=10)]

    server.answer(reader)
    async with person(root, state, env=ENV, settings=options(server, compact_at=0.5)) as one:
        await one.new()
        assert (await one.turn("Read all."))["stopReason"] == "end_turn"
        sizes = [len(json.dumps(r.body["messages"])) // 4 for r in server.requests]
        assert max(sizes) < 0.8 * 20_000
        compactions = [r for r in server.requests if ASKED in last(r.body)]
        assert 1 <= len(compactions) <= 3
        after = server.requests[-1].body["messages"]
        assert SUMMARY in json.dumps(after[0])
        assert "Read all." in json.dumps(after[0])


@pytest.mark.req("C031")
async def test_a_conversation_that_the_provider_finds_too_long_goes_on(
    root: Path, state: Path, server: AnthropicServer
) -> None:
    too_long = Fault("400", message="prompt is too long: 210000 tokens > 200000 maximum")
    async with person(root, state, env=ENV, settings=options(server)) as one:
        await one.new()
        server.reply(text("Fine."))
        await one.turn("Remember: use tabs.")
        server.fault(too_long.name, message=too_long.message)
        server.answer(model)
        assert (await one.turn("go on", "p2"))["stopReason"] == "end_turn"
        final = everything(server.requests[-1].body)
        assert "Remember: use tabs." in final
        assert SUMMARY in final
        # One that is too long even so is an error, not a loop.
        count = len(server.requests)
        server.answer(lambda body: too_long if ASKED not in last(body) else [text(SUMMARY)])
        end = await one.turn("again", "p3")
        assert end["stopReason"] == "error"
        assert "too long" in end["error"]["message"]
        assert len(server.requests) - count <= 5


@pytest.mark.parametrize("nonsense", [False, True])
async def test_when_no_summary_can_ever_be_had_the_log_still_knows(
    root: Path, state: Path, server: AnthropicServer, nonsense: bool
) -> None:
    def refuse(body: Any) -> Any:
        if ASKED not in last(body):
            return model(body)
        if nonsense:
            return [text("Let me look first."), stop("max_tokens")]
        return Fault("400", message="this content is not allowed")

    (root / "app.py").write_text("print('hello')\n")
    async with person(root, state, env=ENV, settings=options(server, retries=0)) as one:
        await one.new()
        await work(one, server)
        server.answer(refuse)
        await one.request("session/compact")
        said = await one.update("notice", lambda u: u["title"] == "Compacted")
        assert "The model wrote no summary" in said["description"]
        await one.end()
        await one.turn("Which constraints?", "p2")
        known = one.said().rpartition("I know: ")[2]
        assert known == "Never touch vendor/; not on Fridays; app.py: changed; [>] tests"


async def test_a_fault_that_may_pass_leaves_the_conversation_as_it_is(
    root: Path, state: Path, server: AnthropicServer
) -> None:
    (root / "app.py").write_text("print('hello')\n")
    async with person(root, state, env=ENV, settings=options(server, retries=0)) as one:
        await one.new()
        await work(one, server)
        server.answer(lambda body: Fault("401") if ASKED in last(body) else model(body))
        await one.request("session/compact")
        said = await one.update("notice", lambda u: u["title"] == "Not compacted")
        assert "HTTP 401" in said["description"]
        await one.end()
        await one.turn("Which port?", "p2")
        assert "I read." in everything(server.requests[-1].body)


async def test_a_wrong_configuration_costs_nothing_and_is_said_once(
    root: Path, state: Path, server: AnthropicServer
) -> None:
    async with person(root, state, env=ENV, settings=options(server)) as one:
        await one.new()
        server.reply(text("Fine."))
        await one.turn("Hello.")
        (state / "magy.toml").write_text("[modle]\n")
        count = len(server.requests)
        await one.request("session/compact")
        said = await one.update("notice", lambda u: u["title"] == "Not compacted")
        assert "did you mean 'model'" in said["description"]
        await one.end()
        await asyncio.sleep(3)  # longer than it takes the server to look again
        assert len(server.requests) == count
        (state / "magy.toml").write_text("")
        server.answer(model)
        assert (await one.turn("Go on.", "p2"))["stopReason"] == "end_turn"


async def test_what_was_just_asked_is_never_summed_up(
    root: Path, state: Path, server: AnthropicServer
) -> None:
    """Nor is what it brings with it: the model has not answered it yet."""
    pasted = "".join(f"line {n}\n" for n in range(9_000))
    async with person(root, state, env=ENV, settings=options(server)) as one:
        await one.new()
        server.reply(text("Fine. " + "word " * 9_000))
        await one.turn("Tell me a long story.")
        server.answer(model)
        prompt = [{"type": "text", "text": "And what is in line 4444?"},
                  {"type": "resource", "resource": {"uri": "x:", "text": pasted}}]  # fmt: skip
        await one.request("session/prompt", messageId="p2", prompt=prompt)
        await one.end()
        assert any(ASKED in last(request.body) for request in server.requests)
        assert "line 4444" in last(server.requests[-1].body)


async def test_cancelling_a_compaction_keeps_the_conversation_and_what_waits(
    root: Path, state: Path, server: AnthropicServer
) -> None:
    async with person(root, state, env=ENV, settings=options(server)) as one:
        await one.new()
        server.reply(text("Fine."))
        await one.turn("Hello.")
        server.answer(lambda body: [hang()] if ASKED in last(body) else [text("Yes.")])
        await one.request("session/compact")
        await one.ask("delete everything", "p2")
        await one.ask("what else?", "p3")
        assert (await one.request("session/cancel", turnId="p2"))["cancelled"]
        assert (await one.request("session/cancel"))["cancelled"]
        await one.update("notice", lambda u: u["title"] == "Not compacted")
        await one.end()
        await one.end()
        final = everything(server.requests[-1].body)
        assert "what else?" in final and "delete everything" not in final


@pytest.mark.req("A114", "G024")
async def test_a_compaction_counts_for_the_turn(
    root: Path, state: Path, server: AnthropicServer
) -> None:
    settings = options(server) | {"limits": {"tokens": 4_000}}
    too_long = Fault("400", message="prompt is too long")
    async with person(root, state, env=ENV, settings=settings) as one:
        await one.new()
        server.reply(text("Fine."))
        await one.turn("Hello.")
        server.fault(too_long.name, message=too_long.message)
        server.answer(
            lambda body: [text(SUMMARY), usage(input=5_000)] if ASKED in last(body) else [text("x")]
        )
        assert (await one.turn("go on", "p2"))["_meta"]["magy"]["stop"] == "max_turn_tokens"


async def test_there_may_be_nothing_to_compact(
    root: Path, state: Path, server: AnthropicServer
) -> None:
    async with person(root, state, env=ENV, settings=options(server)) as one:
        await one.new()
        with pytest.raises(RpcError, match="nothing to compact") as refused:
            await one.request("session/compact")
        assert refused.value.data == {"reason": InvalidRequest.reason}


@pytest.mark.req("E088", "E001")
async def test_a_session_gets_a_title(root: Path, state: Path, server: AnthropicServer) -> None:
    def answer(body: Any) -> Sequence[Part]:
        if body.get("tools"):
            return [text("Mended.")]
        return [text('"Parser mended."\nThat is the title.')]

    server.answer(answer)
    settings = {**options(server), "titles": True}
    async with person(root, state, env=ENV, settings=settings) as one:
        await one.new()
        await one.turn("The parser drops the last line. Please mend it.")
        named = await one.update("session_info_update", lambda u: u["title"])
        assert named["title"] == "Parser mended"
        listed = (await one.request("session/list"))["sessions"]
        assert [info["title"] for info in listed] == ["Parser mended"]
        await one.turn("Thanks.", "p2")
        assert sum("tools" not in r.body for r in server.requests) == 1


async def test_a_session_whose_first_turns_failed_gets_a_title(
    root: Path, state: Path, server: AnthropicServer
) -> None:
    """Who has to find the right key and model first has failed more often than titles are tried."""
    settings = {**options(server), "titles": True}
    async with person(root, state, env=ENV, settings=settings) as one:
        await one.new()
        server.answer(lambda body: Fault("401"))
        for number in range(5):
            await one.turn("Hello?", f"p{number}")
        server.answer(lambda body: [text("Mended." if body.get("tools") else "Parser mended")])
        await one.turn("Mend the parser.", "p5")
        named = await one.update("session_info_update", lambda u: u["title"] != "Hello?")
        assert named["title"] == "Parser mended"


@pytest.mark.req("E089")
async def test_a_session_can_be_summed_up(root: Path, state: Path, server: AnthropicServer) -> None:
    (root / "app.py").write_text("print('hello')\n")
    async with person(root, state, env=ENV, settings=options(server)) as one:
        await one.new()
        await work(one, server)
        server.reply(text("# Say goodbye\n\nBecause it was asked for."), usage(input=10, output=10))
        said = await one.request("session/summarize")
        assert said == {"text": "# Say goodbye\n\nBecause it was asked for."}
        asked = server.requests[-1].body
        assert "tools" not in asked
        assert "goodbye" in last(asked)
        assert "not on Fridays" in last(asked)


@pytest.mark.req("E089")
async def test_what_was_compacted_can_be_summed_up_but_not_compacted_again(
    root: Path, state: Path, server: AnthropicServer
) -> None:
    async with person(root, state, env=ENV, settings=options(server)) as one:
        await one.new()
        server.answer(model)
        await one.turn("Hello.")
        await one.request("session/compact")
        await one.update("notice", lambda u: u["title"] == "Compacted")
        await one.end()
        with pytest.raises(RpcError, match="has not replied since the last time"):
            await one.request("session/compact")
        server.reply(text("# Greetings"))
        assert await one.request("session/summarize") == {"text": "# Greetings"}
        assert SUMMARY in everything(server.requests[-1].body)


@pytest.mark.parametrize("parts", [(text("I th"), hang()), (thinking("Hm."), hang())])
async def test_a_cancelled_request_is_not_for_nothing(
    root: Path, state: Path, server: AnthropicServer, parts: Sequence[Part]
) -> None:
    """What it cost nobody said, and that is said."""
    server.reply(*parts)
    async with person(root, state, env=ENV, settings=options(server)) as one:
        await one.new()
        await one.ask("Hello.")
        await one.client.wait_for(
            "magy/session/update", lambda p: "chunk" in p["update"]["sessionUpdate"]
        )
        await one.request("session/cancel")
        await one.end()
        summary = (await one.request("session/subscribe", **{"from": {"tail": 0}}))["summary"]
        assert summary["cost"]["unpriced"] == 1
        server.reply(text("Hello again."))
        assert (await one.turn("Go on.", "p2"))["stopReason"] == "end_turn"
