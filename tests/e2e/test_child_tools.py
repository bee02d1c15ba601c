"""The tools for child agents, through the real process: what a model gets, and what a person is
asked and told."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.guard import SESSION
from tests.loopback.from_script import answers
from tests.patience import PATIENCE

from .harness import Person, RpcError, person
from .test_providers import KEY, SETTINGS, WIRES, Wire

HOLD = 'call: bash {"command": "echo begun >> begun; sleep 600", "timeout": 600}\n'


def call(tool: str, **arguments: Any) -> str:
    return f"call: {tool} {json.dumps(arguments)}\n"


def spawn(prompt: str, agent: str = "general", **arguments: Any) -> str:
    return call("spawn_agent", agent=agent, prompt=prompt, **arguments)


async def bypass(one: Person) -> None:
    await one.new()
    await one.request("session/set_config_option", configId="bypass", value="on")


async def children(one: Person, **params: Any) -> list[dict[str, Any]]:
    about = {"parentSessionId": SESSION, **params}
    found: list[dict[str, Any]] = (await one.client.request("magy/child/list", about))["children"]
    return found


async def until(condition: Any) -> None:
    async with asyncio.timeout(PATIENCE):
        while not condition():
            await asyncio.sleep(0.02)


def script(*sections: str) -> str:
    return "\n".join(sections)


# --- one whole delegation -------------------------------------------------------------------------

WHOLE = script(
    "prompt: delegate",
    spawn("count the beans", task_name="Beans"),
    "---\ntext: {{last}}\n" + call("list_agents") + "---\ntext: {{last}}\n" + call("wait_agent"),
    "---\ntext: {{last}}\n" + call("send_agent_message", job_id="4.0", message="and the peas?"),
    "---\n" + call("wait_agent", job_ids=["4.0"], until="any"),
    "---\ntext: {{last}}\n" + call("close_agent", job_id="4.0", reason="enough"),
    "---\ntext: {{last}}\n" + call("list_agents", include_closed=True),
    "---\ntext: {{last}}\n",
    "prompt: count the beans\ntext: 42 beans.\n",
    "prompt: and the peas\ntext: 7 peas.\n",
)


@pytest.mark.req("E117", "E134")
async def test_an_agent_delegates_and_uses_what_comes_back(root: Path, state: Path) -> None:
    async with person(root, state, WHOLE) as one:
        await one.new()
        await one.ask("delegate")
        first = await one.answer()
        assert first
        asked = await one.update("_magy_interaction", lambda u: "open" in u and "Send" in
                                 u["open"]["title"])  # fmt: skip
        await one.respond(asked["open"]["interactionId"])
        await one.end()
        job = f"{SESSION}/4.0"
        text, _, rest = one.said().partition("- ")
        spawned = json.loads(text)
        assert spawned == {
            "job_id": job, "status": spawned["status"],
            "next_action": {"tool": "wait_agent", "arguments": {"job_ids": [job]}},
        }  # fmt: skip
        assert spawned["status"] in ("queued", "running")
        assert rest.startswith(f"{job} (general: Beans): ")
        assert f"## {job} (general: Beans): completed\n42 beans." in rest
        assert f"## {job} (general: Beans): completed\n7 peas." in rest
        assert f"Closed: {job}. It was completed." in rest
        assert "7 peas.\n\nAgents to spawn:\n- explore: " in rest
        assert f"- {job} (general: Beans): closed" in rest
        (child,) = await children(one, includeClosed=True)
        assert (child["state"], child["turns"], child["waiting"]) == ("closed", 2, 0)
        assert await children(one) == []


@pytest.mark.req("E120", "E121")
async def test_a_list_changes_nothing_and_a_close_ends_what_runs(root: Path, state: Path) -> None:
    told = script(
        "prompt: delegate", spawn("hold"), spawn("hold"),
        "---\n" + call("list_agents") + "---\ntext: {{last}}\n",
        "prompt: list\n" + call("list_agents") + "---\ntext: {{last}}\n",
        "prompt: close\n" + call("close_agent", job_id="5.0", mode="cancel"),
        "---\n" + call("close_agent", job_id="5.0"), "---\ntext: {{last}}\n",
        f"prompt: hold\n{HOLD}---\ntext: Held.\n",
    )  # fmt: skip
    async with person(root, state, told) as one:
        await bypass(one)
        await one.turn("delegate")
        begun = root / "begun"
        await until(lambda: begun.exists() and begun.read_text().count("begun") == 2)
        before = [(c["sessionId"], c["updatedAt"]) for c in await children(one)]
        await one.turn("list", "p2")
        assert [(c["sessionId"], c["updatedAt"]) for c in await children(one)] == before
        assert one.said().count("running") + one.said().count("queued") >= 2
        await one.turn("close", "p3")
        assert one.said().endswith(f"{SESSION}/5.0 was already closed.")
        await until_state(one, f"{SESSION}/5.0", "cancelled", "closed")
        assert (await child(one, f"{SESSION}/5.1"))["state"] == "running"


async def child(one: Person, id: str) -> dict[str, Any]:
    return next(c for c in await children(one, includeClosed=True) if c["sessionId"] == id)


async def until_state(one: Person, id: str, *states: str) -> None:
    async with asyncio.timeout(PATIENCE):
        while (await child(one, id))["state"] not in states:
            await asyncio.sleep(0.02)


# --- approval -------------------------------------------------------------------------------------

BATCH = script(
    "prompt: batch", spawn("quick one"), spawn("quick two", agent="explore"),
    "---\n" + spawn("quick three") + "---\n" + call("wait_agent") + "---\ntext: All there.\n",
    "prompt: talk\n" + call("send_agent_message", job_id="4.0", message="quick"),
    "---\n" + call("send_agent_message", job_id="4.1", message="quick") + "---\ntext: Said.\n",
    "prompt: quick\ntext: Quick is done.\n",
)  # fmt: skip


def asked(one: Person) -> list[str]:
    return [u["open"]["title"] for u in one.updates("_magy_interaction") if "open" in u]


async def closing(one: Person, name: str) -> None:
    """Makes room."""
    await one.client.request("magy/child/close", {"sessionId": f"{SESSION}/{name}"})


@pytest.mark.req("C036", "C037")
async def test_one_answer_covers_its_kind_in_the_run_and_no_more(root: Path, state: Path) -> None:
    async with person(root, state, BATCH) as one:
        await one.new()
        await one.ask("batch")
        await one.answer()
        await one.end()
        assert asked(one) == ["Spawn general: quick one"]
        assert len(await children(one)) == 3
        await one.ask("talk", "p2")  # another class, and another run
        question = await one.update("_magy_interaction", lambda u: "Send" in
                                    u.get("open", {}).get("title", ""))  # fmt: skip
        await one.respond(question["open"]["interactionId"])
        await one.end()
        assert len(asked(one)) == 2
        for left in await children(one):
            await one.client.request("magy/child/close", {"sessionId": left["sessionId"]})
        await one.ask("batch again", "p3")
        question = await one.update("_magy_interaction", lambda u: "open" in u and
                                    u["open"]["interactionId"] not in _ids(one, 2))  # fmt: skip
        assert question["open"]["title"] == "Spawn general: quick one"
        refusal = {"interactionId": question["open"]["interactionId"], "outcome": "refuse"}
        await one.request("interaction/respond", **refusal)
        await one.update("_magy_interaction", lambda u: "explore" in
                         u.get("open", {}).get("title", ""))  # fmt: skip


def _ids(one: Person, count: int) -> list[str]:
    opened = [u["open"]["interactionId"] for u in one.updates("_magy_interaction") if "open" in u]
    return opened[:count]


@pytest.mark.req("C041")
async def test_a_class_that_is_allowed_for_the_session_is_not_asked_about_again(
    root: Path, state: Path
) -> None:
    async with person(root, state, BATCH) as one:
        await one.new()
        await one.ask("batch")
        question = await one.question()
        assert question["remember"] == [{"key": "agent", "pattern": "spawn *"}]
        await one.respond(question["interactionId"], scope="session")
        await one.end()
        for left in await children(one):
            await one.client.request("magy/child/close", {"sessionId": left["sessionId"]})
        await one.turn("batch again", "p2")
        assert asked(one) == ["Spawn general: quick one"]


async def test_a_person_is_shown_the_whole_task_before_it_is_given(root: Path, state: Path) -> None:
    task = "quick and\nthen `rm -rf` nothing at all"
    limited = spawn(task, limits={"cost": 0.5}, permissions={"bash": "deny"}, context="all")
    told = script("prompt: go", limited, "---\ntext: Done.\n", "prompt: quick\ntext: Quick.\n")
    async with person(root, state, told) as one:
        await one.new()
        await one.ask("go")
        await one.question()
        shown = json.dumps(one.updates("tool_call_update"))
        assert json.dumps(task)[1:-1] in shown
        assert "context: all" in shown and r"limits: {\"cost\": 0.5}" in shown


# --- permissions ----------------------------------------------------------------------------------


@pytest.mark.req("E135")
async def test_a_child_may_not_do_what_the_one_above_it_may_not(root: Path, state: Path) -> None:
    """However much its own agent may, and whatever a person answers."""
    edit = {"path": "app.py", "old_text": "hello", "new_text": "bye"}
    told = script(
        "prompt: delegate", spawn("change it"), "---\n" + call("wait_agent"),
        "---\ntext: {{last}}\n",
        "prompt: change it\n" + call("edit_file", **edit),
        "---\n" + call("bash", command="sed -i s/hello/bye/ app.py") + "---\ntext: {{last}}\n",
    )  # fmt: skip
    async with person(root, state, told) as one:
        await one.new()
        await one.request("session/set_config_option", configId="agent", value="plan")
        await one.request("session/set_config_option", configId="bypass", value="on")
        await one.turn("delegate")
        assert f"Not allowed: agent plan (of {SESSION}): bash" in one.said()
        assert "hello" in (root / "app.py").read_text()
        (below,) = await children(one)
        page = await one.client.request(
            "magy/session/subscribe", {"sessionId": below["sessionId"], "from": {"seq": 0}}
        )
        assert f"agent plan (of {SESSION}): edit `*` -> deny" in json.dumps(page)


# --- limits ---------------------------------------------------------------------------------------


def nested(depth: int) -> str:
    """Each spawns the next, and says what came of it."""
    sections = [
        f"prompt: level {n}\n" + spawn(f"level {n + 1}", agent="nested")
        + "---\n" + call("wait_agent") + "---\ntext: {{last}}\n"
        for n in range(depth)
    ]  # fmt: skip
    return "\n".join(sections)


NESTED = """---
description: Spawns
mode: all
permissions:
  agent: allow
---
You spawn.
"""


@pytest.mark.req("C049", "C054")
async def test_no_depth_is_more_than_three_whatever_is_asked_for(root: Path, state: Path) -> None:
    (state / "agent").mkdir(parents=True)
    (state / "agent" / "nested.md").write_text(NESTED)
    for asked_for, deepest in ((None, 2), (999, 3), (-5, 1)):
        settings = {} if asked_for is None else {"spawn": {"max_depth": asked_for}}
        async with person(root, state, nested(6), settings=settings) as one:
            limits = await one.client.request("magy/child/limits", {})
            assert limits["maxDepth"] == deepest
            await bypass_new(one, f"d{deepest}")
            await one.request("session/prompt", sessionId=f"d{deepest}", messageId="p1",
                              prompt=[{"type": "text", "text": "level 0"}])  # fmt: skip
            await one.end(f"d{deepest}")
            found = await children(one, parentSessionId=f"d{deepest}")
            assert [c["depth"] for c in found] == list(range(1, deepest + 1))


async def bypass_new(one: Person, session: str) -> None:
    await one.new(session)
    for option, value in (("bypass", "on"), ("agent", "nested")):
        await one.request("session/set_config_option", sessionId=session, configId=option,
                          value=value)  # fmt: skip


@pytest.mark.req("C050")
async def test_no_parent_has_more_than_four_children_whatever_is_asked_for(
    root: Path, state: Path
) -> None:
    told = script(
        "prompt: delegate", *(spawn(f"quick {n}", task_name=f"No. {n}") for n in range(5)),
        "---\ntext: {{last}}\n",
        "prompt: quick\ntext: Quick is done.\n",
    )  # fmt: skip
    async with person(root, state, told, settings={"spawn": {"max_children": 5}}) as one:
        await bypass(one)
        await one.turn("delegate")
        assert "No more than 4 children at once (spawn.max_children)" in one.said()
        assert "No. 3" in one.said() and len(await children(one)) == 4
        await closing(one, "5.0")
        added = {"parentSessionId": SESSION, "requestKey": "another", "agent": "general",
                 "prompt": [{"type": "text", "text": "quick"}]}  # fmt: skip
        await one.client.request("magy/child/spawn", added)
        with pytest.raises(RpcError, match="No more than 4 children"):
            await one.client.request("magy/child/spawn", {**added, "requestKey": "more"})


@pytest.mark.req("C051", "C052")
async def test_children_at_work_are_limited_and_so_is_their_queue(root: Path, state: Path) -> None:
    told = f"prompt: hold\n{HOLD}---\ntext: Held.\n"
    async with person(root, state, told) as one:
        limits = await one.client.request("magy/child/limits", {})
        assert (limits["maxTotal"], limits["maxQueue"]) == (24, 200)
        most = await one.client.request("magy/child/limits", {"maxTotal": 999, "maxQueue": 999})
        assert (most["maxTotal"], most["maxQueue"]) == (256, 200)
        least = await one.client.request("magy/child/limits", {"maxTotal": 2, "maxConcurrent": 1,
                                                               "maxQueue": 1})  # fmt: skip
        assert least["clamped"] == []
        await bypass(one)
        about = {"parentSessionId": SESSION, "prompt": [{"type": "text", "text": "hold"}]}
        for key in ("a", "b"):
            await one.client.request("magy/child/spawn", {**about, "requestKey": key})
        with pytest.raises(RpcError, match=r"2 children are at work .*spawn.max_total"):
            await one.client.request("magy/child/spawn", {**about, "requestKey": "c"})
        await one.client.request("magy/child/limits", {"maxTotal": 9})
        await until_state(one, f"{SESSION}/b", "queued")
        with pytest.raises(RpcError, match=r"1 children wait for a slot.*spawn.max_queue"):
            await one.client.request("magy/child/spawn", {**about, "requestKey": "c"})


# --- the end of parents ---------------------------------------------------------------------------


def sleeping(name: str) -> str:
    """Its process id is in the file."""
    write = f"echo $$ > {name}.new && mv {name}.new {name}"
    return call("bash", command=f"{write} && exec sleep 600", timeout=600)


RUNNING = script(
    "prompt: delegate", spawn("hold on"), spawn("hold tight"), "---\n" + call("wait_agent"),
    "---\ntext: Done.\n",
    "prompt: hold on\n" + sleeping("one") + "---\ntext: Held.\n",
    "prompt: hold tight\n" + sleeping("two") + "---\ntext: Held.\n",
)  # fmt: skip


def asleep(root: Path) -> int:
    """How many of the commands still run."""
    found = 0
    for name in ("one", "two"):
        with contextlib.suppress(ProcessLookupError):
            os.kill(int((root / name).read_text()), 0)
            found += 1
    return found


async def delegated(one: Person, root: Path) -> None:
    await bypass(one)
    await one.ask("delegate")
    await until(lambda: (root / "one").exists() and (root / "two").exists())


async def test_a_parent_that_is_deleted_takes_its_running_children_along(
    root: Path, state: Path
) -> None:
    async with person(root, state, RUNNING) as one:
        await delegated(one, root)
        spawned = [c["sessionId"] for c in await children(one)]
        assert len(spawned) == 2 and asleep(root) == 2
        await one.request("session/delete")
        for id in (SESSION, *spawned):
            with pytest.raises(RpcError, match="There is no session"):
                await one.client.request("magy/session/subscribe", {"sessionId": id})
        await until(lambda: not asleep(root))
        with pytest.raises(RpcError, match="There is no session"):
            await children(one)


async def test_cancelling_a_turn_stops_the_children_that_it_spawned(
    root: Path, state: Path
) -> None:
    async with person(root, state, RUNNING) as one:
        await delegated(one, root)
        await one.request("session/cancel")
        assert (await one.end())["stopReason"] == "cancelled"
        await until(lambda: not asleep(root))
        for spawned in await children(one):
            await until_state(one, spawned["sessionId"], "cancelled")


# --- what goes wrong ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "answer"),
    [
        (spawn("x", agent="build"), "The agent 'build' is for people, not for spawning. Agents to"),
        (spawn("x", agent="nobody"), "There is no agent 'nobody'. Agents are: "),
        (spawn("x", agent="title"), "The agent 'title' works for Magy itself"),
        (spawn("  "), "prompt is empty"),
        (spawn("x", context="some"), "context must be none, all, or how many"),
        (spawn("x", context="0"), "context must be none, all, or how many"),
        (spawn("x", model="big"), "model must be `provider/model`, not 'big'."),
        (spawn("x", directory="gone"), "does not exist"),
        (spawn("x", directory="../.."), "outside the workspace"),
        (spawn("x", permissions={"edti": "deny"}), "Did you mean 'edit'?"),
        (spawn("x", permissions={"bash": "allow"}), "bash only allows"),
        (spawn("x", limits={"requests": -1}), "limits.requests"),
        (spawn("x", limits={"money": 1}), "limits.money"),
        (call("wait_agent"), "You have no agents to wait for"),
        (call("wait_agent", job_ids=["s/9.9"]), "There is no agent 's/9.9' below you. You have"),
        (call("wait_agent", timeout=0), "timeout"),
        (call("close_agent", job_id="zz"), "There is no agent 'zz' below you."),
        (call("send_agent_message", job_id="parent", message="hi"), "You have no parent"),
        (call("send_agent_message", job_id="zz", message="hi"), "There is no agent 'zz'"),
        (call("send_agent_message", job_id="zz", message=" "), "message is empty"),
    ],
)
async def test_a_model_is_told_what_is_wrong(
    root: Path, state: Path, asked: str, answer: str
) -> None:
    async with person(root, state, f"prompt: go\n{asked}---\ntext: {{{{last}}}}\n") as one:
        await bypass(one)
        await one.turn("go")
        assert answer in one.said()
        assert await children(one, includeClosed=True) == []


async def test_a_job_is_known_by_the_last_part_of_its_id_if_that_is_its_alone(
    root: Path, state: Path
) -> None:
    told = script(
        "prompt: close\n" + call("close_agent", job_id="x") + "---\ntext: {{last}}\n",
        "prompt: near\n" + call("close_agent", job_id="a") + "---\ntext: {{last}}\n",
        "prompt: quick\ntext: Quick.\n",
    )
    async with person(root, state, told) as one:
        await bypass(one)
        for parent, key in ((SESSION, "a"), (SESSION, "b"), (f"{SESSION}/a", "x"),
                            (f"{SESSION}/b", "x"), (f"{SESSION}/b", "a")):  # fmt: skip
            about = {"parentSessionId": parent, "requestKey": key, "agent": "build"}
            prompt = [{"type": "text", "text": "quick"}]
            await one.client.request("magy/child/spawn", {**about, "prompt": prompt})
        await one.turn("close")
        said = one.said()
        assert "'x' matches more than one agent" in said and f"{SESSION}/a/x, {SESSION}/b/x" in said
        await one.turn("near", "p2")
        assert f"Closed: {SESSION}/a, {SESSION}/a/x." in one.said(), "its own child comes first"


async def test_a_child_works_in_its_directory(root: Path, state: Path) -> None:
    (root / "sub").mkdir()
    (root / "sub" / "inside.txt").touch()
    told = script(
        "prompt: go", spawn("look", directory="sub"), "---\n" + call("wait_agent"),
        "---\ntext: {{last}}\n",
        "prompt: look\n" + call("bash", command="pwd && ls") + "---\ntext: {{last}}\n",
    )  # fmt: skip
    async with person(root, state, told) as one:
        await bypass(one)
        await one.turn("go")
        assert f"{root}/sub\ninside.txt" in one.said()


# --- context on each provider's wire --------------------------------------------------------------

CONTEXTS = script(
    "prompt: first\nthink: I look.\n" + call("read_file", path="app.py"),
    "---\nthink: I see.\ntext: It greets.\n",
    "prompt: delegate\nthink: They shall look.\n", spawn("with nothing"),
    spawn("with it all", context="all"), spawn("with one", context="1"),
    call("read_file", path="app.py"),
    "---\nthink: I wait.\n" + call("wait_agent") + "---\nthink: So.\ntext: All there.\n",
    "prompt: with\nthink: I look.\n" + call("read_file", path="app.py"),
    "---\nthink: Well.\ntext: I looked.\n",
)  # fmt: skip


@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.kind)
async def test_what_a_child_is_given_is_a_valid_conversation_on_every_wire(
    wire: Wire, root: Path, state: Path
) -> None:
    """The servers refuse what the real ones refuse: a call without its result, a result without its
    call, and the like."""
    async with wire.server() as server:
        server.answer(answers(CONTEXTS, type(server)))
        state.mkdir()
        settings = SETTINGS.format(kind=wire.kind, url=server.base_url, key=KEY)
        (state / "magy.toml").write_text(settings)
        async with person(root, state, env={KEY: "test-key"}) as one:
            await bypass(one)
            await one.turn("first")
            await one.turn("delegate", "p2")
            assert [c["state"] for c in await children(one)] == ["completed"] * 3
        bodies = {task: _asked(server.taken, task) for task in
                  ("with nothing", "with it all", "with one")}  # fmt: skip
        assert "It greets." in bodies["with it all"] and "It greets." not in bodies["with nothing"]
        assert "It greets." not in bodies["with one"] and "latest turn" in bodies["with one"]
        for task in ("with it all", "with one"):
            assert "You are the agent that this call spawned" in bodies[task]


def _asked(requests: Sequence[Any], task: str) -> str:
    """The first request for the agent with this task."""
    bodies = [json.dumps(request.body) for request in requests]
    return next(body for body in bodies if re.search(rf'"(text|content)": "{task}"', body))
