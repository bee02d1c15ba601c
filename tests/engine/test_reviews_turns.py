"""Reviews and turns of the real process: what reaches the model, and when."""

from __future__ import annotations

import asyncio
import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from magy_server.core.events import Ended, Event, Prompted, Replied
from magy_server.core.reviews.review_events import Noted
from magy_server.store.sqlite import SqliteStore
from tests.e2e.harness import SESSION, Person, person
from tests.patience import PATIENCE

TEXT = "".join(f"line {n}\n" for n in range(1, 21))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    project = tmp_path.resolve() / "project"
    project.mkdir()
    (project / "app.py").write_text(TEXT)
    return project


def edit(old: str, new: str) -> str:
    call = {"path": "app.py", "old_text": old, "new_text": new}
    return f"call: edit_file {json.dumps(call)}\n"


def command(words: str) -> str:
    return f"call: bash {json.dumps({'command': words})}\n"


async def begin(one: Person) -> None:
    await one.new()
    await one.request("session/set_config_option", configId="bypass", value="on")


async def decide(one: Person, path: Path, decision: str, number: int, **params: Any) -> Any:
    uri = path.as_uri()
    file = (await one.client.request("magy/review/get", {"uri": uri}))["file"]
    return await one.client.request("magy/review/resolve", {
        "uri": uri, "decision": decision, "hunkIds": [file["hunks"][number]["hunkId"]],
        "requestKey": f"{decision}{number}", **params,
    })  # fmt: skip


async def log(state: Path) -> list[Event]:
    store = await SqliteStore.open(state)
    try:
        return [entry.event for entry in await store.read(f"session/{SESSION}")]
    finally:
        await store.close()


async def test_a_rejection_during_a_turn_reaches_the_next_request(
    root: Path, tmp_path: Path
) -> None:
    go = tmp_path / "go"
    wait = command(f"until test -e {shlex.quote(str(go))}; do sleep 0.05; done")
    script = f"{edit('line 3', 'LINE 3')}---\n{wait}---\ntext: Done.\n"
    path = root / "app.py"
    async with person(root, tmp_path / "state", script) as one:
        await begin(one)
        await one.ask("go")
        await one.update("tool_call_update", lambda u: u.get("status") == "in_progress"
                         and u["toolCallId"] != "0" and path.read_text() != TEXT)  # fmt: skip
        await until_listed(one)
        await decide(one, path, "reject", 0, reason="keep line 3")
        assert path.read_text() == TEXT, "at once, while the turn runs"
        go.touch()
        await one.end()
    events = await log(tmp_path / "state")
    (noted,) = [n for n, event in enumerate(events) if isinstance(event, Noted)]
    replies = [n for n, event in enumerate(events) if isinstance(event, Replied)]
    told = events[noted]
    assert isinstance(told, Noted) and "Reason: keep line 3" in told.text
    assert replies[1] < noted < replies[2], "before the last request of the same turn"


async def until_listed(one: Person) -> None:
    async with asyncio.timeout(PATIENCE):
        while not (await one.client.request("magy/review/list", {}))["files"]:
            await asyncio.sleep(0.05)


async def test_the_next_turn_begins_with_what_is_undecided(root: Path, tmp_path: Path) -> None:
    script = (
        f"{edit('line 3', 'LINE 3')}---\ntext: Done.\n---\ntext: Again.\n---\ntext: Once more.\n"
    )
    path = root / "app.py"
    async with person(root, tmp_path / "state", script) as one:
        await begin(one)
        await one.turn("go", "p1")
        path.write_text(path.read_text().replace("LINE 3", "Line 3"))
        await one.turn("and", "p2")
        await one.turn("and", "p3")
    events = await log(tmp_path / "state")
    notes = [event for event in events if isinstance(event, Noted)]
    assert [note.text for note in notes] == [
        "The user has not judged these changes of yours yet:\n- app.py: 1 hunk\n  changed after "
        "you wrote it; its present text:\nline 3:\n-LINE 3\n+Line 3"
    ]
    at = events.index(notes[0])
    ends = [n for n, event in enumerate(events) if isinstance(event, Ended)]
    asked = [n for n, event in enumerate(events) if isinstance(event, Prompted)]
    assert ends[0] < asked[1] < at < ends[1]


async def test_files_changed_by_a_command_are_attributed_to_it(root: Path, tmp_path: Path) -> None:
    path = root / "app.py"
    words = "sed -i s/^line.4$/four/ app.py"
    git = "git init -q && git add . && git -c user.name=a -c user.email=a@b commit -qm x"
    made = await asyncio.create_subprocess_shell(git, cwd=root)
    assert await made.wait() == 0
    async with person(root, tmp_path / "state", f"{command(words)}---\ntext: Done.\n") as one:
        await begin(one)
        await one.turn("go")
        file = (await one.client.request("magy/review/get", {"uri": path.as_uri()}))["file"]
        assert [hunk["newText"] for hunk in file["hunks"]] == ["four\n"]
        assert file["hunks"][0]["origins"][0]["command"] == words
        await decide(one, path, "reject", 0)
        assert path.read_text() == TEXT
