"""The `magy/*` methods: each is one engine verb. The door holds the connection's subscriptions and
nothing else."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from magy_server.api import present
from magy_server.api.children import present as family_present
from magy_server.api.children.news import ChildNews
from magy_server.api.engine import Engine
from magy_server.api.options import choices
from magy_server.api.pages import Attached
from magy_server.api.wire import children as child_wire
from magy_server.api.wire import sessions as wire
from magy_server.api.wire.methods import CLIENT_TO_SERVER, Method
from magy_server.api.wire.shapes import Empty, SessionParams, Wire, parsed
from magy_server.config.trust import Trust
from magy_server.core import family
from magy_server.core.errors import InvalidRequest
from magy_server.core.family import stream_of
from magy_server.core.state.state import State
from magy_server.core.summary import summarise
from magy_server.engine import trees
from magy_server.lsp.outbox import Outbox
from magy_server.lsp.subscription import Subscription, page
from magy_server.team.keys import refuse_other_session

Handler = Callable[[dict[str, Any]], Awaitable[Any]]


class Door:
    """`roots` are the editor's workspace folders, canonical; `scratch` is where sessions without a
    project live. `groups`: who has the verbs of `magy/review/*` and the like."""

    def __init__(
        self,
        engine: Engine,
        trust: Trust,
        outbox: Outbox,
        roots: Sequence[str],
        scratch: str,
        client: str,
        groups: Mapping[str, object],
        news: ChildNews,
    ) -> None:
        self._engine = engine
        self._trust = trust
        self._outbox = outbox
        self._roots = roots
        self._scratch = scratch
        self._client = client
        self._groups = groups
        self._news = news
        self._subscriptions: dict[str, Subscription] = {}
        self._opening: dict[str, asyncio.Event] = {}

    def methods(self) -> dict[str, Handler]:
        """By name, each taking the params as sent. Raises InvalidRequest for wrong ones."""
        return {method.name: self._handler(method) for method in CLIENT_TO_SERVER}

    def _handler(self, method: Method) -> Handler:
        name = method.name.removeprefix("magy/").replace("/", "_")
        group, _, verb_name = name.partition("_")
        owner, verb_name = (
            (self._groups[group], verb_name) if group in self._groups else (self, name)
        )
        verb: Callable[[Any], Awaitable[Wire | None]] = getattr(owner, verb_name)

        async def handle(params: dict[str, Any]) -> Any:
            asked = parsed(method.params, params, method.name)
            while opening := self._opening.get(getattr(asked, "session_id", None) or ""):
                await opening.wait()  # requests may follow `session/new` without waiting for it
            result = await verb(asked)
            return (result or Empty()).model_dump(mode="json", by_alias=True)

        return handle

    def close(self) -> None:
        for subscription in self._subscriptions.values():
            subscription.close()
        self._subscriptions.clear()
        self._news.close()

    def subscribed(self, session_id: str) -> bool:
        return session_id in self._subscriptions

    # --- sessions -------------------------------------------------------------------------------

    async def session_new(self, params: wire.NewParams) -> wire.NewResult:
        async with self._made(params.session_id):
            return await self._new(params)

    @asynccontextmanager
    async def _made(self, session_id: str) -> AsyncIterator[None]:
        """One request after the other makes a session; what else names it waits meanwhile."""
        while opening := self._opening.get(session_id):
            await opening.wait()
        made = self._opening[session_id] = asyncio.Event()
        try:
            yield
        finally:
            del self._opening[session_id]
            made.set()

    async def _new(self, params: wire.NewParams) -> wire.NewResult:
        root, cwd = self._place(params.cwd)
        settings = self._trust.settings(root)
        agent = params.agent or settings.default_agent
        model = params.model or ""
        session = await self._engine.open(params.session_id, root, cwd, agent, model)
        refuse_other_session(session.state, cwd, agent, model)
        options = await self._options(session.state)
        return wire.NewResult(session_id=params.session_id, config_options=options)

    async def session_list(self, params: wire.ListParams) -> wire.ListResult:
        root = self._place(params.cwd)[0] if params.cwd else None
        found = await self._engine.sessions(
            first_root=root,
            root=root if params.only else None,
            cursor=params.cursor,
            limit=params.limit,
        )
        sessions = [present.session_info(info) for info in found.items]
        return wire.ListResult(sessions=sessions, next_cursor=found.cursor)

    async def session_subscribe(self, params: wire.SubscribeParams) -> wire.SubscribeResult:
        start = params.start
        tail = 20 if start.tail is None else start.tail
        attached = await self._engine.attach(params.session_id, after=start.seq, tail=tail)
        cursor = attached.entries[-1].seq if attached.entries else max(start.seq or 0, 0)
        if start.seq is None and not attached.entries:
            cursor = attached.head
        self._subscribe(params.session_id, cursor)
        return wire.SubscribeResult(
            head_seq=attached.head,
            floor_seq=attached.entries[0].seq if attached.entries else attached.head + 1,
            summary=await self._summary(attached),
            events=_updates(attached),
            more=cursor < attached.head,
        )

    async def session_resume(self, params: wire.SubscribeParams) -> wire.SubscribeResult:
        result = await self.session_subscribe(params)
        if result.summary.session.state != "idle":
            await self._engine.resume(params.session_id)
        return result

    async def session_unsubscribe(self, params: SessionParams) -> None:
        if subscription := self._subscriptions.pop(params.session_id, None):
            subscription.close()
            self._news.leave(params.session_id)

    async def session_events(self, params: wire.EventsParams) -> wire.EventsResult:
        found = await self._engine.events(
            params.session_id, after=params.after, before=params.before, limit=params.limit
        )
        entries = found.entries
        if params.after is not None:
            end = (params.before or found.head + 1) - 1
            more = bool(entries) and entries[-1].seq < end
        else:
            more = bool(entries) and entries[0].seq > 1
        return wire.EventsResult(events=_updates(found), head_seq=found.head, more=more)

    async def session_prompt(self, params: wire.PromptParams) -> wire.PromptResult:
        content, blobs = present.content(params.prompt)
        outcome = await self._engine.prompt(
            params.session_id, params.message_id, content, params.delivery, blobs
        )
        return wire.PromptResult(message_id=params.message_id, outcome=outcome)

    async def session_cancel(self, params: wire.CancelParams) -> wire.CancelResult:
        cancelled = await self._engine.cancel(params.session_id, params.turn_id)
        return wire.CancelResult(cancelled=cancelled)

    async def session_close(self, params: SessionParams) -> None:
        await self._engine.close(params.session_id)
        await self.session_unsubscribe(params)

    async def session_delete(self, params: SessionParams) -> wire.DeleteResult:
        """What becomes of its children is told before it is left."""
        gone = params.session_id
        deleted = await self._engine.delete(gone)
        for one in [*self._subscriptions]:
            if one == gone or family.is_below(one, gone):
                await self.session_unsubscribe(SessionParams(session_id=one))
        return wire.DeleteResult(deleted=deleted)

    async def session_fork(self, params: wire.ForkParams) -> wire.NewResult:
        async with self._made(params.new_session_id):
            session = await self._engine.fork(params.session_id, params.new_session_id, params.seq)
        options = await self._options(session.state)
        return wire.NewResult(session_id=params.new_session_id, config_options=options)

    async def session_set_config_option(self, params: wire.ConfigParams) -> wire.ConfigResult:
        state = await self._engine.configure(params.session_id, params.config_id, params.value)
        options = await self._options(state)
        return wire.ConfigResult(config_options=options)

    async def session_compact(self, params: wire.CompactParams) -> None:
        await self._engine.compact(params.session_id, params.focus)

    async def session_summarize(self, params: SessionParams) -> wire.SummaryResult:
        return wire.SummaryResult(text=await self._engine.summary(params.session_id))

    # --- the queue ------------------------------------------------------------------------------

    async def queue_reorder(self, params: wire.ReorderParams) -> wire.QueueResult:
        return await self._requeue(params.session_id, params.order, [])

    async def queue_drop(self, params: wire.DropParams) -> wire.QueueResult:
        return await self._requeue(params.session_id, [], params.message_ids)

    async def _requeue(
        self, session_id: str, order: Sequence[str], dropped: Sequence[str]
    ) -> wire.QueueResult:
        state = await self._engine.requeue(session_id, order, dropped)
        return wire.QueueResult(waiting=present.waiting(summarise(state)["waiting"]))

    # --- agents, questions, permissions -----------------------------------------------------------

    async def agent_list(self, params: wire.AgentsParams) -> wire.AgentsResult:
        root = self._place(params.cwd)[0] if params.cwd else next(iter(self._roots), None)
        agents = [
            wire.AgentInfo(name=a.name, description=a.description, mode=a.mode, model=a.model)
            for a in self._engine.world.agents(root).values()
            if not a.hidden
        ]
        return wire.AgentsResult(agents=agents)

    async def agent_health(self, params: Empty) -> child_wire.AgentHealthResult:
        found = self._engine.supervisor.health()
        return child_wire.AgentHealthResult(agents=[family_present.health(one) for one in found])

    async def interaction_list(self, params: wire.InteractionsParams) -> wire.InteractionsResult:
        store = self._engine.world.store
        if params.session_id is not None:
            info = await self._engine.info(params.session_id)
            infos = [info, *(await trees.below(store, params.session_id))]
        else:
            infos = list(await self._engine.asking())
        asked = await family_present.questions(store, infos)
        return wire.InteractionsResult(interactions=asked)

    async def interaction_respond(self, params: wire.RespondParams) -> wire.RespondResult:
        accepted = await self._engine.answer(
            params.session_id,
            params.interaction_id,
            allow=params.outcome == "allow",
            reason=params.reason,
            scope=params.scope,
            by=self._client,
        )
        if accepted:
            return wire.RespondResult(accepted=True)
        winner = await self._engine.winner(params.session_id, params.interaction_id)
        return wire.RespondResult(accepted=False, winner=winner)

    async def permission_list(self, params: wire.GrantsParams) -> wire.GrantsResult:
        grants = [
            wire.GrantInfo(grant_id=g.id, key=g.key, pattern=g.pattern, scope=g.scope)
            for g in await self._engine.grants(params.session_id)
        ]
        return wire.GrantsResult(grants=grants)

    async def permission_withdraw(self, params: wire.WithdrawParams) -> wire.WithdrawResult:
        withdrawn = await self._engine.withdraw(params.session_id, params.grant_id)
        return wire.WithdrawResult(withdrawn=withdrawn)

    async def workspace_trust(self, params: wire.TrustParams) -> wire.TrustResult:
        root = _directory(params.root)
        if params.trusted is not None:
            await self._trust.set(root, params.trusted)
        return wire.TrustResult(
            root=root, trusted=self._trust.trusted(root), ignored=list(self._trust.ignored(root))
        )

    # --- inside ---------------------------------------------------------------------------------

    def _subscribe(self, session_id: str, cursor: int) -> None:
        """One subscription a session: subscribing again starts anew from there."""
        if old := self._subscriptions.pop(session_id, None):
            old.close()
        else:
            self._news.follow(session_id)
        session = self._engine.loaded.watch(stream_of(session_id))
        session.want_partials()
        subscription = Subscription(self._engine, session, self._outbox, cursor)
        self._subscriptions[session_id] = subscription
        self._outbox.wake(subscription)

    def _place(self, cwd: str | None) -> tuple[str | None, str]:
        return (None, self._scratch) if cwd is None else place(cwd, self._roots)

    async def _summary(self, attached: Attached) -> wire.Summary:
        info = attached.info
        about = {**info.summary}
        about["options"] = await self._engine.options(about.get("options", {}), info.root)
        shown = type(info)(info.stream, info.root, info.head, info.created, info.updated, about)
        summary = present.summary(shown, choices(self._engine.world, info.root))
        store = self._engine.world.store
        infos = [info, *(await trees.below(store, info.id))]
        asked = await family_present.questions(store, infos)
        return family_present.with_children(summary, infos, asked)

    async def _options(self, state: State) -> list[wire.ConfigOption]:
        root = state.opened.root if state.opened else None
        options = await self._engine.options(state.options, root)
        return present.config_options(options, choices(self._engine.world, root))


def _updates(attached: Attached) -> list[wire.Update]:
    items = page(attached.entries, attached.texts)
    return [wire.Update.model_construct(**item) for item in items]


def place(cwd: str, roots: Sequence[str]) -> tuple[str, str]:
    """(workspace root, working directory), canonical. The root is the innermost workspace folder
    around `cwd`, else `cwd` itself. Raises InvalidRequest."""
    path = _directory(cwd)
    around = [root for root in roots if path == root or path.startswith(root + "/")]
    return max(around, key=len, default=path), path


def _directory(path: str) -> str:
    """Canonical. Raises InvalidRequest."""
    if not os.path.isabs(path) or "\0" in path:
        raise InvalidRequest(f"{path!r} is not an absolute path.")
    real = os.path.realpath(path)
    if not os.path.isdir(real):
        raise InvalidRequest(f"{path!r} is not a directory.")
    return real
