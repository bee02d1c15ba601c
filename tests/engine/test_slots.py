"""Slots and permits: who works holds one, who waits does not, and nobody waits for ever."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from magy_server.core.agents.child import status
from magy_server.core.errors import ProviderError
from magy_server.core.events import Replied
from magy_server.core.ports import Delta, ModelRequest
from magy_server.core.spawn_settings import SpawnSettings
from magy_server.core.steps import Rest, next_step
from magy_server.core.values import Text
from magy_server.engine.session import Session
from magy_server.team.slots import PER_PROVIDER, REQUESTS, LimitedSlots, Permits
from tests.engine.running import Place, place, quiet, until
from tests.patience import PATIENCE
from tests.thorough import examples

# --- permits --------------------------------------------------------------------------------------

_OPS = st.lists(
    st.one_of(
        st.just(("acquire", 0)),
        st.tuples(st.just("release"), st.integers(0, 9)),
        st.tuples(st.just("cancel"), st.integers(0, 9)),
        st.tuples(st.just("resize"), st.integers(1, 4)),
        st.just(("tick", 0)),
    ),
    max_size=60,
)


class Users:
    """Tasks that each hold a permit until they are told to let it go."""

    def __init__(self, permits: Permits) -> None:
        self.permits = permits
        self.tasks: list[asyncio.Task[None]] = []
        self.served: list[int] = []
        self.waited: list[int] = []
        """Those of them that had to wait."""
        self._done: dict[int, asyncio.Event] = {}

    def start(self) -> None:
        number = len(self.tasks)
        self._done[number] = asyncio.Event()
        self.tasks.append(asyncio.create_task(self._use(number)))

    async def _use(self, number: int) -> None:
        waits = self.permits.used >= self.permits.size
        assert waits or not self.permits.waiting  # nobody is overtaken
        async with self.permits:
            self.served.append(number)
            if waits:
                self.waited.append(number)
            await self._done[number].wait()

    def release(self, which: int) -> None:
        if self.holding:
            self._done[self.holding[which % len(self.holding)]].set()

    def cancel(self, which: int) -> None:
        if alive := [task for task in self.tasks if not task.done()]:
            alive[which % len(alive)].cancel()

    @property
    def holding(self) -> list[int]:
        return [n for n in self.served if not self.tasks[n].done() and not self._done[n].is_set()]

    async def settle(self) -> None:
        for _ in range(4):
            await asyncio.sleep(0)

    async def finish(self) -> None:
        """All that still wait come to be served when each lets go in the end."""
        for event in self._done.values():
            event.set()
        async with asyncio.timeout(PATIENCE):
            await asyncio.gather(*self.tasks, return_exceptions=True)


@settings(max_examples=examples(150), deadline=None)
@given(st.integers(1, 3), _OPS)
@pytest.mark.req("A075")
def test_permits_keep_their_bound_and_starve_nobody(size: int, ops: list[tuple[str, int]]) -> None:
    async def check() -> None:
        permits = Permits(size)
        users, bound = Users(permits), size
        for op, number in ops:
            match op:
                case "acquire":
                    users.start()
                case "release":
                    users.release(number)
                case "cancel":
                    users.cancel(number)
                case "resize":
                    bound = max(number, permits.used)
                    permits.resize(number)
                case "tick":
                    await users.settle()
                    assert permits.used == len(users.holding) <= bound
                    assert permits.used >= permits.size or permits.waiting == 0
                    bound = max(permits.size, permits.used)
            assert permits.used <= bound
        await users.finish()
        assert users.waited == sorted(users.waited)  # first come, first served
        given_up = [n for n, task in enumerate(users.tasks) if task.cancelled()]
        assert set(range(len(users.tasks))) == {*users.served, *given_up}
        assert (permits.used, permits.waiting) == (0, 0)

    asyncio.run(check())


async def test_a_permit_that_comes_as_its_user_is_cancelled_goes_to_the_next() -> None:
    permits = Permits(1)
    await permits.acquire()
    first, second = (asyncio.create_task(permits.acquire()) for _ in range(2))
    await asyncio.sleep(0)
    permits.release()  # given to the first, which does not know yet
    first.cancel()
    await asyncio.wait_for(second, PATIENCE)
    assert first.cancelled() and (permits.used, permits.waiting) == (1, 0)


async def test_nobody_overtakes_who_waits() -> None:
    permits = Permits(1)
    await permits.acquire()
    first = asyncio.create_task(permits.acquire())
    await asyncio.sleep(0)
    permits.release()
    second = asyncio.create_task(permits.acquire())
    await asyncio.wait_for(first, PATIENCE)
    assert not second.done() and permits.waiting == 1
    permits.release()
    await asyncio.wait_for(second, PATIENCE)


# --- limits ---------------------------------------------------------------------------------------


@pytest.mark.req("C053")
def test_what_is_asked_for_is_clamped_and_said() -> None:
    slots = LimitedSlots()
    said = slots.configure(SpawnSettings(max_depth=999, max_children=0, max_concurrent=99))
    held = slots.limits
    assert (held.max_depth, held.max_children, held.max_concurrent) == (3, 1, 10)
    assert slots.children.size == 10
    assert [sentence.split(":")[0] for sentence in said] == [
        "spawn.max_depth", "spawn.max_children", "spawn.max_concurrent",
    ]  # fmt: skip


# --- the slots of children ------------------------------------------------------------------------

WORK = """
prompt: work
call: hold {"name": "work"}
---
text: Worked.

prompt: waits
call: wait {"name": "answer"}
---
call: hold {"name": "after"}
---
text: Waited.

prompt: asks
call: ask {"name": "never"}
---
text: Asked.

prompt: talk
text: Talked.
"""


async def children(at: Place, names: str, prompt: str) -> list[str]:
    """Spawned and woken, in this order."""
    ids = [f"s/{name}" for name in names]
    for id in ids:
        await at.child(id, prompt)
        await at.run(id)
    return ids


async def test_children_beyond_the_limit_wait_their_turn(tmp_path: Path) -> None:
    async with place(tmp_path, WORK) as at:
        at.slots.configure(SpawnSettings(max_concurrent=2))
        await at.root()
        ids = await children(at, "abcd", "work")
        await until(lambda: at.gates.inside.count("work") == 2)
        await quiet()
        assert [at.slots.queued(f"session/{id}") for id in ids] == [False, False, True, True]
        assert (at.slots.working(), at.slots.waiting()) == (4, 2)
        states = [await at.state(id) for id in ids]
        assert [
            status(state, queued=at.slots.queued(state.stream)) for state in states
        ] == ["running", "running", "queued", "queued"]  # fmt: skip
        assert at.turns("s/c") == 0  # its turn has not begun
        at.gates.open("work")
        await at.rests(*ids)
        assert [at.replies(id) for id in ids] == [2, 2, 2, 2]
        await until(lambda: (at.slots.working(), at.slots.children.used) == (0, 0))


async def test_limits_change_while_children_run(tmp_path: Path) -> None:
    async with place(tmp_path, WORK) as at:
        at.slots.configure(SpawnSettings(max_concurrent=1))
        await at.root()
        ids = await children(at, "abcd", "work")
        await until(lambda: len(at.gates.inside) == 1)
        at.slots.configure(SpawnSettings(max_concurrent=3))
        await until(lambda: len(at.gates.inside) == 3)
        at.slots.configure(SpawnSettings(max_concurrent=1))  # nothing is taken away
        await quiet()
        assert (len(at.gates.inside), at.slots.waiting()) == (3, 1)
        at.gates.open("work")
        await at.rests(*ids)
        await until(lambda: at.slots.children.used == 0)


async def test_who_only_waits_gives_the_slot_to_others(tmp_path: Path) -> None:
    async with place(tmp_path, WORK) as at:
        at.slots.configure(SpawnSettings(max_concurrent=1))
        await at.root()
        (waiting,) = await children(at, "a", "waits")
        await until(lambda: at.gates.inside == ["answer"] and at.slots.children.used == 0)
        (working,) = await children(at, "b", "work")
        await until(lambda: "work" in at.gates.inside)
        at.gates.open("answer")
        await until(lambda: at.slots.queued(f"session/{waiting}"))
        await quiet()
        assert "after" not in at.gates.inside  # it got in line again before it works on
        at.gates.open("work")
        await until(lambda: at.gates.inside == ["after"])
        at.gates.open("after")
        await at.rests(waiting, working)
        await until(lambda: at.slots.children.used == 0)


async def test_everybody_waits_at_once(tmp_path: Path) -> None:
    """More than there are slots wait, for each other's kind of thing, and all go on in the end."""
    async with place(tmp_path, WORK) as at:
        at.slots.configure(SpawnSettings(max_concurrent=1))
        await at.root()
        ids = await children(at, "abcdef", "waits")
        below = [f"{id}/x" for id in ids]
        for id in below:
            await at.child(id, "waits")
            await at.run(id)
        await until(lambda: at.gates.inside.count("answer") == len(ids) + len(below))
        assert at.slots.children.used == 0
        at.gates.open("after")
        at.gates.open("answer")
        await at.rests(*ids, *below)
        await until(lambda: at.slots.children.used == 0)


async def test_a_question_holds_no_slot(tmp_path: Path) -> None:
    async with place(tmp_path, WORK) as at:
        at.slots.configure(SpawnSettings(max_concurrent=1))
        await at.root()
        ids = await children(at, "abc", "asks")
        sessions = [await at.sessions.session(f"session/{id}") for id in ids]
        await until(lambda: all(session.state.questions for session in sessions))
        await until(lambda: at.slots.children.used == 0)
        for session in sessions:
            await answer(at, session, allow=False)
        await at.rests(*ids)
        assert [s.state.last_stop for s in sessions] == ["end_turn"] * 3


async def test_a_queued_child_is_cancelled_at_once(tmp_path: Path) -> None:
    async with place(tmp_path, WORK) as at:
        at.slots.configure(SpawnSettings(max_concurrent=1))
        await at.root()
        first, second, third = await children(at, "abc", "work")
        await until(lambda: at.slots.waiting() == 2)
        await at.service.cancel(second, None)
        await at.rests(second)
        await until(lambda: (at.slots.waiting(), at.slots.working()) == (1, 2))
        assert at.turns(second) == 0
        at.gates.open("work")
        await at.rests(first, third)
        assert (await at.state(third)).last_stop == "end_turn"


async def test_a_turn_that_waits_in_line_again_is_cancelled_at_once(tmp_path: Path) -> None:
    async with place(tmp_path, WORK) as at:
        at.slots.configure(SpawnSettings(max_concurrent=1))
        await at.root()
        (waiting,) = await children(at, "a", "waits")
        await until(lambda: at.gates.inside == ["answer"] and at.slots.children.used == 0)
        (working,) = await children(at, "b", "work")
        await until(lambda: "work" in at.gates.inside)
        at.gates.open("answer")
        await until(lambda: at.slots.queued(f"session/{waiting}"))
        await at.service.cancel(waiting, None)
        await at.rests(waiting)
        assert (await at.state(waiting)).last_stop == "cancelled"
        at.gates.open("work")
        await at.rests(working)
        await until(lambda: (at.slots.waiting(), at.slots.children.used) == (0, 0))


MIXED = """
prompt: mixed
call: wait {"name": "one"}
---
call: hold {"name": "two"}
---
call: ask {"name": "three"}
---
call: wait {"name": "four"}
---
text: Done.
"""


@pytest.mark.parametrize("seed", range(4))
async def test_whatever_happens_everybody_comes_to_an_end(tmp_path: Path, seed: int) -> None:
    """Children of two levels, limits that go up and down, cancels, gates and answers in any
    order."""
    dice = random.Random(seed)
    async with place(tmp_path, MIXED) as at:
        at.slots.configure(SpawnSettings(max_concurrent=4))
        await at.root()
        ids = [f"s/{n}" for n in range(6)]
        ids += [f"{id}/x" for id in ids]
        for id in ids:
            await at.child(id, "mixed")
            await at.run(id)
        sessions = [await at.sessions.session(f"session/{id}") for id in ids]
        for _ in range(60):
            match dice.randrange(5):
                case 0:
                    at.slots.configure(SpawnSettings(max_concurrent=dice.randint(1, 4)))
                case 1:
                    at.gates.open(dice.choice(["one", "two"]))
                case 2:
                    await answer(at, dice.choice(sessions), allow=dice.random() < 0.5)
                case 3 if dice.random() < 0.2:
                    await at.service.cancel(dice.choice(ids), None)
            await asyncio.sleep(dice.random() * 0.01)
            assert at.slots.children.used <= 4
        for name in ("one", "two", "three", "four"):
            at.gates.open(name)
        async with asyncio.timeout(PATIENCE):
            while not all(isinstance(next_step(session.state), Rest) for session in sessions):
                for session in sessions:
                    await answer(at, session, allow=True)
                await asyncio.sleep(0.005)
        stops = {session.state.last_stop for session in sessions}
        assert stops <= {"end_turn", "cancelled", None}  # None: cancelled before it began
        await until(lambda: (at.slots.working(), at.slots.children.used) == (0, 0))
        assert at.slots.waiting() == 0


async def answer(at: Place, session: Session, *, allow: bool) -> None:
    for question in tuple(session.state.questions):
        id = session.stream.removeprefix("session/")
        await at.service.answer(id, question, allow=allow, reason="", scope="once", by="me")


async def test_roots_need_no_slot(tmp_path: Path) -> None:
    async with place(tmp_path, WORK) as at:
        at.slots.configure(SpawnSettings(max_concurrent=1))
        await at.root("s")
        (child,) = await children(at, "a", "work")
        await until(lambda: at.gates.inside == ["work"])
        for id in ("s", "t"):
            await at.root(id)
            await at.prompt(id, "talk", "p")
        await at.rests("s", "t")
        assert at.slots.working() == 1
        at.gates.open("work")
        await at.rests(child)


# --- requests -------------------------------------------------------------------------------------


class Busy:
    """A model that answers when it is let; it counts who asks it at once."""

    def __init__(self, *, fail: int = 0) -> None:
        self.let = asyncio.Event()
        self.at_once = 0
        self.most = 0
        self._fail = fail

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Delta | Replied, None]:
        self.at_once += 1
        self.most = max(self.most, self.at_once)
        try:
            if self._fail:
                self._fail -= 1
                text = "Too many."
                raise ProviderError(text, fault="rate_limit", retryable=True, retry_after=30)
            await self.let.wait()
        finally:
            self.at_once -= 1
        yield Replied(request=request.id, model=request.model, stop="end_turn",
                      content=(Text(text="Hello."),))  # fmt: skip

    async def models(self) -> list[str]:
        return ["x"]

    async def window(self, model: str) -> int:
        return 0

    def warm(self) -> None:
        """There is nothing to warm."""

    async def close(self) -> None:
        """There is nothing to close."""


async def asking(at: Place, count: int, provider: str) -> list[str]:
    ids = [f"{provider}-{n}" for n in range(count)]
    for id in ids:
        await at.root(id, f"{provider}/x")
        await at.prompt(id, "go", "p")
    return ids


@pytest.mark.req("A073")
async def test_no_more_than_ten_requests_to_one_provider(tmp_path: Path) -> None:
    model = Busy()
    async with place(tmp_path, model) as at:
        ids = await asking(at, PER_PROVIDER + 3, "p1")
        await until(lambda: model.at_once == PER_PROVIDER)
        others = await asking(at, 2, "p2")
        await until(lambda: model.at_once == PER_PROVIDER + 2)
        await quiet()
        assert model.at_once == PER_PROVIDER + 2
        model.let.set()
        await at.rests(*ids, *others)
        assert model.most == PER_PROVIDER + 2


@pytest.mark.req("A074")
async def test_no_more_than_twenty_requests_in_all(tmp_path: Path) -> None:
    model = Busy()
    async with place(tmp_path, model) as at:
        ids = [id for n in range(4) for id in await asking(at, 6, f"p{n}")]
        await until(lambda: model.at_once == REQUESTS)
        await quiet()
        assert model.at_once == REQUESTS
        model.let.set()
        await at.rests(*ids)
        assert model.most == REQUESTS


async def test_who_waits_to_try_again_holds_no_permit(tmp_path: Path) -> None:
    """All permits' worth of them wait for half a minute; the next is served at once."""
    model = Busy(fail=PER_PROVIDER)
    model.let.set()
    async with place(tmp_path, model, retries=1) as at:
        ids = await asking(at, PER_PROVIDER + 1, "p1")
        await at.rests(ids[-1])
        sessions = [await at.sessions.session(f"session/{id}") for id in ids[:-1]]
        assert all(session.state.turn for session in sessions)
