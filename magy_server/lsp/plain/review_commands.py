"""These commands decide about hunks, comment on them and go to the next one, in any editor."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Mapping
from typing import Any

from magy_server.api.reviews.review_verbs import ReviewVerbs
from magy_server.api.reviews.view import View
from magy_server.api.wire import names
from magy_server.api.wire import reviews as wire
from magy_server.api.wire.shapes import Range, parsed
from magy_server.core.errors import InvalidRequest, MagyError, NotFound
from magy_server.dataclass import dataclass
from magy_server.lsp.live_editor import LiveEditor
from magy_server.lsp.plain import lenses
from magy_server.lsp.server import Command, Server

COMMANDS = "workspace/executeCommand"
PATIENCE = 2.0
"""Seconds after which a command is answered while what it asked for goes on: some clients answer
nothing, an edit neither, before they have the answer to their own request."""


@dataclass(frozen=True, slots=True)
class ReviewCommands:
    view: View
    verbs: ReviewVerbs
    server: Server
    editor: LiveEditor

    def commands(self) -> Mapping[str, Command]:
        return {
            names.ACCEPT: lambda given: self._hunk("accept", given),
            names.REJECT: lambda given: self._hunk("reject", given),
            names.COMMENT: self._comment,
            names.ACCEPT_ALL: lambda given: self._file("accept", given),
            names.REJECT_ALL: lambda given: self._file("reject", given),
            names.NEXT: lambda given: self._go("next", given),
            names.PREVIOUS: lambda given: self._go("previous", given),
        }

    async def _hunk(self, decision: str, given: list[Any]) -> Any:
        about = _argument(given)
        return await self._resolve(decision, about, {"hunkIds": [await self._hunk_of(about)]})

    async def _file(self, decision: str, given: list[Any]) -> Any:
        return await self._resolve(decision, _argument(given), {"all": True})

    async def _resolve(self, decision: str, about: Mapping[str, Any], which: lenses.Json) -> Any:
        reason = about.get("reason")
        asked = {"decision": decision, "reason": reason if type(reason) is str else "", **which}
        params = parsed(wire.ReviewResolveParams, {**_named(about), **asked}, COMMANDS)
        deciding = self.server.connection.spawn(self._decided(params))
        unseen = asyncio.ensure_future(self.editor.unseen())
        try:
            await asyncio.wait({deciding, unseen}, timeout=PATIENCE,
                               return_when=asyncio.FIRST_COMPLETED)  # fmt: skip
        finally:
            unseen.cancel()
        if not deciding.done():
            # Some clients show an edit only when their command is answered (Eglot); some ask the
            # person first, who decides when.
            deciding.add_done_callback(self._show_error)
            return None
        found = deciding.result()
        if isinstance(found, MagyError):
            raise found
        return found.model_dump(mode="json", by_alias=True)

    async def _decided(self, params: wire.ReviewResolveParams) -> wire.ReviewOutcome | MagyError:
        try:
            found = await self.verbs.resolve(params)
        except MagyError as error:
            return error
        self._say(found)
        return found

    def _show_error(self, deciding: asyncio.Task[wire.ReviewOutcome | MagyError]) -> None:
        found = None if deciding.cancelled() or deciding.exception() else deciding.result()
        if isinstance(found, MagyError):
            self.server.show(f"Magy: {found.message}")

    async def _comment(self, given: list[Any]) -> Any:
        about = _argument(given)
        asked = {"hunkId": await self._hunk_of(about), "text": about.get("text")}
        if type(asked["text"]) is not str or not asked["text"].strip():
            raise InvalidRequest(f"{names.COMMENT} needs the `text` of the comment.")
        params = parsed(wire.ReviewCommentParams, {**_named(about), **asked}, COMMANDS)
        found = await self.verbs.comment(params)
        self._say(found)
        return found.model_dump(mode="json", by_alias=True)

    async def _go(self, direction: str, given: list[Any]) -> Any:
        about: Mapping[str, Any] = _argument(given) if given else {}
        named: dict[str, Any] = {key: about[key] for key in ("uri", "line") if key in about}
        params = parsed(wire.ReviewNavigateParams, {**named, "direction": direction}, COMMANDS)
        found = await self.verbs.navigate(params)
        result = found.model_dump(mode="json", by_alias=True)
        if found.uri is None or found.range is None:
            self.server.show("Magy: no change waits for a decision.")
        else:
            await self.server.show_document(found.uri, result["range"], True)
        return result

    async def _hunk_of(self, about: Mapping[str, Any]) -> Any:
        """The one named, or that at a line, for commands that people bind to keys."""
        named = _named(about)
        if "hunkId" in about:
            return about["hunkId"]
        line = about.get("line")
        if type(line) is not int or line < 0:
            raise InvalidRequest("Name the hunk by its `hunkId`, or by a `line` of it.")
        at = {"line": line, "character": 0}
        cursor = Range.model_validate({"start": at, "end": at})
        mode = "proposed" if named["proposed"] else "applied"
        for file in await self.view.shown(named["uri"]):
            found = [hunk.hunk_id for hunk in file.hunks if lenses.touches(hunk, cursor)]
            if file.mode == mode and found:
                return found[0]
        raise NotFound(f"No change waits for a decision at line {line + 1} of {named['uri']}.")

    def _say(self, found: wire.ReviewOutcome) -> None:
        """A plain client shows nothing of an answer."""
        if found.message:
            self.server.show(f"Magy: {found.message}")


def _argument(given: list[Any]) -> dict[str, Any]:
    """Raises InvalidRequest."""
    if len(given) != 1 or type(given[0]) is not dict:
        raise InvalidRequest('The command takes one argument, an object such as {"uri": ...}.')
    return given[0]


def _named(about: Mapping[str, Any]) -> lenses.Json:
    """The file that is meant. Who names no `requestKey` means every click."""
    uri, key = about.get("uri"), about.get("requestKey")
    if type(uri) is not str:
        raise InvalidRequest("The command's argument needs `uri`.")
    key = key if type(key) is str else f"command/{secrets.token_hex(8)}"
    return {"uri": uri, "proposed": about.get("proposed") is True, "requestKey": key}
