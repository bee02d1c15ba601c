"""This module answers the standard requests and commands with which any client reviews."""

from __future__ import annotations

from dataclasses import field
from typing import Any

from magy_server.api.reviews.view import View
from magy_server.core.errors import InvalidRequest
from magy_server.dataclass import dataclass
from magy_server.lsp.plain import lenses
from magy_server.lsp.plain.actions import Asked
from magy_server.lsp.server import Server


@dataclass(frozen=True, slots=True)
class PlainReview:
    """`shows_lenses`: the client draws no hunks itself."""

    view: View
    server: Server
    shows_lenses: bool
    texts: set[str] = field(default_factory=set)
    """`magy:` URIs that the client has asked for, and may show."""

    # --- requests -------------------------------------------------------------------------------

    async def code_lens(self, params: dict[str, Any]) -> Any:
        if not self.shows_lenses:
            return []
        document = params.get("textDocument")
        uri = document.get("uri") if type(document) is dict else None
        if type(uri) is not str:
            raise InvalidRequest("`textDocument.uri` is missing.")
        return lenses.lenses(await self.view.shown(uri))

    async def code_action(self, asked: Asked) -> list[lenses.Json]:
        files = await self.view.shown(asked.uri)
        return lenses.actions(files, asked.range, asked.only, self.server.can.tags)

    async def content(self, params: dict[str, Any]) -> Any:
        uri = params.get("uri")
        if type(uri) is not str:
            raise InvalidRequest("workspace/textDocumentContent: `uri` is missing.")
        text = await self.view.text(uri)
        self.texts.add(uri)
        return {"text": text}
