"""Sessions as files of JSON lines beside the database."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.lsp.family import SESSION, Parent, parent

ON = {"mirror": {"enabled": True}}


def lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text("utf-8").splitlines()]


def folder(root: Path, state: Path) -> Path:
    return state / "projects" / hashlib.sha1(str(root).encode()).hexdigest()


def exported(state: Path, session: str) -> list[dict[str, Any]]:
    command = [sys.executable, "-m", "magy_server", "sessions", "export", session]
    done = subprocess.run(
        [*command, "--format", "jsonl"], env={"MAGY_STATE_DIR": str(state)}, capture_output=True
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.decode().splitlines()]


def same(file: Path, state: Path, session: str) -> bool:
    """Whether the file is what an export is: the whole log, and all that it refers to."""
    head, *entries = exported(state, session)
    head.pop("entries")
    return lines(file) == [head, *entries]


async def work(one: Parent) -> None:
    await one.turn("hello")
    await one.wait(await one.spawn("job", "quick"))


@pytest.mark.req("E008", "E069", "E091")
async def test_a_projects_sessions_and_their_children_are_files(root: Path, state: Path) -> None:
    async with parent(root, state, settings=ON) as one:
        await work(one)
    file = folder(root, state) / f"{SESSION}.jsonl"
    job = folder(root, state) / SESSION / "agent-jobs" / "job.jsonl"
    assert same(file, state, SESSION) and same(job, state, f"{SESSION}/job")
    assert file.stat().st_mode & 0o777 == 0o600
    events = [entry["event"] for entry in lines(job)[1:]]
    assert events[0]["type"] == "opened" and events[0]["parent"] == SESSION
    assert "quick" in json.dumps(events[1]) and "Quick is done." in json.dumps(events)
    assert events[-1]["type"] == "ended"


@pytest.mark.req("E070")
async def test_a_session_without_a_project_is_a_file_beside_the_database(
    root: Path, state: Path
) -> None:
    async with parent(root, state, settings=ON) as one:
        await one.request("session/new", sessionId="everywhere")
    assert same(state / "everywhere.jsonl", state, "everywhere")


async def test_what_is_missing_in_a_file_is_written_and_what_is_half_written_is_mended(
    root: Path, state: Path
) -> None:
    """The file was made while this was off for a while, and its last line is torn."""
    file = folder(root, state) / f"{SESSION}.jsonl"
    async with parent(root, state, settings=ON) as one:
        await one.turn("hello")
    file.write_bytes(file.read_bytes()[:-20])
    async with parent(root, state, new=False) as one:
        await one.turn("hello", "p2")
    async with parent(root, state, new=False, settings=ON) as one:
        await one.turn("hello", "p3")
    assert [e["seq"] for e in lines(file)[1:]] == [e["seq"] for e in exported(state, SESSION)[1:]]


async def test_a_session_that_is_deleted_leaves_no_file(root: Path, state: Path) -> None:
    async with parent(root, state, settings=ON) as one:
        await work(one)
        await one.request("session/delete")
    assert list((state / "projects").rglob("*.jsonl")) == []
    assert not (folder(root, state) / SESSION).exists()


async def test_a_file_that_is_none_of_ours_any_more_ends_nothing(root: Path, state: Path) -> None:
    file = folder(root, state) / f"{SESSION}.jsonl"
    async with parent(root, state, settings=ON) as one:
        await one.turn("hello")
    file.write_bytes(b"[1]\n")
    async with parent(root, state, new=False, settings=ON) as one:
        await one.turn("hello", "p2")
        assert "its last line is no entry" in await one.client.ended()
    file.unlink()
    file.mkdir()
    async with parent(root, state, new=False, settings=ON) as one:
        await one.request("session/delete")
        await one.request("session/new", sessionId="other")
        assert "cannot be removed" in await one.client.ended()
    assert len(lines(state / "other.jsonl")) > 1 and file.is_dir()


async def test_nothing_is_written_unless_it_is_asked_for(root: Path, state: Path) -> None:
    async with parent(root, state) as one:
        await work(one)
    assert not (state / "projects").exists() and not list(state.glob("*.jsonl"))
