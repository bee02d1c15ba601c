"""Teams of agents in shapes: through the real process, with the agents that come with Magy."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .harness import person
from .test_child_tools import bypass, call, script
from .test_graphs import graph, task, tasks_of, told

WRITES = call("write_file", path="till.txt", content="Ring.\n") + "---\n"
SWARM = script(
    "prompt: start",
    graph(
        task("lead", "plan the shop", agent="architect"),
        task("dev", "build the shop", agent="developer"),
        task("qa", "test the shop", agent="qa"),
        task("end", "combine what came of the shop", agent="reviewer"),
        shape="swarm",
    ),
    "---\ntext: {{last}}\n",
    "prompt: plan the shop\ntext: dev has the till.\n",
    f"prompt: build the shop\n{WRITES}text: The till rings.\n",
    "prompt: test the shop\ntext: The door jams.\n",
    "prompt: combine what came of the shop\ntext: Mend the door.\n",
)


@pytest.mark.req("A180", "C015")
async def test_a_swarm_of_roles_hears_the_lead_and_then_each_other(root: Path, state: Path) -> None:
    async with person(root, state, SWARM) as one:
        await bypass(one)
        await one.turn("@swarm start")
        found = await tasks_of(one)
        assert list(found) == ["lead.1", "dev.1", "qa.1", "dev-2.1", "qa-2.1", "end.1"]
        assert [child["agent"] for child in found.values()] == [
            "architect", "developer", "qa", "developer", "qa", "reviewer"]  # fmt: skip
        assert "- qa (qa): test the shop" in await told(one, found["lead.1"]["sessionId"])
        first = await told(one, found["dev.1"]["sessionId"])
        assert "dev has the till." in first and "The door jams." not in first
        again = await told(one, found["dev-2.1"]["sessionId"])
        assert "The till rings." in again and "The door jams." in again
        assert one.said().endswith("Mend the door.")
        assert (root / "till.txt").read_text() == "Ring.\n"


AUTO = SWARM.replace(', "shape": "swarm"', "").replace(WRITES, "")


@pytest.mark.req("A181")
async def test_the_person_is_told_which_shape_was_chosen_and_why(root: Path, state: Path) -> None:
    async with person(root, state, AUTO) as one:
        await one.new()
        await one.ask("start")
        question = await one.question()
        shown = json.dumps(question["content"])
        assert (
            "shape: swarm, since one leads, several trades work, one brings together (simple work)"
        ) in shown
        await one.respond(question["interactionId"])
        await one.end()
        assert list(await tasks_of(one)) == ["lead.1", "dev.1", "qa.1", "end.1"]


PIPELINE = script(
    "prompt: start",
    graph(
        task("write", "look at the till"), task("test", "then open the door"),
        task("ship", "after that lock up"),
    ),
    "---\ntext: {{last}}\n",
    "prompt: look at the till\ntext: The till has 7 keys.\n",
    "prompt: then open the door\ntext: The door is open.\n",
    "prompt: after that lock up\ntext: Locked.\n",
)  # fmt: skip


@pytest.mark.req("C018", "A178")
async def test_what_one_hands_on_the_next_has_with_its_task(root: Path, state: Path) -> None:
    async with person(root, state, PIPELINE) as one:
        await bypass(one)
        await one.turn("start")
        found = await tasks_of(one)
        assert list(found) == ["write.1", "test.1", "ship.1"]
        second = await told(one, found["test.1"]["sessionId"])
        assert "The till has 7 keys." in second and "write.1" in second
        third = await told(one, found["ship.1"]["sessionId"])
        assert "The door is open." in third and "7 keys" not in third


DEBATE = script(
    "prompt: start",
    graph(task("a", "which way"), task("b", "what way"), task("end", "decide"), shape="discussion"),
    "---\ntext: {{last}}\n",
    "prompt: which way\ntext: North.\n",
    "prompt: what way\ntext: South.\n",
    "prompt: decide\ntext: North it is.\n",
)


@pytest.mark.req("C059")
async def test_who_concludes_a_discussion_is_told_to_settle_what_they_do_not_agree_on(
    root: Path, state: Path
) -> None:
    async with person(root, state, DEBATE) as one:
        await bypass(one)
        await one.turn("start")
        found = await tasks_of(one)
        assert list(found) == ["a.1", "b.1", "a-2.1", "b-2.1", "end.1"]
        end = await told(one, found["end.1"]["sessionId"])
        assert "Say what\\nthey agree on." in end and "North." in end and "South." in end
