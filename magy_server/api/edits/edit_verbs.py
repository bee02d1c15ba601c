"""The verbs of `magy/edit/*` give editors and scripts the edit engine."""

from __future__ import annotations

import asyncio
import json

from magy_server.api.connected import Seat
from magy_server.api.edits.drafts import Drafts, shown
from magy_server.api.edits.files_in_memory import faults
from magy_server.api.places import paths_of
from magy_server.api.wire import reviews as wire
from magy_server.core.errors import EditRefused, InvalidRequest
from magy_server.core.events import Finished
from magy_server.edits.model import EditError, FileEdit
from magy_server.reviews.direct_edits import Applied
from magy_server.tasks import to_end

ATTEMPTS = 20
"""How often an edit is worked out again because a file moved on meanwhile."""


class EditVerbs:
    def __init__(self, at: Seat) -> None:
        self._at = at
        self._applying = at.service.reviews.applying
        self._files = at.service.world.files
        self._store = at.service.world.store
        self._doing: dict[str, asyncio.Future[wire.EditResult]] = {}

    async def preview(self, params: wire.EditParams) -> wire.EditResult:
        drafts = await self._drafts(params, *self._where(params))
        return await _shown(drafts)

    async def apply(self, params: wire.EditApplyParams) -> wire.EditResult:
        """The same request again gets the same answer, and waits for it if need be."""
        doing = self._doing.get(params.request_key)
        if doing is None:
            doing = self._doing[params.request_key] = asyncio.ensure_future(self._once(params))
        return await to_end(doing)

    async def _once(self, params: wire.EditApplyParams) -> wire.EditResult:
        try:
            return await self._apply(params)
        finally:
            del self._doing[params.request_key]

    async def _apply(self, params: wire.EditApplyParams) -> wire.EditResult:
        root, cwd = self._where(params)
        if known := await self._applying.known(root, params.request_key):
            return await self._again(known)
        for attempt in range(1, ATTEMPTS + 1):
            drafts = await self._drafts(params, root, cwd)
            shown = await _shown(drafts)
            if drafts.failures or not drafts.files:
                return shown
            result = shown.model_copy(update={"applied": True})
            done = await self._applying.apply(
                root,
                params.request_key,
                await asyncio.to_thread(drafts.wants),
                by=self._at.client,
                label=params.label,
                output=result.model_dump_json().encode(),
            )
            if done.known:
                return await self._again(done.finished)
            if done.problem is None:
                return result
            moved_on = isinstance(done.problem, EditRefused) and not done.problem.final
            if not moved_on or done.finished.changes or attempt == ATTEMPTS:
                break
        return _stopped(shown, drafts, done)

    async def _again(self, known: Finished) -> wire.EditResult:
        if known.output:
            return wire.EditResult.model_validate_json(await self._store.blob(known.output))
        done = known.status == "completed"
        return wire.EditResult(applied=done, files=[], message=known.for_model)

    def _where(self, params: wire.EditParams) -> tuple[str, str]:
        """(workspace root, what paths are relative to)"""
        path = _path(params)
        where = params.cwd or (path and path.rpartition("/")[0]) or self._at.first
        if where is None:
            raise InvalidRequest(
                "No folder is open: give `cwd`, the directory that paths are relative to."
            )
        return self._at.place(where)

    async def _drafts(self, params: wire.EditParams, root: str, cwd: str) -> Drafts:
        drafts = Drafts(self._files, root, cwd, params.seen)
        try:
            edits = await asyncio.to_thread(_parsed, params, _path(params))
        except EditError as error:
            drafts.refuse(*faults(error.failures))
            return drafts
        await drafts.take(edits)
        return drafts


async def _shown(drafts: Drafts) -> wire.EditResult:
    files = [await asyncio.to_thread(shown, file) for file in drafts.files]
    return wire.EditResult(applied=False, files=files, failures=drafts.failures)


def _stopped(result: wire.EditResult, drafts: Drafts, done: Applied) -> wire.EditResult:
    """Nothing was changed, but for what could not be brought back."""
    assert done.problem is not None
    names = {file.place.path: file.place.name for file in drafts.files}
    failure = wire.EditFailure(
        path=names.get(done.path, done.path), hunk=0, code="failed", message=done.problem.message
    )
    message = done.finished.for_model if done.finished.changes else ""
    return result.model_copy(update={"failures": [failure], "message": message})


def _path(params: wire.EditParams) -> str:
    return paths_of(params.uri)[-1] if params.uri else ""


def _parsed(params: wire.EditParams, path: str) -> list[FileEdit]:
    """Raises InvalidRequest, EditError."""
    from magy_server.edits.formats import FORMATS, detect, parse

    if (params.text is None) == (params.edits is None):
        raise InvalidRequest("Give the edit either as `text` or as `edits`.")
    if params.edits is not None:
        if params.format not in (None, "str_replace"):
            raise InvalidRequest("`edits` takes objects of the format str_replace; give "
                "other formats as `text`.")  # fmt: skip
        return parse("str_replace", json.dumps(params.edits), path)
    text = params.text or ""
    format = params.format or detect(text)
    if format not in FORMATS:
        known = ", ".join(FORMATS)
        raise InvalidRequest(f"There is no format {format!r}; there are {known}.")
    return parse(format, text, path)
