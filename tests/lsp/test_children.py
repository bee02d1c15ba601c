"""`magy/child/*` through the real process: what it does, and what of it is told."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.lsp.family import SESSION, RpcError, parent


@pytest.mark.req("E117")
async def test_a_child_does_its_task_beside_its_parent(root: Path, state: Path) -> None:
    async with parent(root, state) as one:
        await one.bypass()
        id = await one.spawn("one", "slow: look around", name="Look around", agent="general")
        assert id == f"{SESSION}/one"
        running = await one.state(id, "running")
        assert (running["parentSessionId"], running["depth"]) == (SESSION, 1)
        assert (running["name"], running["agent"]) == ("Look around", "general")
        await one.ask("hello")  # its parent is not held up
        await one.end()
        assert one.said() == "Good day."
        await one.go()
        done = await one.state(id, "completed")
        assert done["said"].startswith("Slow is done")
        assert (done["turns"], done["stopReason"]) == (1, "end_turn")
        assert done["usage"]["totalTokens"] > 0 and done["treeUsage"] == done["usage"]


async def test_a_child_is_a_session_that_can_be_watched(root: Path, state: Path) -> None:
    async with parent(root, state) as one:
        id = await one.spawn("one", "quick")
        await one.wait()
        result = await one.client.request(
            "magy/session/subscribe", {"sessionId": id, "from": {"seq": 0}}
        )
        info = result["summary"]["session"]
        assert (info["sessionId"], info["parentSessionId"]) == (id, SESSION)
        opened = result["events"][0]["update"]
        assert opened["_meta"]["magy"] == {"parentSessionId": SESSION, "toolCallId": None}
        said = [e["update"] for e in result["events"] if e["update"]["sessionUpdate"] ==
                "agent_message"]  # fmt: skip
        assert said[0]["content"][0]["text"] == "Quick is done."
        listed = (await one.request("session/list"))["sessions"]
        assert [one["sessionId"] for one in listed] == [
            SESSION
        ]  # children are no rows of their own
        mail = await one.update("_magy_mail")
        assert mail["mail"]["sender"] == id and mail["report"]["status"] == "completed"
        assert mail["content"] == [{"type": "text", "text": "Quick is done."}]


async def test_a_spawn_may_be_sent_again(root: Path, state: Path) -> None:
    prompt = [{"type": "text", "text": "quick"}]
    async with parent(root, state) as one:
        again = {"parentSessionId": SESSION, "requestKey": "same", "prompt": prompt}
        answers = await asyncio.gather(*(one.child("spawn", **again) for _ in range(4)))
        assert sorted(answer["known"] for answer in answers) == [False, True, True, True]
        waited = await one.wait()
        assert [r["child"]["turns"] for r in waited["results"]] == [1]
    async with parent(root, state, new=False) as one:
        answer = await one.child("spawn", **again)
        assert answer["known"] and answer["child"]["state"] == "completed"


@pytest.mark.req("E119", "E133")
async def test_a_wait_that_times_out_stops_nobody_and_misses_nothing(
    root: Path, state: Path
) -> None:
    async with parent(root, state) as one:
        await one.bypass()
        slow = await one.spawn("slow", "slow")
        await one.state(slow, "running")
        before = await one.wait(slow, timeoutMs=50)
        assert before["timedOut"] and before["results"][0]["child"]["state"] == "running"
        await one.go()
        await one.state(slow, "completed")
        # It ended between the two waits.
        after = await one.wait(slow, afterSeq=before["seq"])
        (result,) = after["results"]
        assert not after["timedOut"] and result["text"].startswith("Slow is done")
        assert result["report"]["stopReason"] == "end_turn" and result["seq"] > before["seq"]
        # And is not told again to who knows it.
        again = await one.wait(slow, afterSeq=after["seq"], timeoutMs=50)
        assert again["timedOut"]


async def test_any_and_all(root: Path, state: Path) -> None:
    async with parent(root, state) as one:
        await one.bypass()
        slow = await one.spawn("slow", "slow")
        quick = await one.spawn("quick", "quick")
        first = await one.wait(until="any")
        states = {r["child"]["sessionId"]: r["child"]["state"] for r in first["results"]}
        assert states[quick] == "completed" and states[slow] in ("running", "queued")
        _, all_done = one.client.start(
            "magy/child/wait", {"parentSessionId": SESSION, "until": "all"}
        )
        await one.go()
        both = await all_done
        assert {r["child"]["state"] for r in both["results"]} == {"completed"}


@pytest.mark.req("F003", "E012")
async def test_a_wait_goes_on_over_a_restart(root: Path, state: Path) -> None:
    """The server is killed while a child works; who asks again with the cursor misses nothing."""
    async with parent(root, state) as one:
        await one.bypass()
        slow = await one.spawn("slow", "slow")
        await one.state(slow, "running")
        cursor = (await one.wait(slow, timeoutMs=0))["seq"]
        _, waiting = one.client.start("magy/child/wait", {"sessionIds": [slow]})
        one.client.process.kill()
        with pytest.raises(ConnectionError):
            await waiting
    await asyncio.to_thread((root / "go").touch)
    async with parent(root, state, new=False) as one:
        waited = await one.wait(slow, afterSeq=cursor)
        (result,) = waited["results"]
        assert result["child"]["state"] == "completed" and result["seq"] > cursor


async def test_a_wait_can_be_cancelled(root: Path, state: Path) -> None:
    async with parent(root, state) as one:
        await one.bypass()
        slow = await one.spawn("slow", "slow")
        await one.state(slow, "running")
        id, waiting = one.client.start("magy/child/wait", {"sessionIds": [slow]})
        one.client.cancel(id)
        with pytest.raises(RpcError) as failure:
            await waiting
        assert failure.value.code == -32800
        assert (await one.states())["slow"] == "running"  # nothing else was stopped
        one.client.start("magy/child/wait", {"sessionIds": [slow]})
        await one.go()
        # The end of the connection ends the other one: leaving the block is in order.


@pytest.mark.req("E118", "A010")
async def test_a_child_is_spoken_to(root: Path, state: Path) -> None:
    async with parent(root, state) as one:
        await one.bypass()
        slow = await one.spawn("slow", "slow")
        await one.state(slow, "running")
        more = {"sessionId": slow, "prompt": [{"type": "text", "text": "be brief"}]}
        sent = await one.child("send", requestKey="m1", delivery="queue", **more)
        assert sent == {"messageId": "m1", "outcome": "queued"}
        assert (await one.child("send", requestKey="m1", **more))["outcome"] == "known"
        await one.go()
        done = await one.client.wait_for(
            "magy/child/changed", lambda p: p["child"]["turns"] == 2 and
            p["child"]["state"] == "completed"
        )  # fmt: skip
        assert done["child"]["said"] == "Brief."
        # It has ended and takes another task.
        sent = await one.child("send", requestKey="m2", **more)
        assert sent["outcome"] == "started"


async def test_a_child_is_interrupted(root: Path, state: Path) -> None:
    async with parent(root, state) as one:
        await one.bypass()
        slow = await one.spawn("slow", "slow")
        await one.state(slow, "running")
        prompt = [{"type": "text", "text": "be brief"}]
        await one.child("send", sessionId=slow, requestKey="m", prompt=prompt, delivery="interrupt")
        done = await one.state(slow, "completed")
        assert done["said"] == "Brief." and not (root / "go").exists()


async def test_signals_and_data_need_no_model(root: Path, state: Path) -> None:
    async with parent(root, state) as one:
        await one.bypass()
        slow = await one.spawn("slow", "slow")
        await one.state(slow, "running")
        for key, what in (("d", {"data": {"n": 1}}), ("p", {"signal": "ping"})):
            sent = await one.child("send", sessionId=slow, requestKey=key, **what)
            assert sent["outcome"] == "delivered"
            again = await one.child("send", sessionId=slow, requestKey=key, **what)
            assert again["outcome"] == "known"
        beat = await one.update("_magy_mail", lambda u: u["mail"]["sender"] == slow)
        assert beat["body"] == {"signal": "heartbeat"}
        await one.child("send", sessionId=slow, requestKey="c", signal="cancel")
        assert (await one.state(slow, "cancelled"))["stopReason"] == "cancelled"


@pytest.mark.req("E120")
async def test_children_are_listed_as_a_tree_page_by_page(root: Path, state: Path) -> None:
    async with parent(root, state) as one:
        a = await one.spawn("a", "quick")
        await one.spawn("b", "quick")
        deep = await one.spawn("deep", "quick", parent=a)
        await one.wait()
        await one.wait(deep)
        assert list(await one.states()) == ["a", "a/deep", "b"]
        assert list(await one.states(recursive=False)) == ["a", "b"]
        first = await one.child("list", parentSessionId=SESSION, limit=2)
        assert [child["depth"] for child in first["children"]] == [1, 2]
        rest = await one.child("list", parentSessionId=SESSION, limit=2, cursor=first["nextCursor"])
        assert [child["sessionId"] for child in rest["children"]] == [f"{SESSION}/b"]
        assert rest["nextCursor"] is None
        everywhere = await one.child("list")
        assert len(everywhere["children"]) == 3
        tree = next(c for c in everywhere["children"] if c["sessionId"] == a)
        assert tree["treeUsage"]["totalTokens"] > tree["usage"]["totalTokens"]


@pytest.mark.req("E121")
async def test_a_child_is_closed(root: Path, state: Path) -> None:
    async with parent(root, state) as one:
        await one.bypass()
        slow = await one.spawn("slow", "slow")
        deep = await one.spawn("deep", "slow", parent=slow)
        await one.state(slow, "running")
        await one.state(deep, "running")
        closed = await one.child("close", sessionId=slow, mode="cancel", reason="not needed")
        assert closed == {"previousState": "running", "closed": [slow, deep]}
        assert (await one.state(slow, "closed"))["stopReason"] == "cancelled"
        again = await one.child("close", sessionId=slow, mode="cancel")
        assert (again["previousState"], again["closed"]) == ("closed", [])
        said = await one.refused(
            "send", sessionId=slow, requestKey="m", prompt=[{"type": "text", "text": "quick"}]
        )
        assert "is closed (not needed)" in said and "fork" in said
        said = await one.refused("spawn", parentSessionId=slow, requestKey="k",
                                 prompt=[{"type": "text", "text": "quick"}])  # fmt: skip
        assert "is closed and cannot spawn" in said
        listed = await one.child("list", parentSessionId=SESSION)
        assert listed["children"] == []


async def test_closing_may_let_the_work_be_finished(root: Path, state: Path) -> None:
    async with parent(root, state) as one:
        await one.bypass()
        slow = await one.spawn("slow", "slow")
        await one.state(slow, "running")
        closed = await one.child("close", sessionId=slow)
        assert closed == {"previousState": "running", "closed": [slow]}
        await one.go()
        done = await one.state(slow, "closed")
        assert done["said"].startswith("Slow is done")
        assert [r["text"][:12] for r in (await one.wait(slow))["results"]] == ["Slow is done"]


@pytest.mark.req("C047")
async def test_limits_are_changed_while_children_run(root: Path, state: Path) -> None:
    async with parent(root, state, settings={"spawn": {"max_concurrent": 1}}) as one:
        await one.bypass()
        held = await one.child("limits")
        assert (held["maxConcurrent"], held["working"]) == (1, 0)
        first = await one.spawn("first", "slow")
        await one.state(first, "running")
        second = await one.spawn("second", "slow")
        await one.state(second, "queued")
        changed = await one.child("limits", maxConcurrent=2, maxDepth=999)
        assert (changed["maxConcurrent"], changed["maxDepth"]) == (2, 3)
        assert changed["clamped"] == ["spawn.max_depth: 999 becomes 3 (1 to 3)."]
        await one.state(second, "running")
        await one.go()
        waited = await one.wait(until="all")
        assert {r["child"]["state"] for r in waited["results"]} == {"completed"}
        assert (await one.child("limits"))["working"] == 0


async def test_health_asks_no_model(root: Path, state: Path) -> None:
    async with parent(root, state) as one:
        await one.bypass()
        slow = await one.spawn("slow", "slow")
        await one.state(slow, "running")
        found = (await one.client.request("magy/agent/health", {}))["agents"]
        health: dict[str, Any] = next(a for a in found if a["sessionId"] == slow)
        assert (health["state"], health["queueDepth"], health["errors"]) == ("running", 0, 0)
        assert health["memory"] > 0 and health["lastProgress"] is not None
        await one.go()
        await one.wait()
