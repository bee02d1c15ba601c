"""The verbs of `magy/interaction/*` and `magy/permission/*` list and answer the questions of
agents, and list and withdraw the permissions that outlast one call."""

from __future__ import annotations

from collections.abc import Sequence

from magy_server.api.children.open_questions import questions as open_questions
from magy_server.api.places import directory
from magy_server.api.service import Service
from magy_server.api.sessions.resolutions import winner
from magy_server.api.wire import permissions
from magy_server.api.wire import sessions as wire
from magy_server.core.agents.tree import SESSIONS
from magy_server.core.values import Grant
from magy_server.engine import trees

MOST_RECENT = 200
"""Sessions in which questions are looked for, where none is named."""


class QuestionVerbs:
    def __init__(self, service: Service, client: str) -> None:
        self._service = service
        self._client = client

    async def list(self, params: wire.InteractionsParams) -> wire.InteractionsResult:
        store = self._service.world.store
        if params.session_id is not None:
            info = await self._service.info(params.session_id)
            infos = [info, *(await trees.below(store, params.session_id))]
        else:
            root = None if params.root is None else directory(params.root)
            infos = (await store.streams(SESSIONS, limit=MOST_RECENT, root=root)).items
        asked = await open_questions(store, infos)
        return wire.InteractionsResult(interactions=asked)

    async def respond(self, params: wire.RespondParams) -> wire.RespondResult:
        accepted = await self._service.answer(
            params.session_id,
            params.interaction_id,
            allow=params.outcome == "allow",
            reason=params.reason,
            scope=params.scope,
            by=self._client,
            content=params.content,
        )
        if accepted:
            return wire.RespondResult(accepted=True)
        store = self._service.world.store
        how = await winner(store, params.session_id, params.interaction_id)
        return wire.RespondResult(accepted=False, winner=how)

    async def grants(self, params: permissions.GrantsParams) -> permissions.GrantsResult:
        found: Sequence[Grant]
        if params.session_id is not None:
            found = await self._service.grants(params.session_id)
        else:
            found = (await self._service.world.project(directory(params.root or ""))).grants
        return permissions.GrantsResult(
            grants=[
                permissions.GrantInfo(grant_id=g.id, key=g.key, pattern=g.pattern, scope=g.scope)
                for g in found
            ]
        )

    async def withdraw(self, params: permissions.WithdrawParams) -> permissions.WithdrawResult:
        if params.session_id is not None:
            withdrawn = await self._service.withdraw(params.session_id, params.grant_id)
        else:
            root = directory(params.root or "")
            withdrawn = await self._service.withdraw_from_project(root, params.grant_id)
        return permissions.WithdrawResult(withdrawn=withdrawn)
