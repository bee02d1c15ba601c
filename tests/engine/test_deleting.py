"""What is deleted stays deleted: in memory, in other processes, and in the process table."""

from __future__ import annotations

import asyncio
import gc
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from magy_server.core.agents.child import Spawn
from magy_server.core.errors import InvalidRequest, NotFound
from magy_server.core.values import Text
from magy_server.engine import runner
from magy_server.store.faulty import Fault
from magy_server.team.children import Children
from tests.engine.running import deafen, until
from tests.patience import PATIENCE

from .home import Home, faulty, home

SCRIPT = """
prompt: talk
text: Talked.

prompt: slow
delay: 600
text: Too late.

prompt: serve
call: bash {"command": "sleep 600", "background": true}
---
text: It is up.

prompt:
text: Understood.
"""


def children(here: Home) -> Children:
    return here.service.children


def wanted(key: str, text: str = "talk") -> Spawn:
    return Spawn(key=key, agent="general", prompt=(Text(text=text),), by="me")


async def talked(here: Home) -> None:
    await here.new()
    await here.service.configure("s", "bypass", "on")
    await here.prompt("s", "talk")
    await here.rested("s")


async def loaded(here: Home) -> list[str]:
    return [session.stream.removeprefix("session/") for session in here.sessions.folded()]


# --- here -----------------------------------------------------------------------------------------


async def test_who_asks_for_it_meanwhile_does_not_bring_it_back(tmp_path: Path) -> None:
    """A look, a message, a prompt and a spawn, each right before the store removes it."""
    gate = asyncio.Event()
    held = Fault("delete", until=gate)
    async with home(tmp_path, SCRIPT, store=await faulty(tmp_path, held)) as here:
        await talked(here)
        await here.child("s/x", "slow")
        await here.child("s/x/y", "slow")
        await here.until("s/x", lambda s: s.turn)
        deleting = asyncio.create_task(here.service.delete("s/x"))
        await asyncio.wait_for(held.reached.wait(), PATIENCE)
        said: list[str] = []
        for asked in (
            here.live("s/x"),
            here.live("s/x/y"),
            here.mailing.send("s/x", "Well?", key="m1"),
            here.prompt("s/x/y", "talk", "m2"),
            children(here).spawn("s/x", wanted("z")),
        ):
            with pytest.raises(NotFound) as caught:
                await asked
            said.append(caught.value.message)
        gate.set()
        assert await deleting
        assert all(sentence.endswith("was deleted in the meantime.") for sentence in said[:2])
        assert len(said) == 5
        assert await loaded(here) == ["s"]
        assert not here.sessions.trees.held()
        child, known = await children(here).spawn("s", wanted("x"))  # its key is free again
        assert (child.session, known) == ("s/x", False)
        assert (await here.rested("s/x")).last_stop == "end_turn"


async def test_the_last_results_of_children_do_not_bring_a_tree_back(tmp_path: Path) -> None:
    """Deleted by a slow disk while they come to their ends; then the id is used again."""
    slow = await faulty(tmp_path, Fault("delete", seconds=0.1))
    async with home(tmp_path, SCRIPT, store=slow) as here:
        await talked(here)
        for key in "abcd":
            await here.child(f"s/{key}", "talk" if key < "c" else "slow")
        assert await here.service.delete("s")
        assert await loaded(here) == []
        assert await here.world.store.below("session/s") == []
        assert (await here.new()).state.turns == 0
        await here.prompt("s", "talk", "p2")
        assert (await here.rested("s")).last_stop == "end_turn"


async def test_two_who_delete_the_same(tmp_path: Path) -> None:
    async with home(tmp_path, SCRIPT) as here:
        await talked(here)
        await here.child("s/a", "slow")
        both = await asyncio.gather(
            here.service.delete("s"), here.service.delete("s"), return_exceptions=True
        )
        assert both[0] is True
        assert isinstance(both[1], InvalidRequest) and both[1].reason == "busy"
        assert "is being deleted" in both[1].message
        assert await here.service.delete("s") is False
        assert await loaded(here) == []


async def test_a_wait_ends_with_what_is_waited_for(tmp_path: Path) -> None:
    async with home(tmp_path, SCRIPT) as here:
        await talked(here)
        await here.child("s/a", "slow")
        waiting = asyncio.create_task(here.mailing.wait("s", ["s/a"], deadline=here.after(60)))
        await here.until("s/a", lambda s: s.turn)
        assert await here.service.delete("s/a")
        waited = await asyncio.wait_for(waiting, PATIENCE)
        assert (waited.why, waited.deleted) == ("done", ("s/a",))


# --- other processes ------------------------------------------------------------------------------


@pytest.mark.parametrize("heard", [True, False])
async def test_another_process_forgets_it_and_takes_its_tree_no_more(
    tmp_path: Path, heard: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Because it is told, or, where the bus dropped that, because it looks."""
    monkeypatch.setattr(runner, "POLL", 0.05)
    store = await faulty(tmp_path)
    async with home(tmp_path, SCRIPT) as here, home(tmp_path, SCRIPT, store=store) as there:
        await until(lambda: here.world.peers() and there.world.peers())
        await talked(here)
        await here.child("s/x", "slow")
        await here.until("s/x", lambda s: s.turn)
        await there.live("s/x")
        assert await loaded(there) == ["s/x"]
        if not heard:
            deafen(there.world.bus)
        assert await here.service.delete("s/x")
        await until(lambda: not there.sessions.folded() and not there.sessions.trees.held())
        taken = len(store.done["lease"])
        await asyncio.sleep(0.3)
        assert (store.done["lease"][taken:], there.sessions.folded()) == ([], [])
        with pytest.raises(NotFound, match="There is no session 's/x'"):
            await there.prompt("s/x", "talk", "p2")


async def test_a_log_that_another_one_took_the_place_of_is_not_folded_on(tmp_path: Path) -> None:
    """Deleted elsewhere and made anew, as long as it was."""
    async with home(tmp_path, SCRIPT) as here, home(tmp_path, SCRIPT) as there:
        before = await here.new()
        deafen(there.world.bus)
        known = await there.live("s")
        await here.service.delete("s")
        await here.new()
        with pytest.raises(NotFound, match="'s' was deleted"):
            await known.refresh()
        assert before.gone and known.gone
        async with asyncio.timeout(PATIENCE):
            while known in there.sessions.folded():
                await asyncio.sleep(0.005)
        assert (await there.live("s")).state.seq == 1


# --- commands in the background -------------------------------------------------------------------


def running(group: int) -> bool:
    with suppress(ProcessLookupError):
        os.killpg(group, 0)
        return True
    return False


async def serving(here: Home) -> list[int]:
    """The groups of the commands of a session, its child, and the child of that."""
    await talked(here)
    groups = []
    for id in ("s/a", "s/a/b"):
        await here.child(id, "serve")
        groups += (await here.rested(id)).background.values()
    await here.prompt("s", "serve", "p2")
    groups += (await here.rested("s", 2)).background.values()
    assert len(groups) == 3 and all(map(running, groups))
    return groups


async def test_commands_end_with_the_child_that_is_cancelled(tmp_path: Path) -> None:
    async with home(tmp_path, SCRIPT) as here:
        child, grandchild, root = await serving(here)
        await children(here).close("s/a", "finish")
        assert running(child) and running(grandchild)
        await children(here).close("s/a", "cancel")
        assert not running(child) and not running(grandchild) and running(root)
        for id in ("s/a", "s/a/b"):  # and that is on record
            await here.until(id, lambda s: not s.background)


@pytest.mark.parametrize("how", ["close", "delete"])
async def test_commands_end_with_their_session_and_all_below_it(tmp_path: Path, how: str) -> None:
    async with home(tmp_path, SCRIPT) as here, home(tmp_path, SCRIPT) as there:
        groups = await serving(here)
        one = here if how == "close" else there  # which process it is makes no difference
        await getattr(one.service, how)("s")
        assert not any(map(running, groups))


# --- work whose asker is gone ---------------------------------------------------------------------


async def test_what_was_refused_after_its_asker_had_gone_is_nobodys_error(tmp_path: Path) -> None:
    unheard: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, about: unheard.append(about))
    async with home(tmp_path, SCRIPT) as here:
        await here.new()
        await here.service.delete("s")
        before = asyncio.all_tasks()
        asking = asyncio.create_task(children(here).spawn("s", wanted("x")))
        await asyncio.sleep(0)
        asking.cancel()
        await asyncio.wait(asyncio.all_tasks() - before)  # which asks none how it went
        del asking, before
        gc.collect()
    assert unheard == []
