"""Dies by SIGKILL before and after every append of a turn with two tool calls and two questions,
goes on in a new process, and must reach the same end. What happened is counted outside of Magy: by
the model's own server, by the edited file, and by a marker file that the command appends to."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.harness import SESSION, Person, person
from tests.patience import PATIENCE
from tests.thorough import seldom

APPENDS = 15
"""Of an undisturbed turn; `test_an_undisturbed_turn` holds it to that."""
PLACES = [f"{when} {number}" for number in range(1, APPENDS + 1) for when in ("before", "after")]
DYING = (sys.executable, "-m", "tests.crash.dying", "lsp")
TOP = Path(__file__).parent.parent.parent
SCRIPT = """
prompt: go
call: edit_file {"path": "app.py", "old_text": "'hello'", "new_text": "'hello' + NAME"}
---
call: bash {"command": "echo ran >> marker"}
---
text: All done: {{last}}
"""


class Model:
    """The loopback server that plays the model, in a process of its own. It speaks one
    of the wires: nothing here depends on which it is."""

    def __init__(self, directory: Path) -> None:
        script, self.log = directory / "loopback.script", directory / "requests.log"
        script.write_text(SCRIPT)
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.loopback", "--wire", "chat", "--port", "0",
             "--script", str(script), "--log", str(self.log)],
            stdout=subprocess.PIPE, text=True, cwd=TOP,
        )  # fmt: skip
        assert self.process.stdout
        self.url = self.process.stdout.readline().split()[-1]

    @property
    def requests(self) -> int:
        """For a reply; it is also asked how large the window is."""
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        return sum(json.loads(line)["method"] == "POST" for line in lines)

    def close(self) -> None:
        self.process.terminate()
        self.process.wait()
        assert self.process.stdout
        self.process.stdout.close()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Model]:
    server = Model(tmp_path_factory.mktemp("model"))
    yield server
    server.close()


@pytest.fixture
def model(server: Model) -> Model:
    """Nothing was asked of it yet."""
    server.log.write_bytes(b"")
    return server


@pytest.fixture
def root(tmp_path: Path) -> Path:
    project = tmp_path / "project"
    project.mkdir()
    (project / "app.py").write_text("print('hello')\n")
    return project.resolve()


def environment(model: Model) -> dict[str, str]:
    return {"MAGY_MODEL": "chat/test", "PYTHONPATH": str(TOP)}


def settings(model: Model) -> dict[str, Any]:
    provider = {"name": "chat", "kind": "openai-chat", "base_url": model.url}
    return {"provider": [provider], "model": {"retry_delay": 0.05}}


async def drive(one: Person) -> dict[str, Any]:
    """What an editor does: makes the session, prompts, subscribes, answers each question with yes.
    All of it may be repeated after a crash."""
    await one.request("session/new", cwd=str(one.root))
    attached = await one.request("session/resume", **{"from": {"tail": 100}})
    await one.ask("go")
    for open_ in attached["summary"]["interactions"]:
        await one.respond(open_["interactionId"])
    for event in attached["events"]:
        if event["update"].get("state") == "idle":
            return dict(event["update"])
    while True:
        waiting = asyncio.create_task(one.question())
        ending = asyncio.create_task(one.end())
        done, pending = await asyncio.wait({waiting, ending}, return_when=asyncio.FIRST_COMPLETED)
        for task in pending:
            task.cancel()
        await asyncio.gather(*pending, return_exceptions=True)
        if ending in done:
            return ending.result()
        await one.respond(waiting.result()["interactionId"])


async def until_death(root: Path, state: Path, model: Model, die: str) -> None:
    env = {**environment(model), "MAGY_DIE": die}
    async with person(root, state, env=env, command=DYING, settings=settings(model)) as one:
        with contextlib.suppress(ConnectionError, AssertionError, BrokenPipeError):
            await drive(one)
        await asyncio.wait_for(one.client.process.wait(), PATIENCE)
        assert one.client.process.returncode == -9


def log_of(state: Path) -> list[tuple[int, dict[str, Any]]]:
    with sqlite3.connect(state / "magy.db") as db:
        rows = db.execute("select seq, body from entries where stream = ? order by seq",
                          (f"session/{SESSION}",)).fetchall()  # fmt: skip
    db.close()
    return [(seq, json.loads(body)) for seq, body in rows]


def test_an_undisturbed_turn(root: Path, tmp_path: Path, model: Model) -> None:
    async def run() -> None:
        state = tmp_path / "state"
        env = {**environment(model), "MAGY_DIE": f"before {APPENDS + 1}"}
        async with person(root, state, env=env, command=DYING, settings=settings(model)) as one:
            assert (await drive(one))["stopReason"] == "end_turn"
            assert one.client.process.returncode is None
        assert model.requests == 3

    asyncio.run(run())


@pytest.mark.req("G020")
@pytest.mark.parametrize("die", seldom(PLACES))
def test_killed_and_resumed(root: Path, tmp_path: Path, model: Model, die: str) -> None:
    asyncio.run(killed_and_resumed(root, tmp_path / "state", model, die))


async def killed_and_resumed(root: Path, state: Path, model: Model, die: str) -> None:
    await until_death(root, state, model, die)
    before = log_of(state)
    asked = model.requests
    async with person(root, state, env=environment(model), settings=settings(model)) as one:
        assert (await drive(one))["stopReason"] == "end_turn"
    after = log_of(state)
    # No event lost, none changed, no gap.
    assert after[: len(before)] == before
    assert [seq for seq, _ in after] == list(range(1, len(after) + 1))
    # The edit happened exactly once.
    assert (root / "app.py").read_text() == "print('hello' + NAME)\n"
    # The command ran once; or its outcome is unknown, was said to be, and it was not run again.
    ran = (root / "marker").read_text().count("ran") if (root / "marker").exists() else 0
    told = [body for _, body in after if body["type"] == "finished" and "unknown" in
            body.get("status", "")]  # fmt: skip
    assert ran == 1 or (ran == 0 and len(told) == 1), (ran, told)
    assert len(told) <= 1
    # At most the one request that was under way is made twice.
    assert 3 <= model.requests <= 4, (asked, model.requests)
