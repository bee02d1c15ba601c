"""The verbs of `magy/session/*` and `magy/queue/*` turn requests into calls of `Service`, and keep
the subscriptions of the connection."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from weakref import WeakValueDictionary

from magy_server.api import present
from magy_server.api.children.news import ChildNews
from magy_server.api.children.open_questions import questions as open_questions
from magy_server.api.connected import Connected
from magy_server.api.sessions.follow import Subscription
from magy_server.api.sessions.options import choices, in_force
from magy_server.api.sessions.pages import Attached, page
from magy_server.api.wire import sessions as wire
from magy_server.api.wire.shapes import SessionParams
from magy_server.core.agents import tree
from magy_server.core.agents.tree import stream_of
from magy_server.core.ports import StreamInfo
from magy_server.core.summary import summarise
from magy_server.engine import trees
from magy_server.team.request_keys import refuse_other_session


class SessionVerbs:
    def __init__(self, at: Connected, news: ChildNews) -> None:
        self._at = at
        self._service = at.service
        self._news = news
        self._subscriptions: dict[str, Subscription] = {}
        self._opening: dict[str, asyncio.Event] = {}
        self._attaching = WeakValueDictionary[str, asyncio.Lock]()

    def leave_all(self) -> None:
        for subscription in self._subscriptions.values():
            subscription.close()
        self._subscriptions.clear()

    async def made(self, session_id: str) -> None:
        """Waits while a request makes this session: others may name it right after that."""
        while opening := self._opening.get(session_id):
            await opening.wait()

    # --- sessions -------------------------------------------------------------------------------

    async def new(self, params: wire.NewParams) -> wire.NewResult:
        async with self._making(params.session_id):
            root, cwd = self._placed(params.cwd)
            agent = params.agent or self._at.trust.settings(root).default_agent
            model = params.model or ""
            session = await self._service.open(params.session_id, root, cwd, agent, model)
            refuse_other_session(session.state, cwd, agent, model)
        options = await self._options(session.state.options, session.state.root)
        return wire.NewResult(session_id=params.session_id, config_options=options)

    @asynccontextmanager
    async def _making(self, session_id: str) -> AsyncIterator[None]:
        """One request after the other makes a session; what else names it waits meanwhile."""
        await self.made(session_id)
        made = self._opening[session_id] = asyncio.Event()
        try:
            yield
        finally:
            del self._opening[session_id]
            made.set()

    async def list(self, params: wire.ListParams) -> wire.ListResult:
        root = self._placed(params.cwd)[0] if params.cwd else None
        found = await self._service.sessions(
            first_root=root,
            root=root if params.only else None,
            cursor=params.cursor,
            limit=params.limit,
        )
        sessions = [present.session_info(info) for info in found.items]
        return wire.ListResult(sessions=sessions, next_cursor=found.cursor)

    async def subscribe(self, params: wire.SubscribeParams) -> wire.SubscribeResult:
        return await self._attach(params, resumes=False)

    async def resume(self, params: wire.SubscribeParams) -> wire.SubscribeResult:
        return await self._attach(params, resumes=True)

    async def unsubscribe(self, params: SessionParams) -> None:
        async with self._attaching_of(params.session_id):
            if subscription := self._subscriptions.pop(params.session_id, None):
                subscription.close()
                self._news.leave(params.session_id)

    async def events(self, params: wire.EventsParams) -> wire.EventsResult:
        found = await self._service.events(
            params.session_id, after=params.after, before=params.before, limit=params.limit
        )
        entries = found.entries
        if params.after is not None:
            end = min(params.before or found.head + 1, found.head + 1) - 1
            more = bool(entries) and entries[-1].seq < end
        else:
            more = bool(entries) and entries[0].seq > 1
        return wire.EventsResult(events=_updates(found), head_seq=found.head, more=more)

    async def prompt(self, params: wire.PromptParams) -> wire.PromptResult:
        content, blobs = present.content(params.prompt)
        outcome = await self._service.prompt(
            params.session_id, params.message_id, content, params.delivery, blobs
        )
        return wire.PromptResult(message_id=params.message_id, outcome=outcome)

    async def cancel(self, params: wire.CancelParams) -> wire.CancelResult:
        cancelled = await self._service.cancel(params.session_id, params.turn_id)
        return wire.CancelResult(cancelled=cancelled)

    async def close(self, params: SessionParams) -> None:
        await self._service.close(params.session_id)
        await self.unsubscribe(params)

    async def delete(self, params: SessionParams) -> wire.DeleteResult:
        """What becomes of its children is told before it is left."""
        gone = params.session_id
        deleted = await self._service.delete(gone)
        for one in [*self._subscriptions]:
            if one == gone or tree.is_below(one, gone):
                await self.unsubscribe(SessionParams(session_id=one))
        return wire.DeleteResult(deleted=deleted)

    async def fork(self, params: wire.ForkParams) -> wire.NewResult:
        async with self._making(params.new_session_id):
            session = await self._service.fork(params.session_id, params.new_session_id, params.seq)
        options = await self._options(session.state.options, session.state.root)
        return wire.NewResult(session_id=params.new_session_id, config_options=options)

    async def options(self, params: wire.OptionsParams) -> wire.ConfigResult:
        root, _ = self._placed(params.cwd)
        agent = self._at.trust.settings(root).default_agent
        return wire.ConfigResult(config_options=await self._options({"agent": agent}, root))

    async def set_config_option(self, params: wire.ConfigParams) -> wire.ConfigResult:
        state = await self._service.configure(params.session_id, params.config_id, params.value)
        options = await self._options(state.options, state.root)
        return wire.ConfigResult(config_options=options)

    async def compact(self, params: wire.CompactParams) -> None:
        await self._service.compact(params.session_id, params.focus)

    async def summarize(self, params: SessionParams) -> wire.SummaryResult:
        return wire.SummaryResult(text=await self._service.summary(params.session_id))

    # --- the queue ------------------------------------------------------------------------------

    async def reorder_queue(self, params: wire.ReorderParams) -> wire.QueueResult:
        return await self._requeue(params.session_id, params.order, [])

    async def drop_queued(self, params: wire.DropParams) -> wire.QueueResult:
        return await self._requeue(params.session_id, [], params.message_ids)

    async def _requeue(
        self, session_id: str, order: Sequence[str], dropped: Sequence[str]
    ) -> wire.QueueResult:
        state = await self._service.requeue(session_id, order, dropped)
        return wire.QueueResult(waiting=present.waiting(summarise(state)["waiting"]))

    # --- inside ---------------------------------------------------------------------------------

    async def _attach(self, params: wire.SubscribeParams, resumes: bool) -> wire.SubscribeResult:
        """Between the look at the log and the answer nothing is told of the session: so the answer
        holds all that was told before it, and what is told after it is new."""
        async with self._attaching_of(params.session_id):
            cursor = None
            if old := self._subscriptions.get(params.session_id):
                cursor = old.cursor
                old.close()
            try:
                result, seen = await self._look(params)
                if resumes and result.summary.session.state != "idle":
                    await self._service.resume(params.session_id)
                cursor = seen
                return result
            finally:
                if cursor is not None:
                    self._follow(params.session_id, cursor)

    async def _look(self, params: wire.SubscribeParams) -> tuple[wire.SubscribeResult, int]:
        """The answer, and the last entry that the client has with it."""
        start = params.start
        tail = 20 if start.tail is None else start.tail
        attached = await self._service.attach(params.session_id, after=start.seq, tail=tail)
        seen = attached.head if start.seq is None else start.seq
        if attached.entries:
            seen = attached.entries[-1].seq
        result = wire.SubscribeResult(
            head_seq=attached.head,
            floor_seq=attached.entries[0].seq if attached.entries else attached.head + 1,
            summary=await self._summary(attached.info),
            events=_updates(attached),
            more=seen < attached.head,
        )
        return result, seen

    def _attaching_of(self, session_id: str) -> asyncio.Lock:
        """Requests that begin or end a subscription of a session take effect one by one."""
        return self._attaching.setdefault(session_id, asyncio.Lock())

    def _follow(self, session_id: str, cursor: int) -> None:
        session = self._service.loaded.watch(stream_of(session_id))
        session.want_partials()
        session.expect(cursor)
        if session_id not in self._subscriptions:
            self._news.follow(session_id)
        subscription = Subscription(self._service, session, self._at.outbox, cursor)
        self._subscriptions[session_id] = subscription
        self._at.outbox.wake(subscription)

    def _placed(self, cwd: str | None) -> tuple[str | None, str]:
        return (None, self._at.scratch) if cwd is None else self._at.place(cwd)

    async def _summary(self, info: StreamInfo) -> wire.Summary:
        store = self._service.world.store
        infos = [info, *(await trees.below(store, info.id))]
        options = await self._options(info.summary.get("options", {}), info.root)
        return present.summary(infos, options, await open_questions(store, infos))

    async def _options(
        self, about: Mapping[str, str], root: str | None
    ) -> Sequence[wire.ConfigOption]:
        world = self._service.world
        return present.config_options(await in_force(world, about, root), choices(world, root))


def _updates(attached: Attached) -> list[wire.Update]:
    items = page(attached.entries, attached.texts)
    return [wire.Update.model_construct(**item) for item in items]
