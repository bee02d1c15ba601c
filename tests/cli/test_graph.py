"""`magy graph`: a person has a graph of tasks done in a terminal, and sees how it went."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from magy_server.core.graphs.graph import GraphTask
from magy_server.tools.agents import graph_tool
from tests.cli.harness import Magy
from tests.patience import PATIENCE

TASKS = """
tasks:
  - {id: north, agent: explore, prompt: look north}
  - {id: south, agent: explore, prompt: look south}
  - {id: draft, prompt: write the report, needs: [north, south]}
"""
SCRIPT = """
prompt: look north
text: |
  ## Prices

  A ton costs 30.

prompt: look south
text: |
  ## Prices

  A ton costs 40.

prompt: write the report
text: Both looked.
"""


@pytest.fixture
def tasks(magy: Magy) -> Path:
    magy.script(SCRIPT)
    file = magy.root / "tasks.yaml"
    file.write_text(TASKS)
    return file


def shown(magy: Magy, *words: str) -> dict[str, Any]:
    (session,) = magy.sessions()
    done = magy("graph", "show", session["sessionId"], "--json", *words)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.req("C060", "C061")
def test_a_graph_of_a_file_is_done_and_shown(magy: Magy, tasks: Path) -> None:
    done = magy("graph", "run", str(tasks), "--bypass")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "✓ draft (general): completed" in done.stdout
    assert "Both looked." in done.stdout
    graph = shown(magy)
    assert graph["counts"] == {"completed": 3} and not graph["running"]
    by = {task["id"]: task for task in graph["tasks"]}
    assert by["draft"]["needs"] == ["north", "south"] and by["draft"]["depth"] == 1
    assert by["north"]["sessionId"].endswith(".north.1") and by["north"]["tokens"] > 0
    table = magy("graph", "show", graph["sessionId"]).stdout
    assert [line.split()[:3] for line in table.splitlines()[1:4]] == [
        ["north", "completed", "explore"], ["south", "completed", "explore"],
        ["draft", "completed", "general"],
    ]  # fmt: skip
    (session,) = magy.sessions()
    assert session["title"] == "Run 3 tasks: north, south, draft"
    assert session["turns"] == 1


def test_what_is_printed_for_programs(magy: Magy, tasks: Path) -> None:
    """Each update carries the whole graph, as it is by then; nobody asks a model but the tasks."""
    done = magy("graph", "run", "-", "--bypass", "--json", input=tasks.read_text())
    assert done.returncode == 0, done.stderr
    *updates, result = map(json.loads, done.stdout.splitlines())
    calls = [line["update"] for line in updates
             if line["update"]["sessionUpdate"] == "tool_call_update"]  # fmt: skip
    graphs = [
        graph for call in calls if (graph := call.get("_meta", {}).get("magy", {}).get("graph"))
    ]
    assert graphs[-1]["counts"] == {"completed": 3}
    assert {task["state"] for graph in graphs for task in graph["tasks"]} >= {
        "running",
        "completed",
    }
    assert not [line for line in updates if line["update"]["sessionUpdate"] == "usage_update"]
    assert result["text"].endswith("Both looked.")
    quiet = magy("graph", "run", str(tasks), "--bypass", "-q")
    assert quiet.stdout.endswith("Both looked.\n")


def test_a_graph_in_a_session_that_is_there_takes_its_agent_and_model(
    magy: Magy, tasks: Path
) -> None:
    magy("graph", "run", str(tasks), "--bypass", "-q")
    id = magy.sessions()[0]["sessionId"]
    again = magy("graph", "run", str(tasks), "--session", id, "--bypass", "--model", "nobody/x")
    assert "nobody" in again.stderr and again.returncode == 2
    again = magy("graph", "run", str(tasks), "--session", id, "--bypass", "--agent", "nobody")
    assert "nobody" in again.stderr and again.returncode == 2
    assert magy("graph", "run", str(tasks), "--session", id, "--bypass").returncode == 0
    assert [one["turns"] for one in magy.sessions()] == [2]


@pytest.mark.req("C036")
def test_without_a_yes_nothing_begins(magy: Magy, tasks: Path) -> None:
    done = magy("graph", "run", str(tasks))
    assert done.returncode != 0
    assert "nobody to ask" in done.stderr
    (session,) = magy.sessions()
    assert "has no graph" in magy("graph", "show", session["sessionId"]).stderr
    again = magy("graph", "run", "--resume", session["sessionId"])
    assert "has no graph to go on with" in again.stderr and again.returncode == 2


# --- stopped, and gone on with --------------------------------------------------------------------

HELD = """
prompt: look north
call: bash {"command": "echo x >> north"}
---
text: Done.

prompt: look south
call: bash {"command": "until [ -e free ]; do sleep 0.05; done"}
---
text: Freed.

prompt: write the report
text: Both looked.
"""


def until_running(magy: Magy, task: str) -> str:
    """The session's id, as soon as the agent of the task has a command to run."""
    id = magy.wait_for_turn()
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        states = {one["id"]: one["state"] for one in graph_of(magy, id)}
        if states.get(task) == "running" and states["north"] == "completed":
            return id
        time.sleep(0.1)
    pytest.fail(f"{task} did not begin")


def graph_of(magy: Magy, id: str) -> list[dict[str, Any]]:
    done = magy("graph", "show", id, "--json")
    found: list[dict[str, Any]] = json.loads(done.stdout)["tasks"] if done.returncode == 0 else []
    return found


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
@pytest.mark.req("C026")
def test_what_was_stopped_or_killed_is_gone_on_with(
    magy: Magy, tasks: Path, how: signal.Signals
) -> None:
    """What is done is not done again; what was stopped is, with a new attempt after Ctrl-C."""
    magy.script(HELD)
    tasks.write_text(TASKS.replace("explore", "general"))
    process = magy.start("graph", "run", str(tasks), "--bypass")
    id = until_running(magy, "south")
    process.send_signal(how)
    process.communicate(timeout=PATIENCE)
    (magy.root / "free").touch()
    done = magy("graph", "run", "--resume", id, "--bypass")
    assert done.returncode == 0, done.stdout + done.stderr
    by = {task["id"]: task for task in graph_of(magy, id)}
    assert {task["state"] for task in by.values()} == {"completed"}
    assert by["south"]["attempts"] == (2 if how == signal.SIGINT else 1)
    assert (magy.root / "north").read_text() == "x\n"


# --- pictures -------------------------------------------------------------------------------------


def test_a_picture_is_drawn_for_graphviz_for_markdown_and_in_the_export(
    magy: Magy, tasks: Path
) -> None:
    tasks.write_text(TASKS.replace("look north", '"look north \\"];\\n```\\n<script>"'))
    magy("graph", "run", str(tasks), "--bypass")
    (session,) = magy.sessions()
    drawn = magy("graph", "show", session["sessionId"], "--dot").stdout
    assert 'tooltip="look north \\"]; ⏎ ```' in drawn and "t0 -> t2;" in drawn
    if graphviz := shutil.which("dot"):
        subprocess.run([graphviz, "-Tsvg"], input=drawn, text=True, check=True, capture_output=True)
    chart = magy("graph", "show", session["sessionId"], "--mermaid").stdout
    assert "  t0 --> t2\n" in chart and "north<br/>explore" in chart
    export = magy("sessions", "export", session["sessionId"]).stdout
    assert f"```mermaid\n{chart}```" in export


# --- what a person gets wrong ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("tasks: []", "A graph has 1 to 10,000 tasks, not 0."),
        ("tasks:\n  - {id: a, prompt: x, needs: [b]}\n  - {id: b, prompt: x, needs: [a]}",
         "Tasks need each other: a needs b needs a."),
        ("tasks:\n  - {id: a, prompt: x, depends: [b]}",
         "magy: These tasks cannot be done: tasks.0.depends is not known here."),
        ("tasks:\n  - {id: a b, prompt: x}",
         "tasks.0.id may have only letters, digits, `_` and `-`."),
        ("tasks:\n  - {id: a, prompt: x, needs: b, plugin: A-b, retries: 9, seconds: soon}",
         "tasks.0.needs must be a list; tasks.0.retries must be 3 or less; tasks.0.seconds must be "
         "a number; tasks.0.plugin may have only small letters, digits and `_`."),
        ("tasks:\n  - {prompt: x}\n  - look", "tasks.0.id is missing; tasks.1 must be an object."),
        ("tasks: north", "tasks must be a list."),
        ("tasks: [1", "tasks.yaml:1: not valid YAML"),
        ('{"tasks": [}', "tasks.yaml: neither valid JSON (Expecting value: line 1 column 12"),
        ("", "expected `tasks:` and a list of tasks below it"),
        ("jobs: []", "expected `tasks:`"),
        ("tasks: []\ngo_on: x", "unknown key 'go_on'; a graph has tasks, shape, rounds"),
        ("tasks:\n  - &a {id: a, prompt: x}\n  - *a", "`*` begins an alias"),
        ("tasks:\n  - {id: a, prompt: x}\nshape: ring",
         'shape must be "auto", "graph", "pipeline", "fan_out", "discussion" or "swarm".'),
        ("tasks:\n  - {id: a, prompt: !!binary aGk=}", "`!!binary`). Put quotes around it."),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_file_is_said_before_there_is_a_session(
    magy: Magy, tasks: Path, text: str, said: str
) -> None:
    tasks.write_text(text)
    done = magy("graph", "run", str(tasks), "--bypass")
    assert said in done.stderr and done.returncode == 2
    assert "Traceback" not in done.stderr


def test_what_is_wrong_with_the_words_is_said(magy: Magy, tasks: Path) -> None:
    assert "No such file" in magy("graph", "run", "nowhere.yaml").stderr
    assert "Give a file with tasks, or --resume" in magy("graph", "run").stderr
    assert "There is no session 'x'" in magy("graph", "show", "x").stderr
    strange = TASKS.replace("explore", "nobody")
    tasks.write_text(strange)
    done = magy("graph", "run", str(tasks), "--bypass")
    assert "nobody" in done.stdout and done.returncode == 1


@pytest.mark.parametrize(
    ("ids", "title"),
    [
        (["one"], "Run 1 task: one"),
        (["x" * 31, "y" * 31], f"Run 2 tasks: {'x' * 31}, {'y' * 31}"),
        ([f"price-{n}" for n in range(1_200)],
         "Run 1,200 tasks: price-0, price-1, price-2, price-3, price-4 and 1,195 more"),
    ],
)  # fmt: skip
def test_the_title_of_a_graph_names_tasks_whole(ids: list[str], title: str) -> None:
    said = graph_tool.said([GraphTask(id=id, prompt="x") for id in ids])
    assert said == title and len(said) <= graph_tool.TITLE


FAILS = """
prompt: look north
text: Cold.

prompt: look south
error: refused

prompt: write the report
text: One looked.
"""


def test_the_end_says_how_many_tasks_failed(magy: Magy, tasks: Path) -> None:
    """Nothing of it is left to go on with, so the session itself is what one goes on with."""
    magy.script(FAILS)
    tasks.write_text(TASKS)
    done = magy("graph", "run", str(tasks), "--bypass")
    assert done.returncode == 1, done
    (session,) = magy.sessions()
    *_, last = done.stdout.splitlines()
    assert last.startswith("1 of 3 tasks failed · ")
    assert last.endswith(f" continue: magy run --resume {session['sessionId']}")
    assert "✗ south (explore): failed" in done.stdout and " 0 tokens" not in done.stdout
    quiet = magy("graph", "run", str(tasks), "--bypass", "--quiet")
    assert quiet.returncode == 1 and quiet.stderr == "magy: 1 of 3 tasks failed.\n"
    result = json.loads(
        magy("graph", "run", str(tasks), "--bypass", "--json").stdout.splitlines()[-1]
    )
    assert result["exitCode"] == 1


@pytest.mark.long
@pytest.mark.req("C026")
def test_a_task_that_takes_too_long_holds_nobody_up(magy: Magy) -> None:
    sleep = json.dumps({"command": "sleep 300"})
    magy.script(f"prompt: doze\ncall: bash {sleep}\n---\ntext: Slept.\n\nprompt: sum\ntext: Sum.\n")
    file = magy.root / "tasks.json"
    about = [{"id": "slow", "prompt": "doze", "seconds": 1}, {"id": "quick", "prompt": "sum"},
             {"id": "end", "prompt": "sum", "needs": ["slow", "quick"]}]  # fmt: skip
    file.write_text(json.dumps({"tasks": about}))
    done = magy("graph", "run", str(file), "--bypass")
    assert done.returncode == 1 and "- slow: Stopped at the time limit" in done.stdout
    assert done.stdout.splitlines()[-1].startswith("1 of 3 tasks failed · ")
    how = {one["id"]: one["state"] for one in shown(magy)["tasks"]}
    assert how == {"slow": "failed", "quick": "completed", "end": "completed"}


def test_what_a_budget_stopped_is_gone_on_with(magy: Magy) -> None:
    """The first request fits, the second one does not: nothing has failed by that."""
    settings = magy.state.parent / "magy.toml"
    settings.write_text(settings.read_text() + "\n[limits]\nrun_tokens = 35500\n")
    magy.script("prompt: one\ntext: One.\n\nprompt: two\ntext: Two.\n")
    file = magy.root / "tasks.json"
    about = [{"id": "a", "prompt": "one"}, {"id": "b", "prompt": "two", "needs": ["a"]},
             {"id": "c", "prompt": "two", "needs": ["b"], "retries": 1}]  # fmt: skip
    file.write_text(json.dumps({"tasks": about}))
    done = magy("graph", "run", str(file), "--bypass")
    assert done.returncode == 1, done
    assert "It cannot go on: Stopped at the limit of 35500 tokens for the run" in done.stdout
    assert shown(magy)["counts"] == {"completed": 1, "ready": 1, "waiting": 1}
    (session,) = magy.sessions()
    go_on = f"magy graph run --resume {session['sessionId']}\n"
    assert "\n2 of 3 tasks not done" in done.stdout and done.stdout.endswith(go_on)
    for _ in range(2):  # each time it is a run of its own, in which one more fits
        magy("graph", "run", "--resume", session["sessionId"], "--bypass")
    assert shown(magy)["counts"] == {"completed": 3}
