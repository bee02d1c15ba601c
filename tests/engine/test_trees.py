"""One runner for each tree of sessions, whoever prompts and whoever dies."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from magy_server.core.agents.mail import Mailed, TextPayload
from magy_server.core.errors import InvalidRequest, NotFound
from magy_server.core.events import Admitted, Ended, Resumed
from magy_server.core.ports import Lease
from magy_server.engine import runner
from magy_server.engine.loaded_sessions import FRESH
from magy_server.engine.log import Write
from magy_server.engine.trees import Trees, root_of
from magy_server.reviews import checkpoints
from magy_server.store.faulty import FaultyStore
from magy_server.store.memory import MemoryStore
from magy_server.store.sqlite import SqliteStore
from tests.engine import going_back
from tests.engine.running import Clock, Place, deafen, place, quiet, until

SCRIPT = """
prompt: hold
call: hold {"name": "gate"}
---
text: Held.

prompt: wait
call: wait {"name": "gate"}
---
text: Waited.

prompt: talk
text: Talked.
"""
TOP = Path(__file__).parents[2]


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """The store is looked at more often."""
    monkeypatch.setattr(runner, "POLL", 0.05)


# --- the lease of a tree --------------------------------------------------------------------------


class SlowStore(MemoryStore):
    """Takes a moment to give and to free a lease, as a store elsewhere does."""

    def __init__(self) -> None:
        super().__init__()
        self.taken: list[Lease] = []

    async def lease(self, root: str) -> Lease | None:
        await asyncio.sleep(0.001)
        lease = await super().lease(root)
        await asyncio.sleep(0.001)
        if lease:
            self.taken.append(lease)
        return lease

    async def release(self, lease: Lease) -> None:
        await asyncio.sleep(0.001)
        await super().release(lease)
        await asyncio.sleep(0.001)


def test_streams_of_a_tree() -> None:
    assert root_of("session/a/1.0/2.0") == root_of("session/a") == "session/a"


async def test_sessions_of_a_tree_share_its_lease() -> None:
    store, released = SlowStore(), list[str]()
    trees = Trees(store, released.append)
    streams = ["session/a", *(f"session/a/{n}" for n in range(20))]
    leases = await asyncio.gather(*(trees.take(stream) for stream in streams))
    assert leases == [Lease("session/a", 1)] * 21 and len(store.taken) == 1
    assert await trees.take("session/a/3") is None  # somebody has it for that one
    await asyncio.gather(*(trees.give_back(stream) for stream in streams[1:]))
    assert trees.holds("session/a/3") and released == []
    await trees.give_back("session/a")
    assert not trees.holds("session/a") and released == ["session/a"]
    assert await store.lease("session/a") == Lease("session/a", 2)


async def test_one_of_two_processes_has_a_tree() -> None:
    """In a storm of taking and giving back they never both have it, and neither keeps it."""
    store = SlowStore()
    both = [Trees(store, lambda root: None) for _ in range(2)]
    dice = random.Random(7)
    has: list[set[str]] = [set(), set()]

    async def use(which: int, stream: str) -> None:
        for _ in range(20):
            if lease := await both[which].take(stream):
                has[which].add(stream)
                assert not has[1 - which]
                assert lease == store.taken[-1]
                for _ in range(dice.randrange(4)):
                    await asyncio.sleep(0.001)
                assert lease == store.taken[-1]
                has[which].discard(stream)
                await both[which].give_back(stream)
            await asyncio.sleep(0.001 * dice.randrange(4))

    await asyncio.gather(*(use(n % 2, f"session/a/{n // 2}") for n in range(8)))
    assert len(store.taken) > 2
    assert not any(trees.holds("session/a") for trees in both)
    assert await store.lease("session/a")


async def test_who_is_cancelled_while_taking_a_tree_does_not_keep_it() -> None:
    store = SlowStore()
    trees = Trees(store, lambda root: None)
    first = asyncio.create_task(trees.take("session/a/1"))
    second = asyncio.create_task(trees.take("session/a/2"))
    await asyncio.sleep(0)
    second.cancel()
    await first
    await trees.give_back("session/a/1")
    assert not trees.holds("session/a")


# --- two processes --------------------------------------------------------------------------------


@pytest.fixture
async def two(tmp_path: Path) -> AsyncIterator[tuple[Place, Place]]:
    """Two processes on one store that know each other."""
    async with place(tmp_path, SCRIPT) as a, place(tmp_path, SCRIPT) as b:
        await until(lambda: a.world.peers() and b.world.peers())
        yield a, b


async def test_a_child_prompted_elsewhere_runs_where_its_tree_runs(
    two: tuple[Place, Place],
) -> None:
    a, b = two
    await a.root()
    await a.prompt("s", "hold", "p")
    await until(lambda: a.gates.inside == ["gate"])
    await b.child("s/x", "talk")
    await b.run("s/x")
    await a.rests("s/x")
    assert (a.replies("s/x"), b.replies("s/x")) == (1, 0)
    await b.prompt("s/x", "talk", "again")  # of a living process, with an editor of its own
    await until(lambda: a.by_me("s/x", Ended) == 2)
    assert b.by_me("s/x", Admitted) == 0
    a.gates.open("gate")
    await a.rests("s")


async def test_a_child_runs_where_it_is_prompted_when_its_tree_rests(
    two: tuple[Place, Place],
) -> None:
    a, b = two
    await a.root()
    await a.child("s/x", "talk")
    await a.run("s/x")
    await a.rests("s/x")
    await until(lambda: not a.sessions.trees.holds("session/s"))
    await b.prompt("s/x", "talk", "again")
    await b.rests("s/x")
    assert (a.replies("s/x"), b.replies("s/x")) == (1, 1)


async def test_both_begin_a_whole_tree_at_once(two: tuple[Place, Place]) -> None:
    """Every turn is run once, all of them by the same process or by one after the other."""
    a, b = two
    ids = [f"s/{n}" for n in range(6)]
    await a.root()
    for id in ids:
        await a.child(id, "hold")
    await asyncio.gather(*(at.run(id) for id in ids for at in two))
    await until(lambda: len(a.gates.inside) + len(b.gates.inside) == len(ids))
    await quiet()
    assert sorted([len(a.gates.inside), len(b.gates.inside)]) == [0, len(ids)]
    for at in two:
        at.gates.open("gate")
    await until(lambda: sum(at.by_me(id, Ended) for at in two for id in ids) == len(ids))
    await quiet()
    assert [a.turns(id) + b.turns(id) for id in ids] == [1] * len(ids)
    assert [a.replies(id) + b.replies(id) for id in ids] == [2] * len(ids)


async def test_a_prompt_to_the_root_waits_for_a_tree_that_runs_elsewhere(
    impatient: None, two: tuple[Place, Place]
) -> None:
    """It is of another editor; the person is told, and it begins when the tree rests."""
    a, b = two
    await a.root()
    await a.child("s/x", "hold")
    await a.run("s/x")
    await until(lambda: a.gates.inside == ["gate"])
    await b.prompt("s", "talk", "p")
    session = await b.sessions.session("session/s")
    await until(lambda: ("notice", "notice") in session.streaming.partials)
    assert session.streaming.partials["notice", "notice"].since(0) == runner.ELSEWHERE
    await quiet()
    assert session.streaming.partials["notice", "notice"].since(0) == runner.ELSEWHERE  # said once
    assert a.turns("s") == b.turns("s") == 0
    a.gates.open("gate")
    await b.rests("s")
    assert (a.replies("s"), b.replies("s")) == (0, 1)


async def test_a_prompt_waits_for_its_own_editor_whatever_mail_goes_along(
    impatient: None, two: tuple[Place, Place]
) -> None:
    a, b = two
    root = await a.root()
    await a.child("s/x", "hold")
    await a.run("s/x")
    await until(lambda: a.gates.inside == ["gate"])
    said = Mailed(id="m1", sender="s/y", agent="build", to="s", payload=TextPayload(text="Hello."),
                  wakes=False)  # fmt: skip
    await root.append(lambda now: Write([said]))
    await b.prompt("s", "talk", "p")
    session = await b.sessions.session("session/s")
    await until(lambda: ("notice", "notice") in session.streaming.partials)
    await quiet()
    assert a.turns("s") == b.turns("s") == 0
    a.gates.open("gate")
    await b.rests("s")
    assert (a.replies("s"), b.replies("s")) == (0, 1)
    assert not (await b.state("s")).queue.waiting


async def test_what_the_bus_dropped_is_run_all_the_same(
    impatient: None, two: tuple[Place, Place]
) -> None:
    """Nobody hears that the child was made, and that the tree is free again."""
    a, b = two
    await a.root()
    await a.prompt("s", "hold", "p")
    await until(lambda: a.gates.inside == ["gate"])
    for at in two:
        deafen(at.world.bus)
    await b.child("s/x", "talk")
    await b.run("s/x")
    await quiet()
    assert a.replies("s/x") == 0
    a.gates.open("gate")
    await until(lambda: a.replies("s/x") + b.replies("s/x") == 1)


# --- taking over ----------------------------------------------------------------------------------


async def left_open(at: Place) -> list[str]:
    """A tree of which every session has a turn that goes on."""
    await at.root()
    await at.prompt("s", "wait", "p")
    for id in ("s/a", "s/a/x", "s/b"):
        await at.child(id, "hold")
        await at.run(id)
    await until(lambda: len(at.gates.inside) == 4)
    return ["s", "s/a", "s/a/x", "s/b"]


async def test_a_tree_is_taken_over_whole(tmp_path: Path) -> None:
    async with place(tmp_path, SCRIPT) as a:
        ids = await left_open(a)
    async with place(tmp_path, SCRIPT) as b:
        await b.run("s/b")
        await b.rests(*ids)
        assert [b.by_me(id, Resumed) for id in ids] == [1, 1, 1, 1]
        assert [b.by_me(id, Ended) for id in ids] == [1, 1, 1, 1]


async def test_what_lay_idle_waits_for_a_person(tmp_path: Path) -> None:
    """But for what is below a session that goes on: that is waited for. The root goes on when it
    gets a result, and so does its other child, whether or not the tree was held until then."""
    async with place(tmp_path, SCRIPT) as a:
        ids = await left_open(a)
    async with place(tmp_path, SCRIPT, clock=Clock(ahead=2 * FRESH)) as b:
        await b.service.resume_all([])
        await quiet()
        assert [b.by_me(id, Resumed) for id in ids] == [0, 0, 0, 0]
        await b.run("s/a")
        await b.rests(*ids)
        assert [b.by_me(id, Resumed) for id in ids] == [1, 1, 1, 1]


async def test_a_child_may_be_deleted_while_its_tree_runs_here(tmp_path: Path) -> None:
    async with place(tmp_path, SCRIPT) as at:
        await left_open(at)
        assert await at.service.delete("s/b")
        with pytest.raises(NotFound):
            await at.sessions.session("session/s/b")
        assert at.sessions.trees.holds("session/s")
        at.gates.open("gate")
        await at.rests("s", "s/a", "s/a/x")


async def test_a_tree_that_runs_elsewhere_is_not_deleted(two: tuple[Place, Place]) -> None:
    a, b = two
    ids = await left_open(a)
    for id in ids:
        with pytest.raises(InvalidRequest, match="Another process runs session") as refused:
            await b.service.delete(id)
        assert refused.value.reason == "busy"
    a.gates.open("gate")
    await a.rests(*ids)


async def test_sessions_that_rest_cost_no_look_at_the_store(
    impatient: None, tmp_path: Path
) -> None:
    """However many are in memory; who asks for one gets it as it is now, heard of or not."""
    store = FaultyStore(await SqliteStore.open(tmp_path))
    async with place(tmp_path, SCRIPT) as a, place(tmp_path, SCRIPT, store=store) as b:
        await until(lambda: a.world.peers() and b.world.peers())
        for n in range(50):
            await a.root(f"r{n}")
            await b.sessions.session(f"session/r{n}")
        (await b.sessions.session("session/r7"))._replica.close()
        before = len(store.done["read"])
        await a.service.configure("r7", "title", "New")
        await quiet()
        assert store.done["read"][before:] == []
        assert (await b.sessions.session("session/r7")).state.options["title"] == "New"
        assert [read for read, _ in store.done["read"][before:]] == [("session/r7",)]


# --- going back -----------------------------------------------------------------------------------


async def test_a_session_goes_back_while_others_of_its_tree_are_at_work_here(
    tmp_path: Path,
) -> None:
    async with going_back.place(tmp_path / "files", tmp_path / "state") as at:
        agent = await at.session("s")
        await agent.turn(a_py="one\n")
        assert await at.sessions.trees.take("session/s/child")
        await at.checkpoints.restore(agent.session, "r1")
        assert at.read("a.py") is None
        assert at.sessions.trees.holds("session/s")
        await at.sessions.trees.give_back("session/s/child")
        assert not at.sessions.trees.holds("session/s")


async def test_a_session_does_not_go_back_while_its_tree_runs_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoints, "TRIES", 5)
    files, state = tmp_path / "files", tmp_path / "state"
    async with going_back.place(files, state) as a, going_back.place(files, state) as b:
        agent = await a.session("s")
        await agent.turn(a_py="one\n")
        assert await b.sessions.trees.take("session/s/child")
        with pytest.raises(InvalidRequest, match="is at work"):
            await a.checkpoints.restore(agent.session, "r1")
        await b.sessions.trees.give_back("session/s/child")
        await a.checkpoints.restore(agent.session, "r1")
        assert a.read("a.py") is None


# --- real processes -------------------------------------------------------------------------------


class Process:
    """Of `tree_process.py`. `said` is what it appended to the log."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self.said: list[Any] = []
        self._reading = asyncio.create_task(self._read())

    @classmethod
    async def start(cls, state: Path) -> Process:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "tests.engine.tree_process", state, SCRIPT,
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, cwd=TOP,
        )  # fmt: skip
        started = cls(process)
        await until(lambda: started.said)
        return started

    async def _read(self) -> None:
        assert self._process.stdout
        while line := await self._process.stdout.readline():
            self.said.append(json.loads(line))

    def tell(self, *words: str) -> None:
        assert self._process.stdin
        self._process.stdin.write(json.dumps(words).encode() + b"\n")

    def count(self, kind: str, id: str = "") -> int:
        mine = [line for line in self.said if line != "ready" and line[2] == kind]
        return sum(line[0] == id or not id for line in mine)

    async def end(self, sign: signal.Signals = signal.SIGKILL) -> None:
        if self._process.returncode is None:
            os.kill(self._process.pid, sign)
        await self._process.wait()
        await self._reading
        assert self._process.stdin
        self._process.stdin.close()


Start = Callable[[], Any]


@pytest.fixture
async def start(tmp_path: Path) -> AsyncIterator[Start]:
    async with AsyncExitStack() as closing:

        async def start() -> Process:
            process = await Process.start(tmp_path / "state")
            closing.push_async_callback(process.end)
            return process

        yield start


@pytest.mark.req("G020")
async def test_killed_with_a_tree_at_work(start: Start) -> None:
    """Another process that lives goes on with all of it, and nothing is done by both."""
    a, b = await start(), await start()
    ids = ["s", "s/a", "s/a/x", "s/b"]
    a.tell("root", "s")
    a.tell("prompt", "s", "wait", "p")
    for id in ids[1:]:
        a.tell("child", id, "hold")
        a.tell("run", id)
    await until(lambda: a.count("started") == 4)
    for id in ids:
        b.tell("run", id)  # which it leaves to the process that has them
    b.tell("prompt", "s/b", "talk", "more")
    await until(lambda: b.count("prompted") == 1)
    await a.end()
    await until(lambda: b.count("ended") >= 5)
    assert b.count("resumed") == 4
    assert [a.count("replied", id) for id in ids] == [1, 1, 1, 1]
    assert [b.count("replied", id) for id in ids] == [1, 1, 1, 2]
    both = [tuple(line[:2]) for process in (a, b) for line in process.said if line != "ready"]
    assert len(both) == len(set(both))
