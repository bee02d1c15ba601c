"""A review of which nothing has moved costs no look; and none that has moved is ever missed."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from magy_server.core.agents.tree import Stream
from magy_server.core.ports import Found
from magy_server.reviews.reviews import Reviews
from magy_server.reviews.streams import stream_of
from magy_server.reviews.views import Summary
from magy_server.store.faulty import FaultyStore
from magy_server.tools.files.commits import Commits
from magy_server.tools.files.marks import TICK
from magy_server.tools.files.workspace import WorkspaceFiles
from magy_server.tools.shell.processes import Processes
from tests.engine.reviewing import Place, process

BASE, NEW = "one\ntwo\nthree\n", "one\nTWO\nthree\n"
TYPED = "ONE\nTWO\nthree\n"
"""As long as the others."""
OLD = TICK / 1e9 + 0.1
"""Seconds after which a file is old enough to be known by its mark."""
NAMES = "same", "inode", "buffer", "gone", "anew", "mode", "decided", "agent", "still"


class Counting(WorkspaceFiles):
    """The real files; it tells which were looked at."""

    looked: list[str]

    async def look(self, root: str, path: str, without: Collection[str] | None = None) -> Found:
        self.looked.append(os.path.basename(path))
        return await super().look(root, path, without)


class Desk:
    """One process with files under review that are old enough, and another process beside it."""

    def __init__(self, mine: Place, other: Place, reviews: Reviews, files: Counting) -> None:
        self.mine, self.other, self.reviews, self.files = mine, other, reviews, files

    async def list(self) -> dict[str, Summary]:
        self.files.looked = []
        found = await self.reviews.list(str(self.mine.root))
        return {os.path.basename(one.path): one for one in found}

    async def settle(self) -> None:
        self.files.looked = []
        await self.reviews.settle(str(self.mine.root))


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    root = tmp_path.resolve() / "work"
    root.mkdir()
    for name in NAMES:
        (root / name).write_text(BASE)
    async with AsyncExitStack() as held:
        mine = await held.enter_async_context(process(root, tmp_path / "state"))
        other = await held.enter_async_context(process(root, tmp_path / "state"))
        processes = Processes(set())
        held.push_async_callback(processes.close)
        files = Counting(mine.editor, Commits(processes))
        files.looked = []
        world = replace(mine.world, files=files, store=FaultyStore(mine.world.store))
        reviews = Reviews(world, mine.sessions)
        held.callback(reviews.close)
        agent = await mine.agent()
        for name in NAMES:
            await agent.write(name, NEW)
        yield Desk(mine, other, reviews, files)


def blobs_read(desk: Desk) -> int:
    store = desk.reviews._store.world.store
    assert isinstance(store, FaultyStore)
    return len(store.done["blobs"])


async def test_where_nothing_has_moved_no_file_is_opened_and_no_blob_is_read(desk: Desk) -> None:
    await asyncio.sleep(OLD)
    first = await desk.list()
    assert sorted(desk.files.looked) == sorted(NAMES)
    read = blobs_read(desk)
    assert await desk.list() == first
    await desk.settle()
    session = (await desk.mine.agent()).session
    note = await desk.reviews.notes(session.state)
    assert note and note.text.count("1 hunk") == len(NAMES)
    # What the model is told had not been put together before.
    assert sorted(desk.files.looked) == sorted(NAMES)
    assert await desk.reviews.notes(session.state) == note
    assert (len(desk.files.looked), blobs_read(desk)) == (len(NAMES), read)


async def test_a_file_of_this_moment_is_looked_at_again(desk: Desk) -> None:
    """Its next change could have the same time."""
    await desk.list()
    await desk.list()
    assert sorted(desk.files.looked) == sorted(NAMES)


def in_place(path: Path) -> None:
    """The same size, and the time of the last change that it had."""
    was = path.stat()
    with path.open("r+b") as file:
        file.write(TYPED.encode())
    os.utime(path, ns=(was.st_atime_ns, was.st_mtime_ns))


def replaced(path: Path) -> None:
    was = path.stat()
    other = path.with_name("other")
    other.write_text(TYPED)
    os.utime(other, ns=(was.st_atime_ns, was.st_mtime_ns))
    other.rename(path)


async def test_nothing_that_moves_is_missed(desk: Desk) -> None:
    place, root = desk.mine, desk.mine.root
    place.editor.open(root / "buffer")
    await asyncio.sleep(OLD)
    before = await desk.list()
    assert len(before) == len(NAMES)
    in_place(root / "same")
    replaced(root / "inode")
    place.editor.type(str(root / "buffer"), TYPED)
    (root / "gone").unlink()
    (root / "anew").unlink()
    (root / "anew").write_text(TYPED)
    (root / "mode").chmod(0o755)
    await desk.other.decide("accept", "decided")
    await (await place.agent()).write("agent", TYPED)
    await asyncio.sleep(OLD)  # so that not their age makes them looked at
    now = await desk.list()
    assert sorted(desk.files.looked) == sorted(set(NAMES) - {"still", "decided"})
    revisions = {name for name in now if now[name].revision != before[name].revision}
    assert revisions == set(NAMES) - {"still", "decided", "gone"}
    assert set(before) - set(now) == {"decided", "gone"}
    fresh = await desk.other.reviews.list(str(root))
    assert [one for one in fresh if "buffer" not in one.path] == [
        one for name, one in sorted(now.items()) if name != "buffer"
    ]


CHANGES: dict[str, Callable[[Path], object]] = {"same": in_place, "inode": replaced}


async def test_what_the_person_typed_is_kept_at_the_end_of_a_turn(desk: Desk) -> None:
    place, root = desk.mine, desk.mine.root
    place.editor.open(root / "buffer")
    await asyncio.sleep(OLD)
    await desk.settle()
    for name, change in CHANGES.items():
        change(root / name)
    place.editor.type(str(root / "buffer"), TYPED)
    await desk.settle()
    assert sorted(desk.files.looked) == ["buffer", "buffer", "inode", "inode", "same", "same"]
    for name in (*CHANGES, "buffer"):
        assert len(await place.journal(name)) == 2, name
    assert len(await place.journal("still")) == 1


async def test_a_review_whose_stream_was_removed_and_made_anew_is_another(desk: Desk) -> None:
    place = desk.mine
    await asyncio.sleep(OLD)
    await desk.list()
    stream = stream_of(place.path("still"), False)
    assert await desk.other.world.store.delete(Stream(stream))
    assert "still" not in await desk.list()
    agent = await desk.other.agent("s2")
    await agent.wrote("still", TYPED.encode(), NEW.encode())
    (file,) = [one for one in (await desk.list()).values() if one.path.endswith("/still")]
    assert file.sessions == ("s2",)


async def test_a_commit_accepts_what_it_has_though_no_file_moves(tmp_path: Path) -> None:
    root = tmp_path.resolve() / "work"
    root.mkdir()
    (root / "a").write_text(BASE)
    git(root, "init", "-q")
    git(root, "add", "a")
    git(root, "commit", "-qm", "first")
    async with process(root, tmp_path / "state") as place:
        await (await place.agent()).write("a", NEW)
        git(root, "add", "a")
        await asyncio.sleep(OLD)
        assert len(await place.reviews.list(str(root))) == 1
        assert len(await place.reviews.list(str(root))) == 1
        git(root, "commit", "-qm", "second")
        assert not await place.reviews.list(str(root))
        assert [d.verb for d in await place.decisions("a")] == ["commit"]


def git(root: Path, *arguments: str) -> None:
    author = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
    subprocess.run(["git", *author, *arguments], cwd=root, check=True)
