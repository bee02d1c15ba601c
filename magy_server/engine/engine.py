"""The verbs: what every front door can ask of Magy. Each appends, or reads, and answers at once."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from magy_server.core.compact import possible
from magy_server.core.errors import Conflict, InvalidRequest, NotFound, StoreError
from magy_server.core.events import (
    Answered,
    CancelAsked,
    CompactAsked,
    Configured,
    Content,
    Entry,
    Event,
    Grant,
    Granted,
    Hash,
    Opened,
    Prompted,
    Requeued,
    Trusted,
    Withdrawn,
)
from magy_server.core.ports import Batch, Page, StreamInfo
from magy_server.core.state import State
from magy_server.engine import options, pages
from magy_server.engine.consult import consult
from magy_server.engine.fork import copied
from magy_server.engine.options import Option
from magy_server.engine.pages import Attached
from magy_server.engine.runner import Runner
from magy_server.engine.session import Decide, Session, Write
from magy_server.engine.world import Project, read_project

LOG = logging.getLogger(__name__)
NO_BLOBS: Mapping[Hash, bytes] = {}
FRESH = 3600.0
"""Seconds. A session left open longer ago than this waits for a person to resume it."""
Outcome = Literal["started", "steered", "queued", "known"]


def stream_of(session_id: str) -> str:
    return f"session/{session_id}"


class Engine:
    def __init__(self, runner: Runner) -> None:
        self.runner = runner
        self.world = runner.world
        self._saying: set[asyncio.Task[bool]] = set()

    # --- sessions -------------------------------------------------------------------------------

    async def open(self, session_id: str, root: str | None, cwd: str, agent: str, model: str
                   ) -> Session:  # fmt: skip
        """Makes the session, or finds it: the same id again is harmless."""
        stream = stream_of(session_id)
        if await self.world.store.head(stream):
            return await self.runner.session(stream)
        self.world.agent(agent, root)
        session = self.runner.watch(stream)
        await session.load()
        opened = Opened(root=root, cwd=cwd, agent=agent, model=model)
        await session.append(lambda now: None if now.opened else Write([opened]))
        return session

    async def sessions(self, *, first_root: str | None, root: str | None, cursor: str | None,
                   limit: int) -> Page:  # fmt: skip
        return await self.world.store.streams(
            "session/", first_root=first_root, root=root, cursor=cursor, limit=limit
        )

    async def info(self, session_id: str) -> StreamInfo:
        info = await self.world.store.info(stream_of(session_id))
        if info is None:
            raise NotFound(f"There is no session {session_id!r}. `magy/session/list` names them.")
        return info

    async def attach(self, session_id: str, *, after: int | None, tail: int) -> Attached:
        """A bounded look: the last `tail` turns, or what came after an entry the client has."""
        return await pages.attach(self.world.store, await self.info(session_id), after, tail)

    async def events(
        self, session_id: str, *, after: int | None, before: int | None, limit: int
    ) -> Attached:
        info = await self.info(session_id)
        return await pages.events(self.world.store, info, after, before, limit)

    async def texts_of(self, entries: Sequence[Entry]) -> dict[str, str]:
        return await pages.texts_of(self.world.store, entries)

    async def resume(self, session_id: str) -> None:
        """Goes on with a turn that was left open."""
        self.runner.wake(await self.runner.session(stream_of(session_id)))

    async def resume_all(self, roots: Sequence[str]) -> None:
        """At start: goes on with what was left open in these workspace roots a short while ago."""
        now = self.world.clock.now()
        for root in roots:
            page = await self.world.store.streams("session/", root=root, limit=200)
            for info in page.items:
                if info.summary.get("state") != "idle" and now - info.updated < FRESH:
                    try:
                        self.runner.wake(await self.runner.session(info.stream))
                    except StoreError as error:  # this one is damaged; the others go on
                        LOG.warning("%s", error)

    async def fork(self, session_id: str, new_id: str, seq: int | None) -> Session:
        """A new session with this one's history up to entry `seq`; blobs are shared."""
        stream, new = stream_of(session_id), stream_of(new_id)
        source = await self.runner.session(stream)
        upto = source.state.seq if seq is None else seq
        if not 1 <= upto <= source.state.seq:
            raise InvalidRequest(f"There is no entry {upto}; the last is {source.state.seq}.")
        if await self.world.store.head(new):
            return await self.runner.session(new)
        entries = await self.world.store.read(stream, before=upto + 1)
        batch = copied(entries, new, (session_id, upto))
        await self.world.store.append([batch])
        return await self.runner.session(new)

    async def close(self, session_id: str) -> None:
        """Cancels what runs here and drops what waits; the log stays."""
        session = await self.runner.session(stream_of(session_id))

        def drop(now: State) -> Write | None:
            dropped = tuple(prompt.id for prompt in now.waiting)
            return Write([Requeued(dropped=dropped)]) if dropped else None

        await session.append(drop)
        await self._cancel(session, None, "closed")

    async def delete(self, session_id: str) -> bool:
        """Stops it if it runs here, and removes it; forks keep what they share with it."""
        stream = stream_of(session_id)
        await self.runner.forget(stream)
        lease = await self.world.store.lease(stream)
        if lease is None:
            raise InvalidRequest(
                f"Session {session_id!r} runs in another process; cancel or close it there first."
            )
        deleted = await self.world.store.delete(stream)
        await self.world.store.release(lease)
        return deleted

    async def options(self, about: Mapping[str, Any], root: str | None) -> dict[str, str]:
        return await options.in_force(self.world, about, root)

    # --- prompts --------------------------------------------------------------------------------

    async def prompt(
        self,
        session_id: str,
        message_id: str,
        content: Sequence[Content],
        delivery: str,
        blobs: Mapping[Hash, bytes] = NO_BLOBS,
    ) -> Outcome:
        """`blobs` are the pictures that the content names."""
        session = await self.runner.session(stream_of(session_id))
        async with session.arriving:
            content, found = await self.world.mentioned(session.state, content)
            return await self._prompt(session, message_id, content, delivery, {**blobs, **found})

    async def _prompt(
        self,
        session: Session,
        message_id: str,
        content: Sequence[Content],
        delivery: str,
        blobs: Mapping[Hash, bytes],
    ) -> Outcome:
        outcome: Outcome = "known"

        def decide(now: State) -> Write | None:
            nonlocal outcome
            if message_id in now.prompts:
                return None
            mode: Literal["steer", "queue"] = "queue" if delivery == "queue" else "steer"
            if delivery == "interrupt":
                mode = "queue"
            outcome = "started" if now.turn is None else "steered" if mode == "steer" else "queued"
            prompted = Prompted(
                id=message_id, content=tuple(content), delivery=mode, by=self.world.me
            )
            return Write(_first(now, prompted, interrupt=delivery == "interrupt"), blobs)

        await self._say(session, decide)
        return outcome

    async def compact(self, session_id: str, focus: str = "") -> None:
        """Asks for it; it happens before the next model request, or now if nothing runs."""
        session = await self.runner.session(stream_of(session_id))
        if not possible(session.state):
            raise InvalidRequest("There is nothing to compact: no reply has come yet.")

        def ask(now: State) -> Write | None:
            if now.compact:
                return None
            return Write([CompactAsked(focus=focus, resting=now.turn is None)])

        await self._say(session, ask)

    async def summary(self, session_id: str) -> str:
        """As for a pull request. Raises ProviderError."""
        session = await self.runner.session(stream_of(session_id))
        if not possible(session.state):
            raise InvalidRequest("There is nothing to sum up: the agent has not answered yet.")
        said, blobs = await consult(session, self.world, "summary")
        try:
            await session.append(lambda now: Write([said], blobs))
        except Conflict:
            raise NotFound(f"Session {session_id!r} was deleted meanwhile.") from None
        return said.text

    async def cancel(self, session_id: str, turn: str | None) -> bool:
        session = await self.runner.session(stream_of(session_id))
        async with session.arriving:
            return await self._cancel(session, turn, "user")

    async def _cancel(
        self, session: Session, turn: str | None, why: Literal["user", "closed"]
    ) -> bool:
        def decide(now: State) -> Write | None:
            running = now.turn
            if running and turn in (None, running.id):
                return None if running.cancel else Write([CancelAsked(turn=running.id, why=why)])
            # The turn has not begun: its prompt still waits, and need not wait any longer.
            first = now.waiting[0].id if now.waiting and not running else None
            unborn = turn or first
            compacting = now.compact is not None and running is None
            if turn is None and compacting:
                return None if now.cancelling else Write([CancelAsked(why=why)])
            if unborn and any(prompt.id == unborn for prompt in now.waiting):
                return Write([Requeued(dropped=(unborn,))])
            return None

        return await self._say(session, decide)

    async def requeue(self, session_id: str, order: Sequence[str], dropped: Sequence[str]) -> State:
        """Raises NotFound for a prompt that does not wait (any more)."""
        session = await self.runner.session(stream_of(session_id))
        waiting = {prompt.id for prompt in session.state.waiting}
        if gone := [id for id in (*order, *dropped) if id not in waiting]:
            raise NotFound(f"No such waiting prompt: {', '.join(gone)}.")
        event = Requeued(order=tuple(order), dropped=tuple(dropped))
        await session.append(lambda now: Write([event]))
        return session.state

    async def configure(self, session_id: str, option: Option, value: str) -> State:
        session = await self.runner.session(stream_of(session_id))
        root = session.state.opened.root if session.state.opened else None
        options.check(self.world, root, option, value)
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
        scope: Literal["once", "session", "project"],
        by: str,
    ) -> bool:
        """The first answer wins; False for a later one. Raises NotFound for a question that never
        was."""
        session = await self.runner.session(stream_of(session_id))
        await session.refresh()
        project = await self._project(session)
        call = interaction.removeprefix(f"{session_id}/")

        def decide(now: State) -> Write | None:
            question = now.questions.get(interaction)
            if question is None:
                return None
            grants = question.asked.remember if allow and scope != "once" else ()
            granted = [Granted(grant=g.model_copy(update={"scope": scope})) for g in grants]
            answer = Answered(id=interaction, allow=allow, reason=reason, scope=scope, by=by)
            if scope == "project" and granted:
                return Write([answer], others=[Batch(project.stream, project.head, granted)])
            return Write([answer, *granted])

        while True:
            try:
                accepted = await self._say(session, decide)
                break
            except Conflict:  # somebody granted something in another session of the project
                project = await self._project(session)
        if not accepted and not _was_asked(session.state, call):
            raise NotFound(
                f"There is no question {interaction!r}. `magy/interaction/list` names open ones."
            )
        return accepted

    async def winner(self, session_id: str, interaction: str) -> str:
        """How a question that is no longer open was resolved: allowed | refused | closed."""
        request = interaction.removeprefix(f"{session_id}/").partition(".")[0]
        after = int(request) if request.isdigit() else 0
        for entry in await self.world.store.read(stream_of(session_id), after=after):
            if isinstance(entry.event, Answered) and entry.event.id == interaction:
                return "allowed" if entry.event.allow else "refused"
        return "closed"

    async def asking(self) -> Sequence[StreamInfo]:
        """The most recent sessions that have open questions."""
        page = await self.world.store.streams("session/", limit=200)
        return [info for info in page.items if info.summary.get("questions")]

    async def grants(self, session_id: str) -> list[Grant]:
        session = await self.runner.session(stream_of(session_id))
        return [*session.state.grants, *(await self._project(session)).grants]

    async def withdraw(self, session_id: str, grant_id: str) -> bool:
        session = await self.runner.session(stream_of(session_id))
        event = Withdrawn(grant=grant_id)

        def decide(now: State) -> Write | None:
            return Write([event]) if any(g.id == grant_id for g in now.grants) else None

        withdrawn = bool(await session.append(decide))
        root = session.state.opened.root if session.state.opened else None
        if any(g.id == grant_id for g in (await self._project(session)).grants):
            await self._record(root, event)
            withdrawn = True
        return withdrawn

    async def _project(self, session: Session) -> Project:
        opened = session.state.opened
        return await self.world.project(opened.root if opened else None)

    async def trust(self, root: str, files: str, trusted: bool) -> None:
        """Records that a person trusts the root as its Magy files are now, or no more."""
        await self._record(root, Trusted(root=root, files=files, trusted=trusted))

    async def _record(self, root: str | None, event: Event) -> None:
        """Appends to the stream of a workspace root, wherever that stands by now."""
        while True:
            project = await read_project(self.world.store, root)
            try:
                await self.world.store.append([Batch(project.stream, project.head, [event])])
                return
            except Conflict:
                continue

    async def _say(self, session: Session, decide: Decide) -> bool:
        """Appends and wakes as a whole: a request that is cancelled in the middle must not leave a
        prompt behind that nobody runs. The answer says whether anything was appended."""

        async def whole() -> bool:
            appended = bool(await session.append(decide))
            self.runner.wake(session)
            return appended

        task = asyncio.ensure_future(whole())
        self._saying.add(task)
        task.add_done_callback(self._saying.discard)
        return await asyncio.shield(task)


def _first(now: State, prompted: Prompted, *, interrupt: bool) -> list[Event]:
    """With `interrupt` the running turn is cancelled and the prompt goes before all that wait."""
    if not interrupt or now.turn is None:
        return [prompted]
    order = (prompted.id, *(p.id for p in now.waiting))
    return [prompted, Requeued(order=order), CancelAsked(turn=now.turn.id)]


def _was_asked(state: State, call: str) -> bool:
    """A call's request number is the seq it answers; what lies behind us was asked once."""
    request = call.partition(".")[0]
    return request.isdigit() and int(request) <= state.seq
