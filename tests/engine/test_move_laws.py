"""Files that are moved and moved on, while the person edits them and makes others in their way, on
real files: going back and forth loses nothing of what there is."""

from __future__ import annotations

import asyncio
import random
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from magy_server.core.errors import InvalidRequest
from magy_server.store.memory import MemoryStore
from tests.thorough import examples

from .going_back import Place, place

NAMES = ("a", "b", "c", "d")
TEXT = "one\ntwo\nthree\n"


@pytest.fixture
async def here(tmp_path: Path) -> AsyncIterator[Place]:
    root = tmp_path.resolve() / "project"
    root.mkdir()
    async with place(root, tmp_path / "state") as one:
        yield one


async def test_where_a_file_only_came_through_nothing_is_undone(here: Place) -> None:
    """One turn moves it from a to b, the next on to c; its first place is taken."""
    here.write("a", TEXT)
    agent = await here.session()
    for old, new in (("a", "b"), ("b", "c")):
        turn = await agent.begin()
        await agent.move(old, new)
        await agent.end(turn)
    here.write("a", "mine\n")
    refused = await here.checkpoints.restore(agent.session, "r1", "p1", conversation=False)
    assert [bool(file.conflict) for file in refused.files] == [True, True]
    points = await here.checkpoints.list(agent.session)
    assert [point.state for point in points] == ["applied", "applied"]
    await here.checkpoints.restore(agent.session, "r2", "p2", conversation=False)
    assert here.files() == {"a": "mine\n", "b": TEXT}
    await here.checkpoints.restore(agent.session, "r3", undoes="r2", conversation=False)
    assert here.files() == {"a": "mine\n", "c": TEXT}


async def test_a_chain_that_was_refused_goes_back_whole_later(here: Place) -> None:
    """Both moves in one turn; the first place is free again, and the file has been edited."""
    here.write("a", TEXT)
    agent = await here.session()
    turn = await agent.begin()
    await agent.move("a", "b")
    await agent.move("b", "c")
    await agent.end(turn)
    here.write("a", "mine\n")
    await here.checkpoints.restore(agent.session, "r1", conversation=False)
    assert here.files() == {"a": "mine\n", "c": TEXT}
    (here.root / "a").unlink()
    here.write("c", "mine\n" + TEXT)
    await here.checkpoints.restore(agent.session, "r2", conversation=False)
    assert here.files() == {"a": "mine\n" + TEXT}


async def test_moves_that_change_places_are_done_again_whole_or_not_at_all(here: Place) -> None:
    """The place of the first is taken when it is redone: then the second does not overwrite it."""
    here.write("a", "first\n")
    here.write("d", "second\n")
    agent = await here.session()
    turn = await agent.begin()
    await agent.move("a", "b")
    await agent.move("d", "a")
    await agent.end(turn)
    await here.checkpoints.restore(agent.session, "r1", conversation=False)
    here.write("b", "mine\n")
    before = here.files()
    await here.checkpoints.restore(agent.session, "r2", undoes="r1", conversation=False)
    assert here.files() == before == {"a": "first\n", "b": "mine\n", "d": "second\n"}
    (here.root / "b").unlink()
    await here.checkpoints.restore(agent.session, "r3", undoes="r1", conversation=False)
    assert here.files() == {"a": "second\n", "b": "first\n"}


class Life:
    """Each line that the person writes is another, and nobody but the person deletes one."""

    def __init__(self, here: Place, seed: int) -> None:
        self._here = here
        self._random = random.Random(seed)
        self._lines = 0
        self._undone: list[str] = []
        self._brought: dict[str, set[str]] = {}
        """What a restore gave back that was gone: only that goes again with it."""

    def _line(self) -> str:
        self._lines += 1
        return f"line {self._lines}\n"

    async def person(self) -> None:
        name = self._random.choice(NAMES)
        text = self._here.read(name)
        if text is None:
            self._here.write(name, "".join(self._line() for _ in range(5)))
        elif self._random.random() < 0.3:
            (self._here.root / name).unlink()
        else:
            lines = text.splitlines(keepends=True)
            lines.insert(self._random.randint(0, len(lines)), self._line())
            self._here.write(name, "".join(lines))

    async def agent(self) -> None:
        """A turn that moves files, to free places or over others, and edits some on the way."""
        turn = await self._agent.begin()
        for _ in range(self._random.randint(1, 3)):
            there = sorted(self._here.files())
            if not there:
                break
            old = self._random.choice(there)
            new = self._random.choice([name for name in NAMES if name not in there] or [old])
            if new != old:
                lines = (self._here.read(old) or "").splitlines(keepends=True)
                at = self._random.randint(0, len(lines))
                edit = self._random.choice([[], [f"agent {turn}\n"]])
                await self._agent.call(new, "".join([*lines[:at], *edit, *lines[at:]]),
                                       moved_from=old)  # fmt: skip
                await self._agent.call(old, None)
        await self._agent.end(turn)

    async def back(self) -> None:
        id = f"r{self._line()}"
        turn = self._random.choice(["", *(f"p{n}" for n in range(1, self._agent.turns + 1))])
        if await self._restore(id, turn):
            self._undone.append(id)

    async def forth(self) -> None:
        if self._undone:
            await self._restore(f"r{self._line()}", undoes=self._undone.pop())

    async def _restore(self, id: str, turn: str = "", undoes: str = "") -> bool:
        before = self._here.files()
        session, checkpoints = self._agent.session, self._here.checkpoints
        try:
            await checkpoints.restore(session, id, turn, undoes=undoes, conversation=False)
        except InvalidRequest:
            assert self._here.files() == before
            return False
        had, has = persons(before), persons(self._here.files())
        assert had - has <= self._brought.get(undoes, set()), (before, self._here.files())
        self._brought[id] = has - had
        return True

    async def live(self) -> None:
        self._agent = await self._here.session()
        for _ in range(2):
            self._here.write(self._random.choice(NAMES), "".join(self._line() for _ in range(5)))
        for _ in range(20):
            do = self._random.choice([self.person, self.agent, self.agent, self.back, self.forth])
            await do()


def persons(files: dict[str, str]) -> set[str]:
    lines = "".join(files.values()).splitlines()
    return {line for line in lines if line.startswith("line")}


@given(st.integers(0, 1 << 32))
@settings(max_examples=examples(25), deadline=None)
def test_no_file_is_lost_by_moving_it_back_and_forth(seed: int) -> None:
    async def run(root: Path, state: Path) -> None:
        async with place(root, state, store=MemoryStore()) as here:
            await Life(here, seed).live()

    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory).resolve() / "project"
        root.mkdir()
        asyncio.run(run(root, Path(directory) / "state"))
