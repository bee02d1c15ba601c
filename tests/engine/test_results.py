"""How long the answer of a read call is given again."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from magy_server.core.events import Entry, Finished
from magy_server.core.state.state import State
from magy_server.tools.kit import make_tools
from magy_server.tools.shell.processes import Processes

from .home import Home, home

FILES = {"read_file", "list_dir", "glob", "grep"}
GIT = {"git_status", "git_diff", "git_log"}


@pytest.mark.req("A107")
def test_only_looking_at_files_and_git_is_answered_again() -> None:
    kept = {tool.name: tool.fresh for tool in make_tools(Processes()) if tool.fresh}
    assert kept == dict.fromkeys(FILES, 30.0) | dict.fromkeys(GIT, 10.0)


@pytest.mark.parametrize(
    ("call", "seconds"),
    [
        pytest.param('grep {"pattern": "alpha"}', 30, marks=pytest.mark.req("A108")),
        pytest.param('glob {"pattern": "sub/*"}', 30, marks=pytest.mark.req("A108")),
        pytest.param("git_status {}", 10, marks=pytest.mark.req("A109")),
    ],
)
async def test_an_answer_holds_for_its_seconds(tmp_path: Path, call: str, seconds: int) -> None:
    """A file that nobody told Magy of is seen once they are over, and not before."""
    sub = tmp_path / "project" / "sub"
    sub.mkdir(parents=True)
    (sub / "old").write_text("alpha\n")
    for words in (["init", "--quiet"], ["add", "sub/old"]):
        subprocess.run(["git", *words], cwd=sub.parent, check=True)
    time = 1_000.0

    def look(state: State, entries: Sequence[Entry]) -> None:
        nonlocal time
        for entry in entries:
            if isinstance(entry.event, Finished):
                number = sum(1 for _ in sub.iterdir())
                (sub / f"new{number}").write_text("alpha\n")
                time += 2 if number > 1 else seconds - 1

    async with home(
        tmp_path, f"call: {call}\n---\n" * 3 + "text: Done.\n", listeners=[look]
    ) as one:
        one.world.results._now = lambda: time
        await begin(one)
        said = [e.for_model for e in await one.events("s") if isinstance(e, Finished)]
    assert "sub/old" in said[0]
    assert said[0] == said[1] != said[2]
    assert "new1" in said[2] and "new2" in said[2]


async def begin(one: Home) -> None:
    await one.new()
    await one.prompt("s", "look")
    await one.rested("s")


READ = 'call: read_file {"path": "a.txt", "offset": %d, "limit": 1}\n---\n'
PAGES = f"prompt: read\n{READ % 1}{READ % 2}text: Read.\n\nprompt: again\n{READ % 3}text: Read.\n"


async def test_a_text_that_a_session_has_read_stays_there_however_often_it_is_read(
    tmp_path: Path,
) -> None:
    async with home(tmp_path, PAGES) as one:
        (one.root / "a.txt").write_text("1\n2\n3\n")
        await one.new()
        await one.prompt("s", "read")
        await one.rested("s")
        (one.root / "a.txt").write_text("one\ntwo\nthree\n")
        await one.prompt("s", "again", "p2")
        await one.rested("s", 2)
        read = [e for e in await one.events("s") if isinstance(e, Finished)]
        hashes = [seen.hash for event in read for seen in event.seen]
        texts = [await one.world.store.blob(hash) for hash in hashes]
        assert texts == [b"1\n2\n3\n", b"1\n2\n3\n", b"one\ntwo\nthree\n"]
