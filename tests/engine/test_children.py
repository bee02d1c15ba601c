"""Children: spawned, listed, closed, stopped and deleted, on the real composition."""

from __future__ import annotations

import asyncio
import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from magy_server.core.agents.child import ChildInfo, Spawn
from magy_server.core.agents.mail import Closed
from magy_server.core.agents.narrowing import narrowing
from magy_server.core.errors import InvalidRequest, MagyError, NotFound
from magy_server.core.events import CancelAsked, Granted, Opened, Prompted, Replied
from magy_server.core.spawn_settings import SpawnSettings
from magy_server.core.values import Limits, Text
from magy_server.team.children import Children

from .home import Home, home, mailed

HOLD = 'call: bash {"command": "sleep 600", "timeout": 600}\n'
SCRIPT = f"""
prompt: hello
text: Good day.

prompt: hold
{HOLD}---
text: Held.

prompt: work
text: Worked.
"""


def children(one: Home) -> Children:
    return one.service.children


def wanted(text: str = "work", key: str = "job", **fields: Any) -> Spawn:
    """As a person in this process wants it."""
    about = {"agent": "general", "by": "me", **fields}
    return Spawn(key=key, prompt=(Text(text=text),), **about)


async def spawn(one: Home, parent: str = "s", text: str = "work", **fields: Any) -> ChildInfo:
    child, known = await children(one).spawn(parent, wanted(text, **fields))
    assert not known
    return child


async def refused(one: Home, parent: str = "s", **fields: Any) -> str:
    """The sentence; nothing is left behind."""
    before = (await one.world.store.streams("session/", limit=200)).items
    with pytest.raises(MagyError) as error:
        await children(one).spawn(parent, wanted(**fields))
    after = (await one.world.store.streams("session/", limit=200)).items
    assert {info.stream for info in after} == {info.stream for info in before}
    return error.value.message


async def working(one: Home, id: str) -> None:
    """Until a command of it runs."""
    await one.until(id, lambda s: s.turn and any(c.started for c in s.turn.calls.values()))


def calls(*spawns: dict[str, Any]) -> str:
    return "".join(f"call: spawn_agent {json.dumps(about)}\n" for about in spawns)


async def bypassed(one: Home, id: str = "s") -> None:
    await one.new(id)
    await one.service.configure(id, "bypass", "on")


# --- spawn ----------------------------------------------------------------------------------------


async def test_one_key_is_one_child_however_often_and_at_once_it_is_asked_for(
    tmp_path: Path,
) -> None:
    async with home(tmp_path, SCRIPT) as one:
        await one.new()
        found = await asyncio.gather(*(children(one).spawn("s", wanted()) for _ in range(5)))
        assert [known for _, known in found] == [False, True, True, True, True]
        assert {child.session for child, _ in found} == {"s/job"}
        await one.rested("s/job")
        events = await one.events("s/job")
        (task,) = [event for event in events if isinstance(event, Prompted)]
        assert (task.id, task.run) == ("s/job:task", "")
    async with home(tmp_path, SCRIPT) as again:
        child, known = await children(again).spawn("s", wanted())
        assert known and child.said == "Worked."
        for other in (wanted("something else"), replace(wanted(), agent="plan")):
            with pytest.raises(InvalidRequest, match="A child 's/job' with another task"):
                await children(again).spawn("s", other)


async def test_what_a_child_is_made_of(tmp_path: Path) -> None:
    async with home(tmp_path, SCRIPT) as one:
        (one.root / "sub").mkdir()
        await one.new()
        await one.service.configure("s", "review", "propose")
        await spawn(
            one, name="A job", cwd=str(one.root / "sub"), limits=Limits(requests=3, repeats=0),
            rules=narrowing({"bash": {"git push *": "deny"}}, ()), model="scripted/other",
        )  # fmt: skip
        state = await one.rested("s/job")
        opened = state.opened
        assert opened and opened.rules
        assert (opened.parent, opened.call, opened.title) == ("s", "", "A job")
        assert (opened.cwd, opened.root) == (str(one.root / "sub"), str(one.root))
        assert (state.model, state.review, state.agent) == ("scripted/other", "propose", "general")
        assert state.conversation.briefing and state.conversation.briefing.limits.requests == 3
        assert (
            "spawned with"
            in (await one.world.texts({state.conversation.briefing.rules}))[
                state.conversation.briefing.rules
            ]
        )
        seen = await one.seen("s/job")
        assert "You are a child agent" in seen and str(one.root / "sub") in seen


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"key": "12.0"}, "a number, a dot and a number"),
        ({"key": "a/b"}, "cannot name a child"),
        ({"key": ".."}, "not only dots"),
        ({"key": "x" * 61}, "1 to 60"),
        ({"text": " \n"}, "The task is empty"),
        ({"agent": "nobody"}, "There is no agent 'nobody'. Agents are: "),
        ({"model": "nonsense"}, "model must be `provider/model`, not 'nonsense'."),
        ({"model": "nowhere/x"}, "nowhere"),
        ({"cwd": "sub"}, "not an absolute path"),
        ({"cwd": "/"}, "outside the workspace"),
        ({"limits": Limits(requests=-1)}, "limits: requests must be a number, 0 or more, not -1."),
        ({"limits": Limits(cost=float("nan"))}, "limits: cost must be a number"),
    ],
)
async def test_what_is_wrong_with_a_spawn_is_said_and_nothing_is_made(
    tmp_path: Path, fields: dict[str, Any], sentence: str
) -> None:
    async with home(tmp_path, SCRIPT) as one:
        await one.new()
        assert sentence in await refused(one, **fields)


async def test_a_directory_is_one_that_is_there_and_in_the_workspace(tmp_path: Path) -> None:
    async with home(tmp_path, SCRIPT) as one:
        (one.root / "file").touch()
        os.symlink("/etc", one.root / "out")
        await one.new()
        assert "does not exist" in await refused(one, cwd=str(one.root / "gone"))
        assert "is not a directory" in await refused(one, cwd=str(one.root / "file"))
        assert "outside the workspace" in await refused(one, cwd=str(one.root / "out"))


async def test_a_parent_that_is_unknown_or_closed_has_no_more_children(tmp_path: Path) -> None:
    async with home(tmp_path, SCRIPT) as one:
        assert "There is no session 's'" in await refused(one)
        await one.new()
        await spawn(one)
        await children(one).close("s/job")
        assert "'s/job' is closed and cannot spawn" in await refused(one, parent="s/job")


async def test_a_parent_that_is_closed_meanwhile_gets_none(tmp_path: Path) -> None:
    """Whatever the order: no child comes to be under a parent that has been closed before it."""
    async with home(tmp_path, SCRIPT) as one, home(tmp_path, SCRIPT) as other:
        await one.new()
        await spawn(one)
        await one.rested("s/job")
        spawning = [
            children(where).spawn("s/job", wanted(key=f"k{n}")) for n, where in
            enumerate([one, other, one, other])
        ]  # fmt: skip
        closing = children(other).close("s/job", "cancel")
        await asyncio.gather(*spawning, closing, return_exceptions=True)
        for child in await children(one).list("s/job", closed=True):
            assert child.status == "closed"
        (closed,) = [e for e in await one.events("s/job") if isinstance(e, Closed)]
        assert closed.mode == "cancel"


# --- context --------------------------------------------------------------------------------------

LONG = f"""
prompt: first
text: First answer.

prompt: second
call: read_file {{"path": "a.txt"}}
---
text: Second answer.

prompt: delegate
{
    calls(
        {"agent": "general", "prompt": "work alone"},
        {"agent": "general", "prompt": "work with all", "context": "all"},
        {"agent": "general", "prompt": "work with two", "context": "2"},
    )
}---
call: wait_agent {{}}
---
text: Done.

prompt: work
text: Worked.
"""


@pytest.mark.req("C016")
async def test_a_child_knows_as_much_of_its_parent_as_it_was_given(tmp_path: Path) -> None:
    async with home(tmp_path, LONG) as one:
        (one.root / "a.txt").write_text("contents\n")
        await bypassed(one)
        for number, text in enumerate(["first", "second", "delegate"], 1):
            await one.prompt("s", text, f"p{number}")
            await one.rested("s", number)
        request = next(
            e.content[0].id for e in await one.events("s")  # type: ignore[union-attr]
            if isinstance(e, Replied) and len(e.content) == 3
        ).partition(".")[0]  # fmt: skip
        alone, everything, two = [f"s/{request}.{n}" for n in range(3)]
        seen = await one.seen(alone)
        assert "work alone" in seen and "answer." not in seen
        seen = await one.seen(everything)
        assert "First answer." in seen and "Second answer." in seen and "contents" in seen
        assert "You are the agent that this call spawned" in seen
        assert "work with two" in seen and "not run" in seen, (
            "the calls after it, which are not its"
        )
        seen = await one.seen(two)
        assert "First answer." not in seen and "Second answer." in seen
        assert "you see the latest 2 turns" in seen
        for id in (alone, everything, two):
            state, info = await one.state(id), await children(one).info(id)
            assert (info.turns, info.spent.requests, info.status) == (1, 1, "completed")
            assert not state.grants and not state.bypass and state.agent == "general"
            assert [mail.text for mail in [m.payload for m in mailed(await one.events("s"))]
                    if mail.kind == "text"] == ["Worked."] * 3  # fmt: skip


async def test_what_a_parent_was_granted_and_chose_is_not_copied(tmp_path: Path) -> None:
    """It holds as long as it holds for the parent, and no longer."""
    script = f'{LONG}\nprompt: run\ncall: bash {{"command": "true && make x"}}\n---\ntext: ok'
    async with home(tmp_path, script) as one:
        await bypassed(one)
        await one.service.configure("s", "title", "Mine")
        await one.prompt("s", "first")
        await one.rested("s")
        await spawn(one, context=-1)
        state = await one.rested("s/job", 2)
        assert not state.bypass and state.options["title"] == "work"
        assert not [e for e in await one.events("s/job") if isinstance(e, Granted)]
        assert state.spending.cost == 0 and state.spending.requests == 1


async def test_what_is_copied_is_not_audited_as_if_the_child_had_done_it(tmp_path: Path) -> None:
    async with home(tmp_path, LONG) as one:
        (one.root / "a.txt").write_text("contents\n")
        await one.new()
        await one.prompt("s", "second")
        await one.rested("s")
        await spawn(one, context=-1)
        await one.rested("s/job", 2)
    (file,) = (tmp_path / "state" / "audit").iterdir()
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    done = [(line["session_id"], line["event"]) for line in lines]
    assert ("s", "finished") in done and ("s/job", "opened") in done
    assert ("s/job", "finished") not in done


async def test_ids_of_calls_do_not_collide_with_those_of_the_parent(tmp_path: Path) -> None:
    script = f'{LONG}\nprompt: again\ncall: read_file {{"path": "a.txt"}}\n---\ntext: Read.'
    async with home(tmp_path, script) as one:
        (one.root / "a.txt").write_text("contents\n")
        await one.new()
        await one.prompt("s", "second")
        await one.rested("s")
        await spawn(one, text="again", context=-1)
        await one.rested("s/job", 2)
        ids = [
            part.id for event in await one.events("s/job") if isinstance(event, Replied)
            for part in event.content if part.type == "call"
        ]  # fmt: skip
        assert len(ids) == 2 and len(set(ids)) == 2


# --- limits ---------------------------------------------------------------------------------------


@pytest.mark.req("C021")
async def test_each_limit_says_which_it_is_and_what_is_there(tmp_path: Path) -> None:
    async with home(tmp_path, SCRIPT) as one:
        await one.new()
        slots = one.service.slots
        slots.configure(SpawnSettings(max_depth=1, max_children=2, max_total=3))
        await spawn(one, text="hold", key="a", name="Alpha")
        assert "spawn.max_depth" in await refused(one, parent="s/a")
        await spawn(one, text="hold", key="b", name="Beta")
        said = await refused(one, key="c")
        assert "spawn.max_children" in said and "s/a (Alpha)" in said and "s/b (Beta)" in said
        await one.new("t")
        await spawn(one, "t", text="hold", key="a")
        assert "3 children are at work" in await refused(one, parent="t", key="b")
        await children(one).close("s/a", "cancel")
        await one.until("s/a", lambda s: s.turn is None)
        await spawn(one, key="c")


async def test_limits_hold_for_spawns_at_once(tmp_path: Path) -> None:
    async with home(tmp_path, SCRIPT) as one:
        await one.new()
        found = await asyncio.gather(
            *(children(one).spawn("s", wanted("hold", f"k{n}")) for n in range(9)),
            return_exceptions=True,
        )
        assert sum(isinstance(one, InvalidRequest) for one in found) == 5
        assert len(await children(one).list("s")) == 4


# --- looking --------------------------------------------------------------------------------------


async def test_a_list_has_each_after_its_parent_with_what_the_tree_took(tmp_path: Path) -> None:
    async with home(tmp_path, SCRIPT) as one:
        await one.new()
        for parent, key in (("s", "b"), ("s", "a"), ("s/b", "x"), ("s/b", "y")):
            await spawn(one, parent, key=key)
            await one.rested(f"{parent}/{key}")
        found = await children(one).list("s")
        assert [c.session for c in found] == ["s/b", "s/b/x", "s/b/y", "s/a"]
        above, below = found[0], found[1:3]
        assert above.spent.requests == 1 and above.tree.requests == 3
        own = [c.spent.usage.total for c in (above, *below)]
        assert above.tree.usage.total == sum(own) and min(own) > 0
        assert [c.depth for c in found] == [1, 2, 2, 1]
        assert [c.session for c in await children(one).list("s", recursive=False)] == ["s/b", "s/a"]
        await children(one).close("s/b/x")
        assert "s/b/x" not in [c.session for c in await children(one).list("s")]
        assert "s/b/x" in [c.session for c in await children(one).list("s", closed=True)]
        await one.new("t")
        await spawn(one, "t", key="a")
        assert {c.session for c in await children(one).list(None)} == {
            "s/b", "s/b/y", "s/a", "t/a",
        }  # fmt: skip
        with pytest.raises(NotFound, match="There is no session 'u'"):
            await children(one).list("u")


async def test_questions_are_counted_upwards(tmp_path: Path) -> None:
    script = f'{SCRIPT}\nprompt: make\ncall: bash {{"command": "make x"}}\n---\ntext: Made.'
    async with home(tmp_path, script) as one:
        await one.new()
        await spawn(one, text="work", key="a")
        await spawn(one, "s/a", text="make", key="b")
        await one.until("s/a/b", lambda s: s.questions)
        await one.until("s/a", lambda s: s.turn is None and not s.queue.waiting)
        info = await children(one).info("s/a")
        assert (info.questions, info.status) == (1, "completed")
        info = await children(one).info("s/a/b")
        assert (info.questions, info.status, info.said) == (1, "waiting", "make")


# --- the end --------------------------------------------------------------------------------------


async def test_close_says_how_it_was_and_what_was_closed(tmp_path: Path) -> None:
    async with home(tmp_path, SCRIPT) as one:
        await one.new()
        await spawn(one, key="a")
        await one.rested("s/a")
        await spawn(one, "s/a", text="hold", key="b")
        await working(one, "s/a/b")
        assert await children(one).close("s/a", reason="enough") == ("completed", ["s/a", "s/a/b"])
        assert (await children(one).info("s/a/b")).status == "running", "it may finish"
        assert await children(one).close("s/a") == ("closed", [])
        assert await children(one).close("s/a/b", "cancel") == ("running", ["s/a/b"])
        state = await one.until("s/a/b", lambda s: s.turn is None)
        assert state.last_stop == "cancelled"
        with pytest.raises(InvalidRequest, match="closed"):
            await one.prompt("s/a", "more")
        with pytest.raises(NotFound, match="is not a child"):
            await children(one).close("s")
        with pytest.raises(NotFound, match="There is no child 's/zz'"):
            await children(one).close("s/zz")


async def test_a_prompt_and_a_close_at_once(tmp_path: Path) -> None:
    """The prompt came first and is answered, or it is refused: nothing waits for ever."""
    async with home(tmp_path, SCRIPT) as one, home(tmp_path, SCRIPT) as other:
        await one.new()
        await spawn(one)
        await one.rested("s/job")
        prompts = [where.prompt("s/job", "work", f"q{n}") for n, where in
                   enumerate([one, other] * 3)]  # fmt: skip
        closing = children(other).close("s/job")
        done = await asyncio.gather(*prompts, closing, return_exceptions=True)
        refusals = sum(isinstance(answer, InvalidRequest) for answer in done)
        state = await one.until("s/job", lambda s: s.closed and not s.turn and not s.queue.waiting)
        assert len(state.queue.seqs) == 1 + 6 - refusals


DELEGATING = f"""
prompt: delegate
{calls({"agent": "general", "prompt": "hold on"}, {"agent": "general", "prompt": "hold tight"})}---
call: wait_agent {{}}
---
text: Done.

prompt: hold
{HOLD}---
text: Held.
"""


async def delegated(one: Home) -> list[str]:
    await bypassed(one)
    await one.prompt("s", "delegate")
    await one.until("s", lambda s: s.turn and s.turn.reply and "wait_agent" in str(s.turn.reply))
    ids = [child.session for child in await children(one).list("s")]
    assert len(ids) == 2
    for id in ids:
        await working(one, id)
    return ids


async def test_cancel_stops_what_models_spawned_and_not_what_a_person_did(tmp_path: Path) -> None:
    async with home(tmp_path, DELEGATING) as one:
        spawned = await delegated(one)
        mine = await spawn(one, text="hold", key="mine")
        await working(one, mine.session)
        assert await one.service.cancel("s", None)
        await one.rested("s")
        for id in spawned:
            state = await one.until(id, lambda s: s.turn is None)
            assert state.last_stop == "cancelled" and state.closed is None
        assert (await children(one).info(mine.session)).status == "running"
        await one.service.close("s")
        await one.until(mine.session, lambda s: s.turn is None)


async def test_a_task_that_was_taken_back_is_cancelled(tmp_path: Path) -> None:
    async with home(tmp_path, SCRIPT) as one:
        one.service.slots.configure(SpawnSettings(max_concurrent=1))
        await one.new()
        await spawn(one, text="hold", key="a")
        await working(one, "s/a")
        queued = await spawn(one, text="work", key="b")
        assert queued.status == "queued"
        await children(one).stop_below("s", all=True)
        await one.until("s/a", lambda s: s.turn is None)
        assert [c.status for c in await children(one).list("s")] == ["cancelled", "cancelled"]
        assert not [e for e in await one.events("s/b") if isinstance(e, CancelAsked)]


async def test_a_parent_that_is_deleted_takes_its_children_along(tmp_path: Path) -> None:
    async with home(tmp_path, DELEGATING) as one:
        spawned = await delegated(one)
        assert await one.service.delete("s")
        for id in ("s", *spawned):
            assert not await one.world.store.head(f"session/{id}")
        assert "There is no session 's'" in await refused(one)
        assert not (await one.world.store.streams("session/", limit=50)).items


async def test_a_tree_that_runs_elsewhere_is_not_deleted(tmp_path: Path) -> None:
    async with home(tmp_path, SCRIPT) as one, home(tmp_path, SCRIPT) as other:
        await one.new()
        await spawn(one, text="hold")
        await working(one, "s/job")
        for id in ("s", "s/job"):
            with pytest.raises(InvalidRequest, match="Another process runs session"):
                await other.service.delete(id)
        assert (await children(one).info("s/job")).status == "running"


async def test_a_fork_of_a_child_is_nobodys_child(tmp_path: Path) -> None:
    async with home(tmp_path, SCRIPT) as one:
        await one.new()
        await spawn(one, rules=narrowing({"bash": "deny"}, ()), limits=Limits(requests=1))
        await one.rested("s/job")
        with pytest.raises(InvalidRequest, match="which only ids of children have"):
            await one.service.fork("s/job", "s/other", None)
        with pytest.raises(InvalidRequest, match="which only ids of children have"):
            await one.new("x/y")
        fork = await one.service.fork("s/job", "free", None)
        opened = fork.state.opened
        assert opened == Opened(
            root=str(one.root), cwd=str(one.root), agent="general", model=opened and opened.model,
            title="Fork of work", forked_from=("s/job", opened and opened.forked_from[1]),
        )  # fmt: skip
        assert opened.parent is None
        with pytest.raises(NotFound, match="is not a child"):
            await children(one).info("free")


# --- what a child inherits ------------------------------------------------------------------------

AGENT = """---
description: An agent
mode: all
{}
---
You work.
"""


@pytest.mark.req("E135")
async def test_a_child_inherits_what_neither_its_agent_nor_the_call_says(tmp_path: Path) -> None:
    agents = tmp_path / "state" / "agent"
    agents.mkdir(parents=True)
    (agents / "warm.md").write_text(AGENT.format("temperature: 0.7\nmodel: scripted/big"))
    (agents / "plain.md").write_text(AGENT.format(""))
    (agents / "cold.md").write_text(AGENT.format("temperature: 0.1\nmodel: scripted/small"))
    async with home(tmp_path, SCRIPT) as one:
        await one.service.open("s", str(one.root), str(one.root), "warm", "")
        await spawn(one, agent="plain", key="a", limits=Limits(requests=7, cost=1, repeats=0))
        await spawn(one, agent="cold", key="b")
        await spawn(one, agent="plain", key="c", model="scripted/mine")
        await one.rested("s/a")
        await spawn(one, "s/a", agent="plain", key="d", limits=Limits(requests=9, repeats=0))
        found = {}
        for id in ("s/a", "s/b", "s/c", "s/a/d"):
            briefing = (await one.rested(id)).conversation.briefing
            assert briefing
            found[id] = (briefing.model, briefing.temperature)
        assert found == {
            "s/a": ("scripted/big", 0.7), "s/b": ("scripted/small", 0.1),
            "s/c": ("scripted/mine", 0.7), "s/a/d": ("scripted/big", 0.7),
        }  # fmt: skip
        caps = (await one.state("s/a/d")).conversation.briefing.limits  # type: ignore[union-attr]
        assert (caps.requests, caps.cost) == (7, 1)


async def test_who_may_not_have_children_is_not_offered_what_is_for_parents(tmp_path: Path) -> None:
    async with home(tmp_path, SCRIPT) as one:
        await one.new()
        await one.prompt("s", "hello")
        await one.rested("s")
        await spawn(one, agent="build", key="a")
        await spawn(one, agent="general", key="b")
        await one.rested("s/a")
        await one.rested("s/b")
        await spawn(one, "s/a", agent="build", key="c")
        await spawn(one, "s/b", agent="build", key="d")

        async def tools(id: str) -> set[str]:
            briefing = (await one.rested(id)).conversation.briefing
            return {s.name for s in briefing.tools if "agent" in s.name} if briefing else set()

        every = {f"{name}_agent" for name in ("spawn", "wait", "close", "rate")}
        every |= {"send_agent_message", "list_agents"}
        assert await tools("s") == every == await tools("s/a")
        assert await tools("s/b") == set(), "its agent may not"
        assert await tools("s/a/c") == {"send_agent_message", "rate_agent"}, "it is too deep"
        assert await tools("s/b/d") == set(), "the one above it may not"
        assert "You cannot spawn agents" in await one.seen("s/a/c")
        assert "You may spawn agents yourself, one level below you" in await one.seen("s/a")


async def test_a_fork_of_a_closed_child_goes_on(tmp_path: Path) -> None:
    async with home(tmp_path, SCRIPT) as one:
        await one.new()
        await spawn(one)
        await one.rested("s/job")
        await children(one).close("s/job")
        await one.service.fork("s/job", "free", None)
        await one.prompt("free", "hello", "q1")
        state = await one.rested("free", 2)
        assert state.closed is None and "Good day." in await one.seen("free")
