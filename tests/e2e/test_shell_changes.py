"""Files that change while a command runs, as the person and the model are told of them, and as they
stand in the log."""

from __future__ import annotations

import asyncio
import json
import subprocess
from pathlib import Path

import pytest

from magy_server.core.events import Finished
from magy_server.core.values import FileChange
from magy_server.store.sqlite import SqliteStore
from tests.guard import SESSION

from .harness import Person, person

pytestmark = pytest.mark.needs("git")


def git(root: Path, *words: str) -> str:
    return subprocess.check_output(["git", "-C", root, *words], text=True)


@pytest.fixture
def repository(root: Path) -> Path:
    """The project, with its file committed."""
    git(root, "init", "-q", "-b", "main")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "Say hello")
    return root


def script(*commands: str) -> str:
    """A model that runs these, one after the other, and repeats each answer."""
    calls = [json.dumps({"command": command, "timeout": 600}) for command in commands]
    steps = [f"call: bash {call}\n" for call in calls]
    return "---\ntext: <answer>{{last}}\n".join([*steps, ""])


def answers(one: Person) -> list[str]:
    """What the model read, call by call."""
    return [text.strip() for text in one.said().split("<answer>")[1:]]


async def recorded(state: Path) -> list[tuple[Finished, dict[str, bytes]]]:
    """Each finished call in the log, with the bytes it names."""
    store = await SqliteStore.open(str(state))
    try:
        found = []
        for entry in await store.read(f"session/{SESSION}"):
            if isinstance(entry.event, Finished):
                changes = entry.event.changes
                hashes = {h for c in changes for h in (c.before, c.after) if h}
                found.append((entry.event, await store.blobs(sorted(hashes))))
        return found
    finally:
        await store.close()


def bytes_of(change: FileChange, blobs: dict[str, bytes]) -> tuple[bytes | None, bytes | None]:
    before, after = (h and blobs[h] for h in (change.before, change.after))
    return before, after


async def test_what_a_command_changes_is_found_told_and_kept(repository: Path, state: Path) -> None:
    (repository / "notes.txt").write_text("mine, not committed\n")
    was = (repository / "app.py").read_bytes()
    commands = ["sed -i s/hello/goodbye/ app.py; rm notes.txt; touch new.txt; chmod +x new.txt",
                "cat app.py", "git commit -qam Goodbye", "echo more >> app.py"]  # fmt: skip
    async with person(repository, state, script(*commands)) as one:
        await one.new()
        await one.request("session/set_config_option", configId="bypass", value="on")
        await one.turn("Go")
        outputs, read = one.outputs(), answers(one)
        assert [text for text in read if "changed" in text] == []
        assert outputs[0] == (
            f"{read[0]}\n[3 files changed during this command (ignored files are not scanned): "
            "app.py, new.txt, notes.txt.]"
        )
        assert outputs[1].strip() == read[1]  # it only reads
        assert outputs[2].strip() == read[2]  # a commit changes no file
        assert "[1 file changed during this command" in outputs[3]
    calls = await recorded(state)
    first, blobs = calls[0]
    app, new, notes = first.changes
    after = was.replace(b"hello", b"goodbye")
    assert {change.via for change in first.changes} == {"command"}
    assert bytes_of(app, blobs) == (was, after)
    assert bytes_of(new, blobs) == (None, b"") and new.now == "executable"
    assert bytes_of(notes, blobs) == (b"mine, not committed\n", None)
    assert [len(call.changes) for call, _ in calls] == [3, 0, 0, 1]
    last, blobs = calls[3]
    assert bytes_of(last.changes[0], blobs) == (after, after + b"more\n")


async def test_where_nothing_is_covered_it_is_said(root: Path, state: Path) -> None:
    commands = ["touch new.txt", "ls"]
    async with person(root, state, script(*commands)) as one:
        await one.new()
        await one.request("session/set_config_option", configId="bypass", value="on")
        await one.turn("Go")
        outputs = one.outputs()
        assert "not under review: there is no readable git work tree here" in outputs[0]
        assert "review" not in outputs[1]
    assert [call.changes for call, _ in await recorded(state)] == [(), ()]


async def test_what_a_stopped_command_had_changed_is_under_review(
    repository: Path, state: Path
) -> None:
    command = "sed -i s/hello/goodbye/ app.py; sleep 600"
    async with person(repository, state, script(command)) as one:
        await one.new()
        await one.request("session/set_config_option", configId="bypass", value="on")
        await one.ask("Go")
        while "goodbye" not in (repository / "app.py").read_text():
            await asyncio.sleep(0.02)
        await one.request("session/cancel")
        await one.end()
        uri = (repository / "app.py").as_uri()
        file = (await one.client.request("magy/review/get", {"uri": uri}))["file"]
        (hunk,) = file["hunks"]
        assert "goodbye" in hunk["newText"]
    ((finished, _),) = await recorded(state)
    assert finished.status == "cancelled"
    assert f"Changed before that: {repository / 'app.py'}" in finished.for_model
    assert [change.via for change in finished.changes] == ["command"]
