"""This module reads requests for inline completion and writes the answers, and tells the client
when inline completion is on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from time import monotonic
from typing import Any

from pydantic import ValidationError

from magy_server.api.completions.requests import SCHEMES, Request, Selected
from magy_server.api.verbs import Magy
from magy_server.api.wire.names import INLINE
from magy_server.api.wire.shapes import Position, Range
from magy_server.core.errors import EditorError, InvalidConfig, InvalidRequest
from magy_server.edits.text import plain
from magy_server.jsonrpc.peer import Handler
from magy_server.lsp.server import Server

INVOKED = 1
"""`InlineCompletionTriggerKind.Invoked`: the person asked for it."""
ID = "magy-inline"
FRESH = 2.0
"""Seconds for which the setting is not looked up again, as somebody types."""
LINES_ALONE = "Neovim"
"""A client whose buffers are lines without ends: it would insert a CR as text (as of 0.12)."""
ANSWER = 10.0
"""Seconds a client may take to register something."""


class InlineCompletion:
    def __init__(self, server: Server, magy: Magy) -> None:
        self._server = server
        self._magy = magy
        self._asked = False
        """Whether the client ever asked: until then nothing is loaded of what answers."""
        self._registers = server.can.register_inline
        self._lines_alone = server.client.name == LINES_ALONE
        self._registered = False
        self._looked = -FRESH

    def methods(self) -> Mapping[str, Handler]:
        return {INLINE: self._complete}

    def begin(self) -> Callable[[], None]:
        """Registers, if that is on. Returns a function that ends this."""
        self._touched("")
        return self._server.workspace.touched.add(self._touched)

    async def _complete(self, params: dict[str, Any]) -> Any:
        request = _asked(params, self._language)
        self._asked = True
        found = await self._magy.completions.suggest(request, self._server.workspace.as_asked())
        if found is None:
            return None
        text = plain(found.text) if self._lines_alone else found.text
        return {"items": [{"insertText": text, "range": found.range.model_dump()}]}

    def _language(self, uri: str) -> str:
        document = self._server.workspace.open_document(uri)
        return document.language_id if document else ""

    def _touched(self, uri: str) -> None:
        """A document was opened, changed or closed. Whoever has just turned it on goes on typing,
        so that there is no need to watch the files of the settings."""
        if self._asked and uri and self._server.workspace.open_document(uri) is None:
            self._magy.completions.closed(uri)
        now = monotonic()
        if self._registers and now - self._looked >= FRESH:
            self._looked = now
            self._server.connection.spawn(self._look())

    def _wanted(self) -> bool:
        """Returns whether it is on anywhere: in a workspace folder, or outside of all."""
        at = self._magy.at
        roots = (*at.roots, None)
        return any(at.service.world.settings(root).completion.enabled for root in roots)

    async def _look(self) -> None:
        try:
            wanted = self._wanted()
        except InvalidConfig:
            return  # others tell the person
        if wanted == self._registered:
            return
        self._registered = wanted
        one: dict[str, Any] = {"id": ID, "method": INLINE}
        if wanted:
            selector = [{"scheme": scheme} for scheme in SCHEMES]
            one["registerOptions"] = {"documentSelector": selector}
            method, params = "client/registerCapability", {"registrations": [one]}
        else:
            # The protocol has this spelling.
            method, params = "client/unregisterCapability", {"unregisterations": [one]}
        try:
            await self._server.connection.request(method, params, ANSWER)
        except EditorError:
            return  # it shows no suggestions


def _asked(params: Mapping[str, Any], language: Callable[[str], str]) -> Request:
    """Raises InvalidRequest."""
    context, document = _part(params, "context"), _part(params, "textDocument")
    uri = document.get("uri")
    if type(uri) is not str:
        raise InvalidRequest(f"{INLINE} needs a textDocument with a uri.")
    about = context.get("selectedCompletionInfo")
    try:
        position = Position.model_validate(params.get("position"))
        selected = None
        if type(about) is dict:
            replaced = Range.model_validate(about.get("range"))
            selected = Selected(replaced, str(about.get("text", "")))
    except ValidationError:
        raise InvalidRequest(f"{INLINE} needs a position: {{line, character}}.") from None
    invoked = context.get("triggerKind") == INVOKED
    return Request(uri, position, language(uri), invoked, selected)


def _part(params: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """The object under a name; {} for anything else."""
    found = params.get(name)
    return found if type(found) is dict else {}
