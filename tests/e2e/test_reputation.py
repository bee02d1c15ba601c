"""What agents' work comes to is known of them, shown, and decides who gets the next task."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.patience import PATIENCE

from .harness import Person, person
from .test_agents import agent
from .test_child_tools import bypass, call, script
from .test_graphs import graph, task, tasks_of


async def ratings(state: Path, *more: str, until: int = 0) -> list[dict[str, Any]]:
    """As the command line tells; `until`: waits for so many, as they are kept behind the work."""
    command = [sys.executable, "-m", "magy_server", "agents", "ratings", "--json", *more]
    environment = {**os.environ, "MAGY_STATE_DIR": str(state)}
    async with asyncio.timeout(PATIENCE):
        while True:
            done = await asyncio.to_thread(
                subprocess.run, command, env=environment, capture_output=True, check=True
            )
            found: list[dict[str, Any]] = json.loads(done.stdout)["ratings"]
            if len(found) >= until:
                return found


async def table(state: Path) -> list[str]:
    """As a person reads it."""
    command = [sys.executable, "-m", "magy_server", "agents", "ratings"]
    environment = {**os.environ, "MAGY_STATE_DIR": str(state)}
    done = await asyncio.to_thread(
        subprocess.run, command, env=environment, capture_output=True, check=True
    )
    return str(done.stdout, "utf-8").splitlines()


async def rating(state: Path, name: str, capability: str | None = None) -> dict[str, Any]:
    """Of one agent at one thing, once it is there."""
    async with asyncio.timeout(PATIENCE):
        while True:
            for one in await ratings(state, name):
                if one["capability"] == capability:
                    return one


TALK = script(
    "prompt: start",
    graph(task("good", "be good", agent="coder"), task("bad", "be bad", agent="qa", seconds=0.2)),
    "---\ntext: Done.\n",
    "prompt: be good\ntext: Good.\n",
    "prompt: be bad\n" + call("bash", command="sleep 20") + "---\ntext: Late.\n",
)


@pytest.mark.req("A030")
async def test_who_does_its_tasks_is_known_as_good_and_who_does_not_is_not(
    root: Path, state: Path
) -> None:
    assert await ratings(state) == []
    async with person(root, state, TALK) as one:
        await bypass(one)
        await one.turn("start")
        good, bad = await rating(state, "coder"), await rating(state, "qa")
    assert await table(state) == [
        "coder  all it does  0.67  of 1.0 ratings",
        "qa     all it does  0.33  of 1.0 ratings",
    ]
    assert good == {"agent": "coder", "capability": None, "score": 0.667, "weight": 1.0}
    assert bad == {"agent": "qa", "capability": None, "score": 0.333, "weight": 1.0}


EDIT = {"path": "app.py", "old_text": "hello", "new_text": "bye"}


@pytest.mark.req("A030")
@pytest.mark.parametrize(("verb", "score"), [("accept", 0.6), ("reject", 0.4)])
async def test_what_a_person_decides_about_changes_counts(
    root: Path, state: Path, verb: str, score: float
) -> None:
    told = script("prompt: change\n" + call("edit_file", **EDIT) + "---\ntext: Done.\n")
    async with person(root, state, told) as one:
        await bypass(one)
        await one.turn("change")
        about = {"uri": (root / "app.py").as_uri(), "all": True, "requestKey": "r1"}
        await one.client.request("magy/review/resolve", {**about, "decision": verb})
        found = await rating(state, "build")
    assert found == {"agent": "build", "capability": None, "score": score, "weight": 0.5}


def best(capability: str) -> str:
    return graph(task("t", "do it", agent=f"best:{capability}"))


async def done_by(one: Person, prompt: str) -> str:
    """Who did the graph that this prompt began last."""
    await one.turn(prompt, f"p-{prompt}")
    return list((await tasks_of(one)).values())[-1]["agent"]


JUDGED = script(
    "prompt: first\n" + best("testing") + "---\ntext: {{last}}\n",
    "prompt: judge",
    call("rate_agent", job_id="5.0.t.1", capability="Testing", score=0, reason="Ran nothing."),
    "---\ntext: {{last}}\n"
    + call("rate_agent", job_id="5.0.t.1", capability="testing", score=0, reason="Again."),
    "---\ntext: {{last}}\n",
    "prompt: second\n" + best("testing") + "---\ntext: {{last}}\n",
    "prompt: third\n" + best("juggling") + "---\ntext: {{last}}\n",
    "prompt: do it\ntext: Done.\n",
)


@pytest.mark.req("A030", "A029")
async def test_a_task_goes_to_who_is_best_at_it_and_ratings_change_who_that_is(
    root: Path, state: Path
) -> None:
    agent(state / "agent", "tester", "expertise:\n  primary: [testing]")
    async with person(root, state, JUDGED) as one:
        await bypass(one)
        assert await done_by(one, "first") == "qa"
        await rating(state, "qa")
        await one.turn("judge", "p-judge")
        assert "Rated qa for testing: 0.0." in one.said()
        assert "You have rated" in one.said() and "before; that counts." in one.said()
        at_testing = await rating(state, "qa", "testing")
        assert at_testing["weight"] == 2.0
        assert await done_by(one, "second") == "tester"
        await one.turn("third", "p-third")
        assert "No agent is known to be good at 'juggling'." in one.said()


@pytest.mark.req("A030")
async def test_a_reviewer_rates_the_work_that_it_was_given(root: Path, state: Path) -> None:
    told = script(
        "prompt: start",
        graph(
            task("build", "make it", agent="coder"),
            task("look", "judge it", "build", agent="reviewer"),
        ),
        "---\ntext: Done.\n",
        "prompt: make it\ntext: Made.\n",
        "prompt: judge it",
        call("rate_agent", job_id="5.0.build.1", capability="code", score=0.9, reason="Right."),
        "---\ntext: {{last}}\n",
    )
    async with person(root, state, told) as one:
        await bypass(one)
        await one.turn("start")
        found = await rating(state, "coder", "code")
    assert (found["score"], found["weight"]) == (pytest.approx(0.76, abs=0.01), 2.0)


async def test_who_was_chosen_is_asked_about_by_name_and_stays_chosen(
    root: Path, state: Path
) -> None:
    told = script(
        "prompt: go\n" + best("testing") + "---\ntext: Done.\n", "prompt: do it\ntext: x\n"
    )
    async with person(root, state, told) as one:
        await one.new()
        await one.ask("go")
        question = await one.question()
        assert "## t, by qa" in json.dumps(question["content"])
        await one.respond(question["interactionId"])
        await one.end()
        assert [one["agent"] for one in (await tasks_of(one)).values()] == ["qa"]
