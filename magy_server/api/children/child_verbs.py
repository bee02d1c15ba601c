"""The verbs of `magy/child/*` let a person do with children what models do with tools."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from magy_server.api.children import present
from magy_server.api.connected import Seat
from magy_server.api.present import content
from magy_server.api.wire import children as wire
from magy_server.api.wire.shapes import Empty
from magy_server.core.agents import tree
from magy_server.core.agents.child import Spawn
from magy_server.core.agents.mail import DataPayload, Payload, SignalPayload
from magy_server.core.agents.narrowing import narrowing
from magy_server.core.errors import InvalidRequest
from magy_server.core.values import Content, Hash, Limits


class ChildVerbs:
    """The child verbs. A child's log names the client that closed it."""

    def __init__(self, at: Seat) -> None:
        service = self._service = at.service
        self._world = service.world
        self._children = service.children
        self._mailing = service.mailing
        self._slots = service.slots
        self._client = at.client

    async def spawn(
        self, params: wire.ChildSpawnParams, more: Sequence[Content] = ()
    ) -> wire.ChildSpawned:
        """`more`: what the task is about, after its words."""
        prompt, blobs = content(params.prompt)
        spawn = Spawn(
            key=params.request_key,
            agent=params.agent,
            prompt=(*prompt, *more),
            name=params.name,
            context=_context(params),
            model=params.model,
            rules=narrowing(params.permissions, self._world.keys) if params.permissions else None,
            limits=_caps(params.limits),
            cwd=_directory(params.cwd),
            by=self._world.me,
            worktree=params.worktree,
            plugin=params.plugin,
        )
        info, known = await self._children.spawn(params.parent_session_id, spawn, blobs)
        return wire.ChildSpawned(child=present.child(info), known=known)

    async def send(self, params: wire.ChildSendParams) -> wire.ChildSent:
        given = (params.prompt, params.data, params.signal)
        if sum(one is not None for one in given) != 1:
            raise InvalidRequest("magy/child/send takes one of `prompt`, `data` and `signal`.")
        said: Payload | list[Content]
        blobs: Mapping[Hash, bytes] = {}
        if params.prompt is not None:
            said, blobs = content(params.prompt)
        elif params.signal is not None:
            said = SignalPayload(signal=params.signal)
        else:
            said = DataPayload(data=params.data or {})
        outcome = await self._mailing.send(
            params.session_id, said, key=params.request_key, delivery=params.delivery, blobs=blobs
        )
        return wire.ChildSent(message_id=params.request_key, outcome=outcome)

    async def wait(self, params: wire.ChildWaitParams) -> wire.ChildWaited:
        """Ends early, with nothing changed, when the request is cancelled or the editor goes."""
        waiter = _waiter(params)
        root = (await self._service.info(waiter)).root
        seconds = self._world.settings(root).spawn.held.wait_timeout
        if params.timeout_ms is not None:
            seconds = params.timeout_ms / 1000
        waited = await self._mailing.wait(
            waiter,
            params.session_ids or (),
            until=params.until,
            after=params.after_seq,
            deadline=self._world.clock.now() + seconds,
        )
        return present.waited(waited)

    async def list(self, params: wire.ChildListParams) -> wire.ChildListResult:
        infos = await self._children.list(
            params.parent_session_id, recursive=params.recursive, closed=params.include_closed
        )
        begin = 0
        if params.cursor is not None:
            names = [info.session for info in infos]
            if params.cursor not in names:
                raise InvalidRequest("The list has changed since that cursor: start over.")
            begin = names.index(params.cursor) + 1
        page = infos[begin : begin + params.limit]
        more = begin + params.limit < len(infos)
        return wire.ChildListResult(
            children=[present.child(info) for info in page],
            next_cursor=page[-1].session if more else None,
        )

    async def close(self, params: wire.ChildCloseParams) -> wire.ChildClosed:
        before, closed = await self._children.close(
            params.session_id,
            params.mode,
            params.reason,
            recursive=params.recursive,
            by=self._client,
        )
        return wire.ChildClosed(previous_state=before, closed=list(closed))

    async def limits(self, params: wire.ChildLimitsParams) -> wire.ChildLimits:
        slots = self._slots
        asked = params.model_dump(exclude_none=True)
        said = slots.configure(slots.limits.model_copy(update=asked)) if asked else ()
        return wire.ChildLimits(
            **slots.limits.model_dump(exclude={"wait_timeout"}),
            working=slots.working(),
            queued=slots.waiting(),
            clamped=list(said),
        )

    async def health(self, params: Empty) -> wire.AgentHealthResult:
        """How the agents in this process do; asks no model."""
        found = self._service.supervisor.health()
        return wire.AgentHealthResult(agents=[present.health(one) for one in found])


def _context(params: wire.ChildSpawnParams) -> int:
    match params.context:
        case "none":
            return 0
        case "all":
            return -1
        case wire.LatestTurns(turns=turns):
            return turns


def _caps(caps: wire.ChildCaps) -> Limits | None:
    """None: none of its own."""
    values = caps.model_dump(exclude_defaults=True)
    return Limits(**{"requests": 0, "repeats": 0, **values}) if values else None


def _directory(cwd: str | None) -> str:
    if cwd is not None and not os.path.isabs(cwd):
        raise InvalidRequest(f"cwd: {cwd!r} is not an absolute path.")
    return cwd or ""


def _waiter(params: wire.ChildWaitParams) -> str:
    """Whose children are waited for. Raises InvalidRequest."""
    ids = params.session_ids or []
    parents = {tree.parent(id) for id in ids}
    if params.parent_session_id is None and not ids:
        raise InvalidRequest("magy/child/wait needs `parentSessionId` or `sessionIds`.")
    if params.parent_session_id is None and None in parents:
        roots = ", ".join(id for id in ids if tree.parent(id) is None)
        raise InvalidRequest(f"{roots} is not a child; you can wait only for children.")
    if params.parent_session_id is None and len(parents) > 1:
        raise InvalidRequest(
            "Those are children of different sessions: wait for those of one, or name one above "
            "them all as `parentSessionId`."
        )
    waiter = params.parent_session_id or str(parents.pop())
    if params.after_seq is not None and not parents <= {waiter}:
        raise InvalidRequest(
            f"`afterSeq` is a place in the log of {waiter}, where only its own children report: "
            "leave it out for those further below, or wait for them by their own parent."
        )
    return waiter
