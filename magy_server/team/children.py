"""This module spawns, lists, closes, stops and deletes the children of sessions.

A child is a session of its own, below its parent by name. It is made in one append that also holds
the parent where it stands, so none comes under a parent that was closed, cancelled or deleted, and
none comes twice.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Literal

from magy_server.core.agents import tree
from magy_server.core.agents.child import LIVE, ChildInfo, Spawn, refusal
from magy_server.core.agents.mail import Closed, Status
from magy_server.core.agents.tree import SESSIONS, stream_of
from magy_server.core.errors import Conflict, InvalidRequest, NotFound
from magy_server.core.events import CancelAsked, Event
from magy_server.core.ports import Batch
from magy_server.core.state.state import State
from magy_server.core.summary import Row, children, row, task_id
from magy_server.core.values import Hash
from magy_server.engine import trees
from magy_server.engine.loaded_sessions import Sessions
from magy_server.engine.log import Write
from magy_server.engine.session import Session
from magy_server.engine.world import World
from magy_server.tasks import Tasks
from magy_server.team.request_keys import message, same
from magy_server.team.slots import LimitedSlots
from magy_server.team.spawning import (
    Beginning,
    agent_for,
    beginning,
    check_key,
    check_model,
    directory,
    plugin_for,
)
from magy_server.team.stopping import stopping
from magy_server.team.worktrees import Worktrees

NO_BLOBS: Mapping[Hash, bytes] = {}
NEWEST = 1_000
"""Sessions that are looked through for children, when no parent is named."""


class Children:
    """One for a process."""

    def __init__(
        self, world: World, sessions: Sessions, slots: LimitedSlots, worktrees: Worktrees
    ) -> None:
        self._world = world
        self._worktrees = worktrees
        self._sessions = sessions
        self._slots = slots
        self._spawning = asyncio.Lock()
        self._tasks = Tasks()

    # --- spawn ----------------------------------------------------------------------------------

    async def spawn(
        self, parent: str, wanted: Spawn, blobs: Mapping[Hash, bytes] = NO_BLOBS
    ) -> tuple[ChildInfo, bool]:
        """The child, and whether it was there already: the same key again is harmless. `blobs` are
        the pictures that the prompt names. Raises NotFound, InvalidRequest and the like, with
        sentences for whoever asked."""
        check_key(wanted)
        return await self._tasks.whole(self._spawn(parent, wanted, blobs))

    async def _spawn(
        self, parent: str, wanted: Spawn, blobs: Mapping[Hash, bytes]
    ) -> tuple[ChildInfo, bool]:
        child = tree.child(parent, wanted.key)
        async with self._spawning:
            above = await self._session(parent)
            if await self._world.store.head(stream_of(child)):
                await self._refuse_other(child, wanted)
                return await self.info(child), True
            _may_spawn(above.state, wanted)
            made = await beginning(self._world, self._worktrees, above, child, wanted, blobs)
            await self._within_limits(parent)
            session = self._sessions.watch(stream_of(child))
            await session.load()
            if not await self._append(session, above, made, wanted):
                await self._refuse_other(child, wanted)
                return await self.info(child), True
            found = await self._sessions.session(session.stream)
            self._sessions.wake(found)  # from here on it counts
        return await self.info(child), False

    async def check(
        self, above: State, agent: str, model: str, place: str, plugin: str = ""
    ) -> str:
        """Whether a model may spawn such a child, as far as agent, model, directory and plugin go:
        the canonical path of the directory, which may be given below the workspace root. Raises
        what `spawn` does."""
        opened = above.opened
        assert opened is not None
        spec = agent_for(self._world, opened.root, agent, called=True)
        plugin_for(self._world, above, spec, plugin)
        check_model(self._world, opened.root, model)
        wanted = place and os.path.join(above.place, place)
        return await asyncio.to_thread(directory, above, wanted)

    async def worktree(self, above: State, agent: str, *, wanted: bool) -> str:
        """What a person is told of the worktree that such a child would have; "": it has none.
        Raises what `spawn` does."""
        opened = above.opened
        assert opened is not None
        own = agent_for(self._world, opened.root, agent, called=True).worktree
        if not (wanted or own.enabled):
            return ""
        planned, _ = await self._worktrees.planned(opened.root, above.id, agent, own)
        return planned.ends

    async def _refuse_other(self, child: str, wanted: Spawn) -> None:
        """Raises InvalidRequest for a key under which a person has spawned something else."""
        now = (await self._session(child)).state
        task = await message(self._world.store, now, task_id(child))
        had = now.opened
        other = had and (wanted.agent not in ("", had.agent) or wanted.model not in ("", had.model))
        if wanted.by and task and (other or not same(task, wanted.prompt)):
            raise InvalidRequest(
                f"A child {child!r} with another task, agent or model exists already. You can "
                "repeat a request without harm; another child needs its own requestKey.",
                reason="key_used",
            )

    async def _append(
        self, session: Session, above: Session, made: Beginning, wanted: Spawn
    ) -> bool:
        """False: somebody else has spawned it meanwhile."""
        while True:
            try:
                _may_spawn(above.state, wanted)
                held = Batch(above.stream, above.state.seq, [])
                write = Write(made.events(above.state), made.blobs, [held])
                return bool(await session.append(partial(_once, write)))
            except Conflict:
                await self._refreshed(above, session)
            except InvalidRequest:
                await self._sessions.forget(session.stream)
                raise

    async def _refreshed(self, above: Session, session: Session) -> None:
        try:
            await above.refresh()
        except NotFound:
            await self._sessions.forget(session.stream)
            raise NotFound(
                f"Session {above.id!r} was deleted in the meantime; nothing was spawned."
            ) from None

    async def _within_limits(self, parent: str) -> None:
        """Raises InvalidRequest, saying which limit there is and what is there."""
        slots = self._slots
        siblings = [
            f"{one.session} ({one.about['name'] or one.about['agent']}): "
            f"{one.status(queued=slots.queued(one.stream))}"
            for one in await self._rows(parent, flat=True)
            if not one.closed
        ]
        working, waiting = slots.working(), slots.waiting()
        if why := refusal(parent, slots.limits, siblings, working, waiting):
            raise InvalidRequest(why, reason="spawn_limit")

    # --- looking --------------------------------------------------------------------------------

    async def info(self, id: str) -> ChildInfo:
        """Raises NotFound."""
        info = await self._world.store.info(stream_of(id))
        found = row(info) if info else None
        if found is None:
            raise NotFound(_unknown(id, exists=info is not None))
        return found.info(await self._rows(id), queued=self._slots.queued(found.stream))

    async def list(
        self, parent: str | None, *, recursive: bool = True, closed: bool = False
    ) -> Sequence[ChildInfo]:
        """Each after its parent, the oldest first. `parent` None: of the newest sessions of all.
        Raises NotFound."""
        if parent is not None and not await self._world.store.head(stream_of(parent)):
            raise NotFound(f"There is no session {parent!r}. The list of sessions has all of them.")
        rows = await self._rows(parent) if parent else await self._all_rows()
        listed = {
            one.session
            for one in rows
            if (closed or not one.closed)
            and (recursive or parent is None or tree.parent(one.session) == parent)
        }
        infos = children(rows, self._slots.queued)
        return [info for info in infos if info.session in listed]

    async def _rows(self, parent: str, *, flat: bool = False) -> Sequence[Row]:
        """The rows of all sessions below; with `flat`, of its own children only."""
        found = [row(info) for info in await trees.below(self._world.store, parent)]
        return [one for one in found if one and (not flat or tree.parent(one.session) == parent)]

    async def _all_rows(self) -> Sequence[Row]:
        newest = await self._world.store.streams(SESSIONS, limit=NEWEST)
        return [one for info in newest.items if (one := row(info))]

    # --- the end --------------------------------------------------------------------------------

    async def close(
        self,
        id: str,
        mode: Literal["finish", "cancel"] = "finish",
        reason: str = "",
        *,
        recursive: bool = True,
        by: str = "",
    ) -> tuple[Status, Sequence[str]]:
        """How it was before, and which are closed now that were not, or were still at work and are
        stopped: itself and, `recursive`, those below. Raises NotFound, InvalidRequest."""
        before = (await self.info(id)).status
        closed = Closed(mode=mode, reason=reason, by=by)
        return before, await self._tasks.whole(self._close(id, closed, recursive=recursive))

    async def _close(self, id: str, how: Closed, *, recursive: bool) -> Sequence[str]:
        """Those above first: what is closed spawns no more."""
        session = await self._session(id)

        def decide(now: State) -> Write | None:
            events: list[Event] = [] if now.closed else [how]
            if how.mode == "cancel":
                events += stopping(now, "closed", everything=True)
            return Write(events) if events else None

        appended = await session.append(decide)
        if how.mode == "cancel":
            await self._world.end_commands([session.stream])
        # That a message which waited was dropped is no news of the agent.
        told = any(isinstance(entry.event, Closed | CancelAsked) for entry in appended)
        closed = [id] if told else []
        self._sessions.wake(session)
        if recursive:
            for one in await self._rows(id, flat=True):
                with suppress(NotFound):  # deleted meanwhile
                    closed += await self._close(one.session, how, recursive=True)
        return closed

    async def stop_below(self, id: str, *, all: bool, since: int = -1) -> None:
        """Cancels what those below it do, and what waits to be done; those that people spawned only
        if `all`. They stay open. `since`: only of those that its calls after this entry spawned."""
        await self._tasks.whole(self._stop(id, everything=all, since=since))

    async def _stop(self, id: str, *, everything: bool, since: int = -1) -> None:
        for one in await self._rows(id, flat=True):
            if not (one.called or everything) or tree.asked_at(one.session) <= since:
                continue
            if one.about["status"] in LIVE or one.about["waiting"]:
                with suppress(NotFound):  # deleted meanwhile
                    await self._stop_one(one.session, everything=everything)
            await self._stop(one.session, everything=everything)

    async def _stop_one(self, id: str, *, everything: bool) -> None:
        session = await self._session(id)
        why: Literal["closed", "user"] = "closed" if everything else "user"

        def decide(now: State) -> Write | None:
            events = stopping(now, why, everything=everything)
            return Write(events) if events else None

        await session.append(decide)
        self._sessions.wake(session)

    async def settle(self) -> None:
        """What was begun is done; for the end of the process."""
        await self._tasks.settle()

    async def _session(self, id: str) -> Session:
        session = await self._sessions.session(stream_of(id))
        await session.refresh()
        return session


def _once(write: Write, now: State) -> Write | None:
    return None if now.opened else write


def _may_spawn(above: State, wanted: Spawn) -> None:
    """Raises InvalidRequest."""
    if above.closed:
        raise InvalidRequest(
            f"Session {above.id!r} is closed and cannot spawn. Fork it, or spawn from another "
            "session.",
            reason="closed",
        )
    if wanted.by:
        return
    turn = above.turn
    if turn is None or turn.cancel:
        raise InvalidRequest(
            f"The turn of {above.id!r} that asked for the child is over; nothing was spawned."
        )


def _unknown(id: str, *, exists: bool) -> str:
    if exists or tree.parent(id) is None:
        return f"{id!r} is not a child: nobody spawned it from another session."
    return f"There is no child {id!r}: it was never spawned, or it was deleted."
