"""Review through the standard protocol: the requests and commands that any client knows (G001)."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from magy_server.api.reviews.review_verbs import ReviewVerbs, View
from magy_server.api.wire import names
from magy_server.api.wire import reviews as wire
from magy_server.api.wire.shapes import parsed
from magy_server.core.errors import InvalidRequest, MagyError, NotFound
from magy_server.lsp.plain import lenses
from magy_server.lsp.transport import Handler, Spawn

COMMANDS = "workspace/executeCommand"
PATIENCE = 2.0
"""Seconds after which a command is answered while what it asked for goes on: some clients answer
nothing, an edit neither, before they have the answer to their own request."""

Command = Callable[[list[Any]], Awaitable[Any]]


@dataclass(frozen=True, slots=True)
class Window:
    """What is done with the client, besides answering. `show` says a sentence to the person;
    `reveal` (URI, range) brings a place to the front, where the client can; `unseen` ends when the
    client has said that it made an edit, and has not shown it yet."""

    show: Callable[[str], None]
    reveal: Callable[[str, Mapping[str, Any]], Awaitable[None]]
    unseen: Callable[[], Awaitable[None]]


class PlainReview:
    """`shows_lenses`: the client draws no hunks itself. `tags`: it knows tags of code actions."""

    def __init__(
        self,
        view: View,
        verbs: ReviewVerbs,
        window: Window,
        spawn: Spawn,
        *,
        shows_lenses: bool,
        tags: bool,
    ) -> None:
        self._view = view
        self._verbs = verbs
        self._window = window
        self._spawn = spawn
        self._shows_lenses = shows_lenses
        self._tags = tags
        self.texts: set[str] = set()
        """`magy:` URIs that the client has asked for, and may show."""

    def methods(self) -> Mapping[str, Handler]:
        return {
            "textDocument/codeLens": self._code_lens,
            "textDocument/codeAction": self.code_action,
            "workspace/textDocumentContent": self.content,
        }

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

    # --- requests -------------------------------------------------------------------------------

    async def _code_lens(self, params: dict[str, Any]) -> Any:
        if not self._shows_lenses:
            return []
        return lenses.lenses(await self._view.shown(_document(params)))

    async def code_action(self, params: dict[str, Any]) -> Any:
        range, context = lenses.parse_range(params.get("range")), params.get("context")
        if range is None:
            raise InvalidRequest("textDocument/codeAction: `range` is missing or malformed.")
        only = context.get("only") if type(context) is dict else None
        files = await self._view.shown(_document(params))
        return lenses.actions(files, range, only if type(only) is list else None, self._tags)

    async def content(self, params: dict[str, Any]) -> Any:
        uri = params.get("uri")
        if type(uri) is not str:
            raise InvalidRequest("workspace/textDocumentContent: `uri` is missing.")
        text = await self._view.text(uri)
        self.texts.add(uri)
        return {"text": text}

    # --- commands -------------------------------------------------------------------------------

    async def _hunk(self, decision: str, given: list[Any]) -> Any:
        about = _argument(given)
        uri, proposed = _named(about, "uri"), about.get("proposed") is True
        ids = [about["hunkId"]] if "hunkId" in about else await self._at(about, uri, proposed)
        return await self._resolve(decision, about, hunkIds=ids, uri=uri, proposed=proposed)

    async def _file(self, decision: str, given: list[Any]) -> Any:
        about = _argument(given)
        uri, proposed = _named(about, "uri"), about.get("proposed") is True
        return await self._resolve(decision, about, all=True, uri=uri, proposed=proposed)

    async def _resolve(self, decision: str, about: Mapping[str, Any], **which: Any) -> Any:
        reason = about.get("reason")
        asked = {"decision": decision, "reason": reason if type(reason) is str else ""}
        params = parsed(
            wire.ReviewResolveParams, {**asked, **which, "requestKey": self._key(about)}, COMMANDS
        )
        deciding = self._spawn(self._decided(params))
        unseen = asyncio.ensure_future(self._window.unseen())
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
            found = await self._verbs.resolve(params)
        except MagyError as error:
            return error
        self._say(found)
        return found

    def _show_error(self, deciding: asyncio.Task[wire.ReviewOutcome | MagyError]) -> None:
        found = None if deciding.cancelled() else deciding.result()
        if isinstance(found, MagyError):
            self._window.show(f"Magy: {found.message}")

    async def _comment(self, given: list[Any]) -> Any:
        about = _argument(given)
        uri, proposed = _named(about, "uri"), about.get("proposed") is True
        ids = [about["hunkId"]] if "hunkId" in about else await self._at(about, uri, proposed)
        text = about.get("text")
        if type(text) is not str or not text.strip():
            raise InvalidRequest(f"{names.COMMENT} needs the `text` of the comment.")
        named = {"uri": uri, "proposed": proposed, "hunkId": ids[0], "text": text}
        params = parsed(
            wire.ReviewCommentParams, {**named, "requestKey": self._key(about)}, COMMANDS
        )
        found = await self._verbs.comment(params)
        self._say(found)
        return found.model_dump(mode="json", by_alias=True)

    async def _go(self, direction: str, given: list[Any]) -> Any:
        about: Mapping[str, Any] = _argument(given) if given else {}
        named: dict[str, Any] = {key: about[key] for key in ("uri", "line") if key in about}
        params = parsed(wire.ReviewNavigateParams, {**named, "direction": direction}, COMMANDS)
        found = await self._verbs.navigate(params)
        result = found.model_dump(mode="json", by_alias=True)
        if found.uri is None or found.range is None:
            self._window.show("Magy: no change waits for a decision.")
        else:
            await self._window.reveal(found.uri, result["range"])
        return result

    async def _at(self, about: Mapping[str, Any], uri: str, proposed: bool) -> list[str]:
        """The hunk at a line, for commands that people bind to keys."""
        line = about.get("line")
        if type(line) is not int or line < 0:
            raise InvalidRequest("Name the hunk by its `hunkId`, or by a `line` of it.")
        at = {"line": line, "character": 0}
        cursor = wire.Range.model_validate({"start": at, "end": at})
        mode = "proposed" if proposed else "applied"
        for file in await self._view.shown(uri):
            found = [hunk.hunk_id for hunk in file.hunks if lenses.touches(hunk, cursor)]
            if file.mode == mode and found:
                return found[:1]
        raise NotFound(f"No change waits for a decision at line {line + 1} of {uri}.")

    def _say(self, found: wire.ReviewOutcome) -> None:
        """A plain client shows nothing of an answer."""
        if found.message:
            self._window.show(f"Magy: {found.message}")

    def _key(self, about: Mapping[str, Any]) -> str:
        """Who names none means every click."""
        key = about.get("requestKey")
        return key if type(key) is str else f"command/{secrets.token_hex(8)}"


def _document(params: Mapping[str, Any]) -> str:
    """Raises InvalidRequest."""
    document = params.get("textDocument")
    uri = document.get("uri") if type(document) is dict else None
    if type(uri) is not str:
        raise InvalidRequest("`textDocument.uri` is missing.")
    return uri


def _argument(given: list[Any]) -> dict[str, Any]:
    """Raises InvalidRequest."""
    if len(given) != 1 or type(given[0]) is not dict:
        raise InvalidRequest('The command takes one argument, an object such as {"uri": ...}.')
    return given[0]


def _named(about: Mapping[str, Any], key: str) -> str:
    value = about.get(key)
    if type(value) is not str:
        raise InvalidRequest(f"The command's argument needs `{key}`.")
    return value
