"""Whatever a person, other agents and an editor do while a command runs, on real files in a real
repository: what is reported as the command's is what it changed, all of it and nothing else."""

from __future__ import annotations

import asyncio
import os
import random
import subprocess
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from magy_server.core.errors import Conflict, MagyError, NotFound
from magy_server.core.values import FileChange, Version, digest
from magy_server.tools.shell.processes import Processes
from magy_server.tools.tracking.worktree import Outcome, Worktrees

from .reviewing import Agent, Place, process

pytestmark = pytest.mark.needs("git")

SLOTS = 12
"""Lines of a file that somebody changes, with others between; by turns they are an agent's, which
the person decides about, the person's to type in, the command's, and another agent's."""
AGENTS, PERSONS, COMMANDS, OTHERS = (range(first, SLOTS, 4) for first in range(4))


RUNNING = {"s3", "s4"}
"""The sessions whose commands run."""


def first(slot: int) -> str:
    return f"slot {slot}: as committed\n"


def text_of() -> str:
    between = "between {0}.0\nbetween {0}.1\nbetween {0}.2\n"
    return "".join(first(slot) + between.format(slot) for slot in range(SLOTS))


def slots(text: str) -> dict[int, str]:
    """What stands in each; nothing where it was removed. A slot has a line, or several."""
    found = dict.fromkeys(range(SLOTS), "")
    for line in text.splitlines(keepends=True):
        if line.startswith("slot "):
            found[int(line[5 : line.index(":")])] += line
    return found


def put(text: str, slot: int, new: str) -> str:
    """With `new` in the slot."""
    lines = [
        line for line in text.splitlines(keepends=True) if not line.startswith(f"slot {slot}:")
    ]
    at = next(n for n, line in enumerate(lines) if line.startswith(f"between {slot}."))
    return "".join([*lines[:at], new, *lines[at:]])


class Life:
    """Of one file while a command runs."""

    def __init__(self, place: Place, other: Agent, name: str, seed: int) -> None:
        self._place, self._other, self.name = place, other, name
        self._path = place.path(name)
        self._random = random.Random(seed)
        self._decided: list[str] = []
        self._silent = seed % 3 == 0
        """The editor does not say that it saved."""
        self._eol = "\r\n" if seed % 5 == 0 else "\n"
        """What the file has, and the editor does not show."""
        place.editor.ends[self._path] = self._eol
        self._behind = False
        self._count = 0
        self.said: list[str] = []

    # --- the file, as text with plain line ends --------------------------------------------------

    def disk(self) -> str:
        return Path(self._path).read_bytes().decode().replace(self._eol, "\n")

    def as_bytes(self, text: str) -> bytes:
        return text.replace("\n", self._eol).encode()

    def write(self, text: str) -> None:
        data = self.as_bytes(text)
        if self._random.random() < 0.5:
            spare = Path(self._path + ".new")
            spare.write_bytes(data)
            os.replace(spare, self._path)
        else:
            Path(self._path).write_bytes(data)

    def shown(self) -> str | None:
        buffer = self._place.editor.buffer(self._path)
        return buffer.text if buffer else None

    def another(self, slot: int) -> str:
        self._count += 1
        return f"slot {slot}: number {self._count}\n"

    # --- what happens ----------------------------------------------------------------------------

    async def step(self) -> None:
        choices: list[tuple[int, Callable[[], Any]]] = [
            (4, self.command), (4, self.type), (2, self.save), (2, self.decide), (1, self.undo),
            (1, self.other_agent), (1, self.load), (1, self.open_or_close),
            (1, self.saved_and_at_once_written), (1, self.heard_late),
        ]  # fmt: skip
        (act,) = self._random.choices([a for _, a in choices], [w for w, _ in choices])
        self.said.append(act.__name__)
        done = act()
        if done is not None:
            try:
                await done
            except MagyError as error:  # refused: nothing was done
                self.said[-1] += f" ({error.message[:60]})"

    def command(self) -> None:
        slot = self._random.choice(COMMANDS)
        news = (self.another(slot), "", first(slot), first(slot) + self.another(slot))
        self.write(put(self.disk(), slot, self._random.choice(news)))

    def type(self) -> None:
        text = self.shown()
        if text is not None:
            slot, self._behind = self._random.choice(PERSONS), False
            self._place.editor.type(self._path, put(text, slot, self.another(slot)))

    def save(self) -> None:
        text = self.shown()
        if text is None or text == self.disk():  # there is nothing to save
            return
        if self._random.random() < 0.3:  # a formatter, before or after it is written
            slot = self._random.choice(PERSONS)
            formatted = put(text, slot, self.another(slot))
            if self._random.random() < 0.5:
                self._place.editor.type(self._path, formatted)
                self._written(formatted)
            elif not self._silent:
                self._written(formatted)
                self._place.editor.type(self._path, formatted)
            return
        self._written(text)

    def _written(self, text: str) -> None:
        """By the editor."""
        self.write(text)
        if not self._silent:
            self._place.editor.tell(self._path, saved=True)

    def heard_late(self) -> None:
        """What was typed is heard of when it has been saved already."""
        text = self.shown()
        if text is not None and not self._silent:
            slot, self._behind = self._random.choice(PERSONS), False
            text = put(text, slot, self.another(slot))
            self.write(text)
            self._place.editor.type(self._path, text)
            self._place.editor.tell(self._path, saved=True)

    def saved_and_at_once_written(self) -> None:
        """Before the editor says that it saved. What it shows right after that would be what it
        had made of the text by saving."""
        text = self.shown()
        if text is not None and text != self.disk():  # else there is nothing to save
            self._behind = True
            self.write(text)
            self.command()
            if not self._silent:
                self._place.editor.tell(self._path, saved=True)

    def load(self, all_the_same: bool = False) -> None:
        if (
            self.shown() is not None
            and self.shown() != self.disk()
            and (all_the_same or not self._behind)
        ):
            self._place.editor.type(self._path, self.disk())

    def open_or_close(self) -> None:
        editor = self._place.editor
        if self.shown() is None:
            editor.open(Path(self._path), self.disk())
        elif self.shown() == self.disk():
            del editor.buffers[self._path]

    async def decide(self) -> None:
        file = await self._place.reviews.get(self._path)
        own = [n for n, hunk in enumerate(file.hunks)
               if slots(hunk.old).keys() and any(first(s) in hunk.old for s in AGENTS)]  # fmt: skip
        if own:
            number = self._random.choice(own)
            verb = self._random.choice(("reject", "reject", "accept", "amend"))
            slot = next(s for s in AGENTS if first(s) in file.hunks[number].old)
            more = {"text": self.another(slot)} if verb == "amend" else {}
            outcome = await self._place.decide(verb, self.name, number, **more)
            self._decided.append(outcome.decision)

    async def undo(self) -> None:
        if self._decided:
            outcome = await self._place.reviews.undo(self._random.choice(self._decided), self._path)
            if outcome.decision:
                self._decided.append(outcome.decision)

    async def other_agent(self) -> None:
        """Another session's edit, as its tools make it, with its end in the log."""
        files = self._place.world.files
        assert files is not None
        root = str(self._place.root)
        was = await files.look(root, self._path)
        text = self._place.world.files.text(was.data) or ""
        slot = self._random.choice(OTHERS)
        data = (
            put(text.replace(self._eol, "\n"), slot, self.another(slot))
            .replace("\n", self._eol)
            .encode()
        )
        made = await files.put(root, was, Version(hash=digest(data)), data, "edit")
        before, after = made.was, made.now
        change = FileChange(path=self._path, before=before.version.hash, after=after.version.hash)
        blobs = {digest(d): d for d in (before.data, after.data)}
        await self._other.changes(change, blobs=blobs)

    # --- the law ---------------------------------------------------------------------------------

    def check(self, outcome: Outcome, alone: bool = True) -> None:
        """`alone`: no other command ran, which may have been there first."""
        now = self.disk()
        told = [change for change in outcome.changes if change.path == self._path]
        for change in told:
            assert change.before and change.after
            before, after = (
                outcome.blobs[h].decode().replace(self._eol, "\n")
                for h in (change.before, change.after)
            )
            assert after == now
            was, now_slots = slots(before), slots(after)
            differ = {slot for slot in was if was[slot] != now_slots[slot]}
            assert differ <= set(COMMANDS), (differ, self.said)
            assert not alone or all(was[s] == first(s) for s in COMMANDS), (was, self.said)
            assert put_all(before, now_slots) == after
            ends = (
                outcome.blobs[change.before].count(b"\n"),
                outcome.blobs[change.before].count(b"\r\n"),
            )
            assert self._eol == "\n" or ends[0] == ends[1]
        if alone and not told:
            there = slots(now)
            assert all(there[slot] == first(slot) for slot in COMMANDS), (there, self.said)

    async def check_review(self, alone: bool = True) -> None:
        """Once nothing is open, as the files are then: its hunks are of these lines alone. (What
        one of two commands made before the other began, and that took back, is this one's.)"""
        try:
            hunks = (await self._place.reviews.get(self._path)).hunks
        except NotFound:
            hunks = ()
        own = {slot for hunk in hunks for slot in COMMANDS
               if slots(hunk.old)[slot] != slots(hunk.new)[slot]}  # fmt: skip
        there = slots(self.disk())
        differ = {slot for slot in COMMANDS if there[slot] != first(slot)}
        assert own == differ or (own > differ and not alone), self.said
        for hunk in hunks:
            whose = {slot % 4 for slot in range(SLOTS)
                     if slots(hunk.old)[slot] != slots(hunk.new)[slot]}  # fmt: skip
            by = {origin.session for origin in hunk.origins}
            assert bool(by & RUNNING) == (COMMANDS[0] in whose), (hunk, self.said)
            assert whose == {COMMANDS[0]} or not by & RUNNING, (hunk, self.said)


def put_all(text: str, values: dict[int, str]) -> str:
    for slot, value in values.items():
        text = put(text, slot, value)
    return text


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[Place]:
    root = tmp_path.resolve() / "work"
    root.mkdir()
    async with process(root, tmp_path / "state") as one:
        yield one


def committed(root: Path, names: dict[str, bytes]) -> None:
    for name, data in names.items():
        (root / name).write_bytes(data)
    who = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "core.autocrlf=false"]
    for words in (["init", "-q"], ["add", "-A"], [*who, "commit", "-qm", "x"]):
        subprocess.run(["git", "-C", str(root), *words], check=True)


@pytest.mark.parametrize("seed", [*range(4), 228, 309])
async def test_only_what_a_command_changed_is_its_own(place: Place, seed: int) -> None:
    all_ = await begun(place, seed, files=10)
    running = await place.agent("s3")
    async with Worktrees(Processes(set())).around(str(place.root), place.editor) as around:
        await live(all_, 12)
        outcome = await around.changes()
    await logged(running, outcome)
    assert outcome.changes
    for one in all_:
        one.check(outcome)
    await at_the_end(place, all_)


@pytest.mark.parametrize("seed", [*range(4), 305])
async def test_what_two_commands_changed_at_once_is_told_once(place: Place, seed: int) -> None:
    all_ = await begun(place, 100 + seed, files=10)
    trees, agents = Worktrees(Processes(set())), [await place.agent(id) for id in sorted(RUNNING)]
    async with AsyncExitStack() as ending:
        arounds = []
        for _ in agents:
            around = trees.around(str(place.root), place.editor)
            arounds.append(await ending.enter_async_context(around))
            await live(all_, 4)
        ended = list(zip(agents, arounds, strict=True))
        random.Random(seed).shuffle(ended)
        if seed % 2:  # at the same moment
            outcomes = list(await asyncio.gather(*(around.changes() for _, around in ended)))
        else:
            outcomes = [await ended[0][1].changes()]
        for (agent, around), at in zip(ended, range(2), strict=True):
            if at == len(outcomes):
                await live(all_, 4)
                outcomes.append(await around.changes())
            outcome = outcomes[at]
            await logged(agent, outcome)
            for one in all_:
                one.check(outcome, alone=False)
                if seed % 4 < 2:  # what is open lets go of what was changed on disk
                    one.load(all_the_same=True)
    if seed % 4 < 2:
        await at_the_end(place, all_, alone=False)


async def logged(agent: Agent, outcome: Outcome) -> None:
    while True:
        try:
            return await agent.changes(*outcome.changes, blobs=outcome.blobs, command="x")
        except Conflict:  # what the person had changed was written down at that moment
            continue


async def begun(place: Place, seed: int, files: int) -> list[Life]:
    """With an agent's hunks under review; some open, some with text that is not saved."""
    agent, second = [await place.agent(id) for id in ("s1", "s2")]
    found = [Life(place, second, f"f{n}.txt", seed * 1000 + n) for n in range(files)]
    committed(place.root, {one.name: one.as_bytes(text_of()) for one in found})
    chance = random.Random(seed)
    for one in found:
        text = one.disk()
        for slot in AGENTS:
            text = put(text, slot, one.another(slot))
        await agent.write(one.name, one.as_bytes(text))
        if chance.random() < 0.7:
            one.open_or_close()
            if chance.random() < 0.3:
                one.type()
    return found


async def live(all_: Sequence[Life], steps: int) -> None:
    for _ in range(steps):
        for one in all_:
            await one.step()


async def at_the_end(place: Place, all_: Sequence[Life], alone: bool = True) -> None:
    place.editor.buffers.clear()
    for one in all_:
        await one.check_review(alone)
