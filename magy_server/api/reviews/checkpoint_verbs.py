"""The verbs of `magy/checkpoint/*` list checkpoints, preview going back to one, and go back."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from magy_server.api.places import uri_of
from magy_server.api.service import Service
from magy_server.api.wire import reviews as wire
from magy_server.core.agents.tree import stream_of
from magy_server.core.errors import InvalidRequest
from magy_server.core.wire_values import stamp
from magy_server.engine.session import Session
from magy_server.reviews.checkpoints import Checkpoint, Preview


class CheckpointVerbs:
    def __init__(self, service: Service) -> None:
        self._service = service
        self._checkpoints = service.checkpoints

    async def list(self, params: wire.CheckpointListParams) -> wire.CheckpointListResult:
        session = await self._session(params.session_id)
        found = await self._checkpoints.list(
            session, limit=params.limit, before=params.before or ""
        )
        redo = await self._checkpoints.newest(session)
        return wire.CheckpointListResult(checkpoints=[_info(one) for one in found], redo=redo)

    async def preview(self, params: wire.CheckpointParams) -> wire.CheckpointPreview:
        session = await self._session(params.session_id)
        found = await self._checkpoints.preview(session, **_meant(params))
        return wire.CheckpointPreview(why=found.why, **_gone_back(found))

    async def restore(self, params: wire.CheckpointRestoreParams) -> wire.CheckpointRestored:
        session = await self._session(params.session_id)
        found = await self._checkpoints.restore(session, params.request_key, **_meant(params))
        return wire.CheckpointRestored(restore_id=found.id, **_gone_back(found))

    async def _session(self, session_id: str) -> Session:
        """Up to date: another process may have appended. Raises NotFound."""
        session = await self._service.loaded.session(stream_of(session_id))
        await session.refresh()
        return session


def _meant(params: wire.CheckpointParams) -> dict[str, Any]:
    if params.turn_id is not None and params.undoes is not None:
        raise InvalidRequest("Give a `turnId` to go back to or `undoes`, a restore: not both.")
    of = {"turn": params.turn_id or "", "undoes": params.undoes or ""}
    return {**of, "files": params.files, "conversation": params.conversation}


def _gone_back(found: Preview) -> dict[str, Any]:
    files = [wire.RestoredFile(uri=uri_of(one.path), **asdict(one)) for one in found.files]
    return {
        "turn_id": found.turn,
        "undoes": found.undoes,
        "turns": list(found.turns),
        "files": files,
        "conversation": found.conversation,
        "prompt": found.text,
    }


def _info(one: Checkpoint) -> wire.CheckpointInfo:
    return wire.CheckpointInfo(
        turn_id=one.turn,
        prompt=one.prompt,
        at=stamp(one.at),
        files=[
            wire.CheckpointFile(path=f.path, added=f.added, removed=f.removed, state=f.state)
            for f in one.files
        ],
        state=one.state,
        conversation=one.conversation,
        why=one.why,
        restore_id=one.restore,
        inherited=one.inherited,
    )
