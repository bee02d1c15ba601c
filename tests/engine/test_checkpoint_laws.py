"""Whatever agents and the person do in turn, on real files: going back loses no line of theirs, and
forth again gives exactly what there was."""

from __future__ import annotations

import asyncio
import random
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from magy_server.core.errors import InvalidRequest
from magy_server.store.memory import MemoryStore
from tests.thorough import examples

from .going_back import Agent, Place, place

NAMES = ("a.py", "b.py", "sub/c.py")


class Life:
    """Random edits of two sessions and a person; each line of the person's is another."""

    def __init__(self, here: Place, agents: list[Agent], seed: int) -> None:
        self._here = here
        self._agents = agents
        self._random = random.Random(seed)
        self._lines = 0
        self._undone: list[list[str]] = [[] for _ in agents]

    def person(self) -> None:
        name = self._random.choice(NAMES)
        text = self._here.read(name)
        if text is None:
            return
        lines = text.splitlines(keepends=True)
        self._lines += 1
        lines.insert(self._random.randint(0, len(lines)), f"person {self._lines}\n")
        self._here.write(name, "".join(lines))

    async def agent(self) -> None:
        number = self._random.randrange(len(self._agents))
        agent = self._agents[number]
        self._undone[number].clear()
        turn = await agent.begin()
        for _ in range(self._random.randint(0, 3)):
            name = self._random.choice(NAMES)
            await agent.call(name, self._edited(self._here.read(name)))
        await agent.end(turn)

    def _edited(self, text: str | None) -> str | None:
        """Some lines put in, some of agents taken out; or the whole file, when it has only such."""
        self._lines += 1
        lines = (text or "").splitlines(keepends=True)
        if lines and "person" not in (text or "") and self._random.random() < 0.2:
            return None
        at = self._random.randint(0, len(lines))
        end = self._random.randint(at, min(at + 2, len(lines)))
        kept = [line for line in lines[at:end] if line.startswith("person")]
        new = [f"agent {self._lines}\n"] * self._random.randint(1, 2)
        return "".join([*lines[:at], *new, *kept, *lines[end:]])

    async def back_and_forth(self) -> None:
        number = self._random.randrange(len(self._agents))
        agent, undone = self._agents[number], self._undone[number]
        before, said = self._here.files(), agent.session.state.conversation.items
        self._lines += 1
        id = f"r{self._lines}"
        turn = self._random.choice(["", *(f"p{n}" for n in range(1, agent.turns + 1))])
        try:
            done = await self._here.checkpoints.restore(agent.session, id, turn)
        except InvalidRequest:
            assert self._here.files() == before
            return
        assert self._persons(self._here.files()) == self._persons(before)
        stuck = {file.path for file in done.files if file.conflict}
        for path in stuck:
            assert self._here.read(path) == before.get(str(Path(path).relative_to(self._here.root)))
        if self._random.random() < 0.7:
            await self._here.checkpoints.restore(agent.session, f"{id} again", undoes=id)
            assert self._here.files() == before
            assert agent.session.state.conversation.items == said
        else:
            undone.append(id)

    async def forth(self) -> None:
        number = self._random.randrange(len(self._agents))
        agent, undone = self._agents[number], self._undone[number]
        if undone:
            before = self._persons(self._here.files())
            await self._here.checkpoints.restore(agent.session, f"{undone[-1]} later",
                                                 undoes=undone.pop())  # fmt: skip
            assert self._persons(self._here.files()) == before

    @staticmethod
    def _persons(files: dict[str, str]) -> list[str]:
        lines = "".join(files.values()).splitlines()
        return sorted(line for line in lines if line.startswith("person"))


@given(st.integers(0, 1 << 32))
@settings(max_examples=examples(25), deadline=None)
def test_no_line_is_lost_and_forth_is_as_it_was(seed: int) -> None:
    async def run(root: Path, state: Path) -> None:
        async with place(root, state, store=MemoryStore()) as here:
            for name in NAMES:
                (root / name).parent.mkdir(exist_ok=True)
                here.write(name, "".join(f"{name} {n}\n" for n in range(8)))
            agents = [await here.session("one"), await here.session("two")]
            life = Life(here, agents, seed)
            chance = random.Random(seed + 1)
            for _ in range(20):
                match chance.randrange(4):
                    case 0:
                        life.person()
                    case 1:
                        await life.agent()
                    case 2:
                        await life.back_and_forth()
                    case 3:
                        await life.forth()

    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory).resolve() / "project"
        root.mkdir()
        asyncio.run(run(root, Path(directory) / "state"))
