"""Every front door calls the engine through `Service`: a verb appends or reads, and waits for no
turn. Only `summary` waits for a model. The service knows no connection and no wire."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, field
from typing import Any, Literal

from magy_server.api.sessions import options, pages, resolutions
from magy_server.api.sessions.options import Option
from magy_server.api.sessions.pages import Attached
from magy_server.core.agents import tree
from magy_server.core.agents.tree import SESSIONS, Stream, stream_of
from magy_server.core.errors import Conflict, InvalidRequest, NotFound, StoreError
from magy_server.core.events import (
    Answered,
    CompactAsked,
    Configured,
    Event,
    Opened,
    Prompted,
    Requeued,
    Withdrawn,
)
from magy_server.core.ports import Page, StreamInfo
from magy_server.core.prompting.compaction import compacted, possible
from magy_server.core.reviews.review_events import Noted
from magy_server.core.state.state import State
from magy_server.core.values import Content, GivenCall, Grant, Hash
from magy_server.dataclass import dataclass
from magy_server.engine import trees
from magy_server.engine.briefing import mentioned, unvouched
from magy_server.engine.loaded_sessions import FRESH, LoadedSessions
from magy_server.engine.log import Decide, Write
from magy_server.engine.session import Session
from magy_server.engine.world import Project, World, record
from magy_server.listeners.titles import consult
from magy_server.reviews.checkpoints import Checkpoints
from magy_server.reviews.reviews import Reviews
from magy_server.tasks import Tasks
from magy_server.team.budget import Purse
from magy_server.team.children import Children
from magy_server.team.fork import copied
from magy_server.team.mailing import Mailing, arriving, refuse_closed, refuse_full
from magy_server.team.request_keys import earlier, refuse_other, refuse_other_fork
from magy_server.team.slots import LimitedSlots
from magy_server.team.stopping import cancelling, dropping
from magy_server.team.supervision import Supervisor

LOG = logging.getLogger(__name__)
NO_BLOBS: Mapping[Hash, bytes] = {}
Outcome = Literal["started", "steered", "queued", "known"]


@dataclass(eq=False)
class Service:
    """Features that have verbs of their own are attributes."""

    world: World
    loaded: LoadedSessions
    slots: LimitedSlots
    _: KW_ONLY
    reviews: Reviews
    checkpoints: Checkpoints
    children: Children
    mailing: Mailing
    purse: Purse
    supervisor: Supervisor
    _tasks: Tasks = field(default_factory=Tasks, init=False)

    # --- sessions -------------------------------------------------------------------------------

    async def open(self, session_id: str, root: str | None, cwd: str, agent: str, model: str
                   ) -> Session:  # fmt: skip
        """Makes the session, or finds it: the same id again is harmless."""
        _check_root(session_id)
        stream = stream_of(session_id)
        if await self.world.store.head(stream):
            return await self.loaded.session(stream)
        self.world.agent(agent, root)
        session = self.loaded.watch(stream)
        await session.load()
        opened = Opened(root=root, cwd=cwd, agent=agent, model=model)
        await session.append(lambda now: None if now.opened else Write([opened]))
        return await self.loaded.session(stream)

    async def sessions(self, *, first_root: str | None, root: str | None, cursor: str | None,
                   limit: int) -> Page:  # fmt: skip
        """Returns a page of the sessions that have no parent."""
        return await self.world.store.streams(
            SESSIONS, first_root=first_root, root=root, flat=True, cursor=cursor, limit=limit
        )

    async def info(self, session_id: str) -> StreamInfo:
        info = await self.world.store.info(stream_of(session_id))
        if info is None:
            raise NotFound(
                f"There is no session {session_id!r}. The list of sessions has all of them."
            )
        return info

    async def attach(self, session_id: str, *, after: int | None, tail: int) -> Attached:
        """A bounded look: the last `tail` turns, or what came after an entry the client has."""
        return await pages.attach(self.world.store, await self.info(session_id), after, tail)

    async def events(
        self, session_id: str, *, after: int | None, before: int | None, limit: int
    ) -> Attached:
        info = await self.info(session_id)
        return await pages.events(self.world.store, info, after, before, limit)

    async def resume(self, session_id: str) -> None:
        """Goes on with a turn that was left open, and with those of its children."""
        stream = stream_of(session_id)
        self.loaded.wake(await self.loaded.session(stream))
        await self.loaded.resume_tree(stream, "tree")

    async def resume_all(self, roots: Sequence[str]) -> None:
        """At start: goes on with what was left open in these workspace roots a short while ago."""
        since = self.world.clock.now() - FRESH
        for root in roots:
            for info in await self._left_open(root, since):
                try:
                    await self.loaded.resume(info.stream)
                except StoreError as error:  # this one is damaged; the others go on
                    LOG.warning("%s", error)

    async def _left_open(self, root: str, since: float) -> Sequence[StreamInfo]:
        """Sessions, children too, that have something to do and had something done since then."""
        found: list[StreamInfo] = []
        async for infos in pages.every(self.world.store, SESSIONS, root=root):
            recent = [info for info in infos if info.updated > since]
            found += [info for info in recent if info.summary.get("state") != "idle"]
            if len(recent) < len(infos):
                break
        return found

    async def fork(self, session_id: str, new_id: str, seq: int | None) -> Session:
        """Makes a new session with this one's history up to entry `seq`; both share their blobs.
        The fork of a child is nobody's child. Repeating this is harmless, also at the same time.
        Raises InvalidRequest if `new_id` is another session's."""
        _check_root(new_id)
        stream, new = stream_of(session_id), stream_of(new_id)
        source = await self.loaded.session(stream)
        upto = source.state.seq if seq is None else seq
        if not 1 <= upto <= source.state.seq:
            raise InvalidRequest(f"There is no entry {upto}; the last is {source.state.seq}.")
        if not await self.world.store.head(new):
            entries = await self.world.store.read(stream, before=upto + 1)
            batch = copied(entries, new, (session_id, upto))
            try:
                await self.world.store.append([batch])
            except Conflict:  # somebody else has made it meanwhile
                LOG.debug("%s was made at the same time", new)
            trees.forked(self.world.bus, (await self.loaded.session(new)).state)
        made = await self.loaded.session(new)
        refuse_other_fork(made.state, session_id, seq)
        return made

    async def close(self, session_id: str) -> None:
        """Cancels what runs, ends commands in the background, and drops what waits, in all below it
        too; the log stays."""
        session = await self.loaded.session(stream_of(session_id))
        await session.append(lambda now: _write(dropping(now)))
        await self._cancel(session, None, "closed")
        infos = await trees.whole(self.world.store, session_id)
        await self.world.end_commands([info.stream for info in infos])

    async def delete(self, session_id: str, *, before: float | None = None) -> bool:
        """Stops the session if it runs here, and removes it and all below it; forks keep what they
        share. With `before`, it stops nothing, and returns False when something was appended at
        that time or later. Raises InvalidRequest when another process runs it."""
        stream = stream_of(session_id)
        held = self.loaded.trees
        user = Stream(f"{stream}/:deleting")  # no child has such a name
        if not await held.take(user):  # before it is let go of: nobody else goes on with it
            raise _busy(session_id, here=held.holds(user))
        try:
            if held.restores(stream):  # else who watches it would hear nothing any more
                raise _busy(session_id, here=True)
            # Meanwhile nothing of it is in memory here nor comes there. Other processes are told,
            # and find out when they look.
            async with self.loaded.forgotten(stream):
                if not await held.take(stream):
                    raise _busy(session_id, here=True)
                try:
                    infos = await trees.whole(self.world.store, session_id)
                    if before is None:
                        await self.world.end_commands([info.stream for info in infos])
                    found = await self.world.store.delete(stream, before=before)
                finally:
                    await held.give_back(stream)
            for info in infos if found else ():
                trees.say_deleted(self.world.bus, info)
        finally:
            await held.give_back(user)
        return found

    # --- prompts --------------------------------------------------------------------------------

    async def prompt(
        self,
        session_id: str,
        message_id: str,
        content: Sequence[Content],
        delivery: str,
        blobs: Mapping[Hash, bytes] = NO_BLOBS,
        call: GivenCall | None = None,
    ) -> Outcome:
        """`blobs` are the pictures that the content names. With `call`, which the content puts into
        words, the turn makes that call and asks no model."""
        session = await self.loaded.session(stream_of(session_id))
        outcome: Outcome = "known"
        interrupt = delivery == "interrupt"
        mode: Literal["steer", "queue"] = "queue" if interrupt or delivery == "queue" else "steer"
        async with session.arriving:
            whole, found = content, NO_BLOBS
            if call is None:
                whole, found = await mentioned(self.world, session.state, content)
            prompted = Prompted(
                id=message_id,
                content=tuple(whole),
                delivery=mode,
                by=self.world.me,
                call=call,
                untrusted=unvouched(self.world, session.state, whole),
            )

            def decide(now: State) -> Write | None:
                nonlocal outcome
                if earlier(now, message_id) is not None:
                    outcome = "known"
                    return None
                refuse_closed(now)
                refuse_full(now)
                joins: Outcome = "steered" if mode == "steer" else "queued"
                outcome = "started" if now.turn is None else joins
                return Write(arriving(now, prompted, interrupt=interrupt), {**blobs, **found})

            if await self._say(session, decide) and interrupt:
                await self.children.stop_below(session.id, all=False)
        if outcome == "known":
            await refuse_other(self.world.store, session.state, message_id, content, call)
        return outcome

    async def compact(self, session_id: str, focus: str = "") -> None:
        """Asks for a compaction; it happens before the next model request, or now if nothing
        runs."""
        session = await self.loaded.session(stream_of(session_id))
        if not possible(session.state):
            since = "since the last time" if compacted(session.state) else "yet"
            raise InvalidRequest(f"There is nothing to compact: the model has not replied {since}.")

        def ask(now: State) -> Write | None:
            asked = CompactAsked(focus=focus, resting=now.turn is None)
            return None if now.compact else Write([asked])

        await self._say(session, ask)

    async def summary(self, session_id: str) -> str:
        """Returns a summary, as for a pull request, that the model writes. Raises ProviderError."""
        session = await self.loaded.session(stream_of(session_id))
        if not (possible(session.state) or compacted(session.state)):
            raise InvalidRequest("There is nothing to summarize: the agent has not answered yet.")
        said, blobs = await consult(session, self.world, self.purse, "summary")
        await session.append(lambda now: Write([said], blobs))
        return said.text

    async def note(self, session_id: str, noted: Noted) -> None:
        """Appends something that the model is to know, and no turn begins."""
        session = await self.loaded.session(stream_of(session_id))
        await session.append(lambda now: Write([noted]))

    async def cancel(self, session_id: str, turn: str | None) -> bool:
        session = await self.loaded.session(stream_of(session_id))
        async with session.arriving:
            return await self._cancel(session, turn, "user")

    async def _cancel(
        self, session: Session, turn: str | None, why: Literal["user", "closed"]
    ) -> bool:
        cancelled = await self._say(session, lambda now: _write(cancelling(now, turn, why)))
        if cancelled or turn is None:  # what its models had others do is not wanted any more
            await self.children.stop_below(session.id, all=why == "closed")
        return cancelled

    async def requeue(self, session_id: str, order: Sequence[str], dropped: Sequence[str]) -> State:
        """Raises NotFound for a prompt that does not wait (any more)."""
        session = await self.loaded.session(stream_of(session_id))
        waiting = {prompt.id for prompt in session.state.queue.waiting}
        if gone := [id for id in (*order, *dropped) if id not in waiting]:
            raise NotFound(f"No such waiting prompt: {', '.join(gone)}.")
        event = Requeued(order=tuple(order), dropped=tuple(dropped))
        await session.append(lambda now: Write([event]))
        return session.state

    async def configure(self, session_id: str, option: Option, value: str) -> State:
        session = await self.loaded.session(stream_of(session_id))
        options.check(self.world, session.state.root, option, value)
        event = Configured(option=option, value=value)
        await session.append(lambda now: Write([event]))
        return session.state

    # --- questions ------------------------------------------------------------------------------

    async def answer(
        self,
        session_id: str,
        interaction: str,
        *,
        allow: bool,
        reason: str,
        scope: resolutions.Scope,
        by: str,
        content: Mapping[str, Any] | None = None,
    ) -> bool:
        """The first answer wins; False for a later one. Raises NotFound for a question that never
        was, InvalidRequest for a form that is not filled in as it must be, Conflict if another
        process has taken the session over."""
        session = await self.loaded.session(stream_of(session_id))
        await session.refresh()
        project = await self._project(session)
        call = interaction.removeprefix(f"{session_id}/")
        answer = Answered(id=interaction, allow=allow, reason=reason, scope=scope, by=by)

        def decide(now: State) -> Write | None:
            return resolutions.answered(now, answer, project, content, self.world.secrets)

        while True:
            try:
                accepted = await self._say(session, decide)
                break
            except Conflict:  # somebody granted something in another session of the project
                before, project = project.head, await self._project(session)
                if project.head == before:  # nobody did: the session is not run here any more
                    raise
        if not accepted and not resolutions.was_asked(session.state, call):
            raise NotFound(
                f"There is no question {interaction!r}. `magy/interaction/list` names open ones."
            )
        return accepted

    async def grants(self, session_id: str) -> list[Grant]:
        """Returns the permissions that a session and its project remember."""
        session = await self.loaded.session(stream_of(session_id))
        return [*session.state.grants, *(await self._project(session)).grants]

    async def withdraw(self, session_id: str, grant_id: str) -> bool:
        """Withdraws it from the session and its project; False if neither remembers it."""
        session = await self.loaded.session(stream_of(session_id))

        def decide(now: State) -> Write | None:
            known = any(g.id == grant_id for g in now.grants)
            return Write([Withdrawn(grant=grant_id)]) if known else None

        own = bool(await session.append(decide))
        return await self.withdraw_from_project(session.state.root, grant_id) or own

    async def withdraw_from_project(self, root: str | None, grant_id: str) -> bool:
        known = any(g.id == grant_id for g in (await self.world.project(root)).grants)
        if known:
            await record(self.world.store, root, Withdrawn(grant=grant_id))
        return known

    async def _project(self, session: Session) -> Project:
        return await self.world.project(session.state.root)

    async def _say(self, session: Session, decide: Decide) -> bool:
        """Appends and wakes as a whole: a request that is cancelled in the middle must not leave a
        prompt behind that nobody runs. The answer says whether anything was appended."""

        async def whole() -> bool:
            appended = bool(await session.append(decide))
            self.loaded.wake(session)
            return appended

        return await self._tasks.whole(whole())


def _busy(session: str, *, here: bool) -> InvalidRequest:
    text = f"Another process runs session {session!r}; cancel or close it there first."
    if here:
        text = f"Session {session!r} is being deleted or restored; try again when that is done."
    return InvalidRequest(text, reason="busy")


def _write(events: Sequence[Event]) -> Write | None:
    return Write(events) if events else None


def _check_root(session_id: str) -> None:
    """Raises InvalidRequest for what can only be the id of a child."""
    if tree.parent(session_id) is not None:
        raise InvalidRequest(
            f"{session_id!r} contains a `/`, which only ids of children have (`magy/child/spawn` "
            "creates them). Choose another id."
        )
