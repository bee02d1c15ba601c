"""What is asked of children that cannot be: each says what is wrong, and nothing hangs."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.lsp.family import SESSION, RpcError, parent
from tests.patience import PATIENCE

TASK = [{"type": "text", "text": "quick"}]


def spawning(**params: Any) -> dict[str, Any]:
    return {"parentSessionId": SESSION, "requestKey": "k", "prompt": TASK, **params}


async def test_what_is_malformed_or_unknown(root: Path, state: Path) -> None:
    async with parent(root, state) as one:
        wrong: list[tuple[str, dict[str, Any], str]] = [
            ("spawn", spawning(parentSessionId="nobody"), "There is no session 'nobody'"),
            ("spawn", spawning(requestKey="12.0"), "requestKey"),
            ("spawn", spawning(requestKey="a/b"), "requestKey"),
            ("spawn", spawning(requestKey=".."), "requestKey"),
            ("spawn", spawning(requestKey="x" * 61), "requestKey"),
            ("spawn", spawning(agent="nobody"), "There is no agent 'nobody'"),
            ("spawn", spawning(prompt=[]), "prompt"),
            ("spawn", spawning(prompt=[{"type": "text", "text": " "}]), "empty"),
            ("spawn", spawning(model="nowhere/none"), "nowhere"),
            ("spawn", spawning(cwd="here"), "not an absolute path"),
            ("spawn", spawning(cwd="/"), "outside the workspace"),
            ("spawn", spawning(context={"turns": 0}), "context"),
            ("spawn", spawning(permissions={"bash": "maybe"}), "permissions"),
            ("spawn", spawning(permissions={"Bash": "deny"}), "Did you mean 'bash'? Known are: "),
            ("spawn", spawning(permissions={"nope": "deny"}), "no tool has the key 'nope'"),
            ("spawn", spawning(permissions={"edit": "allow"}), "edit only allows"),
            ("spawn", spawning(agent="title"), "cannot be spawned. Agents to spawn are: "),
            ("spawn", spawning(limits={"tokens": -1}), "limits.tokens must be 0 or more"),
            ("spawn", spawning(prompt=[{"type": "text", "text": "x" * (6 << 20)}] * 2),
             "it has 12.0 MB, and a prompt may have at most 10"),
            ("send", {"sessionId": "nobody", "requestKey": "k", "prompt": TASK}, "no agent"),
            ("send", {"sessionId": SESSION, "requestKey": "k"}, "takes one of"),
            ("send", {"sessionId": SESSION, "requestKey": "k", "data": {}, "signal": "ping"},
             "takes one of"),
            ("wait", {}, "needs `parentSessionId` or `sessionIds`"),
            ("wait", {"sessionIds": [SESSION]}, "is not a child"),
            ("wait", {"sessionIds": ["a/b", "c/d"]}, "children of different sessions"),
            ("wait", {"sessionIds": [f"{SESSION}/none"]}, "no agent"),
            ("wait", {"parentSessionId": "nobody"}, "no session"),
            ("wait", {"parentSessionId": SESSION, "timeoutMs": -1}, "timeoutMs"),
            ("wait", {"parentSessionId": SESSION, "timeoutMs": True}, "must be a whole number"),
            ("list", {"parentSessionId": "nobody"}, "There is no session 'nobody'"),
            ("list", {"parentSessionId": SESSION, "cursor": "old"}, "start over"),
            ("close", {"sessionId": f"{SESSION}/none"}, "There is no child"),
            ("close", {"sessionId": SESSION}, "is not a child"),
            ("close", {"sessionId": SESSION, "mode": "now"}, "mode"),
            ("limits", {"maxDepth": "deep"}, "maxDepth"),
        ]  # fmt: skip
        for verb, params, why in wrong:
            assert why in await one.refused(verb, **params), (verb, params)
        assert await one.states() == {}
        for method in ("new", "fork"):
            key = "sessionId" if method == "new" else "newSessionId"
            with pytest.raises(RpcError, match="a `/` is for children"):
                await one.request(f"session/{method}", **{key: f"{SESSION}/x"})


async def test_a_key_is_one_message_of_a_session(root: Path, state: Path) -> None:
    """Whichever way it came: as a prompt, as what is said to a child, or for machines."""
    other = [{"type": "text", "text": "hello"}]
    async with parent(root, state) as one:
        child = await one.spawn("one", "quick")
        for wrong in ({"prompt": other}, {"agent": "plan"}):
            said = await one.refused("spawn", **{**spawning(requestKey="one"), **wrong})
            assert "another task, agent or model" in said
        await one.spawn("one", "quick")
        ways: list[dict[str, Any]] = [
            {"prompt": TASK}, {"prompt": other}, {"data": {"n": 1}}, {"data": {"n": 2}},
            {"signal": "ping"},
        ]  # fmt: skip
        for nth, first in enumerate(ways):
            about = {"sessionId": child, "requestKey": f"m{nth}"}
            assert (await one.child("send", **about, **first))["outcome"] != "known"
            for way in ways:
                if way == first:
                    assert (await one.child("send", **about, **way))["outcome"] == "known"
                else:
                    said = await one.refused("send", **about, **way)
                    assert f"'m{nth}' is the key of another message" in said
        prompting = {"sessionId": child, "messageId": "m0"}
        again = await one.client.request("magy/session/prompt", {**prompting, "prompt": TASK})
        assert again["outcome"] == "known"
        with pytest.raises(RpcError, match="'m2' is the key of another message"):
            await one.client.request(
                "magy/session/prompt", {**prompting, "messageId": "m2", "prompt": TASK}
            )
        # A signal that is refused does nothing.
        await one.refused("send", sessionId=child, requestKey="m0", signal="shutdown")
        assert (await one.states())["one"] != "closed"


async def test_nobody_waits_for_who_waits_for_them(root: Path, state: Path) -> None:
    """Waiting goes down the tree only, so there is no cycle."""
    async with parent(root, state) as one:
        child = await one.spawn("one", "quick")
        await one.wait()
        for waiter in (child, "aside"):
            said = await one.refused("wait", parentSessionId=waiter, sessionIds=[SESSION])
            assert "no" in said
        said = await one.refused("wait", parentSessionId=child, sessionIds=[child])
        assert "so that no two agents wait for each other" in said


async def test_limits_say_which_they_are_and_what_is_there(root: Path, state: Path) -> None:
    settings = {"spawn": {"max_depth": 1, "max_children": 2}}
    async with parent(root, state, settings=settings) as one:
        a = await one.spawn("a", "quick", name="First")
        await one.spawn("b", "quick", name="Second")
        said = await one.refused("spawn", **spawning())
        assert "No more than 2 children at once (spawn.max_children)" in said
        assert f"{a} (First)" in said and f"{SESSION}/b (Second)" in said
        said = await one.refused("spawn", **spawning(parentSessionId=a))
        assert "spawn.max_depth" in said
        await one.child("close", sessionId=a)
        await one.spawn("c", "quick")  # what is closed does not count


async def test_the_parent_is_deleted_while_a_child_runs(root: Path, state: Path) -> None:
    async with parent(root, state) as one:
        await one.bypass()
        slow = await one.spawn("slow", "slow")
        await one.state(slow, "running")
        _, waiting = one.client.start("magy/child/wait", {"sessionIds": [slow]})
        assert (await one.request("session/delete"))["deleted"]
        with pytest.raises(RpcError):
            await asyncio.wait_for(waiting, PATIENCE)
        assert "no agent" in await one.refused("send", sessionId=slow, requestKey="k", prompt=TASK)
        assert (await one.child("list"))["children"] == []


@pytest.mark.req("E135")
async def test_a_child_may_only_do_less(root: Path, state: Path) -> None:
    async with parent(root, state, settings={"permission": {"edit": "allow"}}) as one:
        free = await one.spawn("free", "asks")
        held = await one.spawn("held", "asks", permissions={"edit": {"*.py": "deny"}})
        wide = await one.spawn("wide", "asks", agent="plan",
                               permissions={"edit": {"x/*": "ask", "*": "allow"}})  # fmt: skip
        await one.wait(until="all")
        outcomes = {}
        for id in (free, held, wide):
            found = await one.client.request("magy/session/events", {"sessionId": id, "after": 0})
            calls = [e["update"] for e in found["events"] if "toolCallId" in e["update"]]
            outcomes[id] = calls[-1]["_meta"]["magy"]["status"]
        assert outcomes == {free: "completed", held: "denied", wide: "denied"}


@pytest.mark.req("G024", "G026", "C016")
async def test_caps_of_a_child_and_what_it_took(root: Path, state: Path) -> None:
    async with parent(root, state) as one:
        await one.bypass()
        capped = await one.spawn("capped", "slow", limits={"requests": 1})
        await one.state(capped, "running")
        await one.go()
        failed = await one.state(capped, "failed")
        assert failed["stopReason"] == "max_turn_requests"
        (result,) = (await one.wait(capped))["results"]
        assert "while [ ! -e go ]" in result["text"] or "I begin." in result["text"]
        assert result["report"]["requests"] == 1
        assert result["report"]["usage"]["totalTokens"] == failed["usage"]["totalTokens"] > 0
        summary = (await one.request("session/subscribe"))["summary"]
        assert summary["usage"]["totalTokens"] == 0
        assert summary["treeUsage"] == failed["usage"]
        assert summary["treeCost"]["unpriced"] == 1
